"""Arrays of constraint selection, grouped by owner, and the beginning of a step."""

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

# Rule sets of one-step selection.
REVISED, PUBLISHED, THRESHOLDS = range(3)

CONES_SOLVED = 1e-8
"""Residual at which impulses of single vertices count as solved, relative to the largest speed that contact removes."""
CONE_ITERATIONS = 1000
"""Maximum number of iterations of one such problem."""
TURNS_KEPT = 5
"""Number of past updates of the sliding friction that the acceleration of the fixed-point iteration uses."""


class Settings(NamedTuple):
    """Parameters of constraint selection.

    Attributes:
        h: Step [s].
        gamma: Fraction of a position error that is removed in one step.
        threshold: Geometric threshold d [m].
        tolerance: Largest violation that is ignored [m].
        rules: ``REVISED``, ``PUBLISHED`` or ``THRESHOLDS``.
        resolves: Maximum number of solves after the first one in one-step selection.
        candidates: Maximum number of candidates of a search, 0 for one-step selection.
    """

    h: float
    gamma: float
    threshold: float
    tolerance: float
    rules: int = REVISED
    resolves: int = 0
    candidates: int = 0


class State(NamedTuple):
    """State on which the next step depends, in addition to the last result; a snapshot copies it.

    Attributes:
        present: Modes to try first.
        slip: Friction of the sliding feet, -(f_x, f_y, torsion / c) / (mu f_z).
        anchors, anchored: Anchor of each sticking vertex [m], and whether it has one.
        landed: Whether a vertex touched down in the last step.
        pointwise: Number of steps since reset that used impulses of single vertices.
    """

    present: Annotated[Integers, "K"]
    slip: Annotated[Array, "K", 3]
    anchors: Annotated[Array, "K", "N", 2]
    anchored: Annotated[Flags, "K", "N"]
    landed: Annotated[Flags, 1]
    pointwise: Annotated[Integers, 1]


class Trial(NamedTuple):
    """Candidate that is being solved, and its solution.

    Attributes:
        mode, sliding: Modes, and whether friction is dynamic.
        slip: Dynamic friction, as in :class:`State`.
        held: 1 for a foot that sticks again because it would not have slid.
        converged: Whether the slip directions of the last solve converged.
        impulse: Impulse at the sole origins, ground axes.
        impact: Part of the impulse that is impact.
        w_next: Velocities after the step.
        cop, cop_ground: CoP in the sole frame [m], and relative to the sole origin in ground axes [m].
        outside: Distance of the CoP outside the clamped vertices [m].
        radius: Torsional radius [m].
        chosen: Modes that the rules select for this solution.
        violations: Number of violations of each rule, see :mod:`bipedsim.contact.selection.rules`.
        extent: Sum of the violations [m].
        pointwise: Whether the solution consists of impulses of single vertices, without a candidate.
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
    """Work arrays of one step and of one solve.

    Attributes:
        heights, errors: Heights of the vertices [m], and drift from their anchors [m].
        T, F, b, r_vj: Constraints per foot, see :class:`bipedsim.contact.modes.Rows`.
        rows, whole: Number of constrained rows, and whether T and F are the identity.
        shares: Load shares of the vertices of a foot, see :mod:`bipedsim.contact.selection.friction`.
        turn: Update of the slip of each foot.
        resting: Whether friction of a sliding foot is below its limit.
        trial_slip, slip_error: (3K,) trial value of the frictions of all feet, and its error.
        best_slip, best_slip_error: (3K,) best trial value of Newton's method for frictions, and its error.
        newton_step, slope: (3K,), (3K, 3K) Newton step from the best value, and the derivatives of the error.
        span: Length that converts torsion to a force [m].
        drift: Change of slip speed of each foot in its last update [m/s].
        GF, A, L, work, rhs, lam, residual, correction, pivot_rows, pivot_columns: Linear equations.
        perfect, cost: Target state of each vertex of a foot, and the cost of deviating from it.
        origin, old_anchors, old_anchored: For a polygon that changes: the old vertex that each one continues, and its
            anchor.
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
    trial_slip: Annotated[Array, "3K"]
    slip_error: Annotated[Array, "3K"]
    best_slip: Annotated[Array, "3K"]
    best_slip_error: Annotated[Array, "3K"]
    newton_step: Annotated[Array, "3K"]
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
    """Candidates of a search.

    Attributes:
        tested: Modes of each candidate.
        choices: Modes that the rules select for its solution.
        scores: Violations by which candidates are ranked.
        cursor: Index of its next correction.
        open: Whether it has further corrections.
    """

    tested: Annotated[Integers, "C", "K"]
    choices: Annotated[Integers, "C", "K"]
    scores: Annotated[Array, "C", 7]
    cursor: Annotated[Integers, "C"]
    open: Annotated[Flags, "C"]


class Selection(NamedTuple):
    """All arrays of constraint selection, for K feet with at most N vertices and C candidates."""

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
        """Return the arrays for ``n_feet`` feet with at most ``widest`` vertices each, which write to ``result``.

        ``budget`` (1,) is the budget of the step, unlimited if it is None.
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
    """Fill heights and drift of all vertices, and anchor vertices that came to rest in the last step.

    A ball has no anchor, because its contact point moves as it rolls.
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
    """Transfer modes and anchors of foot ``k`` to the polygon of this step; on a new plane it has no anchors."""
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
