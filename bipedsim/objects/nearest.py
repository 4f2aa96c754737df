"""Nearest points of two convex shapes by the algorithm of Gilbert, Johnson and Keerthi (1988).

It works with slightly smaller shapes, which are apart when the shapes themselves are in contact. If these overlap too,
still smaller ones follow. The direction between the nearest points is then that between the middles of the shapes,
which :mod:`bipedsim.objects.hulls` replaces by the normal of a face.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.numerics import Array, Integers, assign, dot, kernel, minus, mul, mul_t
from bipedsim.objects.shapes import BALL, BOX, CYLINDER, ObjectShapes

CORE, SMALLER = 0.005, 3.0
"""Shrinkage of shapes as a fraction of their smallest dimension, and its factor while the smaller shapes overlap."""
ROUNDS = 64
"""Maximum number of iterations."""
CLOSE = 1e-13
"""Possible decrease of the squared distance, as a fraction of it, at which the iteration ends."""
TOUCH = 1e-24
"""Squared distance, relative to that of the centres and sizes, that is only rounding; the shapes then overlap."""
FLAT = 1e-14
"""Determinant of a simplex, relative to its edges, below which a smaller simplex replaces it."""


class Nearest(NamedTuple):
    """Nearest points of two shapes, and the simplex in the difference of the shapes that gives them.

    Attributes:
        corners: (1,) number of corners of the simplex.
        corner: (4, 3) differences of the points [m].
        points: (4, 2, 3) points of both shapes, relative to the second one [m].
        share: (4,) weights of the corners.
        spare, best: (4,) work arrays.
        normal: (3,) unit vector from the second shape to the first.
        at: (2, 3) nearest points of the shrunk shapes, in the world [m].
    """

    corners: Annotated[Integers, 1]
    corner: Annotated[Array, 4, 3]
    points: Annotated[Array, 4, 2, 3]
    share: Annotated[Array, 4]
    spare: Annotated[Array, 4]
    best: Annotated[Array, 4]
    normal: Annotated[Array, 3]
    at: Annotated[Array, 2, 3]


@kernel
def find_nearest(o: Nearest, sh: ObjectShapes, i: int, j: int) -> float:
    """Fill the nearest points of shapes ``i`` and ``j``, and the direction from ``j`` to ``i``.

    Returns:
        A distance [m] that the shapes have at least; negative if they may overlap.
    """
    core = CORE
    while not _iterate(o, sh, i, j, core):
        core *= SMALLER
    return dot(minus(o.at[0], o.at[1]), o.normal) - core * (sh.bound[i] + sh.bound[j])


@kernel
def _iterate(o: Nearest, sh: ObjectShapes, i: int, j: int, core: float) -> bool:
    """Fill the nearest points of shapes that are shrunk by ``core``; return False if they overlap."""
    between = minus(sh.p[i], sh.p[j])
    if core >= 1.0 or dot(between, between) == 0.0:
        # Only shapes with the same centre come here; any direction is as good.
        length = np.sqrt(dot(between, between))
        by = 1.0 / length if length > 0.0 else 0.0
        assign(o.normal, (by * between[0], by * between[1], by * between[2] if by > 0.0 else 1.0))
        assign(o.at[0], sh.p[i])
        assign(o.at[1], sh.p[j])
        return True
    o.corners[0] = 0
    d = between
    square = np.inf
    scale = dot(between, between) + sh.bound[i] ** 2 + sh.bound[j] ** 2
    for _ in range(ROUNDS):
        n = o.corners[0]
        one, two = _extreme(sh, i, (-d[0], -d[1], -d[2]), core), _extreme(sh, j, d, core)
        one = (one[0] + between[0], one[1] + between[1], one[2] + between[2])
        w = minus(one, two)
        if n > 0 and (square - dot(d, w) <= CLOSE * square or _is_known(o, w)):
            break
        assign(o.corner[n], w)
        assign(o.points[n, 0], one)
        assign(o.points[n, 1], two)
        o.corners[0] = n + 1
        if not _reduce(o, square):
            return False
        d = _weighted(o)
        smaller = dot(d, d)
        if smaller <= TOUCH * scale:
            return False
        if not smaller < square:
            break
        square = smaller
    length = np.sqrt(dot(d, d))
    assign(o.normal, (d[0] / length, d[1] / length, d[2] / length))
    for side in range(2):
        s = j if side else i
        out = (1.0 - core) * sh.size[s, 0] * (2.0 * side - 1.0) if sh.kind[s] == BALL else 0.0
        for x in range(3):
            total = sh.p[j, x] + out * o.normal[x]
            for k in range(o.corners[0]):
                total += o.share[k] * o.points[k, side, x]
            o.at[side, x] = total
    return True


@kernel
def _extreme(sh: ObjectShapes, i: int, d, core: float):  # type: ignore[no-untyped-def]
    """Return the point of shape ``i``, shrunk by ``core``, farthest along ``d`` (3,), relative to its centre [m].

    A ball is its centre, and its radius is added to the nearest points.
    """
    size = sh.size[i]
    if sh.kind[i] == BALL:
        return 0.0, 0.0, 0.0
    x, y, z = mul_t(sh.R[i], d)
    if sh.kind[i] == BOX:
        less = core * min(size[0], size[1], size[2])
        hx, hy, hz = size[0] - less, size[1] - less, size[2] - less
        return mul(sh.R[i], (hx if x >= 0.0 else -hx, hy if y >= 0.0 else -hy, hz if z >= 0.0 else -hz))
    if sh.kind[i] == CYLINDER:
        less = core * min(size[0], size[1])
        across = np.sqrt(x * x + y * y)
        r = (size[0] - less) / across if across > 0.0 else 0.0
        return mul(sh.R[i], (r * x, r * y, size[1] - less if z >= 0.0 else less - size[1]))
    far = -np.inf
    at = 0
    for k in range(sh.n_vertices[i]):
        along = sh.vertices[i, k, 0] * x + sh.vertices[i, k, 1] * y + sh.vertices[i, k, 2] * z
        if along > far:
            far, at = along, k
    point = mul(sh.R[i], sh.vertices[i, at])
    return (1.0 - core) * point[0], (1.0 - core) * point[1], (1.0 - core) * point[2]


@kernel
def _is_known(o: Nearest, w) -> bool:  # type: ignore[no-untyped-def]
    """Return whether ``w`` (3,) is a corner of the simplex already."""
    known = False
    for k in range(o.corners[0]):
        corner = o.corner[k]
        known = known or (corner[0] == w[0] and corner[1] == w[1] and corner[2] == w[2])
    return known


@kernel
def _weighted(o: Nearest) -> tuple[float, float, float]:
    """Return the point of the simplex with the weights ``share``."""
    x = y = z = 0.0
    for k in range(o.corners[0]):
        x += o.share[k] * o.corner[k, 0]
        y += o.share[k] * o.corner[k, 1]
        z += o.share[k] * o.corner[k, 2]
    return x, y, z


@kernel
def _reduce(o: Nearest, nearest: float) -> bool:
    """Reduce the simplex to the part that is nearest to the origin, and fill its weights.

    The last corner is part of it, because it is nearer to the origin than the plane of the others. If it is so only by
    rounding, no part with it is nearer, and the simplex stays as it was without it.

    Args:
        o: The simplex.
        nearest: Squared distance of the simplex without its last corner from the origin [m^2].

    Returns:
        False if the origin is inside.
    """
    last = o.corners[0] - 1
    chosen = 0
    for subset in range(1 << last):
        square = _project(o, subset | (1 << last))
        if square < nearest:
            nearest = square
            chosen = subset | (1 << last)
            for k in range(4):
                o.best[k] = o.spare[k]
    if chosen == 15:
        return False
    if chosen == 0:
        o.corners[0] = last
        return True
    n = 0
    for k in range(last + 1):
        if chosen >> k & 1:
            assign(o.corner[n], o.corner[k])
            for side in range(2):
                assign(o.points[n, side], o.points[k, side])
            o.share[n] = o.best[k]
            n += 1
    o.corners[0] = n
    return True


@kernel
def _project(o: Nearest, subset: int) -> float:
    """Fill ``spare`` with the weights of the point nearest to the origin in the plane of the corners in ``subset``.

    Args:
        o: The simplex.
        subset: Bits of the corners; the highest is the last one of the simplex.

    Returns:
        The squared distance of this point from the origin [m^2], infinite if it is outside of these corners.
    """
    last = o.corners[0] - 1
    base = o.corner[last]
    a = b = c = -1
    for k in range(last):
        if subset >> k & 1:
            if a < 0:
                a = k
            elif b < 0:
                b = k
            else:
                c = k
    for k in range(4):
        o.spare[k] = 0.0
    o.spare[last] = 1.0
    if a < 0:
        return dot(base, base)
    e = minus(o.corner[a], base)
    ee, ew = dot(e, e), -dot(e, base)
    if b < 0:
        s = ew / ee if ee > 0.0 else -1.0
        t = u = 0.0
    else:
        f = minus(o.corner[b], base)
        ff, ef, fw = dot(f, f), dot(e, f), -dot(f, base)
        if c < 0:
            det = ee * ff - ef * ef
            if not det > FLAT * ee * ff:
                return np.inf
            s, t, u = (ew * ff - fw * ef) / det, (ee * fw - ef * ew) / det, 0.0
        else:
            g = minus(o.corner[c], base)
            fg = (f[1] * g[2] - f[2] * g[1], f[2] * g[0] - f[0] * g[2], f[0] * g[1] - f[1] * g[0])
            det = dot(e, fg)
            if not det * det > FLAT * ee * ff * dot(g, g):
                return np.inf
            ge = (g[1] * e[2] - g[2] * e[1], g[2] * e[0] - g[0] * e[2], g[0] * e[1] - g[1] * e[0])
            eh = (e[1] * f[2] - e[2] * f[1], e[2] * f[0] - e[0] * f[2], e[0] * f[1] - e[1] * f[0])
            s, t, u = -dot(base, fg) / det, -dot(base, ge) / det, -dot(base, eh) / det
    one = 1.0 - s - t - u
    if not (s > 0.0 and (b < 0 or t > 0.0) and (c < 0 or u > 0.0) and one > 0.0):
        return np.inf
    o.spare[last] = one
    o.spare[a] = s
    if b >= 0:
        o.spare[b] = t
    if c >= 0:
        o.spare[c] = u
        return 0.0
    x = y = z = 0.0
    for k in range(last + 1):
        x += o.spare[k] * o.corner[k, 0]
        y += o.spare[k] * o.corner[k, 1]
        z += o.spare[k] * o.corner[k, 2]
    return x * x + y * y + z * z
