"""The results of a study in words and numbers: a line for each point of the grid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from bipedsim.analysis import aligned
from bipedsim.errors import some
from bipedsim_studies.study.config import Plan
from bipedsim_studies.study.results import wilson
from bipedsim_studies.study.trial import FAILED

WORST = 5
"""Errors that are named."""


@dataclass(frozen=True)
class Point:
    """What came out at one point of the grid.

    Attributes:
        values: Name to value, of what makes up the grid.
        trials, successes: How many.
        low, high: Wilson's interval of the share at 95 %.
        outcomes: What became of the trials, and how often.
        found: The bisected number in the trials that had a success.
    """

    values: Mapping[str, Any]
    trials: int
    successes: int
    low: float
    high: float
    outcomes: Mapping[str, int]
    found: Sequence[float]


def points_of(plan: Plan, rows: Mapping[int, Mapping[str, Any]]) -> list[Point]:
    """Return the points of the grid of which there are rows."""
    groups: dict[int, list[Mapping[str, Any]]] = {}
    for i in sorted(rows):
        groups.setdefault(rows[i]["point"], []).append(rows[i])
    bisected = plan.trials[0].bisect
    points = []
    for _, group in sorted(groups.items()):
        successes = sum(row["success"] for row in group)
        found = [row[bisected.name] for row in group if row["success"]] if bisected else []
        values = {name: group[0][name] for name in plan.grid_names}
        outcomes = Counter(row["outcome"] for row in group)
        points.append(Point(values, len(group), successes, *wilson(successes, len(group)), outcomes, found))
    return points


def lines_of(plan: Plan, rows: Mapping[int, Mapping[str, Any]]) -> list[str]:
    """Return the table of a study, and what went wrong in it."""
    bisected = plan.trials[0].bisect
    heads = [*plan.grid_names, "trials", "success", "95 %"] + ([bisected.name] if bisected else []) + ["what happened"]
    body = []
    for point in points_of(plan, rows):
        share = point.successes / point.trials
        found = []
        if bisected:
            spread = f" +- {stdev(point.found):.2g}" if len(point.found) > 1 else ""
            found = [f"{fmean(point.found):.4g}{spread}" if point.found else "-"]
        happened = ", ".join(f"{count} {name}" for name, count in sorted(point.outcomes.items()))
        shares = [f"{share:.1%}", f"{point.low:.1%} to {point.high:.1%}"]
        body.append([*map(short, point.values.values()), str(point.trials), *shares, *found, happened])
    return [*aligned([heads, *body]), *error_lines(rows.values()), *same_lines(rows.values())]


def error_lines(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return what went wrong in trials that gave no result: each error once, with the trials in which it occurred."""
    groups: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        if row["outcome"] in FAILED:
            groups.setdefault((row["outcome"], row["why"]), []).append(row["trial"])
    ranked = sorted(groups.items(), key=lambda item: (-len(item[1]), item[1]))
    lines = []
    for (outcome, why), trials in ranked[:WORST]:
        listed = some([str(trial) for trial in sorted(trials)])
        lines.append(f"{outcome} in {len(trials)} trial{'s' * (len(trials) > 1)} ({listed}): {why}")
    if len(ranked) > WORST:
        count = sum(len(trials) for _, trials in ranked[WORST:])
        lines.append(f"and {len(ranked) - WORST} other errors in {count} trials: see the column why of the table")
    return lines


def same_lines(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a warning if repetitions of a point are the same run, so that their interval says nothing."""
    points: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["outcome"] not in FAILED:
            points.setdefault(row["point"], []).append(row)
    same = sum(len(group) > 1 and len({_figures(row) for row in group}) == 1 for group in points.values())
    if not same:
        return []
    where = f"at {same} of {len(points)} points all repetitions have the same figures"
    way_out = "vary something by a distribution, or take hardware with noise"
    return [f"warning: {where}, and their intervals mean nothing; {way_out}"]


def _figures(row: Mapping[str, Any]) -> str:
    return repr(sorted((name, value) for name, value in row.items() if name not in _NUMBERS))


_NUMBERS = ("trial", "repetition", "seed")


def short(value: Any) -> str:
    """Return a value of the grid in few characters."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
