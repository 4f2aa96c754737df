"""Record raw messages in a rosbag2 MCAP bag (``recorder_node``), without loss at 1 kHz, and readable after SIGKILL.

The design has three properties, each of them measured (docs/recording.md):

* The ``mcap`` package writes the bag, which is flushed at fixed intervals. The writer of ``rosbags`` flushes by size
  only, so a SIGKILL would lose many seconds of slow topics. ``recording/bag/mcap.py`` completes the file at every
  flush.
* The recorder polls the messages every few ms. It may be late, because DDS stamps each message on arrival. One pass
  over deep queues costs less than an executor's wake-up and callback per message.
* Lost messages are counted exactly. DDS numbers the messages of a publisher, so a gap is a loss. The first number
  shows how many messages were published before this subscription existed.

This thread takes and sorts the messages. A second thread compresses and writes them; the buffer in between is bounded.
A full disk ends the recording with an error, and the data written so far remain readable.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.node import Node

from bipedsim.config import RunConfig, like, param
from bipedsim.errors import ConfigError, RecordingError
from bipedsim.model import ROBOTS
from bipedsim.recording import schema
from bipedsim.recording.bag import BagWriter, Pending, Qos
from bipedsim_ros.loop import (
    Background,
    SimParams,
    publish_status,
    run_urgently,
    subscribe_raw,
    take_raw,
    wrong_sign,
)
from bipedsim_ros.nodes.node_main import run_node
from bipedsim_ros.nodes.parameters import Parameters
from bipedsim_ros.nodes.start import RECORDING
from bipedsim_ros.nodes.topic_selection import Selection
from bipedsim_ros.wire import (
    TOPICS,
    Topic,
    definition_of,
    described,
    incompatible,
    offered_qos,
    publisher,
    recorder_profile,
    relative,
    topics,
)

GRAPH_PERIOD = 0.5
DIAGNOSTICS_PERIOD = 1.0
MATCH_PERIOD = 0.02
# A message may have been stamped but not queued when a pass ends. It must still precede its successors in the bag.
HOLD_BACK_NS = 10_000_000


@dataclass(frozen=True)
class RecorderParams:
    """Parameters of the recorder."""

    output: str = param("", "directory of the bag, which must not exist; empty: bags/<date and time>")
    topics: list[str] = param(
        [],
        "topics to record, as '/topic' or '/topic package/msg/Type', with * for any text; empty: all of the simulator "
        "and controller; '+/topic' adds to these, '-/topic' leaves one out",
    )
    feet: list[str] = param([], "names of the feet in the default topics; empty: those of robot, or left and right")
    robot: str = like(RunConfig, "robot", "", "robot name or file, stored in the bag for plots of soles and limits")
    controller: str = like(
        RunConfig, "controller", "", "name of the controller, stored in the bag for the titles of plots"
    )
    ft_sign: float = like(
        SimParams, "ft_sign", 1.0, "sign of the ankle wrenches on the topics, stored in the bag: recordings have 1"
    )
    max_duration: float = param(0.0, "stop this long after the first message; 0: never", unit="s", low=0.0)
    await_end: float = param(
        0.0,
        "maximum time to wait for the end of a running simulator after an interrupt: Ctrl-C interrupts all nodes of a "
        "launch file at the same time, and the last messages of the simulator belong into the bag",
        unit="s",
        low=0.0,
        high=3600.0,
    )
    flush_period: float = param(
        0.1, "period of completing the bag on disk; a SIGKILL loses at most this time", unit="s", low=0.01, high=10.0
    )
    poll_period: float = param(0.005, "pause between two passes over the queues", unit="s", low=0.0005, high=0.1)
    max_buffer: int = param(
        256, "messages that may wait for the disk; further ones are dropped and counted", unit="MiB", low=1
    )
    priority: int = param(
        0, "priority (SCHED_FIFO) of the threads, where the system permits it; 0 is none", low=0, high=98
    )

    def problems(self) -> Iterator[ConfigError]:
        """Yield an error message for each invalid field."""
        yield from wrong_sign(self.ft_sign)


def _robot_topics(name: str, feet: Sequence[str], warn: Callable[[str], object]) -> tuple[list[str], dict[str, Topic]]:
    """Return the feet, and the topic of each additional sensor by its name.

    Args:
        name: Robot name or file; empty if it is unknown.
        feet: Names of the feet if the user gave them. The robot may then be unknown on this machine.
        warn: Receives a warning if the robot cannot be loaded and ``feet`` are given.

    Raises:
        ConfigError: The robot cannot be loaded, and ``feet`` are not given.
    """
    if not name:
        return list(feet) or ["left", "right"], {}
    from bipedsim.model import load_robot

    try:
        robot = load_robot(name)
    except ConfigError as error:
        if not feet:
            raise
        warn(
            f"robot = {name!r} cannot be loaded: {error}. Its additional IMUs and contact switches are not recorded. "
            "Correct the robot, or add their topics with the parameter topics, such as '+/shank_imu/data'"
        )
        return list(feet), {}
    return list(feet) or [sole.name for sole in robot.soles], topics.of_sensors(robot)


@dataclass
class Counts:
    """Message counts; the receiving thread updates all of them except ``written``."""

    received: int = 0
    written: int = 0
    dropped: int = 0  # discarded because the buffer was full: the disk is too slow
    lost: int = 0  # gaps in a publisher's numbers on a reliable topic: never arrived
    lost_best_effort: int = 0  # gaps on a best-effort topic, whose publisher accepts losses
    missed: int = 0  # published before this subscription was matched

    def __str__(self) -> str:
        return " ".join(f"{f.name}={getattr(self, f.name)}" for f in fields(self))


@dataclass(eq=False)
class _Subscription:
    name: str
    msgtype: str
    qos: Qos
    subscription: Any
    channel: int = 0
    sequence: int = 0
    last: int = 0  # arrival of the newest message [ns]
    shared: bool = False  # whether several publishers send on the topic, so that their numbers cannot be distinguished


class _Timeline:
    """Monotonic clock that starts at the date, because the wall clock may be set while a bag is written."""

    def __init__(self) -> None:
        self._begin = time.time_ns() - time.monotonic_ns()

    def now(self) -> int:
        """Return the time [ns]."""
        return self._begin + time.monotonic_ns()

    def moved(self) -> int:
        """Return the difference between the wall clock and this clock [ns]."""
        return time.time_ns() - self.now()


class _DiskThread(threading.Thread):
    """Compresses and writes chunks; an exception is stored for the main thread."""

    def __init__(self, bag: BagWriter, counts: Counts) -> None:
        super().__init__(name="bag-writer", daemon=True)
        self.chunks: queue.Queue[Pending | None] = queue.Queue(maxsize=8)
        self.error: Exception | None = None
        self._bag = bag
        self._counts = counts

    def run(self) -> None:
        while (chunk := self.chunks.get()) is not None:
            if self.error is not None:
                continue
            try:
                self._bag.write(chunk)
            except Exception as error:
                # The thread must survive any exception: otherwise the queue would remain full and block the recorder.
                self.error = error
            else:
                self._counts.written += len(chunk.messages)


# Log time, order of receipt (unique, so that sorting never compares sources), source, publish time, sequence and data.
_Arrived = tuple[int, int, _Subscription, int, int, bytes]


class Recorder:
    """Records the subscriptions of ``node`` in a bag.

    Attributes:
        left_out: How many of the default topics are not recorded, as text; empty if all are.

    Raises:
        ConfigError: The output exists, or a topic or type is invalid.
    """

    def __init__(self, node: Node, params: RecorderParams) -> None:
        self.params = params
        self.counts = Counts()
        self.absent: Counter[str] = Counter()  # lost or dropped messages by topic
        self._node = node
        self._unreadable: set[str] = set()
        feet, sensors = _robot_topics(params.robot, params.feet, node.get_logger().warning)
        self._feet = feet
        self._sensor_topics = {row.name for row in sensors.values()}
        rows = [row for row in TOPICS.values() if row.recorded]
        known: dict[str, Topic] = {name: row for row in rows if not row.is_prefix for name in row.names(feet)}
        known |= {row.name: row for row in sensors.values()}
        self._optional = {name for name, row in known.items() if not row.expected}
        self._selection = Selection.of(params.topics, known, [row.prefix for row in rows if row.is_prefix])
        self._waiting_for_type = set(self._selection.waiting)
        left = sum(name not in self._selection.types for name in known)
        self.left_out = f"; {left} of {len(known)} default topics are left out" if left else ""
        self._subscriptions: dict[str, _Subscription] = {}
        for name, msgtype in self._selection.types.items():
            self._subscribe(name, msgtype, known[name].recorder_qos if name in known else self._offered(name))
        self.path = Path(params.output or time.strftime("bags/%Y-%m-%d_%H-%M-%S"))
        robot = ROBOTS.kept(params.robot) if params.robot else ""
        custom = {"robot": robot, "feet": ",".join(feet), "ft_sign": f"{params.ft_sign:g}"}
        if params.controller:
            custom["controller"] = params.controller
        custom["namespace"] = node.get_namespace()
        custom[schema.USER_TOPICS] = self._user_topics
        if sensors:
            custom[schema.SENSORS] = json.dumps({sensor: row.name for sensor, row in sensors.items()})
        self.bag = BagWriter(self.path, custom, os.environ.get("ROS_DISTRO", "jazzy"))
        self._disk = _DiskThread(self.bag, self.counts)
        self._disk.start()
        self._timeline = _Timeline()
        self._held_back: list[_Arrived] = []
        self._last_log_time = 0
        self._first_at = 0.0
        self._flush_due = self._graph_due = 0.0
        self._diagnostics_due = time.monotonic() + DIAGNOSTICS_PERIOD
        self._publisher = publisher(node, topics.DIAGNOSTICS)

    @property
    def n_topics(self) -> int:
        """Number of requested topics."""
        return len(self._subscriptions) + len(self._waiting_for_type)

    @property
    def matched(self) -> bool:
        """Whether every topic has a publisher, apart from sporadic topics and those of controllers and users."""
        awaited = [s for name, s in self._subscriptions.items() if name not in self._optional]
        return not self._waiting_for_type and all(s.subscription.get_publisher_count() for s in awaited)

    @property
    def simulated(self) -> bool:
        """Whether a simulator is running."""
        return bool(self._node.count_publishers(relative(topics.RUN.name)))

    @property
    def shared(self) -> list[str]:
        """Topics that belong to one robot or one controller, but on which several nodes published."""
        rows = [row for row in TOPICS.values() if row.expected or row in topics.COMMAND_KINDS]
        exclusive = {name for row in rows for name in row.names(self._feet)} | self._sensor_topics
        return sorted(name for name, source in self._subscriptions.items() if source.shared and name in exclusive)

    @property
    def _user_topics(self) -> str:
        """Topics of the user's own nodes, joined by commas, for readers of the bag."""
        return ",".join(sorted({*topics.of_user(self._subscriptions, self._feet)} - self._sensor_topics))

    def _offered(self, name: str) -> Qos:
        return offered_qos(self._node, name) or Qos()

    def _subscribe(self, name: str, msgtype: str, qos: Qos) -> None:
        definition_of(msgtype)  # raises now, not at the first message
        subscription = subscribe_raw(self._node, msgtype, relative(name), recorder_profile(qos))
        self._subscriptions[name] = _Subscription(name, msgtype, qos, subscription)

    def _look_at_graph(self) -> None:
        """Subscribe to topics whose type is now known, and weaken QoS that a publisher does not offer."""
        if self._waiting_for_type or self._selection.patterns:
            namespace = self._node.get_namespace().rstrip("/")
            for resolved, types in self._node.get_topic_names_and_types():
                if not resolved.startswith(f"{namespace}/"):
                    continue
                # A bag contains names without the namespace, as if the robot were the only one.
                name = resolved.removeprefix(namespace)
                matches = name not in self._subscriptions and self._selection.matches(name)
                if name in self._waiting_for_type or (matches and name not in self._unreadable):
                    self._waiting_for_type.discard(name)
                    try:
                        self._subscribe(name, types[0], self._offered(name))
                    except ConfigError as error:
                        # A faulty topic must not end the recording of the others.
                        self._unreadable.add(name)
                        self._node.get_logger().error(f"{name} is not recorded: {error}")
            self.bag.custom_data[schema.USER_TOPICS] = self._user_topics
        for source in list(self._subscriptions.values()):
            if source.channel or source.qos.reliability == "best_effort":
                continue
            offered = offered_qos(self._node, source.name)
            if offered is not None and incompatible(offered, source.qos):
                self._node.destroy_subscription(source.subscription)
                self._subscribe(source.name, source.msgtype, offered)

    def _take(self, source: _Subscription) -> None:
        held_back = self._held_back
        now, moved = self._timeline.now(), self._timeline.moved()
        while (taken := take_raw(source.subscription)) is not None:
            data, info = taken
            # DDS stamps arrivals with the wall clock, which may have been set since then.
            received = info["received_timestamp"]
            arrived = min(received - moved, now) if received else now
            # A resent message is taken in its original order, after later messages that arrived before it.
            log_time = source.last = max(arrived, source.last)
            sequence = info["publication_sequence_number"] or 0
            if sequence != source.sequence + 1:
                self._count_gap(source, sequence)
            source.sequence = sequence
            self.counts.received += 1
            held_back.append((log_time, self.counts.received, source, info["source_timestamp"], sequence, data))

    def _count_gap(self, source: _Subscription, sequence: int) -> None:
        """Count the gap between two numbers of one publisher; a smaller number means a new publisher."""
        source.shared = source.shared or source.subscription.get_publisher_count() > 1
        if source.shared:
            return
        if source.sequence == 0 or sequence <= source.sequence:
            self.counts.missed += max(0, sequence - 1) if source.qos.durability == "volatile" else 0
        elif source.qos.reliability == "best_effort":
            self.counts.lost_best_effort += sequence - source.sequence - 1
        else:
            self.counts.lost += sequence - source.sequence - 1
            self.absent[source.name] += sequence - source.sequence - 1

    def _move_to_bag(self, until: int) -> None:
        """Add the messages that arrived before ``until`` [ns] to the bag, in order, for readers without an index."""
        held_back = self._held_back
        held_back.sort()
        done = 0
        limit = self.params.max_buffer << 20
        for log_time, _order, source, publish_time, sequence, data in held_back:
            if log_time > until:
                break
            done += 1
            if self.bag.pending_bytes > limit:
                self.counts.dropped += 1
                self.absent[source.name] += 1
                continue
            if not source.channel:
                source.channel = self.bag.add_topic(described(self._node, source.name, source.msgtype))
            self._last_log_time = max(self._last_log_time, log_time)
            self.bag.add_message(source.channel, self._last_log_time, publish_time, data, sequence & 0xFFFFFFFF)
        del held_back[:done]

    def _flush(self) -> None:
        """Pass the chunk to the writing thread; while its queue is full, the chunk grows."""
        if not self._disk.chunks.full():
            chunk = self.bag.detach()
            if chunk is not None:
                self._disk.chunks.put_nowait(chunk)

    def step(self) -> bool:
        """Execute one pass; return False at the end of the recording.

        Raises:
            RecordingError: The disk cannot be written.
        """
        started, now = self._timeline.now(), time.monotonic()
        for source in self._subscriptions.values():
            self._take(source)
        self._move_to_bag(started - HOLD_BACK_NS)
        if now >= self._flush_due:
            self._flush_due = now + self.params.flush_period
            self._flush()
        if now >= self._graph_due:
            self._graph_due = now + GRAPH_PERIOD
            self._look_at_graph()
        if now >= self._diagnostics_due:
            self._diagnostics_due = now + DIAGNOSTICS_PERIOD
            self._publish_diagnostics()
        self._raise_disk_error()
        if not self._first_at and self.counts.received:
            self._first_at = now
        limit = self.params.max_duration
        return not (limit and self._first_at and now - self._first_at >= limit)

    def _publish_diagnostics(self) -> None:
        counts = self.counts
        bad = counts.dropped + counts.lost
        level = DiagnosticStatus.WARN if bad else DiagnosticStatus.OK
        message = f"{bad} messages missing from the bag" if bad else "recording"
        matched = sum(bool(s.subscription.get_publisher_count()) for s in self._subscriptions.values())
        values = {f.name: getattr(counts, f.name) for f in fields(counts)}
        values |= {"buffered_bytes": self.bag.pending_bytes, "topics": self.n_topics, "matched_topics": matched}
        publish_status(self._node, self._publisher, "recorder", level, message, values)

    def close(self) -> None:
        """Record the messages that have arrived, finish the bag and store the counts in its metadata.

        Raises:
            RecordingError: The disk cannot be written.
        """
        for source in self._subscriptions.values():
            self._take(source)
        self._move_to_bag(2**63)
        for source in self._subscriptions.values():
            source.channel = source.channel or self.bag.add_topic(described(self._node, source.name, source.msgtype))
        chunk = self.bag.detach()
        if chunk is not None:
            self._disk.chunks.put(chunk)
        self._disk.chunks.put(None)
        self._disk.join()
        try:
            self._raise_disk_error()
            self.bag.custom_data |= {f.name: str(getattr(self.counts, f.name)) for f in fields(self.counts)}
            self.bag.close()
        except OSError as error:
            raise RecordingError(f"the bag cannot be finished ({error.strerror})", self.path) from error
        finally:
            self.bag.release()

    def _raise_disk_error(self) -> None:
        if self._disk.error is not None:
            reason = getattr(self._disk.error, "strerror", None) or repr(self._disk.error)
            raise RecordingError(
                f"the bag cannot be written any more ({reason}). The data written so far are readable. Free disk "
                "space, or record elsewhere",
                self.path,
            ) from self._disk.error


class RecorderNode(Node):
    """ROS node of the recorder; a separate thread serves its services during the recording."""

    def __init__(self) -> None:
        super().__init__(
            "recorder_node",
            enable_rosout=False,
            automatically_declare_parameters_from_overrides=True,
        )
        parameters = Parameters(self, "parameters of recorder_node")
        params = parameters.declare(RecorderParams)
        parameters.refuse_unknown()
        self._recorder = Recorder(self, params)
        self._background = Background(self)
        # threading.Event is not used: a signal during wait() or set() would leave its lock acquired.
        self._stop = False

    def run(self) -> int:
        """Record until :meth:`stop` and the end of the simulator, or ``max_duration``; return the exit code."""
        recorder = self._recorder
        stopped_at = 0.0
        if recorder.params.priority:
            run_urgently(recorder.params.priority)
        self._background.start()
        # The parent process waits for this line before it starts the nodes to be recorded.
        print(f"{RECORDING} {recorder.n_topics} topics into {recorder.path}{recorder.left_out}", flush=True)
        match_due = 0.0
        try:
            while recorder.step():
                if self._stop:
                    stopped_at = stopped_at or time.monotonic()
                    if time.monotonic() - stopped_at >= recorder.params.await_end or not recorder.simulated:
                        break
                if time.monotonic() >= match_due:
                    match_due = time.monotonic() + MATCH_PERIOD
                    if recorder.matched:
                        # A parent process may wait for this line before the robot moves: discovery takes up to seconds.
                        print("matched all publishers", flush=True)
                        match_due = float("inf")
                time.sleep(recorder.params.poll_period)
        finally:
            self._background.stop()
            recorder.close()
        print(f"recorded into {recorder.path}: {recorder.counts}", flush=True)
        shared = recorder.shared
        if shared:
            print(
                f"recorder_node: several nodes published {', '.join(shared)} at a time: another robot or controller is "
                f"on ROS domain {self.context.get_domain_id()}. The bag contains the messages of all of them, and lost "
                "messages on these topics are not counted. End the other nodes, or use a separate ROS_DOMAIN_ID",
                file=sys.stderr,
                flush=True,
            )
        absent = recorder.absent
        if absent:
            worst = ", ".join(f"{count} on {name}" for name, count in absent.most_common(3))
            print(
                f"recorder_node: {absent.total()} messages are missing from the bag ({worst}"
                f"{', ...' * (len(absent) > 3)}), because the machine was too busy. Use real-time priorities "
                "(docs/ros_interface.md, Timing), or record fewer topics",
                file=sys.stderr,
                flush=True,
            )
        return 0

    def stop(self) -> None:
        """End :meth:`run`; may be called from a signal handler."""
        self._stop = True


def main(args: Sequence[str] | None = None) -> int:
    """Run recorder_node; return 0, 1 after a failure, or 2 after bad parameters."""
    os.environ.setdefault("AMENT_PREFIX_PATH", sys.prefix)
    return run_node(RecorderNode, args)


if __name__ == "__main__":
    sys.exit(main())
