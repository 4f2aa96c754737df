from .feedback_linearised import FeedbackLinearised
from .nonlinear_damping import NonlinearDamping
from .substeps import normal_compliance, tangential_compliance

__all__ = ["FeedbackLinearised", "NonlinearDamping", "normal_compliance", "tangential_compliance"]
