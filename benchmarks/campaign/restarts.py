"""Each node of a running robot is ended, killed or stopped, and started again; times until data are measured.

A row of the table is one trial: simulator, controller, recorder and a plain rclpy reader run. Then something happens to
one of them, and the others must go on.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from lives import CONTROLLER, ECHO, RECORDER, SIM, Life
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import qos_profile_sensor_data
from rclpy.signals import SignalHandlerOptions
from report import header, keep, table
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from tqdm import tqdm

from bipedsim.errors import BipedSimError
from bipedsim.recording.bag import Bag
from bipedsim_ros.bringup import environment

CLOCKS = ("real_time", "lock_step")
ENDED, STOPPED, CONTINUED, KILLED, STARTED = "ended", "stopped", "continued", "killed", "started"
WHAT = (
    (ENDED, STARTED),
    (KILLED, STARTED),
    (STOPPED, CONTINUED),
    (STOPPED, CONTINUED, KILLED, STARTED),
    (STOPPED, KILLED, STARTED),
)
"""What happens to a process, in this order."""
STOP_S = 3.0
"""Time for which a process is stopped, as by a breakpoint [s]."""
RATE = 250.0
START_S, WAIT_S = 180.0, 30.0
"""Time in which a process must take part, since a first start compiles, and in which it must then get data [s]."""
SETTLE_S = 2.0
"""Time before and after each trial in which everything runs [s]."""
DATA_S, SILENT_S = 3.0, 2.0
"""Longest time until data, and longest time without joint states [s]."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this part."""
    parser.add_argument("--robot", default="biped14", help="robot (default: %(default)s)")
    parser.add_argument("--domain", type=int, default=88, metavar="ID", help="ROS_DOMAIN_ID (default: %(default)s)")
    parser.add_argument("--only", default="", metavar="TEXT", help="trials whose name contains this")


def first_after(times: Sequence[float], since: float) -> float | None:
    """Return the first of some increasing times after another one."""
    return next((t for t in list(times) if t > since), None)


def longest_silence(times: Sequence[float], since: float, until: float) -> float:
    """Return the longest time without one of some increasing times, between two others [s]."""
    return float(np.diff([since, *(t for t in list(times) if since < t < until), until]).max())


def shared_memory() -> set[str]:
    """Return the files of Fast DDS in shared memory."""
    return {path.name for path in Path("/dev/shm").glob("*fastrtps_*")}


def faults_of(row: dict[str, Any]) -> list[str]:
    """Return what is not as it should be in a row of the table."""
    faults = []
    if row["data_s"] is None:
        faults.append("no data came")
    elif row["data_s"] > DATA_S:
        faults.append(f"data after {row['data_s']:.1f} s")
    if row["silent_s"] is not None and row["silent_s"] > SILENT_S:
        faults.append(f"no joint states for {row['silent_s']:.1f} s")
    if row["process"] == CONTROLLER and not row["gap_s"]:
        faults.append("the simulator reports no gap in the commands")
    return faults


class Monitor:
    """Arrival times of the joint states and the commands, from the begin of a trial on."""

    def __init__(self) -> None:
        self.states: list[float] = []
        self.commands: list[float] = []
        node = rclpy.create_node("campaign")
        for topic, kind, times in (
            ("joint_states", JointState, self.states),
            ("effort_controller/commands", Float64MultiArray, self.commands),
        ):
            self._watch(node, topic, kind, times)
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        threading.Thread(target=executor.spin, daemon=True).start()

    @staticmethod
    def _watch(node: Any, topic: str, kind: Any, times: list[float]) -> None:
        node.create_subscription(kind, topic, lambda _: times.append(time.time()), qos_profile_sensor_data, raw=True)

    def clear(self) -> None:
        """Forget the last trial."""
        self.states.clear()
        self.commands.clear()


class Trial:
    """One trial in a folder of its own."""

    def __init__(self, folder: Path, args: argparse.Namespace, clock: str, monitor: Monitor) -> None:
        self._folder, self._monitor, self._clock = folder, monitor, clock
        self._before = shared_memory()
        self._bags = 0
        self._stats = folder / "stats.json"
        common = {"robot": args.robot, "rate": RATE}
        self._parameters: dict[str, dict[str, Any]] = {
            RECORDER: {"robot": args.robot, "priority": 25 if clock == "real_time" else 0},
            SIM: {
                **common,
                "clock": clock,
                "rate_check": "warn",
                "wait_for_recorder": True,
                # The robot stands on while its controller restarts.
                "timeout_mode": "stiff",
                "timeout_stiffness": 100.0,
                "stats_file": str(self._stats),
            },
            CONTROLLER: {**common, "controller": "posture", "lock_step": clock == "lock_step"},
            ECHO: {},
        }
        self._lives: list[Life] = []
        self._running: dict[str, Life] = {}
        self._faults: list[str] = []

    def _start(self, name: str) -> None:
        parameters = dict(self._parameters[name])
        if name == RECORDER:
            self._bags += 1
            parameters["output"] = str(self._bag)
        log = self._folder / f"{len(self._lives)}_{name}.txt"
        self._running[name] = Life.start(name, parameters, log)
        self._lives.append(self._running[name])

    @property
    def _bag(self) -> Path:
        """Bag of the recorder that was started last."""
        return self._folder / f"bag{self._bags}"

    def _end(self, name: str) -> None:
        life = self._running.pop(name)
        life.end()
        if life.fault:
            self._faults.append(f"{name}: {life.fault}")

    def _waited(self, name: str, get: Callable[[], float | None], limit: float) -> float | None:
        """Return the first value that is not None; None after ``limit`` [s] or if the process has ended."""
        end = time.time() + limit
        while time.time() < end and self._running[name].process.poll() is None:
            value = get()
            if value is not None:
                return value
            time.sleep(0.005)
        return None

    def _ready(self, name: str) -> float | None:
        """Wait until a process takes part; return when."""
        return self._waited(name, lambda: time.time() if self._running[name].is_ready else None, START_S)

    def _data(self, name: str, since: float) -> float | None:
        """Wait until a process gets data; return when."""
        if name == RECORDER:
            # A bag without its index is read up to its last chunk, and the recorder writes one each second.
            time.sleep(DATA_S + SETTLE_S)
            return first_after(self._recorded(), since)
        times = {ECHO: self._times_of_echo}.get(name, lambda: self._monitor.commands)
        return self._waited(name, lambda: first_after(times(), since), WAIT_S)

    def _times_of_echo(self) -> list[float]:
        return [float(t) for t in re.findall(r"^data ([\d.]+)\n", self._running[ECHO].text(), re.M)]

    def _recorded(self) -> list[float]:
        try:
            blocks = [block for block in Bag(self._bag).blocks() if "/joint_states" in block]
        except BipedSimError as error:
            self._faults.append(f"the bag cannot be read: {error}")
            return []
        return [1e-9 * t for block in blocks for t in block["/joint_states"].log_time]

    def _act(self, name: str, what: Sequence[str]) -> None:
        """Do something to a process."""
        process = self._running[name].process
        for action in what:
            if action == STOPPED:
                process.send_signal(signal.SIGSTOP)
                time.sleep(STOP_S)
            elif action == CONTINUED:
                process.send_signal(signal.SIGCONT)
            elif action == ENDED:
                self._end(name)
            elif action == KILLED:
                process.kill()
                process.wait()
            else:
                self._start(name)

    @contextmanager
    def up(self) -> Iterator[None]:
        """Start everything, the recorder first, and kill what remains.

        Raises:
            RuntimeError: A process does not take part; the message contains its log.
        """
        try:
            for name in self._parameters:
                self._start(name)
                if self._ready(name) is None:
                    raise RuntimeError(f"{name} did not start:\n{self._running[name].text()}")
            if self._data(CONTROLLER, 0.0) is None:
                raise RuntimeError("no commands come")
            yield
        finally:
            for life in self._running.values():
                life.process.kill()
                life.process.wait()

    def measure(self, name: str, what: Sequence[str]) -> dict[str, Any]:
        """Run the trial; return its row."""
        time.sleep(SETTLE_S)
        begin = time.time()
        self._act(name, what)
        since = time.time()
        ready = self._ready(name) if STARTED in what else since
        data = self._data(name, since)
        time.sleep(SETTLE_S)
        silent = None if name == SIM else longest_silence(self._monitor.states, begin, time.time())
        for each in (ECHO, SIM, CONTROLLER, RECORDER):
            self._end(each)
        row: dict[str, Any] = {
            "clock": self._clock,
            "process": name,
            "what": ", ".join(what),
            "start_s": ready - since if ready and STARTED in what else None,
            # Messages may come before the log says that the process takes part.
            "data_s": max(0.0, data - ready) if ready and data else None,
            "silent_s": silent,
            "gap_s": self._gap(),
            "left_files": len(shared_memory() - self._before),
        }
        return {**row, "faults": [*faults_of(row), *self._faults]}

    def _gap(self) -> float | None:
        """Return the longest gap in the commands that sim_node reports [s]."""
        try:
            silences = json.loads(self._stats.read_text())["command_silences_wall_s"]
        except (OSError, ValueError, KeyError):
            return None
        return max(silences, default=None)


def row_of(args: argparse.Namespace, clock: str, name: str, what: Sequence[str], monitor: Monitor) -> dict[str, Any]:
    """Run one trial; return its row, also if it fails."""
    monitor.clear()
    with tempfile.TemporaryDirectory(prefix="bipedsim-campaign-") as folder:
        trial = Trial(Path(folder), args, clock, monitor)
        try:
            with trial.up():
                return trial.measure(name, what)
        except RuntimeError as error:
            empty = dict.fromkeys(("start_s", "data_s", "silent_s", "gap_s", "left_files"))
            return {"clock": clock, "process": name, "what": ", ".join(what), **empty, "faults": [str(error)]}


def main(args: argparse.Namespace) -> int:
    """Run this part; return 1 if anything was not as it should be, and 2 if no trial has the name of ``--only``."""
    os.environ |= {"ROS_DOMAIN_ID": str(args.domain), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ |= environment("localhost")
    # A terminated campaign ends its nodes, as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    trials = [(clock, name, what) for clock in CLOCKS for name in (CONTROLLER, SIM, RECORDER, ECHO) for what in WHAT]
    trials = [each for each in trials if args.only in f"{each[0]} {each[1]} {', '.join(each[2])}"]
    if not trials:
        print(f"no trial has a name that contains {args.only!r}")
        return 2
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    monitor, rows = Monitor(), []
    for clock, name, what in tqdm(trials[: 2 if args.quick else None], unit="trial"):
        rows.append(row_of(args, clock, name, what, monitor))
        for fault in rows[-1]["faults"]:
            tqdm.write(f"{clock}, {name}, {', '.join(what)}: {fault}")
        if args.output is not None:
            args.output.write_text(json.dumps({**header(args), "rows": rows}, indent=1) + "\n", encoding="utf-8")
    figures = {**header(args), "load": os.getloadavg(), "rows": rows}
    keep(args.output, figures, _text(figures))
    return int(any(row["faults"] for row in rows))


def _text(figures: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    heads = {
        "clock": "clock",
        "process": "process",
        "what": "what happens",
        "start_s": "start of the process [s]",
        "data_s": "then until data [s]",
        "silent_s": "longest time without joint states [s]",
        "gap_s": "longest gap in the commands, as reported [s]",
        "left_files": "files left in shared memory",
    }
    rows = [{text: row[name] for name, text in heads.items()} for row in figures["rows"]]
    faults = [
        f"- {row['clock']}, {row['process']}, {row['what']}: {x}" for row in figures["rows"] for x in row["faults"]
    ]
    lines = [
        "# Nodes that are stopped, killed and started again\n",
        f"{figures['date']}, {figures['machine']}, {figures['arguments']}\n",
        f"A process is stopped for {STOP_S:g} s. Load at the end: {figures['load'][2]:.1f} (15 minutes).\n",
        table(rows),
        "Not as it should be:\n",
        *(faults or ["- nothing"]),
    ]
    return "\n".join(lines) + "\n"
