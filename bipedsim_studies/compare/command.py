"""Implement the command ``bipedsim compare``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bipedsim.errors import EXIT_FAILED
from bipedsim_studies.compare.settings import CompareSettings
from bipedsim_studies.study import add_output, add_parallel, add_settings, in_settings, output, parallel, read_settings

OPTIONS = ("run.robot", "run.controller", "run.scenario", "models")
INSTEAD = in_settings(
    *("run.controller_params", "run.ground", "run.duration", "run.hardware", "run.rate", "run.physics_dt"),
    *("reference", "time_limit"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    add_settings(parser, CompareSettings, OPTIONS, "docs/compare.md")
    # With one process at a time, no run shares the machine with another one that is timed.
    add_parallel(parser, "1")
    add_output(parser)


def main(args: argparse.Namespace) -> int:
    """Run the comparison and print it. Return 1 if a run failed."""
    from bipedsim_studies.compare.comparison import compare
    from bipedsim_studies.compare.table import table

    settings = read_settings(args, CompareSettings, OPTIONS)

    def say(line: str) -> None:
        if not args.json:
            print(line, file=sys.stderr, flush=True)

    def draw(path: Path) -> None:
        from bipedsim_studies.compare.picture import plot

        plot(result, path)

    models, reference, params = settings.models, settings.reference, settings.params()
    try:
        result = compare(settings.run, models, reference, params, parallel(args, settings.time_limit), say)
    except KeyboardInterrupt:
        missing_outputs = f"no table, and no {args.plot}" if args.plot else "no table"
        print(f"bipedsim compare: interrupted before its last run: {missing_outputs}", file=sys.stderr, flush=True)
        raise
    output(args, result.as_json, lambda: table(result), draw)
    return 0 if result.ok else EXIT_FAILED
