"""Implement the command ``bipedsim push-map``: the largest push that a robot recovers from."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from bipedsim_studies.study import add_output, add_parallel, add_settings, in_settings, output, parallel, read_settings

if TYPE_CHECKING:
    from bipedsim_studies.push_map.push_map import PushMap
    from bipedsim_studies.push_map.trial import Situation

OPTIONS = ("run.robot", "run.controller", "scenarios", "hardware")
INSTEAD = in_settings(
    *("run.ground", "run.contact_model", "run.controller_params"),
    *("directions", "at", "phases", "tolerance", "time_limit"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    from bipedsim_studies.push_map.settings import PushMapSettings

    add_settings(parser, PushMapSettings, OPTIONS, "docs/push_map.md")
    add_parallel(parser)
    add_output(parser)


def main(args: argparse.Namespace) -> int:
    """Search the largest pushes and print them."""
    from bipedsim_studies.push_map.push_map import push_map
    from bipedsim_studies.push_map.settings import PushMapSettings

    def draw(path: Path) -> None:
        from bipedsim_studies.push_map.picture import plot

        plot(result, path)

    settings = read_settings(args, PushMapSettings, OPTIONS)
    result = push_map(settings, parallel(args, settings.time_limit))
    output(args, result.as_json, lambda: "\n".join(lines_of(result)), draw)
    return 0


def lines_of(result: PushMap) -> Iterator[str]:
    """Yield the lines that the command prints for a push map."""
    from bipedsim_studies.push_map.push_map import SYMBOLS

    run, kind = result.situations[0].settings, result.kind
    yield (
        f"{run.robot} with controller {run.controller}: largest push that it recovers from, for {kind.duration:g} s at "
        f"{kind.body or 'the root link'}, as impulse and as change of the CoM velocity"
    )
    for places in result.variants():
        if len(places) > 1:
            yield from _range_lines(result, places)
            continue
        i, situation = places[0], result.situations[places[0]]
        scenario, stance = situation.settings.scenario, situation.stance
        yield f"{scenario}: pushed at t = {situation.at:g} s{_phase(situation)}, on {' and '.join(stance.feet)}"
        for entry in result.directions[i]:
            impulse = entry.threshold.survived
            line = f"  {entry.name:10} {impulse:6.1f} N.s  {impulse / stance.mass:6.3f} m/s"
            if entry.bound:
                line += f", {impulse / entry.bound:.0%} of m omega d = {entry.bound:.1f} N.s"
            if entry.capture is not None:
                share = result.share(i, impulse)
                line += f", J / (m omega L) = {share:.3f} of {result.share(i, entry.capture):.3f} that steps can catch"
            yield line
    if any(entry.bound for entries in result.directions.values() for entry in entries):
        yield f"m omega d: theoretical limit if the feet do not move. {'; '.join(SYMBOLS).replace('ω', 'omega')}"
    minima: dict[str, tuple[float, float, str]] = {}
    for i, situation in enumerate(result.situations):
        for entry in result.directions[i]:
            if entry.capture is not None:
                candidate = result.share(i, entry.threshold.survived), situation.phase, entry.name
                scenario = situation.settings.scenario
                minima[scenario] = min(minima.get(scenario, candidate), candidate)
    for scenario, (share, at, name) in minima.items():
        yield f"{scenario}: least J / (m omega L) = {share:.3f}, {name}, at {at:.0%} of the step"


def _phase(situation: Situation) -> str:
    return f" at {situation.phase:.0%} of the step" if math.isfinite(situation.phase) else ""


def _range_lines(result: PushMap, places: Sequence[int]) -> Iterator[str]:
    """Yield the lines of situations that differ only in the hardware."""
    first = result.situations[places[0]]
    begins = [result.situations[i].at for i in places]
    at = " to ".join(dict.fromkeys(f"{time:g}" for time in (min(begins), max(begins))))
    feet = " and ".join(first.stance.feet)
    yield f"{first.settings.scenario}: pushed at t = {at} s{_phase(first)}, on {feet}; {len(places)} robots"
    masses = [result.situations[i].stance.mass for i in places]
    for entries in result.across(places):
        impulses = [entry.threshold.survived for entry in entries]
        least, most = min(impulses), max(impulses)
        velocities = [impulse / mass for impulse, mass in zip(impulses, masses, strict=True)]
        line = f"  {entries[0].name:10} {least:6.1f} to {most:6.1f} N.s, median {median(impulses):6.1f}"
        line += f"  {min(velocities):6.3f} to {max(velocities):6.3f} m/s"
        for limit, text in (("bound", "m omega d"), ("capture", "the impulse that steps can catch")):
            limits = [getattr(entry, limit) for entry in entries]
            if all(limits):
                shares = [impulse / each for impulse, each in zip(impulses, limits, strict=True)]
                line += f", {min(shares):.0%} to {max(shares):.0%} of {text}"
        yield line + f"; least with {result.situations[places[impulses.index(least)]].settings.hardware}"
