"""Learned policies as nodes, with a recorder: `python benchmarks/policy_node.py --help`.

Each run is a bring-up of its own: sim_node, controller_node with the controller `policy`, which sends impedances at the
rate of its deployment file, recorder_node, and a scenario that asks for a velocity. Exit code 1 where a robot fell.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

COUNTS = re.compile(r"received=(\d+) written=(\d+) dropped=(\d+) lost=(\d+)")
ASKED_AT = 1.0
"""When the velocity is asked for [s]."""


@dataclass(frozen=True)
class Outcome:
    """What became of a run.

    Attributes:
        number: Of the run.
        clock: Of the bring-up.
        fell: When it fell [s], or None.
        distance: How far it came [m].
        factor: Simulated time over the time it took.
        overruns: Ticks that came late, of ``ticks``.
        received, lost: Messages that the recorder has, and that it knows to be missing.
        verdict: Of the summary; what went wrong where there is none.
    """

    number: int
    clock: str
    fell: float | None
    distance: float | None
    factor: float | None
    overruns: int | None
    ticks: int | None
    received: int | None
    lost: int | None
    verdict: str


def bring_up(args: argparse.Namespace, number: int, scenario: Path, folder: Path) -> Outcome:
    """Bring a robot up once, and return what became of it."""
    command = [sys.executable, "-m", "bipedsim.cli.main", "up", "--robot", args.robot, "--controller", "policy"]
    command += ["--set", f"file={args.policy}", "--scenario", str(scenario), "--duration", str(args.duration)]
    command += ["--clock", args.clock, "--record", str(folder), "--overwrite", "--seed", str(number)]
    command += ["--hardware", args.hardware]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    counts = COUNTS.search(done.stdout)
    received, lost = (int(counts[1]), int(counts[4])) if counts else (None, None)
    try:
        summary = json.loads((folder / "summary.json").read_text())
    except (OSError, ValueError):
        said = done.stdout.strip().splitlines() or ["it said nothing"]
        return Outcome(number, args.clock, None, None, None, None, None, received, lost, f"no summary: {said[-1]}")
    values = (summary[name] for name in ("fell_at_s", "distance_m", "real_time_factor", "overruns", "ticks"))
    return Outcome(number, args.clock, *values, received, lost, summary["verdict"])


def row(one: Outcome) -> str:
    """Return a row of the table."""

    def said(value: float | None, form: str = "") -> str:
        return "" if value is None else format(value, form)

    cells = [said(one.number), one.clock, said(one.distance, ".2f"), said(one.factor, ".3f")]
    cells += [f"{said(one.overruns)} of {said(one.ticks)}", f"{said(one.lost)} of {said(one.received)}", one.verdict]
    return f"| {' | '.join(cells)} |"


def main() -> int:
    """Print the table; return 1 where a robot fell or a run has no summary."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("robot", help="name, or path of a robot.yaml")
    parser.add_argument("policy", type=Path, help="deployment file")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--duration", type=float, default=30.0, help="of a run [s]")
    parser.add_argument("--speed", type=float, default=0.5, help="ahead [m/s], from 1 s on")
    parser.add_argument("--clock", choices=("real_time", "lock_step"), default="real_time")
    parser.add_argument("--hardware", default="ideal", help="seeds of its noise are the numbers of the runs")
    parser.add_argument("--output", type=Path, help="JSON of every run")
    args = parser.parse_args()
    args.policy = args.policy.resolve()
    outcomes = []
    print("| run | clock | m | real-time factor | late ticks | messages lost | verdict |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(prefix="bipedsim_policy_") as folder:
        scenario = Path(folder) / "ahead.yaml"
        scenario.write_text(f"velocity: [{{at: {ASKED_AT}, vx: {args.speed}}}]\n")
        for number in range(args.runs):
            outcomes.append(bring_up(args, number, scenario, Path(folder) / "run"))
            print(row(outcomes[-1]), flush=True)
            if args.output:
                args.output.write_text(json.dumps([asdict(one) for one in outcomes], indent=1))
    bad = sum(one.fell is not None or one.distance is None for one in outcomes)
    print(f"{len(outcomes) - bad} of {len(outcomes)} did not fall")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
