"""The solve of one candidate of constraint selection: impulses of all feet in given modes, with friction.

Velocity level (see docs/contact_models.md): T (w_free + G F lam) = b, then v+ follows from the impulse F lam.
Sticking is tried first, so that a sliding foot comes to rest without a velocity threshold; a foot outside its cone
slides, with the direction of the slip iterated to the velocity of its CoP.
"""

from __future__ import annotations

import numpy as np

from bipedsim.contact.modes import clamped_range, constraints
from bipedsim.contact.selection.arrays import Selection
from bipedsim.contact.selection.friction import torsion_radius, update_slip
from bipedsim.dynamics import Projection
from bipedsim.numerics import (
    inlined_kernel,
    is_doubtful,
    kernel,
    solve_cholesky,
    solve_dense,
    solve_pseudo_inverse,
    solve_singular,
)

SLIP_ITERATIONS = 60
SLIP_TOLERANCE = 1e-10
# Friction along a slip faster than this [m/s] is no rounding.
DRIVEN = 1e-9


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
def multipliers(p: Projection, s: Selection, w):
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
        if solve_cholesky(p.G, s.rhs, size, s.L, s.lam) and not is_doubtful(p.G, size, s.L):
            return
    total = _assemble(p, s, w)
    if not symmetric:
        solve_dense(s.A, s.rhs, total, s.lam, s.pivot_rows, s.pivot_columns)
    elif not solve_cholesky(s.A, s.rhs, total, s.L, s.lam):
        solve_singular(s.A, s.rhs, total, s.L, s.lam, s.residual, s.correction)
    elif is_doubtful(s.A, total, s.L):
        solve_pseudo_inverse(s.A, s.rhs, total, s.L, s.work, s.lam)


@inlined_kernel
def spread(s: Selection, impulse):
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


@kernel
def centre_on_edge(impulse, vertices, offsets, first, second, cop, cop_ground):
    """Find the CoP of a foot that touches with one vertex (``first`` = ``second``) or one edge: a point of it.

    However far the foot is tilted, which :func:`centre_of_pressure` cannot do: near a tilt of atan(1 / mu) the force
    lies in the sole's plane.

    Args:
        impulse: (6,) of the ground on the foot at the sole origin, ground axes, f_z > 0.
        vertices, offsets: (N, 2) in the sole frame, (N, 3) from the sole origin in ground axes [m].
        first, second: The ends.
        cop, cop_ground: As in :func:`centre_of_pressure`; beyond an end where one end would have to pull.
    """
    share = 0.0
    if first != second:
        fx, fy, fz = impulse[0], impulse[1], impulse[2]
        rx, ry, rz = offsets[first, 0], offsets[first, 1], offsets[first, 2]
        tx = impulse[3] - (ry * fz - rz * fy)
        ty = impulse[4] - (rz * fx - rx * fz)
        ex, ey, ez = offsets[second, 0] - rx, offsets[second, 1] - ry, offsets[second, 2] - rz
        a = ey * fz - ez * fy
        b = ez * fx - ex * fz
        share = (tx * a + ty * b) / (a * a + b * b)
    for i in range(2):
        cop[i] = vertices[first, i] + share * (vertices[second, i] - vertices[first, i])
    for i in range(3):
        cop_ground[i] = offsets[first, i] + share * (offsets[second, i] - offsets[first, i])


@inlined_kernel
def _pressure(k, p: Projection, s: Selection):
    """Fill CoP of foot ``k`` and its distance outside; where nothing presses, the mean of its clamped vertices."""
    n = p.n_vertices[k]
    first, count = clamped_range(s.trial[k], n)
    cop = s.trial_cop[k]
    if s.trial_impulse[k, 2] > 0.0 and count < 3:
        second = (first + count - 1) % n
        centre_on_edge(s.trial_impulse[k], p.vertices[k], p.offsets[k], first, second, cop, s.cop_ground[k])
    elif s.trial_impulse[k, 2] > 0.0:
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
def _slip_velocity(k, s: Selection):
    """Return the velocity of the CoP of foot ``k`` along the ground [m/s] and its spin [rad/s] after the step."""
    w = s.w_next[6 * k : 6 * k + 6]
    r = s.cop_ground[k]
    return w[0] + w[4] * r[2] - w[5] * r[1], w[1] + w[5] * r[0] - w[3] * r[2], w[5]


@kernel
def _hold_driven(p: Projection, s: Selection) -> bool:
    """Let the feet stick again that friction would drive instead of brake; return whether there was one.

    All feet outside their cones slide at once. With one of them sliding, another may well stick; the iteration can
    then end in its other fixed point, friction along the slip. A foot is held once in a solve.
    """
    held = False
    for k in range(s.rows.shape[0]):
        if s.rows[k] == 0 or not s.trial_sliding[k] or s.held[k] > 0 or s.trial_impulse[k, 2] <= 0.0:
            continue
        ux, uy, wz = _slip_velocity(k, s)
        slip = s.trial_slip[k]
        if slip[0] * ux + slip[1] * uy + slip[2] * s.radius[k] * wz < -DRIVEN:
            held = True
            s.held[k] = 1
            s.trial_sliding[k] = False
    return held


@kernel
def _turn_slips(p: Projection, s: Selection) -> float:
    """Turn the slip of every sliding foot towards the velocity of its CoP and return the largest move.

    The fixed point iteration is relaxed by Aitken's rule for vectors (Irons and Tuck, 1969): the mobility of a foot in
    the air is several times that of one under load, and plain turns then take a hundred iterations.
    """
    moved = 0.0
    square = 0.0
    product = 0.0
    before = 0.0
    for k in range(s.rows.shape[0]):
        for a in range(3):
            s.turn[0, k, a] = s.turn[1, k, a]
            s.turn[1, k, a] = 0.0
        if s.rows[k] == 0 or not s.trial_sliding[k]:
            continue
        c = _radius(k, p, s)
        ux, uy, wz = _slip_velocity(k, s)
        rho = 2.0 / (p.G[6 * k, 6 * k] + p.G[6 * k + 1, 6 * k + 1])
        fz = s.trial_impulse[k, 2]
        slip = s.trial_slip[k]
        for a in range(3):
            s.turn[1, k, a] = -slip[a]
        turned = update_slip(fz, p.mu_dynamic[k], c, ux, uy, wz, rho, slip)
        moved = max(moved, turned, abs(c - s.radius[k]))
        s.radius[k] = c
        if fz <= 0.0:
            # Without load there is no friction and no direction to relax.
            for a in range(3):
                s.turn[1, k, a] = 0.0
            continue
        for a in range(3):
            s.turn[1, k, a] += slip[a]
            slip[a] -= s.turn[1, k, a]
            difference = s.turn[1, k, a] - s.turn[0, k, a]
            square += difference * difference
            product += s.turn[0, k, a] * difference
            before += abs(s.turn[0, k, a])
    if before > 0.0 and square > 0.0:
        s.relaxation[0] = min(max(-s.relaxation[0] * product / square, 0.2), 30.0)
    else:
        s.relaxation[0] = 1.0
    for k in range(s.rows.shape[0]):
        slip = s.trial_slip[k]
        norm = 0.0
        for a in range(3):
            slip[a] += s.relaxation[0] * s.turn[1, k, a]
            norm += slip[a] * slip[a]
        norm = np.sqrt(norm)
        for a in range(3):
            slip[a] = slip[a] / norm if norm > 0.0 and s.trial_sliding[k] else slip[a]
    return moved


@inlined_kernel
def _start_sliding(p: Projection, s: Selection) -> bool:
    """Let the feet slide whose sticking force lies outside the cone; return whether there was one."""
    started = False
    for k in range(s.rows.shape[0]):
        if s.rows[k] == 0 or s.trial_sliding[k]:
            continue
        # A foot that was sliding comes to rest inside the dynamic cone.
        mu = p.mu_dynamic[k] if s.sliding[k] or s.held[k] > 0 else p.mu_static[k]
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
            fresh = s.held[k] > 0 or not s.sliding[k]
            if fresh or slip[0] ** 2 + slip[1] ** 2 + slip[2] ** 2 == 0.0:
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
        s.held[k] = 0
        for a in range(3):
            s.trial_slip[k, a] = s.slip[k, a]
    iterations = 1
    # Every foot starts to slide at most twice and is held once.
    for _ in range(3 * feet + 1):
        s.turn[:, :, :] = 0.0
        s.converged[0] = False
        for _ in range(iterations):
            for k in range(feet):
                s.rows[k] = constraints(
                    s.trial[k], s.trial_sliding[k], p.n_vertices[k], p.offsets[k], s.heights[k], s.errors[k],
                    p.mu_dynamic[k], s.radius[k], s.trial_slip[k], s.h, s.gamma, s.T[k], s.F[k], s.b[k], s.r_vj[k],
                )  # fmt: skip
                s.whole[k] = s.rows[k] == 6
            multipliers(p, s, p.w_free)
            spread(s, s.trial_impulse)
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
                s.converged[0] = True
                break
        if not (_start_sliding(p, s) or _hold_driven(p, s)):
            break
        iterations = SLIP_ITERATIONS
