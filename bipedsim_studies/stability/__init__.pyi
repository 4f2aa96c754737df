from .gait import Gait
from .maps import NoReturnError
from .newton import fixed_point, jacobian
from .straight_legs import StraightLegs, Stride, Torque
from .three_links import LinkConstraint, LinkStep, ThreeLinks
from .zero_dynamics import ReducedMap, VirtualConstraint

__all__ = [
    "Gait",
    "LinkConstraint",
    "LinkStep",
    "NoReturnError",
    "ReducedMap",
    "StraightLegs",
    "Stride",
    "ThreeLinks",
    "Torque",
    "VirtualConstraint",
    "fixed_point",
    "jacobian",
]
