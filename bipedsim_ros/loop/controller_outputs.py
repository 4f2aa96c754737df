"""Publish a controller's telemetry, its estimate of the base, and whether it has detected a fall."""

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
from bipedsim.recording.bag import NS_PER_S, labelled
from bipedsim_ros.loop.changes_publisher import ChangesPublisher
from bipedsim_ros.wire import (
    listeners,
    publisher,
    topics,
)

PERIOD_NS = 10_000_000
"""Minimum time of the joint states between two messages of a topic [ns]."""
_SHOWN_NS = NS_PER_S // 30
"""Minimum wall time between two messages for viewers [ns]."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class ControllerOutputs:
    """Publishes a controller's telemetry at 100 Hz in time of the joint states, and detected falls at once.

    Attributes:
        changes: Publishes changed parameters of the controller.

    Raises:
        ConfigError: The name of a telemetry signal is not valid in a topic's name.
    """

    def __init__(self, node: Node, guard: Guard) -> None:
        self._node, self._guard = node, guard
        for name in guard.readouts:
            if not _NAME.fullmatch(name):
                raise ConfigError(
                    f"readouts of the controller: {name!r} cannot be the name of a topic; use letters, digits and _"
                )
        self._readouts = [
            (name, publisher(node, topics.READOUTS, name=name), topics.READOUTS.encoder())
            for name in without_plan(guard.readouts)
        ]
        planned = [name for name in guard.readouts if name.startswith(PLANNED)]
        self._plan = _PlanPublisher(node, planned) if planned else None
        self._viewer_publisher = _ShownPublisher(node, list(guard.readouts)) if guard.readouts else None
        self._odometry: Any = None
        if guard.has_estimate:
            self._odometry = publisher(node, topics.ODOMETRY)
            self._odometry_encoder = topics.ODOMETRY.encoder(topics.ODOMETRY.frame)
        self._fallen = publisher(node, topics.FALLEN)
        self.changes = ChangesPublisher(node, topics.TUNED)
        self._published_fallen = False
        self._fallen.publish(Bool(data=False))
        self._last_period = self._last_published = -1

    def unheard(self, minimum: int) -> list[str]:
        """Return the topics that have fewer than ``minimum`` reliable subscribers."""
        publishers = [readout for _, readout, _ in self._readouts]
        publishers += [self._plan.numbers] if self._plan is not None else []
        publishers += [self._fallen] + ([self._odometry] if self._odometry is not None else [])
        return [p.topic_name for p in publishers if listeners(self._node, p) < minimum]

    def publish(self, t_ns: int) -> None:
        """Publish the outputs after the controller's update for the joint states stamped ``t_ns`` [ns]."""
        guard = self._guard
        if guard.fallen != self._published_fallen:
            self._published_fallen = guard.fallen
            self._fallen.publish(Bool(data=guard.fallen))
        if self._viewer_publisher is not None:
            self._viewer_publisher.publish(guard.readouts, t_ns)
        period = t_ns // PERIOD_NS
        if period == self._last_period:
            return
        self._last_period = period
        self._last_published = t_ns
        self._publish_all(t_ns)

    def repeat(self, t_ns: int) -> None:
        """Publish again the outputs for the joint states stamped ``t_ns`` [ns], if they were published before."""
        if t_ns == self._last_published:
            self._publish_all(t_ns)

    def _publish_all(self, t_ns: int) -> None:
        guard = self._guard
        for name, readout, encoder in self._readouts:
            readout.publish(encoder.write(0, guard.readouts[name]))
        if self._plan is not None:
            self._plan.publish(guard.readouts, t_ns)
        estimate = guard.estimate if self._odometry is not None else None
        if estimate is not None:
            self._odometry.publish(self._odometry_encoder.write(t_ns, estimate.q[:7], estimate.v[:6]))


class _ReadoutBundle:
    """Combines the telemetry signals of some names in one message.

    Args:
        names: Names of the signals.
    """

    def __init__(self, names: list[str]) -> None:
        self._encoder = labelled(("t", *names))
        self._names = names

    def write(self, readouts: Mapping[str, float], t_ns: int) -> bytes:
        """Return the serialised message for the time ``t_ns`` [ns]."""
        return self._encoder.write(0, [t_ns / NS_PER_S, *(readouts[name] for name in self._names)])


class _ShownPublisher:
    """Publishes all telemetry in one message while a viewer subscribes, because each message takes time of the tick.

    Args:
        node: The node.
        names: Names of the signals.
    """

    def __init__(self, node: Node, names: list[str]) -> None:
        self._publisher = publisher(node, topics.READOUTS_SHOWN)
        self._bundle = _ReadoutBundle(names)
        self._due = 0

    def publish(self, readouts: Mapping[str, float], t_ns: int) -> None:
        """Publish the telemetry for the time ``t_ns`` [ns], unless the last message was too recent."""
        now = time.monotonic_ns()
        if now >= self._due and self._publisher.get_subscription_count():
            self._due = now + _SHOWN_NS
            self._publisher.publish(self._bundle.write(readouts, t_ns))


class _PlanPublisher:
    """Publishes a controller's plan while a node subscribes: all its numbers, and the footsteps for other viewers.

    Args:
        node: The node.
        names: Names of the telemetry signals that belong to the plan.

    Attributes:
        numbers: Publisher of the numbers.
    """

    def __init__(self, node: Node, names: list[str]) -> None:
        self.numbers = publisher(node, topics.PLAN)
        self._footsteps = publisher(node, topics.PLANNED_STEPS)
        self._bundle = _ReadoutBundle(names)
        self._published_steps: bytes | None = None

    def publish(self, readouts: Mapping[str, float], t_ns: int) -> None:
        """Publish the plan for the time ``t_ns`` [ns]."""
        if self.numbers.get_subscription_count():
            self.numbers.publish(self._bundle.write(readouts, t_ns))
        if self._footsteps.get_subscription_count():
            plan = plan_of(readouts)
            steps = np.zeros((0, 4)) if plan is None or plan.footsteps is None else plan.footsteps
            if steps.tobytes() != self._published_steps:
                self._published_steps = steps.tobytes()
                self._footsteps.publish(path_of(np.nan_to_num(steps), t_ns))


def path_of(steps: Array, t_ns: int) -> Path:
    """Return a path of the poses ``steps`` (n, 4): x, y, z [m] and yaw [rad], in the world frame."""
    path = Path()
    path.header.frame_id = topics.PLANNED_STEPS.frame
    path.header.stamp.sec, path.header.stamp.nanosec = divmod(t_ns, NS_PER_S)
    for x, y, z, yaw in steps.tolist():
        pose = PoseStamped(header=path.header)
        position, rotation = pose.pose.position, pose.pose.orientation
        position.x, position.y, position.z = x, y, z
        rotation.z, rotation.w = math.sin(0.5 * yaw), math.cos(0.5 * yaw)
        path.poses.append(pose)
    return path
