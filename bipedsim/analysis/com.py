"""The centre of mass of a recorded run, computed from base, joints and the robot's masses; no column contains it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from bipedsim.analysis.configurations import recorded_configurations
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.recording import Recording


@dataclass(frozen=True, eq=False)
class ComMotion:
    """The centre of mass over n rows, in the world; NaN where a row has no configuration.

    Attributes:
        position: (n, 3) [m].
        velocity: (n, 3) [m/s], differences of the positions.
        capture: (n, 2) :func:`capture_point`, with the height over the lowest sole [m].
    """

    position: Array
    velocity: Array
    capture: Array


def capture_point(com: Array, velocity: Array, height: ArrayLike, gravity: float) -> Array:
    """Return the capture point (..., 2) [m], at which a linear inverted pendulum in this motion would come to rest.

    xi = c + c' sqrt(z / g) is also called divergent component of motion (Pratt et al. 2006; Englsberger et al. 2015).
    It is NaN where the CoM is below the ground.

    Args:
        com, velocity: (..., 2) horizontal position [m] and velocity [m/s] of the centre of mass.
        height: (...) z of the centre of mass over the ground [m].
        gravity: g [m/s^2].
    """
    with np.errstate(invalid="ignore"):
        time = np.sqrt(np.asarray(height) / gravity)
    return np.asarray(com + velocity * time[..., None])


def com_motion(recording: Recording, robot: Robot) -> ComMotion:
    """Compute the motion of the centre of mass of a run, from the recorded joint positions and base.

    Args:
        recording: The run, of at least two rows.
        robot: The robot of the run.

    Raises:
        RecordingError: The recording is of another robot or has no full state; the message says what is missing.
    """
    q = recorded_configurations(recording, robot)
    data, position = robot.model.createData(), np.full((len(q), 3), np.nan)
    for i in np.flatnonzero(np.isfinite(q).all(axis=1)):
        position[i] = pin.centerOfMass(robot.model, data, q[i])
    velocity = np.gradient(position, recording.t, axis=0) if len(position) > 1 else np.zeros_like(position)
    height = position[:, 2] - np.min(recording.sole_poses[:, :, 2], axis=1, initial=np.inf)
    gravity = float(np.linalg.norm(robot.model.gravity.linear))
    return ComMotion(position, velocity, capture_point(position[:, :2], velocity[:, :2], height, gravity))
