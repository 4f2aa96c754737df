"""One long run in real time: gains change once a second, nodes restart once a minute, and topics are echoed.

The recorder runs all the time. The other nodes restart in turn: mostly the controller and the echo, and the simulator
once in `--segment` minutes. The checks are of lost messages, of the growth of each process, and of the recorded
changes. Each segment between two starts of the simulator must repeat to the bit.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from lives import CONTROLLER, ECHO, RECORDER, SIM, Life
from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions
from report import header, keep, table
from tqdm import tqdm

from bipedsim.errors import BipedSimError, IncompleteWarning
from bipedsim.recording import load_recording, read_blocks
from bipedsim.runs import rerun
from bipedsim_ros.live import Answer, Remote
from bipedsim_ros.live.remote import LiveParameter

GROWTH_MB = 5.0
"""Largest growth of a settled process."""
FACTORS = (0.75, 1.25)
"""Range of a changed gain, as a multiple of its first value."""
SAMPLE_S, CHANGE_S = 5.0, 1.0
START_S = 120.0
"""Time in which the recorder must be ready [s]; a first start compiles."""
HEARD_S = 3.0
"""Longest time from the end of a controller's start to its first command [s]."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this part."""
    parser.add_argument("--minutes", type=float, default=60.0, metavar="M", help="length (default: %(default)s)")
    parser.add_argument(
        "--segment", type=int, default=10, metavar="M", help="minutes between starts of sim_node (default: %(default)s)"
    )
    parser.add_argument("--robot", default="biped14", help="robot (default: %(default)s)")
    parser.add_argument("--rate", type=float, default=500.0, metavar="HZ", help="rate (default: %(default)s)")
    parser.add_argument("--domain", type=int, default=88, metavar="ID", help="ROS_DOMAIN_ID (default: %(default)s)")
    parser.add_argument("--folder", type=Path, help="keep bag and logs in this new folder (default: temporary)")


class Plant:
    """The running processes, and all that have run.

    Args:
        folder: Folder for bag and logs.
        args: Options of the part.
    """

    def __init__(self, folder: Path, args: argparse.Namespace) -> None:
        self._folder = folder
        self._parameters: dict[str, dict[str, Any]] = {
            # As in a launch in real time.
            RECORDER: {"output": str(folder / "bag"), "robot": args.robot, "priority": 25},
            SIM: {
                "robot": args.robot,
                "rate": args.rate,
                "rate_check": "warn",
                "wait_for_recorder": True,
                "seed": args.seed,
                # The robot stands on while its controller restarts.
                "timeout_mode": "stiff",
                "timeout_stiffness": 100.0,
            },
            CONTROLLER: {"robot": args.robot, "controller": "posture", "rate": args.rate},
        }
        self.lives: list[Life] = []
        self.running: dict[str, Life] = {}

    def start(self, name: str) -> None:
        """Start a node, or the echo."""
        number = len(self.lives)
        parameters = dict(self._parameters.get(name, {}))
        if name == SIM:
            parameters["stats_file"] = str(self._folder / f"{number}_stats.json")
        self.running[name] = Life.start(name, parameters, self._folder / f"{number}_{name}.txt")
        self.lives.append(self.running[name])

    def stop(self, name: str) -> None:
        """End a node, or the echo."""
        self.running.pop(name).end()

    def restart(self, name: str) -> None:
        """End a node and start it again."""
        self.stop(name)
        self.start(name)

    def sample(self) -> None:
        """Store the memory of all processes."""
        for life in self.running.values():
            life.sample()

    def _wait_for_recorder(self) -> None:
        """Wait until the recorder records.

        Raises:
            RuntimeError: It has ended, or is not ready after :data:`START_S`; the message contains its log.
        """
        recorder = self.running[RECORDER]
        while not recorder.is_ready:
            code = recorder.process.poll()
            log = recorder.text()
            if code is not None:
                raise RuntimeError(f"{RECORDER} ended at its start with code {code}:\n{log}")
            if time.monotonic() - recorder.begun > START_S:
                raise RuntimeError(f"{RECORDER} is not ready after {START_S:g} s:\n{log}")
            time.sleep(0.1)

    @contextmanager
    def up(self) -> Iterator[None]:
        """Start everything, the recorder first, and end everything, the recorder last."""
        try:
            self.start(RECORDER)
            self._wait_for_recorder()
            for name in (SIM, CONTROLLER, ECHO):
                self.start(name)
            yield
        finally:
            for name in (ECHO, SIM, CONTROLLER, RECORDER):
                if name in self.running:
                    self.stop(name)


class Changer:
    """Changes one random gain at a time, as a slider of the page does.

    Args:
        node: Node that sends the requests.
        rng: Source of the choices.

    Attributes:
        accepted: Name and value of each change that the node has accepted.
        refused: Texts of the refusals.
    """

    def __init__(self, node: Any, rng: random.Random) -> None:
        self._remote = Remote(node, self._answered)
        self._rng = rng
        self._first: dict[str, float] = {}
        self._live: list[LiveParameter] = []
        self._asked: dict[str, tuple[str, float]] = {}
        self.accepted: list[tuple[str, float]] = []
        self.refused: list[str] = []

    def look(self) -> None:
        """Pass on answers."""
        self._remote.look()

    def change(self) -> None:
        """Change a gain of the controller if its node is there."""
        if not self._remote.read_live(self._take) or not self._live:
            return
        gain = self._rng.choice(self._live)
        first = self._first.setdefault(gain.name, gain.value)
        value = min(max(first * self._rng.uniform(*FACTORS), gain.low), gain.high)
        asked = f"{len(self._asked)} {gain.name}"
        self._asked[asked] = gain.name, value
        self._remote.change(asked, gain.name, value, of=CONTROLLER)

    def _take(self, parameters: list[LiveParameter]) -> None:
        self._live = parameters

    def _answered(self, answer: Answer) -> None:
        if answer.good:
            self.accepted.append(self._asked[answer.asked])
        else:
            self.refused.append(answer.text)


def schedule(minutes: float, segment: int) -> list[str]:
    """Return the process that restarts at the end of each minute but the last."""
    number = max(0, int(np.ceil(minutes)) - 1)
    return [SIM if k % segment == 0 else (CONTROLLER, ECHO)[k % 2] for k in range(1, number + 1)]


def live(args: argparse.Namespace, folder: Path) -> tuple[Plant, Changer]:
    """Run everything for the given time."""
    rng = random.Random(args.seed)
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = rclpy.create_node("campaign")
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    server = threading.Thread(target=executor.spin, daemon=True)
    server.start()
    changer, plant = Changer(node, rng), Plant(folder, args)
    restarts = schedule(args.minutes, args.segment)
    try:
        with plant.up(), tqdm(total=round(60 * args.minutes), unit="s", mininterval=10.0) as bar:
            begin = time.monotonic()
            due_change = due_sample = begin
            while (now := time.monotonic()) < begin + 60.0 * args.minutes:
                changer.look()
                if now >= due_change:
                    due_change += CHANGE_S
                    changer.change()
                if now >= due_sample:
                    due_sample += SAMPLE_S
                    plant.sample()
                if restarts and now >= begin + 60.0 * (len(schedule(args.minutes, args.segment)) - len(restarts) + 1):
                    plant.restart(restarts.pop(0))
                bar.update(int(now - begin) - bar.n)
                time.sleep(0.05)
    finally:
        executor.shutdown()
        node.destroy_node()
        rclpy.shutdown()
    return plant, changer


def judge_segment(bag: Path, number: int) -> dict[str, Any]:
    """Load a segment and repeat it; return its row of the report."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = load_recording(bag, number)
    faults = [str(one.message) for one in caught if issubclass(one.category, IncompleteWarning)]
    if not run.run:
        # Another robot in the domain, or a lost message.
        faults.append("the recording lacks the description of the run")
        return {"segment": number, "simulated_s": float(run.t[-1]), "ticks": None} | {
            "missed_at_start": None,
            "fell_at_s": None,
            "repeated": 0,
            "faults": faults,
            "changes": run.changes,
        }
    ticks = np.rint(run.t / run.run["control_dt"]).astype(int)
    # sim_node waits for the recorder, so that a segment has all ticks from 0 on.
    missed, gaps = int(ticks[0]), int(np.maximum(np.diff(ticks) - 1, 0).sum())
    if missed:
        faults.append(f"the first {missed} ticks are missing")
    if gaps:
        faults.append(f"{gaps} later ticks are missing")
    row: dict[str, Any] = {"segment": number, "simulated_s": float(run.t[-1]), "ticks": int(ticks[-1])}
    row["missed_at_start"] = missed
    row["fell_at_s"] = run.gave_up_at if np.isfinite(run.gave_up_at) else None
    try:
        done = rerun(run)
    except BipedSimError as error:
        return {**row, "repeated": 0, "faults": [*faults, f"cannot be repeated: {error}"], "changes": run.changes}
    if done.first is not None:
        faults.append(f"repeated, it differs: {done.first}")
    if len(done.simulated) != ticks[-1]:
        faults.append(f"{len(done.simulated)} of {ticks[-1]} ticks can be repeated: {'; '.join(done.notes)}")
    return {**row, "repeated": len(done.simulated), "faults": faults, "changes": run.changes}


def stamps(logs: Iterable[str], text: str) -> list[float]:
    """Return the sorted times [s] of all lines of the logs of nodes that contain a text."""
    return sorted(float(t) for log in logs for t in re.findall(rf"^\[\w+\] \[([\d.]+)\].*{re.escape(text)}", log, re.M))


def heard_after(controllers: Sequence[str], simulators: Sequence[str]) -> list[float]:
    """Return the time from the start of each restarted controller until its first command arrived [s].

    The time in which the process starts does not count, because it depends on what else the machine does. It is NaN
    for a controller that was never heard.

    Args:
        controllers: Logs of the controllers that took over from others, in their order.
        simulators: Logs of all simulators.
    """
    again = stamps(simulators, "commands again at")
    result = []
    for log in controllers:
        ready = min(stamps([log], " joints) at "), default=float("nan"))
        result.append(next((t - ready for t in again if t >= ready), float("nan")))
    return result


def judge_changes(accepted: list[tuple[str, float]], segments: list[dict[str, Any]]) -> tuple[int, list[str]]:
    """Return the number of accepted changes that the recording has, and the others in words."""
    # The recording names a parameter as the controller does, without the controller's name.
    changes = [change for segment in segments for change in segment["changes"] if change.of == "controller"]
    recorded = {(change.name, change.value) for change in changes}
    found = [(name.partition(".")[2] or name, value) in recorded for name, value in accepted]
    lost = [f"{name} = {value!r}" for (name, value), there in zip(accepted, found, strict=True) if not there]
    return sum(found), lost


def main(args: argparse.Namespace) -> int:
    """Run this part; return 1 if anything was not as it should be."""
    if args.quick:
        args.minutes, args.segment = 3.0, 2
    os.environ |= {"ROS_DOMAIN_ID": str(args.domain), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    os.environ["OMP_NUM_THREADS"] = "1"
    # A terminated campaign ends its nodes, as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="bipedsim-campaign-") as scratch:
        folder = args.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        plant, changer = live(args, folder)
        figures = {**header(args), "load": os.getloadavg(), **judge(plant, changer, folder)}
    keep(args.output, figures, _text(figures))
    return int(bool(figures["faults"]))


def judge(plant: Plant, changer: Changer, folder: Path) -> dict[str, Any]:
    """Return the results."""
    bag = folder / "bag"
    faults = [f"{life.name}: {life.fault}" for life in plant.lives if life.fault]
    counts = dict(re.findall(r"(\w+)=(\d+)", plant.lives[0].text().rpartition("recorded into")[2]))
    faults += [f"recorder: {name} = {counts.get(name)}" for name in ("dropped", "lost") if counts.get(name) != "0"]
    numbers = sorted({number for number, _ in read_blocks(bag, ("joint_position",))})
    segments = [judge_segment(bag, number) for number in tqdm(numbers, unit="replay")]
    starts = sum(life.name == SIM for life in plant.lives)
    if len(segments) != starts:
        faults.append(f"the bag has {len(segments)} segments of {starts} starts of {SIM}")
    faults += [f"segment {segment['segment']}: {fault}" for segment in segments for fault in segment["faults"]]
    found, lost = judge_changes(changer.accepted, segments)
    faults += [f"change not recorded: {text}" for text in lost]
    lives = [
        {
            "process": life.name,
            "age_s": round(life.sizes[-1][0], 1) if life.sizes else 0.0,
            "private_mb": life.sizes[-1][1] if life.sizes else None,
            "growth_mb": life.growth(1),
            "resident_growth_mb": life.growth(2),
            "exit_code": life.code,
        }
        for life in plant.lives
    ]
    faults += [
        f"{life['process']} grew by {life['growth_mb']:.1f} MB in {life['age_s']:g} s"
        for life in lives
        if (life["growth_mb"] or 0.0) > GROWTH_MB
    ]
    statistics = [
        json.loads(path.read_text())
        for number, life in enumerate(plant.lives)
        if life.name == SIM and (path := folder / f"{number}_stats.json").exists()
    ]
    faults += [f"{SIM}: {warning}" for counted in statistics for warning in counted["warnings"] or ()]
    logs = {name: [life.text() for life in plant.lives if life.name == name] for name in (CONTROLLER, SIM)}
    heard = heard_after(logs[CONTROLLER][1:], logs[SIM])
    faults += [f"{CONTROLLER} was heard {seconds:.1f} s after its start" for seconds in heard if not seconds <= HEARD_S]
    for segment in segments:
        segment["changes"] = len(segment["changes"])
    return {
        "counts": counts,
        "accepted": len(changer.accepted),
        "refused": changer.refused,
        "recorded_changes": found,
        "lives": lives,
        "segments": segments,
        "statistics": statistics,
        "heard_s": heard,
        "faults": faults,
    }


def _text(figures: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    grouped = []
    for name in dict.fromkeys(life["process"] for life in figures["lives"]):
        mine = [life for life in figures["lives"] if life["process"] == name]
        grown = [life["growth_mb"] for life in mine if life["growth_mb"] is not None]
        resident = [life["resident_growth_mb"] for life in mine if life["resident_growth_mb"] is not None]
        grouped.append(
            {
                "process": name,
                "starts": len(mine),
                "longest life [s]": max(life["age_s"] for life in mine),
                "private memory [MB]": max((life["private_mb"] or 0.0) for life in mine),
                "growth after 30 s [MB]": max(grown, default=None),
                "resident growth [MB]": max(resident, default=None),
            }
        )
    segments = [
        {name: value if name != "faults" else "; ".join(value) for name, value in segment.items()}
        for segment in figures["segments"]
    ]
    punctual = [
        {
            "simulated_s": counted["duration_s"],
            "real_time_factor": counted["real_time_factor"],
            "ticks": counted["ticks"],
            "late ticks": counted["overruns"],
            "ticks without a command": counted["missed_commands"],
            "command timeouts": counted["command_timeouts"],
            "lateness p99 [us]": counted["lateness_us"]["p99"],
            "round trip p99 [us]": counted["round_trip_us"]["p99"],
        }
        for counted in figures["statistics"]
    ]
    heard = ", ".join(f"{seconds:.2g}" for seconds in figures["heard_s"])
    counts = ", ".join(f"{name} {value}" for name, value in figures["counts"].items())
    lines = [
        "# A long run with changing gains and restarting nodes\n",
        f"{figures['date']}, {figures['machine']}, {figures['arguments']}\n",
        f"From the start of a restarted controller to its first command [s]: {heard or 'none was restarted'}.\n",
        f"Recorder: {counts}. Changes: {figures['accepted']} accepted, {figures['recorded_changes']} recorded.\n",
        table(grouped),
        "Segments between two starts of the simulator, repeated by `bipedsim replay`:\n",
        table(segments),
        f"Times of each life of the simulator, at a load of {figures['load'][2]:.1f} (15 minutes):\n",
        table(punctual),
        "Not as it should be:\n",
        *([f"- {fault}" for fault in figures["faults"]] or ["- nothing"]),
    ]
    return "\n".join(lines) + "\n"
