from .io import LARGEST_PUSH, LIMIT, MEASURED, POSITION, SETPOINT, STIFFNESS, VELOCITY, Asked, Command, Observation
from .monitors import JOINT, MONITORS, Monitors
from .objects import Objects
from .simulator import GroundTruth, Simulator, Snapshot, whole_ratio
from .steps import Steps

__all__ = [
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
    "GroundTruth",
    "Monitors",
    "Objects",
    "Observation",
    "Simulator",
    "Snapshot",
    "Steps",
    "whole_ratio",
]
