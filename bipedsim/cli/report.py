"""Write an HTML report of runs: ``bipedsim report``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bipedsim.cli.options import add_span, named_with, names_of, output_beside
from bipedsim.cli.waiting import waiting


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument(
        "recording",
        type=Path,
        nargs="+",
        metavar="RUN",
        help="folder of a run or bag, .mcap, .npz or .csv; with several runs of one robot, the report compares "
        "outcomes, metrics and curves",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="HTML",
        help="page to write (default: runs/first_report.html for runs/first)",
    )
    parser.add_argument(
        "--view",
        action="store_true",
        help="also write the HTML player of the run next to the report and link to it (see bipedsim view --html)",
    )
    add_span(parser)


def main(args: argparse.Namespace) -> int:
    """Read the runs and write the report."""
    from bipedsim.analysis import load_run
    from bipedsim.view import report, report_runs

    first, *others = args.recording
    names = names_of(args.recording)
    output = output_beside(first, args.output, f"{named_with(others)}_report.html")
    views = [_view(path, output) for path in args.recording]
    if args.view:
        for path, view in zip(args.recording, views, strict=True):
            _write_view(path, view, args)
    with waiting(f"writing {output}"):
        runs = {
            name: load_run(path, -1, args.start, args.stop) for name, path in zip(names, args.recording, strict=True)
        }
        whole = args.start is args.stop is None
        if others:
            lines = report_runs(runs, output, args.recording, views, whole)
        else:
            lines = [f"without {line}" for line in report(runs[names[0]], output, first, views[0], whole)]
    print("\n  ".join([f"wrote {output}", *lines]))
    return 0


def _view(recording: Path, output: Path) -> Path:
    """Return the path of the HTML player next to the report, which links to it."""
    view = output.with_name(output_beside(recording, None, ".html").name)
    return view if view != output else output.with_name(f"{output.stem}_view.html")


def _write_view(recording: Path, view: Path, args: argparse.Namespace) -> None:
    from bipedsim.view.page import read_shown, write_html

    with waiting(f"writing {view}"):
        shown = read_shown(recording, start=args.start, stop=args.stop, progress=True)
        done = write_html(shown, view, progress=True)
    for note in shown.frames.notes:
        print(f"note: {note}", file=sys.stderr)
    print(f"wrote {view}: {done}")
