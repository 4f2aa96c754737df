from .adaptive import AdaptiveGains as AdaptiveGains, AdaptiveWalk as AdaptiveWalk, BelievedDynamics as BelievedDynamics
from .finite_time import finite_time_feedback as finite_time_feedback, settling_time as settling_time
