"""Plot force plates of a run, or test a plate: ``bipedsim plates``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bipedsim.cli.options import add_span, output_beside
from bipedsim.cli.waiting import waiting
from bipedsim.errors import ConfigError
from bipedsim.plates import THRESHOLD


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    files = "folder of a run or bag, .mcap or .npz; a laboratory's .c3d, .mot, .sto, .txt, .csv, .tsv or .forces"
    parser.add_argument("recording", type=Path, nargs="?", metavar="RUN", help=files)
    parser.add_argument("-o", "--output", type=Path, metavar="PNG", help="figure to write (default: next to RUN)")
    parser.add_argument(
        "--threshold",
        type=float,
        default=THRESHOLD,
        metavar="N",
        help="normal force up to which a plate counts as unloaded (default: %(default)g)",
    )
    parser.add_argument(
        "--filter", type=float, metavar="HZ", help="cut-off of a zero-phase low-pass filter of order 4 (default: none)"
    )
    add_span(parser)
    parser.add_argument("--json", action="store_true", help="print only the statistics, as JSON")
    parser.add_argument(
        "--grid",
        metavar="PLATE",
        help="print the CoP errors of a plate under known loads on a grid, instead of a run. PLATE is a model, a file, "
        "or a mapping in braces such as '{model: kistler_9281c, size: [0.6, 0.4]}'",
    )


def main(args: argparse.Namespace) -> int:
    """Read and plot a run, or test a plate on a grid, and print the statistics.

    Raises:
        ConfigError: Neither a run nor a plate was named, or both were.
    """
    if (args.grid is None) == (args.recording is None):
        raise ConfigError("name either a run, or a force plate with --grid", "plates")
    return _grid(args) if args.grid is not None else _run(args)


def _run(args: argparse.Namespace) -> int:
    from bipedsim.analysis import (
        filtered,
        load_plates,
        plate_figures,
        plate_table,
        stood_still,
        sway_figures,
        sway_lines,
    )
    from bipedsim.config import to_json
    from bipedsim.view import plot_plates

    output = output_beside(args.recording, args.output, "_plates.png")
    data = load_plates(args.recording, args.start, args.stop)
    plates = dict(data.plates)
    if args.filter is not None:
        plates = {name: filtered(plate, args.filter) for name, plate in plates.items()}
    figures = plate_figures(plates, data.weight, args.threshold)
    standing = stood_still(plates, args.threshold)
    if not isinstance(standing, str):
        figures["sway"] = sway_figures(*standing)
    with waiting(f"drawing {output}"):
        plot_plates(plates, output, data.recording, args.threshold, str(args.recording))
    for note in data.notes:
        print(f"note: {note}", file=sys.stderr if args.json else sys.stdout)
    if args.json:
        print(to_json(figures))
    else:
        sway = [f"no sway statistics: {standing}"] if isinstance(standing, str) else sway_lines(figures.pop("sway"))
        print("\n".join([*plate_table(figures), *sway, f"wrote {output}"]))
    return 0


def _grid(args: argparse.Namespace) -> int:
    from bipedsim.analysis import grid_lines, grid_test, read_plate
    from bipedsim.config import to_json

    test = grid_test(read_plate(args.grid), cutoff=args.filter)
    print(to_json(test.figures()) if args.json else "\n".join(grid_lines(test)))
    return 0
