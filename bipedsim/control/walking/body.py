"""Rigid-body model and feet, packed for the kernels of walking."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from bipedsim.numerics import Array, Integers, act, assign, kernel, point_acceleration, point_velocity, turn_axes


class BodyArrays(NamedTuple):
    """Dynamics, refilled at every tick, and constants of the robot, for K feet.

    Attributes:
        poses, twists, accelerations, origin: See :class:`bipedsim.dynamics.Joints`; the accelerations include gravity.
        ancestors, depth, J, nle, com: See :class:`bipedsim.dynamics.Equations`.
        M: (nv, nv) mass matrix, both triangles.
        joint: (K,) joint that carries each foot.
        R_sole, p_sole: Frame at the centre of the sole in that joint.
        columns: (K, most) columns of J that move the foot, padded with -1.
        mass, g: [kg], [m/s^2].
    """

    poses: Array
    twists: Array
    accelerations: Array
    origin: Array
    ancestors: Integers
    depth: Integers
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


class FootStates(NamedTuple):
    """Pose and velocity of the feet at the centre of each sole, and velocity of the CoM, in world axes.

    Attributes:
        v_com: (3,) [m/s].
        R: (K, 3, 3) orientation.
        p: (K, 3) position [m].
        twist: (K, 6) linear [m/s], then angular [rad/s].
        bias: (K, 6) acceleration at zero joint accelerations, J' v.
        J: (K, 6, nv) Jacobian.
    """

    v_com: Annotated[Array, 3]
    R: Annotated[Array, "K", 3, 3]
    p: Annotated[Array, "K", 3]
    twist: Annotated[Array, "K", 6]
    bias: Annotated[Array, "K", 6]
    J: Annotated[Array, "K", 6, "v"]


@kernel
def place_feet(body: BodyArrays, feet: FootStates, v) -> None:  # type: ignore[no-untyped-def]
    """Fill ``feet`` for velocities v (nv,), and the lower triangle of M."""
    base, o = body.poses[1], body.origin
    for k in range(v.shape[0]):
        for d in range(body.depth[k]):
            body.M[body.ancestors[k, d], k] = body.M[k, body.ancestors[k, d]]
    for x in range(3):
        feet.v_com[x] = 0.0
    for r in range(3):
        # The first rows of M v are the momentum of the robot, in the axes of the base.
        momentum = 0.0
        for i in range(v.shape[0]):
            momentum += body.M[r, i] * v[i]
        for x in range(3):
            feet.v_com[x] += base[3 * r + x] * momentum / body.mass
    for k in range(body.joint.shape[0]):
        j = body.joint[k]
        pose, twist, acceleration = body.poses[j], body.twists[j], body.accelerations[j]
        r = body.p_sole[k]
        turn_axes(pose, body.R_sole[k], feet.R[k])
        x, y, z = act(pose, r)
        assign(feet.p[k], (x, y, z))
        lever = (x - o[0], y - o[1], z - o[2])
        assign(feet.twist[k], point_velocity(twist, lever))
        assign(feet.twist[k, 3:], twist[3:])
        assign(feet.bias[k], point_acceleration(twist, acceleration, lever))
        assign(feet.bias[k, 3:], acceleration[3:])
        # The accelerations include gravity as an upward acceleration, which is removed here.
        feet.bias[k, 2] -= body.g
        p = feet.p[k]
        J = feet.J[k]
        for i in range(body.columns.shape[1]):
            c = body.columns[k, i]
            if c < 0:
                break
            column = body.J[c]
            assign(J[:, c], point_velocity(column, p))
            assign(J[3:, c], column[3:])
