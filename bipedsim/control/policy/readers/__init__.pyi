from .deployment import read_deployment
from .unitree_motors import UNITREE_MOTORS, disorder, pairs_along

__all__ = ["UNITREE_MOTORS", "disorder", "pairs_along", "read_deployment"]
