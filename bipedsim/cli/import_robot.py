"""Import a robot description: ``bipedsim import``."""

from __future__ import annotations

import argparse
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bipedsim.cli.waiting import waiting
from bipedsim.errors import EXIT_FAILED, EXIT_OK

if TYPE_CHECKING:
    from bipedsim.descriptions import Imported


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("file", type=Path, help="URDF, xacro or MJCF file, or the folder of a description package")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FOLDER",
        help="folder to write (default: name of the robot, in the current folder)",
    )
    parser.add_argument(
        "--compare",
        type=Path,
        metavar="FILE",
        help="another description of the same robot; the report lists the differences",
    )
    parser.add_argument("--replace", action="store_true", help="overwrite existing files")
    parser.add_argument(
        "--no-walk", action="store_true", help="skip the trial walks that choose the parameters of zmp in simulation"
    )


def main(args: argparse.Namespace) -> int:
    """Import a description and print the summary; the exit code is 0 if the robot loads."""
    from bipedsim.descriptions import import_robot

    started = time.perf_counter()
    with waiting(f"reading {args.file}"):
        imported = import_robot(args.file, args.output, args.compare, args.replace)
    if imported.gait is not None and not args.no_walk:
        imported = _tried(imported, imported.gait)
    print(imported.short, end="")
    if imported.robot is not None:
        from bipedsim.view import draw_robot

        draw_robot(imported.robot, imported.folder / "robot.png")
    written = f"wrote {imported.folder} in {time.perf_counter() - started:.1f} s"
    file = shlex.quote(str(imported.folder / "robot.yaml"))
    if imported.robot is None:
        print(f"{written}, but a run cannot use this robot yet. Correct {file} as stated above, then check it:")
        print(f"bipedsim describe {file}")
        return EXIT_FAILED
    print(written)
    command = f"bipedsim run --robot {file}"
    if imported.stands:
        print(command)
    elif imported.robot.free_flyer and imported.robot.nu:
        print(
            "The robot cannot stand by itself on point or line feet. Hold it with a gantry until your controller runs:"
        )
        print(f"{command} --scenario hang")
    else:
        print(f"bipedsim describe {file}")
    return EXIT_OK


def _tried(imported: Imported, first: dict[str, float]) -> Imported:
    """Choose the parameters of ``zmp`` by trial walks, note the outcome, and write them."""
    from bipedsim.runs import DISTANCE, find_walk

    trials = find_walk(imported.folder / "robot.yaml", first, progress=True)
    last, n = trials[-1], len(trials)
    failures = "; ".join(f"trial {i}: {trial}" for i, trial in enumerate(trials, 1) if not trial.walked)
    if not last.walked:
        imported.notes.doubts(
            f"zmp walks this robot in none of {n} simulated trials of {DISTANCE:g} m. Later ones have quicker steps: "
            f"{failures}. robot.yaml keeps the parameters of trial 1. Other controllers are not affected"
        )
        return imported.with_gait(first)
    outcome = f"zmp: in simulation, trial {n} of {DISTANCE:g} m succeeded at {last.speed:.2g} m/s"
    if failures:
        changed = [f"{key} {value:g}" for key, value in last.params.items() if first.get(key) != value]
        outcome += f", with {', '.join(changed)}. Before it failed {failures}"
    imported.notes.guessed(outcome)
    return imported.with_gait(last.params)
