"""Coulomb friction of a polygonal foot: cone, torsion, and the direction of the slip.

Table I of moraud2008 gives a sticking edge or face unlimited torque about the normal. A real sole carries what its
vertices can: with normal forces w_i f_z at the vertices (w_i >= 0, sum 1, balanced at the CoP), a pure spin about the
CoP meets mu f_z c, c = sum w_i |p_i - CoP|. Force and torsion share that budget by the ellipsoid
(|f_t| / mu f_z)^2 + (tau / mu c f_z)^2 <= 1 (limit surface of Howe and Cutkosky, 1996).
With (f_t, tau / c) as one vector it is a cone again, and everything below treats it as such.
"""

from __future__ import annotations

import numpy as np

from bipedsim.numerics import kernel

UNLOADED = 1e-12
"""Normal impulse [N.s] of a foot that carries nothing, for the direction of its slip."""


@kernel
def torsion_radius(first: int, count: int, n: int, vertices, cop_x: float, cop_y: float) -> float:
    """Return c = sum w_i |p_i - CoP| [m] of the clamped vertices.

    The weights are the linear ones on an edge and Wachspress' on a polygon: positive, smooth, balanced at the CoP,
    linear on the edges.

    Args:
        first, count: Clamped vertices, ``count`` of them from ``first`` on.
        n: Number of vertices of the sole.
        vertices: (N, 2) in the sole frame [m].
        cop_x, cop_y: CoP in the sole frame [m].
    """
    if count < 2:
        return 0.0
    if count == 2:
        j = (first + 1) % n
        ex = vertices[j, 0] - vertices[first, 0]
        ey = vertices[j, 1] - vertices[first, 1]
        length = np.sqrt(ex * ex + ey * ey)
        s = ((cop_x - vertices[first, 0]) * ex + (cop_y - vertices[first, 1]) * ey) / length
        s = min(max(s, 0.0), length)
        return 2.0 * s * (length - s) / length
    total = 0.0
    mean_x = 0.0
    mean_y = 0.0
    for i in range(n):
        w = _wachspress(i, n, vertices, cop_x, cop_y)
        total += w
        mean_x += w * vertices[i, 0]
        mean_y += w * vertices[i, 1]
    # The mean is the CoP itself while that is inside; beyond, it stays on the polygon, and so does the limit.
    mean_x /= total
    mean_y /= total
    moment = 0.0
    for i in range(n):
        w = _wachspress(i, n, vertices, cop_x, cop_y)
        moment += w * np.sqrt((vertices[i, 0] - mean_x) ** 2 + (vertices[i, 1] - mean_y) ** 2)
    return moment / total


@kernel
def _wachspress(i: int, n: int, vertices, x: float, y: float) -> float:
    """Return the weight of vertex ``i`` at (x, y), not normalised; beyond an edge, that of a place just inside it."""
    a = i - 1 if i > 0 else n - 1
    c = i + 1 if i + 1 < n else 0
    ax = vertices[a, 0]
    ay = vertices[a, 1]
    bx = vertices[i, 0]
    by = vertices[i, 1]
    cx = vertices[c, 0]
    cy = vertices[c, 1]
    corner = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
    before = (bx - ax) * (y - ay) - (by - ay) * (x - ax)
    after = (cx - bx) * (y - by) - (cy - by) * (x - bx)
    floor = 1e-9 * corner
    return corner / (max(before, floor) * max(after, floor))


@kernel
def update_slip(fz: float, mu: float, radius: float, ux: float, uy: float, wz: float, rho: float, slip) -> float:
    """Turn ``slip`` (3,) towards the velocity of the CoP in place and return how far it moved.

    s <- normalize(mu f_z s + rho (u_x, u_y, c w_z)): the projection on the cone's rim, regular at zero velocity.

    Args:
        fz: Normal impulse [N.s]; without load, it is taken as next to nothing.
        mu, radius: Friction coefficient, torsional radius c [m].
        ux, uy, wz: Velocity of the CoP [m/s] and spin [rad/s] after the step.
        rho: Inverse of the tangential Delassus entry [kg].
        slip: (3,) unit vector, or zero where there is no direction yet.
    """
    # A foot without load keeps a direction, that of its velocity: the next solve may load it, and without one it would
    # have no friction then, for ever.
    fz = max(fz, UNLOADED)
    sx = mu * fz * slip[0] + rho * ux
    sy = mu * fz * slip[1] + rho * uy
    sz = mu * fz * slip[2] + rho * radius * wz
    norm = np.sqrt(sx * sx + sy * sy + sz * sz)
    if norm == 0.0:
        return 0.0
    dx = sx / norm - slip[0]
    dy = sy / norm - slip[1]
    dz = sz / norm - slip[2]
    slip[0] += dx
    slip[1] += dy
    slip[2] += dz
    return np.sqrt(dx * dx + dy * dy + dz * dz)
