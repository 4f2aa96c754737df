"""The full state of a recorded run, row by row: what recordings hold, and what follows from it."""

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
"""Rows whose distance differs by more than this share from the others' have lost ticks between them."""


class States(NamedTuple):
    """States of a run, NaN where a row lacks something.

    Attributes:
        q: (n, nq) configurations.
        v: (n, nv) velocities; the first row has none.
        dt: Time between rows [s].
    """

    q: Array
    v: Array
    dt: float


def recorded_states(recording: Recording, robot: Robot, progress: bool = False) -> States:
    """Return the states of a run.

    Velocities are those that bring one row to the next, v = (q_i - q_(i-1)) / dt on the Lie group. That is how the
    simulator moves, so that they are exact where a row is recorded at every physics step and the sensors are ideal, and
    means over a row else. Within the row of a landing the velocity jumps; the one after it is that of the next two
    rows, led back, if nothing lands in these.

    Args:
        recording: The run.
        robot: What ran.
        progress: Show a bar on stderr.

    Raises:
        RecordingError: The recording is another robot's or lacks what a state needs; the message says what.
    """
    if len(recording) < 3:
        raise RecordingError(
            f"{name_of(recording)} has {len(recording)} rows; velocities and what comes next need three"
        )
    model = robot.model
    q = recorded_configurations(recording, robot, progress)
    known: Flags = np.asarray(np.isfinite(q).all(axis=1))
    steps = np.diff(recording.t)
    dt = float(np.median(steps))
    v = np.full((len(recording), model.nv), np.nan)
    for i in range(1, len(recording)):
        if known[i] and known[i - 1] and abs(steps[i - 1] - dt) < STEADY * dt:
            v[i] = pin.difference(model, q[i - 1], q[i]) / dt
    lands: Flags = np.asarray(recording.impact.any(axis=(1, 2)))
    smooth: Flags = np.asarray(np.isfinite(v).all(axis=1)) & ~lands
    led_back = np.flatnonzero(lands[:-2] & smooth[1:-1] & smooth[2:])
    v[led_back] = 2.0 * v[led_back + 1] - v[led_back + 2]
    return States(q, v, dt)
