"""``bipedsim plot``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bipedsim.cli.options import add_span, output_beside
from bipedsim.cli.waiting import waiting
from bipedsim.errors import ConfigError

if TYPE_CHECKING:
    from bipedsim.recording import Recording


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    from bipedsim.view import PANELS, USUAL_PANELS

    parser.add_argument(
        "recording",
        type=Path,
        nargs="+",
        help="folder of a run or bag, .mcap or .npz; several of one "
        "robot are drawn over each other, with a table of the figures that differ",
    )
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
    from bipedsim.view import USUAL_PANELS, panel_names, plot

    first, *others = args.recording
    suffix = f"_with_{'_'.join(_names(others))}.png" if others else ".png"
    output = output_beside(first, args.output, suffix)
    panels = panel_names(args.panels)
    if others:
        return _compare(args, output)
    with waiting(f"drawing {output}"):
        lacking = plot(_read(first, args, panels), output, panels)
    # Of the usual ones most runs lack some.
    for name, why in lacking.items() if args.panels is not USUAL_PANELS else ():
        print(f"bipedsim plot: without {name}: {why}", file=sys.stderr)
    print(f"wrote {output}")
    return 0


def _read(path: Path, args: argparse.Namespace, panels: Sequence[str]) -> Recording:
    """Return the rows that a picture of these panels needs."""
    from bipedsim.analysis import gather
    from bipedsim.view import Thinned, columns_of

    return gather(path, lambda: Thinned(panels), columns_of(panels), start=args.start, stop=args.stop).recording()


def _compare(args: argparse.Namespace, output: Path) -> int:
    """Draw runs over each other, and print in what they differ."""
    from bipedsim.analysis import RunSummary, gather
    from bipedsim.view import overlay, panel_names

    names = _names(args.recording)
    panels = panel_names(args.panels)
    with waiting(f"drawing {output}"):
        runs = {name: _read(path, args, panels) for name, path in zip(names, args.recording, strict=True)}
        summaries = [
            gather(path, RunSummary, RunSummary.COLUMNS, start=args.start, stop=args.stop).figures()
            for path in args.recording
        ]
        lines = overlay(runs, output, args.panels, summaries)
    print("\n".join([*lines, f"wrote {output}"]))
    return 0


def _names(paths: Sequence[Path]) -> list[str]:
    """Return short names of runs that tell them apart.

    Raises:
        ConfigError: A run is named twice.
    """
    whole = [os.path.realpath(path) for path in paths]
    if len(set(whole)) < len(whole):
        raise ConfigError("the same recording is named twice: it differs from itself in nothing")
    names = [Path(path).stem if os.path.isfile(path) else Path(path).name for path in whole]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]
