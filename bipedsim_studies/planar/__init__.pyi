from .finite_time import finite_time_feedback, settling_time

__all__ = ["finite_time_feedback", "settling_time"]
