"""``bipedsim push-map``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bipedsim.cli import add_run_options, run_config
from bipedsim.config import to_json
from bipedsim.runs import SCENARIO_FILES
from bipedsim_studies.study import add_options, asked_jobs

OF_PUSHES = ("scenario", "duration")
"""What the map decides itself."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument(
        "--scenarios",
        nargs="+",
        default=["stand", "walk"],
        metavar="SCENARIO",
        help=f"situations: {', '.join(SCENARIO_FILES)}, or paths of scenario YAMLs (default: stand walk)",
    )
    add_run_options(parser, without=OF_PUSHES)
    parser.set_defaults(controller="zmp")
    parser.add_argument(
        "--directions", type=int, default=4, help="how many, evenly from ahead to the left (default: %(default)s)"
    )
    parser.add_argument(
        "--at",
        type=float,
        metavar="S",
        help="when to push; a walking robot in the middle of its next single support (default: 2 s after the start, "
        "3 s after it began to walk)",
    )
    parser.add_argument("--push-duration", type=float, default=0.1, metavar="S", help="(default: %(default)s)")
    parser.add_argument("--body", default="", help="frame at whose origin the push acts (default: the root link)")
    parser.add_argument(
        "--settle", type=float, default=3.0, metavar="S", help="time to stay up after a push (default: %(default)s)"
    )
    parser.add_argument(
        "--tolerance", type=float, default=0.02, help="of the impulse, as a share of it (default: %(default)s)"
    )
    add_options(parser)
    parser.add_argument("--plot", type=Path, metavar="PNG", help="write the polar picture")
    parser.add_argument("--json", action="store_true", help="print the map as JSON and nothing else")


def main(args: argparse.Namespace) -> int:
    """Search and print."""
    from dataclasses import replace

    from bipedsim.errors import ConfigError
    from bipedsim_studies.push_map.push_map import push_map
    from bipedsim_studies.push_map.trial import PushKind

    jobs = asked_jobs(args)
    given = [name for name in ("at",) if getattr(args, name) is not None]
    for name in ("directions", "push_duration", "settle", "tolerance", *given):
        if not getattr(args, name) > 0:
            raise ConfigError(f"--{name.replace('_', '-')} {getattr(args, name)} must be positive")
    base = run_config(args, without=OF_PUSHES)
    found = push_map(
        [replace(base, scenario=name) for name in args.scenarios],
        PushKind(args.push_duration, args.body, args.settle),
        args.directions,
        args.tolerance,
        args.at,
        jobs,
        progress=not args.json and sys.stderr.isatty(),
        scheduler=args.scheduler,
    )
    if args.json:
        print(to_json(found.as_json()))
    else:
        for i, where in enumerate(found.situations):
            print(f"{where.settings.scenario}: pushed at t = {where.at:g} s, on {' and '.join(where.stance.feet)}")
            for entry in found.directions[i]:
                impulse = entry.found.survived
                bound = "" if not entry.bound else f", {impulse / entry.bound:.0%} of m omega d = {entry.bound:.1f} N.s"
                print(f"  {entry.name:10} {impulse:6.1f} N.s  {impulse / where.stance.mass:6.3f} m/s{bound}")
    if args.plot:
        from bipedsim_studies.push_map.picture import plot

        plot(found, args.plot)
        if not args.json:
            print(f"wrote {args.plot}")
    return 0
