"""Read JointTrajectory messages of trajectory tools, as ros2_control's joint_trajectory_controller accepts them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from bipedsim.numerics import Array, Indices
from bipedsim.recording.bag import NS_PER_S
from bipedsim_ros.wire.joint_commands import CommandFault
from bipedsim_ros.wire.wire import MessageError, parse

MOST_BYTES = 1 << 22
"""Maximum size of a message [bytes]: two hours of a humanoid's waypoints, one per second."""


class Waypoints(NamedTuple):
    """A trajectory of some of the joints.

    Attributes:
        start: Time to which the times of the waypoints are relative [s]; None for the arrival of the message.
        joints: (k,) indices of the joints in the robot's order.
        t: (n,) times [s], increasing.
        position: (n, k) [rad].
        velocity, acceleration: (n, k) [rad/s], [rad/s^2]; None if the message lacks them.
    """

    start: float | None
    joints: Indices
    t: Array
    position: Array
    velocity: Array | None
    acceleration: Array | None


def read_trajectory(data: bytes, joint_names: Sequence[str]) -> Waypoints | CommandFault:
    """Return the waypoints of a serialised message, or a fault that lists all errors in it."""
    try:
        message = parse(data, JointTrajectory, MOST_BYTES)
    except MessageError as error:
        return CommandFault("unreadable", f"{error}; send trajectory_msgs/msg/JointTrajectory")
    names, points = list(message.joint_names), list(message.points)
    problems = [f"no joint is called {name!r}" for name in names if name not in joint_names]
    problems += [
        f"joint {name!r} is named twice"
        for name in sorted({repeated for repeated in names if names.count(repeated) > 1})
    ]
    if not names and points:
        problems.append("it names no joints")
    t = np.array([seconds(point.time_from_start) for point in points])
    if (len(t) and t[0] < 0.0) or (np.diff(t) <= 0.0).any():
        problems.append("the times of its points do not rise")
    values: dict[str, Array | None] = {}
    for name, field in (("position", "positions"), ("velocity", "velocities"), ("acceleration", "accelerations")):
        try:
            values[name] = _column(points, field, len(names), name == "position")
        except ValueError as error:
            problems.append(str(error))
    if not problems and values["acceleration"] is not None and values["velocity"] is None:
        problems.append("its points have accelerations, and no velocities")
    if problems:
        return CommandFault("trajectory", "; ".join(problems))
    position = values["position"]
    assert position is not None
    stamp = seconds(message.header.stamp)
    joints = np.array([joint_names.index(name) for name in names], dtype=np.intp)
    return Waypoints(stamp or None, joints, t, position, values["velocity"], values["acceleration"])


def seconds(time: object) -> float:
    """Return a Time or Duration in seconds."""
    return float(time.sec + time.nanosec / NS_PER_S)  # type: ignore[attr-defined]


def _column(points: Sequence[JointTrajectoryPoint], field: str, n: int, needed: bool) -> Array | None:
    """Return a field of all points (points, n), or None if no point has it.

    Raises:
        ValueError: A point lacks the field, or has a wrong number of values or a value that is not finite.
    """
    rows = [getattr(point, field) for point in points]
    if not needed and not any(len(row) for row in rows):
        return None
    invalid = [i for i, row in enumerate(rows) if len(row) != n]
    if invalid:
        raise ValueError(
            f"point {invalid[0]} has {len(rows[invalid[0]])} {field}, expected {n}, one for each joint it names"
        )
    values = np.array([list(row) for row in rows], dtype=np.float64).reshape(len(rows), n)
    if not np.isfinite(values).all():
        raise ValueError(f"point {int(np.argwhere(~np.isfinite(values))[0, 0])} has {field} that are not finite")
    return values
