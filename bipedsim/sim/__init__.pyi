from .io import Command, Observation
from .simulator import Simulator, Snapshot, whole_ratio

__all__ = ["Command", "Observation", "Simulator", "Snapshot", "whole_ratio"]
