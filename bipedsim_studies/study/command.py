"""Implement the command ``bipedsim study``."""

from __future__ import annotations

import argparse
from pathlib import Path

from bipedsim_studies.study.options import add_output, add_parallel, output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("study", type=Path, metavar="FILE", help="study file (YAML, docs/study.md)")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FOLDER",
        help="folder of the results (default: runs/NAME of the file)",
    )
    add_parallel(parser)
    add_output(parser)
    parser.add_argument("--dry-run", action="store_true", help="check the file and list the trials")


def main(args: argparse.Namespace) -> int:
    """Run the study and print its results."""
    from dataclasses import asdict

    from bipedsim.errors import EXIT_FAILED, EXIT_OK
    from bipedsim_studies.study.config import read_plan
    from bipedsim_studies.study.study_run import run_with_options
    from bipedsim_studies.study.table import lines_of, points_of
    from bipedsim_studies.study.trial import FAILED, check_figures

    def draw(path: Path) -> None:
        from bipedsim_studies.study.picture import plot

        plot(plan, results.rows, path)

    plan = read_plan(args.study)
    check_figures(plan.trials[:1], str(args.study))
    say = (lambda _text: None) if args.json else print
    count = f"{len(plan.trials)} trials: {plan.grid} points of the grid, {len(plan.trials) // plan.grid} at each"
    say(f"{plan.name}: {count}")
    if args.dry_run:
        for trial in plan.trials[:10]:
            say(f"  {trial.index}: " + (", ".join(f"{k} = {v}" for k, v in trial.values.items()) or "as it is"))
        if len(plan.trials) > 10:
            say(f"  and {len(plan.trials) - 10} more")
        return EXIT_OK
    folder = args.output or Path("runs") / plan.name
    results = run_with_options(plan, folder, args)
    output(
        args,
        lambda: [asdict(point) for point in points_of(plan, results.rows)],
        lambda: "\n".join([*lines_of(plan, results.rows), f"wrote {folder / 'results.parquet'}"]),
        draw,
    )
    return EXIT_FAILED if any(row["outcome"] in FAILED for row in results.rows.values()) else EXIT_OK
