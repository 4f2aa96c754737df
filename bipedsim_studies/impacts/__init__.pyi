from .laws import IMPACT_LAWS as IMPACT_LAWS
from .problem import Friction as Friction, ImpactResult as ImpactResult, NoImpactOutcomeError as NoImpactOutcomeError
