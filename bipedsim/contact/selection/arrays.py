"""What constraint selection reads and writes, split by owner, and how a step begins."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from bipedsim.contact.base import ContactResult
from bipedsim.contact.modes import clamped_range
from bipedsim.contact.selection.carry import carry_mode
from bipedsim.contact.time_stepping import ConeProblem
from bipedsim.contact.vertices import carry_flags, carry_rows
from bipedsim.contact.write_result import for_kernels
from bipedsim.dynamics import NEW_PLANE, UNCHANGED, Projection
from bipedsim.ground import carry_vertices
from bipedsim.numerics import Array, Flags, Integers, Mixing, kernel, zeros_of

# Rules of one-step selection.
REVISED, PUBLISHED, THRESHOLDS = range(3)

CONES_SOLVED = 1e-8
"""Residual at which impulses of single vertices count as solved, beside the fastest that contact has to take away."""
CONE_ITERATIONS = 1000
"""Iterations that one such problem may take."""
TURNS_KEPT = 5
"""Turns of the frictions of feet that slide which tell of the next one."""


class Settings(NamedTuple):
    """Parameters of constraint selection.

    Attributes:
        h, gamma, threshold, tolerance: Step [s], share of an error removed in one step, geometric threshold d [m],
            violation that counts as none [m].
        rules: ``REVISED``, ``PUBLISHED`` or ``THRESHOLDS``.
        resolves: Solves after the first one in one-step selection.
        candidates: Most that a search may solve for, 0 for one-step selection.
    """

    h: float
    gamma: float
    threshold: float
    tolerance: float
    rules: int = REVISED
    resolves: int = 0
    candidates: int = 0


class State(NamedTuple):
    """What the next step depends on besides the last result: what a snapshot copies.

    Attributes:
        present: Modes to try first.
        slip: Friction of the feet that slide, (-f_x, -f_y, -torsion / c) over mu f_z.
        anchors, anchored: Where a sticking vertex belongs [m], whether it has an anchor.
        landed: Whether a vertex touched down in the last step.
        pointwise: How many steps since reset were answered by impulses of single vertices.
    """

    present: Annotated[Integers, "K"]
    slip: Annotated[Array, "K", 3]
    anchors: Annotated[Array, "K", "N", 2]
    anchored: Annotated[Flags, "K", "N"]
    landed: Annotated[Flags, 1]
    pointwise: Annotated[Integers, 1]


class Trial(NamedTuple):
    """The candidate that is solved for, and its solution.

    Attributes:
        mode, sliding, slip: Modes, whether friction is dynamic, and then what it is, as in :class:`State`.
        held: 1 for a foot that sticks again because it would not have slid.
        converged: Whether the slips of the last solve did.
        impulse, impact: At the sole origins in ground axes, the second the part of the first that is impact.
        w_next: Velocities after the step.
        cop, cop_ground, outside: In the sole frame [m], the same from the sole origin in ground axes [m], and its
            distance outside the clamped vertices [m].
        radius: Torsional radius [m].
        chosen: The modes that the solution calls for.
        violations: How often the solution breaks each rule, see :mod:`bipedsim.contact.selection.rules`.
        extent: By how much [m].
        pointwise: Whether it is no candidate but the impulses of single vertices.
    """

    mode: Annotated[Integers, "K"]
    sliding: Annotated[Flags, "K"]
    slip: Annotated[Array, "K", 3]
    held: Annotated[Integers, "K"]
    converged: Annotated[Flags, 1]
    impulse: Annotated[Array, "K", 6]
    impact: Annotated[Array, "K", 6]
    w_next: Annotated[Array, "6K"]
    cop: Annotated[Array, "K", 2]
    cop_ground: Annotated[Array, "K", 3]
    outside: Annotated[Array, "K"]
    radius: Annotated[Array, "K"]
    chosen: Annotated[Integers, "K"]
    violations: Annotated[Integers, 5]
    extent: Annotated[Array, 1]
    pointwise: Annotated[Flags, 1]


class Scratch(NamedTuple):
    """Room of one step and of one solve.

    Attributes:
        heights, errors: Heights of the vertices [m], drift from their anchors [m].
        T, F, b, r_vj: Per foot, see :class:`bipedsim.contact.modes.Rows`.
        rows, whole: How many rows are constrained, whether T and F are the identity.
        shares: What the vertices of a foot bear, see :mod:`bipedsim.contact.selection.friction`.
        turn: Of the slip of each foot.
        tried, miss: Of all feet: a guess of the frictions, and how far it is off.
        best, least, way, slope, span: Of Newton's method for frictions: both of the best guess so far, the step from
            it, the derivatives, and the length over which torsion is taken [m].
        drift: How much faster or slower a foot slips by its last turn [m/s].
        resting: Whether friction of a foot that slides is less than it could be.
        GF, A, L, work, rhs, lam, residual, correction, pivot_rows, pivot_columns: Of the linear equations.
        perfect, cost: What each vertex of a foot should be, and the weight of leaving it otherwise.
        origin, old_anchors, old_anchored: For a polygon that changes: the vertex that each one continues, its anchor.
    """

    heights: Annotated[Array, "K", "N"]
    errors: Annotated[Array, "K", "N", 2]
    T: Annotated[Array, "K", 6, 6]
    F: Annotated[Array, "K", 6, 6]
    b: Annotated[Array, "K", 6]
    r_vj: Annotated[Array, "K", 3]
    rows: Annotated[Integers, "K"]
    whole: Annotated[Flags, "K"]
    shares: Annotated[Array, "N", 3]
    turn: Annotated[Array, "K", 3]
    resting: Annotated[Flags, "K"]
    tried: Annotated[Array, "3K"]
    miss: Annotated[Array, "3K"]
    best: Annotated[Array, "3K"]
    least: Annotated[Array, "3K"]
    way: Annotated[Array, "3K"]
    slope: Annotated[Array, "3K", "3K"]
    span: Annotated[Array, "K"]
    drift: Annotated[Array, "K"]
    GF: Annotated[Array, "6K", "6K"]
    A: Annotated[Array, "6K", "6K"]
    L: Annotated[Array, "6K", "6K"]
    work: Annotated[Array, "6K", "6K"]
    rhs: Annotated[Array, "6K"]
    lam: Annotated[Array, "6K"]
    residual: Annotated[Array, "6K"]
    correction: Annotated[Array, "6K"]
    pivot_rows: Annotated[Integers, "6K"]
    pivot_columns: Annotated[Integers, "6K"]
    perfect: Annotated[Integers, "N"]
    cost: Annotated[Array, "N"]
    origin: Annotated[Integers, "N"]
    old_anchors: Annotated[Array, "N", 2]
    old_anchored: Annotated[Flags, "N"]


class Queue(NamedTuple):
    """The candidates of a search: modes, the modes that their solutions call for, what they violate, which of their
    corrections comes next, and whether one may be left."""

    tested: Annotated[Integers, "C", "K"]
    choices: Annotated[Integers, "C", "K"]
    scores: Annotated[Array, "C", 7]
    cursor: Annotated[Integers, "C"]
    open: Annotated[Flags, "C"]


class Selection(NamedTuple):
    """All that constraint selection reads and writes, for K feet of N vertices at most and C candidates."""

    settings: Settings
    result: ContactResult
    state: State
    trial: Trial
    scratch: Scratch
    queue: Queue
    cones: ConeProblem
    mixing: Mixing

    @classmethod
    def of_feet(
        cls, n_feet: int, widest: int, result: ContactResult, settings: Settings, budget: Integers | None = None
    ) -> Selection:
        """Return the arrays for ``n_feet`` of ``widest`` vertices at most, which write into ``result``.

        ``budget`` (1,) is that of the step, unlimited where none is given.
        """
        sizes = {"K": n_feet, "N": widest, "C": max(settings.candidates, 1)}
        return cls(
            settings=settings,
            result=for_kernels(result),
            state=zeros_of(State, sizes),
            trial=zeros_of(Trial, sizes),
            scratch=zeros_of(Scratch, sizes),
            mixing=zeros_of(Mixing, {"X": 3 * n_feet, "M": TURNS_KEPT}),
            queue=zeros_of(Queue, sizes),
            cones=ConeProblem.of_feet(n_feet, n_feet * widest, CONES_SOLVED, CONE_ITERATIONS, budget=budget),
        )


@kernel
def begin(p: Projection, s: Selection):
    """Fill heights and drift of all vertices; a vertex that came to rest in the last step is anchored where it is.

    A ball has no anchor: it rolls away from where it touched.
    """
    state, scratch = s.state, s.scratch
    s.trial.pointwise[0] = False
    for k in range(s.result.mode.shape[0]):
        if p.changed[k] != UNCHANGED:
            _carry(k, p, s)
        n = p.n_vertices[k]
        z = p.position[k, 2]
        for i in range(n):
            scratch.heights[k, i] = z + p.offsets[k, i, 2] + p.lifted[k, i]
        first, count = clamped_range(s.result.mode[k], n)
        if s.result.sliding[k] or p.radius[k] > 0.0:
            count = 0
        for j in range(n):
            i = (first + j) % n
            error = scratch.errors[k, i]
            if j >= count:
                state.anchored[k, i] = False
                error[0] = 0.0
                error[1] = 0.0
                continue
            x = p.position[k, 0] + p.offsets[k, i, 0]
            y = p.position[k, 1] + p.offsets[k, i, 1]
            anchor = state.anchors[k, i]
            if not state.anchored[k, i]:
                state.anchored[k, i] = True
                anchor[0] = x
                anchor[1] = y
            error[0] = x - anchor[0]
            error[1] = y - anchor[1]


@kernel
def _carry(k, p: Projection, s: Selection):
    """Continue modes and anchors of foot ``k`` on another polygon; on another plane it has no anchors yet."""
    state, scratch = s.state, s.scratch
    n = p.n_vertices[k]
    if p.changed[k] == NEW_PLANE:
        state.anchored[k, :] = False
        state.slip[k, :] = 0.0
    old = p.previous[k]
    n_old = p.n_previous[k]
    s.result.mode[k] = carry_mode(s.result.mode[k], old, n_old, p.vertices[k], n)
    state.present[k] = carry_mode(state.present[k], old, n_old, p.vertices[k], n)
    carry_vertices(old, n_old, p.vertices[k], n, scratch.origin)
    carry_flags(state.anchored[k], scratch.origin, n, scratch.old_anchored)
    carry_rows(state.anchors[k], scratch.origin, n, scratch.old_anchors)
