"""Implement the command ``bipedsim score``."""

from __future__ import annotations

import argparse
from pathlib import Path

from bipedsim.cli import add_option, add_set, chosen, split_params
from bipedsim.config import RunConfig
from bipedsim_studies.study import add_output, add_parallel

TRIED = ("robot", "contact_model", "rate", "physics_dt")
"""Parameters of the run that define the subject of the score. The battery defines all others."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("controller", metavar="CONTROLLER", help="name, or package.module:Class of your own")
    for name in TRIED:
        add_option(parser, RunConfig, name, text="as for bipedsim run")
    add_set(parser)
    parser.add_argument(
        "--battery",
        type=Path,
        metavar="FILE",
        help="battery file (default: the included one; docs/score.md)",
    )
    parser.add_argument(
        "--hardware",
        nargs="+",
        dest="hardware_files",
        metavar="HARDWARE",
        help="hardware of the trials, as for bipedsim run; if several are given, each trial draws one "
        "(default: that of the battery)",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FOLDER",
        help="folder of the results (default: runs/score_CONTROLLER_ROBOT)",
    )
    parser.add_argument(
        "--against",
        type=Path,
        metavar="FOLDER",
        help="compare with these results of another controller, trial by trial",
    )
    add_parallel(parser)
    add_output(parser, plot=False)


def main(args: argparse.Namespace) -> int:
    """Score the controller and print the results."""
    from dataclasses import asdict

    from bipedsim.config import from_folder, to_json, write_whole
    from bipedsim.contact import CONTACT_MODELS
    from bipedsim.errors import EXIT_FAILED, EXIT_OK
    from bipedsim.model import robot_file
    from bipedsim_studies.score.battery import BATTERY, TEST, read_battery
    from bipedsim_studies.score.page import table, write_score
    from bipedsim_studies.score.score import compared, differences, score
    from bipedsim_studies.study import (
        FAILED,
        check_figures,
        error_lines,
        read_about,
        read_rows,
        run_with_options,
        same_lines,
    )

    subject = chosen(args, RunConfig)
    # Relative paths in a battery would start at the folder of its file.
    subject["robot"] = from_folder(subject.get("robot", RunConfig.robot), Path())
    subject["controller_params"], subject["contact_params"] = split_params(args.set, CONTACT_MODELS)
    others = read_rows(args.against) if args.against else []
    file = args.battery or BATTERY
    battery = read_battery(file, subject, [from_folder(each, Path()) for each in args.hardware_files or ()])
    other_differences: list[str] = []
    if args.against:
        other_differences = compared(
            battery.plan.conditions, read_about(args.against).get("conditions", {}), str(args.against)
        )
    check_figures({trial.values[TEST]: trial for trial in battery.plan.trials}.values(), str(file))
    say = (lambda _text: None) if args.json else print
    say(f"battery {battery.version}: {battery.plan.description}, {len(battery.plan.trials)} trials")
    for name, why in battery.left_out.items():
        say(f"left out: {name}: {why}")
    robot = robot_file(subject["robot"]).parent.name
    short = "_".join(part.rpartition(":")[2] or part for part in (args.controller, robot))
    folder = args.output or Path("runs") / f"score_{short}"
    results = run_with_options(battery.plan, folder, args)
    rows = [results.rows[i] for i in sorted(results.rows)]
    lines = score(rows, battery.groups, battery.limits)
    paired_differences = differences(rows, others, battery.groups)
    score_data = {
        "battery": battery.version,
        "version": battery.plan.version,
        "of": battery.plan.description,
        "left_out": dict(battery.left_out),
        "conditions": dict(battery.plan.conditions),
        "content": dict(battery.plan.needs.content),
        "lines": [asdict(line) for line in lines],
        "against": None,
    }
    if others:
        score_data["against"] = {
            "folder": str(args.against),
            "lines": [asdict(difference) for difference in paired_differences],
            "unlike": other_differences,
        }
    remarks = [*error_lines(rows), *same_lines(rows)]
    remarks += [f"warning: not only the controller differs from {args.against}: {text}" for text in other_differences]
    write_whole(folder / "score.json", (to_json(score_data) + "\n").encode())
    page = write_score(folder, battery, lines, paired_differences, str(args.against or ""), remarks)
    print(
        to_json(score_data) if args.json else "\n".join([*table(lines, paired_differences), *remarks, f"wrote {page}"])
    )
    return EXIT_FAILED if any(row["outcome"] in FAILED for row in rows) else EXIT_OK
