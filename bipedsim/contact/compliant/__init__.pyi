from .feedback_linearised import FeedbackLinearised
from .nonlinear_damping import NonlinearDamping

__all__ = ["FeedbackLinearised", "NonlinearDamping"]
