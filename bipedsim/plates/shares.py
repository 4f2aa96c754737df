"""Which plate carries how much of what the ground does: forces at points, and feet that stand on several plates.

A force at a point belongs to the plate whose surface the point is on; the floor has all others. A foot whose support
lies on one plate as a whole belongs to it. Of a foot across a border two rules:

* Where the contact model knows forces at vertices, each goes to the plate under its vertex.
* Where it finds one wrench for the foot, pressure is spread over what touches: linear in place and never below zero, so
  that its resultant is the normal force at the centre of pressure,

      p(x, y) = max(0, a + b x + c y)

  (a rigid sole on a bed of springs that cannot pull, Winkler 1867); on an edge the same along a line; on a vertex it is
  a force. Shear is spread as pressure is, and the moment about the normal as p times the distance from the centre of
  pressure. Each plate carries the integral over its part: polygons are clipped by the borders, integrals are exact.

Either way the shares of all plates and the floor add up to the wrench of the foot.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bipedsim.numerics import Array, kernel
from bipedsim.plates.pressure import clip_by_plate, find_pressure, integrate, line_pressure
from bipedsim.plates.surfaces import REACH, Surfaces, add_force, plate_at


class Foot(NamedTuple):
    """What is known of a foot in a step; N vertices of the polygon that may carry it at most.

    Attributes:
        axes: (3, 3) of the ground under it as columns t1, t2, n. origin: (3,) of its sole [m].
        offsets: (N, 3) vertices from there in these axes [m], the first ``vertices`` of them.
        clamped: Which of them touch, as bits.
        impulse: (6,) of the ground on it at the sole's origin, in these axes [N.s], [N.m.s].
        forces: (M, 3) mean forces on the vertices [N]; M = 0 where these are not known.
        at_once: Share of the impulse that acts at one moment.
    """

    axes: Array
    origin: Array
    offsets: Array
    vertices: int
    clamped: int
    impulse: Array
    forces: Array
    at_once: float


@kernel
def add_foot(s: Surfaces, f: Foot) -> None:
    """Add what the ground does to a foot to the plates that it stands on."""
    J = f.impulse
    if J[0] == 0.0 and J[1] == 0.0 and J[2] == 0.0 and J[3] == 0.0 and J[4] == 0.0 and J[5] == 0.0:
        return
    total = 0.0
    for i in range(min(f.vertices, f.forces.shape[0])):
        total += f.forces[i, 2]
    if total > 0.0 and J[2] > 0.0:
        _by_vertices(s, f, J[2] / total)
        return
    only = _only_plate(s, f)
    if only == -2 and J[2] > 0.0:
        _by_pressure(s, f)
        return
    # Without a normal force there is no pressure to go by: such a foot is where its sole's origin is.
    if only == -2:
        only = plate_at(s, f.origin[0], f.origin[1], f.origin[2])
    _add_wrench(s, f, only, f.origin, J[0], J[1], J[2], J[3], J[4], J[5])


@kernel
def _add_wrench(s, f, p, at, j0, j1, j2, m0, m1, m2):
    """Add a wrench in the axes of the ground under a foot at a point (3,) of the world to plate ``p``."""
    R = f.axes
    add_force(
        s,
        p,
        at[0],
        at[1],
        at[2],
        R[0, 0] * j0 + R[0, 1] * j1 + R[0, 2] * j2,
        R[1, 0] * j0 + R[1, 1] * j1 + R[1, 2] * j2,
        R[2, 0] * j0 + R[2, 1] * j1 + R[2, 2] * j2,
        R[0, 0] * m0 + R[0, 1] * m1 + R[0, 2] * m2,
        R[1, 0] * m0 + R[1, 1] * m1 + R[1, 2] * m2,
        R[2, 0] * m0 + R[2, 1] * m1 + R[2, 2] * m2,
        f.at_once,
    )


@kernel
def _world(f, i):
    """Return vertex ``i`` of a foot in the world."""
    R, o = f.axes, f.offsets
    return (
        f.origin[0] + R[0, 0] * o[i, 0] + R[0, 1] * o[i, 1] + R[0, 2] * o[i, 2],
        f.origin[1] + R[1, 0] * o[i, 0] + R[1, 1] * o[i, 1] + R[1, 2] * o[i, 2],
        f.origin[2] + R[2, 0] * o[i, 0] + R[2, 1] * o[i, 1] + R[2, 2] * o[i, 2],
    )


@kernel
def _touches(f, i):
    """Whether vertex ``i`` of a foot touches; all do where no bit says so, as when the foot has just left."""
    return f.clamped == 0 or i >= 63 or (f.clamped >> i) & 1 == 1


@kernel
def _only_plate(s, f):
    """Return the plate that all of what touches of a foot is on, -1 for the floor, -2 if it is on several."""
    found = -3
    x0 = y0 = z0 = np.inf
    x1 = y1 = z1 = -np.inf
    for i in range(f.vertices):
        if not _touches(f, i):
            continue
        x, y, z = _world(f, i)
        x0, y0, z0 = min(x0, x), min(y0, y), min(z0, z)
        x1, y1, z1 = max(x1, x), max(y1, y), max(z1, z)
        p = plate_at(s, x, y, z)
        if found == -3:
            found = p
        elif found != p:
            return -2
    if found == -3:
        return plate_at(s, f.origin[0], f.origin[1], f.origin[2])
    if found >= 0:
        # Plates are convex, and so is what touches.
        return found
    # All corners are on the floor: a plate may still lie under the middle.
    for p in range(s.centre.shape[0]):
        reach = np.hypot(s.half[p, 0], s.half[p, 1]) + REACH
        if (
            s.centre[p, 0] + reach > x0
            and s.centre[p, 0] - reach < x1
            and s.centre[p, 1] + reach > y0
            and s.centre[p, 1] - reach < y1
            and s.centre[p, 2] + reach > z0
            and s.centre[p, 2] - reach < z1
        ):
            return -2
    return -1


@kernel
def _by_vertices(s, f, scale):
    """Give each vertex's force, times ``scale``, to the plate under it; what rounding leaves, to the one with most."""
    plates = s.centre.shape[0]
    for p in range(plates + 1):
        s.share[p] = 0.0
    J = f.impulse
    left0, left1, left2, left3, left4, left5 = J[0], J[1], J[2], J[3], J[4], J[5]
    for i in range(min(f.vertices, f.forces.shape[0])):
        f0, f1, f2 = scale * f.forces[i, 0], scale * f.forces[i, 1], scale * f.forces[i, 2]
        if f0 == 0.0 and f1 == 0.0 and f2 == 0.0:
            continue
        x, y, z = _world(f, i)
        p = plate_at(s, x, y, z)
        o = f.offsets[i]
        m0, m1, m2 = o[1] * f2 - o[2] * f1, o[2] * f0 - o[0] * f2, o[0] * f1 - o[1] * f0
        _add_wrench(s, f, p, f.origin, f0, f1, f2, m0, m1, m2)
        left0 -= f0
        left1 -= f1
        left2 -= f2
        left3 -= m0
        left4 -= m1
        left5 -= m2
        s.share[p if p >= 0 else plates] += f2
    most = 0
    for p in range(plates + 1):
        if s.share[p] > s.share[most]:
            most = p
    _add_wrench(s, f, most if most < plates else -1, f.origin, left0, left1, left2, left3, left4, left5)


@kernel
def _by_pressure(s, f):
    """Spread the wrench of a foot over what touches of it, and give each plate its part; the floor has the rest."""
    plates = s.centre.shape[0]
    J = f.impulse
    # Height of what touches, from the sole's origin.
    height = 0.0
    touching = 0
    for i in range(f.vertices):
        if _touches(f, i):
            height += f.offsets[i, 2]
            touching += 1
    height /= touching
    cx = (height * J[0] - J[4]) / J[2]
    cy = (height * J[1] + J[3]) / J[2]
    twist = J[5] - (cx * J[1] - cy * J[0])
    n = _spread(s, f, cx, cy, f.clamped)
    if n < 2 and 1 < touching < f.vertices:
        # Over a step in several parts more may have touched than in the last one.
        n = _spread(s, f, cx, cy, 0)
    R = f.axes
    at = (
        f.origin[0] + R[0, 0] * cx + R[0, 1] * cy + R[0, 2] * height,
        f.origin[1] + R[1, 0] * cx + R[1, 1] * cy + R[1, 2] * height,
        f.origin[2] + R[2, 0] * cx + R[2, 1] * cy + R[2, 2] * height,
    )
    home = plate_at(s, at[0], at[1], at[2])
    polar = 0.0
    for p in range(plates + 1):
        s.share[p] = 0.0
        s.moment[p, 0] = s.moment[p, 1] = s.moment[p, 2] = 0.0
    if n < 2:
        s.fallbacks[0] += 1 if f.vertices > 1 and touching > 1 else 0
        _add_wrench(s, f, home, at, J[0], J[1], J[2], 0.0, 0.0, twist)
        return
    polar = integrate(s, s.polygon, n, plates)
    for p in range(plates):
        m = clip_by_plate(s, f, p, n, cx, cy, height)
        if m >= 2:
            integrate(s, s.piece, m, p)
    k = twist / polar if polar > 0.0 else 0.0
    left0, left1, left2, left3, left4, left5 = J[0], J[1], J[2], 0.0, 0.0, twist
    for p in range(plates):
        if not s.share[p] > 0.0:
            continue
        w, mx, my = s.share[p], s.moment[p, 0], s.moment[p, 1]
        f0, f1, f2 = J[0] * w - k * my, J[1] * w + k * mx, J[2] * w
        m2 = mx * J[1] - my * J[0] + k * s.moment[p, 2]
        _add_wrench(s, f, p, at, f0, f1, f2, J[2] * my, -J[2] * mx, m2)
        left0 -= f0
        left1 -= f1
        left2 -= f2
        left3 -= J[2] * my
        left4 += J[2] * mx
        left5 -= m2
    # What the plates leave is the floor's; where they leave but rounding, it is the plate's that the CoP is on.
    rest = left2 > 1e-12 * J[2]
    _add_wrench(s, f, -1 if rest or home < 0 else home, at, left0, left1, left2, left3, left4, left5)


@kernel
def _spread(s, f, cx, cy, clamped):
    """Fill ``polygon`` with the pressure of a foot about its CoP over the vertices ``clamped``; return its points."""
    n = 0
    for i in range(f.vertices):
        if clamped == 0 or i >= 63 or (clamped >> i) & 1 == 1:
            s.polygon[n, 0] = f.offsets[i, 0] - cx
            s.polygon[n, 1] = f.offsets[i, 1] - cy
            s.polygon[n, 2] = 1.0
            n += 1
    return find_pressure(s, n) if n > 2 else line_pressure(s) if n == 2 else n
