"""Implement the command ``bipedsim study``."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from bipedsim_studies.study.options import add_options, asked_jobs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("study", type=Path, metavar="FILE", help="the study, a YAML file (docs/study.md)")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FOLDER",
        help="where results go, and where they are looked for: a study that was interrupted goes on (default: "
        "runs/NAME of the file)",
    )
    add_options(parser)
    parser.add_argument("--restart", action="store_true", help="forget the results that are there, and begin anew")
    parser.add_argument("--dry-run", action="store_true", help="check the file and say what would be run")
    parser.add_argument("--plot", type=Path, metavar="PNG", help="write the picture")
    parser.add_argument("--json", action="store_true", help="print the points of the grid as JSON and nothing else")


def main(args: argparse.Namespace) -> int:
    """Run the study and print its results."""
    from dataclasses import asdict

    from bipedsim.config import to_json
    from bipedsim.errors import EXIT_FAILED, EXIT_OK
    from bipedsim_studies.study.config import read_plan
    from bipedsim_studies.study.run_study import run_study
    from bipedsim_studies.study.table import lines_of, points_of
    from bipedsim_studies.study.trial import FAILED, check_figures

    jobs = asked_jobs(args)
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
    bar = not args.json and sys.stderr.isatty()
    news = partial(print, file=sys.stderr, flush=True)
    try:
        results = run_study(plan, folder, jobs, args.scheduler, args.restart, bar, say, news, args.time_limit)
    except KeyboardInterrupt:
        print(f"{folder} holds what was done; the same command goes on from there", file=sys.stderr)
        raise
    if args.json:
        print(to_json([asdict(point) for point in points_of(plan, results.rows)]))
    else:
        print("\n".join(lines_of(plan, results.rows)))
        print(f"wrote {folder / 'results.parquet'}")
    if args.plot:
        from bipedsim_studies.study.picture import plot

        plot(plan, results.rows, args.plot)
        say(f"wrote {args.plot}")
    return EXIT_FAILED if any(row["outcome"] in FAILED for row in results.rows.values()) else EXIT_OK
