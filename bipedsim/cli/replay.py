"""``bipedsim replay``."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("step", type=Path, help="the .npz that a run has kept when a monitor of the physics spoke")
    parser.add_argument("--json", action="store_true", help="print the figures of all monitors as JSON only")


def main(args: argparse.Namespace) -> int:
    """Take the step again and print what each contact model made of it.

    Raises:
        BipedSimError: The file holds no step.
    """
    from bipedsim.config import to_json
    from bipedsim.runs import replay_step

    done = replay_step(args.step)
    if args.json:
        print(to_json({one.model: {**one.figures, "fastest": one.fastest, "modes": one.modes} for one in done}))
        return 0
    print(f"{'':20} {'contact work':>14} {'largest |v|':>12} {'normal force':>13}  modes")
    for one in done:
        work = one.figures["contact_work_J"]["worst"]
        modes = " + ".join(one.modes) + (" (unresolved)" if one.unresolved else "")
        print(f"{one.model:20} {work:12.4g} J {one.fastest:12.4g} {one.force.sum():11.4g} N  {modes}")
        for said in one.violated:
            print(f"    {said}")
    return 0
