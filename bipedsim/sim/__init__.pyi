from .io import LARGEST_PUSH, MEASURED, Command, Observation
from .monitors import JOINT, MONITORS, Monitors
from .objects import Objects
from .simulator import GroundTruth, Simulator, Snapshot, whole_ratio
from .steps import Steps

__all__ = [
    "JOINT",
    "LARGEST_PUSH",
    "MEASURED",
    "MONITORS",
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
