"""Detection of a fall, and its time."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from bipedsim.analysis.plates import rotate
from bipedsim.model import Robot
from bipedsim.numerics import Array, Indices, kernel
from bipedsim.recording import Recording

OUTCOME = (
    *("fell_at_s", "fall_reason", "lies_on", "steps", "distance_m"),
    *("torque_limited_fraction", "torque_limited", "torque_swings_hz", "joint_stops", "verdict"),
)
"""The metrics of an outcome.

They show whether and why the robot fell, how far it walked, how hard its torques were driven, and which joints were at
their limits."""
TILT = np.deg2rad(60.0)
"""Tilt of the root body from its attitude at the start beyond which a robot has fallen; yaw does not count [rad]."""
HEIGHT = 0.5
"""Share of the CoM's height at the start below which a robot has fallen."""

_LEAST_COSINE = np.cos(TILT)


@kernel
def has_fallen(lean: float, height: float, start: float) -> bool:
    """Return whether a robot has fallen.

    Args:
        lean: Cosine of the tilt: the angle between the vertical and the root body's axis that was vertical at the
            start.
        height, start: Height of the CoM over the lowest sole, now and at the start [m].
    """
    return lean < _LEAST_COSINE or height < HEIGHT * start


def fall_time(recording: Recording, robot: Robot) -> float | None:
    """Return the time [s] of the first row in which the robot has fallen, or None.

    The robot has fallen if one of these conditions holds:

    * The tilt of its root body from the attitude in the first row exceeds :data:`TILT`.
    * The height of its CoM above the lowest sole is less than :data:`HEIGHT` times that in the first row. This height
      depends only on the posture, also on stairs and in a jump.

    Squats and jumps meet neither condition. A robot fixed to the world cannot fall. Neither can a body without drives,
    which has no posture to fall from. The result is None if the recording lacks the base. Joints that the recording
    lacks, such as passive ones, are assumed in the nominal posture.

    Args:
        recording: The run.
        robot: The robot of the run.
    """
    if not robot.free_flyer or robot.nu == 0:
        return None
    rows = np.flatnonzero(np.isfinite(recording.base_pose).all(axis=1) & np.isfinite(recording.sole_poses).all((1, 2)))
    if not len(rows):
        return None
    quaternion = recording.base_pose[rows, 3:]
    conjugate = quaternion[0] * np.array([-1.0, -1.0, -1.0, 1.0])
    upright = rotate(conjugate, np.array([0.0, 0.0, 1.0]))
    lean = rotate(quaternion, upright)[:, 2]
    height = _com_height(recording, robot, rows) - recording.sole_poses[rows, :, 2].min(axis=1)
    fallen = (row for row, *now in zip(rows, lean, height, strict=True) if has_fallen(*now, height[0]))
    return next((float(recording.t[row]) for row in fallen), None)


def _com_height(recording: Recording, robot: Robot, rows: Indices) -> Array:
    joints = recording.in_order(robot.joint_names)
    data = robot.model.createData()
    q = robot.q_nominal.copy()
    height = np.empty(len(rows))
    for i, row in enumerate(rows):
        q[:7] = recording.base_pose[row]
        q[robot.idx_q] = joints.joint_position[row]
        height[i] = pin.centerOfMass(robot.model, data, q)[2]
    return height
