from .io import Command, Observation
from .simulator import GroundTruth, Simulator, Snapshot, whole_ratio

__all__ = ["Command", "GroundTruth", "Observation", "Simulator", "Snapshot", "whole_ratio"]
