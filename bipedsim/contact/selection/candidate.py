"""Solution of one candidate of constraint selection: impulses of all feet in given modes, with friction.

The equations are on velocity level (see docs/contact_models.md): T (w_free + G F lam) = b. The velocity v+ then follows
from the impulse F lam. Sticking is tried first, so that a sliding foot comes to rest without a velocity threshold. A
foot outside its friction cone slides; the direction of its friction is iterated to the velocity of its CoP.
"""

from __future__ import annotations

import numpy as np

from bipedsim.contact.base import CANDIDATES
from bipedsim.contact.modes import RECOVERY, FootMode, ModeRows, Sliding, clamped_range, constraints, distance_outside
from bipedsim.contact.selection.arrays import Scratch, Selection, Trial
from bipedsim.contact.selection.friction import UNLOADED, friction_at, gauge, share_out, twist
from bipedsim.dynamics import Projection
from bipedsim.numerics import (
    cross,
    forget_turns,
    is_doubtful,
    kernel,
    mix,
    point_velocity,
    solve_cholesky,
    solve_dense,
    solve_pseudo_inverse,
    solve_singular,
)

# Operations of a solve with given frictions for n rows, in addition to n^3, divided by n.
RESPONSE = 280
SLIP_ITERATIONS = 60
SLIP_TOLERANCE = 1e-10
# The convergence error of the friction of a foot that pulls counts by this factor only.
PULLING = 1e-6
# When rounding prevents convergence, a change of slip speed below SLOW [m/s] is accepted after PATIENCE iterations.
PATIENCE = 20
SLOW = 1e-9
# Friction holds a foot that is inside its limit surface and slips by less than this [m] in the step.
AT_REST = 1e-6
# Newton's method for frictions: iterations, number of step lengths tried (each a quarter of the previous one), step of
# the finite differences, and longest step.
NEWTON_ITERATIONS = 15
NEWTON_SHARES = 4
NUDGE = 1e-6
FARTHEST = 1.0
# A pivot smaller than this fraction of the first one is rounding, so its row depends on the others.
DEPENDENT = 1e-9
# As for sticking feet: shift relative to the largest diagonal entry, and number of refinements.
SHIFT = 1e-8
REFINEMENTS = 4
# A constraint counts as fulfilled if its error over a step is below this [m, rad].
SLIGHT = 1e-5
# Work below this fraction of the work on the velocities without contact and after it is rounding.
WORK_TOLERANCE = 1e-9


@kernel
def _assemble(p: Projection, s: Scratch, w) -> int:
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


@kernel
def multipliers(p: Projection, s: Selection, w):
    """Fill lam with the multipliers that change the velocities ``w`` (6K,) to the target ones."""
    e = s.scratch
    symmetric = True
    all_whole = True
    for k in range(e.rows.shape[0]):
        symmetric = symmetric and not s.trial.sliding[k]
        all_whole = all_whole and e.whole[k]
    if all_whole:
        # T = F = 1 for every foot, so the matrix is the Delassus matrix itself.
        size = e.rhs.shape[0]
        for k in range(e.rows.shape[0]):
            for r in range(6):
                e.rhs[6 * k + r] = e.b[k, r] - w[6 * k + r]
        if solve_cholesky(p.G, e.rhs, size, e.L, e.lam) and not is_doubtful(p.G, size, e.L):
            return
    total = _assemble(p, e, w)
    if not symmetric:
        rank = solve_dense(e.A, e.rhs, total, e.lam, e.pivot_rows, e.pivot_columns)
        if rank < total or _pivot(e, total - 1) < DEPENDENT * _pivot(e, 0):
            _share_load(p, e, w, total)
    elif not solve_cholesky(e.A, e.rhs, total, e.L, e.lam):
        if not solve_singular(e.A, e.rhs, total, e.L, e.lam, e.residual, e.correction):
            solve_pseudo_inverse(e.A, e.rhs, total, e.L, e.work, e.lam)
    elif is_doubtful(e.A, total, e.L):
        solve_pseudo_inverse(e.A, e.rhs, total, e.L, e.work, e.lam)


@kernel
def _pivot(s: Scratch, i: int) -> float:
    """Return the magnitude of the ``i``-th pivot of the last elimination."""
    return abs(s.A[s.pivot_rows[i], s.pivot_columns[i]])


@kernel
def _share_load(p: Projection, s: Scratch, w, total: int):
    """Compute the multipliers of sliding feet with dependent rows: A + shift, refined, as for sticking feet.

    Otherwise, rounding would decide which row gets no multiplier. The load and its friction would depend on it.
    """
    for i in range(total):
        s.lam[i] = 0.0
    for _ in range(REFINEMENTS):
        _assemble(p, s, w)
        largest = 0.0
        for i in range(total):
            largest = max(largest, abs(s.A[i, i]))
            for j in range(total):
                s.rhs[i] -= s.A[i, j] * s.lam[j]
        for i in range(total):
            s.A[i, i] += SHIFT * largest
        solve_dense(s.A, s.rhs, total, s.correction, s.pivot_rows, s.pivot_columns)
        for i in range(total):
            s.lam[i] += s.correction[i]


@kernel
def spread(s: Scratch, impulse):
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
    """Compute the point of the sole plane about which the wrench has no torque along the ground.

    Args:
        impulse: (6,) of the ground on the foot at the sole origin, ground axes, f_z > 0.
        R: (3, 3) sole axes in ground axes.
        cop: (2,) output, sole frame [m]; on a level sole x = -tau_y / f_z, y = tau_x / f_z.
        cop_ground: (3,) output, the same point relative to the sole origin, ground axes [m].
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
    """Compute the CoP of a foot in contact at one vertex (``first`` = ``second``) or one edge, as a point of it.

    The result is valid for any tilt of the foot. :func:`centre_of_pressure` fails near a tilt of atan(1 / mu), where
    the force is in the plane of the sole.

    Args:
        impulse: (6,) of the ground on the foot at the sole origin, ground axes, f_z > 0.
        vertices: (N, 2) in the sole frame [m].
        offsets: (N, 3) vertices relative to the sole origin, ground axes [m].
        first, second: Indices of the ends.
        cop, cop_ground: As in :func:`centre_of_pressure`; beyond an end if one end would have to pull.
    """
    share = 0.0
    if first != second:
        fx, fy, fz = impulse[0], impulse[1], impulse[2]
        r = offsets[first]
        moment = cross(r, impulse)
        tx = impulse[3] - moment[0]
        ty = impulse[4] - moment[1]
        ex, ey, ez = offsets[second, 0] - r[0], offsets[second, 1] - r[1], offsets[second, 2] - r[2]
        a = ey * fz - ez * fy
        b = ez * fx - ex * fz
        share = (tx * a + ty * b) / (a * a + b * b)
    for i in range(2):
        cop[i] = vertices[first, i] + share * (vertices[second, i] - vertices[first, i])
    for i in range(3):
        cop_ground[i] = offsets[first, i] + share * (offsets[second, i] - offsets[first, i])


@kernel
def _pressure(k, p: Projection, s: Selection):
    """Fill the CoP of foot ``k`` and its distance outside; without load, the mean of the clamped vertices."""
    trial = s.trial
    n = p.n_vertices[k]
    first, count = clamped_range(trial.mode[k], n)
    cop = trial.cop[k]
    if trial.impulse[k, 2] > 0.0 and count < 3:
        second = (first + count - 1) % n
        centre_on_edge(trial.impulse[k], p.vertices[k], p.offsets[k], first, second, cop, trial.cop_ground[k])
    elif trial.impulse[k, 2] > 0.0:
        centre_of_pressure(trial.impulse[k], p.rotation[k], cop, trial.cop_ground[k])
    else:
        cop[:] = 0.0
        for a in range(3):
            trial.cop_ground[k, a] = s.scratch.r_vj[k, a]
        for j in range(count):
            i = (first + j) % n
            cop[0] += p.vertices[k, i, 0] / count
            cop[1] += p.vertices[k, i, 1] / count
    trial.outside[k] = distance_outside(p.vertices[k], p.edges[k], n, (first, count), cop[0], cop[1])


@kernel
def _share_out(k, p: Projection, s: Selection) -> float:
    """Fill the load shares of the clamped vertices of foot ``k``, and return c [m]."""
    n = p.n_vertices[k]
    first, count = clamped_range(s.trial.mode[k], n)
    return share_out(first, count, n, p.vertices[k], p.rotation[k], s.trial.cop[k], s.scratch.shares)


@kernel
def _slip_velocity(k, s: Trial):
    """Return the velocity of the CoP of foot ``k`` along the ground [m/s], and the spin of the foot [rad/s], after the
    step."""
    w = s.w_next[6 * k :]
    u = point_velocity(w, s.cop_ground[k])
    return u[0], u[1], w[5]


@kernel
def _hold_resting(p: Projection, s: Selection) -> bool:
    """Let feet stick again if their friction ended inside the limit surface; return whether there was one.

    All feet outside their cones start to slide at once. While one of them slides, another may stick. A foot is held
    only once per solve.
    """
    trial = s.trial
    held = False
    for k in range(s.scratch.rows.shape[0]):
        if s.scratch.rows[k] == 0 or not trial.sliding[k] or trial.held[k] > 0 or trial.impulse[k, 2] <= 0.0:
            continue
        if s.scratch.resting[k]:
            held = True
            trial.held[k] = 1
            trial.sliding[k] = False
    return held


@kernel
def _update_slips(p: Projection, s: Selection):
    """Update the friction of every sliding foot towards that of the velocity of its CoP.

    Anderson's mixing accelerates the fixed-point iteration. Without it, the iteration takes about a hundred iterations,
    because the mobility of a foot in the air is several times that of a loaded foot.

    Returns:
        Largest change, and the largest change of slip speed that it causes [m/s].
    """
    trial, scratch = s.trial, s.scratch
    x, f = scratch.trial_slip, scratch.slip_error
    x[:] = 0.0
    f[:] = 0.0
    moved = drift = 0.0
    for k in range(scratch.rows.shape[0]):
        if scratch.rows[k] == 0 or not trial.sliding[k]:
            continue
        far, speed = _update_slip(k, p, s, True)
        # A foot that pulls is no solution, so its friction need not converge fully.
        moved = max(moved, far if trial.impulse[k, 2] > 0.0 else far * PULLING)
        drift = max(drift, speed)
        scratch.drift[k] = speed
        for a in range(3):
            x[3 * k + a] = trial.slip[k, a]
            f[3 * k + a] = scratch.turn[k, a]
    mix(s.mixing, x, f)
    for k in range(scratch.rows.shape[0]):
        if scratch.rows[k] == 0 or not trial.sliding[k]:
            continue
        slip = trial.slip[k]
        for a in range(3):
            slip[a] = x[3 * k + a]
        # The force is at most mu f_z, and the torsion at most mu c f_z.
        size = max(np.sqrt(slip[0] * slip[0] + slip[1] * slip[1]), 1.0)
        slip[0] /= size
        slip[1] /= size
        slip[2] = min(max(slip[2], -1.0), 1.0)
    return moved, drift


@kernel
def _update_slip(k, p: Projection, s: Selection, bounded):
    """Fill the update of the friction of foot ``k``, see :func:`friction_at`; return its size and change of speed."""
    trial = s.trial
    slip, turn = trial.slip[k], s.scratch.turn[k]
    c = _share_out(k, p, s)
    count = clamped_range(trial.mode[k], p.n_vertices[k])[1]
    moved = abs(c - trial.radius[k])
    if c > 0.0:
        # The update starts from the same torsion, although c has changed.
        slip[2] = slip[2] * trial.radius[k] / c
        if bounded:
            slip[2] = min(max(slip[2], -1.0), 1.0)
    else:
        slip[2] = 0.0
    trial.radius[k] = c
    # A foot without load keeps the friction of its velocity, because the next solve may load it. With zero friction it
    # would never get one again.
    carried = max(p.mu_dynamic[k] * trial.impulse[k, 2], UNLOADED)
    # Sliding feet of one body are also moved by the forces on each other.
    level = about = 0.0
    for j in range(trial.mode.shape[0]):
        if s.scratch.rows[j] > 0 and trial.sliding[j]:
            level += 0.5 * (abs(p.G[6 * k, 6 * j]) + abs(p.G[6 * k + 1, 6 * j + 1]))
            about += c * c * abs(p.G[6 * k + 5, 6 * j + 5])
    level = 1.0 / (level * carried)
    # In planar motion, and at a single point, there is no rotation about the normal.
    about = 1.0 / (about * carried) if about > 0.0 else level
    ux, uy, wz = _slip_velocity(k, trial)
    V = ux, uy, c * wz
    x = slip[0] + level * V[0], slip[1] + level * V[1], slip[2] + about * V[2]
    new, s.scratch.resting[k] = friction_at(x, (level, level, about), V, s.scratch.shares, count)
    for a in range(3):
        turn[a] = new[a] - slip[a]
    far = max(moved, np.sqrt(turn[0] * turn[0] + turn[1] * turn[1] + turn[2] * turn[2]))
    return far, far / level


@kernel
def _start_sliding(p: Projection, s: Selection) -> bool:
    """Let feet slide if their sticking force is outside the cone; return whether there was one."""
    trial = s.trial
    started = False
    for k in range(s.scratch.rows.shape[0]):
        if s.scratch.rows[k] == 0 or trial.sliding[k]:
            continue
        # A foot that was sliding comes to rest only inside the dynamic cone.
        mu = p.mu_dynamic[k] if s.result.sliding[k] or trial.held[k] > 0 else p.mu_static[k]
        f = trial.impulse[k]
        reach = mu * max(f[2], 0.0)
        tangential = f[0] * f[0] + f[1] * f[1]
        torsion = f[5] - (trial.cop_ground[k, 0] * f[1] - trial.cop_ground[k, 1] * f[0])
        margin = -trial.outside[k]
        tangential = np.sqrt(tangential)
        if tangential <= reach and margin > 0.0 and f[2] > 0.0:
            # The nearest edge is a lower bound of the distance of the vertices from the CoP, without load shares.
            farthest = 0.0
            for i in range(p.n_vertices[k]):
                dx = p.vertices[k, i, 0] - trial.cop[k, 0]
                dy = p.vertices[k, i, 1] - trial.cop[k, 1]
                farthest = max(farthest, dx * dx + dy * dy)
            if abs(torsion) * np.sqrt(farthest) <= (reach - tangential) * margin * margin:
                continue
        c = _share_out(k, p, s)
        count = clamped_range(trial.mode[k], p.n_vertices[k])[1]
        spin = torsion / c if c > 0.0 else 0.0
        # A foot that is loaded at one of several vertices, or beyond it, provides no torsion.
        twisted = c == 0.0 and count > 1 and abs(torsion) > s.settings.tolerance * reach
        if not twisted and tangential + abs(spin) * twist(s.scratch.shares, count) <= reach:
            continue
        used = np.sqrt(tangential * tangential + spin * spin)
        if tangential <= reach and abs(spin) <= reach and c > 0.0:
            out = gauge((f[0] / used, f[1] / used, spin / used), s.scratch.shares, count, reach / used)[0]
            used *= out
            if used <= reach:
                continue
        started = True
        trial.sliding[k] = True
        trial.radius[k] = c
        slip = trial.slip[k]
        fresh = trial.held[k] > 0 or not s.result.sliding[k]
        if fresh or slip[0] ** 2 + slip[1] ** 2 + slip[2] ** 2 == 0.0:
            slip[0] = -f[0] / used
            slip[1] = -f[1] / used
            slip[2] = -spin / used
    return started


@kernel
def _respond(p: Projection, s: Selection):
    """Fill ``s.trial`` with the impulses, velocities and CoPs that result from the friction ``s.trial.slip``."""
    settings, trial, scratch = s.settings, s.trial, s.scratch
    feet = trial.mode.shape[0]
    for k in range(feet):
        foot = FootMode(
            trial.mode[k], trial.sliding[k], p.n_vertices[k], p.offsets[k], scratch.heights[k],
            scratch.errors[k], settings.h, settings.gamma,
        )  # fmt: skip
        slip = Sliding(p.mu_dynamic[k], trial.radius[k], trial.slip[k])
        rows = ModeRows(scratch.T[k], scratch.F[k], scratch.b[k], scratch.r_vj[k])
        scratch.rows[k] = constraints(foot, slip, rows)
        scratch.whole[k] = scratch.rows[k] == 6
    p.budget[0] -= 6 * feet * (36 * feet * feet + RESPONSE)
    multipliers(p, s, p.w_free)
    spread(scratch, trial.impulse)
    for r in range(6 * feet):
        total = p.w_free[r]
        for k in range(feet):
            for a in range(6):
                total += p.G[r, 6 * k + a] * trial.impulse[k, a]
        trial.w_next[r] = total
    for k in range(feet):
        if scratch.rows[k] > 0:
            _pressure(k, p, s)


@kernel
def _fill_slip_error(p: Projection, s: Selection):
    """Fill ``s.scratch.slip_error`` with the difference of the trial frictions and those of the resulting slips.

    Both (3K,) contain the torsions divided by a length of the foot that is independent of its CoP.

    Returns:
        The values of :func:`_update_slips`, and the sum of the squares of the deviations.
    """
    trial, scratch = s.trial, s.scratch
    feet = trial.mode.shape[0]
    for k in range(feet):
        for a in range(3):
            trial.slip[k, a] = scratch.trial_slip[3 * k + a]
        trial.radius[k] = scratch.span[k]
    _respond(p, s)
    moved = drift = square = 0.0
    for k in range(feet):
        for a in range(3):
            scratch.slip_error[3 * k + a] = 0.0
        if scratch.rows[k] == 0 or not trial.sliding[k]:
            continue
        far, speed = _update_slip(k, p, s, False)
        moved = max(moved, far)
        drift = max(drift, speed)
        scratch.drift[k] = speed
        turn = scratch.turn[k]
        scratch.slip_error[3 * k] = turn[0]
        scratch.slip_error[3 * k + 1] = turn[1]
        if scratch.span[k] > 0.0:
            reached = (trial.slip[k, 2] + turn[2]) * trial.radius[k] / scratch.span[k]
            scratch.slip_error[3 * k + 2] = reached - scratch.trial_slip[3 * k + 2]
        for a in range(3):
            square += scratch.slip_error[3 * k + a] ** 2
    return moved, drift, square


@kernel
def _start_newton(p: Projection, s: Selection) -> bool:
    """Fill the lengths and the initial frictions of Newton's method; return False if a sliding foot pulls."""
    trial, e = s.trial, s.scratch
    feet = trial.mode.shape[0]
    for k in range(feet):
        e.span[k] = 0.0
        if e.rows[k] == 0 or not trial.sliding[k]:
            continue
        if trial.impulse[k, 2] <= 0.0:
            return False
        n = p.n_vertices[k]
        first, count = clamped_range(trial.mode[k], n)
        if count > 1:
            a, b = p.vertices[k, first], p.vertices[k, (first + 1) % n]
            e.span[k] = np.hypot(b[0] - a[0], b[1] - a[1])
    for k in range(feet):
        for a in range(3):
            e.trial_slip[3 * k + a] = trial.slip[k, a]
        e.trial_slip[3 * k + 2] = trial.slip[k, 2] * trial.radius[k] / e.span[k] if e.span[k] > 0.0 else 0.0
    return True


@kernel
def _fill_slope(p: Projection, s: Selection) -> None:
    """Fill the derivatives of the deviations at ``s.scratch.best_slip`` by finite differences."""
    trial, e = s.trial, s.scratch
    size = 3 * trial.mode.shape[0]
    for j in range(size):
        if not trial.sliding[j // 3] or e.rows[j // 3] == 0 or (j % 3 == 2 and e.span[j // 3] == 0.0):
            for i in range(size):
                e.slope[i, j] = 0.0
            e.slope[j, j] = -1.0
            continue
        nudge = NUDGE if e.best_slip[j] < 0.0 else -NUDGE
        e.trial_slip[j] = e.best_slip[j] + nudge
        _fill_slip_error(p, s)
        e.trial_slip[j] = e.best_slip[j]
        for i in range(size):
            e.slope[i, j] = (e.slip_error[i] - e.best_slip_error[i]) / nudge


@kernel
def _search_along(p: Projection, s: Selection, square: float):
    """Try shares of the Newton step from ``s.scratch.best_slip`` until the sum of squares falls below ``square``.

    Returns:
        The values of :func:`_fill_slip_error` for the last trial.
    """
    e = s.scratch
    size = 3 * s.trial.mode.shape[0]
    longest = 0.0
    for i in range(size):
        longest = max(longest, abs(e.newton_step[i]))
    share = 1.0 if longest <= FARTHEST else FARTHEST / longest
    for _ in range(NEWTON_SHARES):
        for i in range(size):
            e.trial_slip[i] = e.best_slip[i] + share * e.newton_step[i]
        moved, drift, now = _fill_slip_error(p, s)
        if now < square:
            return moved, drift, now
        share *= 0.25
    # Near a kink no share helps; the update of the fixed-point iteration is used instead.
    for i in range(size):
        e.trial_slip[i] = e.best_slip[i] + e.best_slip_error[i]
    return _fill_slip_error(p, s)


@kernel
def _find_slips(p: Projection, s: Selection) -> bool:
    """Compute frictions that are consistent with their slips by Newton's method with finite differences.

    It is used where the fixed-point iteration fails. Feet of one body share the effect of each other's friction. Near a
    vertex about which a foot turns, friction changes strongly with small slips.

    Returns:
        Whether Newton's method converged; if not, the best frictions are kept.
    """
    e = s.scratch
    size = 3 * s.trial.mode.shape[0]
    if not _start_newton(p, s):
        return False
    moved, drift, square = _fill_slip_error(p, s)
    for _ in range(NEWTON_ITERATIONS):
        if moved <= SLIP_TOLERANCE or drift <= SLOW:
            return True
        if p.budget[0] <= 0:
            return False
        for i in range(size):
            e.best_slip[i] = e.trial_slip[i]
            e.best_slip_error[i] = e.slip_error[i]
        _fill_slope(p, s)
        for i in range(size):
            e.slip_error[i] = -e.best_slip_error[i]
        solve_dense(e.slope, e.slip_error, size, e.newton_step, e.pivot_rows, e.pivot_columns)
        moved, drift, square = _search_along(p, s, square)
    return moved <= SLIP_TOLERANCE or drift <= SLOW


@kernel
def _is_at_rest(p: Projection, s: Selection) -> bool:
    """Return whether the feet without converged slips are at rest with an admissible friction.

    Two points of one rigid body cannot both be held exactly while one of them is lifted out of the ground. Their
    distance along the ground changes with the square of the tilt. Each of them is nearly held, and their mutual forces
    move nothing, so the iteration over these forces does not end.
    """
    trial, e = s.trial, s.scratch
    for k in range(e.rows.shape[0]):
        if e.rows[k] == 0 or not trial.sliding[k] or e.drift[k] <= SLOW:
            continue
        f = trial.impulse[k]
        reach = p.mu_dynamic[k] * f[2]
        if not reach > 0.0:
            return False
        c = _share_out(k, p, s)
        ux, uy, wz = _slip_velocity(k, trial)
        if np.sqrt(ux * ux + uy * uy) + c * abs(wz) > AT_REST / s.settings.h:
            return False
        torsion = f[5] - (trial.cop_ground[k, 0] * f[1] - trial.cop_ground[k, 1] * f[0])
        x = f[0] / reach, f[1] / reach, torsion / (reach * c) if c > 0.0 else 0.0
        count = clamped_range(trial.mode[k], p.n_vertices[k])[1]
        if x[0] * x[0] + x[1] * x[1] + x[2] * x[2] > 0.0 and gauge(x, e.shares, count, np.inf)[0] > 1.0:
            return False
    return True


@kernel
def solve(p: Projection, s: Selection):
    """Solve for the impulses of all feet in the modes ``s.trial.mode``, and fill ``s.trial``."""
    s.result.counters[CANDIDATES] += 1
    _solve_from(p, s, True)
    pulls = recalls = False
    for k in range(s.trial.mode.shape[0]):
        pulls = pulls or (s.trial.sliding[k] and s.trial.impulse[k, 2] <= 0.0)
        recalls = recalls or s.result.sliding[k]
    if pulls and recalls:
        # Near the paradox of Painlevé, the friction of the last step may lead to a pull although a push exists.
        _solve_from(p, s, False)


@kernel
def _solve_from(p: Projection, s: Selection, remembered: bool):
    """Solve from the slips of the last step, or from friction against the forces that would make the feet stick."""
    trial = s.trial
    feet = trial.mode.shape[0]
    for k in range(feet):
        trial.sliding[k] = False
        trial.radius[k] = 0.0
        trial.outside[k] = 0.0
        trial.held[k] = 0
        for a in range(3):
            trial.slip[k, a] = s.state.slip[k, a] if remembered else 0.0
    iterations = 1
    # Every foot starts to slide at most twice and is held at most once.
    for _ in range(3 * feet + 1):
        forget_turns(s.mixing)
        trial.converged[0] = False
        for turn in range(iterations):
            # When the budget of the step is exhausted, only the first iteration is made.
            if turn > 0 and p.budget[0] <= 0:
                break
            _respond(p, s)
            moved, drift = _update_slips(p, s)
            if moved <= SLIP_TOLERANCE or (turn >= PATIENCE and drift <= SLOW):
                trial.converged[0] = True
                break
            if turn == PATIENCE and _find_slips(p, s):
                trial.converged[0] = True
                break
        if not trial.converged[0]:
            trial.converged[0] = _is_at_rest(p, s)
        if not (_start_sliding(p, s) or _hold_resting(p, s)):
            break
        iterations = SLIP_ITERATIONS
    else:
        # The set of sliding feet did not settle.
        trial.converged[0] = False


@kernel
def is_valid_solution(p: Projection, s: Selection) -> bool:
    """Return whether the solution fulfils its constraints and contact adds no more energy than they require.

    The equations of a sliding foot may have no solution (the paradox of Painlevé). Where the friction coefficient and
    the height of the mass are large, they are nearly singular, and their numerical solution would throw the feet.
    """
    trial, e = s.trial, s.scratch
    limit = SLIGHT / s.settings.h
    work = required = scale = 0.0
    row = 0
    kept = True
    for k in range(trial.mode.shape[0]):
        w = trial.w_next[6 * k :]
        for a in range(6):
            # Kinetic energy after the step minus that without contact; this is exact.
            work += 0.5 * trial.impulse[k, a] * (p.w_free[6 * k + a] + w[a])
            scale += abs(trial.impulse[k, a]) * (abs(p.w_free[6 * k + a]) + abs(w[a]))
        lifted = 0.0
        for r in range(e.rows[k]):
            speed = w[r] if e.whole[k] else 0.0
            if not e.whole[k]:
                for a in range(6):
                    speed += e.T[k, r, a] * w[a]
            # The comparison is False for NaN too.
            kept = kept and abs(speed - e.b[k, r]) <= limit
            # Rows along the ground, and of the rotation about its normal, do not lift the foot.
            if trial.sliding[k] or 2 <= r <= (4 if e.whole[k] else 3):
                lifted += e.lam[row + r] * e.b[k, r]
            else:
                required += e.lam[row + r] * e.b[k, r]
        # Compressed vertices are lifted at most at RECOVERY; those above the ground are required to move down.
        required += min(lifted, RECOVERY * max(trial.impulse[k, 2], 0.0))
        row += e.rows[k]
    return kept and work <= max(required, 0.0) + WORK_TOLERANCE * scale
