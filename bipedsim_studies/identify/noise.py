"""Estimate the noise of the sensors from recordings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy  # it imports its submodules at their first use

from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.recording import Recording
from bipedsim_studies.gap import KEPT, noise, rows_per_value
from bipedsim_studies.identify.lacking import Lacking, in_order

CHANNELS = ("imu_linear_acceleration", "imu_angular_velocity", "joint_velocity", "ankle_wrench")
"""Columns whose noise the equations of motion contain."""
SHAKEN = ("imu_linear_acceleration", "ankle_wrench")
"""Columns that show how torques shake the robot. A velocity is their integral, and shakes much less than its noise."""
NOISELESS = 1e-6
"""Standard deviation up to which a channel counts as one without noise, in its unit."""
SLOWER = 1.5
"""Rows per measurement from which a sensor counts as slower than the rows."""
SENSORS = {
    "velocity_noise": ("joint_velocity", slice(None)),
    "gyro_noise": ("imu_angular_velocity", slice(None)),
    "accelerometer_noise": ("imu_linear_acceleration", slice(None)),
    "force_noise": ("ankle_wrench", slice(3)),
    "torque_noise": ("ankle_wrench", slice(3, 6)),
}
"""Hardware parameter with the noise of a sensor to the column with its numbers, and the part of each vector."""
_SQUARES = 1.0 + 9.0 + 9.0 + 1.0
"""Sum of the squared coefficients of a third difference."""
_LEAST_REST = 0.1
"""Least share of the variance of noise that counts as left by a regression."""


def channel_noise(recording: Recording, lacking: Lacking) -> dict[str, Array]:
    """Return the standard deviations of white noise of the sensors: each of :data:`CHANNELS` to those of its channels.

    A controller turns noise into torques, which shake the robot. Accelerometer and ankle sensors measure this motion,
    and the equations of motion hold for it. So the part of a signal that follows the efforts of its tick and the one
    before is no noise. It is removed, unless the sensor is slower than the rows.

    Args:
        recording: A recording in the order of the robot without gaps.
        lacking: The signals that it lacks; their noise is 0.
    """
    recording = lacking.filled(recording)
    signals = {name: getattr(recording, name).reshape(len(recording), -1) for name in CHANNELS}
    result = {name: noise(signal) for name, signal in signals.items()}
    measured = recording.joint_effort[:, ~lacking.efforts]
    if not measured.size:
        return result
    efforts = np.hstack([measured[1:], measured[:-1]])
    differences = np.diff(efforts, 3, axis=0)
    rest = np.sqrt(max(1.0 - _removed(differences), _LEAST_REST))
    for name in SHAKEN:
        if rows_per_value(signals[name]).max() < SLOWER:
            signal = signals[name][1:]
            follows = _regression(differences, np.diff(signal, 3, axis=0))
            result[name] = noise(signal - efforts @ follows) / rest
    return result


def _regression(causes: Array, effects: Array) -> Array:
    """Return the coefficients (k, m) of a regression of ``effects`` (n, m) on ``causes`` (n, k) without impacts."""
    both = np.hstack([causes, effects])
    scale = np.median(np.abs(both), axis=0)
    size = np.linalg.norm(both[:, scale > 0.0] / scale[scale > 0.0], axis=1)
    usual = size <= np.quantile(size, KEPT)
    return np.asarray(np.linalg.lstsq(causes[usual], effects[usual])[0])


def _removed(differences: Array) -> float:
    """Return the share of the variance of white noise that a regression on third ``differences`` (n, k) removes."""
    basis = scipy.linalg.orth(differences)
    # The covariance of third differences of noise is D D^T, with the operator D of the differences.
    transposed = np.diff(np.pad(basis, ((3, 3), (0, 0))), 3, axis=0)
    return float(np.sum(transposed**2)) / (_SQUARES * len(differences))


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
