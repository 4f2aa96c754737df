from .policy import PolicyController as PolicyController, PolicyParams as PolicyParams
from .readers import UNITREE_MOTORS as UNITREE_MOTORS, disorder as disorder, pairs_along as pairs_along
