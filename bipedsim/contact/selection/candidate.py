"""The solve of one candidate of constraint selection: impulses of all feet in given modes, with friction.

Velocity level (see docs/contact_models.md): T (w_free + G F lam) = b, then v+ follows from the impulse F lam.
Sticking is tried first, so that a sliding foot comes to rest without a velocity threshold; a foot outside its cone
slides, with the direction of the slip iterated to the velocity of its CoP.
"""

from __future__ import annotations

import numpy as np

from bipedsim.contact.base import CANDIDATES
from bipedsim.contact.modes import RECOVERY, FootMode, Rows, Sliding, clamped_range, constraints, distance_outside
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

# Operations of a solve of given frictions beside n^3 for n rows, by n.
RESPONSE = 280
SLIP_ITERATIONS = 60
SLIP_TOLERANCE = 1e-10
# The friction of a foot that pulls need not be known as well by this factor.
PULLING = 1e-6
# Where rounding allows no more, a foot may slip faster or slower by this [m/s] after so many turns.
PATIENCE = 20
SLOW = 1e-9
# A foot inside its limit surface that slips by less than this [m] in the step is held by friction.
AT_REST = 1e-6
# Newton's method for frictions: turns, shares of a step that are tried (each a quarter of the last), step of the
# differences, and longest step.
NEWTON_TURNS = 15
NEWTON_SHARES = 4
NUDGE = 1e-6
FARTHEST = 1.0
# A pivot this small beside the first one is rounding, and its row depends on the others.
DEPENDENT = 1e-9
# As in the numerics of feet that stick: shift beside the largest diagonal entry, and how often it is refined.
SHIFT = 1e-8
REFINEMENTS = 4
# A constraint missed by less than this [m, rad] over a step is kept.
SLIGHT = 1e-5
# Work this small beside that on the velocities without contact and after it is rounding.
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
    """Fill lam with the multipliers that bring the velocities ``w`` (6K,) to the wanted ones."""
    e = s.scratch
    symmetric = True
    all_whole = True
    for k in range(e.rows.shape[0]):
        symmetric = symmetric and not s.trial.sliding[k]
        all_whole = all_whole and e.whole[k]
    if all_whole:
        # T = F = 1 for every foot: the Delassus matrix itself.
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
    """Return the ``i``-th pivot of the elimination that was made last."""
    return abs(s.A[s.pivot_rows[i], s.pivot_columns[i]])


@kernel
def _share_load(p: Projection, s: Scratch, w, total: int):
    """Find the multipliers of feet that slide where rows depend on others: A + shift, refined, as for feet that stick.

    Which row gets no multiplier would else be left to rounding, and friction, which follows the load, with it.
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
    """Fill CoP of foot ``k`` and its distance outside; where nothing presses, the mean of its clamped vertices."""
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
    """Fill the shares of the clamped vertices of foot ``k``, and return c [m]."""
    n = p.n_vertices[k]
    first, count = clamped_range(s.trial.mode[k], n)
    return share_out(first, count, n, p.vertices[k], p.rotation[k], s.trial.cop[k], s.scratch.shares)


@kernel
def _slip_velocity(k, s: Trial):
    """Return the velocity of the CoP of foot ``k`` along the ground [m/s] and its spin [rad/s] after the step."""
    w = s.w_next[6 * k :]
    u = point_velocity(w, s.cop_ground[k])
    return u[0], u[1], w[5]


@kernel
def _hold_resting(p: Projection, s: Selection) -> bool:
    """Let the feet stick again whose friction has ended inside the limit surface; return whether there was one.

    All feet outside their cones slide at once. With one of them sliding, another may well stick. A foot is held once in
    a solve.
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
def _turn_slips(p: Projection, s: Selection):
    """Turn the friction of every sliding foot towards that of the velocity of its CoP.

    Returns the largest move, and how much faster or slower a foot slips by it [m/s].

    The fixed point iteration is accelerated by Anderson's mixing: the mobility of a foot in the air is several times
    that of one under load, and plain turns then take a hundred iterations.
    """
    trial, scratch = s.trial, s.scratch
    x, f = scratch.tried, scratch.miss
    x[:] = 0.0
    f[:] = 0.0
    moved = drift = 0.0
    for k in range(scratch.rows.shape[0]):
        if scratch.rows[k] == 0 or not trial.sliding[k]:
            continue
        far, speed = _turn_slip(k, p, s, True)
        # A foot that pulls is no solution, whatever its friction is to the last digit.
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
        # No force is greater than mu f_z, and no torsion than mu c f_z.
        size = max(np.sqrt(slip[0] * slip[0] + slip[1] * slip[1]), 1.0)
        slip[0] /= size
        slip[1] /= size
        slip[2] = min(max(slip[2], -1.0), 1.0)
    return moved, drift


@kernel
def _turn_slip(k, p: Projection, s: Selection, bounded):
    """Fill the turn of the friction of foot ``k``, see :func:`friction_at`; return how far it goes, and its speed."""
    trial = s.trial
    slip, turn = trial.slip[k], s.scratch.turn[k]
    c = _share_out(k, p, s)
    count = clamped_range(trial.mode[k], p.n_vertices[k])[1]
    moved = abs(c - trial.radius[k])
    if c > 0.0:
        # The torsion itself is what the turn begins with.
        slip[2] = slip[2] * trial.radius[k] / c
        if bounded:
            slip[2] = min(max(slip[2], -1.0), 1.0)
    else:
        slip[2] = 0.0
    trial.radius[k] = c
    # A foot without load keeps a friction, that of its velocity: the next solve may load it, and without one it would
    # have none then, for ever.
    carried = max(p.mu_dynamic[k] * trial.impulse[k, 2], UNLOADED)
    # Feet of one body that slide are moved by what each of them gets.
    level = about = 0.0
    for j in range(trial.mode.shape[0]):
        if s.scratch.rows[j] > 0 and trial.sliding[j]:
            level += 0.5 * (abs(p.G[6 * k, 6 * j]) + abs(p.G[6 * k + 1, 6 * j + 1]))
            about += c * c * abs(p.G[6 * k + 5, 6 * j + 5])
    level = 1.0 / (level * carried)
    # In a plane nothing turns about the normal, nor does a point.
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
    """Let the feet slide whose sticking force lies outside the cone; return whether there was one."""
    trial = s.trial
    started = False
    for k in range(s.scratch.rows.shape[0]):
        if s.scratch.rows[k] == 0 or trial.sliding[k]:
            continue
        # A foot that was sliding comes to rest inside the dynamic cone.
        mu = p.mu_dynamic[k] if s.result.sliding[k] or trial.held[k] > 0 else p.mu_static[k]
        f = trial.impulse[k]
        reach = mu * max(f[2], 0.0)
        tangential = f[0] * f[0] + f[1] * f[1]
        torsion = f[5] - (trial.cop_ground[k, 0] * f[1] - trial.cop_ground[k, 1] * f[0])
        margin = -trial.outside[k]
        tangential = np.sqrt(tangential)
        if tangential <= reach and margin > 0.0 and f[2] > 0.0:
            # No vertex is nearer to the CoP than the nearest edge, which is a bound without the shares.
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
        # What is loaded at one of several vertices, or beyond it, carries no torsion.
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
    """Fill ``s.trial`` with the impulses, velocities and CoPs that belong to the friction ``s.trial.slip``."""
    settings, trial, scratch = s.settings, s.trial, s.scratch
    feet = trial.mode.shape[0]
    for k in range(feet):
        foot = FootMode(
            trial.mode[k], trial.sliding[k], p.n_vertices[k], p.offsets[k], scratch.heights[k],
            scratch.errors[k], settings.h, settings.gamma,
        )  # fmt: skip
        slip = Sliding(p.mu_dynamic[k], trial.radius[k], trial.slip[k])
        rows = Rows(scratch.T[k], scratch.F[k], scratch.b[k], scratch.r_vj[k])
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
def _miss(p: Projection, s: Selection):
    """Fill ``s.scratch.miss`` with how far the frictions ``s.scratch.tried`` are from those of the slips they cause.

    Both (3K,) hold the torsions over a length of the foot that does not change with its CoP. Returns what
    :func:`_turn_slips` does, and the sum of the squares.
    """
    trial, scratch = s.trial, s.scratch
    feet = trial.mode.shape[0]
    for k in range(feet):
        for a in range(3):
            trial.slip[k, a] = scratch.tried[3 * k + a]
        trial.radius[k] = scratch.span[k]
    _respond(p, s)
    moved = drift = square = 0.0
    for k in range(feet):
        for a in range(3):
            scratch.miss[3 * k + a] = 0.0
        if scratch.rows[k] == 0 or not trial.sliding[k]:
            continue
        far, speed = _turn_slip(k, p, s, False)
        moved = max(moved, far)
        drift = max(drift, speed)
        scratch.drift[k] = speed
        turn = scratch.turn[k]
        scratch.miss[3 * k] = turn[0]
        scratch.miss[3 * k + 1] = turn[1]
        if scratch.span[k] > 0.0:
            reached = (trial.slip[k, 2] + turn[2]) * trial.radius[k] / scratch.span[k]
            scratch.miss[3 * k + 2] = reached - scratch.tried[3 * k + 2]
        for a in range(3):
            square += scratch.miss[3 * k + a] ** 2
    return moved, drift, square


@kernel
def _find_slips(p: Projection, s: Selection) -> bool:
    """Find the frictions that belong to their slips by Newton's method, with differences for derivatives.

    For what turns do not find: feet of one body share what friction of one of them does to all, and next to a vertex
    about which a foot turns the friction changes much with little. Returns whether they were found; the best are left.
    """
    trial, e = s.trial, s.scratch
    feet = trial.mode.shape[0]
    size = 3 * feet
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
            e.tried[3 * k + a] = trial.slip[k, a]
        e.tried[3 * k + 2] = trial.slip[k, 2] * trial.radius[k] / e.span[k] if e.span[k] > 0.0 else 0.0
    moved, drift, square = _miss(p, s)
    for _ in range(NEWTON_TURNS):
        if moved <= SLIP_TOLERANCE or drift <= SLOW:
            return True
        if p.budget[0] <= 0:
            return False
        for i in range(size):
            e.best[i] = e.tried[i]
            e.least[i] = e.miss[i]
        for j in range(size):
            if not trial.sliding[j // 3] or e.rows[j // 3] == 0 or (j % 3 == 2 and e.span[j // 3] == 0.0):
                for i in range(size):
                    e.slope[i, j] = 0.0
                e.slope[j, j] = -1.0
                continue
            nudge = NUDGE if e.best[j] < 0.0 else -NUDGE
            e.tried[j] = e.best[j] + nudge
            _miss(p, s)
            e.tried[j] = e.best[j]
            for i in range(size):
                e.slope[i, j] = (e.miss[i] - e.least[i]) / nudge
        for i in range(size):
            e.miss[i] = -e.least[i]
        solve_dense(e.slope, e.miss, size, e.way, e.pivot_rows, e.pivot_columns)
        longest = 0.0
        for i in range(size):
            longest = max(longest, abs(e.way[i]))
        share = 1.0 if longest <= FARTHEST else FARTHEST / longest
        better = False
        for _ in range(NEWTON_SHARES):
            for i in range(size):
                e.tried[i] = e.best[i] + share * e.way[i]
            moved, drift, now = _miss(p, s)
            if now < square:
                better = True
                square = now
                break
            share *= 0.25
        if not better:
            # Next to a kink: the turn itself.
            for i in range(size):
                e.tried[i] = e.best[i] + e.least[i]
            moved, drift, square = _miss(p, s)
    return moved <= SLIP_TOLERANCE or drift <= SLOW


@kernel
def _rests(p: Projection, s: Selection) -> bool:
    """Whether the feet whose slips did not settle are at rest, with a friction that they can have.

    Two points of one rigid body cannot both be held to the last digit while one of them is lifted out of the ground:
    their distance along the ground changes with the square of the tilt. Each of them is nearly held, and how much each
    holds against the other moves nothing; the turns of that go on for ever.
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
    """Solve for the impulses of all feet in the modes ``s.trial.mode``; ``s.trial`` is filled."""
    s.result.counters[CANDIDATES] += 1
    _solve_from(p, s, True)
    pulls = recalls = False
    for k in range(s.trial.mode.shape[0]):
        pulls = pulls or (s.trial.sliding[k] and s.trial.impulse[k, 2] <= 0.0)
        recalls = recalls or s.result.sliding[k]
    if pulls and recalls:
        # Near the paradox of Painleve the friction of the last step may end in a pull where there is a push, too.
        _solve_from(p, s, False)


@kernel
def _solve_from(p: Projection, s: Selection, remembered: bool):
    """Solve with the slips of the last step to begin with, or against the forces that would make the feet stick."""
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
    # Every foot starts to slide at most twice and is held once.
    for _ in range(3 * feet + 1):
        forget_turns(s.mixing)
        trial.converged[0] = False
        for turn in range(iterations):
            # Where the budget of the step is used up, the first turn is the last one.
            if turn > 0 and p.budget[0] <= 0:
                break
            _respond(p, s)
            moved, drift = _turn_slips(p, s)
            if moved <= SLIP_TOLERANCE or (turn >= PATIENCE and drift <= SLOW):
                trial.converged[0] = True
                break
            if turn == PATIENCE and _find_slips(p, s):
                trial.converged[0] = True
                break
        if not trial.converged[0]:
            trial.converged[0] = _rests(p, s)
        if not (_start_sliding(p, s) or _hold_resting(p, s)):
            break
        iterations = SLIP_ITERATIONS
    else:
        # Which feet slide is still open.
        trial.converged[0] = False


@kernel
def is_sound(p: Projection, s: Selection) -> bool:
    """Whether the solution keeps its own constraints, and contact adds no more energy than these ask for.

    The equations of a foot that slides need not have a solution (the paradox of Painleve): where friction coefficient
    and height of the mass are large they come near to singular, and what is then taken for a solution throws the feet.
    """
    trial, e = s.trial, s.scratch
    limit = SLIGHT / s.settings.h
    work = asked = scale = 0.0
    row = 0
    kept = True
    for k in range(trial.mode.shape[0]):
        w = trial.w_next[6 * k :]
        for a in range(6):
            # Kinetic energy after the step less that without contact, exactly.
            work += 0.5 * trial.impulse[k, a] * (p.w_free[6 * k + a] + w[a])
            scale += abs(trial.impulse[k, a]) * (abs(p.w_free[6 * k + a]) + abs(w[a]))
        lifted = 0.0
        for r in range(e.rows[k]):
            speed = w[r] if e.whole[k] else 0.0
            if not e.whole[k]:
                for a in range(6):
                    speed += e.T[k, r, a] * w[a]
            # Also what is no number is not kept.
            kept = kept and abs(speed - e.b[k, r]) <= limit
            # All but the rows along the ground and of the turn about its normal.
            if trial.sliding[k] or 2 <= r <= (4 if e.whole[k] else 3):
                lifted += e.lam[row + r] * e.b[k, r]
            else:
                asked += e.lam[row + r] * e.b[k, r]
        # Vertices that push are lifted no faster than that; those above the ground are asked to come down.
        asked += min(lifted, RECOVERY * max(trial.impulse[k, 2], 0.0))
        row += e.rows[k]
    return kept and work <= max(asked, 0.0) + WORK_TOLERANCE * scale
