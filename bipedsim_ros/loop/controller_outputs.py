"""What a controller tells besides its commands: its readouts, its estimate of the base, and that it has fallen."""

from __future__ import annotations

import re
from typing import Any

from rclpy.node import Node
from std_msgs.msg import Bool

from bipedsim.control import Guard
from bipedsim.errors import ConfigError
from bipedsim_ros.wire import BASE_FRAME, WORLD_FRAME, NumberWriter, OdometryWriter, listeners, publisher, topics

PERIOD_NS = 10_000_000
"""Time of the joint states between two messages of a topic."""
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
            (name, publisher(node, topics.READOUTS, name=name), NumberWriter()) for name in guard.readouts
        ]
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
        publishers += [self._fallen] + ([self._odometry] if self._odometry is not None else [])
        return [p.topic_name for p in publishers if listeners(self._node, p) < least]

    def publish(self, t_ns: int) -> None:
        """Publish what there is after the update for the joint states stamped ``t_ns`` [ns]."""
        guard = self._guard
        if guard.fallen != self._told_fallen:
            self._told_fallen = guard.fallen
            self._fallen.publish(Bool(data=guard.fallen))
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
        estimate = guard.estimate if self._odometry is not None else None
        if estimate is not None:
            self._odometry.publish(self._odometry_writer.write(estimate.q[:7], estimate.v[:6], t_ns))
