from .html_page import (
    folded as folded,
    html_table as html_table,
    image as image,
    preformatted as preformatted,
    text_list as text_list,
    write_page as write_page,
)
from .inline import Inline as Inline, show as show, show_motion as show_motion
from .overlays import overlay as overlay
from .palette import (
    FOOT_COLOURS as FOOT_COLOURS,
    LIMIT_COLOUR as LIMIT_COLOUR,
    TOTAL_COLOUR as TOTAL_COLOUR,
    foot_colour as foot_colour,
)
from .panels import PANELS as PANELS, USUAL_PANELS as USUAL_PANELS, panel_names as panel_names
from .plate_plots import plot_plates as plot_plates
from .plot_gait import plot_gaits as plot_gaits
from .plots import PanelPlot as PanelPlot, plot as plot
from .report_page import report as report, report_runs as report_runs
from .rerun import plot_rerun as plot_rerun
from .robot import draw_robot as draw_robot
from .sheet import (
    PAGES as PAGES,
    STYLE as STYLE,
    at_least as at_least,
    fit_titles as fit_titles,
    foot_dash as foot_dash,
    picture as picture,
)
from .thinned import Thinned as Thinned, columns_of as columns_of
from .time_axes import time_axis as time_axis
