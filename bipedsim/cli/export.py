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
    """Read twice, as what there is must be known before the first row is written, and hold a part of it at a time."""
    from bipedsim.analysis import gather
    from bipedsim.recording import CsvColumns, CsvTable

    output = output_beside(args.recording, args.output, ".csv")
    span = {"start": args.start, "stop": args.stop}
    columns = gather(args.recording, CsvColumns, **span)
    gather(args.recording, lambda: CsvTable(output, columns), **span)
    print(f"wrote {output}")
    return 0
