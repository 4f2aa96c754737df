"""``bipedsim export``."""

from __future__ import annotations

import argparse
from pathlib import Path

from bipedsim.cli.options import add_span, output_beside


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("recording", type=Path, help="folder of a run or bag, .mcap or .npz")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="CSV", help="table to write (default: beside the recording)"
    )
    add_span(parser)


def main(args: argparse.Namespace) -> int:
    """Read and write."""
    from bipedsim.analysis import load_run
    from bipedsim.recording import export_csv

    output = output_beside(args.recording, args.output, ".csv")
    export_csv(load_run(args.recording, start=args.start, stop=args.stop), output)
    print(f"wrote {output}")
    return 0
