"""The compiled inner loops between joint space and the feet: one projection per step, and the way back.

The mass matrix is factored as M = L^T L along the kinematic tree (Featherstone, "Efficient factorization of the
joint-space inertia matrix for branched kinematic trees", IJRR 2005): row i of L has entries only at the ancestors of
i, so that L^-T J^T of a foot touches its own leg and the base alone.

Rows are packed by depth: entry p of row i belongs to its p-th ancestor from the root, itself last. The ancestors of
an ancestor are a prefix of that list, so that every inner loop runs over neighbours in memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bipedsim.contact.base import Projection
from bipedsim.contact.compiled import kernel

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

# No joint or base of a biped moves this fast [m/s, rad/s]; beyond it the step has left the physics.
SPEED_LIMIT = 1e4


class Tree(NamedTuple):
    """The joint side of a step: what pinocchio fills, what the robot is, and work arrays.

    nv velocities, D the longest chain of them, K feet, P patches of ground.

    Attributes:
        M_rows: (nv, nv) data.M.T: M_rows[k, i] with i an ancestor of k is the triangle that crba fills.
        nle: (nv,) Coriolis, centrifugal and gravity terms [N.m].
        J_rows: (nv, 6) data.J.T, joint Jacobian columns in the world, linear first.
        poses: (joints, 12) data.oMi: rotation, column after column, then translation.
        ancestors: (nv, D) velocity indices from the root to each one, itself last.
        depth: (nv,) how many of the D are used.
        damping: (nv,) viscous friction [N.m.s/rad].
        actuated: (nu,) velocity index of each actuated joint.
        h: Step [s].
        foot_joint: (K,) joint that carries each foot. leaf: (K,) its last velocity index.
        common: (K, K) number of ancestors that two feet share.
        sole_axes, sole_origin: (K, 3, 3), (K, 3) sole frame in that joint.
        ground_axes, ground_origin: (K, 3, 3) axes of the ground under each foot as columns and (K, 3) a point of it,
            in the world.
        push: (nv,) generalised force besides the joint torques.
        L: (nv, D) factor. inverse: (nv,) 1 / diagonal of L. z: (nv,) L^-T h (tau - nle - D v). x: (nv,) work.
        Y: (K, D, 6) L^-T J^T of each foot, along its chain.
        v_before: (nv,) velocity before the step. step: (nv,) h v+, for the integration.
    """

    M_rows: Array
    nle: Array
    J_rows: Array
    poses: Array
    ancestors: Integers
    depth: Integers
    damping: Array
    actuated: Integers
    h: float
    foot_joint: Integers
    leaf: Integers
    common: Integers
    sole_axes: Array
    sole_origin: Array
    ground_axes: Array
    ground_origin: Array
    push: Array
    L: Array
    inverse: Array
    z: Array
    x: Array
    Y: Array
    v_before: Array
    step: Array


@kernel
def factor(M_rows, damping, h, ancestors, depth, L, inverse):
    """Factor M + h diag(damping) = L^T L into the packed rows ``L`` and the inverse of its diagonal."""
    nv = depth.shape[0]
    for k in range(nv):
        last = depth[k] - 1
        for p in range(last + 1):
            L[k, p] = M_rows[k, ancestors[k, p]]
        L[k, last] += h * damping[k]
    for k in range(nv - 1, -1, -1):
        last = depth[k] - 1
        root = np.sqrt(L[k, last])
        scale = 1.0 / root
        L[k, last] = root
        inverse[k] = scale
        for p in range(last):
            L[k, p] *= scale
        for p in range(last - 1, -1, -1):
            i = ancestors[k, p]
            a = L[k, p]
            for q in range(p + 1):
                L[i, q] -= a * L[k, q]


@kernel
def place_foot(k, t: Tree, p: Projection):
    """Fill rotation, position and offsets of foot ``k``; return its origin in the world [m]."""
    pose = t.poses[t.foot_joint[k]]
    c0 = pose[9]
    c1 = pose[10]
    c2 = pose[11]
    for a in range(3):
        c0 += pose[3 * a] * t.sole_origin[k, a]
        c1 += pose[3 * a + 1] * t.sole_origin[k, a]
        c2 += pose[3 * a + 2] * t.sole_origin[k, a]
    Rg = t.ground_axes[k]
    for b in range(3):
        x = 0.0
        y = 0.0
        z = 0.0
        for a in range(3):
            x += pose[3 * a] * t.sole_axes[k, a, b]
            y += pose[3 * a + 1] * t.sole_axes[k, a, b]
            z += pose[3 * a + 2] * t.sole_axes[k, a, b]
        for a in range(3):
            p.rotation[k, a, b] = Rg[0, a] * x + Rg[1, a] * y + Rg[2, a] * z
    d0 = c0 - t.ground_origin[k, 0]
    d1 = c1 - t.ground_origin[k, 1]
    d2 = c2 - t.ground_origin[k, 2]
    R = p.rotation
    for a in range(3):
        p.position[k, a] = Rg[0, a] * d0 + Rg[1, a] * d1 + Rg[2, a] * d2
        for i in range(p.n_vertices[k]):
            p.offsets[k, i, a] = R[k, a, 0] * p.vertices[k, i, 0] + R[k, a, 1] * p.vertices[k, i, 1]
    return c0, c1, c2


@kernel
def project(t: Tree, p: Projection, v, tau_joint) -> bool:
    """Project one step of the dynamics on the feet: fill ``p`` and the factor and right-hand side in ``t``.

    Returns False, with nothing done, where a torque is not finite.

    Args:
        t, p: See :class:`Tree` and :class:`Projection`.
        v: (nv,) velocity. tau_joint: (nu,) torques of the actuated joints [N.m].
    """
    for j in range(tau_joint.shape[0]):
        if not np.isfinite(tau_joint[j]):
            return False
    nv = v.shape[0]
    feet = t.leaf.shape[0]
    L = t.L
    factor(t.M_rows, t.damping, t.h, t.ancestors, t.depth, L, t.inverse)
    z = t.z
    for i in range(nv):
        z[i] = t.h * (t.push[i] - t.nle[i] - t.damping[i] * v[i])
    for j in range(tau_joint.shape[0]):
        z[t.actuated[j]] += t.h * tau_joint[j]
    for i in range(nv - 1, -1, -1):
        last = t.depth[i] - 1
        a = z[i] * t.inverse[i]
        z[i] = a
        for d in range(last):
            z[t.ancestors[i, d]] -= L[i, d] * a

    for k in range(feet):
        c0, c1, c2 = place_foot(k, t, p)
        Rg = t.ground_axes[k]
        Y = t.Y[k]
        chain = t.ancestors[t.leaf[k]]
        length = t.depth[t.leaf[k]]
        row = 6 * k
        for r in range(row, row + 6):
            p.w_before[r] = 0.0
        for d in range(length):
            i = chain[d]
            wx = t.J_rows[i, 3]
            wy = t.J_rows[i, 4]
            wz = t.J_rows[i, 5]
            ux = t.J_rows[i, 0] + wy * c2 - wz * c1
            uy = t.J_rows[i, 1] + wz * c0 - wx * c2
            uz = t.J_rows[i, 2] + wx * c1 - wy * c0
            for a in range(3):
                u = Rg[0, a] * ux + Rg[1, a] * uy + Rg[2, a] * uz
                w = Rg[0, a] * wx + Rg[1, a] * wy + Rg[2, a] * wz
                Y[d, a] = u
                Y[d, 3 + a] = w
                p.w_before[row + a] += u * v[i]
                p.w_before[row + 3 + a] += w * v[i]
        for r in range(6):
            p.w_free[row + r] = p.w_before[row + r]
        for d in range(length - 1, -1, -1):
            i = chain[d]
            for r in range(6):
                Y[d, r] *= t.inverse[i]
                p.w_free[row + r] += Y[d, r] * z[i]
            for e in range(d):
                a = L[i, e]
                for r in range(6):
                    Y[e, r] -= a * Y[d, r]

    for k in range(feet):
        for m in range(k + 1):
            for r in range(6):
                for s in range(6):
                    total = 0.0
                    for d in range(t.common[k, m]):
                        total += t.Y[k, d, r] * t.Y[m, d, s]
                    p.G[6 * k + r, 6 * m + s] = total
                    p.G[6 * m + s, 6 * k + r] = total
    return True


@kernel
def advance(t: Tree, impulse, v) -> float:
    """Move ``v`` (nv,) in place to v+ = v + L^-1 (z + Y^T impulse) and return the largest magnitude of v+.

    Where an entry would not be finite, v stays as it is and NaN is returned; so it does where one reaches
    ``SPEED_LIMIT``. Fills ``v_before`` and ``step``.

    Args:
        t: See :class:`Tree`.
        impulse: (K, 6) impulses (f, torque) at the sole origins, ground axes [N.s, N.m.s].
        v: (nv,).
    """
    nv = v.shape[0]
    x = t.x
    for i in range(nv):
        x[i] = t.z[i]
    for k in range(t.leaf.shape[0]):
        leaf = t.leaf[k]
        for d in range(t.depth[leaf]):
            total = 0.0
            for r in range(6):
                total += t.Y[k, d, r] * impulse[k, r]
            x[t.ancestors[leaf, d]] += total
    largest = 0.0
    for i in range(nv):
        total = x[i]
        for d in range(t.depth[i] - 1):
            total -= t.L[i, d] * x[t.ancestors[i, d]]
        x[i] = total * t.inverse[i]
        speed = abs(v[i] + x[i])
        if not np.isfinite(speed):
            return np.nan
        if speed > largest:
            largest = speed
    if largest >= SPEED_LIMIT:
        return largest
    for i in range(nv):
        t.v_before[i] = v[i]
        v[i] += x[i]
        t.step[i] = t.h * v[i]
    return largest
