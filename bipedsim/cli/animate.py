"""Draw the moving robot of a run: ``bipedsim animate``."""

from __future__ import annotations

import argparse
from pathlib import Path

from bipedsim.cli.options import add_recorded, add_span, output_beside
from bipedsim.cli.waiting import waiting

AROUND = 1.0
"""Additional time to read before and after the shown span [s]."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("recording", type=Path, metavar="RUN", help="bag folder, .mcap, .npz or .csv")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help=".gif, .mp4 (needs ffmpeg), or .png for a strip of postures (default: a .gif next to the recording)",
    )
    parser.add_argument("--view", default="side", help="side, front, both or 3d (default: %(default)s)")
    parser.add_argument(
        "--speed", type=float, default=1.0, metavar="S", help="simulated seconds per second (default: %(default)s)"
    )
    add_span(parser)
    parser.add_argument(
        "--postures",
        type=int,
        default=8,
        metavar="N",
        help="number of postures in a strip, at equal intervals (default: 8)",
    )
    add_recorded(parser)


def main(args: argparse.Namespace) -> int:
    """Read a run and draw the animation."""
    from bipedsim.analysis import load_run
    from bipedsim.ground import get_ground
    from bipedsim.model import load_robot
    from bipedsim.view.animation import animate, check_output

    output = output_beside(args.recording, args.output, ".gif")
    check_output(output)
    # The first and the last frame may show a row just outside the span.
    begin, end = (None if t is None else t + margin for t, margin in ((args.start, -AROUND), (args.stop, AROUND)))
    with waiting(f"drawing {output}"):
        frames = animate(
            load_run(args.recording, -1, begin, end),
            output,
            robot=load_robot(args.robot) if args.robot else None,
            ground=get_ground(args.ground) if args.ground else None,
            view=args.view,
            speed=args.speed,
            start=args.start,
            stop=args.stop,
            postures=args.postures,
            progress=True,
        )
    print(f"wrote {output}: {frames} {'postures' if output.suffix == '.png' else 'frames'}")
    return 0
