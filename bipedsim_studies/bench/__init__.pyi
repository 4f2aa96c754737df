from .run import machine

__all__ = ["machine"]
