"""Distribute the ground reaction to force plates: forces at points, and feet that stand on several plates.

A force at a point belongs to the plate whose surface contains the point, else to the floor. A foot whose contact
polygon is on a single plate belongs to this plate. Two rules apply to other feet:

* If the contact model computes forces at vertices, each force belongs to the plate under its vertex.
* If it computes one wrench for the foot, a pressure is distributed over the contact polygon. It is linear in the
  position, not negative, and its resultant is the normal force at the centre of pressure:

      p(x, y) = max(0, a + b x + c y)

  This is a rigid sole on springs that cannot pull (Winkler 1867). On an edge, the same holds along a line; on a vertex,
  the pressure is a force. The shear has the same distribution, and the moment about the normal is distributed as p
  times the distance from the centre of pressure. Each plate gets the integral over its part. The borders clip the
  polygons, and the integrals are exact.

In both cases, the shares of all plates and the floor add up to the wrench of the foot.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bipedsim.numerics import Array, kernel
from bipedsim.plates.pressure import clip_by_plate, find_pressure, integrate, line_pressure
from bipedsim.plates.surfaces import REACH, Surfaces, add_force, plate_at


class Foot(NamedTuple):
    """Contact data of a foot in a step; N is the largest number of vertices.

    Attributes:
        axes: (3, 3) ground axes under the foot as columns t1, t2, n.
        origin: (3,) origin of the sole [m].
        offsets: (N, 3) vertices relative to the origin in these axes [m]; the first ``vertices`` are valid.
        vertices: Number of vertices.
        clamped: Vertices in contact, as bits.
        impulse: (6,) impulse of the ground on the foot at the sole's origin, in these axes [N.s], [N.m.s].
        forces: (M, 3) mean forces on the vertices [N]; M = 0 if unknown.
        at_once: Fraction of the impulse that is an impact.
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
    """Add the ground reaction on a foot to the plates under it."""
    J = f.impulse
    if J[0] == 0.0 and J[1] == 0.0 and J[2] == 0.0 and J[3] == 0.0 and J[4] == 0.0 and J[5] == 0.0:
        return
    total = 0.0
    for i in range(min(f.vertices, f.forces.shape[0])):
        total += f.forces[i, 2]
    if total > 0.0 and J[2] > 0.0:
        _split_by_vertices(s, f, J[2] / total)
        return
    only = _only_plate(s, f)
    if only == -2 and J[2] > 0.0:
        _split_by_pressure(s, f)
        return
    # Without a normal force the pressure is undefined; the origin of the sole then selects the plate.
    if only == -2:
        only = plate_at(s, f.origin[0], f.origin[1], f.origin[2])
    _add_wrench(s, f, only, f.origin, J[:3], J[3:])


@kernel
def _add_wrench(s, f, p, at, j, m):
    """Add an impulse and a moment (3,) at a world point (3,), in the ground axes of a foot, to plate ``p``."""
    R = f.axes
    impulse = (
        R[0, 0] * j[0] + R[0, 1] * j[1] + R[0, 2] * j[2],
        R[1, 0] * j[0] + R[1, 1] * j[1] + R[1, 2] * j[2],
        R[2, 0] * j[0] + R[2, 1] * j[1] + R[2, 2] * j[2],
    )
    moment = (
        R[0, 0] * m[0] + R[0, 1] * m[1] + R[0, 2] * m[2],
        R[1, 0] * m[0] + R[1, 1] * m[1] + R[1, 2] * m[2],
        R[2, 0] * m[0] + R[2, 1] * m[1] + R[2, 2] * m[2],
    )
    add_force(s, p, at, impulse, moment, f.at_once)


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
def _in_contact(f, i):
    """Return whether vertex ``i`` is in contact; True for all vertices if no bit is set, as just after lift-off."""
    return f.clamped == 0 or i >= 63 or (f.clamped >> i) & 1 == 1


@kernel
def _only_plate(s, f):
    """Return the plate under the whole contact polygon, -1 for the floor, -2 for several plates."""
    plate = -3
    x0 = y0 = z0 = np.inf
    x1 = y1 = z1 = -np.inf
    for i in range(f.vertices):
        if not _in_contact(f, i):
            continue
        x, y, z = _world(f, i)
        x0, y0, z0 = min(x0, x), min(y0, y), min(z0, z)
        x1, y1, z1 = max(x1, x), max(y1, y), max(z1, z)
        p = plate_at(s, x, y, z)
        if plate == -3:
            plate = p
        elif plate != p:
            return -2
    if plate == -3:
        return plate_at(s, f.origin[0], f.origin[1], f.origin[2])
    if plate >= 0:
        # Plates and contact polygons are convex, so the whole polygon is on this plate.
        return plate
    # All corners are on the floor, but a plate may be under the middle.
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
def _split_by_vertices(s, f, scale):
    """Add each vertex force times ``scale`` to the plate under it; the plate with most load gets the rounding error."""
    plates = s.centre.shape[0]
    for p in range(plates + 1):
        s.share[p] = 0.0
    J = f.impulse
    rest0, rest1, rest2, rest3, rest4, rest5 = J[0], J[1], J[2], J[3], J[4], J[5]
    for i in range(min(f.vertices, f.forces.shape[0])):
        f0, f1, f2 = scale * f.forces[i, 0], scale * f.forces[i, 1], scale * f.forces[i, 2]
        if f0 == 0.0 and f1 == 0.0 and f2 == 0.0:
            continue
        x, y, z = _world(f, i)
        p = plate_at(s, x, y, z)
        o = f.offsets[i]
        m0, m1, m2 = o[1] * f2 - o[2] * f1, o[2] * f0 - o[0] * f2, o[0] * f1 - o[1] * f0
        _add_wrench(s, f, p, f.origin, (f0, f1, f2), (m0, m1, m2))
        rest0 -= f0
        rest1 -= f1
        rest2 -= f2
        rest3 -= m0
        rest4 -= m1
        rest5 -= m2
        s.share[p if p >= 0 else plates] += f2
    largest = 0
    for p in range(plates + 1):
        if s.share[p] > s.share[largest]:
            largest = p
    loaded = largest if largest < plates else -1
    _add_wrench(s, f, loaded, f.origin, (rest0, rest1, rest2), (rest3, rest4, rest5))


@kernel
def _split_by_pressure(s, f):
    """Distribute the wrench of a foot by pressure; each plate gets its part and the floor the rest."""
    plates = s.centre.shape[0]
    J = f.impulse
    # This is the mean height of the contact polygon above the sole's origin.
    height = 0.0
    touching = 0
    for i in range(f.vertices):
        if _in_contact(f, i):
            height += f.offsets[i, 2]
            touching += 1
    height /= touching
    cx = (height * J[0] - J[4]) / J[2]
    cy = (height * J[1] + J[3]) / J[2]
    twist = J[5] - (cx * J[1] - cy * J[0])
    n = _fill_pressure(s, f, cx, cy, f.clamped)
    if n < 2 and 1 < touching < f.vertices:
        # In a step with several sub-steps, more vertices may have been in contact than in the last one.
        n = _fill_pressure(s, f, cx, cy, 0)
    R = f.axes
    at = (
        f.origin[0] + R[0, 0] * cx + R[0, 1] * cy + R[0, 2] * height,
        f.origin[1] + R[1, 0] * cx + R[1, 1] * cy + R[1, 2] * height,
        f.origin[2] + R[2, 0] * cx + R[2, 1] * cy + R[2, 2] * height,
    )
    cop_plate = plate_at(s, at[0], at[1], at[2])
    polar = 0.0
    for p in range(plates + 1):
        s.share[p] = 0.0
        s.moment[p, 0] = s.moment[p, 1] = s.moment[p, 2] = 0.0
    if n < 2:
        s.fallbacks[0] += 1 if f.vertices > 1 and touching > 1 else 0
        _add_wrench(s, f, cop_plate, at, J, (0.0, 0.0, twist))
        return
    polar = integrate(s, s.polygon, n, plates)
    for p in range(plates):
        m = clip_by_plate(s, f, p, n, cx, cy, height)
        if m >= 2:
            integrate(s, s.piece, m, p)
    k = twist / polar if polar > 0.0 else 0.0
    rest0, rest1, rest2, rest3, rest4, rest5 = J[0], J[1], J[2], 0.0, 0.0, twist
    for p in range(plates):
        if not s.share[p] > 0.0:
            continue
        w, mx, my = s.share[p], s.moment[p, 0], s.moment[p, 1]
        f0, f1, f2 = J[0] * w - k * my, J[1] * w + k * mx, J[2] * w
        m2 = mx * J[1] - my * J[0] + k * s.moment[p, 2]
        _add_wrench(s, f, p, at, (f0, f1, f2), (J[2] * my, -J[2] * mx, m2))
        rest0 -= f0
        rest1 -= f1
        rest2 -= f2
        rest3 -= J[2] * my
        rest4 += J[2] * mx
        rest5 -= m2
    # The rest belongs to the floor. A rest of the size of rounding errors belongs to the plate under the CoP.
    floor_loaded = rest2 > 1e-12 * J[2]
    rest_plate = -1 if floor_loaded or cop_plate < 0 else cop_plate
    _add_wrench(s, f, rest_plate, at, (rest0, rest1, rest2), (rest3, rest4, rest5))


@kernel
def _fill_pressure(s, f, cx, cy, clamped):
    """Fill ``polygon`` with the pressure of a foot about its CoP over vertices ``clamped``; return its point count."""
    n = 0
    for i in range(f.vertices):
        if clamped == 0 or i >= 63 or (clamped >> i) & 1 == 1:
            s.polygon[n, 0] = f.offsets[i, 0] - cx
            s.polygon[n, 1] = f.offsets[i, 1] - cy
            s.polygon[n, 2] = 1.0
            n += 1
    return find_pressure(s, n) if n > 2 else line_pressure(s) if n == 2 else n
