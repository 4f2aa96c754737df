"""Publish scheduled velocity commands on /cmd_vel (``commander_node``).

The stamps of /joint_states are the clock of the schedule. A schedule therefore has the same effect on a real robot and
on a simulated one at any speed. Stamps of a wall clock are relative to the first stamp.

The node publishes ten times per second of this time, as a joystick would. The first message answers the first joint
states after another node has subscribed. Further messages follow whenever the stamps pass a multiple of 0.1 s. In
lock_step, controller_node waits for each of these messages (``cmd_vel_period``), so runs are repeatable to the bit. The
node sleeps in between, because a process that wakes up a thousand times a second would occupy the core on which
controllers wait for the same message.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bipedsim.analysis import in_words
from bipedsim.config import param
from bipedsim.recording import WALL_CLOCK_NS
from bipedsim.runs import PERIOD_NS, VelocitySchedule, parse_velocities
from bipedsim.sim import Observation
from bipedsim_ros.loop import LONGEST_WAIT_NS, Background, Drops, Inbox
from bipedsim_ros.nodes.node_main import NodeProgram, run_node
from bipedsim_ros.wire import JointStateReader, MessageError, TwistWriter, publisher, topics

# A sleep lasts at most half of the time until the next command, because the speed of the simulation may change.
_NAP_SHARE = 0.5
_SHORTEST_NAP_S = 2e-3


@dataclass(frozen=True)
class CommanderParams:
    """Parameters of commander_node."""

    schedule: tuple[str, ...] = param(
        (), "velocities 'at vx vy wz' in s, m/s, m/s (to the left) and rad/s, each of which holds until the next"
    )
    wait_for_listeners: int = param(
        1, "subscriptions to wait for before the first command: those of controllers and recorders", low=1, high=100
    )


class CommanderNode(NodeProgram):
    """Publishes one schedule.

    Raises:
        ConfigError: A parameter is invalid.
    """

    def __init__(self) -> None:
        super().__init__("commander_node")
        node, parameters = self._node, self._parameters
        params = parameters.declare(CommanderParams)
        parameters.refuse_unknown()
        self._schedule = VelocitySchedule(parse_velocities(params.schedule))
        self._inbox = Inbox(node, topics.JOINT_STATES)
        self._publisher = publisher(node, topics.VELOCITY)
        self._background = Background(node)
        self._reader = JointStateReader(())
        self._no_joints = Observation.zeros(0, 0)
        self._writer = TwistWriter()
        self._drops = Drops(node.get_logger().warning)
        self._listeners = params.wait_for_listeners
        self._last_ns = -1
        self._begin_ns = 0
        self._received_at = 0
        node.get_logger().info(f"{len(params.schedule)} velocities on {topics.VELOCITY.name}")

    def run(self) -> int:
        """Publish until :meth:`stop`; return the exit code."""
        self._background.start()
        try:
            while not self._stop:
                if self._inbox.wait(LONGEST_WAIT_NS) and (data := self._inbox.take()) is not None:
                    time.sleep(self._on_joint_state(data))
        finally:
            self._background.stop()
        if self._drops.by_kind:
            text = f"messages dropped on {topics.JOINT_STATES.name}: {in_words(self._drops.by_kind)}"
            self._node.get_logger().warning(text)
        return 0

    def stop(self) -> None:
        """End :meth:`run`; may be called from a signal handler."""
        super().stop()
        self._inbox.wake()

    def _on_joint_state(self, data: bytes) -> float:
        """Publish a due command; return the time for which no further command can be due [s]."""
        try:
            self._reader.read(data, self._no_joints)
        except MessageError as error:
            self._drops.add("unreadable", f"message on {topics.JOINT_STATES.name} dropped: {error}")
            return 0.0
        now, received_at = self._reader.t_ns, time.monotonic_ns()
        if now < self._last_ns or self._last_ns < 0:
            self._schedule.restart()
            self._begin_ns = now if now > WALL_CLOCK_NS else 0
            self._last_ns = now
        passed, took = now - self._last_ns, received_at - self._received_at
        self._last_ns, self._received_at = now, received_at
        if self._publisher.get_subscription_count() < self._listeners:
            return 0.0
        since = now - self._begin_ns
        velocity = self._schedule.due(since)
        if velocity is not None:
            self._publisher.publish(self._writer.write(velocity))
        remaining_ns = PERIOD_NS - since % PERIOD_NS
        nap = _NAP_SHARE * 1e-9 * min(remaining_ns * took / passed, LONGEST_WAIT_NS) if passed > 0 else 0.0
        return nap if nap >= _SHORTEST_NAP_S else 0.0


def main(args: Sequence[str] | None = None) -> int:
    """Run commander_node; return 0, or 2 after bad parameters."""
    return run_node(CommanderNode, args)


if __name__ == "__main__":
    sys.exit(main())
