from .arrays import PUBLISHED, REVISED, Selection, Settings
from .candidate import centre_of_pressure, centre_on_edge
from .exact import Exact, ExactParams
from .friction import gauge, share_out
from .one_step import OneStep
from .rules import choose, nearest_feature, nearest_mode

__all__ = [
    "PUBLISHED",
    "REVISED",
    "Exact",
    "ExactParams",
    "OneStep",
    "Selection",
    "Settings",
    "centre_of_pressure",
    "centre_on_edge",
    "choose",
    "gauge",
    "nearest_feature",
    "nearest_mode",
    "share_out",
]
