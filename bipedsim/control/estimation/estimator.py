"""Estimator of pose and velocity of the base from IMU, joints and ankle force-torque sensors.

A Kalman filter estimates the IMU's position and velocity, the bias of its accelerometer and one anchor per foot, after
Bloesch et al., "State estimation for legged robots" (RSS 2012). The IMU gives the attitude, so the filter is linear and
the three axes share one covariance. A foot that rolls turns about its centre of pressure (Masuya and Sugihara 2015,
"anchoring pivot"). docs/estimation.md has the equations, measured accuracy and limits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from bipedsim.config import param
from bipedsim.control.estimation.arrays import (
    ANCHORS,
    BaseEstimate,
    EstimatorArrays,
    FilterState,
    Kinematics,
    MeasuredArrays,
    RobotArrays,
    ScratchArrays,
)
from bipedsim.control.estimation.filter import estimate, start
from bipedsim.control.estimation.kinematics import take
from bipedsim.control.loads import LEAVES, TOUCHES
from bipedsim.dynamics import live_motions, live_poses
from bipedsim.errors import ConfigError, MeasurementError, warn_controller
from bipedsim.model import Robot, padded_vertices
from bipedsim.numerics import box, zeros_of
from bipedsim.sim import MEASURED, Observation

UNREAD = ("joint_effort", "height_scan", "scan_up", "imus", "contact_switches")
"""Measurements that the estimator does not need."""
MEASUREMENTS = tuple(name for name in MEASURED if name not in UNREAD)
"""Measurements that the estimator reads, in the order of the bits that ``kinematics.take`` returns."""


@dataclass(frozen=True)
class EstimatorParams:
    """Parameters of :class:`Estimator`."""

    contact_on: float = param(
        TOUCHES, "normal force over the robot's weight above which a foot is in contact", low=1e-3, high=1.0
    )
    contact_off: float = param(
        LEAVES, "normal force over the robot's weight below which a foot is not in contact", low=0.0, high=1.0
    )
    debounce: float = param(
        0.003,
        "time for which the force must be beyond a threshold before the contact changes",
        unit="s",
        low=0.0,
        high=0.1,
    )
    settle_time: float = param(
        0.02, "time in contact after which the position of a foot is an anchor", unit="s", low=0.0, high=0.5
    )
    rest_speed: float = param(
        0.3,
        "speed of a foot in contact above which it is not at rest and needs a new anchor",
        unit="m/s",
        low=1e-3,
        high=10.0,
    )
    level_slope: float = param(
        0.006,
        "rise over run from one foothold to the next below which the ground is taken as level, and the rise as the "
        "tilt of the IMU; 0: never",
        low=0.0,
        high=1.0,
    )
    full_load: float = param(
        0.2,
        "normal force over the robot's weight above which a foot has its full weight in the filter",
        low=1e-3,
        high=1.0,
    )
    attitude_time: float = param(
        0.1, "time over which the gyro smooths the orientation of the IMU; 0: none", unit="s", low=0.0, high=10.0
    )
    acceleration_noise: float = param(
        0.02,
        "noise density of the accelerometer, including vibrations of the structure",
        unit="m/s^2/sqrt(Hz)",
        low=1e-5,
        high=10.0,
    )
    bias_initial: float = param(
        0.1, "standard deviation of the accelerometer's bias at the start", unit="m/s^2", low=0.0, high=10.0
    )
    bias_noise: float = param(
        3e-3, "density of the drift of the accelerometer's bias", unit="m/s^2/sqrt(s)", low=0.0, high=1.0
    )
    position_noise: float = param(
        2e-4,
        "standard deviation of a foot's position against the IMU, by encoders and attitude",
        unit="m",
        low=1e-6,
        high=0.1,
    )
    velocity_noise: float = param(
        0.05,
        "standard deviation of a foot's velocity against the IMU, by joint velocities and gyro",
        unit="m/s",
        low=1e-4,
        high=10.0,
    )
    anchor_noise: float = param(
        3e-4,
        "drift density of a foot in contact",
        unit="m/sqrt(s)",
        low=1e-6,
        high=1.0,
    )
    largest_gap: float = param(
        0.1,
        "time between two measurements after which the filter restarts at its current state",
        unit="s",
        low=1e-3,
        high=10.0,
    )


SHORTEST_GAP = 1.5
"""Minimum ``largest_gap``, in ticks: time stamps are rounded, and one lost tick is a gap of two ticks."""


class Estimator:
    """Estimate pose and velocity of the base, contacts and sole wrenches.

    Args:
        robot: The robot; free-flying, with feet and an IMU, every joint measured.
        params: See :class:`EstimatorParams`.
        dt: Time between two measurements [s], used where time stamps are invalid.

    Attributes:
        estimate: The last estimate; always the same object.

    Raises:
        ConfigError: The robot has no free-flyer, no feet or no IMU, a joint is not measured, or parameters contradict
            each other.
    """

    Params = EstimatorParams

    def __init__(self, robot: Robot, params: EstimatorParams, dt: float) -> None:
        _check(robot, params, dt)
        self._model = model = pin.Model(robot.model)
        self._data = data = model.createData()
        n_feet = len(robot.soles)
        zeros = Observation.zeros(robot.nu, n_feet)
        measured = {name: getattr(zeros, name).copy() for name in MEASUREMENTS}
        sizes = {"K": n_feet, "n": ANCHORS + n_feet, "q": model.nq, "v": model.nv}
        self._held = MeasuredArrays(**measured, q=pin.neutral(model), v=np.zeros(model.nv))
        self.estimate = zeros_of(BaseEstimate, sizes, q=robot.q_nominal.copy(), faults=0)
        self._box = box(
            EstimatorArrays(
                shape=_shape(robot, model, data),
                held=self._held,
                kinematics=zeros_of(Kinematics, sizes, base_R=np.eye(3), imu_R=np.eye(3)),
                state=zeros_of(
                    FilterState, sizes, R=np.eye(3), heading=np.array([1.0, 0.0]), foothold=np.full(4, np.nan)
                ),
                result=self.estimate,
                work=zeros_of(ScratchArrays, sizes),
                tuning=params,
            )
        )
        self._gap = params.largest_gap
        self._dt = dt
        self._t = 0.0
        self._warned = False
        # Kernels load now and not within the first tick; `reset` discards this update.
        zeros.joint_position[:] = robot.posture
        self.reset(zeros)
        zeros.t = dt
        self.update(zeros)

    def reset(self, observation: Observation, pose_world_base: pin.SE3 | None = None) -> BaseEstimate:
        """Start from this observation.

        Args:
            observation: If no foot is loaded, as before the first step of a simulator, all feet count as in contact.
            pose_world_base: Position and heading of the base; the IMU gives the tilt. By default the feet are on z = 0,
                midway about the origin, and the IMU gives the heading.

        Raises:
            MeasurementError: A measurement is not finite, or the orientation is no quaternion.
        """
        self._warned = False
        self.estimate.faults = 0
        bad = self._take(observation)
        if bad:
            raise MeasurementError(
                "cannot start: not finite, or no quaternion", f"estimator: {_measurement_names(bad)}"
            )
        self._t = observation.t
        pose = np.full(4, np.nan)
        if pose_world_base is not None:
            R = pose_world_base.rotation
            pose[:] = *pose_world_base.translation, np.arctan2(R[1, 0], R[0, 0])
        start(self._box, pose)
        return self.estimate

    def update(self, observation: Observation) -> BaseEstimate:
        """Update the estimate with one observation and return it; the next call overwrites the arrays.

        An observation with the time stamp of the last one is a repetition and changes nothing. After a jump of time,
        back or by more than ``largest_gap``, the filter starts anew at the last position. It places the anchors at the
        measured feet and estimates the velocity again.
        """
        dt = observation.t - self._t
        if dt == 0.0:
            return self.estimate
        bad = self._take(observation)
        jumped = dt < 0.0 or dt > self._gap
        stamped = math.isfinite(dt)
        if bad or jumped or not stamped:
            self._report(bad, dt)
        self._t = observation.t if stamped else self._t + self._dt
        step = dt if stamped and not jumped else self._dt
        estimate(self._box, step, bad, jumped)
        return self.estimate

    def _take(self, observation: Observation) -> int:
        """Store all valid measurements, update the joint kinematics, and return the bits of invalid measurements."""
        bad = take(
            self._box,
            observation.joint_position,
            observation.joint_velocity,
            observation.imu_orientation,
            observation.imu_angular_velocity,
            observation.imu_linear_acceleration,
            observation.foot_wrench,
        )
        pin.forwardKinematics(self._model, self._data, self._held.q, self._held.v)
        return int(bad)

    def _report(self, bad: int, dt: float) -> None:
        self.estimate.faults += 1
        if self._warned:
            return
        self._warned = True
        fault = (
            f"{_measurement_names(bad)} is not finite; the last valid value is used instead"
            if bad
            else f"time went on by {dt:.6g} s"
        )
        warn_controller(f"estimator: at t = {self._t:.6g} s {fault}; further faults are only counted")


def _measurement_names(bad: int) -> str:
    return ", ".join(name for i, name in enumerate(MEASUREMENTS) if bad >> i & 1)


def _check(robot: Robot, params: EstimatorParams, dt: float) -> None:
    """Raise a ConfigError if the estimator cannot work with the robot or the parameters."""
    missing = [
        name
        for name, present in (
            ("a free-flyer", robot.free_flyer),
            ("feet", bool(robot.soles)),
            ("an IMU", 0 < robot.imu_joint_id < robot.model.njoints),
        )
        if not present
    ]
    if missing:
        raise ConfigError(
            f"{robot.name!r} lacks {' and '.join(missing)}; base states need all of them", f"estimator: {robot.name}"
        )
    measured = {*robot.joint_names, "universe", robot.model.names[1]}
    passive = [name for name in robot.model.names if name not in measured]
    if passive:
        raise ConfigError(
            f"{robot.name!r} does not measure them; every joint is needed", f"estimator: {', '.join(passive)}"
        )
    if params.contact_off > params.contact_on:
        raise ConfigError(
            f"is above contact_on = {params.contact_on}; a foot would touch and leave the ground at once",
            "estimator: contact_off",
            params.contact_off,
        )
    if not (np.isfinite(dt) and dt > 0.0):
        raise ConfigError("s must be positive and finite", "estimator: dt", dt)
    if params.largest_gap < SHORTEST_GAP * dt:
        raise ConfigError(
            f"s is less than {SHORTEST_GAP} ticks of {dt} s, so that every measurement could be taken for one after "
            f"a gap; it needs {SHORTEST_GAP * dt:.3g} s or more",
            "estimator: largest_gap",
            params.largest_gap,
        )


def _shape(robot: Robot, model: pin.Model, data: pin.Data) -> RobotArrays:
    """Pack the constants of the robot for the kernels, with live views of ``data``."""
    imu, ankles = robot.placement_joint_imu, robot.placement_joint_ankle
    placements = [sole.placement_joint_sole for sole in robot.soles]
    # A load cell in the sole has no bodies below it.
    below = [
        [] if sole.load_cell else list(model.subtrees[joint])
        for sole, joint in zip(robot.soles, robot.ankle_joint_ids, strict=True)
    ]
    bodies = np.full((len(below), max(1, *map(len, below))), -1, dtype=np.int64)
    for row, joints in zip(bodies, below, strict=True):
        row[: len(joints)] = joints
    vertices, counts = padded_vertices(robot.soles)
    inertias = list(model.inertias)
    return RobotArrays(
        poses=live_poses(data, model.njoints),
        motions=live_motions(data.v, model.njoints),
        imu_joint=int(robot.imu_joint_id),
        imu_R=np.ascontiguousarray(imu.rotation),
        imu_p=np.ascontiguousarray(imu.translation),
        foot_joint=np.array(robot.ankle_joint_ids, dtype=np.int64),
        sole_R=np.array([m.rotation for m in placements]),
        sole_p=np.array([m.translation for m in placements]),
        radius=np.array([sole.radius for sole in robot.soles]),
        vertices=vertices,
        n_vertices=counts,
        ankle_to_sole=np.array(
            [sole.actInv(ankle).toDualActionMatrix() for sole, ankle in zip(placements, ankles, strict=True)]
        ),
        bodies=bodies,
        mass=np.array([inertia.mass for inertia in inertias]),
        lever=np.array([inertia.lever for inertia in inertias]),
        idx_q=np.ascontiguousarray(robot.idx_q, dtype=np.int64),
        idx_v=np.ascontiguousarray(robot.idx_v, dtype=np.int64),
        g=robot.weight / robot.mass,
        weight=robot.weight,
    )
