from .arrays import PUBLISHED, REVISED, Selection
from .candidate import centre_of_pressure, centre_on_edge, distance_outside
from .exact import Exact, ExactParams
from .friction import torsion_radius
from .one_step import OneStep
from .rules import choose, nearest_feature, nearest_mode

__all__ = [
    "PUBLISHED",
    "REVISED",
    "Exact",
    "ExactParams",
    "OneStep",
    "Selection",
    "centre_of_pressure",
    "centre_on_edge",
    "choose",
    "distance_outside",
    "nearest_feature",
    "nearest_mode",
    "torsion_radius",
]
