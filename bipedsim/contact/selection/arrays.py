"""State and work arrays of constraint selection, and how a step begins."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bipedsim.contact.base import ContactResult
from bipedsim.contact.modes import clamped_range
from bipedsim.contact.selection.carry import carry_mode
from bipedsim.dynamics import NEW_PLANE, UNCHANGED, Projection
from bipedsim.ground import carry_vertices
from bipedsim.numerics import kernel

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

# Rules of one-step selection.
REVISED, PUBLISHED, THRESHOLDS = 0, 1, 2


class Selection(NamedTuple):
    """Parameters, state and work arrays of constraint selection for K feet of N vertices at most.

    Attributes:
        h, gamma, threshold, tolerance: Step [s], share of an error removed in one step, geometric threshold d [m],
            violation that counts as none [m].
        rules: ``REVISED``, ``PUBLISHED`` or ``THRESHOLDS``.
        resolves: Solves after the first one in one-step selection. candidates: Most that a search may solve for, 0 for
            one-step selection.
        present: (K,) modes to try first. slip: (K, 3) unit directions (u_x, u_y, c w_z). anchors, anchored: (K, N, 2)
            where a sticking vertex belongs [m], (K, N) whether it has an anchor. landed: (1,) whether a vertex touched
            down in the last step.
        mode ... clamped, counters: As in :class:`ContactResult`; they hold the last step until it is published.
        trial, trial_sliding, trial_slip: (K,), (K,), (K, 3) the candidate that is solved for. chosen: (K,) the modes
            that its solution calls for.
        heights, errors: (K, N) heights of the vertices [m], (K, N, 2) drift from their anchors [m].
        T, F, b, rows: Per foot, see :func:`bipedsim.contact.modes.constraints`; whole: (K,) whether T and F are the
            identity.
        turn: (2, K, 3) last two turns of the slip. relaxation: (1,) share of a turn that is made.
        held: (K,) 1 for a foot that sticks again because friction would have driven it. converged: (1,) whether the
            slips of the last solve did.
        trial_impulse, trial_impact, w_next: (K, 6) impulses at the sole origins in ground axes, the part of them that
            is impact, (6K,) velocities after the step.
        trial_cop, cop_ground, outside: (K, 2) sole frame, (K, 3) the same from the sole origin in ground axes, (K,)
            distance outside the clamped vertices [m].
        radius: (K,) torsional radius [m].
        perfect, cost: (N,) what each vertex should be, and the weight of leaving it otherwise.
        violations: (4,) of the candidate: CoP, geometric, negative force, kinematic. size: (1,) their extent [m].
        tested, choices, scores, cursor, open: (C, K), (C, K), (C, 6), (C,), (C,) of the search: candidates, the modes
            that their solutions call for, what they violate, which of their corrections comes next, whether one may
            be left.
        GF ... work: (6K, 6K), (6K,) of the solve.
        origin, old_anchors, old_anchored: (N,), (N, 2), (N,) for a polygon that changes: the vertex that each one
            continues, and its anchor.
    """

    h: float
    gamma: float
    threshold: float
    tolerance: float
    rules: int
    resolves: int
    candidates: int
    present: Integers
    slip: Array
    anchors: Array
    anchored: Flags
    landed: Flags
    impulse: Array
    wrench: Array
    impact: Array
    cop: Array
    cop_margin: Array
    friction_used: Array
    n_vertices: Integers
    mode: Integers
    clamped: Integers
    sliding: Flags
    counters: Integers
    trial: Integers
    trial_sliding: Flags
    trial_slip: Array
    turn: Array
    relaxation: Array
    held: Integers
    converged: Flags
    chosen: Integers
    heights: Array
    errors: Array
    T: Array
    F: Array
    b: Array
    r_vj: Array
    rows: Integers
    whole: Flags
    GF: Array
    A: Array
    L: Array
    rhs: Array
    lam: Array
    residual: Array
    correction: Array
    work: Array
    pivot_rows: Integers
    pivot_columns: Integers
    trial_impulse: Array
    trial_impact: Array
    w_next: Array
    trial_cop: Array
    cop_ground: Array
    outside: Array
    radius: Array
    perfect: Integers
    cost: Array
    violations: Integers
    size: Array
    tested: Integers
    choices: Integers
    scores: Array
    cursor: Integers
    open: Flags
    origin: Integers
    old_anchors: Array
    old_anchored: Flags

    @classmethod
    def of_feet(
        cls,
        n_feet: int,
        widest: int,
        result: ContactResult,
        *,
        h: float,
        gamma: float,
        threshold: float,
        tolerance: float,
        rules: int = REVISED,
        resolves: int = 0,
        candidates: int = 0,
    ) -> Selection:
        """Return the arrays for ``n_feet`` of ``widest`` vertices at most; ``result`` is published into."""
        k, n, size = n_feet, widest, 6 * n_feet
        queue = max(candidates, 1)

        def integers(*shape: int) -> Integers:
            return np.zeros(shape, dtype=np.int64)

        def flags(*shape: int) -> Flags:
            return np.zeros(shape, dtype=np.bool_)

        return cls(
            h=h, gamma=gamma, threshold=threshold, tolerance=tolerance, rules=rules, resolves=resolves,
            candidates=candidates,
            present=integers(k), slip=np.zeros((k, 3)), anchors=np.zeros((k, n, 2)), anchored=flags(k, n),
            landed=flags(1),
            impulse=result.impulse, wrench=result.wrench, impact=result.impact, cop=result.cop,
            cop_margin=result.cop_margin, friction_used=result.friction_used,
            n_vertices=result.n_vertices, mode=result.mode, clamped=result.clamped, sliding=result.sliding,
            counters=result.counters,
            trial=integers(k), trial_sliding=flags(k), trial_slip=np.zeros((k, 3)),
            turn=np.zeros((2, k, 3)), relaxation=np.ones(1), held=integers(k), converged=flags(1),
            chosen=integers(k),
            heights=np.zeros((k, n)), errors=np.zeros((k, n, 2)),
            T=np.zeros((k, 6, 6)), F=np.zeros((k, 6, 6)), b=np.zeros((k, 6)), r_vj=np.zeros((k, 3)),
            rows=integers(k), whole=flags(k),
            GF=np.zeros((size, size)), A=np.zeros((size, size)), L=np.zeros((size, size)), rhs=np.zeros(size),
            work=np.zeros((size, size)),
            lam=np.zeros(size), residual=np.zeros(size), correction=np.zeros(size),
            pivot_rows=integers(size), pivot_columns=integers(size),
            trial_impulse=np.zeros((k, 6)), trial_impact=np.zeros((k, 6)), w_next=np.zeros(size),
            trial_cop=np.zeros((k, 2)), cop_ground=np.zeros((k, 3)), outside=np.zeros(k), radius=np.zeros(k),
            perfect=integers(n), cost=np.zeros(n), violations=integers(4), size=np.zeros(1),
            tested=integers(queue, k), choices=integers(queue, k), scores=np.zeros((queue, 6)), cursor=integers(queue),
            open=flags(queue), origin=integers(n), old_anchors=np.zeros((n, 2)), old_anchored=flags(n),
        )  # fmt: skip


@kernel
def begin(p: Projection, s: Selection):
    """Fill heights and drift of all vertices; a vertex that came to rest in the last step is anchored where it is.

    A ball has no anchor: it rolls away from where it touched.
    """
    for k in range(s.mode.shape[0]):
        if p.changed[k] != UNCHANGED:
            _carry(k, p, s)
        n = p.n_vertices[k]
        z = p.position[k, 2]
        for i in range(n):
            s.heights[k, i] = z + p.offsets[k, i, 2]
        first, count = clamped_range(s.mode[k], n)
        if s.sliding[k] or p.radius[k] > 0.0:
            count = 0
        for j in range(n):
            i = (first + j) % n
            if j >= count:
                s.anchored[k, i] = False
                s.errors[k, i, 0] = 0.0
                s.errors[k, i, 1] = 0.0
                continue
            x = p.position[k, 0] + p.offsets[k, i, 0]
            y = p.position[k, 1] + p.offsets[k, i, 1]
            if not s.anchored[k, i]:
                s.anchored[k, i] = True
                s.anchors[k, i, 0] = x
                s.anchors[k, i, 1] = y
            s.errors[k, i, 0] = x - s.anchors[k, i, 0]
            s.errors[k, i, 1] = y - s.anchors[k, i, 1]


@kernel
def _carry(k, p: Projection, s: Selection):
    """Continue modes and anchors of foot ``k`` on another polygon; on another plane it has no anchors yet."""
    n = p.n_vertices[k]
    if p.changed[k] == NEW_PLANE:
        for i in range(s.anchored.shape[1]):
            s.anchored[k, i] = False
        for a in range(3):
            s.slip[k, a] = 0.0
    old = p.previous[k]
    n_old = p.n_previous[k]
    s.mode[k] = carry_mode(s.mode[k], old, n_old, p.vertices[k], n)
    s.present[k] = carry_mode(s.present[k], old, n_old, p.vertices[k], n)
    carry_vertices(old, n_old, p.vertices[k], n, s.origin)
    for i in range(n_old):
        s.old_anchored[i] = s.anchored[k, i]
        for a in range(2):
            s.old_anchors[i, a] = s.anchors[k, i, a]
    for i in range(s.anchored.shape[1]):
        j = s.origin[i] if i < n else -1
        s.anchored[k, i] = j >= 0 and s.old_anchored[j]
        if j >= 0:
            for a in range(2):
                s.anchors[k, i, a] = s.old_anchors[j, a]


