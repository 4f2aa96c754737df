"""Arrays that the kernels of the estimator read and fill, packed as tuples, for K feet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from bipedsim.numerics import Array, Flags, Integers

FOOT_TIME = 0.02
"""Time constant [s] over which the acceleration of a swing foot is estimated."""
P_IMU, V_IMU, BIAS, ANCHORS = range(4)
"""Rows of the filter's state; the anchors come last."""


class RobotArrays(NamedTuple):
    """Constants of the robot and live views of its kinematics.

    Attributes:
        poses: (joints, 12) live placements of all joints in the base, :func:`bipedsim.dynamics.live_poses`.
        motions: (joints, 6) live velocities due to the joints alone, each in the frame of its joint.
        imu_joint, imu_R, imu_p: The joint that carries the IMU, and the placement of the IMU in it.
        foot_joint, sole_R, sole_p: (K,), (K, 3, 3), (K, 3) joint of each foot, and placement of the sole in it.
        radius: (K,) radius of ball feet [m].
        vertices, n_vertices: (K, N, 2), (K,) contact polygons [m].
        ankle_to_sole: (K, 6, 6) transforms of wrenches from the ankle to the sole.
        bodies: (K, B) joints of the bodies below each ankle sensor, -1 for none.
        mass, lever: (joints,), (joints, 3) mass [kg] and CoM [m] of every body.
        idx_q, idx_v: (nu,) indices of joint positions and velocities.
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


class MeasuredArrays(NamedTuple):
    """The last valid measurements, as in ``Observation``, and the joints in pinocchio's order, the base at rest."""

    joint_position: Array
    joint_velocity: Array
    imu_orientation: Array
    imu_angular_velocity: Array
    imu_linear_acceleration: Array
    foot_wrench: Array
    q: Array
    v: Array


class Kinematics(NamedTuple):
    """Poses and velocities of base, IMU and soles in this tick.

    Attributes:
        base_R: (3, 3) orientation of the base in the world.
        imu_R, imu_p: (3, 3), (3,) IMU in the base.
        imu_v: (3,) velocity of the IMU due to the joints alone, in the base [m/s].
        w: (3,) angular velocity of the base, in the base [rad/s].
        feet_R: (K, 3, 3) orientation of each sole in the world.
        sole: (K, 3) origin of each sole relative to the IMU, in the axes of the world [m].
        slide: (K, 3) velocity of each foot's contact point relative to the IMU, in the axes of the world [m/s].
    """

    base_R: Annotated[Array, 3, 3]  # noqa: N815
    imu_R: Annotated[Array, 3, 3]  # noqa: N815
    imu_p: Annotated[Array, 3]
    imu_v: Annotated[Array, 3]
    w: Annotated[Array, 3]
    feet_R: Annotated[Array, "K", 3, 3]  # noqa: N815
    sole: Annotated[Array, "K", 3]
    slide: Annotated[Array, "K", 3]


class FilterState(NamedTuple):
    """The state that the estimator carries from tick to tick.

    Attributes:
        R: (3, 3) orientation of the IMU in the world.
        x: (3 + K, 3) position [m] and velocity [m/s] of the IMU in the world, bias of the accelerometer in the IMU
            frame [m/s^2], and the origin of each sole in the world [m].
        P: (3 + K, 3 + K) covariance of ``x``, the same for every axis.
        feet_R: (K, 3, 3) orientation of each sole in the world.
        pivot: (K, 2) centre of pressure in each sole [m]; for a foot without load, the last one.
        beyond: (K,) time that the force has been beyond the threshold for a change of contact [s].
        age: (K,) time that each foot has been in contact [s].
        smooth: (K, 3) velocity of each foot in the world, low-pass filtered with ``FOOT_TIME`` [m/s].
        heading: (2,) cosine and sine of the yaw from the IMU's world to the estimator's.
        since: (2,) time since the start [s], and whether the start prescribed the heading.
        foothold: (4,) position of the last foothold [m], NaN before the first one, and the remaining distance by which
            it is still to be lowered [m].
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
    """The estimate after one tick; the next tick overwrites the arrays.

    Attributes:
        q: (nq,) configuration in pinocchio's order: estimated base, measured joints.
        v: (nv,) velocity in pinocchio's order; the base's in its own frame, linear first.
        contact: (K,) whether each foot is in contact with the ground.
        normal_force: (K,) along each sole's normal [N].
        wrench: (K, 6) ground reaction on each sole, in the sole frame at its origin, force first. It is the ankle's
            wrench plus the wrench for the foot's own mass: its weight in contact, also its acceleration in the air.
        faults: Number of ticks since reset with a measurement that was not finite or a time step outside its range.
            The last valid values replace bad measurements.
    """

    q: Annotated[Array, "q"]
    v: Annotated[Array, "v"]
    contact: Annotated[Flags, "K"]
    normal_force: Annotated[Array, "K"]
    wrench: Annotated[Array, "K", 6]
    faults: int = 0


class ScratchArrays(NamedTuple):
    """Scratch arrays: rotations (3, 3), vectors (3,) and a row of the covariance."""

    A: Annotated[Array, 3, 3]
    B: Annotated[Array, 3, 3]
    C: Annotated[Array, 3, 3]
    a: Annotated[Array, 3]
    b: Annotated[Array, 3]
    c: Annotated[Array, 3]
    row: Annotated[Array, "n"]


class EstimatorArrays(NamedTuple):
    """All arrays of the estimator; ``tuning`` is :class:`bipedsim.control.estimation.EstimatorParams`."""

    shape: RobotArrays
    held: MeasuredArrays
    kinematics: Kinematics
    state: FilterState
    result: BaseEstimate
    work: ScratchArrays
    tuning: Any
