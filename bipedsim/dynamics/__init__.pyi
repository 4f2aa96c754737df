from .bodies import SUNK, Bodies, lowest_point, patch_below, twist_of
from .flight import Flight
from .landing import Landing
from .loops import Loops
from .pairs import Pairs, approach, closest
from .projection import Projection, edge_lines
from .rows import impose
from .step import LANDS, TOUCHES, CompiledContact, Dynamics
from .stops import Stops, keep_within
from .support import NEW_PLANE, UNCHANGED, Foothold
from .tree import SPEED_LIMIT, Tree, add_wrenches
from .views import live_motions, live_poses, live_rows

__all__ = [
    "LANDS",
    "NEW_PLANE",
    "SPEED_LIMIT",
    "SUNK",
    "TOUCHES",
    "UNCHANGED",
    "Bodies",
    "CompiledContact",
    "Dynamics",
    "Flight",
    "Foothold",
    "Landing",
    "Loops",
    "Pairs",
    "Projection",
    "Stops",
    "Tree",
    "add_wrenches",
    "approach",
    "closest",
    "edge_lines",
    "impose",
    "keep_within",
    "live_motions",
    "live_poses",
    "live_rows",
    "lowest_point",
    "patch_below",
    "twist_of",
]
