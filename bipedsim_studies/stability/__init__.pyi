from .gait import Gait
from .maps import NoReturnError
from .newton import fixed_point, jacobian
from .straight_legs import StraightLegs, Stride, Torque
from .zero_dynamics import ReducedMap, VirtualConstraint

__all__ = [
    "Gait",
    "NoReturnError",
    "ReducedMap",
    "StraightLegs",
    "Stride",
    "Torque",
    "VirtualConstraint",
    "fixed_point",
    "jacobian",
]
