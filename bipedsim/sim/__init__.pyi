from .io import LARGEST_PUSH, MEASURED, Command, Observation
from .monitors import JOINT, MONITORS, Monitors
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
    "Observation",
    "Simulator",
    "Snapshot",
    "Steps",
    "whole_ratio",
]
