from .adaptive import AdaptiveGains, AdaptiveWalk, BelievedDynamics
from .finite_time import finite_time_feedback, settling_time

__all__ = ["AdaptiveGains", "AdaptiveWalk", "BelievedDynamics", "finite_time_feedback", "settling_time"]
