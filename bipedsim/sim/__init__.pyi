from .force_plates import ForcePlates
from .gantry import GANTRY_ACTIONS, HANG, Gantry, GantryConfig, read_gantry
from .io import LARGEST_PUSH, LIMIT, MEASURED, POSITION, SETPOINT, STIFFNESS, VELOCITY, Asked, Command, Observation
from .monitors import JOINT, MONITORS, Monitors
from .objects import Objects
from .participant import Participant
from .simulator import Simulator, SimulatorConfig, whole_ratio
from .snapshot import Snapshot
from .steps import Steps
from .truth import GroundTruth
from .vertex_forces import VertexForces

__all__ = [
    "GANTRY_ACTIONS",
    "HANG",
    "JOINT",
    "LARGEST_PUSH",
    "LIMIT",
    "MEASURED",
    "MONITORS",
    "POSITION",
    "SETPOINT",
    "STIFFNESS",
    "VELOCITY",
    "Asked",
    "Command",
    "ForcePlates",
    "Gantry",
    "GantryConfig",
    "GroundTruth",
    "Monitors",
    "Objects",
    "Observation",
    "Participant",
    "Simulator",
    "SimulatorConfig",
    "Snapshot",
    "Steps",
    "VertexForces",
    "read_gantry",
    "whole_ratio",
]
