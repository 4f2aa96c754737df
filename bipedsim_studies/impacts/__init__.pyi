from .laws import IMPACT_LAWS
from .problem import Friction, ImpactResult, NoImpactOutcomeError

__all__ = ["IMPACT_LAWS", "Friction", "ImpactResult", "NoImpactOutcomeError"]
