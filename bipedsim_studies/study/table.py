"""Format the results of a study: one line per grid point."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from bipedsim.analysis import aligned
from bipedsim.errors import some
from bipedsim_studies.study.config import StudyPlan
from bipedsim_studies.study.results import wilson
from bipedsim_studies.study.trial import FAILED

WORST = 5
"""Maximum number of different errors that are listed."""


@dataclass(frozen=True)
class GridPoint:
    """Results at one grid point.

    Attributes:
        values: Value of each name that forms the grid.
        trials, successes: Number of trials and successes.
        low, high: Wilson's interval of the success rate at 95 %.
        outcomes: Number of trials with each outcome.
        found: Bisected number of each successful trial.
    """

    values: Mapping[str, Any]
    trials: int
    successes: int
    low: float
    high: float
    outcomes: Mapping[str, int]
    found: Sequence[float]


def points_of(plan: StudyPlan, rows: Mapping[int, Mapping[str, Any]]) -> list[GridPoint]:
    """Return the grid points that have rows."""
    groups: dict[int, list[Mapping[str, Any]]] = {}
    for i in sorted(rows):
        groups.setdefault(rows[i]["point"], []).append(rows[i])
    bisected = plan.trials[0].bisect
    points = []
    for _, group in sorted(groups.items()):
        successes = sum(row["success"] for row in group)
        bisected_values = [row[bisected.name] for row in group if row["success"]] if bisected else []
        values = {name: group[0][name] for name in plan.grid_names}
        outcomes = Counter(row["outcome"] for row in group)
        points.append(
            GridPoint(values, len(group), successes, *wilson(successes, len(group)), outcomes, bisected_values)
        )
    return points


def lines_of(plan: StudyPlan, rows: Mapping[int, Mapping[str, Any]]) -> list[str]:
    """Return the table of a study, followed by errors and warnings."""
    bisected = plan.trials[0].bisect
    heads = [*plan.grid_names, "trials", "success", "95 %"] + ([bisected.name] if bisected else []) + ["what happened"]
    body = []
    for point in points_of(plan, rows):
        share = point.successes / point.trials
        bisected_cells = []
        if bisected:
            spread = f" +- {stdev(point.found):.2g}" if len(point.found) > 1 else ""
            bisected_cells = [f"{fmean(point.found):.4g}{spread}" if point.found else "-"]
        outcome_text = ", ".join(f"{count} {name}" for name, count in sorted(point.outcomes.items()))
        shares = [f"{share:.1%}", f"{point.low:.1%} to {point.high:.1%}"]
        body.append([*map(short, point.values.values()), str(point.trials), *shares, *bisected_cells, outcome_text])
    return [*aligned([heads, *body]), *error_lines(rows.values()), *same_lines(rows.values())]


def error_lines(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the errors of trials without a result. Each error is listed once with its trials."""
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
    """Return a warning if all repetitions at a point are identical, which makes their interval meaningless."""
    points: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["outcome"] not in FAILED:
            points.setdefault(row["point"], []).append(row)
    identical = sum(len(group) > 1 and len({_figures(row) for row in group}) == 1 for group in points.values())
    if not identical:
        return []
    description = f"all repetitions are identical at {identical} of {len(points)} points"
    remedy = "draw a parameter from a distribution, or use hardware with noise"
    return [f"warning: {description}, so their intervals are meaningless; {remedy}"]


def _figures(row: Mapping[str, Any]) -> str:
    return repr(sorted((name, value) for name, value in row.items() if name not in _NUMBERS))


_NUMBERS = ("trial", "repetition", "seed")


def short(value: Any) -> str:
    """Return a short text for a grid value."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
