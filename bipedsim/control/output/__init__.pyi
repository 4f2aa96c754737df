from .output_tracking import TILT
from .pfl import swing_curve
from .planar_gait import LEAD, PlanarGait, PlanarWalk
from .stance import StepTracking
from .supported import LoadedFeet, SupportedDynamics, Task

__all__ = [
    "LEAD",
    "TILT",
    "LoadedFeet",
    "PlanarGait",
    "PlanarWalk",
    "StepTracking",
    "SupportedDynamics",
    "Task",
    "swing_curve",
]
