"""What a controller tells besides its commands: its readouts, its estimate of the base, and that it has fallen."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path
from rclpy.node import Node
from std_msgs.msg import Bool

from bipedsim.control import Guard
from bipedsim.errors import ConfigError
from bipedsim.numerics import Array
from bipedsim.recording import PLANNED, plan_of, without_plan
from bipedsim_ros.wire import (
    BASE_FRAME,
    NS_PER_S,
    WORLD_FRAME,
    NumberWriter,
    OdometryWriter,
    conversions,
    listeners,
    publisher,
    topics,
)

PERIOD_NS = 10_000_000
"""Time of the joint states between two messages of a topic."""
_SHOWN_NS = NS_PER_S // 30
"""Time of the wall clock between two messages for viewers."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class ControllerOutputs:
    """The publishers of what the controller has, at 100 Hz in time of the joint states, and of falls.

    Raises:
        ConfigError: A readout has a name that no topic can have.
    """

    def __init__(self, node: Node, guard: Guard) -> None:
        self._node, self._guard = node, guard
        for name in guard.readouts:
            if not _NAME.fullmatch(name):
                raise ConfigError(
                    f"readouts of the controller: {name!r} cannot be the name of a topic; use letters, digits and _"
                )
        self._readouts = [
            (name, publisher(node, topics.READOUTS, name=name), NumberWriter()) for name in without_plan(guard.readouts)
        ]
        planned = [name for name in guard.readouts if name.startswith(PLANNED)]
        self._plan = _PlanPublisher(node, planned) if planned else None
        self._shown = _ShownPublisher(node, list(guard.readouts)) if guard.readouts else None
        self._odometry: Any = None
        if guard.has_estimate:
            self._odometry = publisher(node, topics.ODOMETRY)
            self._odometry_writer = OdometryWriter(WORLD_FRAME, BASE_FRAME)
        self._fallen = publisher(node, topics.FALLEN)
        self._told_fallen = False
        self._fallen.publish(Bool(data=False))
        self._last_period = self._last_told = -1

    def unheard(self, least: int) -> list[str]:
        """Return the topics that have fewer listeners than ``least``."""
        publishers = [readout for _, readout, _ in self._readouts]
        publishers += [self._plan.numbers] if self._plan is not None else []
        publishers += [self._fallen] + ([self._odometry] if self._odometry is not None else [])
        return [p.topic_name for p in publishers if listeners(self._node, p) < least]

    def publish(self, t_ns: int) -> None:
        """Publish what there is after the update for the joint states stamped ``t_ns`` [ns]."""
        guard = self._guard
        if guard.fallen != self._told_fallen:
            self._told_fallen = guard.fallen
            self._fallen.publish(Bool(data=guard.fallen))
        if self._shown is not None:
            self._shown.tell(guard.readouts, t_ns)
        period = t_ns // PERIOD_NS
        if period == self._last_period:
            return
        self._last_period = period
        self._last_told = t_ns
        self._tell(t_ns)

    def repeat(self, t_ns: int) -> None:
        """Publish once more what was published for the joint states stamped ``t_ns`` [ns], if anything was."""
        if t_ns == self._last_told:
            self._tell(t_ns)

    def _tell(self, t_ns: int) -> None:
        guard = self._guard
        for name, readout, writer in self._readouts:
            readout.publish(writer.write(guard.readouts[name]))
        if self._plan is not None:
            self._plan.tell(guard.readouts, t_ns)
        estimate = guard.estimate if self._odometry is not None else None
        if estimate is not None:
            self._odometry.publish(self._odometry_writer.write(estimate.q[:7], estimate.v[:6], t_ns))


class _Together:
    """All readouts of some names in one message.

    Args:
        names: Of the readouts.
    """

    def __init__(self, names: list[str]) -> None:
        self._writer = conversions.NumbersWriter(("t", *names))
        self._names = names
        self._values = np.zeros(1 + len(names))

    def write(self, readouts: Mapping[str, float], t_ns: int) -> bytes:
        """Return the message, serialised, of the time ``t_ns`` [ns]."""
        self._values[0] = t_ns / NS_PER_S
        self._values[1:] = [readouts[name] for name in self._names]
        return self._writer.write(self._values)


class _ShownPublisher:
    """What a viewer shows, as long as one listens: in one message, as each takes some of the tick.

    Args:
        node: The node.
        names: Of the readouts.
    """

    def __init__(self, node: Node, names: list[str]) -> None:
        self._publisher = publisher(node, topics.READOUTS_SHOWN)
        self._together = _Together(names)
        self._due = 0

    def tell(self, readouts: Mapping[str, float], t_ns: int) -> None:
        """Publish the readouts of the time ``t_ns`` [ns], unless it was done a short while ago."""
        now = time.monotonic_ns()
        if now >= self._due and self._publisher.get_subscription_count():
            self._due = now + _SHOWN_NS
            self._publisher.publish(self._together.write(readouts, t_ns))


class _PlanPublisher:
    """What a controller shows of its plan, as long as somebody listens: all numbers, and footsteps for other viewers.

    Args:
        node: The node.
        names: Of the readouts.

    Attributes:
        numbers: The publisher of the numbers.
    """

    def __init__(self, node: Node, names: list[str]) -> None:
        self.numbers = publisher(node, topics.PLAN)
        self._footsteps = publisher(node, topics.PLANNED_STEPS)
        self._together = _Together(names)
        self._told: bytes | None = None

    def tell(self, readouts: Mapping[str, float], t_ns: int) -> None:
        """Publish the plan of the time ``t_ns`` [ns]."""
        if self.numbers.get_subscription_count():
            self.numbers.publish(self._together.write(readouts, t_ns))
        if self._footsteps.get_subscription_count():
            plan = plan_of(readouts)
            steps = np.zeros((0, 4)) if plan is None or plan.footsteps is None else plan.footsteps
            if steps.tobytes() != self._told:
                self._told = steps.tobytes()
                self._footsteps.publish(path_of(np.nan_to_num(steps), t_ns))


def path_of(steps: Array, t_ns: int) -> Path:
    """Return a path of the poses ``steps`` (n, 4), x, y, z [m] and yaw [rad], in the world."""
    path = Path()
    path.header.frame_id = topics.PLANNED_STEPS.frame
    path.header.stamp.sec, path.header.stamp.nanosec = divmod(t_ns, NS_PER_S)
    for x, y, z, yaw in steps.tolist():
        pose = PoseStamped(header=path.header)
        place, turned = pose.pose.position, pose.pose.orientation
        place.x, place.y, place.z = x, y, z
        turned.z, turned.w = math.sin(0.5 * yaw), math.cos(0.5 * yaw)
        path.poses.append(pose)
    return path
