"""Score public controllers with one battery: `python benchmarks/public_controllers.py --help`.

Each policy of policies.yaml and the walker `zmp` on some robots gets the trials of `bipedsim score` with realistic and
with ideal hardware. The sources are those of policies.py. Give the same command again to continue.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from policies import LIST, TICK, listed

import bipedsim_studies.score
from bipedsim.model import load_robot
from bipedsim.view import picture

BATTERY = Path(bipedsim_studies.score.__file__).with_name("battery_2.yaml")
HARDWARE = ("realistic", "ideal")
"""Hardware of the two scores of a controller."""
GROUPS = ("basic", "speed", "pushes", "ground", "robustness")
WALKERS = ("g1", "talos", "biped14")
"""Shipped robots on which the model-based walker `zmp` is scored, with the parameters of their robot.yaml."""


@dataclass(frozen=True)
class Controller:
    """A controller and its robot.

    Attributes:
        name: Name in the table.
        source: Repository and commit; empty for a controller of bipedsim.
        words: Words of the command behind `bipedsim score`.
        robot: Name of the robot.
        joints: Number of its joints.
    """

    name: str
    source: str
    words: tuple[str, ...]
    robot: str
    joints: int


@dataclass(frozen=True)
class Line:
    """Success of a group or of all tests: share and its 95 % interval, NaN without trials."""

    share: float
    low: float
    high: float
    trials: int

    @classmethod
    def of(cls, score: dict[str, Any], name: str) -> Line:
        """Return the line of a score.json with this name."""
        for line in score["lines"]:
            if line["name"] == name and not line["group"]:
                low, high = (math.nan if line[key] is None else line[key] for key in ("low", "high"))
                return cls(line["successes"] / line["trials"], low, high, line["trials"])
        return cls(math.nan, math.nan, math.nan, 0)


def controllers(names: Sequence[str], sources: Path) -> Iterator[Controller]:
    """Yield the policies of the list, and `zmp` on the robots of :data:`WALKERS`."""
    entries = yaml.safe_load(LIST.read_text(encoding="utf-8"))
    known = {*(entry["name"] for entry in entries), *(f"zmp_{name}" for name in WALKERS)}
    if unknown := sorted({*names} - known):
        raise SystemExit(f"no such controller: {', '.join(unknown)}")
    for entry in entries:
        if names and entry["name"] not in names:
            continue
        policy = listed(entry, sources)
        step = () if policy.physics_dt == TICK else ("--physics-dt", f"{policy.physics_dt:g}")
        words = ("policy", "--robot", policy.robot, "--set", f"file={policy.file}", *step)
        robot = load_robot(policy.robot)
        yield Controller(policy.name, f"{entry['from']}@{entry['commit'][:8]}", words, robot.name, robot.nu)
    for name in WALKERS:
        if not names or f"zmp_{name}" in names:
            robot = load_robot(name)
            yield Controller(f"zmp_{name}", "", ("zmp", "--robot", name), robot.name, robot.nu)


def without_repetitions(folder: Path) -> Path:
    """Write the battery for ideal hardware, and return its path: repetitions only where the trials differ."""
    battery = yaml.safe_load(BATTERY.read_text(encoding="utf-8"))
    battery["repeat"] = 1
    for test in battery["tests"]:
        varied = test.get("vary", {}).values()
        differ = any(isinstance(each, dict) and set(each) - {"choice"} for each in varied)
        test["repeat"] = test.get("repeat", 1) if differ else 1
    path = folder / "battery_ideal.yaml"
    path.write_text(yaml.safe_dump(battery, sort_keys=False), encoding="utf-8")
    return path


def command(controller: Controller, hardware: str, folder: Path) -> list[str]:
    """Return the words of the command that scores a controller."""
    battery = ("--battery", str(folder / "battery_ideal.yaml")) if hardware == "ideal" else ()
    words = ["score", *controller.words, "--hardware", hardware, *battery]
    return [*words, "--output", str(folder / f"{controller.name}_{hardware}")]


def scored(controller: Controller, folder: Path, run: bool) -> dict[str, dict[str, Any]]:
    """Return the score with each hardware that is finished; run those that are missing."""
    result = {}
    for hardware in HARDWARE:
        words = command(controller, hardware, folder)
        file = Path(words[-1]) / "score.json"
        if run and not file.exists():
            print(shlex.join(["bipedsim", *words]), flush=True)
            subprocess.run([sys.executable, "-m", "bipedsim.cli.main", *words], stdout=subprocess.DEVNULL)
            if not file.exists():
                print(f"{controller.name}, {hardware}: no score", file=sys.stderr)
        if file.exists():
            result[hardware] = json.loads(file.read_text(encoding="utf-8"))
    return result


def table(rows: Sequence[tuple[Controller, dict[str, dict[str, Any]]]]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"| controller | robot | hardware | all | {' | '.join(GROUPS)} | speed error | cost of transport |"
    yield f"| --- | --- | --- | --- | {'--- | ' * len(GROUPS)}--- | --- |"
    for controller, scores in rows:
        for hardware, score in scores.items():
            lines = [Line.of(score, name) for name in ("all", *GROUPS)]
            shares = [f"{100 * each.share:.0f} % ({100 * each.low:.0f} to {100 * each.high:.0f})" for each in lines]
            figures = next(line["figures"] for line in score["lines"] if line["name"] == "all")
            numbers = ("" if value is None else f"{value:.2g}" for value in _medians(figures))
            yield f"| {controller.name} | {controller.robot} | {hardware} | {' | '.join([*shares, *numbers])} |"


def failures(rows: Sequence[tuple[Controller, dict[str, dict[str, Any]]]]) -> Iterator[str]:
    """Yield the lines of a table of the tests with failed trials: all trials failed, or some of them."""
    yield "| controller | hardware | test: failed trials |"
    yield "| --- | --- | --- |"
    for controller, scores in rows:
        for hardware, score in scores.items():
            kinds: dict[str, list[str]] = {}
            for line in score["lines"]:
                for kind, count in line["failures"].items() if line["group"] else ():
                    some = f" ({count} of {line['trials']})" if count < line["trials"] else ""
                    kinds.setdefault(kind, []).append(f"{line['name']}{some}")
            text = "; ".join(f"**{kind}**: {', '.join(tests)}" for kind, tests in sorted(kinds.items()))
            yield f"| {controller.name} | {hardware} | {text} |"


def _medians(figures: dict[str, Any]) -> tuple[Any, Any]:
    return figures["velocity_error"], figures["cost_of_transport"]


def draw(rows: Sequence[tuple[Controller, dict[str, dict[str, Any]]]], path: Path) -> None:
    """Draw the shares of success of all controllers with their intervals."""
    with picture(path, (9.0, 1.5 + 0.4 * len(rows)), "Share of trials with success, 95 % by Wilson") as figure:
        axes = figure.add_subplot()
        for place, (hardware, colour) in enumerate(zip(HARDWARE, ("#1f77b4", "#9ecae1"), strict=True)):
            found = [(i, Line.of(scores[hardware], "all")) for i, (_, scores) in enumerate(rows) if hardware in scores]
            at = [i + 0.35 * place for i, _ in found]
            shares = [line.share for _, line in found]
            errors = [
                [line.share - line.low for _, line in found],
                [line.high - line.share for _, line in found],
            ]
            axes.barh(at, shares, 0.35, color=colour, label=f"{hardware} hardware")
            axes.errorbar(shares, at, xerr=errors, fmt="none", color="#333333", capsize=2, linewidth=1.0)
        axes.set_yticks([i + 0.17 for i in range(len(rows))], [f"{c.name} on {c.robot}" for c, _ in rows], fontsize=8)
        axes.invert_yaxis()
        axes.set_xlim(0.0, 1.0)
        figure.legend(loc="outside lower left", ncols=2, fontsize=8)


def main() -> None:
    """Score the controllers, and write table, figure and commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="names in policies.yaml, or zmp_ROBOT (default: all)")
    parser.add_argument("--sources", type=Path, required=True, help="folder with the repositories, as for policies.py")
    parser.add_argument("--output", type=Path, required=True, help="folder of the scores, the table and the figure")
    parser.add_argument("--table", action="store_true", help="only write the table of the scores that are finished")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    without_repetitions(args.output)
    rows = [(each, scored(each, args.output, not args.table)) for each in controllers(args.names, args.sources)]
    rows = [(controller, scores) for controller, scores in rows if scores]
    draw(rows, args.output / "public_controllers.png")
    lines = [*table(rows), ""]
    lines += [*failures(rows), "", "| controller | source |", "| --- | --- |"]
    lines += [f"| {controller.name} | {controller.source or 'bipedsim'} |" for controller, _ in rows]
    lines += ["", *(f"    bipedsim {shlex.join(command(c, h, args.output))}" for c, scores in rows for h in scores)]
    (args.output / "public_controllers.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
