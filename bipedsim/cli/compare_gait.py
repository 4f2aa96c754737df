"""Compare gaits of robots and persons: ``bipedsim compare-gait``."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bipedsim.cli.options import names_of, output_beside
from bipedsim.cli.waiting import waiting
from bipedsim.plates import THRESHOLD

if TYPE_CHECKING:
    from bipedsim.analysis import PlateGait


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument(
        "walks",
        type=Path,
        nargs="+",
        metavar="WALK",
        help="runs (folder, .mcap, .npz, .csv) and laboratory files (.c3d, .mot, .csv, ...)",
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="PNG", help="figure to write (default: next to the first WALK)"
    )
    parser.add_argument(
        "--filter", type=float, metavar="HZ", help="cut-off of a zero-phase low-pass filter of order 4 (default: none)"
    )
    parser.add_argument(
        "--threshold",
        type=float,
        default=THRESHOLD,
        metavar="N",
        help="normal force above which a foot is on a plate (default: %(default)g)",
    )
    parser.add_argument(
        "--ahead",
        choices=("x", "-x", "y", "-y"),
        help="walking direction in laboratory files (default: direction of the CoP)",
    )
    parser.add_argument(
        "--weight",
        type=float,
        metavar="N",
        help="weight of a person whose file lacks it (default: mean over the steps)",
    )
    parser.add_argument("--json", action="store_true", help="print only the metrics, as JSON")


def main(args: argparse.Namespace) -> int:
    """Read, draw and print the gaits."""
    from bipedsim.analysis import gait_summary, gait_table
    from bipedsim.config import to_json
    from bipedsim.view import plot_gaits

    output = output_beside(args.walks[0], args.output, "_gait.png")
    gaits = [_gait(args, path, name) for path, name in zip(args.walks, names_of(args.walks), strict=True)]
    with waiting(f"drawing {output}"):
        plot_gaits(gaits, output)
    if args.json:
        print(to_json({str(path): gait_summary(gait) for path, gait in zip(args.walks, gaits, strict=True)}))
    else:
        print("\n".join([*gait_table(gaits), f"wrote {output}"]))
    for note in (note for gait in gaits for note in gait.notes):
        print(f"note: {note}", file=sys.stderr)
    return 0


def _gait(args: argparse.Namespace, path: Path, name: str) -> PlateGait:
    """Return the gait in a file; a run without force plates gets an ideal one for each foot."""
    from bipedsim.analysis import filtered, find_gait, ideal_plates, load_plates, load_run
    from bipedsim.recording.lab import is_trial

    ahead, weight, notes = "", float("nan"), tuple[str, ...]()
    if is_trial(path):
        data = load_plates(path)
        plates, notes = list(data.plates.values()), tuple(f"{name}: {note}" for note in data.notes)
        ahead, weight = args.ahead or "", args.weight if args.weight is not None else weight
    else:
        run = load_run(path)
        plates, weight = list(run.force_plates.values()) or list(ideal_plates(run)), run.weight
    if args.filter is not None:
        plates = [filtered(plate, args.filter) for plate in plates]
    gait = find_gait(name, plates, weight, ahead, args.threshold)
    return replace(gait, notes=(*notes, *gait.notes))
