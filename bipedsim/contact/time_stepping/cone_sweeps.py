"""Sweeps over point contacts, each solved alone against the others (block Gauss-Seidel), for poor initial values.

The cost of a sweep is linear in the number of points. An impulse at a point changes only the velocities of the feet.
"""

from __future__ import annotations

import numpy as np

from bipedsim.contact.time_stepping.cone_problem import ConeProblem, fill_velocities
from bipedsim.numerics import Array, kernel, point_velocity

SWEEPS = 10
"""Sweeps over all contacts between two attempts of Newton's method."""
PER_POINT = 60
"""Operations of a sweep per point, in addition to those for the velocities of all feet."""
RIGID = 1e-12
"""Lower bound of the mobility [1/kg] in divisions."""


@kernel
def sweep(G: Array, q: ConeProblem) -> None:
    """Sweep over the points from ``q.f``: reduce the velocity of each point and project its impulse on the cone."""
    fill_velocities(G, q)
    for m in range(q.points[0]):
        _fill_own(G, q, m)
    for _ in range(SWEEPS):
        for m in range(q.points[0]):
            k = 6 * q.foot[m]
            ux, uy, un = point_velocity(q.twist[k:], q.arm[m])
            x, y, n = solve_point(q.C[m], q.f[m], q.mu[m], ux + q.g[m, 0], uy + q.g[m, 1], un + q.g[m, 2])
            x -= q.f[m, 0]
            y -= q.f[m, 1]
            n -= q.f[m, 2]
            q.f[m, 0] += x
            q.f[m, 1] += y
            q.f[m, 2] += n
            rx, ry, rz = q.arm[m]
            tx, ty, tz = ry * n - rz * y, rz * x - rx * n, rx * y - ry * x
            for i in range(q.twist.shape[0]):
                row = G[i]
                q.twist[i] += (
                    row[k] * x + row[k + 1] * y + row[k + 2] * n + row[k + 3] * tx + row[k + 4] * ty + row[k + 5] * tz
                )
    q.used[0] += SWEEPS
    q.budget[0] -= SWEEPS * q.points[0] * (6 * q.twist.shape[0] + PER_POINT)


@kernel
def _fill_own(G: Array, q: ConeProblem, m: int) -> None:
    """Fill ``q.C[m]`` with the velocities of point ``m`` per unit impulse at it."""
    k = 6 * q.foot[m]
    r = q.arm[m]
    for b in range(3):
        c = (b + 1) % 3
        d = (b + 2) % 3
        # The impulse along b has the torque r x e_b about the sole origin.
        for i in range(6):
            q.rhs[i] = G[k + i, k + b] + r[d] * G[k + i, k + 3 + c] - r[c] * G[k + i, k + 3 + d]
        vx, vy, vz = point_velocity(q.rhs, r)
        q.C[m, 0, b] = vx
        q.C[m, 1, b] = vy
        q.C[m, 2, b] = vz


@kernel
def solve_point(own: Array, f: Array, mu: float, u0: float, u1: float, u2: float) -> tuple[float, float, float]:
    """Return the impulse of a point that moves with (u0, u1, u2) under ``f``: normal first, then friction.

    Args:
        own: (3, 3) velocities of the point per unit impulse at it [1/kg].
        f: (3,) present impulse [N.s].
        mu: Friction coefficient.
        u0, u1, u2: Velocity beyond the target, tangential and normal [m/s].
    """
    n = max(f[2] - u2 / max(own[2, 2], RIGID), 0.0)
    change = n - f[2]
    u0 += own[0, 2] * change
    u1 += own[1, 2] * change
    by = 1.0 / max(own[0, 0] + abs(own[0, 1]), own[1, 1] + abs(own[0, 1]), RIGID)
    x, y = f[0] - by * u0, f[1] - by * u1
    length, limit = np.sqrt(x * x + y * y), mu * n
    if length > limit:
        x *= limit / length
        y *= limit / length
    return x, y, n
