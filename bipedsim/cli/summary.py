"""Print the summary of a recording: ``bipedsim summary``."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("recording", type=Path, metavar="RUN", help="folder of a run or bag, .mcap, .npz or .csv")
    parser.add_argument("--json", action="store_true", help="print only the metrics, as JSON")


def main(args: argparse.Namespace) -> int:
    """Read a recording and print its summary."""
    from bipedsim.analysis import RunSummary, gather, summary_lines
    from bipedsim.config import to_json

    summary = gather(args.recording, RunSummary, RunSummary.COLUMNS)
    if args.json:
        print(to_json(summary.figures()))
    else:
        print("\n".join([*summary_lines(summary.figures()), *(f"note: {note}" for note in summary.notes)]))
    return 0
