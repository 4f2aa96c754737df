"""Estimate the noise of the sensors from recordings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.recording import Recording
from bipedsim_studies.gap import noise, unshaken_noise
from bipedsim_studies.identify.lacking import Lacking, in_order

CHANNELS = ("imu_linear_acceleration", "imu_angular_velocity", "joint_velocity", "ankle_wrench")
"""Columns whose noise the equations of motion contain."""
SHAKEN = ("imu_linear_acceleration", "ankle_wrench")
"""Columns that show how torques shake the robot. A velocity is their integral, and shakes much less than its noise."""
NOISELESS = 1e-6
"""Standard deviation up to which a channel counts as one without noise, in its unit."""
SENSORS = {
    "velocity_noise": ("joint_velocity", slice(None)),
    "gyro_noise": ("imu_angular_velocity", slice(None)),
    "accelerometer_noise": ("imu_linear_acceleration", slice(None)),
    "force_noise": ("ankle_wrench", slice(3)),
    "torque_noise": ("ankle_wrench", slice(3, 6)),
}
"""Hardware parameter with the noise of a sensor to the column with its numbers, and the part of each vector."""


def channel_noise(recording: Recording, lacking: Lacking) -> dict[str, Array]:
    """Return the standard deviations of white noise of the sensors: each of :data:`CHANNELS` to those of its channels.

    Motion that follows the torques of the joints is no noise, since the equations of motion hold for it.

    Args:
        recording: A recording in the order of the robot without gaps.
        lacking: The signals that it lacks; their noise is 0.
    """
    recording = lacking.filled(recording)
    efforts = recording.joint_effort[:, ~lacking.efforts]
    signals = {name: getattr(recording, name).reshape(len(recording), -1) for name in CHANNELS}
    return {name: unshaken_noise(x, efforts) if name in SHAKEN else noise(x) for name, x in signals.items()}


def sensor_noise(recordings: Sequence[Recording], robot: Robot) -> dict[str, float]:
    """Return the noise of each sensor: hardware parameter to the median of the standard deviations of its channels.

    The recording with the least noise counts, since impacts are no noise. Channels without noise are left out, such as
    those that a load cell does not measure.

    Args:
        recordings: Recordings that :func:`bipedsim_studies.identify.signals_of` accepts.
        robot: The robot.
    """
    result: dict[str, float] = {}
    for recording in recordings:
        ordered = in_order(recording, robot, "the recording")
        of_channels = channel_noise(ordered, Lacking.of(ordered, robot))
        for name, (column, part) in SENSORS.items():
            shape = getattr(ordered, column).shape[1:]
            deviations = of_channels[column].reshape(shape)[..., part]
            if (deviations > NOISELESS).any():
                found = float(np.median(deviations[deviations > NOISELESS]))
                result[name] = min(result.get(name, np.inf), found)
    return result
