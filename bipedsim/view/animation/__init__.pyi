from .film import animate, animate_run, check_output

__all__ = ["animate", "animate_run", "check_output"]
