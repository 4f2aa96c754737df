"""Contact modes of a polygonal foot: which vertices are clamped, and the constraints that this means.

A foot of N vertices is in one of the sets of Table I of moraud2008: none, one vertex, one edge, or the face. A mode
is an integer: 0 none, 1..N vertex, N+1.. edge (i, i+1), 2N+1 face; N = 1 has no edge, N = 2 one edge and no face.

The compiled functions work on one foot at a time, in ground axes (t1, t2, n) about the sole origin.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bipedsim.numerics import kernel

NONE = 0
# Fastest that a penetration is taken back [m/s].
RECOVERY = 0.05


def n_modes(n_vertices: int) -> int:
    """Return the size of the admissible set of a foot with ``n_vertices``."""
    return {1: 2, 2: 4}.get(n_vertices, 2 * n_vertices + 2)


def mode_masks(n_vertices: int) -> NDArray[np.int64]:
    """Return the admissible set: row ``mode`` holds 1 for each clamped vertex, (n_modes, n_vertices)."""
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
    """Return the mode with every vertex clamped."""
    return n_modes(n_vertices) - 1


def mode_name(mode: int, sliding: bool, n_vertices: int) -> str:
    """Return a mode in words: ``none``, ``vertex 2 stick``, ``edge 0-1 slide``, ``face stick``."""
    if mode == NONE:
        return "none"
    friction = "slide" if sliding else "stick"
    if mode <= n_vertices:
        return f"vertex {mode - 1} {friction}"
    if n_vertices > 2 and mode == face_mode(n_vertices):
        return f"face {friction}"
    i = mode - 1 - n_vertices
    return f"edge {i}-{(i + 1) % n_vertices} {friction}"


@kernel
def clamped_range(mode: int, n: int) -> tuple[int, int]:
    """Return (first vertex, number of vertices) that ``mode`` clamps; vertices follow each other modulo ``n``."""
    if mode == 0:
        return 0, 0
    if mode <= n:
        return mode - 1, 1
    if n > 2 and mode == 2 * n + 1:
        return 0, n
    return mode - 1 - n, 2


@kernel
def target_height_velocity(z: float, h: float, gamma: float) -> float:
    """Return the normal velocity wanted of a clamped vertex at height ``z``.

    Below the ground the penetration decays by ``gamma`` a step, at ``RECOVERY`` at most: a foot that has got deep is
    lifted and not thrown. Above it the gap is closed within the step, so that landings end at z = 0.
    """
    return min(-gamma * z / h, RECOVERY) if z < 0.0 else -z / h


@kernel
def constraints(mode, sliding, n, offsets, heights, errors, mu, radius, slip, h, gamma, T, F, b, r_vj):
    """Fill the selection matrices of one foot and return the number of constrained rows m (Table I of moraud2008).

    Args:
        mode, sliding: Contact mode and whether the tangential directions are free.
        n: Number of vertices.
        offsets: (N, 3) vertices relative to the sole origin, ground axes [m].
        heights: (N,) heights above the ground [m].
        errors: (N, 2) drift of each vertex from its anchor, ground axes [m].
        mu, radius: Friction coefficient and torsional radius c [m] while sliding.
        slip: (3,) unit direction (u_x, u_y, c w_z) of the slip, zero where friction carries nothing.
        h, gamma: Step [s] and share of an error that is removed in one step.
        T: (6, 6) out, first m rows: picks the constrained velocities at the virtual joint from (u, w) at the sole
            origin.
        F: (6, 6) out, first m columns: spreads the multipliers into (f, torque) at the sole origin.
        b: (6,) out, first m: wanted velocities.
        r_vj: (3,) out: the virtual joint, mean of the clamped vertices, relative to the sole origin.

    A sticking face holds all six velocities: T and F are then the identity, at the sole origin, and are not written.

    While sliding, f_t = -mu f_z (s_x, s_y), and the torque about the normal is that of this force acting at the CoP,
    plus -mu c f_z s_3: all linear in the multipliers, so the coupling of friction and normal force is exact.
    """
    first, count = clamped_range(mode, n)
    r_vj[:] = 0.0
    if count == 0:
        return 0
    mean_b = 0.0
    err_x = 0.0
    err_y = 0.0
    share = 1.0 / count
    for k in range(count):
        i = (first + k) % n
        for j in range(3):
            r_vj[j] += offsets[i, j] * share
        mean_b += target_height_velocity(heights[i], h, gamma) * share
        err_x += errors[i, 0] * share
        err_y += errors[i, 1] * share

    # Fits of the clamped vertices' wanted velocities by one rigid motion (least squares).
    sxx = 0.0
    sxy = 0.0
    syy = 0.0
    sxb = 0.0
    syb = 0.0
    turn = 0.0
    if count > 1:
        for k in range(count):
            i = (first + k) % n
            x = offsets[i, 0] - r_vj[0]
            y = offsets[i, 1] - r_vj[1]
            db = target_height_velocity(heights[i], h, gamma) - mean_b
            sxx += x * x
            sxy += x * y
            syy += y * y
            sxb += x * db
            syb += y * db
            turn += x * (errors[i, 1] - err_y) - y * (errors[i, 0] - err_x)

    tilt_x = 0.0
    tilt_y = 0.0
    if count > 2:
        # v_z = w_x y - w_y x
        scale = 1.0 / (sxx * syy - sxy * sxy)
        tilt_x = (sxx * syb - sxy * sxb) * scale
        tilt_y = -(syy * sxb - sxy * syb) * scale
        if not sliding:
            wz = -gamma * turn / (sxx + syy) / h
            b[0] = -gamma * err_x / h - tilt_y * r_vj[2] + wz * r_vj[1]
            b[1] = -gamma * err_y / h - wz * r_vj[0] + tilt_x * r_vj[2]
            b[2] = mean_b - tilt_x * r_vj[1] + tilt_y * r_vj[0]
            b[3] = tilt_x
            b[4] = tilt_y
            b[5] = wz
            return 6

    T[:, :] = 0.0
    F[:, :] = 0.0
    m = 0
    # Rows at the virtual joint: u + w x r for translations.
    if not sliding:
        T[0, 0] = 1.0
        T[0, 4] = r_vj[2]
        T[0, 5] = -r_vj[1]
        b[0] = -gamma * err_x / h
        T[1, 1] = 1.0
        T[1, 5] = r_vj[0]
        T[1, 3] = -r_vj[2]
        b[1] = -gamma * err_y / h
        m = 2
    normal_row = m
    T[m, 2] = 1.0
    T[m, 3] = r_vj[1]
    T[m, 4] = -r_vj[0]
    b[m] = mean_b
    m += 1
    tilt_row = m
    if count == 2:
        i = first
        j = (first + 1) % n
        ex = offsets[j, 0] - offsets[i, 0]
        ey = offsets[j, 1] - offsets[i, 1]
        length = np.sqrt(ex * ex + ey * ey)
        ex /= length
        ey /= length
        # n = z x e; turning by w_n lowers the end of the edge that e points to.
        T[m, 3] = -ey
        T[m, 4] = ex
        b_i = target_height_velocity(heights[i], h, gamma)
        b_j = target_height_velocity(heights[j], h, gamma)
        b[m] = -(b_j - b_i) / length
        m += 1
    elif count > 2:
        T[m, 3] = 1.0
        b[m] = tilt_x
        T[m + 1, 4] = 1.0
        b[m + 1] = tilt_y
        m += 2
    if not sliding:
        if count > 1:
            T[m, 5] = 1.0
            b[m] = -gamma * turn / (sxx + syy) / h
            m += 1
        for r in range(m):
            for c in range(6):
                F[c, r] = T[r, c]
        return m

    fx = -mu * slip[0]
    fy = -mu * slip[1]
    F[0, normal_row] = fx
    F[1, normal_row] = fy
    F[2, normal_row] = 1.0
    F[3, normal_row] = r_vj[1] - r_vj[2] * fy
    F[4, normal_row] = r_vj[2] * fx - r_vj[0]
    F[5, normal_row] = r_vj[0] * fy - r_vj[1] * fx - mu * radius * slip[2]
    for r in range(tilt_row, m):
        tx = T[r, 3]
        ty = T[r, 4]
        F[3, r] = tx
        F[4, r] = ty
        F[5, r] = mu * (slip[0] * tx + slip[1] * ty)
    return m
