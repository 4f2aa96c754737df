"""Compiled inner loops between joint space and the feet: the projection of a step, and the conversion back.

The mass matrix is factored as M = L^T L (Featherstone, "Efficient factorization of the joint-space inertia matrix for
branched kinematic trees", IJRR 2005). Row i of L has entries only at the ancestors of i. L^-T J^T of a foot therefore
involves only its own leg and the base.

Rows are packed by depth: entry p of row i belongs to its p-th ancestor from the root, itself last. The ancestors of
an ancestor are a prefix of that list, so every inner loop runs over neighbours in memory.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.dynamics.projection import Projection
from bipedsim.dynamics.rows import Rows, impose, orthonormalise
from bipedsim.dynamics.support import UNCHANGED, Foothold, find_foothold, find_passing, may_lie_on_several, meet_ground
from bipedsim.numerics import Array, Integers, act, assign, kernel, mul_t, point_acceleration, point_velocity, turn_axes

# No joint or base of a biped moves this fast [m/s, rad/s]. A larger velocity means divergence.
SPEED_LIMIT = 1e4


class Tree(NamedTuple):
    """Store the joint side of a step: equations of motion, robot properties, and work arrays.

    There are nv velocities, at most D of them in a chain, and K feet.

    Attributes:
        M_rows, nle, J_rows: M, nle and J of :class:`bipedsim.dynamics.equations.Equations`, which are filled there.
        poses, twists, accelerations, origin, gravity: Those of its :class:`bipedsim.dynamics.joints.Joints`.
        ancestors: (nv, D) velocity indices from the root to each velocity, itself last.
        depth: (nv,) number of the D entries that are used.
        damping: (nv,) viscous friction [N.m.s/rad].
        actuated: (nu,) velocity index of each actuated joint.
        h: Step [s].
        foot_joint: (K,) joint that carries each foot. leaf: (K,) its last velocity index.
        common: (K, K) number of ancestors that two feet share.
        placement_R, placement_p: (K, 3, 3), (K, 3) sole frame in that joint.
        push: (nv,) generalised force in addition to the joint torques.
        L: (nv, D) factor. inverse: (nv,) 1 / diagonal of L. z: (nv,) L^-T h (tau - nle - D v). x: (nv,) work.
        Y: (K, D, 6) L^-T J^T of each foot, along its chain.
        acceleration: (nv,) mean acceleration over the step. step: (nv,) h v+, for the integration.
        rows: Velocity constraints, eliminated before the contact acts; none after :func:`project`.
    """

    M_rows: Array
    nle: Array
    J_rows: Array
    poses: Array
    twists: Array
    accelerations: Array
    origin: Array
    gravity: Array
    ancestors: Integers
    depth: Integers
    damping: Array
    actuated: Integers
    h: float
    foot_joint: Integers
    leaf: Integers
    common: Integers
    placement_R: Array  # noqa: N815 -- R is the rotation
    placement_p: Array
    push: Annotated[Array, "v"]
    L: Annotated[Array, "v", "D"]
    inverse: Annotated[Array, "v"]
    z: Annotated[Array, "v"]
    x: Annotated[Array, "v"]
    Y: Annotated[Array, "K", "D", 6]
    acceleration: Annotated[Array, "v"]
    step: Annotated[Array, "v"]
    rows: Rows


@kernel
def factor(t: Tree, damping: Array, share: float) -> None:
    """Factor M + share h diag(damping) = L^T L into the packed rows ``L`` and the inverse of its diagonal."""
    ancestors, depth, L = t.ancestors, t.depth, t.L
    nv = depth.shape[0]
    for k in range(nv):
        last = depth[k] - 1
        for p in range(last + 1):
            L[k, p] = t.M_rows[k, ancestors[k, p]]
        L[k, last] += share * t.h * damping[k]
    for k in range(nv - 1, -1, -1):
        last = depth[k] - 1
        root = np.sqrt(L[k, last])
        scale = 1.0 / root
        L[k, last] = root
        t.inverse[k] = scale
        for p in range(last):
            L[k, p] *= scale
        for p in range(last - 1, -1, -1):
            i = ancestors[k, p]
            a = L[k, p]
            for q in range(p + 1):
                L[i, q] -= a * L[k, q]


@kernel
def locate_foot(k: int, t: Tree, f: Foothold) -> None:
    """Fill the world pose of the sole of foot ``k``."""
    pose = t.poses[t.foot_joint[k]]
    assign(f.sole_origin[k], act(pose, t.placement_p[k]))
    turn_axes(pose, t.placement_R[k], f.sole_axes[k])


@kernel
def _twist_of_sole(k: int, t: Tree, f: Foothold, v: Array) -> None:
    """Fill ``f.twist``: velocity of the sole origin [m/s] and angular velocity [rad/s] of foot ``k``, sole axes."""
    f.twist[:] = 0.0
    R = f.sole_axes[k]
    chain = t.ancestors[t.leaf[k]]
    for d in range(t.depth[t.leaf[k]]):
        column, speed = t.J_rows[chain[d]], v[chain[d]]
        u = mul_t(R, point_velocity(column, f.sole_origin[k]))
        w = mul_t(R, column[3:])
        for a in range(3):
            f.twist[a] += u[a] * speed
            f.twist[3 + a] += w[a] * speed


@kernel
def place_foot(k: int, t: Tree, f: Foothold, p: Projection, v: Array) -> None:
    """Find the ground under foot ``k``; fill rotation, position and offsets in ground axes."""
    if f.endless and f.patch[k] == 0 and not f.passing[k]:
        p.changed[k] = UNCHANGED
    else:
        patch = meet_ground(k, f, p)
        if may_lie_on_several(k, patch, f):
            _twist_of_sole(k, t, f, v)
            find_foothold(k, patch, True, t.h, f, p)
        else:
            find_foothold(k, patch, False, t.h, f, p)
    for a in range(3):
        total = 0.0
        for c in range(3):
            total += f.axes[k, c, a] * (f.sole_origin[k, c] - f.origin[k, c])
        p.position[k, a] = total
        for b in range(3):
            total = 0.0
            for c in range(3):
                total += f.axes[k, c, a] * f.sole_axes[k, c, b]
            p.rotation[k, a, b] = total
        x_axis = p.rotation[k, a, 0]
        y_axis = p.rotation[k, a, 1]
        for i in range(p.n_vertices[k]):
            p.offsets[k, i, a] = x_axis * p.vertices[k, i, 0] + y_axis * p.vertices[k, i, 1]
    if p.radius[k] > 0.0:
        for i in range(p.n_vertices[k]):
            p.offsets[k, i, 2] -= p.radius[k]


@kernel
def drive(t: Tree, v: Array, tau_joint: Array, share: float) -> None:
    """Fill z = L^-T share h (push - nle - D v + tau): all forces except contact."""
    z, h = t.z, share * t.h
    for i in range(v.shape[0]):
        z[i] = h * (t.push[i] - t.nle[i] - t.damping[i] * v[i])
    for j in range(tau_joint.shape[0]):
        z[t.actuated[j]] += h * tau_joint[j]
    for i in range(v.shape[0] - 1, -1, -1):
        a = z[i] * t.inverse[i]
        z[i] = a
        for d in range(t.depth[i] - 1):
            z[t.ancestors[i, d]] -= t.L[i, d] * a


@kernel
def _reach_foot(k: int, t: Tree, f: Foothold, p: Projection, v: Array) -> None:
    """Fill Y = L^-T J^T of foot ``k``, its velocity before the step, and its velocity without contact."""
    Y, R = t.Y[k], f.axes[k]
    x, y, z = f.sole_origin[k]
    chain = t.ancestors[t.leaf[k]]
    length = t.depth[t.leaf[k]]
    row = 6 * k
    for r in range(row, row + 6):
        p.w_before[r] = 0.0
    for d in range(length):
        i = chain[d]
        column = t.J_rows[i]
        ux, uy, uz = point_velocity(column, (x, y, z))
        wx, wy, wz = column[3], column[4], column[5]
        for a in range(3):
            u = R[0, a] * ux + R[1, a] * uy + R[2, a] * uz
            w = R[0, a] * wx + R[1, a] * wy + R[2, a] * wz
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
            p.w_free[row + r] += Y[d, r] * t.z[i]
        # The loop over the six entries is unrolled so that they stay in registers.
        y0, y1, y2, y3, y4, y5 = Y[d, 0], Y[d, 1], Y[d, 2], Y[d, 3], Y[d, 4], Y[d, 5]
        for e in range(d):
            a = t.L[i, e]
            Y[e, 0] -= a * y0
            Y[e, 1] -= a * y1
            Y[e, 2] -= a * y2
            Y[e, 3] -= a * y3
            Y[e, 4] -= a * y4
            Y[e, 5] -= a * y5


@kernel
def _couple_feet(t: Tree, p: Projection) -> None:
    """Fill G = J M^-1 J^T of all pairs of feet from the shared ancestors of their legs."""
    for k in range(t.leaf.shape[0]):
        for m in range(k + 1):
            row = 6 * k
            column = 6 * m
            Y = t.Y[m]
            for r in range(6):
                g0 = g1 = g2 = g3 = g4 = g5 = 0.0
                for d in range(t.common[k, m]):
                    y = t.Y[k, d, r]
                    g0 += y * Y[d, 0]
                    g1 += y * Y[d, 1]
                    g2 += y * Y[d, 2]
                    g3 += y * Y[d, 3]
                    g4 += y * Y[d, 4]
                    g5 += y * Y[d, 5]
                p.G[row + r, column] = g0
                p.G[row + r, column + 1] = g1
                p.G[row + r, column + 2] = g2
                p.G[row + r, column + 3] = g3
                p.G[row + r, column + 4] = g4
                p.G[row + r, column + 5] = g5
            if m < k:
                for r in range(6):
                    for s in range(6):
                        p.G[column + s, row + r] = p.G[row + r, column + s]


@kernel
def project(t: Tree, f: Foothold, p: Projection, v: Array, tau_joint: Array, share: float) -> bool:
    """Project one step of the dynamics on the feet; fill ``p``, and factor and right-hand side in ``t``.

    The function returns False and changes nothing if a torque is not finite.

    Args:
        t, f, p: See :class:`Tree`, :class:`Foothold` and :class:`Projection`.
        v: (nv,) velocity. tau_joint: (nu,) torques of the actuated joints [N.m].
        share: Fraction of the step during which the forces other than contact act; 0 for an impact.
    """
    for j in range(tau_joint.shape[0]):
        if not np.isfinite(tau_joint[j]):
            return False
    t.rows.used[0] = 0
    factor(t, t.damping, share)
    drive(t, v, tau_joint, share)
    feet = t.leaf.shape[0]
    for k in range(feet):
        locate_foot(k, t, f)
    if f.passes:
        find_passing(f, p.radius)
    for k in range(feet):
        place_foot(k, t, f, p, v)
        _reach_foot(k, t, f, p, v)
    _couple_feet(t, p)
    return True


@kernel
def fill_bias(t: Tree, f: Foothold, p: Projection) -> None:
    """Fill ``p.bias``, the acceleration J' v of the feet at constant joint velocities; call after :func:`project`."""
    o, g = t.origin, t.gravity
    for k in range(t.leaf.shape[0]):
        twist, acceleration, point = t.twists[t.foot_joint[k]], t.accelerations[t.foot_joint[k]], f.sole_origin[k]
        linear = point_acceleration(twist, acceleration, (point[0] - o[0], point[1] - o[1], point[2] - o[2]))
        axes = f.axes[k]
        assign(p.bias[6 * k :], mul_t(axes, (g[0] + linear[0], g[1] + linear[1], g[2] + linear[2])))
        assign(p.bias[6 * k + 3 :], mul_t(axes, acceleration[3:]))


@kernel
def eliminate(t: Tree, p: Projection, v: Array, first: int) -> None:
    """Eliminate the velocity constraints ``t.rows`` from this part of the step; call after :func:`project`.

    The rows g are in ``Q``, and their required velocities in ``goal`` and ``goal_late``. Rows before ``first`` are
    eliminated already. The arrays ``whole`` and ``free`` store the projection with only these (:func:`keep_whole`).
    Other sets of rows can therefore be tried afterwards.
    """
    reach_rows(t, v, first)
    orthonormalise(t.rows, first)
    take_off(t, p, first)


@kernel
def reach_rows(t: Tree, v: Array, first: int) -> None:
    """Replace the rows g in ``Q`` by y = L^-T g^T; fill ``beta`` with g v, and ``size``."""
    r = t.rows
    for n in range(first, r.used[0]):
        y, before = r.Q[n], 0.0
        for i in range(v.shape[0] - 1, -1, -1):
            before += y[i] * v[i]
        r.beta[n] = before
        for i in range(v.shape[0] - 1, -1, -1):
            if y[i] != 0.0:
                y[i] *= t.inverse[i]
                for d in range(t.depth[i] - 1):
                    y[t.ancestors[i, d]] -= t.L[i, d] * y[i]
        size = 0.0
        for i in range(v.shape[0]):
            size += y[i] * y[i]
        r.size[n] = size


@kernel
def take_off(t: Tree, p: Projection, first: int) -> None:
    """Subtract the orthonormal rows from the Delassus matrix and from the free velocities of the feet."""
    r = t.rows
    nv, size = t.x.shape[0], r.free.shape[0]
    r.given[0] = 0.0
    for a in range(size):
        p.w_free[a] = r.free[a]
        for b in range(size):
            p.G[a, b] = r.whole[a, b]
    for n in range(first, r.used[0]):
        y, along, over = r.Q[n], r.along[n], -r.beta[n]
        for i in range(nv):
            over += y[i] * t.z[i]
        r.given[0] -= over * (r.after[n] + 0.5 * over)
        for k in range(t.leaf.shape[0]):
            for c in range(6):
                total = 0.0
                for d in range(t.depth[t.leaf[k]]):
                    total += t.Y[k, d, c] * y[t.ancestors[t.leaf[k], d]]
                along[6 * k + c] = total
        for a in range(size):
            p.w_free[a] -= along[a] * over
            for b in range(size):
                p.G[a, b] -= along[a] * along[b]


@kernel
def keep_whole(t: Tree, p: Projection) -> None:
    """Store the projection without rows, for :func:`eliminate`."""
    for a in range(p.w_free.shape[0]):
        t.rows.free[a] = p.w_free[a]
        for b in range(p.w_free.shape[0]):
            t.rows.whole[a, b] = p.G[a, b]


@kernel
def take(t: Tree, v: Array) -> None:
    """Add the last :func:`change` to ``v`` (nv,); fill ``acceleration`` and ``step`` = h v+ (semi-implicit)."""
    for i in range(v.shape[0]):
        t.acceleration[i] = t.x[i] / t.h
        v[i] += t.x[i]
        t.step[i] = t.h * v[i]


@kernel
def find_way(t: Tree, late: Array, v: Array) -> float:
    """Fill ``step`` for forces that act within the step: the displacement is the integral of the velocity.

    Torques act throughout the step, so half of their impulse counts: ``step`` = h v + h^2 a / 2.

    Args:
        t: See :class:`Tree`.
        late: (K, 6) impulse weighted by the fraction of the step that remained when it acted.
        v: (nv,) before the step.

    Returns:
        Largest velocity, as :func:`change`.
    """
    halfway = change(t, late, True, v)
    for i in range(v.shape[0]):
        t.step[i] = t.h * (v[i] + t.x[i])
    return halfway


@kernel
def take_within(t: Tree, v: Array) -> None:
    """Add the last :func:`change` to ``v`` (nv,) in place; fill ``acceleration``, and leave ``step``."""
    for i in range(v.shape[0]):
        t.acceleration[i] = t.x[i] / t.h
        v[i] += t.h * t.acceleration[i]


@kernel
def add_wrenches(t: Tree, impulse: Array, x: Array) -> None:
    """Add Y^T ``impulse`` (K, 6) to ``x`` (nv,)."""
    for k in range(t.leaf.shape[0]):
        leaf = t.leaf[k]
        for d in range(t.depth[leaf]):
            total = 0.0
            for r in range(6):
                total += t.Y[k, d, r] * impulse[k, r]
            x[t.ancestors[leaf, d]] += total


@kernel
def change(t: Tree, impulse: Array, late: bool, v: Array) -> float:
    """Fill ``t.x`` with L^-1 (z + Y^T impulse); return the largest |v + x|, NaN if any is not finite.

    Args:
        t: See :class:`Tree`.
        impulse: (K, 6) impulses (f, torque) at the sole origins, ground axes [N.s, N.m.s].
        late: Whether to compute the mean change over the step, for which z counts half.
        v: (nv,) before the step.
    """
    nv = v.shape[0]
    share = 0.5 if late else 1.0
    x = t.x
    for i in range(nv):
        x[i] = share * t.z[i]
    add_wrenches(t, impulse, x)
    if t.rows.used[0] > 0:
        impose(t.rows, x, late)
    return solve_change(t, x, v)


@kernel
def solve_change(t: Tree, x: Array, v: Array) -> float:
    """Replace ``x`` (nv,) by L^-1 x; return the largest |v + x|, NaN if any is not finite."""
    largest = 0.0
    for i in range(x.shape[0]):
        total = x[i]
        for d in range(t.depth[i] - 1):
            total -= t.L[i, d] * x[t.ancestors[i, d]]
        x[i] = total * t.inverse[i]
        speed = abs(v[i] + x[i])
        if not np.isfinite(speed):
            return np.nan
        if speed > largest:
            largest = speed
    return largest
