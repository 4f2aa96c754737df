from .projection import Projection, edge_lines
from .step import Dynamics
from .support import NEW_PLANE, UNCHANGED
from .tree import SPEED_LIMIT
from .views import live_motions, live_poses, live_rows

__all__ = [
    "NEW_PLANE",
    "SPEED_LIMIT",
    "UNCHANGED",
    "Dynamics",
    "Projection",
    "edge_lines",
    "live_motions",
    "live_poses",
    "live_rows",
]
