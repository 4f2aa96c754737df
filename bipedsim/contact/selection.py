"""What the models of constraint selection share: state, the solve of one candidate, and what is published.

Velocity level (see docs/contact_models.md): T (w_free + G F lam) = b, then v+ follows from the impulse F lam.
Sticking is tried first, so that a sliding foot comes to rest without a velocity threshold; a foot outside its cone
slides, with the direction of the slip iterated to the velocity of its CoP.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bipedsim.contact.base import ContactResult, Projection
from bipedsim.contact.compiled import inlined_kernel, kernel
from bipedsim.contact.foothold import NEW_PLANE, UNCHANGED
from bipedsim.contact.footing import carry_mode, carry_vertices
from bipedsim.contact.friction import torsion_radius, update_slip
from bipedsim.contact.linear import solve_cholesky, solve_dense
from bipedsim.contact.modes import clamped_range, constraints

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

SLIP_ITERATIONS = 30
SLIP_TOLERANCE = 1e-10

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
            where a sticking vertex belongs [m], (K, N) whether it has an anchor.
        mode ... clamped, counters: As in :class:`ContactResult`; they hold the last step until it is published.
        trial, trial_sliding, trial_slip: (K,), (K,), (K, 3) the candidate that is solved for. chosen: (K,) the modes
            that its solution calls for.
        heights, errors: (K, N) heights of the vertices [m], (K, N, 2) drift from their anchors [m].
        T, F, b, rows: Per foot, see :func:`bipedsim.contact.modes.constraints`; whole: (K,) whether T and F are the
            identity.
        trial_impulse, w_next: (K, 6) impulses at the sole origins, (6K,) velocities after the step.
        trial_cop, cop_ground, outside: (K, 2) sole frame, (K, 3) the same from the sole origin in ground axes, (K,)
            distance outside the clamped vertices [m].
        radius: (K,) torsional radius [m].
        perfect, cost: (N,) what each vertex should be, and the weight of leaving it otherwise.
        violations: (4,) of the candidate: CoP, geometric, negative force, kinematic. size: (1,) their extent [m].
        tested, choices, scores, cursor, open: (C, K), (C, K), (C, 6), (C,), (C,) of the search: candidates, the modes
            that their solutions call for, what they violate, which of their corrections comes next, whether one may
            be left.
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
    impulse: Array
    impact: Array
    wrench: Array
    cop: Array
    cop_margin: Array
    friction_used: Array
    mode: Integers
    clamped: Integers
    sliding: Flags
    counters: Integers
    trial: Integers
    trial_sliding: Flags
    trial_slip: Array
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
    pivot_rows: Integers
    pivot_columns: Integers
    trial_impulse: Array
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
            impulse=result.impulse, impact=result.impact, wrench=result.wrench, cop=result.cop,
            cop_margin=result.cop_margin, friction_used=result.friction_used, mode=result.mode,
            clamped=result.clamped, sliding=result.sliding, counters=result.counters,
            trial=integers(k), trial_sliding=flags(k), trial_slip=np.zeros((k, 3)), chosen=integers(k),
            heights=np.zeros((k, n)), errors=np.zeros((k, n, 2)),
            T=np.zeros((k, 6, 6)), F=np.zeros((k, 6, 6)), b=np.zeros((k, 6)), r_vj=np.zeros((k, 3)),
            rows=integers(k), whole=flags(k),
            GF=np.zeros((size, size)), A=np.zeros((size, size)), L=np.zeros((size, size)), rhs=np.zeros(size),
            lam=np.zeros(size), pivot_rows=integers(size), pivot_columns=integers(size),
            trial_impulse=np.zeros((k, 6)), w_next=np.zeros(size),
            trial_cop=np.zeros((k, 2)), cop_ground=np.zeros((k, 3)), outside=np.zeros(k), radius=np.zeros(k),
            perfect=integers(n), cost=np.zeros(n), violations=integers(4), size=np.zeros(1),
            tested=integers(queue, k), choices=integers(queue, k), scores=np.zeros((queue, 6)), cursor=integers(queue),
            open=flags(queue), origin=integers(n), old_anchors=np.zeros((n, 2)), old_anchored=flags(n),
        )  # fmt: skip


@kernel
def begin(p: Projection, s: Selection):
    """Fill heights and drift of all vertices; a vertex that came to rest in the last step is anchored where it is."""
    for k in range(s.mode.shape[0]):
        if p.changed[k] != UNCHANGED:
            _carry(k, p, s)
        n = p.n_vertices[k]
        z = p.position[k, 2]
        for i in range(n):
            s.heights[k, i] = z + p.offsets[k, i, 2]
        first, count = clamped_range(s.mode[k], n)
        if s.sliding[k]:
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


@kernel
def _assemble(p: Projection, s: Selection, w) -> int:
    """Fill A = T G F and rhs = b - T w of the stacked constraints and return their number."""
    feet = s.rows.shape[0]
    size = 6 * feet
    column = 0
    for k in range(feet):
        for c in range(s.rows[k]):
            if s.whole[k]:
                for r in range(size):
                    s.GF[r, column + c] = p.G[r, 6 * k + c]
            else:
                for r in range(size):
                    total = 0.0
                    for a in range(6):
                        total += p.G[r, 6 * k + a] * s.F[k, a, c]
                    s.GF[r, column + c] = total
        column += s.rows[k]
    row = 0
    for k in range(feet):
        for r in range(s.rows[k]):
            if s.whole[k]:
                s.rhs[row + r] = s.b[k, r] - w[6 * k + r]
                for c in range(column):
                    s.A[row + r, c] = s.GF[6 * k + r, c]
                continue
            total = s.b[k, r]
            for a in range(6):
                total -= s.T[k, r, a] * w[6 * k + a]
            s.rhs[row + r] = total
            for c in range(column):
                total = 0.0
                for a in range(6):
                    total += s.T[k, r, a] * s.GF[6 * k + a, c]
                s.A[row + r, c] = total
        row += s.rows[k]
    return row


@inlined_kernel
def _multipliers(p: Projection, s: Selection, w):
    """Fill lam with the multipliers that bring the velocities ``w`` (6K,) to the wanted ones."""
    symmetric = True
    all_whole = True
    for k in range(s.rows.shape[0]):
        symmetric = symmetric and not s.trial_sliding[k]
        all_whole = all_whole and s.whole[k]
    if all_whole:
        # T = F = 1 for every foot: the Delassus matrix itself.
        size = s.rhs.shape[0]
        for k in range(s.rows.shape[0]):
            for r in range(6):
                s.rhs[6 * k + r] = s.b[k, r] - w[6 * k + r]
        if solve_cholesky(p.G, s.rhs, size, s.L, s.lam):
            return
    total = _assemble(p, s, w)
    if not (symmetric and solve_cholesky(s.A, s.rhs, total, s.L, s.lam)):
        solve_dense(s.A, s.rhs, total, s.lam, s.pivot_rows, s.pivot_columns)


@inlined_kernel
def _spread(s: Selection, impulse):
    """Fill ``impulse`` (K, 6) = F lam."""
    row = 0
    for k in range(s.rows.shape[0]):
        for a in range(6):
            if s.whole[k]:
                impulse[k, a] = s.lam[row + a]
                continue
            total = 0.0
            for c in range(s.rows[k]):
                total += s.F[k, a, c] * s.lam[row + c]
            impulse[k, a] = total
        row += s.rows[k]


@kernel
def centre_of_pressure(impulse, R, cop, cop_ground):
    """Find the point of the sole plane about which the wrench has no torque along the ground.

    Args:
        impulse: (6,) of the ground on the foot at the sole origin, ground axes, f_z > 0.
        R: (3, 3) sole axes in ground axes.
        cop: (2,) out, sole frame [m]; on a level sole x = -tau_y / f_z, y = tau_x / f_z.
        cop_ground: (3,) out, the same point relative to the sole origin, ground axes [m].
    """
    fx, fy, fz = impulse[0], impulse[1], impulse[2]
    a11 = R[1, 0] * fz - R[2, 0] * fy
    a12 = R[1, 1] * fz - R[2, 1] * fy
    a21 = R[2, 0] * fx - R[0, 0] * fz
    a22 = R[2, 1] * fx - R[0, 1] * fz
    det = a11 * a22 - a12 * a21
    cop[0] = (a22 * impulse[3] - a12 * impulse[4]) / det
    cop[1] = (a11 * impulse[4] - a21 * impulse[3]) / det
    for a in range(3):
        cop_ground[a] = R[a, 0] * cop[0] + R[a, 1] * cop[1]


@inlined_kernel
def _pressure(k, p: Projection, s: Selection):
    """Fill CoP of foot ``k`` and its distance outside; where nothing presses, the mean of its clamped vertices."""
    n = p.n_vertices[k]
    first, count = clamped_range(s.trial[k], n)
    cop = s.trial_cop[k]
    if s.trial_impulse[k, 2] > 0.0:
        centre_of_pressure(s.trial_impulse[k], p.rotation[k], cop, s.cop_ground[k])
    else:
        cop[:] = 0.0
        for a in range(3):
            s.cop_ground[k, a] = s.r_vj[k, a]
        for j in range(count):
            i = (first + j) % n
            cop[0] += p.vertices[k, i, 0] / count
            cop[1] += p.vertices[k, i, 1] / count
    s.outside[k] = distance_outside(p.vertices[k], p.edges[k], n, first, count, cop[0], cop[1])


@inlined_kernel
def distance_outside(vertices, edges, n, first, count, x, y) -> float:
    """Return how far (x, y) is beyond the lines of the clamped polygon or the ends of the clamped edge [m].

    Negative inside, 0 for a single vertex.

    Args:
        vertices, edges: (N, 2), (N, 3) as in :class:`Projection`.
        n, first, count: Number of vertices, and which are clamped.
        x, y: A point of the sole plane, sole frame [m].
    """
    if count < 2:
        return 0.0
    if count == 2:
        j = (first + 1) % n
        ex = vertices[j, 0] - vertices[first, 0]
        ey = vertices[j, 1] - vertices[first, 1]
        length = np.sqrt(ex * ex + ey * ey)
        along = ((x - vertices[first, 0]) * ex + (y - vertices[first, 1]) * ey) / length
        return max(-along, along - length)
    outside = -np.inf
    for i in range(n):
        outside = max(outside, edges[i, 0] * x + edges[i, 1] * y - edges[i, 2])
    return outside


@kernel
def _radius(k, p: Projection, s: Selection) -> float:
    first, count = clamped_range(s.trial[k], p.n_vertices[k])
    return torsion_radius(first, count, p.n_vertices[k], p.vertices[k], s.trial_cop[k, 0], s.trial_cop[k, 1])


@kernel
def _turn_slips(p: Projection, s: Selection) -> float:
    """Turn the slip of every sliding foot towards the velocity of its CoP and return the largest move."""
    moved = 0.0
    for k in range(s.rows.shape[0]):
        if s.rows[k] == 0 or not s.trial_sliding[k]:
            continue
        c = _radius(k, p, s)
        w = s.w_next[6 * k : 6 * k + 6]
        r = s.cop_ground[k]
        ux = w[0] + w[4] * r[2] - w[5] * r[1]
        uy = w[1] + w[5] * r[0] - w[3] * r[2]
        rho = 2.0 / (p.G[6 * k, 6 * k] + p.G[6 * k + 1, 6 * k + 1])
        fz = s.trial_impulse[k, 2]
        turned = update_slip(fz, p.mu_dynamic[k], c, ux, uy, w[5], rho, s.trial_slip[k])
        moved = max(moved, turned, abs(c - s.radius[k]))
        s.radius[k] = c
    return moved


@inlined_kernel
def _start_sliding(p: Projection, s: Selection) -> bool:
    """Let the feet slide whose sticking force lies outside the cone; return whether there was one."""
    started = False
    for k in range(s.rows.shape[0]):
        if s.rows[k] == 0 or s.trial_sliding[k]:
            continue
        # A foot that was sliding comes to rest inside the dynamic cone.
        mu = p.mu_dynamic[k] if s.sliding[k] else p.mu_static[k]
        f = s.trial_impulse[k]
        reach = mu * max(f[2], 0.0)
        tangential = f[0] * f[0] + f[1] * f[1]
        torsion = f[5] - (s.cop_ground[k, 0] * f[1] - s.cop_ground[k, 1] * f[0])
        margin = -s.outside[k]
        # No vertex is nearer to the CoP than the nearest edge: c >= margin, which is cheaper than c.
        if margin > 0.0 and f[2] > 0.0 and tangential + (torsion / margin) ** 2 <= reach * reach:
            continue
        c = _radius(k, p, s)
        spin = torsion / c if c > 0.0 else 0.0
        used = np.sqrt(tangential + spin * spin)
        if used > reach:
            started = True
            s.trial_sliding[k] = True
            s.radius[k] = c
            slip = s.trial_slip[k]
            if not s.sliding[k] or slip[0] ** 2 + slip[1] ** 2 + slip[2] ** 2 == 0.0:
                slip[0] = -f[0] / used
                slip[1] = -f[1] / used
                slip[2] = -spin / used
    return started


@inlined_kernel
def solve(p: Projection, s: Selection):
    """Solve for the impulses of all feet in the modes ``s.trial``; everything named trial is filled."""
    feet = s.trial.shape[0]
    size = 6 * feet
    s.counters[2] += 1
    for k in range(feet):
        s.trial_sliding[k] = False
        s.radius[k] = 0.0
        s.outside[k] = 0.0
        for a in range(3):
            s.trial_slip[k, a] = s.slip[k, a]
    iterations = 1
    for _ in range(feet + 1):
        for _ in range(iterations):
            for k in range(feet):
                s.rows[k] = constraints(
                    s.trial[k], s.trial_sliding[k], p.n_vertices[k], p.offsets[k], s.heights[k], s.errors[k],
                    p.mu_dynamic[k], s.radius[k], s.trial_slip[k], s.h, s.gamma, s.T[k], s.F[k], s.b[k], s.r_vj[k],
                )  # fmt: skip
                s.whole[k] = s.rows[k] == 6
            _multipliers(p, s, p.w_free)
            _spread(s, s.trial_impulse)
            for r in range(size):
                total = p.w_free[r]
                for k in range(feet):
                    for a in range(6):
                        total += p.G[r, 6 * k + a] * s.trial_impulse[k, a]
                s.w_next[r] = total
            for k in range(feet):
                if s.rows[k] > 0:
                    _pressure(k, p, s)
            if _turn_slips(p, s) <= SLIP_TOLERANCE:
                break
        if not _start_sliding(p, s):
            break
        iterations = SLIP_ITERATIONS


@inlined_kernel
def _split_impact(p: Projection, s: Selection):
    """Fill ``s.impact``: the impulse that takes the velocities before the step to the wanted ones.

    The rest of the impulse, which is linear in the two, answers the forces that act over the step.
    """
    gained = False
    for k in range(s.trial.shape[0]):
        n = p.n_vertices[k]
        first, count = clamped_range(s.trial[k], n)
        for j in range(count):
            gained = gained or not _is_clamped(s.mode[k], n, (first + j) % n)
    if not gained:
        s.impact[:, :] = 0.0
        return
    _multipliers(p, s, p.w_before)
    _spread(s, s.impact)


@kernel
def _is_clamped(mode, n, i) -> bool:
    first, count = clamped_range(mode, n)
    return (i - first) % n < count


@inlined_kernel
def publish(p: Projection, s: Selection, violated: bool):
    """Make the candidate that was solved last the state, and count what changed."""
    _split_impact(p, s)
    changes = 0
    h = s.h
    for k in range(s.mode.shape[0]):
        n = p.n_vertices[k]
        if s.trial[k] != s.mode[k] or s.trial_sliding[k] != s.sliding[k]:
            changes += 1
        s.mode[k] = s.trial[k]
        s.sliding[k] = s.trial_sliding[k]
        for a in range(3):
            s.slip[k, a] = s.trial_slip[k, a]
        first, count = clamped_range(s.mode[k], n)
        bits = 0
        for j in range(count):
            i = (first + j) % n
            if i < 63:
                bits |= 1 << i
        s.clamped[k] = bits
        f = s.trial_impulse[k]
        R = p.rotation[k]
        for a in range(3):
            s.impulse[k, a] = f[a]
            s.impulse[k, 3 + a] = f[3 + a]
            s.wrench[k, a] = (R[0, a] * f[0] + R[1, a] * f[1] + R[2, a] * f[2]) / h
            s.wrench[k, 3 + a] = (R[0, a] * f[3] + R[1, a] * f[4] + R[2, a] * f[5]) / h
        if f[2] <= 0.0:
            s.cop[k, :] = np.nan
            s.cop_margin[k] = np.nan
            s.friction_used[k] = np.nan
            continue
        x = s.trial_cop[k, 0]
        y = s.trial_cop[k, 1]
        s.cop[k, 0] = x
        s.cop[k, 1] = y
        if count == n:
            s.cop_margin[k] = -s.outside[k]
        else:
            s.cop_margin[k] = -distance_outside(p.vertices[k], p.edges[k], n, 0, n, x, y)
        mu = p.mu_dynamic[k] if s.sliding[k] else p.mu_static[k]
        s.friction_used[k] = np.sqrt(f[0] * f[0] + f[1] * f[1]) / (mu * f[2]) if mu > 0.0 else 0.0
    # The contacts that a robot starts with are no change of state.
    if s.counters[3] > 0:
        s.counters[0] += changes
    s.counters[3] += 1
    if violated:
        s.counters[1] += 1
