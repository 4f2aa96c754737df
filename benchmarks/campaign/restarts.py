"""Each node of a running robot is ended, killed or stopped, and started again; times until data are measured.

A row of the table is one trial: simulator, controller, recorder and a plain rclpy reader run. Then something happens to
one of them, and the others must go on.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import qos_profile_sensor_data
from rclpy.signals import SignalHandlerOptions
from report import header, keep, table
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from tqdm import tqdm

from bipedsim.recording.bag import Bag
from bipedsim_ros.bringup import environment
from bipedsim_ros.bringup.processes import ros_arguments

CLOCKS = ("real_time", "lock_step")
SIM, CONTROLLER, RECORDER, READER = "sim_node", "controller_node", "recorder_node", "echo"
READY = {SIM: ", contact ", CONTROLLER: " joints) at ", RECORDER: "recording ", READER: "ready"}
"""Text of the log of each process from which on it takes part."""
STOP_S = 3.0
"""Time for which a process is stopped, as by a breakpoint [s]."""
RATE = 250.0
START_S, END_S = 180.0, 30.0
"""Time in which everything must run [s], since a first start compiles; time in which a process must end [s]."""
SETTLE_S = 2.0
"""Time before and after each trial in which everything runs [s]."""
DATA_S, WAIT_S = 3.0, 2.0
"""Longest time until data, and longest time for which others wait [s]."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this part."""
    parser.add_argument("--robot", default="biped14", help="robot (default: %(default)s)")
    parser.add_argument("--domain", type=int, default=88, metavar="ID", help="ROS_DOMAIN_ID (default: %(default)s)")
    parser.add_argument("--only", default="", metavar="TEXT", help="trials whose name holds this")


class Monitor:
    """Arrival times of the joint states and the commands."""

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

    def silence(self, since: float) -> float:
        """Return the longest time without joint states since then [s]."""
        times = [since, *(t for t in self.states.copy() if t > since), time.time()]
        return float(np.diff(times).max())


def shared_memory() -> set[str]:
    """Return the files of Fast DDS in shared memory."""
    return {path.name for path in Path("/dev/shm").glob("*fastrtps_*")}


def first_after(times: list[float], since: float) -> float | None:
    """Return the first of some increasing times after another one."""
    return next((t for t in times.copy() if t > since), None)


def waited(get: Callable[[], float | None], limit: float) -> float | None:
    """Return the first value that is not None; None after ``limit`` [s]."""
    end = time.time() + limit
    while time.time() < end:
        value = get()
        if value is not None:
            return value
        time.sleep(0.005)
    return None


@dataclass
class Running:
    """A process and its log."""

    process: subprocess.Popen[bytes]
    log: Path
    begun: float

    def text(self) -> str:
        """Return the log."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def ready(self, name: str) -> float | None:
        """Return the time from which on the process takes part, or None; it is now, so call this often."""
        return time.time() if READY[name] in self.text() else None


class Trial:
    """One trial in a folder of its own."""

    def __init__(self, folder: Path, args: argparse.Namespace, clock: str, monitor: Monitor) -> None:
        self._folder, self._monitor, self._clock = folder, monitor, clock
        self._number = 0
        self._before = shared_memory()
        common = {"robot": args.robot, "rate": RATE}
        self._parameters: dict[str, dict[str, Any]] = {
            RECORDER: {"robot": args.robot, "priority": 25 if clock == "real_time" else 0},
            SIM: {
                **common,
                "clock": clock,
                "rate_check": "warn",
                "wait_for_recorder": True,
                "timeout_mode": "stiff",
                "timeout_stiffness": 100.0,
                "stats_file": str(folder / "stats.json"),
            },
            CONTROLLER: {**common, "controller": "posture", "lock_step": clock == "lock_step"},
        }
        self.running: dict[str, Running] = {}

    def start(self, name: str) -> float:
        """Start a process; return the time."""
        self._number += 1
        command = [sys.executable, str(Path(__file__).with_name("echo.py"))]
        if name != READER:
            parameters = dict(self._parameters[name])
            if name == RECORDER:
                parameters["output"] = str(self._bag)
            command = [sys.executable, "-m", "bipedsim_ros.nodes.start", name, *ros_arguments(parameters=parameters)]
        log = self._folder / f"{self._number}_{name}.txt"
        begun = time.time()
        with open(os.devnull, "wb") if name == READER else log.open("wb") as out, log.open("ab") as err:
            env = environment("localhost")
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env)
        self.running[name] = Running(process, log, begun)
        return begun

    @property
    def _bag(self) -> Path:
        """Folder of the bag of the recorder that is started last."""
        return self._folder / f"bag{sum('recorder' in path.name for path in self._folder.glob('*.txt'))}"

    def end(self, name: str) -> str:
        """End a process as Ctrl-C does; return what was wrong."""
        process = self.running.pop(name).process
        if process.poll() is not None:
            return f"{name} had ended with code {process.returncode}"
        process.send_signal(signal.SIGINT)
        try:
            code = process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return f"{name} had not ended {END_S:g} s after SIGINT"
        return f"{name} ended with code {code}" if code else ""

    def _kill(self, name: str) -> None:
        process = self.running.pop(name).process
        process.kill()
        process.wait()

    def act(self, name: str, how: str) -> tuple[float, str]:
        """Do something to a process; return the time from which on it must get data, and what was wrong."""
        process, fault = self.running[name].process, ""
        if "stopped" in how:
            process.send_signal(signal.SIGSTOP)
            time.sleep(STOP_S)
        if "continued" in how:
            process.send_signal(signal.SIGCONT)
            if "killed" not in how:
                return time.time(), ""
            time.sleep(0.2)
        if "killed" in how:
            self._kill(name)
        else:
            fault = self.end(name)
        return self.start(name), fault

    def data(self, name: str, since: float) -> float | None:
        """Return when a process got its first data after this time."""
        if name in (SIM, CONTROLLER):
            return waited(lambda: first_after(self._monitor.commands, since), 60.0)
        if name == READER:
            return waited(lambda: first_after(self._times_of_reader(), since), 60.0)
        time.sleep(8.0)
        # A bag without its index is read up to its last chunk, and the recorder writes one each second.
        return first_after(self._recorded(), since)

    def _times_of_reader(self) -> list[float]:
        lines = self.running[READER].text().splitlines()
        return [float(line.split()[1]) for line in lines if line.startswith("data ") and len(line.split()) == 2]

    def _recorded(self) -> list[float]:
        newest = max(self._folder.glob("bag*"))
        blocks = Bag(newest).blocks()
        return [1e-9 * t for block in blocks if "/joint_states" in block for t in block["/joint_states"].log_time]

    @contextmanager
    def up(self) -> Iterator[None]:
        """Start everything, the recorder first, and kill what remains."""
        try:
            for name in (RECORDER, SIM, CONTROLLER, READER):
                self.start(name)
                if waited(lambda name=name: self.running[name].ready(name), START_S) is None:
                    raise RuntimeError(f"{name} is not ready after {START_S:g} s:\n{self.running[name].text()}")
            if waited(lambda: first_after(self._monitor.commands, self.running[READER].begun), START_S) is None:
                raise RuntimeError("no commands come")
            yield
        finally:
            for each in self.running.values():
                with suppress(ProcessLookupError):
                    each.process.kill()
                each.process.wait()

    def measure(self, name: str, how: str) -> dict[str, Any]:
        """Run the trial; return its row."""
        time.sleep(SETTLE_S)
        begin = time.time()
        since, fault = self.act(name, how)
        ready = since if how == "stopped, continued" else waited(lambda: self.running[name].ready(name), START_S)
        data = self.data(name, since)
        time.sleep(SETTLE_S)
        silence = None if name == SIM else self._monitor.silence(begin)
        faults = [fault, *(self.end(each) for each in (READER, SIM, CONTROLLER, RECORDER) if each in self.running)]
        left = shared_memory() - self._before
        row: dict[str, Any] = {
            "clock": self._clock,
            "process": name,
            "what": how,
            "start_s": None if ready is None else ready - since,
            "data_s": None if ready is None or data is None else max(0.0, data - ready),
            "others_silent_s": silence,
            "reported_gap_s": self._reported(),
            "left_files": len(left),
        }
        if row["data_s"] is None:
            faults.append("no data came")
        elif row["data_s"] > DATA_S:
            faults.append(f"data after {row['data_s']:.1f} s")
        if silence is not None and silence > WAIT_S:
            faults.append(f"no joint states for {silence:.1f} s")
        if name == CONTROLLER and not row["reported_gap_s"]:
            faults.append("the statistics report no gap")
        return {**row, "faults": [each for each in faults if each]}

    def _reported(self) -> float | None:
        """Return the longest gap in the commands that sim_node reports [s]."""
        try:
            silences = json.loads((self._folder / "stats.json").read_text())["command_silences_wall_s"]
        except (OSError, ValueError, KeyError):
            return None
        return max(silences, default=None)


WHAT = (
    "ended, started",
    "killed, started",
    "stopped, continued",
    "stopped, continued, killed, started",
    "stopped, killed, started",
)
"""What happens to a process."""


def main(args: argparse.Namespace) -> int:
    """Run this part; return 1 if anything was not as it should be."""
    os.environ |= {"ROS_DOMAIN_ID": str(args.domain), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ |= environment("localhost")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    trials = [(clock, name, how) for clock in CLOCKS for name in (CONTROLLER, SIM, RECORDER, READER) for how in WHAT]
    trials = [each for each in trials if args.only in " ".join(each)][: 2 if args.quick else None]
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    monitor, rows = Monitor(), []
    for clock, name, how in tqdm(trials, unit="trial"):
        with tempfile.TemporaryDirectory(prefix="bipedsim-campaign-") as folder:
            trial = Trial(Path(folder), args, clock, monitor)
            with trial.up():
                rows.append(trial.measure(name, how))
        for fault in rows[-1]["faults"]:
            tqdm.write(f"{clock}, {name}, {how}: {fault}")
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
        "others_silent_s": "longest time without joint states [s]",
        "reported_gap_s": "longest gap in the commands, as reported [s]",
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
