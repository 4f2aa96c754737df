from .laws import IMPACT_LAWS, Friction, ImpactResult, NoImpactOutcomeError

__all__ = ["IMPACT_LAWS", "Friction", "ImpactResult", "NoImpactOutcomeError"]
