from .io import LARGEST_PUSH, Command, Observation
from .monitors import JOINT, MONITORS, Monitors
from .simulator import GroundTruth, Simulator, Snapshot, whole_ratio

__all__ = [
    "JOINT",
    "LARGEST_PUSH",
    "MONITORS",
    "Command",
    "GroundTruth",
    "Monitors",
    "Observation",
    "Simulator",
    "Snapshot",
    "whole_ratio",
]
