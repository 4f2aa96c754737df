"""Implement the command ``bipedsim push-map``: the largest push that a robot recovers from."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bipedsim.cli import add_run_options, run_config
from bipedsim.config import to_json
from bipedsim.runs import SCENARIO_FILES
from bipedsim_studies.study import add_options, asked_jobs

if TYPE_CHECKING:
    from bipedsim_studies.push_map.push_map import PushMap

OF_PUSHES = ("scenario", "duration")
"""Options of a run that the push map sets itself."""


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
    parser.add_argument(
        "--phases",
        type=int,
        default=0,
        metavar="N",
        help="push a walking robot at N phases of its step, and say what steps could catch in theory (default: in the "
        "middle of single support)",
    )
    parser.add_argument(
        "--step-time",
        type=float,
        default=0.15,
        metavar="S",
        help="shortest time of a step in that theory (default: %(default)s)",
    )
    parser.add_argument(
        "--foot-speed",
        type=float,
        default=2.0,
        metavar="M/S",
        help="largest mean speed of a foot over the ground in it (default: %(default)s)",
    )
    parser.add_argument("--push-duration", type=float, default=0.1, metavar="S", help="(default: %(default)s)")
    parser.add_argument("--body", default="", help="frame at whose origin the push acts (default: the root link)")
    parser.add_argument(
        "--settle", type=float, default=3.0, metavar="S", help="time to stay up after a push (default: %(default)s)"
    )
    parser.add_argument(
        "--tolerance", type=float, default=0.02, help="of the impulse, as a share of it (default: %(default)s)"
    )
    add_options(parser, piece="the search in a direction")
    parser.add_argument("--plot", type=Path, metavar="PNG", help="write the polar picture")
    parser.add_argument("--json", action="store_true", help="print the map as JSON and nothing else")


def main(args: argparse.Namespace) -> int:
    """Search the largest pushes and print them."""
    from dataclasses import replace

    from bipedsim.errors import ConfigError
    from bipedsim_studies.push_map.push_map import push_map
    from bipedsim_studies.push_map.steps import StepLimits
    from bipedsim_studies.push_map.trial import PushKind

    jobs = asked_jobs(args)
    options = [name for name in ("at",) if getattr(args, name) is not None]
    if args.phases < 0:
        raise ConfigError(f"--phases {args.phases} must be positive, or 0 for the middle of single support")
    for name in ("directions", "push_duration", "settle", "tolerance", "step_time", "foot_speed", *options):
        if not getattr(args, name) > 0:
            raise ConfigError(f"--{name.replace('_', '-')} {getattr(args, name)} must be positive")
    base = run_config(args, without=OF_PUSHES)
    result = push_map(
        [replace(base, scenario=name) for name in args.scenarios],
        PushKind(args.push_duration, args.body, args.settle),
        args.directions,
        args.tolerance,
        args.at,
        jobs,
        progress=not args.json and sys.stderr.isatty(),
        scheduler=args.scheduler,
        phases=args.phases,
        limits=StepLimits(args.step_time, args.foot_speed),
        time_limit=args.time_limit,
    )
    if args.json:
        print(to_json(result.as_json()))
    else:
        for line in lines_of(result):
            print(line)
    if args.plot:
        from bipedsim_studies.push_map.picture import plot

        plot(result, args.plot)
        if not args.json:
            print(f"wrote {args.plot}")
    return 0


def lines_of(result: PushMap) -> Iterator[str]:
    """Yield the lines that the command prints for a push map."""
    minima: dict[str, tuple[float, float, str]] = {}
    for i, situation in enumerate(result.situations):
        phase = f" at {situation.phase:.0%} of the step" if math.isfinite(situation.phase) else ""
        scenario, stance = situation.settings.scenario, situation.stance
        yield f"{scenario}: pushed at t = {situation.at:g} s{phase}, on {' and '.join(stance.feet)}"
        for entry in result.directions[i]:
            impulse = entry.threshold.survived
            line = f"  {entry.name:10} {impulse:6.1f} N.s  {impulse / stance.mass:6.3f} m/s"
            if entry.bound:
                line += f", {impulse / entry.bound:.0%} of m omega d = {entry.bound:.1f} N.s"
            if entry.capture is not None:
                share = result.share(i, impulse)
                line += f", J / (m omega L) = {share:.3f} of {result.share(i, entry.capture):.3f} that steps can catch"
                candidate = share, situation.phase, entry.name
                minima[scenario] = min(minima.get(scenario, candidate), candidate)
            yield line
    for scenario, (share, at, name) in minima.items():
        yield f"{scenario}: least J / (m omega L) = {share:.3f}, {name}, at {at:.0%} of the step"
