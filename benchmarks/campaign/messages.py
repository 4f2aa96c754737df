"""Hostile messages on every topic of a node, and hostile service calls, while a robot walks.

The nodes of a launch run in separate processes, over DDS. First the simulation is paused, so that no command is
overwritten, and each invalid command and push is counted. Then all messages come at once, in real time and in
lock_step. The check compares the commands that sim_node applied with all commands in the bag, as rclpy reads them.
"""

from __future__ import annotations

import argparse
import collections
import json
import math
import os
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import hostile
import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped, Twist, WrenchStamped
from nav_msgs.msg import Path as Footsteps
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameters, ListParameters, SetParameters
from rclpy._rclpy_pybind11 import RCLError
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message, serialize_message
from report import header, keep, table
from sensor_msgs.msg import JointState
from std_msgs.msg import Float32, Float64MultiArray
from std_srvs.srv import SetBool, Trigger
from tqdm import tqdm

from bipedsim.model import load_robot
from bipedsim.recording.bag import Bag
from bipedsim_ros.bringup import plan
from bipedsim_ros.bringup.bringup import parameters_text
from bipedsim_ros.bringup.processes import Child, environment
from bipedsim_ros.wire import TOPICS, Topic, message_class, profile, topics

ROBOT, SCENARIO, RATE = "biped14", "walk", 500.0
SERVICE_LIMIT_S = 1.0
PATIENCE_S = 120.0
COUNTED, LOCK_STEP = 0.1, 0.3
"""Shares of all messages that come while the simulation is paused, and in lock_step."""
_SILENCE = threading.Lock()
_DEEP = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this part."""
    parser.add_argument("--messages", type=int, default=100_000, metavar="N", help="in all (default: %(default)s)")
    parser.add_argument("--pace", type=float, default=1000.0, metavar="N", help="a second (default: %(default)s)")
    parser.add_argument("--domain", type=int, default=87, help="a ROS domain where nothing runs (default: %(default)s)")


class World:
    """The nodes of a bring-up, an additional node of ours, and the recorded data.

    Attributes:
        counts: Messages that were sent, by topic and kind.
        commands: Those of them on the topic of commands.
        lines: Output of each node.
        diagnostics: The values of each newest status.
        good: A valid message of every topic.
    """

    def __init__(self, clock: str, folder: Path, domain: int, seed: int) -> None:
        self.folder, self.rng = folder, random.Random(seed)
        self.stats_file = folder / "sim.json"
        # Nothing but commands is applied, however late they are.
        params = folder / "params.yaml"
        params.write_text("sim_node:\n  ros__parameters: {command_timeout: 1.0e+9, lock_step_timeout: 0.05}\n")
        given = {"robot": ROBOT, "scenario": SCENARIO, "clock": clock, "rate": RATE, "record": str(folder / "run")}
        self.plan = plan({**given, "params_file": str(params)}, stats_file=self.stats_file)
        (folder / "run").mkdir()
        self.lines: dict[str, list[str]] = {}
        self.children: list[Child] = []
        self._sent: dict[str, set[bytes]] = collections.defaultdict(set)
        self.commands: list[bytes] = []
        self.counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        self.diagnostics: dict[str, dict[str, str]] = {}
        self.good: dict[str, bytes] = {}
        self.context = rclpy.Context()
        self.context.init(domain_id=domain)
        self.node = rclpy.create_node("campaign", context=self.context, enable_rosout=False)
        # DDS refuses a second type of a name within a participant.
        self.other = rclpy.Context()
        self.other.init(domain_id=domain)
        self.stranger = rclpy.create_node("stranger", context=self.other, enable_rosout=False)
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self.node)
        env = environment()
        for process in self.plan.nodes:
            file = folder / f"{process.executable}.yaml"
            file.write_text(parameters_text(process), encoding="utf-8")
            said = self.lines.setdefault(process.executable, [])
            child = Child(process, file, said.append, env)
            self.children.append(child)
            if not child.wait_ready(60.0):
                raise SystemExit(f"{process.executable} was not ready: {said}")
        self._stopping = False
        self._thread = threading.Thread(target=self._spin, daemon=True)
        self._thread.start()

    def _spin(self) -> None:
        while not self._stopping:
            self._executor.spin_once(timeout_sec=0.1)

    def note(self, name: str, kind: str, data: bytes) -> None:
        """Remember a message that was sent."""
        self._sent[name].add(_meaning(data))
        if name == topics.COMMANDS.name:
            self.commands.append(data)
        self.counts[name][kind] += 1

    def is_ours(self, name: str, data: bytes) -> bool:
        """Whether a message that came is one that was sent from here."""
        return any(_meaning(data, padding) in self._sent[name] for padding in range(4))

    def statistics(self) -> dict[str, Any]:
        """Return the last statistics of sim_node."""
        try:
            return dict(json.loads(self.stats_file.read_text()))
        except (OSError, ValueError):
            return {}

    def until(self, condition: Any, what: str) -> None:
        """Wait until a condition holds.

        Raises:
            SystemExit: It never did.
        """
        end = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > end:
                said = json.dumps(self.lines, indent=1)
                raise SystemExit(f"campaign: waited in vain for {what}; the nodes said {said}")
            time.sleep(0.02)

    def listen(self) -> None:
        """Keep a good message of every topic, and the newest diagnostics of our nodes."""

        def on_diagnostics(data: bytes) -> None:
            if self.is_ours(topics.DIAGNOSTICS.name, data):
                return
            try:
                with silent():
                    found = deserialize_message(data, DiagnosticArray).status
            except Exception:
                # One of ours that has changed on its way.
                return
            for status in found:
                self.diagnostics[status.name] = {pair.key: pair.value for pair in status.values}

        self.node.create_subscription(DiagnosticArray, topics.DIAGNOSTICS.name, on_diagnostics, _DEEP, raw=True)
        first = []
        for name, row in self.targets():
            kind = message_class(row.msgtype)
            self.good[name] = bytes(serialize_message(_example(kind)))
            if name in (topics.PUSH.name, topics.FOOTSTEPS.name, topics.VELOCITY.name):
                continue
            keep_good = lambda data, name=name: self.good.__setitem__(name, data)  # noqa: E731
            first.append(self.node.create_subscription(kind, name, keep_good, 1, raw=True))
        time.sleep(2.0)
        for subscription in first:
            # In the thread that waits on it: elsewhere rclpy ends that thread.
            self._executor.create_task(self.node.destroy_subscription, subscription)

    def targets(self) -> Iterator[tuple[str, Topic]]:
        """Yield the name and entry of every topic that a node can subscribe to."""
        feet = [sole.name for sole in load_robot(ROBOT).soles]
        for row in TOPICS.values():
            if not row.recorded and row.requested is None:
                continue
            for name in row.names(feet):
                yield (name + "hostile" if row.is_prefix else name), row

    def end(self) -> dict[str, int]:
        """End the nodes in order and return their exit codes."""
        order = {"sim_node": 0, "recorder_node": 2}
        return {c.name: c.stop(lambda: False) for c in sorted(self.children, key=lambda c: order.get(c.name, 1))}

    def close(self) -> None:
        """Release everything."""
        for child in self.children:
            child.stop(lambda: True)
        self._stopping = True
        self._thread.join()
        self._executor.shutdown()
        self.node.destroy_node()
        self.stranger.destroy_node()
        self.context.try_shutdown()
        self.other.try_shutdown()


def _meaning(data: bytes, padding: int = 0) -> bytes:
    """Return a serialised message without the changes by DDS: options of the encapsulation, and padding."""
    return data[:2] + data[4 : len(data) - padding]


def _example(kind: Any) -> Any:
    """Return a message with something in its lists."""
    message = kind()
    if kind is Footsteps:
        message.poses = [PoseStamped() for _ in range(4)]
    elif kind is Float64MultiArray:
        message.data = [0.0] * load_robot(ROBOT).nu
    elif kind is WrenchStamped:
        message.header.frame_id = "base_link"
    elif kind is Twist:
        message.linear.x = 0.1
    return message


class Callers:
    """Calls every service of every node the whole time, with valid and invalid requests, in its own thread."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rng = random.Random(world.rng.random())
        self.worst: dict[str, float] = collections.defaultdict(float)
        self.calls: collections.Counter[str] = collections.Counter()
        self.unanswered: list[str] = []
        node, self._stop = world.node, threading.Event()
        self._actions = []
        for name, kind, requests in (
            (topics.RESET, Trigger, [Trigger.Request()]),
            (topics.STEP, Trigger, [Trigger.Request()]),
            (topics.PAUSE, SetBool, [SetBool.Request(data=True), SetBool.Request(data=False)]),
        ):
            full = name.replace("~", "/sim_node")
            self._actions.append((full, node.create_client(kind, full), requests))
        for child in world.children:
            for kind, name, requests in (
                (ListParameters, "list_parameters", [ListParameters.Request(depth=n) for n in (0, 2**64 - 1)]),
                (GetParameters, "get_parameters", [GetParameters.Request(names=n) for n in ([], ["", "no"])]),
                (SetParameters, "set_parameters", list(_wrong_parameters())),
            ):
                full = f"/{child.name}/{name}"
                self._actions.append((full, node.create_client(kind, full), requests))
        self._thread = threading.Thread(target=self._run, daemon=True)

    def wait(self) -> None:
        """Wait until all services are there, and know of us: an answer to whom they do not know is lost."""
        for name, client, _ in self._actions:
            if not client.wait_for_service(timeout_sec=60.0):
                self.unanswered.append(f"{name}: not there")
        time.sleep(3.0)

    def _run(self) -> None:
        while not self._stop.is_set():
            name, client, requests = self._rng.choice(self._actions)
            self.call(name, client, self._rng.choice(requests))
            if name.endswith("pause"):
                # Time goes on in any case.
                self.call(name, client, SetBool.Request(data=False))
            self._stop.wait(0.02)

    def call(self, name: str, client: Any, request: Any) -> Any:
        """Call a service, note how long it took, and return its answer."""
        begin, done = time.monotonic(), threading.Event()
        future = client.call_async(request)
        future.add_done_callback(lambda _: done.set())
        if not done.wait(15.0):
            self.unanswered.append(f"{name} after {15.0} s")
            return None
        self.calls[name] += 1
        self.worst[name] = max(self.worst[name], time.monotonic() - begin)
        return future.result()

    def start(self) -> None:
        """Begin to call."""
        self._thread.start()

    def stop(self) -> None:
        """Stop calling."""
        self._stop.set()
        self._thread.join()


def _wrong_parameters() -> Iterator[SetParameters.Request]:
    """Yield parameters that no node has, or that have values that none takes."""
    values = [ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=x) for x in (math.nan, -math.inf, -1.0)]
    values += [
        ParameterValue(type=ParameterType.PARAMETER_STRING, string_value="x" * 10_000),
        ParameterValue(type=ParameterType.PARAMETER_NOT_SET),
    ]
    for name in ("push_timeout", "timeout_mode", "timeout_damping", "robot", "", "no such thing"):
        for value in values:
            yield SetParameters.Request(parameters=[Parameter(name=name, value=value)])


@contextmanager
def silent() -> Iterator[None]:
    """Suppress the messages of the middleware about unreadable data."""
    with _SILENCE:
        before, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        try:
            yield
        finally:
            os.dup2(before, 2)
            os.close(before)
            os.close(nowhere)


def judge(data: bytes, nu: int) -> tuple[str, np.ndarray]:
    """Return the name under which an invalid command is counted, or none if it is valid; and its torques.

    rclpy reads the command, not the code under test.
    """
    try:
        with silent():
            values = np.array(deserialize_message(data, Float64MultiArray).data)
    except Exception:
        return "unreadable", np.zeros(0)
    if len(values) != nu:
        return "size", values
    return "" if np.isfinite(values).all() else "not_finite", values


def count_while_paused(world: World, callers: Callers, n: int, pace: float) -> dict[str, Any]:
    """Send invalid commands to a paused simulation; return the sent and the counted ones."""
    nu, rng = load_robot(ROBOT).nu, world.rng
    pause = next(action for action in callers._actions if action[0].endswith("pause"))
    callers.call(pause[0], pause[1], SetBool.Request(data=True))
    world.until(lambda: world.statistics().get("state") == "paused", "the pause")
    # Rewritten once a second.
    time.sleep(2.5)
    before = world.statistics()
    # To this node alone: in depth one a controller's own command may come between.
    name = topics.COMMANDS.name
    out = world.node.create_publisher(Float64MultiArray, name, _DEEP)
    world.until(lambda: out.get_subscription_count() >= 2, "listeners of commands")
    time.sleep(0.5)
    good = bytes(serialize_message(Float64MultiArray(data=[0.1] * nu)))
    sent: collections.Counter[str] = collections.Counter()
    begin = time.monotonic()
    while sent.total() < n:
        kind, data = hostile.make(good, Float64MultiArray, rng)
        fault, _ = judge(data, nu)
        if not fault:
            continue
        out.publish(data)
        world.note(name, kind, data)
        sent[fault] += 1
        time.sleep(max(0.0, begin + sent.total() / pace - time.monotonic()))
    time.sleep(2.5)
    after = world.statistics()
    old, new = (x.get("commands_dropped_by_kind", {}) for x in (before, after))
    counted = {kind: new.get(kind, 0) - old.get(kind, 0) for kind in sorted({*old, *new})}
    callers.call(pause[0], pause[1], SetBool.Request(data=False))
    return {
        "sent": dict(sorted(sent.items())),
        "counted": {kind: count for kind, count in counted.items() if count},
        "not_taken": sent.total() - sum(counted.values()),
        "taken_as_sound": after.get("commands_received", 0) - before.get("commands_received", 0),
    }


def attack(world: World, n: int, pace: float, bar: Any) -> None:
    """Send ``n`` hostile messages to all topics, in turn and at random."""
    rng, pairs = world.rng, list(world.targets())
    kinds = {name: message_class(row.msgtype) for name, row in pairs}
    # Each publisher offers the QoS of the topic table.
    out = {
        name: world.node.create_publisher(kinds[name], name, profile(replace(row.offered, depth=100)))
        for name, row in pairs
    }
    # Another type on the same name: DDS must keep them apart, and a graph that is looked at shows both.
    wrong = [world.stranger.create_publisher(Float32, name, _DEEP) for name in kinds]
    time.sleep(1.0)
    acted_on = [row.of("left") for row in TOPICS.values() if row.requested is not None]
    begin, last = time.monotonic(), time.monotonic()
    for i in range(n):
        name = rng.choice(acted_on if rng.random() < 0.5 else list(kinds))
        if rng.random() < 0.01:
            rng.choice(wrong).publish(Float32(data=1.0))
            world.counts["(another type)"]["wrong_type"] += 1
        else:
            kind, data = hostile.make(world.good[name], kinds[name], rng)
            try:
                out[name].publish(data)
            except RCLError:
                # Too large for the middleware, or its queue is full: it never left.
                world.counts["(not sent: the middleware refused)"][kind] += 1
            else:
                world.note(name, kind, data)
        bar.update()
        now = time.monotonic()
        begin = max(begin, now - i / pace - 0.05)  # late messages are not sent in a burst
        if begin + i / pace > now:
            time.sleep(begin + i / pace - now)
        if now - last > 1.0:
            last = now
            dead = [child.name for child in world.children if child.poll() is not None]
            if dead:
                for name in dead:
                    bar.write("\n".join((f"{name} has ended:", *world.lines[name][-40:])))
                break


def judge_bag(bag: Path, world: World) -> dict[str, Any]:
    """Compare the commands that sim_node applied with all commands in the bag; return the result."""
    robot = load_robot(ROBOT)
    nu, limit = robot.nu, robot.effort_limit
    allowed = {np.zeros(nu).tobytes()}
    # Those of ours that a bag may lack: a writer that has a hundred waiting for the recorder drops the oldest.
    for data in world.commands:
        fault, tau = judge(data, nu)
        if not fault:
            allowed.add((np.clip(tau, -limit, limit) + 0.0).tobytes())
    applied: collections.Counter[bytes] = collections.Counter()
    keys = ("commands", "unsound", "applied", "applied_unknown", "beyond_limits", "not_finite", "states_not_finite")
    found: dict[str, Any] = {**dict.fromkeys(keys, 0), "foreign": 0}
    examples: list[str] = []
    reader = Bag(bag)
    for block in reader.blocks():
        for message in block[topics.COMMANDS.name].messages() if topics.COMMANDS.name in block else ():
            found["commands"] += 1
            fault, tau = judge(bytes(message.data), nu)
            if fault:
                found["unsound"] += 1
            else:
                allowed.add((np.clip(tau, -limit, limit) + 0.0).tobytes())
        for name in (topics.APPLIED.name, topics.JOINT_STATES.name):
            for message in block[name].messages() if name in block else ():
                data = bytes(message.data)
                if world.is_ours(name, data):
                    continue
                try:
                    with silent():
                        state = deserialize_message(data, JointState)
                except Exception:
                    found["foreign"] += 1
                    examples.append(f"{name} {len(data)} bytes {data[:60].hex()}")
                    continue
                if name == topics.JOINT_STATES.name:
                    found["states_not_finite"] += not np.isfinite([*state.position, *state.velocity]).all()
                    continue
                tau = np.array(state.effort)
                found["applied"] += 1
                found["not_finite"] += not np.isfinite(tau).all()
                found["beyond_limits"] += bool((np.abs(tau) > limit).any())
                applied[(tau + 0.0).tobytes()] += 1
    found["applied_unknown"] = sum(count for tau, count in applied.items() if tau not in allowed)
    found["bag"] = reader.recovered or "whole"
    found["examples"] = examples[:5]
    return found


@contextmanager
def world_of(clock: str, args: argparse.Namespace) -> Iterator[World]:
    """Start the nodes, and end them in any case."""
    with tempfile.TemporaryDirectory(prefix="bipedsim-campaign-") as folder:
        world = World(clock, Path(folder), args.domain, args.seed)
        try:
            yield world
        finally:
            world.close()


def run(clock: str, n: int, counted: int, args: argparse.Namespace, bar: Any) -> dict[str, Any]:
    """Return the results with one clock."""
    with world_of(clock, args) as world:
        world.until(lambda: world.statistics().get("ticks", 0) > 100, "the start of the robot")
        world.listen()
        callers = Callers(world)
        callers.wait()
        paused = {}
        if counted:
            paused = count_while_paused(world, callers, counted, min(args.pace, 400.0))
            bar.update(counted)
        callers.start()
        attack(world, n, args.pace, bar)
        time.sleep(2.0)
        callers.stop()
        alive = [child.name for child in world.children if child.poll() is None]
        seen = {name: dict(values) for name, values in world.diagnostics.items()}
        codes = world.end()
        statistics = world.statistics()
        text = "\n".join(line for lines in world.lines.values() for line in lines)
        answer = {
            "clock": clock,
            "sent": {name: dict(sorted(kinds.items())) for name, kinds in sorted(world.counts.items())},
            "paused": paused,
            "ended_early": sorted({child.name for child in world.children} - set(alive)),
            "exit_codes": codes,
            "tracebacks": text.count("Traceback (most recent call last)"),
            "not_served": [line for line in text.splitlines() if "was not served" in line][:20],
            "sim_node": {key: statistics.get(key) for key in _KEPT},
            "controller_node": {k: v for k, v in seen.get("bipedsim: controller", {}).items() if "update_us" not in k},
            "recorder_node": seen.get("recorder", {}),
            "service_worst_s": {name: round(worst, 4) for name, worst in sorted(callers.worst.items())},
            "service_calls": callers.calls.total(),
            "services_unanswered": callers.unanswered,
            "applied": judge_bag(world.folder / "run" / "bag", world),
            "lines_printed": {name: len(lines) for name, lines in world.lines.items()},
            "last_lines": {name: lines[-8:] for name, lines in world.lines.items()},
        }
    answer["faults"] = list(faults_of(answer))
    return answer


_KEPT = (
    *("state", "ticks", "commands_received", "commands_clipped", "commands_dropped_by_kind", "missed_commands"),
    *("pushes_dropped_by_kind", "error"),
)


def faults_of(answer: dict[str, Any]) -> Iterator[str]:
    """Yield all errors."""
    if answer["ended_early"]:
        yield f"ended by hostile messages: {', '.join(answer['ended_early'])}"
    for name, code in answer["exit_codes"].items():
        if code:
            yield f"{name} ended with {code}"
    if answer["tracebacks"]:
        yield f"{answer['tracebacks']} tracebacks"
    yield from answer["not_served"]
    applied = answer["applied"]
    for key in ("applied_unknown", "beyond_limits", "not_finite", "states_not_finite", "foreign"):
        if applied[key]:
            yield f"{applied[key]} rows of what was applied: {key}"
    if applied["bag"] != "whole":
        yield f"the bag: {applied['bag']}"
    paused = answer["paused"]
    # Of some, rclpy and we stumble over different ends; and a queue of one may lose one to the next.
    if paused and (paused["not_taken"] > 1e-3 * sum(paused["sent"].values()) or paused["taken_as_sound"]):
        yield f"counted while paused: {paused}"
    for name, worst in answer["service_worst_s"].items():
        if worst >= SERVICE_LIMIT_S:
            yield f"{name} answered after {worst:.2f} s"
    for name in answer["services_unanswered"]:
        yield f"no answer of {name}"


def main(args: argparse.Namespace) -> int:
    """Run this part; return 1 if anything was not as it should be."""
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    os.environ["ROS_DOMAIN_ID"] = str(args.domain)
    n = min(args.messages, 3000) if args.quick else args.messages
    counted, stepped = round(COUNTED * n), round(LOCK_STEP * n)
    with tqdm(total=n, unit="message") as bar:
        answers = [
            run("real_time", n - counted - stepped, counted, args, bar),
            run("lock_step", stepped, 0, args, bar),
        ]
    figures = {**header(args), "runs": answers}
    keep(args.output, figures, _text(figures))
    return int(any(answer["faults"] for answer in answers))


def _text(figures: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    lines = ["# Hostile messages\n", f"{figures['date']}, {figures['machine']}, {figures['arguments']}\n"]
    for answer in figures["runs"]:
        kinds: collections.Counter[str] = collections.Counter()
        for by_kind in answer["sent"].values():
            kinds.update(by_kind)
        lines.append(f"## {answer['clock']}: {kinds.total()} messages on {len(answer['sent'])} topics\n")
        lines.append(table([{"kind": kind, "sent": count} for kind, count in sorted(kinds.items())]))
        if answer["paused"]:
            lines.append(f"Paused, unsound commands alone: {answer['paused']}\n")
        for key in ("applied", "sim_node", "controller_node", "recorder_node", "exit_codes", "lines_printed"):
            lines.append(f"- {key}: {answer[key]}")
        worst = max(answer["service_worst_s"].items(), key=lambda item: item[1])
        lines.append(f"- services: {answer['service_calls']} calls, the slowest {worst[0]} with {worst[1]:.3f} s\n")
        lines.append("Not as it should be:\n")
        lines += [f"- {fault}" for fault in answer["faults"]] or ["- nothing"]
        lines.append("")
    return "\n".join(lines)
