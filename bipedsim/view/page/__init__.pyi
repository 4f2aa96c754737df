from .frames import Frames, frames_of, pushes_at, read_thinned
from .instant import Instant, Pushed
from .page import Page, check_page
from .params import PageParams
from .plots import Plots, values_of
from .replay import Replay
from .run_view import PATIENCE, RunView
from .trail import Trail
from .view_run import Shown, open_replay, read_shown, write_html

__all__ = [
    "PATIENCE",
    "Frames",
    "Instant",
    "Page",
    "PageParams",
    "Plots",
    "Pushed",
    "Replay",
    "RunView",
    "Shown",
    "Trail",
    "check_page",
    "frames_of",
    "open_replay",
    "pushes_at",
    "read_shown",
    "read_thinned",
    "values_of",
    "write_html",
]
