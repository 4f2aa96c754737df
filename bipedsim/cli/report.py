"""``bipedsim report``."""

from __future__ import annotations

import argparse
from pathlib import Path

from bipedsim.cli.options import add_span, output_beside
from bipedsim.cli.waiting import waiting


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("recording", type=Path, metavar="RUN", help="folder of a run or bag, .mcap or .npz")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="HTML", help="page to write (default: _report.html beside the recording)"
    )
    add_span(parser)


def main(args: argparse.Namespace) -> int:
    """Read and write."""
    from bipedsim.analysis import load_run
    from bipedsim.view import report

    output = output_beside(args.recording, args.output, "_report.html")
    with waiting(f"writing {output}"):
        run = load_run(args.recording, -1, args.start, args.stop)
        left_out = report(run, output, args.recording, output_beside(args.recording, None, ".html"))
    print(f"wrote {output}" + "".join(f"\n  without {line}" for line in left_out))
    return 0
