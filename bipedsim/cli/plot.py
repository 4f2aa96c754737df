"""Plot recordings: ``bipedsim plot``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bipedsim.cli.options import add_span, named_with, names_of, output_beside
from bipedsim.cli.waiting import waiting

if TYPE_CHECKING:
    from bipedsim.recording import Recording

INSTEAD = dict.fromkeys(("--html", "--format"), "-o FILE.html writes an interactive figure")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    from bipedsim.view import PANELS, USUAL_PANELS

    parser.add_argument(
        "recording",
        type=Path,
        nargs="+",
        help="folder of a run or bag, .mcap, .npz or .csv; several runs "
        "of one robot are plotted in the same axes, with a table of the metrics that differ",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help=".png, .pdf, .svg, or .html for an interactive figure with linked zoom and values under the cursor "
        "(default: a .png next to the recording)",
    )
    parser.add_argument(
        "--panels",
        nargs="+",
        default=USUAL_PANELS,
        metavar="PANEL",
        help=f"panels to plot: {', '.join(PANELS)}, or all (default: {' '.join(USUAL_PANELS)})",
    )
    add_span(parser)


def main(args: argparse.Namespace) -> int:
    """Read recordings and plot them."""
    from bipedsim.view import USUAL_PANELS, panel_names, plot

    first, *others = args.recording
    output = output_beside(first, args.output, f"{named_with(others)}.png")
    panels = panel_names(args.panels)
    if others:
        return _compare(args, output)
    with waiting(f"drawing {output}"):
        # Constant readouts are drawn only if the user names the panel.
        named = args.panels is not USUAL_PANELS and "readouts" in ",".join(args.panels).split(",")
        missing = plot(_read(first, args, panels), output, panels, constants=named)
    # Most runs lack some of the default panels, which needs no message.
    for name, why in missing.items() if args.panels is not USUAL_PANELS else ():
        print(f"bipedsim plot: without {name}: {why}", file=sys.stderr)
    print(f"wrote {output}")
    return 0


def _read(path: Path, args: argparse.Namespace, panels: Sequence[str]) -> Recording:
    """Return the rows that a plot of these panels needs."""
    from bipedsim.analysis import gather
    from bipedsim.view import Thinned, columns_of

    return gather(path, lambda: Thinned(panels), columns_of(panels), start=args.start, stop=args.stop).recording()


def _compare(args: argparse.Namespace, output: Path) -> int:
    """Plot runs in the same axes and print the differences."""
    from bipedsim.analysis import RunSummary, gather
    from bipedsim.view import overlay, panel_names

    names = names_of(args.recording)
    panels = panel_names(args.panels)
    whole = args.start is args.stop is None
    with waiting(f"drawing {output}"):
        runs = {name: _read(path, args, panels) for name, path in zip(names, args.recording, strict=True)}
        summaries = [
            gather(path, lambda: RunSummary(whole), RunSummary.COLUMNS, start=args.start, stop=args.stop).figures()
            for path in args.recording
        ]
        lines = overlay(runs, output, args.panels, summaries)
    print("\n".join([*lines, f"wrote {output}"]))
    return 0
