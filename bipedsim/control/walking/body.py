"""The rigid body and its feet as the kernels of walking see them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bipedsim.numerics import control_kernel

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class Body(NamedTuple):
    """What pinocchio refills at every tick, live, and what of the robot never changes; K feet.

    Attributes:
        poses: (joints, 12) rotation column after column, then translation [m].
        twists, accelerations: (joints, 6) linear first, in the frame of the joint; gravity is in the accelerations.
        J: (6, nv) of all joints at the origin of the world.
        M: (nv, nv) joint-space inertia. nle: (nv,) nonlinear effects.
        com: (3,) centre of mass in the world [m].
        joint: (K,) that carries each foot. R_sole, p_sole: Frame at the centre of the sole in that joint.
        columns: (K, most) columns of J that move the foot, -1 where there are fewer.
        mass, g: [kg], [m/s^2].
    """

    poses: Array
    twists: Array
    accelerations: Array
    J: Array
    M: Array
    nle: Array
    com: Array
    joint: Integers
    R_sole: Array
    p_sole: Array
    columns: Integers
    mass: float
    g: float


class Feet(NamedTuple):
    """Where the feet are, in the axes of the world, at the centre of each sole; and how the CoM moves.

    Attributes:
        v_com: (3,) [m/s].
        R: (K, 3, 3). p: (K, 3) [m]. twist: (K, 6) linear [m/s], then angular [rad/s].
        bias: (K, 6) acceleration at rest of the joint accelerations, J' v.
        J: (K, 6, nv).
    """

    v_com: Array
    R: Array
    p: Array
    twist: Array
    bias: Array
    J: Array


@control_kernel
def place_feet(body: Body, feet: Feet, v) -> None:  # type: ignore[no-untyped-def]
    """Fill ``feet`` for velocities v (nv,)."""
    base = body.poses[1]
    for x in range(3):
        feet.v_com[x] = 0.0
    for r in range(3):
        # The first rows of M v are the momentum of the robot, in the axes of the base. M is symmetric, and stored by
        # columns.
        momentum = 0.0
        for i in range(v.shape[0]):
            momentum += body.M[i, r] * v[i]
        for x in range(3):
            feet.v_com[x] += base[3 * r + x] * momentum / body.mass
    for k in range(body.joint.shape[0]):
        j = body.joint[k]
        pose = body.poses[j]
        w = body.twists[j]
        a = body.accelerations[j]
        R = feet.R[k]
        r = body.p_sole[k]
        # Velocity and classical acceleration of the sole's centre in the frame of the joint.
        ux = w[0] + w[4] * r[2] - w[5] * r[1]
        uy = w[1] + w[5] * r[0] - w[3] * r[2]
        uz = w[2] + w[3] * r[1] - w[4] * r[0]
        ax = a[0] + a[4] * r[2] - a[5] * r[1] + w[4] * uz - w[5] * uy
        ay = a[1] + a[5] * r[0] - a[3] * r[2] + w[5] * ux - w[3] * uz
        az = a[2] + a[3] * r[1] - a[4] * r[0] + w[3] * uy - w[4] * ux
        for x in range(3):
            r0 = pose[x]
            r1 = pose[3 + x]
            r2 = pose[6 + x]
            for y in range(3):
                R[x, y] = (
                    r0 * body.R_sole[k, 0, y] + r1 * body.R_sole[k, 1, y] + r2 * body.R_sole[k, 2, y]
                )
            feet.p[k, x] = pose[9 + x] + r0 * r[0] + r1 * r[1] + r2 * r[2]
            feet.twist[k, x] = r0 * ux + r1 * uy + r2 * uz
            feet.twist[k, 3 + x] = r0 * w[3] + r1 * w[4] + r2 * w[5]
            feet.bias[k, x] = r0 * ax + r1 * ay + r2 * az
            feet.bias[k, 3 + x] = r0 * a[3] + r1 * a[4] + r2 * a[5]
        feet.bias[k, 2] -= body.g
        p = feet.p[k]
        J = feet.J[k]
        for i in range(body.columns.shape[1]):
            c = body.columns[k, i]
            if c < 0:
                break
            wx = body.J[3, c]
            wy = body.J[4, c]
            wz = body.J[5, c]
            J[0, c] = body.J[0, c] + wy * p[2] - wz * p[1]
            J[1, c] = body.J[1, c] + wz * p[0] - wx * p[2]
            J[2, c] = body.J[2, c] + wx * p[1] - wy * p[0]
            J[3, c] = wx
            J[4, c] = wy
            J[5, c] = wz
