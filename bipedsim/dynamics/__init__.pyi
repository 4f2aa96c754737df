from .bodies import SUNK, Bodies, lowest_point, patch_below, twist_of
from .equations import Equations, fill_equations, lever, needs, turned_inertia
from .flight import Flight
from .joints import UNIVERSE, Joints, accelerate, move, place, place_joints, span
from .landing import Landing
from .loops import Loops
from .pairs import Pairs, approach, closest
from .projection import Projection, edge_lines
from .rows import impose
from .step import FLIES, LANDS, TOUCHES, CompiledContact, Dynamics
from .stops import Stops, keep_within
from .support import NEW_PLANE, UNCHANGED, Foothold
from .tree import SPEED_LIMIT, Tree, add_wrenches
from .views import live_motions, live_poses, live_rows

__all__ = [
    "FLIES",
    "LANDS",
    "NEW_PLANE",
    "SPEED_LIMIT",
    "SUNK",
    "TOUCHES",
    "UNCHANGED",
    "UNIVERSE",
    "Bodies",
    "CompiledContact",
    "Dynamics",
    "Equations",
    "Flight",
    "Foothold",
    "Joints",
    "Landing",
    "Loops",
    "Pairs",
    "Projection",
    "Stops",
    "Tree",
    "accelerate",
    "add_wrenches",
    "approach",
    "closest",
    "edge_lines",
    "fill_equations",
    "impose",
    "keep_within",
    "lever",
    "live_motions",
    "live_poses",
    "live_rows",
    "lowest_point",
    "move",
    "needs",
    "patch_below",
    "place",
    "place_joints",
    "span",
    "turned_inertia",
    "twist_of",
]
