"""What the kernels of the estimator read and fill, as tuples of arrays; K feet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from bipedsim.numerics import Array, Flags, Integers

FOOT_TIME = 0.02
"""Time [s] over which the acceleration of a swinging foot is measured."""
P_IMU, V_IMU, BIAS, ANCHORS = range(4)
"""Rows of the filter's state; the anchors come last."""


class Shape(NamedTuple):
    """The robot.

    Attributes:
        poses: (joints, 12) live placements of all joints against the base, :func:`bipedsim.dynamics.live_poses`.
        motions: (joints, 6) live velocities by the joints alone, each in the frame of its joint.
        imu_joint, imu_R, imu_p: The joint that carries the IMU, and the IMU in it.
        foot_joint, sole_R, sole_p: (K,), (K, 3, 3), (K, 3) joint of each foot, and the sole in it.
        radius: (K,) of feet that are balls [m].
        vertices, n_vertices: (K, N, 2), (K,) polygons of the soles [m].
        ankle_to_sole: (K, 6, 6) wrenches from the ankle to the sole.
        bodies: (K, B) joints whose bodies hang below each ankle sensor, -1 for none.
        mass, lever: (joints,), (joints, 3) of every body [kg], [m].
        idx_q, idx_v: (nu,) where joint positions and velocities stand.
        g, weight: Gravity [m/s^2] and the robot's weight [N].
    """

    poses: Array
    motions: Array
    imu_joint: int
    imu_R: Array  # noqa: N815 -- R is the rotation
    imu_p: Array
    foot_joint: Integers
    sole_R: Array  # noqa: N815
    sole_p: Array
    radius: Array
    vertices: Array
    n_vertices: Integers
    ankle_to_sole: Array
    bodies: Integers
    mass: Array
    lever: Array
    idx_q: Integers
    idx_v: Integers
    g: float
    weight: float


class Held(NamedTuple):
    """The last good measurements, as in ``Observation``, and the joints in pinocchio's order, the base at rest."""

    joint_position: Array
    joint_velocity: Array
    imu_orientation: Array
    imu_angular_velocity: Array
    imu_linear_acceleration: Array
    foot_wrench: Array
    q: Array
    v: Array


class Kinematics(NamedTuple):
    """Where things are in this tick.

    Attributes:
        base_R: (3, 3) orientation of the base in the world.
        imu_R, imu_p: (3, 3), (3,) IMU in the base.
        imu_v: (3,) velocity of the IMU by the joints alone, in the base [m/s].
        w: (3,) angular velocity of the base, in the base [rad/s].
        feet_R: (K, 3, 3) orientation of each sole in the world.
        sole: (K, 3) origin of each sole, seen from the IMU, in the axes of the world [m].
        slide: (K, 3) velocity of the point of each foot that touches the ground, likewise [m/s].
    """

    base_R: Annotated[Array, 3, 3]  # noqa: N815
    imu_R: Annotated[Array, 3, 3]  # noqa: N815
    imu_p: Annotated[Array, 3]
    imu_v: Annotated[Array, 3]
    w: Annotated[Array, 3]
    feet_R: Annotated[Array, "K", 3, 3]  # noqa: N815
    sole: Annotated[Array, "K", 3]
    slide: Annotated[Array, "K", 3]


class State(NamedTuple):
    """What the next tick depends on.

    Attributes:
        R: (3, 3) orientation of the IMU in the world.
        x: (3 + K, 3) position [m] and velocity [m/s] of the IMU in the world, bias of the accelerometer in the IMU
            frame [m/s^2], and the origin of each sole in the world [m].
        P: (3 + K, 3 + K) covariance of ``x``, the same for every axis.
        feet_R: (K, 3, 3) orientation of each sole in the world.
        pivot: (K, 2) centre of pressure in each sole [m], the last one of feet without load.
        beyond: (K,) how long the force has been beyond the threshold for a change of contact [s].
        age: (K,) how long each foot has been in contact [s].
        smooth: (K, 3) velocity of each foot in the world, late by ``FOOT_TIME`` [m/s].
        heading: (2,) cosine and sine of the turn from the IMU's world to the estimator's.
        since: (2,) time since the start [s], and whether the heading was given then.
        foothold: (4,) where a foot came to rest last [m], NaN before, and how far that is still to be lowered [m].
    """

    R: Annotated[Array, 3, 3]
    x: Annotated[Array, "n", 3]
    P: Annotated[Array, "n", "n"]
    feet_R: Annotated[Array, "K", 3, 3]  # noqa: N815
    pivot: Annotated[Array, "K", 2]
    beyond: Annotated[Array, "K"]
    age: Annotated[Array, "K"]
    smooth: Annotated[Array, "K", 3]
    heading: Annotated[Array, 2]
    since: Annotated[Array, 2]
    foothold: Annotated[Array, 4]


@dataclass(slots=True, eq=False)
class BaseEstimate:
    """What the robot knows of itself after one tick; the arrays are overwritten by the next one.

    Attributes:
        q: (nq,) configuration in pinocchio's order: estimated base, measured joints.
        v: (nv,) velocity in pinocchio's order; the base's in its own frame, linear first.
        contact: (K,) whether each foot touches the ground.
        normal_force: (K,) along each sole's normal [N].
        wrench: (K, 6) of the ground on each sole, in the sole frame at its origin, force first: that of the ankle, and
            what the foot's own mass needs, at rest in contact and else as it moves.
        faults: Ticks since reset in which a measurement was not finite, or time did not go on; the last good values
            stood in.
    """

    q: Annotated[Array, "q"]
    v: Annotated[Array, "v"]
    contact: Annotated[Flags, "K"]
    normal_force: Annotated[Array, "K"]
    wrench: Annotated[Array, "K", 6]
    faults: int = 0


class Work(NamedTuple):
    """Room for what lives for a few lines: rotations (3, 3), vectors (3,) and a row of the covariance."""

    A: Annotated[Array, 3, 3]
    B: Annotated[Array, 3, 3]
    C: Annotated[Array, 3, 3]
    a: Annotated[Array, 3]
    b: Annotated[Array, 3]
    c: Annotated[Array, 3]
    row: Annotated[Array, "n"]


class Estimation(NamedTuple):
    """Everything; ``tuning`` are the :class:`bipedsim.control.estimation.EstimatorParams`."""

    shape: Shape
    held: Held
    kinematics: Kinematics
    state: State
    result: BaseEstimate
    work: Work
    tuning: Any
