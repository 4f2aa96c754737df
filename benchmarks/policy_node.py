"""Learned policies as nodes, with a recorder: `python benchmarks/policy_node.py --help`.

Each run is a bring-up of its own: sim_node, controller_node with the controller `policy`, which sends impedances at the
rate of its deployment file, commander_node, which asks for velocities in turn, and recorder_node. What was in time is
read from the bag: the step in which the drives followed each command. Exit code 1 where a robot fell.
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
"""Tick of the bring-ups [s]."""


@dataclass(frozen=True)
class Timing:
    """When the drives followed the commands of a run.

    Attributes:
        commands: How many were due, one a period of the policy.
        in_time: How many were followed in the step after the state that they answer.
        p99_ms, worst_ms: How much later than that: 99 % are below, and the latest [ms]; a period where one never came.
        not_recorded: Ticks that the bag lacks.
    """

    commands: int
    in_time: int
    p99_ms: float
    worst_ms: float
    not_recorded: int


@dataclass(frozen=True)
class Outcome:
    """What became of a run.

    Attributes:
        number: Of the run; the order of its velocities and the seed of its noise follow from it.
        clock: Of the bring-up.
        asked: Velocities, in their order.
        fell: When it fell [s], or None.
        distance: How far it came [m].
        factor: Simulated time over the time it took.
        overruns: Ticks that came late, of ``ticks``.
        lateness_us, round_trip_us: Of the ticks, and from a state out to a command in: 99 % of them are below [us].
        timing: Of the commands; None where nothing was recorded.
        received, lost: Messages that the recorder has, and that it knows to be missing.
        urgent: Whether the loop had a real-time priority.
        verdict: Of the summary; what went wrong where there is none.
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
    """Return the velocities of a scenario: equal shares of ``duration`` [s] each."""
    share = duration / len(asked)
    return [
        {"at": round(k * share, 3), **dict(zip(("vx", "vy", "wz"), COMMANDS[name], strict=True))}
        for k, name in enumerate(asked)
    ]


def timing(recording: Recording, every: int) -> Timing:
    """Return when commands that are due at every so many ticks, from t = 0 on, were followed."""
    tick = np.round(recording.t / DT).astype(int)
    followed: Array = np.nan_to_num(recording.setpoint.reshape(len(tick), -1), nan=np.inf)
    changed = tick[1:][(followed[1:] != followed[:-1]).any(axis=1)]
    # The row of tick n holds what was followed over the step to it: the answer to tick n - 1.
    answered = np.r_[changed, tick[-1] + every] - 1
    due = np.arange(0, tick[-1], every)
    late = np.minimum(answered[np.searchsorted(answered, due)] - due, every)
    lacks = int(tick[-1] - tick[0] + 1 - len(np.unique(tick)))
    p99, worst = (round(float(value) * DT * 1e3, 3) for value in (np.quantile(late, 0.99), late.max()))
    return Timing(len(due), int((late == 0).sum()), p99, worst, lacks)


def bring_up(args: argparse.Namespace, number: int, every: int, folder: Path) -> Outcome:
    """Bring a robot up once, and return what became of it."""
    first = number % len(args.commands)
    asked = (*args.commands[first:], *args.commands[:first])
    scenario = folder.parent / "asked.yaml"
    scenario.write_text(yaml.safe_dump({"velocity": schedule(asked, args.duration)}))
    command = [sys.executable, "-m", "bipedsim.cli.main", "up", "--robot", args.robot, "--controller", "policy"]
    command += ["--set", f"file={args.policy}", "--scenario", str(scenario), "--duration", str(args.duration)]
    command += ["--clock", args.clock, "--record", str(folder), "--overwrite", "--seed", str(number)]
    command += ["--hardware", args.hardware]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    counts = COUNTS.search(done.stdout)
    received, lost = (int(counts[1]), int(counts[4])) if counts else (None, None)
    urgent = "SCHED_FIFO" in done.stdout
    try:
        summary = json.loads((folder / "summary.json").read_text())
    except (OSError, ValueError):
        said = (done.stdout.strip().splitlines() or ["it said nothing"])[-1]
        return Outcome(number, args.clock, asked, *(None,) * 8, received, lost, urgent, f"no summary: {said}")
    values = [summary[name] for name in ("fell_at_s", "distance_m", "real_time_factor", "overruns", "ticks")]
    values += [(summary[name] or {}).get("p99") for name in ("lateness_us", "round_trip_us")]
    when = timing(load_recording(folder / "bag"), every)
    return Outcome(number, args.clock, asked, *values, when, received, lost, urgent, summary["verdict"])


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


def row(one: Outcome) -> str:
    """Return a row of the table."""

    def said(value: float | None, form: str = "") -> str:
        return "" if value is None else format(value, form)

    cells = [said(one.number), said(one.distance, ".2f"), said(one.factor, ".3f")]
    when = one.timing
    cells += [f"{when.in_time} of {when.commands}", f"{when.p99_ms:g}, {when.worst_ms:g}"] if when else ["", ""]
    cells += [
        f"{said(one.overruns)} of {said(one.ticks)}",
        said(one.lateness_us, ".0f"),
        said(one.round_trip_us, ".0f"),
    ]
    cells += [f"{said(one.lost)} of {said(one.received)}", one.verdict]
    return f"| {' | '.join(cells)} |"


def fell(outcomes: Sequence[Outcome]) -> int:
    """Return how many fell, or have no summary."""
    return sum(one.fell is not None or one.distance is None for one in outcomes)


def report(outcomes: Sequence[Outcome], about: dict[str, Any]) -> str:
    """Return the table and what it is of."""
    timings = [one.timing for one in outcomes if one.timing is not None]
    due, good = sum(one.commands for one in timings), sum(one.in_time for one in timings)
    lines = [", ".join(f"{key} {value}" for key, value in about.items()), ""]
    lines += [f"| {' | '.join(COLUMNS)} |", "| --- " * len(COLUMNS) + "|", *map(row, outcomes), ""]
    urgent = sum(one.urgent for one in outcomes)
    lines.append(
        f"{len(outcomes) - fell(outcomes)} of {len(outcomes)} did not fall; {good} of {due} commands in time; "
        f"{urgent} of {len(outcomes)} with a real-time priority."
    )
    return "\n".join(lines) + "\n"


def kept(output: Path | None, about: dict[str, Any]) -> list[Outcome]:
    """Return the runs of a report that is to be gone on with.

    Raises:
        SystemExit: It is of something else.
    """
    if output is None or not output.exists():
        return []
    found = json.loads(output.read_text())
    if {key: found["about"].get(key) for key in about if key != "date"} != {
        key: value for key, value in about.items() if key != "date"
    }:
        raise SystemExit(f"{output}: runs of something else ({found['about']}); give another file")
    return [
        Outcome(**{**one, "asked": tuple(one["asked"]), "timing": one["timing"] and Timing(**one["timing"])})
        for one in found["runs"]
    ]


def main() -> int:
    """Print the table; return 1 where a robot fell or a run has no summary."""
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
    outcomes = kept(args.output, about)
    print(f"| {' | '.join(COLUMNS)} |\n" + "| --- " * len(COLUMNS) + "|")
    with tempfile.TemporaryDirectory(prefix="bipedsim_policy_") as folder:
        for number in range(len(outcomes), args.runs):
            outcomes.append(bring_up(args, number, every, Path(folder) / "run"))
            print(row(outcomes[-1]), flush=True)
            if args.output:
                whole = {"about": about, "runs": [asdict(one) for one in outcomes]}
                args.output.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
                args.output.with_suffix(".md").write_text(report(outcomes, about), encoding="utf-8")
    print(report(outcomes, about).splitlines()[-1])
    return 1 if fell(outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
