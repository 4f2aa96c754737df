from .frames import Frames as Frames, frames_of as frames_of, pushes_at as pushes_at, read_thinned as read_thinned
from .instant import Instant as Instant, Pushed as Pushed
from .page import Page as Page, check_page as check_page
from .params import PageParams as PageParams
from .plots import Plots as Plots, values_of as values_of
from .replay import Replay as Replay
from .run_view import PATIENCE as PATIENCE, RunView as RunView
from .trail import Trail as Trail
from .view_run import (
    ViewedRun as ViewedRun,
    open_replay as open_replay,
    read_shown as read_shown,
    write_html as write_html,
)
