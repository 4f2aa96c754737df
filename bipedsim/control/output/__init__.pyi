from .output_tracking import TILT, OutputTracking, linear_sums
from .pfl import swing_curve
from .planar_gait import LEAD, PlanarGait, PlanarWalk
from .stance import StanceFoot
from .supported import LoadedFeet, SupportedDynamics, Task

__all__ = [
    "LEAD",
    "TILT",
    "LoadedFeet",
    "OutputTracking",
    "PlanarGait",
    "PlanarWalk",
    "StanceFoot",
    "SupportedDynamics",
    "Task",
    "linear_sums",
    "swing_curve",
]
