"""The solve that the candidates of constraint selection share: impulses of all feet for given modes, with friction.

Velocity level (see docs/contact_models.md): T (w_free + G F lam) = b, then v+ follows from the impulse F lam.
Sticking is tried first, so that a sliding foot comes to rest without a velocity threshold; a foot outside its cone
slides, with the direction of the slip iterated to the velocity of its CoP.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from bipedsim.contact.friction import torsion_radius, update_slip
from bipedsim.contact.kernels import solve_dense
from bipedsim.contact.modes import clamped_range, constraints

SLIP_ITERATIONS = 30
SLIP_TOLERANCE = 1e-10


@njit(cache=True)
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


@njit(cache=True)
def _foot_pressure(k, n, mode, impulse, R, offsets, vertices, cop, cop_ground):
    """Fill the CoP of foot ``k``, the mean of its clamped vertices where nothing presses; return its radius c."""
    first, count = clamped_range(mode, n)
    if impulse[6 * k + 2] > 0.0:
        centre_of_pressure(impulse[6 * k : 6 * k + 6], R[k], cop, cop_ground)
    else:
        cop[:] = 0.0
        cop_ground[:] = 0.0
        for j in range(count):
            i = (first + j) % n
            for a in range(2):
                cop[a] += vertices[k, i, a] / count
            for a in range(3):
                cop_ground[a] += offsets[k, i, a] / count
    return torsion_radius(first, count, n, vertices[k], cop[0], cop[1])


@njit(cache=True)
def solve_impulses(
    G, w_free, R, offsets, heights, errors, vertices, n_vertices, modes, was_sliding, mu_static, mu_dynamic, h, gamma,
    sliding, slip, radius, impulse, w_next, cops,
):  # fmt: skip
    """Solve for the impulses of all feet in the given modes.

    Args:
        G, w_free, R, offsets: As in ``Projection``.
        heights, errors: (K, N) heights of the vertices [m], (K, N, 2) drift from their anchors [m].
        vertices, n_vertices: (K, N, 2) sole polygons in the sole frame [m], (K,).
        modes, was_sliding: (K,) modes to solve for, friction states of the last step.
        mu_static, mu_dynamic: (K,) friction coefficients: a foot that was sliding comes to rest inside the dynamic
            cone.
        h, gamma: Step [s], share of an error removed in one step.
        sliding: (K,) out. slip: (K, 3) in and out, unit directions (u_x, u_y, c w_z). radius: (K,) out, torsional
            radius [m].
        impulse, w_next: (6K,) out, impulses at the sole origins and velocities after the step. cops: (K, 2) out, sole
            frame [m].
    """
    feet = modes.shape[0]
    size = 6 * feet
    T = np.zeros((feet, 6, 6))
    F = np.zeros((feet, 6, 6))
    b = np.zeros((feet, 6))
    r_vj = np.zeros(3)
    m = np.zeros(feet, dtype=np.int64)
    GF = np.zeros((size, size))
    A = np.zeros((size, size))
    rhs = np.zeros(size)
    lam = np.zeros(size)
    rows = np.zeros(size, dtype=np.int64)
    columns = np.zeros(size, dtype=np.int64)
    cop_ground = np.zeros(3)
    for k in range(feet):
        sliding[k] = False
        radius[k] = 0.0

    for _ in range(feet + 1):
        any_sliding = False
        for k in range(feet):
            any_sliding = any_sliding or sliding[k]
        for _ in range(SLIP_ITERATIONS if any_sliding else 1):
            total = 0
            for k in range(feet):
                m[k] = constraints(
                    modes[k], sliding[k], n_vertices[k], offsets[k], heights[k], errors[k], mu_dynamic[k], radius[k],
                    slip[k], h, gamma, T[k], F[k], b[k], r_vj,
                )  # fmt: skip
                total += m[k]
            _assemble(G, w_free, T, F, b, m, GF, A, rhs)
            solve_dense(A, rhs, total, lam, rows, columns)
            _spread(G, w_free, F, lam, m, impulse, w_next)
            moved = 0.0
            for k in range(feet):
                if m[k] == 0:
                    continue
                c = _foot_pressure(k, n_vertices[k], modes[k], impulse, R, offsets, vertices, cops[k], cop_ground)
                if not sliding[k]:
                    radius[k] = c
                    continue
                x = w_next[6 * k : 6 * k + 6]
                ux = x[0] + x[4] * cop_ground[2] - x[5] * cop_ground[1]
                uy = x[1] + x[5] * cop_ground[0] - x[3] * cop_ground[2]
                rho = 2.0 / (G[6 * k, 6 * k] + G[6 * k + 1, 6 * k + 1])
                turned = update_slip(impulse[6 * k + 2], mu_dynamic[k], c, ux, uy, x[5], rho, slip[k])
                moved = max(moved, turned, abs(c - radius[k]))
                radius[k] = c
            if moved <= SLIP_TOLERANCE:
                break

        changed = False
        for k in range(feet):
            if m[k] == 0 or sliding[k]:
                continue
            mu = mu_dynamic[k] if was_sliding[k] else mu_static[k]
            c = _foot_pressure(k, n_vertices[k], modes[k], impulse, R, offsets, vertices, cops[k], cop_ground)
            f = impulse[6 * k : 6 * k + 6]
            torsion = f[5] - (cop_ground[0] * f[1] - cop_ground[1] * f[0])
            spin = torsion / c if c > 0.0 else 0.0
            used = np.sqrt(f[0] * f[0] + f[1] * f[1] + spin * spin)
            if used > mu * max(f[2], 0.0):
                sliding[k] = True
                changed = True
                radius[k] = c
                if not was_sliding[k] or slip[k, 0] ** 2 + slip[k, 1] ** 2 + slip[k, 2] ** 2 == 0.0:
                    slip[k, 0] = -f[0] / used
                    slip[k, 1] = -f[1] / used
                    slip[k, 2] = -spin / used
        if not changed:
            break


@njit(cache=True)
def _assemble(G, w_free, T, F, b, m, GF, A, rhs):
    """Fill A = T G F and rhs = b - T w_free of the stacked constraints."""
    feet = m.shape[0]
    column = 0
    for k in range(feet):
        for c in range(m[k]):
            for r in range(6 * feet):
                total = 0.0
                for a in range(6):
                    total += G[r, 6 * k + a] * F[k, a, c]
                GF[r, column + c] = total
        column += m[k]
    row = 0
    for k in range(feet):
        for r in range(m[k]):
            total = b[k, r]
            for a in range(6):
                total -= T[k, r, a] * w_free[6 * k + a]
            rhs[row + r] = total
            for c in range(column):
                total = 0.0
                for a in range(6):
                    total += T[k, r, a] * GF[6 * k + a, c]
                A[row + r, c] = total
        row += m[k]


@njit(cache=True)
def _spread(G, w_free, F, lam, m, impulse, w_next):
    """Fill impulse = F lam and w_next = w_free + G impulse."""
    feet = m.shape[0]
    row = 0
    for k in range(feet):
        for a in range(6):
            total = 0.0
            for c in range(m[k]):
                total += F[k, a, c] * lam[row + c]
            impulse[6 * k + a] = total
        row += m[k]
    for r in range(6 * feet):
        total = w_free[r]
        for s in range(6 * feet):
            total += G[r, s] * impulse[s]
        w_next[r] = total
