from .loops import Loops
from .projection import Projection, edge_lines
from .step import LANDS, CompiledContact, Dynamics
from .stops import Stops
from .support import NEW_PLANE, UNCHANGED, Foothold
from .tree import SPEED_LIMIT, Tree
from .views import live_motions, live_poses, live_rows

__all__ = [
    "LANDS",
    "NEW_PLANE",
    "SPEED_LIMIT",
    "UNCHANGED",
    "CompiledContact",
    "Dynamics",
    "Foothold",
    "Loops",
    "Projection",
    "Stops",
    "Tree",
    "edge_lines",
    "live_motions",
    "live_poses",
    "live_rows",
]
