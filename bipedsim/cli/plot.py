"""``bipedsim plot``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bipedsim.cli.options import add_span, output_beside
from bipedsim.cli.waiting import waiting


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    from bipedsim.view import PANELS, USUAL_PANELS

    parser.add_argument("recording", type=Path, help="folder of a run or bag, .mcap or .npz")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="picture to write (default: a .png beside the recording)"
    )
    parser.add_argument(
        "--panels",
        nargs="+",
        default=USUAL_PANELS,
        metavar="PANEL",
        help=f"which panels to draw, of {', '.join(PANELS)}, or all (default: {' '.join(USUAL_PANELS)})",
    )
    add_span(parser)


def main(args: argparse.Namespace) -> int:
    """Read and draw."""
    from bipedsim.analysis import gather
    from bipedsim.view import USUAL_PANELS, Thinned, columns_of, panel_names, plot

    output = output_beside(args.recording, args.output, ".png")
    panels = panel_names(args.panels)
    with waiting(f"drawing {output}"):
        columns = columns_of(panels)
        run = gather(args.recording, lambda: Thinned(panels), columns, start=args.start, stop=args.stop).recording()
        lacking = plot(run, output, panels)
    # Of the usual ones most runs lack some.
    for name, why in lacking.items() if args.panels is not USUAL_PANELS else ():
        print(f"bipedsim plot: without {name}: {why}", file=sys.stderr)
    print(f"wrote {output}")
    return 0
