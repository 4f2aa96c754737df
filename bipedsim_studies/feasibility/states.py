"""Reconstruct the full state of each row of a recorded run."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from bipedsim.analysis import name_of, recorded_configurations
from bipedsim.errors import RecordingError
from bipedsim.model import Robot
from bipedsim.numerics import Array, Flags
from bipedsim.recording import Recording

STEADY = 1e-6
"""Rows whose interval differs from the median by more than this fraction have lost ticks."""


class States(NamedTuple):
    """States of a run; NaN if a row lacks data.

    Attributes:
        q: (n, nq) configurations.
        v: (n, nv) velocities; NaN in the first row.
        dt: Time between rows [s].
    """

    q: Array
    v: Array
    dt: float


def recorded_states(recording: Recording, robot: Robot, progress: bool = False) -> States:
    """Return the states of a run.

    A velocity is the difference between two rows, v = (q_i - q_(i-1)) / dt on the Lie group. The simulator integrates
    in this way. The velocities are therefore exact if each physics step is recorded and the sensors are ideal.
    Otherwise, they are means over a row. In a row with a touchdown the velocity jumps. The velocity after it is then
    extrapolated from the next two rows, if there is no touchdown in these.

    Args:
        recording: The run.
        robot: Robot of the run.
        progress: Whether to show a progress bar on stderr.

    Raises:
        RecordingError: The recording is from another robot, or lacks data of a state; the message names it.
    """
    if len(recording) < 3:
        raise RecordingError(
            f"{len(recording)}; velocities and what comes next need three", f"{name_of(recording)}: rows"
        )
    model = robot.model
    q = recorded_configurations(recording, robot, progress)
    complete: Flags = np.asarray(np.isfinite(q).all(axis=1))
    steps = np.diff(recording.t)
    dt = float(np.median(steps))
    v = np.full((len(recording), model.nv), np.nan)
    for i in range(1, len(recording)):
        if complete[i] and complete[i - 1] and abs(steps[i - 1] - dt) < STEADY * dt:
            v[i] = pin.difference(model, q[i - 1], q[i]) / dt
    lands: Flags = np.asarray(recording.impact.any(axis=(1, 2)))
    smooth: Flags = np.asarray(np.isfinite(v).all(axis=1)) & ~lands
    extrapolated = np.flatnonzero(lands[:-2] & smooth[1:-1] & smooth[2:])
    v[extrapolated] = 2.0 * v[extrapolated + 1] - v[extrapolated + 2]
    return States(q, v, dt)
