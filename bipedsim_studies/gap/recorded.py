"""The recorded signals and commands of a robot, in the order of its joints and feet."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from bipedsim.errors import RecordingError
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.recording import Recording
from bipedsim.sim import LIMIT, Observation

STEADY = 0.1
"""Rows whose interval differs from the median by more than this fraction of it have lost a tick."""
SHORTEST = 3
"""Minimum number of rows."""


class CommandSource(Enum):
    """Origin of the commands of a window."""

    COMMAND = "torque commands"
    SETPOINT = "impedance commands"
    EFFORT = "measured torques"


@dataclass(frozen=True, eq=False)
class RobotRun:
    """Store what a robot measured and was commanded: n rows, nu joints, K feet.

    Attributes:
        t: (n,) time [s].
        dt: Time between two rows [s].
        position, velocity: (n, nu) of the joints [rad], [rad/s].
        orientation: (n, 4) quaternion of the IMU.
        gyro, accelerometer: (n, 3) in the IMU frame [rad/s], [m/s^2].
        wrench: (n, K, 6) of the ankle sensors [N], [N.m].
        effort: (n, nu) measured torques [N.m]; NaN without measurement.
        torque: (n, nu) torque over the step that ends at each row [N.m]: commands, or measured torques.
        setpoint: (n, 6, nu) impedance over this step, rows as in ``SETPOINT``; NaN without one. None if there are none.
        source: Origin of the commands.
    """

    t: Array
    dt: float
    position: Array
    velocity: Array
    orientation: Array
    gyro: Array
    accelerometer: Array
    wrench: Array
    effort: Array
    torque: Array
    setpoint: Array | None
    source: CommandSource

    def __len__(self) -> int:
        return len(self.t)

    @property
    def notes(self) -> tuple[str, ...]:
        """Assumptions that the reader must know."""
        if self.source is not CommandSource.EFFORT:
            return ()
        return ("no commands were recorded, so the measured torques are the commands; delay and limits are not tested",)

    def command(self, row: int) -> Array:
        """Return the command over the step that ends at ``row``: (nu,) or (6, nu); NaN if it was not recorded."""
        if self.setpoint is not None:
            packed: Array = self.setpoint[row]
            if np.isfinite(packed[:LIMIT]).all():
                return packed
        torque: Array = self.torque[row]
        return torque

    def is_whole(self, first: int, last: int) -> bool:
        """Return whether all rows from ``first`` to ``last`` exist, at the right times, with commands."""
        if first < 0 or last >= len(self):
            return False
        late = np.abs(np.diff(self.t[first : last + 1]) - self.dt) > STEADY * self.dt
        missing = np.isnan(self.torque[first + 1 : last + 1]).any(axis=1)
        if self.setpoint is not None:
            missing &= np.isnan(self.setpoint[first + 1 : last + 1, :LIMIT]).any(axis=(1, 2))
        return not (late.any() or missing.any())

    def observation(self, row: int) -> Observation:
        """Return the measurements of a row."""
        return Observation(
            float(self.t[row]),
            self.position[row],
            self.velocity[row],
            self.torque[row],
            self.orientation[row],
            self.gyro[row],
            self.accelerometer[row],
            self.wrench[row],
        )


def robot_run(recording: Recording, robot: Robot) -> RobotRun:
    """Return the measurements and commands of a recording.

    Raises:
        RecordingError: The recording is too short, or lacks a joint or all commands and torques.
    """
    run = recording.in_order(robot.joint_names)
    if len(run) < SHORTEST:
        raise RecordingError(f"{len(run)}; a prediction needs at least {SHORTEST}", "rows")
    names = [sole.name for sole in robot.soles]
    wrench = np.full((len(run), len(names), 6), np.nan)
    for k, name in enumerate(names):
        if name in run.feet:
            wrench[:, k] = run.ankle_wrench[:, run.feet.index(name)]
    closed = np.isfinite(run.setpoint[:, :, :LIMIT]).all(axis=(1, 2))
    commanded = np.isfinite(run.joint_command).all(axis=1)
    torque, setpoint, source = run.joint_command, None, CommandSource.COMMAND
    if closed.any():
        setpoint, source = np.swapaxes(run.setpoint, 1, 2), CommandSource.SETPOINT
    elif not commanded.any():
        torque, source = run.joint_effort, CommandSource.EFFORT
        if not np.isfinite(torque).all(axis=1).any():
            message = "the recording has neither commands nor measured torques of all joints; record /joint_states"
            raise RecordingError(message, "commands")
    return RobotRun(
        run.t,
        round(float(np.median(np.diff(run.t))), 6),
        run.joint_position,
        run.joint_velocity,
        run.imu_orientation,
        run.imu_angular_velocity,
        run.imu_linear_acceleration,
        wrench,
        run.joint_effort,
        torque,
        setpoint,
        source,
    )
