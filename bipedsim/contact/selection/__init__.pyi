from .arrays import PUBLISHED as PUBLISHED, REVISED as REVISED, Selection as Selection, Settings as Settings
from .candidate import centre_of_pressure as centre_of_pressure, centre_on_edge as centre_on_edge
from .exact import Exact as Exact, ExactParams as ExactParams
from .friction import gauge as gauge, share_out as share_out
from .one_step import OneStep as OneStep
from .rules import choose as choose, nearest_feature as nearest_feature, nearest_mode as nearest_mode
