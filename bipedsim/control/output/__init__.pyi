from .output_tracking import TILT as TILT
from .pfl import swing_curve as swing_curve
from .planar_gait import LEAD as LEAD, PlanarGait as PlanarGait, PlanarWalk as PlanarWalk
from .stance import StepTracking as StepTracking
from .supported import LoadedFeet as LoadedFeet, SupportedDynamics as SupportedDynamics, Task as Task
