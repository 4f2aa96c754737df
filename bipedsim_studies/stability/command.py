"""Implement the command ``bipedsim poincare``: fixed point, multipliers, basin and branches of a gait."""

from __future__ import annotations

import argparse
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bipedsim.cli import OF_CONTACT, add_run_option, key_values
from bipedsim.config import to_json
from bipedsim_studies.study import add_options, asked_jobs

if TYPE_CHECKING:
    from bipedsim.numerics import Array
    from bipedsim_studies.stability.basin import Basin
    from bipedsim_studies.stability.continuation import Branch
    from bipedsim_studies.stability.gait import Gait
    from bipedsim_studies.stability.newton import Limit, Stability
    from bipedsim_studies.stability.return_map import ReturnMap


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    add_run_option(parser, "robot", "compass")
    add_run_option(parser, "controller", said="no torques")
    add_run_option(parser, "controller_params")
    add_run_option(parser, "rate", said="one tick per physics step")
    parser.set_defaults(rate=None)
    add_run_option(parser, "ground", said="a slope; it must have one plane")
    parser.add_argument(
        "--slope", type=float, metavar="RAD", help="falls towards +x (default: that of the robot's gait.yaml, or level)"
    )
    for name in OF_CONTACT:
        add_run_option(parser, name)
    add_run_option(parser, "physics_dt", 1e-3)
    parser.add_argument(
        "--refine",
        type=int,
        default=0,
        metavar="N",
        help="halve the physics step N times and extrapolate to none (default: %(default)s)",
    )
    parser.add_argument("--start", metavar="FILE", help="YAML with slope, q and v (default: the robot's gait.yaml)")
    parser.add_argument("--settle", type=int, default=2, metavar="N", help="strides to walk first (default: 2)")
    parser.add_argument("--foot", help="a stride ends when this foot lands (default: steps, mirrored left for right)")
    parser.add_argument("--period", type=float, metavar="S", help="a stride ends after this time, for clocked gaits")
    parser.add_argument("--slopes", nargs=3, metavar=("FROM", "TO", "N"), help="follow the gait over N slopes [rad]")
    parser.add_argument("--basin", type=int, metavar="N", help="follow N random starts around the fixed point")
    parser.add_argument(
        "--width",
        type=float,
        nargs="+",
        default=[0.1],
        metavar="W",
        help="half of their box, for each coordinate or for all [rad, rad/s] (default: %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the starts (default: %(default)s)")
    add_options(parser, piece="the walk from a start")
    parser.add_argument("--plot", type=Path, metavar="PNG", help="write the picture")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON and nothing else")


def main(args: argparse.Namespace) -> int:
    """Find the gait, determine its stability and print the results."""
    from bipedsim.config import checked_seed
    from bipedsim.errors import ConfigError
    from bipedsim_studies.stability.basin import probe
    from bipedsim_studies.stability.families import Steps
    from bipedsim_studies.stability.maps import NoReturnError
    from bipedsim_studies.stability.newton import fixed_point, limit, stability

    checked_seed(args.seed, "--seed")
    gait, slopes = _gait(args), _slopes(args)
    progress = not args.json and sys.stderr.isatty()
    try:
        map = gait.map()
        widths = _widths(args, map)
        point = fixed_point(map, map.centre)
        analysis = stability(map, point)
        small_step_limit = None
        if args.refine:
            steps = [gait.physics_dt / 2**k for k in range(args.refine + 1)]
            small_step_limit = limit(Steps(gait, (map, point.xi)), steps, point.xi)
        basin = None
        if args.basin is not None:
            start = (gait.map, point.xi, widths, args.basin, args.seed)
            basin = probe(*start, asked_jobs(args), progress=progress, scheduler=args.scheduler, limit=args.time_limit)
        branches = _branches(gait, slopes, (map, point.xi), progress) if slopes else []
    except NoReturnError as error:
        raise ConfigError(f"no gait: {error}; start nearer (--start), walk more strides first (--settle)") from error
    if args.json:
        print(to_json(_as_json(map.names, analysis, small_step_limit, basin, branches)))
    else:
        _print(map.names, analysis, small_step_limit, basin, branches)
        if gait.controller is not None:
            print(f"the controller's memory changes the second step by {map.memory(point.xi):.2g}")
    if args.plot:
        from bipedsim_studies.stability.picture import plot

        torques = gait.controller or "no torques"
        title = f"{Path(gait.robot).stem}, {torques}, {gait.contact_model}, h = {gait.physics_dt:g} s"
        plot(args.plot, title, map.names, analysis, basin, branches)
        if not args.json:
            print(f"wrote {args.plot}")
    return 0


def _gait(args: argparse.Namespace) -> Gait:
    from bipedsim.config import from_mapping
    from bipedsim.errors import ConfigError
    from bipedsim_studies.stability.gait import Gait

    if args.rate is not None and not args.rate > 0.0:
        raise ConfigError(f"--rate {args.rate} must be positive")
    if args.refine < 0:
        raise ConfigError(f"--refine {args.refine} must not be negative")
    values = {field.name: getattr(args, field.name) for field in fields(Gait) if hasattr(args, field.name)}
    values["controller_params"] = key_values(args.set, "--set")
    values["contact_params"] = key_values(args.contact_set, "--contact-set")
    return from_mapping(Gait, values | {"control_dt": args.rate and 1.0 / args.rate}, "options")


def _widths(args: argparse.Namespace, map: ReturnMap) -> Array:
    import numpy as np

    from bipedsim.errors import ConfigError

    if len(args.width) not in (1, len(map.names)):
        names = ", ".join(map.names)
        raise ConfigError(f"--width: {len(args.width)} numbers, but the coordinates are {names}; give one or all")
    return np.broadcast_to(np.array(args.width, dtype=np.float64), map.centre.shape)


def _slopes(args: argparse.Namespace) -> list[float]:
    import numpy as np

    from bipedsim.errors import ConfigError

    if args.slopes is None:
        return []
    text = " ".join(args.slopes)
    try:
        first, last, count = float(args.slopes[0]), float(args.slopes[1]), int(args.slopes[2])
    except ValueError as error:
        raise ConfigError(f"--slopes {text}: give two slopes [rad] and a whole number") from error
    if count < 2 or first == last:
        raise ConfigError(f"--slopes {text}: at least two different slopes are needed")
    return [float(slope) for slope in np.linspace(first, last, count)]


def _branches(gait: Gait, slopes: list[float], near: tuple[ReturnMap, Array], progress: bool) -> list[Branch]:
    """Follow the gait over the slopes, and the orbits of two and four times its period if they exist."""
    from bipedsim_studies.stability.continuation import doubled, follow
    from bipedsim_studies.stability.families import Slopes

    family = Slopes(gait, near)
    result = [follow(family, slopes, near[1], label="period 1" if progress else "")]
    while len(result) < 3:
        name = f"period {2 * result[-1].period}" if progress else ""
        branch = doubled(family, result[-1], slopes, name)
        if branch is None:
            break
        result.append(branch)
    return result


def _complex(values: Any) -> list[list[float]]:
    return [[float(value.real), float(value.imag)] for value in values]


def _as_json(
    names: tuple[str, ...],
    analysis: Stability,
    small_step_limit: Limit | None,
    basin: Basin | None,
    branches: list[Branch],
) -> dict[str, Any]:
    result: dict[str, Any] = {
        "coordinates": list(names),
        "fixed_point": analysis.point.xi.tolist(),
        "duration_s": analysis.point.duration,
        "residual": analysis.point.residual,
        "multipliers": _complex(analysis.multipliers),
        "difference_step": analysis.step,
        "step_study": [list(row) for row in analysis.study],
        "verdict": analysis.verdict,
    }
    if small_step_limit is not None:
        result["limit"] = {
            "physics_dt_s": list(small_step_limit.steps),
            "fixed_point": small_step_limit.xi.tolist(),
            "duration_s": small_step_limit.duration,
            "multipliers": _complex(small_step_limit.multipliers),
            "expected_errors": list(small_step_limit.errors),
        }
    if basin is not None:
        result["basin"] = {
            "starts": basin.starts.tolist(),
            "outcome": basin.outcome.tolist(),
            "strides": basin.strides.tolist(),
            "share_home": basin.share,
            "jobs": basin.jobs,
            "ratio_to_one_process": basin.ratio,
        }
    result["branches"] = [
        {
            "period": branch.period,
            "slopes_rad": [orbit.value for orbit in branch.orbits],
            "states": [orbit.states.tolist() for orbit in branch.orbits],
            "largest_modulus": [orbit.stability.radius for orbit in branch.orbits],
            "doublings_rad": branch.doublings,
            "ended": branch.ended,
        }
        for branch in branches
    ]
    return result


def _text(value: complex) -> str:
    return f"{value.real:.5f}" if abs(value.imag) < 1e-9 else f"{value.real:.5f}{value.imag:+.5f}i"


def _print(
    names: tuple[str, ...],
    analysis: Stability,
    small_step_limit: Limit | None,
    basin: Basin | None,
    branches: list[Branch],
) -> None:
    point = analysis.point
    print(f"before the touch-down, after {point.duration:.6f} s; |P(xi) - xi| = {point.residual:.1g}")
    for name, value in zip(names, point.xi, strict=True):
        print(f"  {name:16} {value:12.8f}")
    print(f"multipliers, differences of {analysis.step:g}: {', '.join(_text(value) for value in analysis.multipliers)}")
    for step, change in analysis.study:
        print(f"  {step:7g}: changed by {change:.2g}")
    print(f"{analysis.verdict}: the largest modulus is {analysis.radius:.5f}")
    if small_step_limit is not None:
        print("over the physics step h:")
        for h, stability_at_h in zip(small_step_limit.steps, small_step_limit.found, strict=True):
            values = ", ".join(_text(value) for value in stability_at_h.multipliers)
            print(f"  h = {h:9g} s: {stability_at_h.point.duration:.7f} s, multipliers {values}")
        values = ", ".join(_text(value) for value in small_step_limit.multipliers)
        print(f"  h -> 0:         {small_step_limit.duration:.7f} s, multipliers {values}")
        print(
            "  expected errors: fixed point {:.1g}, duration {:.1g} s, multipliers {:.1g}".format(
                *small_step_limit.errors
            )
        )
    if basin is not None:
        print(
            f"basin: {basin.share:.0%} of {len(basin.starts)} starts come home; {basin.seconds:.1f} s on {basin.jobs} "
            f"processes, {basin.ratio:.2f} times as fast as one"
        )
    for branch in branches:
        slopes = [orbit.value for orbit in branch.orbits]
        print(f"period {branch.period}: {len(slopes)} slopes, {slopes[0]:.5g} to {slopes[-1]:.5g} rad")
        for slope in branch.doublings:
            print(f"  doubles at {slope:.6f} rad")
        if branch.ended:
            print(f"  ends {branch.ended}")
