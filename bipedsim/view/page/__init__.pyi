from .frames import Frames as Frames, frames_of as frames_of, pushes_at as pushes_at, read_thinned as read_thinned
from .history import History as History
from .instant import Instant as Instant, Pushed as Pushed
from .page import Page as Page, check_page as check_page
from .params import PageParams as PageParams
from .posture import PosturePage as PosturePage
from .replay import Replay as Replay
from .run_view import PATIENCE as PATIENCE, RunView as RunView
from .view_run import (
    ViewedRun as ViewedRun,
    open_replay as open_replay,
    read_shown as read_shown,
    write_html as write_html,
)
