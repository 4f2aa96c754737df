from .io import LARGEST_PUSH, Command, Observation
from .simulator import GroundTruth, Simulator, Snapshot, whole_ratio

__all__ = ["LARGEST_PUSH", "Command", "GroundTruth", "Observation", "Simulator", "Snapshot", "whole_ratio"]
