"""Recordings of what a robot measures, without any truth."""

from __future__ import annotations

from collections.abc import Callable

from bipedsim.model import Robot
from bipedsim.recording.recording import Recording
from bipedsim.sim import Observation


def record_sensors(robot: Robot, rows: int, first: Observation, act: Callable[[Observation], Observation]) -> Recording:
    """Record the sensors of ``robot`` for a number of rows; ``act`` takes an observation and returns the next one."""
    recording = Recording.empty(rows, robot.joint_names, [sole.name for sole in robot.soles], robot.name)
    observation = first
    for k in range(rows):
        observation = act(observation)
        recording.t[k] = observation.t
        recording.joint_position[k] = observation.joint_position
        recording.joint_velocity[k] = observation.joint_velocity
        recording.joint_effort[k] = observation.joint_effort
        recording.ankle_wrench[k] = observation.foot_wrench
        recording.imu_angular_velocity[k] = observation.imu_angular_velocity
        recording.imu_linear_acceleration[k] = observation.imu_linear_acceleration
    return recording
