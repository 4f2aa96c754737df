from .gait import WalkerGait as WalkerGait
from .maps import NoReturnError as NoReturnError
from .newton import fixed_point as fixed_point, jacobian as jacobian
from .straight_legs import StraightLegs as StraightLegs, Stride as Stride, Torque as Torque
from .three_links import LinkConstraint as LinkConstraint, LinkStep as LinkStep, ThreeLinks as ThreeLinks
from .zero_dynamics import ReducedMap as ReducedMap, VirtualConstraint as VirtualConstraint
