"""Implement the command ``bipedsim poincare``: fixed point, multipliers, basin and branches of a gait."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bipedsim_studies.study import (
    add_output,
    add_parallel,
    add_settings,
    in_settings,
    output,
    parallel,
    read_settings,
    shows_progress,
)

if TYPE_CHECKING:
    from bipedsim.numerics import Array
    from bipedsim_studies.stability.basin import Basin
    from bipedsim_studies.stability.continuation import Branch
    from bipedsim_studies.stability.newton import Limit, Stability
    from bipedsim_studies.stability.return_map import ReturnMap
    from bipedsim_studies.stability.settings import PoincareSettings

OPTIONS = ("robot",)
INSTEAD = in_settings(
    *("ground", "slope", "controller", "controller_params", "physics_dt", "start"),
    *("refine", "slopes", "basin", "width", "time_limit"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    from bipedsim_studies.stability.settings import PoincareSettings

    add_settings(parser, PoincareSettings, OPTIONS, "docs/stability.md")
    add_parallel(parser)
    add_output(parser)


def main(args: argparse.Namespace) -> int:
    """Find the gait, determine its stability and print the results."""
    from bipedsim.errors import ConfigError
    from bipedsim_studies.stability.basin import probe
    from bipedsim_studies.stability.families import StepFamily
    from bipedsim_studies.stability.maps import NoReturnError
    from bipedsim_studies.stability.newton import fixed_point, limit, stability
    from bipedsim_studies.stability.settings import PoincareSettings

    gait = read_settings(args, PoincareSettings, OPTIONS)
    work = parallel(args, gait.time_limit)
    try:
        map = gait.map()
        widths = _widths(gait.width, map)
        point = fixed_point(map, map.centre)
        analysis = stability(map, point)
        small_step_limit = None
        if gait.refine:
            steps = [gait.physics_dt / 2**k for k in range(gait.refine + 1)]
            small_step_limit = limit(StepFamily(gait, (map, point.xi)), steps, point.xi)
        basin = None
        if gait.basin is not None:
            basin = probe(gait.map, point.xi, widths, gait.basin, gait.seed, work)
        branches = _branches(gait, (map, point.xi), shows_progress(args))
    except NoReturnError as error:
        raise ConfigError(f"no gait: {error}; choose a `start` nearer to it, or a longer `settle`") from error
    results = map.names, analysis, small_step_limit, basin, branches

    def text() -> str:
        lines = [*_lines(*results)]
        if gait.controller is not None:
            lines.append(f"the controller's memory changes the second step by {map.memory(point.xi):.2g}")
        return "\n".join(lines)

    def draw(path: Path) -> None:
        from bipedsim_studies.stability.picture import plot

        torques = gait.controller or "no torques"
        title = f"{Path(gait.robot).stem}, {torques}, {gait.contact_model}, h = {gait.physics_dt:g} s"
        plot(path, title, map.names, analysis, basin, branches)

    output(args, lambda: _as_json(*results), text, draw)
    return 0


def _widths(width: tuple[float, ...], map: ReturnMap) -> Array:
    import numpy as np

    from bipedsim.errors import ConfigError

    if len(width) not in (1, len(map.names)):
        names = ", ".join(map.names)
        raise ConfigError(f"{len(width)} numbers, but the coordinates are {names}; give one or all", "width")
    return np.broadcast_to(np.array(width), map.centre.shape)


def _branches(gait: PoincareSettings, near: tuple[ReturnMap, Array], progress: bool) -> list[Branch]:
    """Follow the gait over the slopes, and the orbits of two and four times its period if they exist."""
    from bipedsim_studies.stability.continuation import doubled, follow
    from bipedsim_studies.stability.families import SlopeFamily

    slopes = gait.slope_values()
    if not slopes:
        return []
    family = SlopeFamily(gait, near)
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


def _lines(
    names: tuple[str, ...],
    analysis: Stability,
    small_step_limit: Limit | None,
    basin: Basin | None,
    branches: list[Branch],
) -> Iterator[str]:
    point = analysis.point
    yield f"before the touch-down, after {point.duration:.6f} s; |P(xi) - xi| = {point.residual:.1g}"
    for name, value in zip(names, point.xi, strict=True):
        yield f"  {name:16} {value:12.8f}"
    yield f"multipliers, differences of {analysis.step:g}: {', '.join(_text(value) for value in analysis.multipliers)}"
    for step, change in analysis.study:
        yield f"  {step:7g}: changed by {change:.2g}"
    yield f"{analysis.verdict}: the largest modulus is {analysis.radius:.5f}"
    if small_step_limit is not None:
        yield "over the physics step h:"
        for h, stability_at_h in zip(small_step_limit.steps, small_step_limit.found, strict=True):
            values = ", ".join(_text(value) for value in stability_at_h.multipliers)
            yield f"  h = {h:9g} s: {stability_at_h.point.duration:.7f} s, multipliers {values}"
        values = ", ".join(_text(value) for value in small_step_limit.multipliers)
        yield f"  h -> 0:         {small_step_limit.duration:.7f} s, multipliers {values}"
        errors = small_step_limit.errors
        yield "  expected errors: fixed point {:.1g}, duration {:.1g} s, multipliers {:.1g}".format(*errors)
    if basin is not None:
        yield (
            f"basin: {basin.share:.0%} of {len(basin.starts)} starts converge; {basin.seconds:.1f} s on {basin.jobs} "
            f"processes, {basin.ratio:.2f} times as fast as one"
        )
    for branch in branches:
        slopes = [orbit.value for orbit in branch.orbits]
        yield f"period {branch.period}: {len(slopes)} slopes, {slopes[0]:.5g} to {slopes[-1]:.5g} rad"
        for slope in branch.doublings:
            yield f"  doubles at {slope:.6f} rad"
        if branch.ended:
            yield f"  ends {branch.ended}"
