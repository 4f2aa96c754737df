from .deployment import read_deployment as read_deployment
from .unitree_motors import UNITREE_MOTORS as UNITREE_MOTORS, disorder as disorder, pairs_along as pairs_along
