"""The results of a study as a picture: shares of success, or what was bisected, over the grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from bipedsim.view import FOOT_COLOURS, STYLE, picture
from bipedsim_studies.study.config import Plan
from bipedsim_studies.study.table import Point, points_of, short

BESIDE = 0.5
"""Lines over names stand beside each other in this share of the way to the next name."""


def plot(plan: Plan, rows: Mapping[int, Mapping[str, Any]], path: Path) -> None:
    """Draw a study into a .png, .pdf or .svg: over one name of the grid, a line for each value of the others.

    Raises:
        RecordingError: The picture cannot be written.
    """
    points = points_of(plan, rows)
    along = next(filter(lambda name: _numeric(points, name), plan.grid_names), next(iter(plan.grid_names), ""))
    lines: dict[str, list[Point]] = {}
    for point in points:
        others = [f"{name.partition('.')[2]} = {short(value)}" for name, value in point.values.items() if name != along]
        lines.setdefault(", ".join(others), []).append(point)
    bisected = plan.trials[0].bisect
    title = f"{plan.name}: {plan.description}" if plan.description else plan.name
    with picture(path, (8.0, 5.0), title, STYLE) as figure:
        axes = figure.add_subplot()
        numeric = _numeric(points, along)
        names = list(dict.fromkeys(str(point.values.get(along, "")) for point in points))
        for i, (label, line) in enumerate(lines.items()):
            aside = BESIDE * (i - 0.5 * (len(lines) - 1)) / len(lines)
            at = [
                point.values[along] if numeric else names.index(str(point.values.get(along, ""))) + aside
                for point in line
            ]
            style: dict[str, Any] = {"color": FOOT_COLOURS[i % len(FOOT_COLOURS)], "label": label or None}
            style |= {"fmt": "o-" if numeric else "o", "capsize": 3, "markersize": 4}
            if bisected:
                middle = [fmean(point.found) if point.found else nan for point in line]
                spread = [stdev(point.found) if len(point.found) > 1 else 0.0 for point in line]
                axes.errorbar(at, middle, spread, **style)
            else:
                share = [point.successes / point.trials for point in line]
                ends = [(s - min(s, p.low), max(s, p.high) - s) for s, p in zip(share, line, strict=True)]
                axes.errorbar(at, share, list(zip(*ends, strict=True)), **style)
        if not numeric:
            axes.set_xticks(range(len(names)), names)
        axes.set_xlabel(along or "all trials")
        axes.set_ylabel(
            f"{bisected.name}, +- deviation" if bisected else "share of trials with success, 95 % by Wilson"
        )
        if not bisected:
            axes.set_ylim(-0.02, 1.02)
        if len(lines) > 1:
            figure.legend(loc="outside lower left", ncols=2)


def _numeric(points: Sequence[Point], name: str) -> bool:
    values = [point.values.get(name) for point in points]
    return all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
