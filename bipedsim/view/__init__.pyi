from .panels import PANELS, check_panels
from .plots import plot
from .rerun import plot_rerun
from .robot import draw_robot
from .sheet import FOOT_COLOURS, LIMIT_COLOUR, STYLE, TOTAL_COLOUR, at_least, foot_colour, foot_dash, picture
from .thinned import Thinned

__all__ = [
    "FOOT_COLOURS",
    "LIMIT_COLOUR",
    "PANELS",
    "STYLE",
    "TOTAL_COLOUR",
    "Thinned",
    "at_least",
    "check_panels",
    "draw_robot",
    "foot_colour",
    "foot_dash",
    "picture",
    "plot",
    "plot_rerun",
]
