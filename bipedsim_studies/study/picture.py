"""Draw the results of a study over its grid: success rates, or the values found by bisection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from bipedsim.view import FOOT_COLOURS, STYLE, picture
from bipedsim_studies.study.config import StudyPlan
from bipedsim_studies.study.table import GridPoint, points_of, short

BESIDE = 0.5
"""Width of a group of lines over a name, as a fraction of the distance to the next name."""


def plot(plan: StudyPlan, rows: Mapping[int, Mapping[str, Any]], path: Path) -> None:
    """Write a study as .png, .pdf or .svg: over one name of the grid, with a line for each value of the others.

    Raises:
        RecordingError: The figure cannot be written.
    """
    points = points_of(plan, rows)
    x_name = next(filter(lambda name: _numeric(points, name), plan.grid_names), next(iter(plan.grid_names), ""))
    lines: dict[str, list[GridPoint]] = {}
    for point in points:
        others = [
            f"{name.partition('.')[2]} = {short(value)}" for name, value in point.values.items() if name != x_name
        ]
        lines.setdefault(", ".join(others), []).append(point)
    bisected = plan.trials[0].bisect
    title = f"{plan.name}: {plan.description}" if plan.description else plan.name
    with picture(path, (8.0, 5.0), title, STYLE) as figure:
        axes = figure.add_subplot()
        numeric = _numeric(points, x_name)
        names = list(dict.fromkeys(str(point.values.get(x_name, "")) for point in points))
        for i, (label, line) in enumerate(lines.items()):
            offset = BESIDE * (i - 0.5 * (len(lines) - 1)) / len(lines)
            positions = [
                point.values[x_name] if numeric else names.index(str(point.values.get(x_name, ""))) + offset
                for point in line
            ]
            style: dict[str, Any] = {"color": FOOT_COLOURS[i % len(FOOT_COLOURS)], "label": label or None}
            style |= {"fmt": "o-" if numeric else "o", "capsize": 3, "markersize": 4}
            if bisected:
                means = [fmean(point.found) if point.found else nan for point in line]
                spread = [stdev(point.found) if len(point.found) > 1 else 0.0 for point in line]
                axes.errorbar(positions, means, spread, **style)
            else:
                share = [point.successes / point.trials for point in line]
                errors = [(s - min(s, p.low), max(s, p.high) - s) for s, p in zip(share, line, strict=True)]
                axes.errorbar(positions, share, list(zip(*errors, strict=True)), **style)
        if not numeric:
            axes.set_xticks(range(len(names)), names)
        axes.set_xlabel(x_name or "all trials")
        axes.set_ylabel(
            f"{bisected.name}, +- deviation" if bisected else "share of trials with success, 95 % by Wilson"
        )
        if not bisected:
            axes.set_ylim(-0.02, 1.02)
        if len(lines) > 1:
            figure.legend(loc="outside lower left", ncols=2)


def _numeric(points: Sequence[GridPoint], name: str) -> bool:
    values = [point.values.get(name) for point in points]
    return all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
