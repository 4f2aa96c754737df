"""Run learned policies as ROS nodes with a recorder: `python benchmarks/policy_node.py --help`.

Each run is a separate launch with four nodes. The node sim_node simulates. The node controller_node runs the controller
`policy`, which sends impedances at the rate of its deployment file. The node commander_node requests velocities in
turn, and recorder_node records. The bag shows in which step the drives followed each command, and thus whether it was
in time. The exit code is 1 if a robot fell.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from policies import COMMANDS

from bipedsim import __version__
from bipedsim.control import make_controller
from bipedsim.model import load_robot
from bipedsim.numerics import Array
from bipedsim.recording import Recording, load_recording

COUNTS = re.compile(r"received=(\d+) written=(\d+) dropped=(\d+) lost=(\d+)")
DT = 1e-3
"""Control period of the launches [s]."""


@dataclass(frozen=True)
class Timing:
    """Timing of the commands in a run.

    Attributes:
        commands: Number of commands due, one per period of the policy.
        in_time: Number of commands that were followed in the step after the state to which they respond.
        p99_ms, worst_ms: Delay after that step, 99th percentile and maximum [ms]. A missing command counts as one
            period.
        not_recorded: Number of ticks missing in the bag.
    """

    commands: int
    in_time: int
    p99_ms: float
    worst_ms: float
    not_recorded: int


@dataclass(frozen=True)
class Outcome:
    """Results of a run.

    Attributes:
        number: Number of the run. It determines the order of the velocities and the seed of the noise.
        clock: Clock of the launch.
        asked: Commanded velocities, in order.
        fell: Time of the fall [s], or None.
        distance: Distance walked [m].
        factor: Simulated time divided by wall time.
        overruns: Number of late ticks, out of ``ticks``.
        lateness_us, round_trip_us: 99th percentiles of the lateness of ticks, and of the time from a state to the
            command [us].
        timing: Timing of the commands; None without a recording.
        received, lost: Number of messages that the recorder received, and that it knows to be missing.
        urgent: Whether the loop had real-time priority.
        verdict: Verdict of the summary, or the reason for a missing summary.
    """

    number: int
    clock: str
    asked: tuple[str, ...]
    fell: float | None
    distance: float | None
    factor: float | None
    overruns: int | None
    ticks: int | None
    lateness_us: float | None
    round_trip_us: float | None
    timing: Timing | None
    received: int | None
    lost: int | None
    urgent: bool
    verdict: str


def schedule(asked: Sequence[str], duration: float) -> list[dict[str, float]]:
    """Return the velocities of a scenario, each for an equal part of ``duration`` [s]."""
    share = duration / len(asked)
    return [
        {"at": round(k * share, 3), **dict(zip(("vx", "vy", "wz"), COMMANDS[name], strict=True))}
        for k, name in enumerate(asked)
    ]


def timing(recording: Recording, every: int) -> Timing:
    """Return the timing of commands that are due every ``every`` ticks, starting at t = 0."""
    tick = np.round(recording.t / DT).astype(int)
    followed: Array = np.nan_to_num(recording.setpoint.reshape(len(tick), -1), nan=np.inf)
    changed = tick[1:][(followed[1:] != followed[:-1]).any(axis=1)]
    # The row of tick n has the setpoint of the step that ends there, which responds to tick n - 1.
    answered = np.r_[changed, tick[-1] + every] - 1
    due = np.arange(0, tick[-1], every)
    late = np.minimum(answered[np.searchsorted(answered, due)] - due, every)
    missing_ticks = int(tick[-1] - tick[0] + 1 - len(np.unique(tick)))
    p99, worst = (round(float(value) * DT * 1e3, 3) for value in (np.quantile(late, 0.99), late.max()))
    return Timing(len(due), int((late == 0).sum()), p99, worst, missing_ticks)


def bring_up(args: argparse.Namespace, number: int, every: int, folder: Path) -> Outcome:
    """Launch the robot once and return the results."""
    first = number % len(args.commands)
    asked = (*args.commands[first:], *args.commands[:first])
    scenario = folder.parent / "asked.yaml"
    scenario.write_text(yaml.safe_dump({"velocity": schedule(asked, args.duration)}))
    command = [sys.executable, "-m", "bipedsim.cli.main", "up", "--robot", args.robot, "--controller", "policy"]
    command += ["--set", f"file={args.policy}", "--scenario", str(scenario), "--duration", str(args.duration)]
    command += ["--clock", args.clock, "--record", str(folder), "--overwrite", "--seed", str(number)]
    command += ["--hardware", args.hardware]
    process = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    counts = COUNTS.search(process.stdout)
    received, lost = (int(counts[1]), int(counts[4])) if counts else (None, None)
    urgent = "SCHED_FIFO" in process.stdout
    try:
        summary = json.loads((folder / "summary.json").read_text())
    except (OSError, ValueError):
        last_line = (process.stdout.strip().splitlines() or ["it said nothing"])[-1]
        return Outcome(number, args.clock, asked, *(None,) * 8, received, lost, urgent, f"no summary: {last_line}")
    values = [summary[name] for name in ("fell_at_s", "distance_m", "real_time_factor", "overruns", "ticks")]
    values += [(summary[name] or {}).get("p99") for name in ("lateness_us", "round_trip_us")]
    command_timing = timing(load_recording(folder / "bag"), every)
    return Outcome(number, args.clock, asked, *values, command_timing, received, lost, urgent, summary["verdict"])


COLUMNS = (
    "run",
    "m",
    "real-time factor",
    "commands in time",
    "late, p99 and worst, ms",
    "late ticks",
    "lateness p99, us",
    "round trip p99, us",
    "messages lost",
    "verdict",
)


def row(outcome: Outcome) -> str:
    """Return a row of the table for one run."""

    def text(value: float | None, form: str = "") -> str:
        return "" if value is None else format(value, form)

    cells = [text(outcome.number), text(outcome.distance, ".2f"), text(outcome.factor, ".3f")]
    delays = outcome.timing
    cells += (
        [f"{delays.in_time} of {delays.commands}", f"{delays.p99_ms:g}, {delays.worst_ms:g}"] if delays else ["", ""]
    )
    cells += [
        f"{text(outcome.overruns)} of {text(outcome.ticks)}",
        text(outcome.lateness_us, ".0f"),
        text(outcome.round_trip_us, ".0f"),
    ]
    cells += [f"{text(outcome.lost)} of {text(outcome.received)}", outcome.verdict]
    return f"| {' | '.join(cells)} |"


def fell(outcomes: Sequence[Outcome]) -> int:
    """Return the number of runs with a fall or without a summary."""
    return sum(outcome.fell is not None or outcome.distance is None for outcome in outcomes)


def report(outcomes: Sequence[Outcome], about: dict[str, Any]) -> str:
    """Return the report: settings, table and totals."""
    timings = [outcome.timing for outcome in outcomes if outcome.timing is not None]
    due, in_time = sum(delays.commands for delays in timings), sum(delays.in_time for delays in timings)
    lines = [", ".join(f"{key} {value}" for key, value in about.items()), ""]
    lines += [f"| {' | '.join(COLUMNS)} |", "| --- " * len(COLUMNS) + "|", *map(row, outcomes), ""]
    urgent = sum(outcome.urgent for outcome in outcomes)
    lines.append(
        f"{len(outcomes) - fell(outcomes)} of {len(outcomes)} did not fall; {in_time} of {due} commands in time; "
        f"{urgent} of {len(outcomes)} with a real-time priority."
    )
    return "\n".join(lines) + "\n"


def stored_outcomes(output: Path | None, about: dict[str, Any]) -> list[Outcome]:
    """Return the runs of an existing report, which is to be continued.

    Raises:
        SystemExit: The report has other settings.
    """
    if output is None or not output.exists():
        return []
    report_data = json.loads(output.read_text())
    if {key: report_data["about"].get(key) for key in about if key != "date"} != {
        key: value for key, value in about.items() if key != "date"
    }:
        raise SystemExit(f"{output}: runs of something else ({report_data['about']}); give another file")
    return [
        Outcome(**{**run, "asked": tuple(run["asked"]), "timing": run["timing"] and Timing(**run["timing"])})
        for run in report_data["runs"]
    ]


def main() -> int:
    """Run the benchmark and print the table. Return 1 if a robot fell or a run has no summary."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("robot", help="name, or path of a robot.yaml")
    parser.add_argument("policy", type=Path, help="deployment file")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--duration", type=float, default=30.0, help="of a run [s]")
    parser.add_argument(
        "--commands",
        nargs="+",
        choices=COMMANDS,
        default=list(COMMANDS),
        help="asked in turn; run N begins at the N-th",
    )
    parser.add_argument("--clock", choices=("real_time", "lock_step"), default="real_time")
    parser.add_argument("--hardware", default="ideal", help="seeds of its noise are the numbers of the runs")
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="JSON of every run, and a table beside it; runs in it are not repeated",
    )
    args = parser.parse_args()
    args.policy = args.policy.resolve()
    robot = load_robot(args.robot)
    every = int(getattr(make_controller("policy", robot, {"file": str(args.policy)}, DT), "decimation", 1))
    about = {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "bipedsim": __version__,
        "robot": robot.name,
        "policy": "/".join(args.policy.parts[-3:]),
        "clock": args.clock,
        "hardware": args.hardware,
        "duration": f"{args.duration:g} s",
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }
    outcomes = stored_outcomes(args.output, about)
    print(f"| {' | '.join(COLUMNS)} |\n" + "| --- " * len(COLUMNS) + "|")
    with tempfile.TemporaryDirectory(prefix="bipedsim_policy_") as folder:
        for number in range(len(outcomes), args.runs):
            outcomes.append(bring_up(args, number, every, Path(folder) / "run"))
            print(row(outcomes[-1]), flush=True)
            if args.output:
                report_data = {"about": about, "runs": [asdict(outcome) for outcome in outcomes]}
                args.output.write_text(json.dumps(report_data, indent=1) + "\n", encoding="utf-8")
                args.output.with_suffix(".md").write_text(report(outcomes, about), encoding="utf-8")
    print(report(outcomes, about).splitlines()[-1])
    return 1 if fell(outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
