from .gait import Gait
from .newton import fixed_point, jacobian
from .straight_legs import StraightLegs, Stride, Torque
from .zero_dynamics import ReducedMap, VirtualConstraint

__all__ = [
    "Gait",
    "ReducedMap",
    "StraightLegs",
    "Stride",
    "Torque",
    "VirtualConstraint",
    "fixed_point",
    "jacobian",
]
