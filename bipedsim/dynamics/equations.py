"""Equations of motion of a kinematic tree, M dv + nle = tau: mass matrix and bias forces.

M follows from composite inertias, and nle from the Newton-Euler equations of the bodies (Featherstone, "Rigid Body
Dynamics Algorithms", 2008, sections 5.3 and 6.2). One pass from the leaves to the root computes both.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
import pinocchio as pin

from bipedsim.dynamics.joints import FLOATS, Joints, move, place
from bipedsim.numerics import (
    Array,
    Integers,
    Three,
    accumulate,
    add_wrench,
    cross,
    entry,
    kernel,
    point_acceleration,
    point_velocity,
    turn,
    zeros_of,
)

Six = tuple[float, float, float, float, float, float]


class Equations(NamedTuple):
    """Store M and nle of a kinematic tree, with work arrays.

    Attributes:
        joints: The tree; all of its joints are evaluated.
        ancestors, depth: (nv, D) velocity indices from the root to each velocity, itself last; (nv,) number of entries
            used.
        armature: (nv,) reflected inertia of the actuators [kg.m^2].
        M: (nv, nv) mass matrix. Only the entries M[k, i] are filled where i is k or an ancestor of k; others are zero.
        nle: (nv,) Coriolis, centrifugal and gravity terms [N.m].
        J: (nv, 6) motion of each velocity at the origin of the world, linear first.
        com: (3,) centre of mass in the world [m].
        load: (joints, 6) force and torque for the motion of each joint's subtree at constant joint velocities.
        composite: (joints, 10) mass, first moment and inertia, xx xy yy xz yz zz, of the subtree.
    """

    joints: Joints
    ancestors: Integers
    depth: Integers
    armature: Array
    M: Annotated[Array, "v", "v"]
    nle: Annotated[Array, "v"]
    J: Annotated[Array, "v", 6]
    com: Annotated[Array, 3]
    load: Annotated[Array, "J", 6]
    composite: Annotated[Array, "J", 10]

    @classmethod
    def of_model(cls, model: pin.Model) -> Equations:
        """Make the equations of a model with its current values.

        Raises:
            ConfigError: As in :meth:`Joints.of_model`.
        """
        ancestors, depth = _ancestors(model)
        equations: Equations = zeros_of(
            cls,
            {"J": model.njoints, "v": model.nv},
            joints=Joints.of_model(model),
            ancestors=ancestors,
            depth=depth,
            armature=np.array(model.armature),
        )
        return equations


def _ancestors(model: pin.Model) -> tuple[Integers, Integers]:
    """Return the ancestors of each velocity from the root to itself, (nv, D) padded with 0, and their number, (nv,)."""
    chains: list[list[int]] = [[] for _ in range(model.nv)]
    for j in range(1, model.njoints):
        first, above = model.idx_vs[j], model.parents[j]
        before = chains[model.idx_vs[above] + model.nvs[above] - 1] if above else []
        for i in range(first, first + model.nvs[j]):
            chains[i] = [*before, *range(first, i + 1)]
    depth = np.array([len(chain) for chain in chains], dtype=np.int64)
    ancestors = np.zeros((len(chains), int(depth.max(initial=1))), dtype=np.int64)
    for i, chain in enumerate(chains):
        ancestors[i, : depth[i]] = chain
    return ancestors, depth


@kernel
def turned_inertia(s: Joints, j: int) -> Six:
    """Return the inertia of the body of joint ``j`` about its centre of mass, along the axes of the world."""
    pose, b = s.poses[j], s.inertia[j]
    xx, xy, yy, xz, yz, zz = b[0], b[1], b[2], b[3], b[4], b[5]
    # Columns of R B.
    p = turn(pose, (xx, xy, xz))
    q = turn(pose, (xy, yy, yz))
    r = turn(pose, (xz, yz, zz))
    return (
        p[0] * pose[0] + q[0] * pose[3] + r[0] * pose[6],
        p[0] * pose[1] + q[0] * pose[4] + r[0] * pose[7],
        p[1] * pose[1] + q[1] * pose[4] + r[1] * pose[7],
        p[0] * pose[2] + q[0] * pose[5] + r[0] * pose[8],
        p[1] * pose[2] + q[1] * pose[5] + r[1] * pose[8],
        p[2] * pose[2] + q[2] * pose[5] + r[2] * pose[8],
    )


@kernel
def lever(s: Joints, j: int) -> Three:
    """Return the centre of mass of the body of joint ``j`` relative to ``origin``."""
    pose, o = s.poses[j], s.origin
    r = turn(pose, s.lever[j])
    return r[0] + pose[9] - o[0], r[1] + pose[10] - o[1], r[2] + pose[11] - o[2]


@kernel
def _times(inertia: Six, w: Three) -> Three:
    """Return the product of a symmetric matrix, xx xy yy xz yz zz, and a vector."""
    return (
        inertia[0] * w[0] + inertia[1] * w[1] + inertia[3] * w[2],
        inertia[1] * w[0] + inertia[2] * w[1] + inertia[4] * w[2],
        inertia[3] * w[0] + inertia[4] * w[1] + inertia[5] * w[2],
    )


@kernel
def needs(s: Joints, j: int, c: Three, inertia: Six) -> Six:
    """Return the force and torque at ``origin`` that produce the present motion of the body of joint ``j``.

    Args:
        s, j: Joints, and index of the joint.
        c, inertia: Its body's :func:`lever` and :func:`turned_inertia`.
    """
    twist, acceleration, m = s.twists[j], s.accelerations[j], s.mass[j]
    a = point_acceleration(twist, acceleration, c)
    w = (twist[3], twist[4], twist[5])
    f = (m * a[0], m * a[1], m * a[2])
    n = _times(inertia, (acceleration[3], acceleration[4], acceleration[5]))
    spin = cross(w, _times(inertia, w))
    arm = cross(c, f)
    return f[0], f[1], f[2], n[0] + spin[0] + arm[0], n[1] + spin[1] + arm[1], n[2] + spin[2] + arm[2]


@kernel
def _init_subtree(e: Equations, j: int) -> None:
    """Initialise ``load`` and ``composite`` of joint ``j`` with its own body."""
    s = e.joints
    c, inertia, m = lever(s, j), turned_inertia(s, j), s.mass[j]
    f = needs(s, j, c, inertia)
    for a in range(6):
        e.load[j, a] = f[a]
    _begin_composite(e.composite[j], m, c, inertia)


@kernel
def _begin_composite(out: Array, m: float, c: Three, inertia: Six) -> None:
    """Fill mass, first moment and inertia (10,) at ``origin`` with those of one body."""
    out[0] = m
    out[1], out[2], out[3] = m * c[0], m * c[1], m * c[2]
    out[4] = inertia[0] + m * (c[1] * c[1] + c[2] * c[2])
    out[5] = inertia[1] - m * c[0] * c[1]
    out[6] = inertia[2] + m * (c[0] * c[0] + c[2] * c[2])
    out[7] = inertia[3] - m * c[0] * c[2]
    out[8] = inertia[4] - m * c[1] * c[2]
    out[9] = inertia[5] + m * (c[0] * c[0] + c[1] * c[1])


@kernel
def _fill_row(e: Equations, j: int, k: int) -> None:
    """Fill the entries of M, nle and J for the velocity ``k`` of joint ``j``."""
    S, b, f, all_S = e.joints.S[k], e.composite[j], e.load[j], e.joints.S
    u, w = (S[0], S[1], S[2]), (S[3], S[4], S[5])
    h = (b[1], b[2], b[3])
    e.nle[k] = u[0] * f[0] + u[1] * f[1] + u[2] * f[2] + w[0] * f[3] + w[1] * f[4] + w[2] * f[5]
    swing, arm = cross(w, h), cross(h, u)
    px, py, pz = b[0] * u[0] + swing[0], b[0] * u[1] + swing[1], b[0] * u[2] + swing[2]
    lx, ly, lz = _times((b[4], b[5], b[6], b[7], b[8], b[9]), w)
    lx += arm[0]
    ly += arm[1]
    lz += arm[2]
    for d in range(e.depth[k]):
        i = e.ancestors[k, d]
        T = all_S[i]
        e.M[k, i] = T[0] * px + T[1] * py + T[2] * pz + T[3] * lx + T[4] * ly + T[5] * lz
    e.M[k, k] += e.armature[k]
    o = e.joints.origin
    shift = cross((o[0], o[1], o[2]), w)
    J = e.J[k]
    J[0], J[1], J[2] = u[0] + shift[0], u[1] + shift[1], u[2] + shift[2]
    J[3], J[4], J[5] = w


@kernel
def fill(e: Equations, q: Array, v: Array) -> None:
    """Fill all of ``e`` and its joints at (q, v), (nq,) and (nv,)."""
    s = e.joints
    place(s, q)
    for j in range(1, s.parent.shape[0]):
        move(s, j, v)
        _init_subtree(e, j)
    for a in range(10):
        e.composite[0, a] = 0.0
    for j in range(s.parent.shape[0] - 1, 0, -1):
        first = s.idx_v[j]
        for k in range(first, first + (6 if s.kind[j] == FLOATS else 1)):
            _fill_row(e, j, k)
        above = s.parent[j]
        for a in range(6):
            e.load[above, a] += e.load[j, a]
        for a in range(10):
            e.composite[above, a] += e.composite[j, a]
    mass = e.composite[0, 0]
    for a in range(3):
        e.com[a] = s.origin[a] + e.composite[0, 1 + a] / mass


@kernel
def gather_momentum(e: Equations, q: Array, v: Array, momentum: Array) -> None:
    """Fill the momentum of all bodies at (q, v), and for the whole tree ``com`` and ``composite`` of joint 0.

    The function also fills poses and motions of the joints, but not M and nle.

    Args:
        e: See :class:`Equations`.
        q, v: (nq,), (nv,).
        momentum: (6,) linear [N.s], and angular about ``com`` [N.m.s], in the axes of the world.
    """
    s, whole = e.joints, e.composite[0]
    place(s, q)
    for a in range(10):
        whole[a] = 0.0
    for a in range(6):
        momentum[a] = 0.0
    for j in range(1, s.parent.shape[0]):
        move(s, j, v)
        c, inertia, m, twist = lever(s, j), turned_inertia(s, j), s.mass[j], s.twists[j]
        u = point_velocity(twist, c)
        add_wrench(momentum, (m * u[0], m * u[1], m * u[2]), c)
        accumulate(momentum[3:], _times(inertia, (twist[3], twist[4], twist[5])))
        _begin_composite(e.composite[j], m, c, inertia)
        for a in range(10):
            whole[a] += e.composite[j, a]
    c = (whole[1] / whole[0], whole[2] / whole[0], whole[3] / whole[0])
    moment = cross(c, momentum)
    for a in range(3):
        momentum[3 + a] -= moment[a]
        e.com[a] = s.origin[a] + c[a]


@entry
def fill_equations(boxed: Any, q: Array, v: Array) -> None:
    """Call :func:`fill` for a packed argument struct of equations."""
    fill(boxed.arrays, q, v)
