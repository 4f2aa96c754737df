from .assembly import SimulatorConfig as SimulatorConfig
from .force_plates import ForcePlates as ForcePlates
from .gantry import (
    GANTRY_ACTIONS as GANTRY_ACTIONS,
    HANG as HANG,
    Gantry as Gantry,
    GantryConfig as GantryConfig,
    read_gantry as read_gantry,
    trunk_joint as trunk_joint,
)
from .height_scan import scan_grid as scan_grid
from .io import (
    DAMPING as DAMPING,
    EFFORT as EFFORT,
    LARGEST_PUSH as LARGEST_PUSH,
    LIMIT as LIMIT,
    MEASURED as MEASURED,
    POSITION as POSITION,
    SETPOINT as SETPOINT,
    STIFFNESS as STIFFNESS,
    VELOCITY as VELOCITY,
    Asked as Asked,
    Command as Command,
    Observation as Observation,
)
from .monitors import JOINT as JOINT, MONITORS as MONITORS, Monitors as Monitors
from .objects import Objects as Objects
from .participant import Participant as Participant, Simulation as Simulation
from .pushes import Pushes as Pushes
from .scan_frame import VerticalFromImu as VerticalFromImu, scan_points as scan_points
from .simulator import Simulator as Simulator, announced_events as announced_events, whole_ratio as whole_ratio
from .snapshot import Snapshot as Snapshot
from .standing import placed as placed
from .steps import Steps as Steps
from .truth import GroundTruth as GroundTruth
from .vertex_forces import VertexForces as VertexForces
