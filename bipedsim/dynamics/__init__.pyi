from .bodies import (
    SUNK as SUNK,
    BodyPoints as BodyPoints,
    lowest_point as lowest_point,
    patch_below as patch_below,
    triangle_below as triangle_below,
    twist_of as twist_of,
)
from .equations import (
    Equations as Equations,
    fill_equations as fill_equations,
    lever as lever,
    needs as needs,
    turned_inertia as turned_inertia,
)
from .flight import Flight as Flight
from .joints import (
    UNIVERSE as UNIVERSE,
    Joints as Joints,
    accelerate as accelerate,
    move as move,
    place as place,
    place_joints as place_joints,
)
from .landing import Landing as Landing
from .loops import Loops as Loops
from .pairs import Pairs as Pairs, approach as approach, closest as closest
from .projection import Projection as Projection, edge_lines as edge_lines
from .protocol import Attempt as Attempt, CompiledContact as CompiledContact, Outcome as Outcome, Part as Part
from .rows import energy_added as energy_added, impose as impose
from .step import CompiledStep as CompiledStep, Dynamics as Dynamics
from .step_kernels import (
    StepWithContact as StepWithContact,
    begin_attempt as begin_attempt,
    end_attempt as end_attempt,
    solve_contact as solve_contact,
    use_memory as use_memory,
)
from .stops import Stops as Stops, keep_within as keep_within
from .support import NEW_PLANE as NEW_PLANE, UNCHANGED as UNCHANGED, Foothold as Foothold
from .tree import SPEED_LIMIT as SPEED_LIMIT, Tree as Tree, add_wrenches as add_wrenches
from .views import live_motions as live_motions, live_poses as live_poses, live_rows as live_rows
