"""Coulomb friction of a polygonal foot: what its vertices carry together, force and torsion about the CoP.

Table I of moraud2008 gives a sticking edge or face unlimited torque about the normal. A real sole carries what its
vertices can: vertex i bears the share w_i of the normal force (w_i >= 0, sum 1, balanced at the CoP), sticks with up to
mu w_i f_z, and slides with just that against its own velocity u_i. All forces and torsions that this allows, over
mu f_z, are a convex set, the limit surface (Goyal, Ruina and Papadopoulos, 1991). It is known by its support function,
what a motion V = (u_x, u_y, w_z) of the CoP dissipates: D(V) = sum w_i |u_i|; friction of a foot that slides is its
gradient. D has kinks where the foot turns about one of its vertices; they are rounded: |u_i|^2 is
taken with ``BLUNT``^2 times |(u_x, u_y, c w_z)|^2 more, which a slip without spin does not notice.
All here is in (u_x, u_y, c w_z) and (f_x, f_y, torsion / c), c = sum w_i |p_i - CoP|.
"""

from __future__ import annotations

import numpy as np

from bipedsim.numerics import kernel

UNLOADED = 1e-12
"""Friction [N.s] of a foot that carries nothing, for the direction of its slip."""
BLUNT = 1e-4
"""A vertex about which the foot turns is taken to move by this much beside the others."""
_SCALE = 1.0 / np.sqrt(1.0 + BLUNT * BLUNT)
TURNS = 50
"""Most turns of a search on the limit surface, which takes some three."""
EXACT = 1e-12
"""Where such a search ends, as a share of the friction."""


@kernel
def _along(vertices, i: int, j: int, x: float, y: float):
    """Return how far along the edge from ``i`` to ``j`` (x, y) is, at most to its ends, and its length [m]."""
    ex = vertices[j, 0] - vertices[i, 0]
    ey = vertices[j, 1] - vertices[i, 1]
    length = np.sqrt(ex * ex + ey * ey)
    s = ((x - vertices[i, 0]) * ex + (y - vertices[i, 1]) * ey) / length
    return min(max(s, 0.0), length), length


@kernel
def _wachspress(i: int, n: int, vertices, x: float, y: float) -> float:
    """Return the weight of vertex ``i`` at (x, y), not normalised; beyond an edge, that of a place just inside it.

    Wachspress' weights: positive, smooth, balanced at the CoP, linear on the edges.
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
    """Fill ``shares`` with what each clamped vertex bears and where it is, and return c [m].

    Args:
        first, count: Clamped vertices, ``count`` of them from ``first`` on.
        n: Number of vertices of the sole.
        vertices: (N, 2) in the sole frame [m].
        R: (3, 3) sole axes in ground axes.
        cop: (2,) CoP in the sole frame [m].
        shares: (N, 3) out, first ``count`` rows: w_i, and the way along the ground from the CoP to the vertex, over c.
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
    # The mean is the CoP itself while that is inside; beyond, it stays on the polygon, and so does the limit.
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
    """Return a bound of :func:`gauge` of a torsion without force; with the force's magnitude it is one of both.

    Friction across the arm of each vertex and in proportion to it balances, if the farthest one bears its share.
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

    The first is A = sum w_i Q_i / |u_i| with |u_i|^2 = V Q_i V: the parabola of that curvature that touches D at V lies
    above it. The second is what the Hessian of D has less.
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
def _solve(a, d, b):
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
def _minus(a, b):
    return a[0] - b[0], a[1] - b[1], a[2] - b[2], a[3] - b[3], a[4] - b[4], a[5] - b[5]


@kernel
def _dot(a, b) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@kernel
def _reach(x, V):
    """Return V at the length at which x.V = 1."""
    size = 1.0 / _dot(x, V)
    return V[0] * size, V[1] * size, V[2] * size


@kernel
def gauge(x, shares, count: int, enough: float):
    """Return how far out the friction ``x`` is, 1 on the limit surface and more beyond it, and the motion it stops.

    The largest of x.V / D(V): Newton's method for the least D under x.V = 1, and the parabola above D where that does
    not fall. Any V bounds it from below, and the forces of the vertices under the parabola from above; the search ends
    when it is known on which side of ``enough`` it is.

    Args:
        x: (3,) friction (f_x, f_y, torsion / c) over mu f_z, not zero.
        shares, count: As :func:`share_out` has them.
        enough: As said; infinite for the gauge itself.
    """
    V = _reach(x, x)
    D, s, a, b = _dissipation(V, shares, count)
    for _ in range(TURNS):
        if D * enough < 1.0:
            break
        # Next to nothing, which makes the matrices regular where all vertices are on a line.
        tiny = 1e-14 * a[0], 1e-14 * a[0], 1e-14 * a[0]
        above = _solve(a, tiny, x)
        if _most(above, V, shares, count) <= enough < np.inf:
            break
        above = _reach(x, above)
        # Under x.V = 1 what is added along x changes nothing but that the matrix is regular.
        h = _minus(a, b)
        h = (h[0] + D * x[0] * x[0], h[1] + D * x[0] * x[1], h[2] + D * x[1] * x[1],
             h[3] + D * x[0] * x[2], h[4] + D * x[1] * x[2], h[5] + D * x[2] * x[2])  # fmt: skip
        back = _solve(h, tiny, s)
        along = _solve(h, tiny, x)
        turn = _dot(x, back) / _dot(x, along)
        step = turn * along[0] - back[0], turn * along[1] - back[1], turn * along[2] - back[2]
        W = V
        least = D
        share = 1.0
        for _ in range(4):
            W = _reach(x, (V[0] + share * step[0], V[1] + share * step[1], V[2] + share * step[2]))
            D, s, a, b = _dissipation(W, shares, count)
            if least > D:
                break
            share *= 0.125
        if not least > D:
            W = _reach(x, _pivot(V, shares, count))
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
    """Return the motion about the vertex that moves least: next to a kink, Newton's method leaps over it."""
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
def _most(W, V, shares, count: int) -> float:
    """Return the largest |u_i(W)| / |u_i(V)|: under the parabola at V vertex i bears that much of its friction."""
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
    """Return the friction (3,) of the limit surface nearest to ``x``, and whether that is ``x`` itself, inside it.

    Nearest in the metric 1 / d: s = x - d V with the V at which D(V) + sum d V^2 / 2 - x.V is least. With x = s + d V
    that turns a guess s of the friction of a foot that moves with V towards the true one, regular at V = 0.

    Args:
        x: (3,) as in :func:`gauge`.
        d: (3,) of (u_x, u_y, c w_z), each > 0.
        V: (3,) guess.
        shares, count: As :func:`share_out` has them.
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
    rest, size = _rest(x, d, V, s)
    for _ in range(TURNS):
        if size <= goal:
            break
        step = _solve(_minus(a, b), d, rest)
        above = _solve(a, d, x)
        before = V
        V = V[0] + step[0], V[1] + step[1], V[2] + step[2]
        D, s, a, b = _dissipation(V, shares, count)
        value = D + _parabola(d, V) - _dot(x, V)
        last = size
        rest, size = _rest(x, d, V, s)
        # Near the end the value falls by less than its rounding.
        if not (value < least or size < 0.5 * last):
            P = _pivot(before, shares, count)
            D, s, a, b = _dissipation(P, shares, count)
            along = _dot(x, P)
            length = np.sign(along) * max(abs(along) - D, 0.0) / (2.0 * _parabola(d, P))
            V = P[0] * length, P[1] * length, P[2] * length
            D, s, a, b = _dissipation(V, shares, count)
            value = D + _parabola(d, V) - _dot(x, V)
            rest, size = _rest(x, d, V, s)
        if not (value < least or size < 0.5 * last):
            V = above
            D, s, a, b = _dissipation(V, shares, count)
            value = D + _parabola(d, V) - _dot(x, V)
            rest, size = _rest(x, d, V, s)
        least = min(value, least)
    return s, False


@kernel
def _parabola(d, V) -> float:
    return 0.5 * (d[0] * V[0] * V[0] + d[1] * V[1] * V[1] + d[2] * V[2] * V[2])


@kernel
def _rest(x, d, V, s):
    """Return x - d V - s, and the sum of its magnitudes."""
    rest = x[0] - d[0] * V[0] - s[0], x[1] - d[1] * V[1] - s[1], x[2] - d[2] * V[2] - s[2]
    return rest, abs(rest[0]) + abs(rest[1]) + abs(rest[2])
