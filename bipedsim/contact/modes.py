"""Contact modes of a polygonal foot: the sets of clamped vertices and the constraints of each.

A foot of N vertices is in one of the modes of Table I of moraud2008: none, one vertex, one edge, or the face. A mode
is an integer: 0 none, 1..N vertex, N+1.. edge (i, i+1), 2N+1 face. N = 1 has no edge; N = 2 has one edge and no face.

The compiled functions work on one foot at a time, in ground axes (t1, t2, n) about the sole origin.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bipedsim.numerics import Array, Integers, kernel, point_velocity

NONE = 0
# Maximum speed of the correction of a penetration [m/s].
RECOVERY = 0.05


def n_modes(n_vertices: int) -> int:
    """Return the number of admissible modes of a foot with ``n_vertices``."""
    return {1: 2, 2: 4}.get(n_vertices, 2 * n_vertices + 2)


def mode_masks(n_vertices: int) -> Integers:
    """Return the admissible modes as masks (n_modes, n_vertices): row ``mode`` has 1 for each clamped vertex."""
    masks = np.zeros((n_modes(n_vertices), n_vertices), dtype=np.int64)
    for i in range(n_vertices):
        masks[1 + i, i] = 1
    if n_vertices == 2:
        masks[3] = 1
    elif n_vertices > 2:
        for i in range(n_vertices):
            masks[1 + n_vertices + i, [i, (i + 1) % n_vertices]] = 1
        masks[2 * n_vertices + 1] = 1
    return masks


def face_mode(n_vertices: int) -> int:
    """Return the mode in which every vertex is clamped."""
    return n_modes(n_vertices) - 1


def mode_parts(mode: int, n_vertices: int) -> tuple[str, ...]:
    """Return the kind of a mode and its vertices: ``none``, ``vertex`` and ``2``, ``edge`` and ``0-1``, ``face``."""
    if mode == NONE:
        return ("none",)
    if mode <= n_vertices:
        return "vertex", str(mode - 1)
    if n_vertices > 2 and mode == face_mode(n_vertices):
        return ("face",)
    i = mode - 1 - n_vertices
    return "edge", f"{i}-{(i + 1) % n_vertices}"


def mode_name(mode: int, sliding: bool, n_vertices: int) -> str:
    """Return the name of a mode: ``none``, ``vertex 2 stick``, ``edge 0-1 slide``, ``face stick``."""
    parts = mode_parts(mode, n_vertices)
    return " ".join(parts if mode == NONE else (*parts, "slide" if sliding else "stick"))


@kernel
def clamped_range(mode: int, n: int) -> tuple[int, int]:
    """Return the first clamped vertex of ``mode`` and their number; vertices are consecutive modulo ``n``."""
    if mode == 0:
        return 0, 0
    if mode <= n:
        return mode - 1, 1
    if n > 2 and mode == 2 * n + 1:
        return 0, n
    return mode - 1 - n, 2


@kernel
def target_height_velocity(z: float, h: float, gamma: float) -> float:
    """Return the target normal velocity [m/s] of a clamped vertex at height ``z`` [m].

    A penetration decays by the fraction ``gamma`` per step, at a speed of at most ``RECOVERY``: a deep foot is lifted
    slowly instead of thrown. A gap is closed within the step, so that a landing ends at z = 0.
    """
    return min(-gamma * z / h, RECOVERY) if z < 0.0 else -z / h


@kernel
def distance_outside(vertices: Array, edges: Array, n: int, clamped: tuple[int, int], x: float, y: float) -> float:
    """Return the distance of (x, y) outside the clamped polygon, or beyond the ends of the clamped edge [m].

    The distance to a polygon is the largest over the lines of its edges. It is negative inside, and 0 for a single
    vertex.

    Args:
        vertices, edges: (N, 2), (N, 3) as in :class:`bipedsim.dynamics.Projection`.
        n: Number of vertices.
        clamped: First clamped vertex and number of clamped vertices.
        x, y: A point of the sole plane, sole frame [m].
    """
    first, count = clamped
    if count < 2:
        return 0.0
    if count == 2:
        j = (first + 1) % n
        ex = vertices[j, 0] - vertices[first, 0]
        ey = vertices[j, 1] - vertices[first, 1]
        length = np.sqrt(ex * ex + ey * ey)
        along = ((x - vertices[first, 0]) * ex + (y - vertices[first, 1]) * ey) / length
        return max(-along, along - length)
    outside = -np.inf
    for i in range(n):
        outside = max(outside, edges[i, 0] * x + edges[i, 1] * y - edges[i, 2])
    return outside


@kernel
def normal_velocity(twists: Array, k: int, r: Array) -> float:
    """Return the normal velocity [m/s] of the point r (3,) from the sole origin of foot ``k``; ``twists`` (6K,)."""
    return point_velocity(twists[6 * k :], r)[2]


class FootMode(NamedTuple):
    """State of a foot in a mode.

    Attributes:
        mode: Contact mode.
        sliding: Whether the tangential directions are free.
        n: Number of vertices.
        offsets: (N, 3) vertices relative to the sole origin, ground axes [m].
        heights: (N,) heights above the ground [m].
        errors: (N, 2) drift of each vertex from its anchor, ground axes [m].
        h: Step [s].
        gamma: Fraction of an error that is removed in one step.
    """

    mode: int
    sliding: bool
    n: int
    offsets: Array
    heights: Array
    errors: Array
    h: float
    gamma: float


class Sliding(NamedTuple):
    """Friction of a sliding foot.

    Attributes:
        mu: Friction coefficient.
        radius: Torsional radius c [m].
        direction: (3,) direction of the slip that friction opposes, -(f_x, f_y, torsion / c) / (mu f_z). It is a unit
            vector without spin.
    """

    mu: float
    radius: float
    direction: Array


class ModeRows(NamedTuple):
    """Constraints of one foot, m rows.

    Attributes:
        T: (6, 6), first m rows: maps (u, w) at the sole origin to the constrained velocities at the virtual joint.
        F: (6, 6), first m columns: maps the multipliers to (f, torque) at the sole origin.
        b: (6,), first m: target velocities.
        r_vj: (3,) virtual joint (mean of the clamped vertices) relative to the sole origin.
    """

    T: Array
    F: Array
    b: Array
    r_vj: Array


class _Fit(NamedTuple):
    """Rigid motion that fits the target velocities of the clamped vertices by least squares.

    Attributes:
        rise: Normal velocity of their mean [m/s].
        drift_x, drift_y: Mean drift from the anchors [m].
        tilt_x, tilt_y, turn: Angular velocity [rad/s].
    """

    rise: float
    drift_x: float
    drift_y: float
    tilt_x: float
    tilt_y: float
    turn: float


@kernel
def _fit(foot: FootMode, clamped: tuple[int, int], r_vj: Array) -> _Fit:
    """Fill the virtual joint and return the least-squares fit of the target velocities of the clamped vertices."""
    first, count = clamped
    rise = drift_x = drift_y = 0.0
    share = 1.0 / count
    for k in range(count):
        i = (first + k) % foot.n
        for j in range(3):
            r_vj[j] += foot.offsets[i, j] * share
        rise += target_height_velocity(foot.heights[i], foot.h, foot.gamma) * share
        drift_x += foot.errors[i, 0] * share
        drift_y += foot.errors[i, 1] * share
    sxx = sxy = syy = sxb = syb = turn = 0.0
    if count > 1:
        for k in range(count):
            i = (first + k) % foot.n
            x = foot.offsets[i, 0] - r_vj[0]
            y = foot.offsets[i, 1] - r_vj[1]
            db = target_height_velocity(foot.heights[i], foot.h, foot.gamma) - rise
            sxx += x * x
            sxy += x * y
            syy += y * y
            sxb += x * db
            syb += y * db
            turn += x * (foot.errors[i, 1] - drift_y) - y * (foot.errors[i, 0] - drift_x)
        turn = -foot.gamma * turn / (sxx + syy) / foot.h
    tilt_x = tilt_y = 0.0
    if count > 2:
        # v_z = w_x y - w_y x
        scale = 1.0 / (sxx * syy - sxy * sxy)
        tilt_x = (sxx * syb - sxy * sxb) * scale
        tilt_y = -(syy * sxb - sxy * syb) * scale
    return _Fit(rise, drift_x, drift_y, tilt_x, tilt_y, turn)


@kernel
def _hold_face(foot: FootMode, fit: _Fit, rows: ModeRows) -> None:
    """Fill b of a sticking face with the fitted motion at the sole origin."""
    b, r = rows.b, rows.r_vj
    b[0] = -foot.gamma * fit.drift_x / foot.h - fit.tilt_y * r[2] + fit.turn * r[1]
    b[1] = -foot.gamma * fit.drift_y / foot.h - fit.turn * r[0] + fit.tilt_x * r[2]
    b[2] = fit.rise - fit.tilt_x * r[1] + fit.tilt_y * r[0]
    b[3] = fit.tilt_x
    b[4] = fit.tilt_y
    b[5] = fit.turn


@kernel
def _hold_edge(foot: FootMode, first: int, T: Array, b: Array) -> None:
    """Fill the row of T, and its target velocity, of the rotation that tilts a clamped edge."""
    j = (first + 1) % foot.n
    ex = foot.offsets[j, 0] - foot.offsets[first, 0]
    ey = foot.offsets[j, 1] - foot.offsets[first, 1]
    length = np.sqrt(ex * ex + ey * ey)
    ex /= length
    ey /= length
    # n = z x e: the rotation w_n lowers the end of the edge that e points to.
    T[3] = -ey
    T[4] = ex
    b_i = target_height_velocity(foot.heights[first], foot.h, foot.gamma)
    b_j = target_height_velocity(foot.heights[j], foot.h, foot.gamma)
    b[0] = -(b_j - b_i) / length


@kernel
def _slide(slip: Sliding, rows: ModeRows, m: int) -> None:
    """Fill F of a sliding foot; its first row is the normal constraint.

    The tangential force is f_t = -mu f_z (s_x, s_y). The torque about the normal is that of this force at the CoP, plus
    -mu c f_z s_3. All of it is linear in the multipliers, so the coupling of friction and normal force is exact.
    """
    T, F, r = rows.T, rows.F, rows.r_vj
    fx = -slip.mu * slip.direction[0]
    fy = -slip.mu * slip.direction[1]
    F[0, 0] = fx
    F[1, 0] = fy
    F[2, 0] = 1.0
    F[3, 0] = r[1] - r[2] * fy
    F[4, 0] = r[2] * fx - r[0]
    F[5, 0] = r[0] * fy - r[1] * fx - slip.mu * slip.radius * slip.direction[2]
    for row in range(1, m):
        tx = T[row, 3]
        ty = T[row, 4]
        F[3, row] = tx
        F[4, row] = ty
        F[5, row] = slip.mu * (slip.direction[0] * tx + slip.direction[1] * ty)


@kernel
def constraints(foot: FootMode, slip: Sliding, rows: ModeRows) -> int:
    """Fill the selection matrices of one foot and return the number of constrained rows m (Table I of moraud2008).

    A sticking face constrains all six velocities at the sole origin. T and F are then the identity and are not written.
    """
    first, count = clamped_range(foot.mode, foot.n)
    T, F, b, r = rows.T, rows.F, rows.b, rows.r_vj
    r[:] = 0.0
    if count == 0:
        return 0
    fit = _fit(foot, (first, count), r)
    if count > 2 and not foot.sliding:
        _hold_face(foot, fit, rows)
        return 6
    T[:, :] = 0.0
    F[:, :] = 0.0
    m = 0
    # Translational rows at the virtual joint: u + w x r.
    if not foot.sliding:
        T[0, 0] = 1.0
        T[0, 4] = r[2]
        T[0, 5] = -r[1]
        b[0] = -foot.gamma * fit.drift_x / foot.h
        T[1, 1] = 1.0
        T[1, 5] = r[0]
        T[1, 3] = -r[2]
        b[1] = -foot.gamma * fit.drift_y / foot.h
        m = 2
    T[m, 2] = 1.0
    T[m, 3] = r[1]
    T[m, 4] = -r[0]
    b[m] = fit.rise
    m += 1
    if count == 2:
        _hold_edge(foot, first, T[m], b[m:])
        m += 1
    elif count > 2:
        T[m, 3] = 1.0
        b[m] = fit.tilt_x
        T[m + 1, 4] = 1.0
        b[m + 1] = fit.tilt_y
        m += 2
    if foot.sliding:
        _slide(slip, rows, m)
        return m
    if count > 1:
        T[m, 5] = 1.0
        b[m] = fit.turn
        m += 1
    for row in range(m):
        for c in range(6):
            F[c, row] = T[row, c]
    return m
