"""Run any controller on the topics of a real or simulated robot (``controller_node``).

The node answers every message on /joint_states with a message on /effort_controller/commands. An impedance command goes
to /impedance_controller/commands, and only when it is new, because the drives hold it. The node needs the robot's
description (robot.yaml), but not its simulation: a test checks that it imports nothing from ``bipedsim.sim.simulator``
and ``bipedsim.contact``.
"""

from __future__ import annotations

import gc
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.duration import Duration
from rclpy.node import Node

from bipedsim.analysis import ControllerStop, in_words
from bipedsim.config import RunConfig, differences, like, param, parse_changes
from bipedsim.control import FALL_TILT, Guard, Tuning, construct, find_controller, robot_params
from bipedsim.errors import EXIT_FAILED, EXIT_USAGE, ConfigError, MeasurementError
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array, Indices, announced, is_finite
from bipedsim.recording.bag import NS_PER_S
from bipedsim.sim import Observation, VerticalFromImu
from bipedsim_ros.loop import (
    LONGEST_WAIT_NS,
    Background,
    ControllerInputs,
    ControllerOutputs,
    Drops,
    Histogram,
    Inbox,
    OwnCore,
    StayAwake,
    publish_status,
    run_urgently,
    write_json,
    wrong_cores,
    wrong_sign,
)
from bipedsim_ros.nodes.duplicate_nodes import COMING, DISCOVERY_S, duplicate_nodes, is_simulator_coming, where_is_it
from bipedsim_ros.nodes.node_main import run_node
from bipedsim_ros.nodes.parameters import Parameters
from bipedsim_ros.wire import (
    CommandWriter,
    Departures,
    HeightScanReader,
    ImpedanceWriter,
    ImuReader,
    JointStateReader,
    MessageError,
    SwitchReader,
    WrenchReader,
    publisher,
    relative,
    topics,
)

_WARN_EVERY_S = 5.0
# Topics of one node may connect at intervals up to this, so a shorter wait is not worth a warning [s].
_DISCOVERY_S = 2.0
_LISTENERS_S = 10.0
_BOTH_S = 1.0
# Time of the joint states without a message after which a sensor counts as silent, and the same for the joint states in
# wall time [s].
_SENSOR_S = 0.5
_STATES_S = 2.0
# Longest wait for the recorder to receive the last message of a controller that failed [s].
_FAREWELL_S = 1.0
# A simulator may compile kernels before its first message. A longer wait is logged repeatedly [s].
_PATIENCE_S = 60.0


@dataclass(frozen=True)
class ControllerNodeParams:
    """Parameters of controller_node; the controller's own parameters follow under its name."""

    robot: str = like(RunConfig, "robot")
    controller: str = like(RunConfig, "controller", "posture")
    rate: float = like(RunConfig, "rate", doc="messages per second on /joint_states, hence 1/dt of the controller")
    joints: tuple[str, ...] = param((), "order of joints in the command; the robot's own by default")
    ft_sign: float = param(
        1.0, "sign of the ankle wrenches: 1 is the ground on the foot, -1 the reverse", low=-1.0, high=1.0
    )
    wait_for_sensors: bool = param(
        True, "wait for a first message of IMU and ankle wrenches; if false, what never came is NaN for the controller"
    )
    wait_for_listeners: int = param(
        1,
        "subscriptions to wait for on the command topic, and one less on the controller's other topics, before the "
        "first command, for 10 s at most",
        low=1,
        high=100,
    )
    fall_tilt: float = param(
        FALL_TILT,
        "tilt of the IMU from its attitude in the standing posture beyond which the robot has fallen; 0 is never",
        unit="rad",
        low=0.0,
        high=3.2,
    )
    cmd_vel_timeout: float = param(
        0.5, "age beyond which a message on /cmd_vel counts as zero; 0 is never", unit="s", low=0.0, high=1e6
    )
    wait_for_velocity: bool = param(
        False,
        "wait for a first message on /cmd_vel, as commander_node sends it, so that a schedule begins when time does",
    )
    cmd_vel_period: float = param(
        0.0,
        "lock_step with commander_node: time between its messages, which it awaits; 0 takes the newest message",
        unit="s",
        low=0.0,
        high=100.0,
    )
    lock_step: bool = param(
        False,
        "for a simulation that waits for a command at every state: answer all of them, and publish readouts and "
        "estimate before the command and not behind it",
    )
    changes: tuple[str, ...] = param(
        (), "new values of live parameters of the controller, as 'at name value' with the time in s"
    )
    stats_file: str = param("", "JSON file for when and why the controller was stopped, if it was: written at the end")
    priority: int = param(
        50,
        "priority (SCHED_FIFO) of the threads, and idle cores that stay awake while there are joint states, where the "
        "system permits it; 0 is neither",
        low=0,
        high=98,
    )
    cpu_affinity: str = param(
        "auto",
        "cores of the threads of joint states and the controller. auto: one that no other node has taken, "
        "with that priority or in lock_step, until the controller begins threads. any: all cores. Or some, as in '2,3'",
    )

    def problems(self) -> Iterator[ConfigError]:
        """Yield an error message for each invalid field."""
        yield from wrong_sign(self.ft_sign)
        yield from wrong_cores(self.cpu_affinity)


def command_order(robot: Robot, joints: Sequence[str]) -> Indices:
    """Return the indices that convert torques from the robot's order to the order ``joints``.

    Raises:
        ConfigError: ``joints`` does not contain each of the robot's joints once.
    """
    if not joints:
        return np.arange(robot.nu)
    if sorted(joints) != sorted(robot.joint_names):
        different = set(joints) ^ set(robot.joint_names)
        raise ConfigError(
            f"joints = {list(joints)} must hold every joint of {robot.name} once "
            f"({', '.join(sorted(different)) or 'a name appears twice'}); they are {', '.join(robot.joint_names)}"
        )
    return np.array([robot.joint_names.index(joint) for joint in joints])


@dataclass
class _Sensor:
    """Sensor topic: its reader, the count of joint states at its last message, and whether it has stopped."""

    subscription: Any
    topic: str
    read: Callable[[bytes], None]
    heard: int = -1
    silent: bool = False


def _sensor_readers(
    robot: Robot, observation: Observation, ft_sign: float, height_points: Array | None
) -> list[tuple[topics.Topic, str, Callable[[bytes], None]]]:
    """Return topic, foot and reader of each sensor except the joint states; what they read is NaN until then.

    Args:
        robot: The robot.
        observation: The readers fill its arrays.
        ft_sign: Sign of the ankle wrenches.
        height_points: (S, 2) points of the height scan that the controller needs [m]; None for none.

    Raises:
        ConfigError: A sensor of the robot has the topic of another quantity.
    """
    o = observation
    main = o.imu_orientation, o.imu_angular_velocity, o.imu_linear_acceleration
    for values in (*main, o.foot_wrench, o.imus, o.contact_switches):
        values.fill(np.nan)
    reads: list[tuple[topics.Topic, str, Callable[[bytes], None]]] = [
        (topics.IMU, "", partial(ImuReader().read, observation=o))
    ]
    for sole, wrench in zip(robot.soles, o.foot_wrench, strict=True):
        reads.append((topics.ANKLE_WRENCH, sole.name, partial(WrenchReader(ft_sign).read, wrench=wrench)))
    if height_points is not None:
        o.height_scan, o.scan_up = np.full(len(height_points), np.nan), np.full(3, np.nan)
        reads.append((topics.HEIGHT_SCAN, "", partial(HeightScanReader(height_points).read, observation=o)))
    named = topics.of_sensors(robot)
    for imu, row in zip(robot.imus, o.imus, strict=True):
        reads.append((named[imu.name], "", partial(ImuReader().read_row, row=row)))
    for i, switch in enumerate(robot.contact_switches):
        reads.append((named[switch.name], "", partial(SwitchReader().read, out=o.contact_switches[i : i + 1])))
    return reads


def _state_reader(reader: JointStateReader, robot: Robot, observation: Observation) -> Callable[[bytes], None]:
    """Return the reader of the joint states, which also computes the vertical of a new height scan."""
    read = partial(reader.read, observation=observation)
    if not observation.scan_up.size:
        return read
    vertical = VerticalFromImu(robot)

    def read_and_fill(data: bytes) -> None:
        read(data)
        if not is_finite(observation.scan_up):
            vertical.fill(observation)

    return read_and_fill


class ControllerNode:
    """Hosts one controller.

    Raises:
        ConfigError: A parameter is invalid.
    """

    def __init__(self) -> None:
        self._node = node = Node("controller_node", automatically_declare_parameters_from_overrides=True)
        parameters = Parameters(node, "parameters of controller_node")
        params = parameters.declare(ControllerNodeParams)
        robot = load_robot(params.robot)
        prefix, cls = find_controller(params.controller)
        own: Any = None
        # The thread of the services fills it, and that of the updates empties it.
        self._tuned: deque[dict[str, Any]] = deque()
        if getattr(cls, "Params", None) is not None:
            tune = self._on_change if hasattr(cls, "tune") else None
            own = self._own = parameters.declare(cls.Params, f"{prefix}.", robot_params(robot, prefix), tune)
        parameters.refuse_unknown()
        self._params = params
        node.get_logger().info(f"loading {params.controller}")
        with announced(f"controller {params.controller}", 5, at_first=40):
            dt = 1.0 / params.rate
            self._guard = Guard(construct(cls, robot, own, dt), robot, params.fall_tilt, dt)
            changes = parse_changes(params.changes)
            self._tuning = Tuning(self._guard.tune, own, changes, "parameters of controller_node")
        self._order = command_order(robot, params.joints)
        self._reader = JointStateReader(robot.joint_names)
        self._writer, self._impedance_writer = CommandWriter(robot.nu), ImpedanceWriter(robot.nu)
        self._command: bytes | None = None
        self._observation = Observation.of_robot(robot)
        self._inbox = Inbox(node, topics.JOINT_STATES)
        reads = _sensor_readers(robot, self._observation, params.ft_sign, self._guard.height_points)
        self._read_states = _state_reader(self._reader, robot, self._observation)
        self._sensors = []
        for topic, foot, read in reads:
            subscription = self._inbox.subscribe(topic, foot)
            self._sensors.append(_Sensor(subscription, subscription.topic_name, read))
        self._inputs = ControllerInputs(
            self._inbox,
            self._guard,
            params.cmd_vel_timeout,
            params.cmd_vel_period,
            params.wait_for_velocity,
            self._warn,
            lambda: self._stop,
        )
        self._missing = {sensor.topic for sensor in self._sensors}
        self._drops = Drops(node.get_logger().warning)
        # The first command of the controller determines whether it commands torques or impedances.
        self._torques, self._impedances = publisher(node, topics.COMMANDS), publisher(node, topics.IMPEDANCE)
        self._commands = self._torques
        self._outputs = ControllerOutputs(node, self._guard)
        self._diagnostics = publisher(node, topics.DIAGNOSTICS)
        self._departures = Departures(node, (relative(topics.JOINT_STATES.name),))
        self._background = Background(node)
        self._begun = time.monotonic()
        self._next_wait = 0.0
        self._states = 0
        self._states_at = 0.0
        self._states_silent = False
        self._duplicates = ""
        self._has_listeners = False
        self._stop = False
        self._waiting_since = 0.0
        self._silent_since = 0.0
        self._last_stamp: int | None = None
        self._period_checked = False
        self._awake = StayAwake(params.priority > 0)
        self._core = OwnCore(params.cpu_affinity)
        self._update_time = Histogram()
        self._updates = self._skipped = 0
        self._warn_after: dict[str, float] = {}
        node.get_logger().info(f"{params.controller} for {robot.name} ({robot.nu} joints) at {params.rate:g} Hz")

    def _on_change(self, params: Any) -> None:
        """Keep changed parameters of the controller for its next update."""
        self._tuned.append(differences(self._own, params))
        self._own = params

    def _tune(self, now: int, begins: bool) -> None:
        """Give the controller its changed parameters, if there are any.

        Args:
            now: Stamp of the joint states [ns].
            begins: Whether they are the first ones, or the first ones after a reset.
        """
        if begins:
            self._outputs.changes.publish(self._tuning.restart(now / NS_PER_S), now)
        steps = [partial(self._tuning.due, now / NS_PER_S)]
        while self._tuned:
            steps.append(partial(self._tuning.set, now / NS_PER_S, self._tuned.popleft()))
        for step in steps:
            try:
                self._outputs.changes.publish(step(), now)
            except ConfigError as error:
                self._node.get_logger().error(f"the controller keeps its parameters: {error}")

    def run(self) -> int:
        """Answer joint states until :meth:`stop`; return the exit code."""
        notes = [run_urgently(self._params.priority)] if self._params.priority else []
        self._background.start()
        notes.append(self._core.take(deadlines=not self._params.lock_step))
        if message := "; ".join(filter(None, notes)):
            self._node.get_logger().info(message)
        gc.collect()
        gc.freeze()
        next_report = time.monotonic_ns() + NS_PER_S
        try:
            while not self._stop:
                if self._inbox.wait(LONGEST_WAIT_NS):
                    data = self._inbox.take()
                    if data is not None:
                        self._states_at = time.monotonic()
                        self._on_joint_state(data)
                        self._awake.hold()
                else:
                    self._awake.release()
                if time.monotonic_ns() >= next_report:
                    next_report += NS_PER_S
                    # The report sends messages, which would take half a tick of the loop.
                    self._background.submit(self._report)
        except Exception as error:
            # An exception of the controller ends the node. It is reported to the bag and to the parent process first.
            if (stop := ControllerStop.of(self._guard)) is not None:
                self._node.get_logger().error(f"{_stop_text(stop)}; no more commands come")
                self._outputs.publish(self._reader.t_ns)
                self._report_stop(stop)
                # A publisher that is destroyed discards messages that a busy recorder has not received yet.
                self._diagnostics.wait_for_all_acked(Duration(seconds=_FAREWELL_S))
                self._write_stop()
                if isinstance(error, ConfigError):
                    # The error has been reported completely.
                    return EXIT_USAGE
            raise
        finally:
            self._background.stop()
        durations = self._update_time.summary_us()
        each = f", {durations['p50']} us each (p99 {durations['p99']} us)" if self._updates else ""
        states = f"{self._skipped} joint states skipped" if self._states else "no joint states came"
        dropped = {**self._drops.by_kind, **self._inputs.dropped}
        drops = f"; messages dropped: {in_words(dropped)}" if dropped else ""
        self._node.get_logger().info(f"{self._updates or 'no'} updates{each}; {states}{drops}")
        return self._write_stop()

    def _write_stop(self) -> int:
        """Write a stop of the controller to the statistics file for the parent process; return the exit code."""
        stop = ControllerStop.of(self._guard)
        if self._params.stats_file and stop is not None:
            path = Path(self._params.stats_file)
            try:
                write_json(path, stop.figures())
            except OSError as error:
                reason = error.strerror or error
                self._node.get_logger().error(f"stats_file = {str(path)!r} cannot be written: {reason}")
                return EXIT_FAILED
        return 0

    def stop(self) -> None:
        """End :meth:`run`; may be called from a signal handler."""
        self._stop = True
        self._inbox.wake()

    def destroy_node(self) -> None:
        """Destroy the ROS node."""
        self._departures.close()
        self._node.destroy_node()

    def _take_sensors(self) -> None:
        # Each queue holds one message, so one read per sensor is enough.
        for sensor in self._sensors:
            data = self._inbox.take_from(sensor.subscription)
            if data is not None and self._read(sensor.topic, sensor.read, data):
                if sensor.heard < 0:
                    self._missing.discard(sensor.topic)
                sensor.heard = self._states

    def _read(self, topic: str, read: Callable[[bytes], None], data: bytes) -> bool:
        """Read a message; return whether it is valid."""
        try:
            read(data)
        except MessageError as error:
            self._drops.add(f"{topic} unreadable", f"message on {topic} dropped: {error}")
            return False
        return True

    def _skip(self, kind: str, text: str) -> None:
        """Count a joint state that gets no command, and log the reason."""
        self._skipped += 1
        self._drops.add(f"{topics.JOINT_STATES.name} {kind}", f"no command: {text}")

    def _ready(self, observation: Observation) -> bool:
        """Return whether the controller can be updated; warn if it cannot."""
        wanted = self._missing if self._params.wait_for_sensors else ()
        if wanted or self._inputs.missing:
            missing = [*sorted(wanted), *filter(None, [self._inputs.missing])]
            self._waiting_since = self._waiting_since or time.monotonic()
            if time.monotonic() - self._waiting_since > _DISCOVERY_S:
                self._warn(f"waiting for a first message on {', '.join(missing)}")
            return False
        if not (is_finite(observation.joint_position) and is_finite(observation.joint_velocity)):
            absent, name = self._reader.missing, topics.JOINT_STATES.name
            if absent:
                self._skip("names", f"{name} lacks {', '.join(absent)}")
            else:
                self._skip("not_finite", f"{name} holds positions or velocities that are missing or not finite")
            return False
        # A subscription that has not connected yet would lose the first commands, and a lock-step simulator waits for
        # them.
        self._has_listeners = self._has_listeners or self._enough_listeners()
        return self._has_listeners

    def _enough_listeners(self) -> bool:
        """Return whether enough nodes subscribe; after ``_LISTENERS_S``, one subscriber to the commands is enough."""
        counts = [commands.get_subscription_count() for commands in (self._torques, self._impedances)]
        count, wanted = max(counts), self._params.wait_for_listeners
        self._silent_since = self._silent_since or time.monotonic()
        waited = time.monotonic() - self._silent_since
        unheard = self._outputs.unheard(wanted - 1)
        # A robot may accept only one of the two kinds of commands.
        if not unheard and (min(counts) >= wanted or (count >= wanted and waited > _BOTH_S)):
            return True
        if count == 0 or waited < _LISTENERS_S:
            return False
        self._warn(
            f"{count} of {wanted} listeners on {topics.COMMANDS.name}, too few on "
            f"{', '.join(unheard) or 'no other topic'}; "
            "starting without the rest"
        )
        return True

    def _on_joint_state(self, data: bytes) -> None:
        observation = self._observation
        self._states += 1
        self._take_sensors()
        if not self._read(topics.JOINT_STATES.name, self._read_states, data):
            self._skipped += 1
            return
        now = self._reader.t_ns
        last = self._last_stamp
        if last is not None and now < last:
            self._inputs.restart()
            self._last_stamp = last = None
        self._inputs.take(now)
        if not self._ready(observation):
            return
        if now == last:
            # A repeated measurement means that its command was lost or answered another state of the simulation. Or it
            # is the first state, repeated for late subscribers such as a recorder, which missed the telemetry too.
            if self._command is not None:
                self._outputs.repeat(now)
                self._commands.publish(self._command)
            return
        if last is None:
            try:
                self._guard.reset(observation)
            except MeasurementError as error:
                self._skip("start", f"{error}; it starts with the next state that will do")
                return
            self._period_checked = False
        elif not self._period_checked:
            self._check_period((now - last) / NS_PER_S)
        self._last_stamp = now
        was_running, begins = not self._guard.fallen, last is None
        begin = time.monotonic_ns()
        self._inputs.deliver(now)
        self._tune(now, begins)
        command = self._guard.update(observation)
        if self._guard.fresh:
            self._update_time.record(time.monotonic_ns() - begin)
            self._updates += 1
        if command.closes_loop:
            if self._guard.fresh:
                self._command = self._impedance_writer.write(command, self._order)
            self._commands = self._impedances
        else:
            self._command = self._writer.write(command.tau_joint[self._order])
            self._commands = self._torques
        if self._params.lock_step:
            self._outputs.publish(now)
            self._commands.publish(self._command)
        else:
            if self._guard.fresh or not command.closes_loop:
                self._commands.publish(self._command)
            self._outputs.publish(now)
        if was_running and (stop := ControllerStop.of(self._guard)) is not None:
            self._report_stop(stop)
            self._node.get_logger().error(f"{_stop_text(stop)}; the joints are damped until a reset")

    def _check_period(self, period: float) -> None:
        self._period_checked = True
        if abs(period * self._params.rate - 1.0) > 0.1:
            self._warn(
                f"{topics.JOINT_STATES.name} came {period:.6f} s apart, but rate = {self._params.rate:g} Hz promises "
                f"the controller {1.0 / self._params.rate:.6f} s"
            )

    def _warn(self, text: str) -> None:
        # rclpy's own throttle is per source line, so that one warning would suppress another.
        now = time.monotonic()
        if now >= self._warn_after.get(text, 0.0):
            self._warn_after[text] = now + _WARN_EVERY_S
            self._node.get_logger().warning(text)

    def _log_silence(self, silent: bool, before: bool, stopped: str, again: str) -> bool:
        """Return ``silent``, and log each change from ``before``."""
        log = self._node.get_logger()
        if silent and not before:
            log.warning(stopped)
        elif before and not silent:
            log.info(again)
        return silent

    def _silent_sensors(self) -> list[str]:
        """Return the silent sensors; log when sensors or joint states stop and when they resume."""
        for sensor in self._sensors:
            states_since = self._states - sensor.heard
            sensor.silent = self._log_silence(
                0 <= sensor.heard < self._states - max(2.0, _SENSOR_S * self._params.rate),
                sensor.silent,
                f"nothing on {sensor.topic} for the last {states_since} joint states: the last message stands in; does "
                "that sensor still run?",
                f"messages on {sensor.topic} again",
            )
        topic, t = self._inbox.topic, self._observation.t
        self._states_silent = self._log_silence(
            bool(self._states) and time.monotonic() - self._states_at > _STATES_S,
            self._states_silent,
            f"no message on {topic} for {_STATES_S:g} s, after t = {t:.3f} s: the robot has stopped, or its simulation "
            "is paused",
            f"messages on {topic} again, at t = {t:.3f} s",
        )
        return [sensor.topic for sensor in self._sensors if sensor.silent]

    def _log_wait(self) -> None:
        topic, now = self._inbox.topic, time.monotonic()
        if not self._next_wait:
            nobody = "" if self._inbox.publishers() else f", which no node publishes yet: {where_is_it(self._node)}"
            self._node.get_logger().info(f"waiting for {topic}{nobody}")
            self._next_wait = self._begun + _PATIENCE_S
        elif now >= self._next_wait:
            self._next_wait = now + _PATIENCE_S
            waited = f"waiting for {topic} for {now - self._begun:.0f} s"
            if self._inbox.publishers():
                self._node.get_logger().warning(f"{waited}, whose publisher is silent")
            elif is_simulator_coming(self._node):
                # The simulator will publish when it is ready, which is not worth a warning.
                self._node.get_logger().info(f"{waited}: {COMING}")
            else:
                self._node.get_logger().warning(f"{waited}, which no node publishes: {where_is_it(self._node)}")

    def _report(self) -> None:
        if note := self._core.let_go_of_others():
            self._node.get_logger().info(note)
        stopped = self._silent_sensors()
        if not self._states and time.monotonic() - self._begun > DISCOVERY_S:
            self._log_wait()
        level, message = DiagnosticStatus.OK, "running"
        if self._skipped:
            level, message = DiagnosticStatus.WARN, "some joint states were not answered"
        # A simulator that was killed just now may still be in the graph, together with its successor.
        died = self._departures.look()
        duplicates = "" if died else duplicate_nodes(self._node, (topics.JOINT_STATES.name,))
        if duplicates:
            if not self._duplicates:
                self._node.get_logger().warning(duplicates)
            self._duplicates = duplicates
            level, message = DiagnosticStatus.WARN, duplicates
        if stopped:
            level, message = DiagnosticStatus.WARN, f"nothing comes any more on {', '.join(stopped)}"
        if self._states_silent:
            level, message = DiagnosticStatus.STALE, "joint states have stopped"
        if not self._updates:
            level, message = DiagnosticStatus.STALE, "waiting for joint states, sensors, or someone who takes commands"
        if (stop := ControllerStop.of(self._guard)) is not None:
            self._report_stop(stop)
        else:
            self._publish_status(level, message, {})

    def _report_stop(self, stop: ControllerStop) -> None:
        """Report on /diagnostics that the controller is stopped, immediately, because a reset may follow at once."""
        self._publish_status(DiagnosticStatus.ERROR, f"{_ended(stop)}: {stop.why}", stop.figures())

    def _publish_status(self, level: bytes, message: str, more: Mapping[str, Any]) -> None:
        values = {
            **more,
            "updates": self._updates,
            "skipped": self._skipped,
            **{f"dropped.{key}": n for key, n in (*self._drops.by_kind.items(), *self._inputs.dropped.items())},
            **{f"update_us.{key}": value for key, value in self._update_time.summary_us().items()},
        }
        name, robot = topics.CONTROLLER_STATUS, self._params.robot
        publish_status(self._node, self._diagnostics, name, level, message, values, robot)


def _ended(stop: ControllerStop) -> str:
    """Return 'stopped' if the controller failed, 'fallen' if the robot fell; a robot may stand after a failure."""
    return "stopped" if stop.failed else "fallen"


def _stop_text(stop: ControllerStop) -> str:
    return f"{_ended(stop)} at t = {stop.at:.3f} s: {stop.why}"


def main(args: Sequence[str] | None = None) -> int:
    """Run controller_node; return 0, 1 after a failure, or 2 after bad parameters."""
    return run_node(ControllerNode, args)


if __name__ == "__main__":
    sys.exit(main())
