from .policy import PolicyController, PolicyParams
from .readers import UNITREE_MOTORS, disorder, pairs_along

__all__ = ["UNITREE_MOTORS", "PolicyController", "PolicyParams", "disorder", "pairs_along"]
