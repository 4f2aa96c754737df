from .inline import Inline, show, show_motion
from .overlay import overlay
from .panels import PANELS, USUAL_PANELS, panel_names
from .plot_gait import plot_gaits
from .plot_plates import plot_plates
from .plots import Page, plot
from .report import report, report_runs
from .rerun import plot_rerun
from .robot import draw_robot
from .sheet import (
    FOOT_COLOURS,
    LIMIT_COLOUR,
    STYLE,
    TOTAL_COLOUR,
    at_least,
    fit_titles,
    foot_colour,
    foot_dash,
    picture,
)
from .thinned import Thinned, columns_of

__all__ = [
    "FOOT_COLOURS",
    "LIMIT_COLOUR",
    "PANELS",
    "STYLE",
    "TOTAL_COLOUR",
    "USUAL_PANELS",
    "Inline",
    "Page",
    "Thinned",
    "at_least",
    "columns_of",
    "draw_robot",
    "fit_titles",
    "foot_colour",
    "foot_dash",
    "overlay",
    "panel_names",
    "picture",
    "plot",
    "plot_gaits",
    "plot_plates",
    "plot_rerun",
    "report",
    "report_runs",
    "show",
    "show_motion",
]
