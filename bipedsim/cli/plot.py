"""``bipedsim plot``."""

from __future__ import annotations

import argparse
from pathlib import Path

from bipedsim.cli.options import output_beside
from bipedsim.cli.waiting import waiting


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    from bipedsim.view import PANELS

    parser.add_argument("recording", type=Path, help="folder of a run or bag, .mcap or .npz")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="PNG", help="picture to write (default: beside the recording)"
    )
    parser.add_argument(
        "--panels", nargs="+", metavar="PANEL", help=f"which panels to draw: {', '.join(PANELS)} (default: all)"
    )


def main(args: argparse.Namespace) -> int:
    """Read and draw."""
    from bipedsim.analysis import gather
    from bipedsim.view import Thinned, check_panels, plot

    output = output_beside(args.recording, args.output, ".png")
    check_panels(args.panels or ())
    with waiting(f"drawing {output}"):
        run = gather(args.recording, Thinned, Thinned.COLUMNS).recording()
        plot(run, output, **({"panels": args.panels} if args.panels else {}))
    print(f"wrote {output}")
    return 0
