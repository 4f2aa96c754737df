from .plots import PANELS, plot
from .sheet import FOOT_COLOURS, LIMIT_COLOUR, STYLE, TOTAL_COLOUR, foot_colour, foot_dash, picture

__all__ = [
    "FOOT_COLOURS",
    "LIMIT_COLOUR",
    "PANELS",
    "STYLE",
    "TOTAL_COLOUR",
    "foot_colour",
    "foot_dash",
    "picture",
    "plot",
]
