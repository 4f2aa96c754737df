"""Compute the pressure under a foot from its wrench, and integrals of the pressure over the surface of a plate."""

from __future__ import annotations

import numpy as np

from bipedsim.numerics import kernel
from bipedsim.plates.surfaces import REACH, Surfaces, local

LEVEL = 1e-3
"""Maximum sine of the angle between a plate and the ground plane under the foot."""
ROUNDS = 60
"""Maximum number of iterations for the pressure. About four suffice; near an edge, each leaves 2/3 of the region."""
SETTLED = 1e-11
"""Relative change of the pressure and of its slopes that ends the iteration."""
LEAST_AREA = 1e-12
"""Area below which a polygon is empty [m^2]."""


@kernel
def find_pressure(s: Surfaces, n: int) -> int:
    """Fill the pressure at the points of ``polygon`` for a resultant of 1 at (0, 0); return the number of points.

    Newton's method repeats two steps until the region is constant. The first finds the linear function with the right
    resultant over the region. The second reduces the region to the part where this function is positive. The polygon
    becomes this region. The result is 0 if there is none, because the resultant is outside.
    """
    for i in range(n):
        for a in range(3):
            s.spare[i, a] = s.polygon[i, a]
    m = n
    a0 = b0 = c0 = 0.0
    for step in range(ROUNDS):
        area, sx, sy, sxx, sxy, syy = _moments(s.polygon, m)
        if not area > LEAST_AREA:
            return 0
        M = s.system
        M[0, 0], M[0, 1], M[0, 2], M[0, 3] = area, sx, sy, 1.0
        M[1, 0], M[1, 1], M[1, 2], M[1, 3] = sx, sxx, sxy, 0.0
        M[2, 0], M[2, 1], M[2, 2], M[2, 3] = sy, sxy, syy, 0.0
        if not _solve3(M):
            return 0
        a, b, c = M[0, 3], M[1, 3], M[2, 3]
        for i in range(n):
            s.spare[i, 2] = a + b * s.spare[i, 0] + c * s.spare[i, 1]
        m = _keep_positive(s.spare, n, s.polygon)
        # Slopes are large near an edge, and so are their rounding errors.
        slope = abs(b) + abs(c)
        if step > 0 and abs(a - a0) <= SETTLED * abs(a) and abs(b - b0) + abs(c - c0) <= SETTLED * slope:
            return m
        a0, b0, c0 = a, b, c
    return 0


@kernel
def _solve3(M):
    """Solve three equations (3, 4) in place by elimination with pivoting; return False for a singular matrix."""
    for i in range(3):
        best = i
        for r in range(i + 1, 3):
            if abs(M[r, i]) > abs(M[best, i]):
                best = r
        if M[best, i] == 0.0:
            return False
        for c in range(4):
            M[i, c], M[best, c] = M[best, c], M[i, c]
        for r in range(3):
            if r != i:
                factor = M[r, i] / M[i, i]
                for c in range(i, 4):
                    M[r, c] -= factor * M[i, c]
    for i in range(3):
        M[i, 3] /= M[i, i]
    return True


@kernel
def _moments(points, n):
    """Return area, first and second moments of a counter-clockwise polygon from a fan of triangles."""
    area = sx = sy = sxx = sxy = syy = 0.0
    for i in range(1, n - 1):
        x0, y0 = points[0, 0], points[0, 1]
        x1, y1 = points[i, 0], points[i, 1]
        x2, y2 = points[i + 1, 0], points[i + 1, 1]
        A = 0.5 * abs((x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0))
        X = x0 + x1 + x2
        Y = y0 + y1 + y2
        area += A
        sx += A * X / 3.0
        sy += A * Y / 3.0
        sxx += A * (X * X + x0 * x0 + x1 * x1 + x2 * x2) / 12.0
        sxy += A * (X * Y + x0 * y0 + x1 * y1 + x2 * y2) / 12.0
        syy += A * (Y * Y + y0 * y0 + y1 * y1 + y2 * y2) / 12.0
    return area, sx, sy, sxx, sxy, syy


@kernel
def _keep_positive(points, n, out):
    """Fill ``out`` with the part of a polygon or line with non-negative third number; return the number of points."""
    m = 0
    for i in range(n if n > 2 else n - 1):
        j = i + 1 if i + 1 < n else 0
        m = _edge(points, i, j, points[i, 2], points[j, 2], out, m)
    if n == 2 and points[1, 2] >= 0.0:
        for a in range(3):
            out[m, a] = points[1, a]
        m += 1
    return m


@kernel
def _edge(points, i, j, di, dj, out, m):
    """Add the points of an edge to ``out`` where the distance ``d`` is not negative; return the number of points."""
    if di >= 0.0:
        for a in range(3):
            out[m, a] = points[i, a]
        m += 1
    if (di > 0.0 and dj < 0.0) or (di < 0.0 and dj > 0.0):
        t = di / (di - dj)
        for a in range(3):
            out[m, a] = points[i, a] + t * (points[j, a] - points[i, a])
        m += 1
    return m


@kernel
def line_pressure(s):
    """Fill the pressure along the line between the two points of ``polygon`` for a resultant of 1 at (0, 0).

    Return the number of points; 0 if the resultant is not on the line.
    """
    P = s.polygon
    ex, ey = P[1, 0] - P[0, 0], P[1, 1] - P[0, 1]
    length = np.hypot(ex, ey)
    if length == 0.0:
        return 0
    ex, ey = ex / length, ey / length
    # c is the distance of the resultant from the first end.
    c = -(P[0, 0] * ex + P[0, 1] * ey)
    if not 0.0 < c < length:
        return 0
    begin, end = 0.0, length
    if 3.0 * c < length:
        end = 3.0 * c
        first, second = 2.0 / end, 0.0
    elif 3.0 * (length - c) < length:
        begin = length - 3.0 * (length - c)
        first, second = 0.0, 2.0 / (length - begin)
    else:
        first = (4.0 - 6.0 * c / length) / length
        second = (6.0 * c / length - 2.0) / length
    for i in range(2):
        along = (begin if i == 0 else end) - c
        P[i, 0] = along * ex
        P[i, 1] = along * ey
        P[i, 2] = first if i == 0 else second
    return 2


@kernel
def clip_by_plate(s, f, p, n, cx, cy, height):
    """Fill ``piece`` with the part of ``polygon`` on plate ``p``; return the number of points."""
    A, R = s.axes[p], f.axes
    if abs(A[0, 2] * R[0, 2] + A[1, 2] * R[1, 2] + A[2, 2] * R[2, 2]) < 1.0 - LEVEL * LEVEL:
        return 0
    u, v, w = local(s, p, f.origin[0], f.origin[1], f.origin[2])
    # Distances to the borders are linear in the foot's coordinates: u = u0 + ux x + uy y.
    ux = A[0, 0] * R[0, 0] + A[1, 0] * R[1, 0] + A[2, 0] * R[2, 0]
    uy = A[0, 0] * R[0, 1] + A[1, 0] * R[1, 1] + A[2, 0] * R[2, 1]
    uz = A[0, 0] * R[0, 2] + A[1, 0] * R[1, 2] + A[2, 0] * R[2, 2]
    vx = A[0, 1] * R[0, 0] + A[1, 1] * R[1, 0] + A[2, 1] * R[2, 0]
    vy = A[0, 1] * R[0, 1] + A[1, 1] * R[1, 1] + A[2, 1] * R[2, 1]
    vz = A[0, 1] * R[0, 2] + A[1, 1] * R[1, 2] + A[2, 1] * R[2, 2]
    wz = A[0, 2] * R[0, 2] + A[1, 2] * R[1, 2] + A[2, 2] * R[2, 2]
    if abs(w + wz * height) > REACH:
        return 0
    u0 = u + ux * cx + uy * cy + uz * height
    v0 = v + vx * cx + vy * cy + vz * height
    m = n
    for i in range(n):
        for a in range(3):
            s.piece[i, a] = s.polygon[i, a]
    for side in range(4):
        sign = 1.0 if side % 2 == 0 else -1.0
        along_x = side < 2
        d0 = s.half[p, 0 if along_x else 1] - sign * (u0 if along_x else v0)
        dx = -sign * (ux if along_x else vx)
        dy = -sign * (uy if along_x else vy)
        for i in range(m):
            for a in range(3):
                s.spare[i, a] = s.piece[i, a]
        total = 0
        for i in range(m if m > 2 else m - 1):
            j = i + 1 if i + 1 < m else 0
            di = d0 + dx * s.spare[i, 0] + dy * s.spare[i, 1]
            dj = d0 + dx * s.spare[j, 0] + dy * s.spare[j, 1]
            total = _edge(s.spare, i, j, di, dj, s.piece, total)
        if m == 2 and d0 + dx * s.spare[1, 0] + dy * s.spare[1, 1] >= 0.0:
            for a in range(3):
                s.piece[total, a] = s.spare[1, a]
            total += 1
        m = total
        if m < 2:
            return 0
    return m


@kernel
def integrate(s, points, n, into):
    """Fill share and moments of entry ``into`` with pressure integrals over a polygon or line; return the polar moment.

    Let f, g, h be linear functions with sums F, G, H over the corners of a triangle of area A. The integral of f g is
    A / 12 (F G + sum f g). That of f g h is A / 60 (F G H + F sum g h + G sum f h + H sum f g + 2 sum f g h).
    """
    w = mx = my = polar = 0.0
    if n == 2:
        length = np.hypot(points[1, 0] - points[0, 0], points[1, 1] - points[0, 1])
        x0, y0, p0 = points[0, 0], points[0, 1], points[0, 2]
        x1, y1, p1 = points[1, 0], points[1, 1], points[1, 2]
        w = 0.5 * length * (p0 + p1)
        mx = length / 6.0 * (2.0 * p0 * x0 + p0 * x1 + p1 * x0 + 2.0 * p1 * x1)
        my = length / 6.0 * (2.0 * p0 * y0 + p0 * y1 + p1 * y0 + 2.0 * p1 * y1)
        r00 = x0 * x0 + y0 * y0
        r01 = x0 * x1 + y0 * y1
        r11 = x1 * x1 + y1 * y1
        polar = length / 12.0 * (p0 * (3.0 * r00 + 2.0 * r01 + r11) + p1 * (r00 + 2.0 * r01 + 3.0 * r11))
    for i in range(1, n - 1 if n > 2 else 0):
        x0, y0, p0 = points[0, 0], points[0, 1], points[0, 2]
        x1, y1, p1 = points[i, 0], points[i, 1], points[i, 2]
        x2, y2, p2 = points[i + 1, 0], points[i + 1, 1], points[i + 1, 2]
        A = 0.5 * abs((x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0))
        P = p0 + p1 + p2
        X = x0 + x1 + x2
        Y = y0 + y1 + y2
        px = p0 * x0 + p1 * x1 + p2 * x2
        py = p0 * y0 + p1 * y1 + p2 * y2
        xx = x0 * x0 + x1 * x1 + x2 * x2
        yy = y0 * y0 + y1 * y1 + y2 * y2
        w += A * P / 3.0
        mx += A * (P * X + px) / 12.0
        my += A * (P * Y + py) / 12.0
        pxx = p0 * x0 * x0 + p1 * x1 * x1 + p2 * x2 * x2
        pyy = p0 * y0 * y0 + p1 * y1 * y1 + p2 * y2 * y2
        polar += A / 60.0 * (P * X * X + P * xx + 2.0 * X * px + 2.0 * pxx)
        polar += A / 60.0 * (P * Y * Y + P * yy + 2.0 * Y * py + 2.0 * pyy)
    s.share[into] = w
    s.moment[into, 0] = mx
    s.moment[into, 1] = my
    s.moment[into, 2] = polar
    return polar
