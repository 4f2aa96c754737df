"""The compiled inner loops: projection of the dynamics on the feet, dense solves, the step back to joint space.

The mass matrix is factored as M = L^T L along the kinematic tree (Featherstone, "Efficient factorization of the
joint-space inertia matrix for branched kinematic trees", IJRR 2005): row i of L has entries only at the ancestors of
i, so that L^-T J^T of a foot touches its own leg and the base alone.

pinocchio's matrices are column-major: ``M_rows`` is data.M.T, so that M_rows[k, i] with i an ancestor of k is the
triangle that crba fills.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def factor(M_rows, damping, h, parent, L):
    """Factor M + h diag(damping) = L^T L into ``L`` (nv, nv); entries outside the tree's pattern are not touched."""
    nv = L.shape[0]
    for k in range(nv):
        i = k
        while i >= 0:
            L[k, i] = M_rows[k, i]
            i = parent[i]
        L[k, k] += h * damping[k]
    for k in range(nv - 1, -1, -1):
        L[k, k] = np.sqrt(L[k, k])
        i = parent[k]
        while i >= 0:
            L[k, i] /= L[k, k]
            i = parent[i]
        i = parent[k]
        while i >= 0:
            j = i
            while j >= 0:
                L[i, j] -= L[k, i] * L[k, j]
                j = parent[j]
            i = parent[i]


@njit(cache=True)
def project(
    M_rows, nle, J_rows, rotations, translations, placement_R, placement_p, leaf, vertices, n_vertices,
    ground_R, ground_p, parent, damping, h, v, tau, L, Y, z, J, G, w_free, R, offsets, position,
):  # fmt: skip
    """Project one step of the dynamics on the feet.

    Args:
        M_rows: (nv, nv) data.M.T. nle: (nv,) Coriolis, centrifugal and gravity terms [N.m].
        J_rows: (nv, 6) data.J.T, joint Jacobian columns in the world frame, linear first.
        rotations, translations: Per foot, transposed rotation (3, 3) and translation (3,) of its joint in the world.
        placement_R, placement_p: (K, 3, 3), (K, 3) sole frame in that joint.
        leaf: (K,) last velocity index of each foot's chain.
        vertices, n_vertices: (K, N, 2) sole polygons in the sole frame [m], and how many of the N each foot uses.
        ground_R, ground_p: (3, 3) ground axes as columns and (3,) a point of the ground, in the world.
        parent, damping, h: (nv,) parent velocity index, (nv,) viscous damping [N.m.s/rad], step [s].
        v, tau: (nv,) velocity and generalised force.

    Fills:
        L: factor. Y: (6K, nv) rows L^-T J^T. z: (nv,) L^-T h (tau - nle - D v). J: (6K, nv) velocities (u, w) at the
            sole origins in ground axes.
        G: (6K, 6K) Delassus matrix. w_free: (6K,) velocities without contact. R: (K, 3, 3) sole axes in ground axes.
        offsets: (K, N, 3) vertices relative to the sole origin, ground axes. position: (K, 3) sole origins in ground
            axes [m].
    """
    nv = v.shape[0]
    feet = leaf.shape[0]
    factor(M_rows, damping, h, parent, L)
    for i in range(nv):
        z[i] = h * (tau[i] - nle[i] - damping[i] * v[i])
    for i in range(nv - 1, -1, -1):
        z[i] /= L[i, i]
        j = parent[i]
        while j >= 0:
            z[j] -= L[i, j] * z[i]
            j = parent[j]

    for k in range(feet):
        Rj = rotations[k]
        tj = translations[k]
        c0 = tj[0]
        c1 = tj[1]
        c2 = tj[2]
        for a in range(3):
            # rotations hold transposed views: Rj[a, 0] is the world x of joint axis a.
            c0 += Rj[a, 0] * placement_p[k, a]
            c1 += Rj[a, 1] * placement_p[k, a]
            c2 += Rj[a, 2] * placement_p[k, a]
        for a in range(3):
            position[k, a] = (
                ground_R[0, a] * (c0 - ground_p[0])
                + ground_R[1, a] * (c1 - ground_p[1])
                + ground_R[2, a] * (c2 - ground_p[2])
            )
            for b in range(3):
                total = 0.0
                for x in range(3):
                    world = 0.0
                    for y in range(3):
                        world += Rj[y, x] * placement_R[k, y, b]
                    total += ground_R[x, a] * world
                R[k, a, b] = total
        for i in range(n_vertices[k]):
            for a in range(3):
                offsets[k, i, a] = R[k, a, 0] * vertices[k, i, 0] + R[k, a, 1] * vertices[k, i, 1]

        row = 6 * k
        i = leaf[k]
        while i >= 0:
            wx = J_rows[i, 3]
            wy = J_rows[i, 4]
            wz = J_rows[i, 5]
            ux = J_rows[i, 0] + wy * c2 - wz * c1
            uy = J_rows[i, 1] + wz * c0 - wx * c2
            uz = J_rows[i, 2] + wx * c1 - wy * c0
            for a in range(3):
                J[row + a, i] = ground_R[0, a] * ux + ground_R[1, a] * uy + ground_R[2, a] * uz
                J[row + 3 + a, i] = ground_R[0, a] * wx + ground_R[1, a] * wy + ground_R[2, a] * wz
            i = parent[i]
        for r in range(row, row + 6):
            i = leaf[k]
            while i >= 0:
                Y[r, i] = J[r, i]
                i = parent[i]
            i = leaf[k]
            while i >= 0:
                Y[r, i] /= L[i, i]
                y = Y[r, i]
                j = parent[i]
                while j >= 0:
                    Y[r, j] -= L[i, j] * y
                    j = parent[j]
                i = parent[i]
            total = 0.0
            i = leaf[k]
            while i >= 0:
                total += J[r, i] * v[i] + Y[r, i] * z[i]
                i = parent[i]
            w_free[r] = total

    # Entries of Y outside a foot's chain are zero from the start: the common chain is all that contributes.
    for k in range(feet):
        for r in range(6 * k, 6 * k + 6):
            for s in range(r + 1):
                total = 0.0
                i = leaf[k]
                while i >= 0:
                    total += Y[r, i] * Y[s, i]
                    i = parent[i]
                G[r, s] = total
                G[s, r] = total


@njit(cache=True)
def advance(L, Y, z, parent, leaf, v, impulse, x, v_next):
    """Fill ``v_next`` (nv,) = v + L^-1 (z + Y^T impulse); return its largest magnitude, NaN if any entry is not finite.

    Args:
        impulse: (6K,) impulses (f, torque) at the sole origins, ground axes [N.s, N.m.s].
        x: (nv,) work array.
    """
    nv = v.shape[0]
    for i in range(nv):
        x[i] = z[i]
    for k in range(leaf.shape[0]):
        i = leaf[k]
        while i >= 0:
            for r in range(6 * k, 6 * k + 6):
                x[i] += Y[r, i] * impulse[r]
            i = parent[i]
    largest = 0.0
    for i in range(nv):
        total = x[i]
        j = parent[i]
        while j >= 0:
            total -= L[i, j] * x[j]
            j = parent[j]
        x[i] = total / L[i, i]
        v_next[i] = v[i] + x[i]
        if not np.isfinite(v_next[i]):
            largest = np.nan
        elif abs(v_next[i]) > largest:
            largest = abs(v_next[i])
    return largest


@njit(cache=True)
def solve_dense(A, b, n, x, rows, columns):
    """Solve A x = b of size ``n`` by elimination with complete pivoting; A and b are overwritten.

    Rows that depend on the others (a straight knee, a foot that a short chain cannot move) get no multiplier.
    """
    largest = 0.0
    for i in range(n):
        columns[i] = i
        rows[i] = i
        x[i] = 0.0
        for j in range(n):
            largest = max(largest, abs(A[i, j]))
    rank = n
    for k in range(n):
        pivot = 0.0
        p = k
        q = k
        for i in range(k, n):
            for j in range(k, n):
                if abs(A[rows[i], columns[j]]) > pivot:
                    pivot = abs(A[rows[i], columns[j]])
                    p = i
                    q = j
        if pivot <= 1e-13 * largest:
            rank = k
            break
        rows[k], rows[p] = rows[p], rows[k]
        columns[k], columns[q] = columns[q], columns[k]
        pivot = A[rows[k], columns[k]]
        for i in range(k + 1, n):
            f = A[rows[i], columns[k]] / pivot
            if f != 0.0:
                for j in range(k + 1, n):
                    A[rows[i], columns[j]] -= f * A[rows[k], columns[j]]
                b[rows[i]] -= f * b[rows[k]]
    for k in range(rank - 1, -1, -1):
        total = b[rows[k]]
        for j in range(k + 1, rank):
            total -= A[rows[k], columns[j]] * x[columns[j]]
        x[columns[k]] = total / A[rows[k], columns[k]]
    return rank
