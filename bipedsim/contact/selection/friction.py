"""Coulomb friction of a polygonal foot: the force and the torsion about the CoP that its vertices provide together.

Table I of moraud2008 allows a sticking edge or face unlimited torque about the normal. A real sole provides the
friction of its vertices. Vertex i bears the share w_i of the normal force (w_i >= 0, sum 1, balanced at the CoP). It
sticks with up to mu w_i f_z, and slides with exactly that against its own velocity u_i.

All admissible forces and torsions, divided by mu f_z, form a convex set, the limit surface (Goyal, Ruina and
Papadopoulos, 1991). Its support function is the dissipation D(V) = sum w_i |u_i| of a motion V = (u_x, u_y, w_z) of the
CoP. Friction of a sliding foot is the gradient of D. D has kinks where the foot turns about one of its vertices. They
are rounded: |u_i|^2 is replaced by |u_i|^2 + ``BLUNT``^2 |(u_x, u_y, c w_z)|^2. This does not change a slip
without spin.

This module uses the coordinates (u_x, u_y, c w_z) and (f_x, f_y, torsion / c), with c = sum w_i |p_i - CoP|.
"""

from __future__ import annotations

import numpy as np

from bipedsim.numerics import kernel

UNLOADED = 1e-12
"""Friction [N.s] of a foot without load, used for the direction of its slip."""
BLUNT = 1e-4
"""Speed at which the vertex at the centre of rotation is taken to move, relative to the others."""
_SCALE = 1.0 / np.sqrt(1.0 + BLUNT * BLUNT)
TURNS = 50
"""Maximum number of iterations of a search on the limit surface; a typical search takes three."""
EXACT = 1e-12
"""Tolerance of such a search, as a fraction of the friction."""


@kernel
def _along(vertices, i: int, j: int, x: float, y: float):
    """Return the position of (x, y) along the edge from ``i`` to ``j``, clamped to its ends, and its length [m]."""
    ex = vertices[j, 0] - vertices[i, 0]
    ey = vertices[j, 1] - vertices[i, 1]
    length = np.sqrt(ex * ex + ey * ey)
    s = ((x - vertices[i, 0]) * ex + (y - vertices[i, 1]) * ey) / length
    return min(max(s, 0.0), length), length


@kernel
def _wachspress(i: int, n: int, vertices, x: float, y: float) -> float:
    """Return the weight of vertex ``i`` at (x, y), not normalised.

    Outside an edge it is that of a point just inside it.

    Wachspress' weights are positive, smooth, balanced at the CoP and linear on the edges.
    """
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
def share_out(first: int, count: int, n: int, vertices, R, cop, shares) -> float:
    """Fill ``shares`` with the load share and position of each clamped vertex, and return c [m].

    Args:
        first: First clamped vertex.
        count: Number of clamped vertices.
        n: Number of vertices of the sole.
        vertices: (N, 2) in the sole frame [m].
        R: (3, 3) sole axes in ground axes.
        cop: (2,) CoP in the sole frame [m].
        shares: (N, 3) output, first ``count`` rows: w_i, and the vector along the ground from the CoP to the vertex,
            divided by c.
    """
    if count == 2:
        s, length = _along(vertices, first, (first + 1) % n, cop[0], cop[1])
        shares[0, 0] = 1.0 - s / length
        shares[1, 0] = s / length
    else:
        total = 0.0
        for j in range(count):
            shares[j, 0] = 1.0 if count == 1 else _wachspress(j, n, vertices, cop[0], cop[1])
            total += shares[j, 0]
        for j in range(count):
            shares[j, 0] /= total
    # Inside the polygon the mean is the CoP. Outside, the mean stays on the polygon, and so does the limit.
    mean_x = 0.0
    mean_y = 0.0
    for j in range(count):
        i = (first + j) % n
        mean_x += shares[j, 0] * vertices[i, 0]
        mean_y += shares[j, 0] * vertices[i, 1]
    c = 0.0
    for j in range(count):
        i = (first + j) % n
        x = vertices[i, 0] - mean_x
        y = vertices[i, 1] - mean_y
        shares[j, 1] = R[0, 0] * x + R[0, 1] * y
        shares[j, 2] = R[1, 0] * x + R[1, 1] * y
        c += shares[j, 0] * np.sqrt(shares[j, 1] ** 2 + shares[j, 2] ** 2)
    scale = 1.0 / c if c > 0.0 else 0.0
    for j in range(count):
        shares[j, 1] *= scale
        shares[j, 2] *= scale
    return c


@kernel
def twist(shares, count: int) -> float:
    """Return an upper bound of :func:`gauge` for a pure torsion; adding the force's magnitude gives a bound for both.

    The bound assumes friction across the arm of each vertex and in proportion to the arm, limited at the farthest one.
    """
    square = farthest = 0.0
    for j in range(count):
        d = shares[j, 1] ** 2 + shares[j, 2] ** 2
        square += shares[j, 0] * d
        farthest = max(farthest, d)
    return np.sqrt(farthest) / square if square > 0.0 else 0.0


@kernel
def _dissipation(V, shares, count: int):
    """Return D(V) [m/s], its gradient, and two matrices (xx, xy, yy, xw, yw, ww).

    The first is A = sum w_i Q_i / |u_i| with |u_i|^2 = V Q_i V. The parabola with this curvature that touches D at V is
    above D. The second is A minus the Hessian of D.
    """
    x, y, w = V
    blunt = BLUNT * BLUNT
    D = sx = sy = sw = 0.0
    axx = axw = ayw = aww = 0.0
    bxx = bxy = byy = bxw = byw = bww = 0.0
    for j in range(count):
        rx = shares[j, 1]
        ry = shares[j, 2]
        ux = x - w * ry
        uy = y + w * rx
        gx = ux + blunt * x
        gy = uy + blunt * y
        gw = rx * uy - ry * ux + blunt * w
        square = gx * x + gy * y + gw * w
        if square <= 0.0:
            continue
        share = _SCALE * shares[j, 0] / np.sqrt(square)
        D += share * square
        sx += share * gx
        sy += share * gy
        sw += share * gw
        axx += share
        axw -= share * ry
        ayw += share * rx
        aww += share * (rx * rx + ry * ry + blunt)
        share /= square
        bxx += share * gx * gx
        bxy += share * gx * gy
        byy += share * gy * gy
        bxw += share * gx * gw
        byw += share * gy * gw
        bww += share * gw * gw
    axx *= 1.0 + blunt
    return D, (sx, sy, sw), (axx, 0.0, axx, axw, ayw, aww), (bxx, bxy, byy, bxw, byw, bww)


@kernel
def _solve_symmetric(a, d, b):
    """Return the x (3,) of (A + diag(d)) x = b for a symmetric positive definite A (xx, xy, yy, xw, yw, ww)."""
    xx = a[0] + d[0]
    p = a[1] / xx
    q = a[3] / xx
    yy = a[2] + d[1] - p * a[1]
    yw = a[4] - q * a[1]
    r = yw / yy
    y = b[1] - p * b[0]
    w = (b[2] - q * b[0] - r * y) / (a[5] + d[2] - q * a[3] - r * yw)
    y = y / yy - r * w
    return b[0] / xx - p * y - q * w, y, w


@kernel
def _difference(a, b):
    return a[0] - b[0], a[1] - b[1], a[2] - b[2], a[3] - b[3], a[4] - b[4], a[5] - b[5]


@kernel
def _dot(a, b) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@kernel
def _normalise(x, V):
    """Return V scaled so that x.V = 1."""
    size = 1.0 / _dot(x, V)
    return V[0] * size, V[1] * size, V[2] * size


@kernel
def gauge(x, shares, count: int, enough: float):
    """Return the gauge of the friction ``x`` (1 on the limit surface, more beyond it) and the motion that it opposes.

    The gauge is the largest x.V / D(V). Newton's method minimises D subject to x.V = 1. Where it does not
    descend, the parabola above D is minimised instead. Any V gives a lower bound, and the vertex forces under the
    parabola give an upper bound. The search ends when it is known on which side of ``enough`` the gauge is.

    Args:
        x: (3,) friction (f_x, f_y, torsion / c) over mu f_z, not zero.
        shares, count: As filled by :func:`share_out`.
        enough: Value to compare with; infinite to compute the gauge itself.
    """
    V = _normalise(x, x)
    D, s, a, b = _dissipation(V, shares, count)
    for _ in range(TURNS):
        if D * enough < 1.0:
            break
        # A tiny shift makes the matrices regular where all vertices are on a line.
        tiny = 1e-14 * a[0], 1e-14 * a[0], 1e-14 * a[0]
        above = _solve_symmetric(a, tiny, x)
        if _largest_ratio(above, V, shares, count) <= enough < np.inf:
            break
        above = _normalise(x, above)
        # With x.V = 1, the term along x has no effect except that it makes the matrix regular.
        h = _difference(a, b)
        h = (h[0] + D * x[0] * x[0], h[1] + D * x[0] * x[1], h[2] + D * x[1] * x[1],
             h[3] + D * x[0] * x[2], h[4] + D * x[1] * x[2], h[5] + D * x[2] * x[2])  # fmt: skip
        back = _solve_symmetric(h, tiny, s)
        along = _solve_symmetric(h, tiny, x)
        turn = _dot(x, back) / _dot(x, along)
        step = turn * along[0] - back[0], turn * along[1] - back[1], turn * along[2] - back[2]
        W = V
        least = D
        share = 1.0
        for _ in range(4):
            W = _normalise(x, (V[0] + share * step[0], V[1] + share * step[1], V[2] + share * step[2]))
            D, s, a, b = _dissipation(W, shares, count)
            if least > D:
                break
            share *= 0.125
        if not least > D:
            W = _normalise(x, _pivot(V, shares, count))
            D, s, a, b = _dissipation(W, shares, count)
        if not least > D:
            W = above
            D, s, a, b = _dissipation(W, shares, count)
        V = W
        if least * (1.0 - EXACT) <= D:
            break
    return 1.0 / D, V


@kernel
def _pivot(V, shares, count: int):
    """Return the rotation about the vertex that moves slowest; near a kink, Newton's method jumps over it."""
    least = np.inf
    x = y = 0.0
    for j in range(count):
        slip = (V[0] - V[2] * shares[j, 2]) ** 2 + (V[1] + V[2] * shares[j, 1]) ** 2
        if slip < least:
            least = slip
            x = shares[j, 1]
            y = shares[j, 2]
    return y, -x, 1.0


@kernel
def _largest_ratio(W, V, shares, count: int) -> float:
    """Return the largest |u_i(W)| / |u_i(V)|: the largest used fraction of friction under the parabola at V."""
    blunt = BLUNT * BLUNT
    most = 0.0
    for j in range(count):
        rx = shares[j, 1]
        ry = shares[j, 2]
        above = (W[0] - W[2] * ry) ** 2 + (W[1] + W[2] * rx) ** 2 + blunt * _dot(W, W)
        below = (V[0] - V[2] * ry) ** 2 + (V[1] + V[2] * rx) ** 2 + blunt * _dot(V, V)
        most = max(most, above / below)
    return np.sqrt(most)


@kernel
def friction_at(x, d, V, shares, count: int):
    """Return the friction (3,) of the limit surface nearest to ``x``, and False; return ``x`` and True if it is inside.

    The distance uses the metric 1 / d. The result is s = x - d V, where V minimises D(V) + sum d V^2 / 2 - x.V. With
    x = s + d V, this updates an estimate s of the friction of a foot that moves with V. It is regular at V = 0.

    Args:
        x: (3,) as in :func:`gauge`.
        d: (3,) metric for (u_x, u_y, c w_z), each > 0.
        V: (3,) initial value.
        shares, count: As filled by :func:`share_out`.
    """
    D, s, a, b = _dissipation(V, shares, count)
    best = _dot(x, V) - D
    if not best > 0.0:
        out, V = gauge(x, shares, count, 1.0) if _dot(x, x) > 0.0 else (0.0, V)
        if out <= 1.0:
            return x, True
        D, s, a, b = _dissipation(V, shares, count)
        best = _dot(x, V) - D
    size = 0.5 * best / _parabola(d, V)
    V = V[0] * size, V[1] * size, V[2] * size
    a = a[0] / size, a[1] / size, a[2] / size, a[3] / size, a[4] / size, a[5] / size
    b = b[0] / size, b[1] / size, b[2] / size, b[3] / size, b[4] / size, b[5] / size
    least = -0.5 * best * size
    goal = EXACT * (1.0 + np.sqrt(_dot(x, x)))
    rest, size = _residual(x, d, V, s)
    for _ in range(TURNS):
        if size <= goal:
            break
        step = _solve_symmetric(_difference(a, b), d, rest)
        above = _solve_symmetric(a, d, x)
        before = V
        V = V[0] + step[0], V[1] + step[1], V[2] + step[2]
        D, s, a, b = _dissipation(V, shares, count)
        value = D + _parabola(d, V) - _dot(x, V)
        last = size
        rest, size = _residual(x, d, V, s)
        # Near convergence, the value decreases by less than its rounding error.
        if not (value < least or size < 0.5 * last):
            P = _pivot(before, shares, count)
            D, s, a, b = _dissipation(P, shares, count)
            along = _dot(x, P)
            length = np.sign(along) * max(abs(along) - D, 0.0) / (2.0 * _parabola(d, P))
            V = P[0] * length, P[1] * length, P[2] * length
            D, s, a, b = _dissipation(V, shares, count)
            value = D + _parabola(d, V) - _dot(x, V)
            rest, size = _residual(x, d, V, s)
        if not (value < least or size < 0.5 * last):
            V = above
            D, s, a, b = _dissipation(V, shares, count)
            value = D + _parabola(d, V) - _dot(x, V)
            rest, size = _residual(x, d, V, s)
        least = min(value, least)
    return s, False


@kernel
def _parabola(d, V) -> float:
    return 0.5 * (d[0] * V[0] * V[0] + d[1] * V[1] * V[1] + d[2] * V[2] * V[2])


@kernel
def _residual(x, d, V, s):
    """Return x - d V - s, and the sum of its magnitudes."""
    rest = x[0] - d[0] * V[0] - s[0], x[1] - d[1] * V[1] - s[1], x[2] - d[2] * V[2] - s[2]
    return rest, abs(rest[0]) + abs(rest[1]) + abs(rest[2])
