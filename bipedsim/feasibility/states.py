"""The full state of a recorded run, row by row: what recordings hold, and what follows from it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from bipedsim.errors import RecordingError
from bipedsim.recording import Recording
from bipedsim.robot import Robot

Array = NDArray[np.float64]

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


def recorded_states(recording: Recording, robot: Robot) -> States:
    """Return the states of a run.

    A recording holds base pose and joints, and no velocity of the base: velocities are those that bring one row to the
    next, v = (q_i - q_(i-1)) / dt on the Lie group. That is how the simulator moves, so that they are exact where a row
    is recorded at every physics step, and means over a row else.

    Raises:
        RecordingError: The recording is another robot's or lacks what a state needs; the message says what.
    """
    model = robot.model
    who = f"the run of {recording.robot or 'an unnamed robot'}"
    if recording.joint_names != robot.joint_names:
        raise RecordingError(
            f"{who} has the joints {', '.join(recording.joint_names)}; {robot.name} has {', '.join(robot.joint_names)}"
        )
    if [sole.name for sole in robot.soles] != list(recording.feet):
        raise RecordingError(f"{who} has the feet {', '.join(recording.feet)}, not those of {robot.name}")
    if len(recording) < 3:
        raise RecordingError(f"{who} has {len(recording)} rows; velocities and what comes next need three")
    base = 7 if robot.free_flyer else 0
    if base + robot.nu < model.nq:
        unknown = [
            name
            for name, joint in zip(model.names[1:], list(model.joints)[1:], strict=True)
            if joint.nq and not robot.free_flyer * (joint.idx_q == 0) and joint.idx_q not in robot.idx_q
        ]
        raise RecordingError(
            f"{who} holds no full state: joints without drives, {', '.join(unknown)}, are not recorded. Use "
            "SupportReader on the states of a Simulator instead"
        )
    q = np.full((len(recording), model.nq), np.nan)
    if base:
        q[:, :7] = recording.base_pose
    q[:, robot.idx_q] = recording.joint_position
    known: NDArray[np.bool_] = np.asarray(np.isfinite(q).all(axis=1))
    if not known.any():
        raise RecordingError(
            f"{who} holds no full state: the pose of the base is missing. A simulator gives it: `bipedsim run "
            "--output`, or a bag with /ground_truth/odom; a robot does not know where it is"
        )
    steps = np.diff(recording.t)
    dt = float(np.median(steps))
    v = np.full((len(recording), model.nv), np.nan)
    for i in range(1, len(recording)):
        if known[i] and known[i - 1] and abs(steps[i - 1] - dt) < STEADY * dt:
            v[i] = pin.difference(model, q[i - 1], q[i]) / dt
    return States(q, v, dt)
