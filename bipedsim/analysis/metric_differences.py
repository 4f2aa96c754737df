"""Comparison of the metrics of several runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from bipedsim.analysis.summary_text import aligned, resolution_of, unit_of

_WIDE = 16
"""Number of characters above which a value is too wide for a column of numbers."""


@dataclass(frozen=True)
class Difference:
    """A metric that differs between runs.

    Attributes:
        name: Key of summary.json; nested keys are joined by a dot: ``fz_N.max``.
        values: The value in each run; None where a run has none.
        apart: For each run but the first, its value minus that of the first; None if one of them is no number.
    """

    name: str
    values: tuple[Any, ...]
    apart: tuple[float | None, ...]


def differences(summaries: Sequence[Mapping[str, Any]]) -> list[Difference]:
    """Return the metrics of ``summaries`` that differ by more than rounding, in order of first occurrence.

    Args:
        summaries: Mappings with the keys of summary.json.
    """
    flat = [_flat(summary) for summary in summaries]
    differing = []
    for name in dict.fromkeys(key for figures in flat for key in figures):
        values = tuple(figures.get(name) for figures in flat)
        step = _resolution(name)
        if any(_differ(values[0], value, step) for value in values[1:]):
            differing.append(Difference(name, values, tuple(_difference_of(values[0], value) for value in values[1:])))
    differ, names = {difference.name for difference in differing}, {name for figures in flat for name in figures}

    def worst_is_same(name: str) -> bool:
        worst = name.removesuffix("at_s") + "worst"
        return name.endswith(".at_s") and worst in names and worst not in differ

    # If the worst value of a monitor differs only by rounding, its time has no meaning.
    return [difference for difference in differing if not worst_is_same(difference.name)]


def difference_lines(differing: Sequence[Difference], runs: Sequence[str]) -> list[str]:
    """Format differences as a table: the value in each of ``runs``, then the differences from the first.

    Long texts, such as outcomes, follow below the table. Without differences, one line says so.
    """
    if not differing:
        return ["all metrics are equal up to rounding"]
    first, *other_runs = runs
    rows = [["", *runs, *(f"{name} - {first}" for name in other_runs)]]
    below: list[str] = []
    for difference in differing:
        if max(len(_text(value)) for value in difference.values) > _WIDE:
            below += [
                difference.name,
                *aligned([[f"  {name}", _text(v)] for name, v in zip(runs, difference.values, strict=True)]),
            ]
            continue
        unit = unit_of(_part_with_unit(difference.name))
        apart = ("-" if value is None else f"{value:+.6g}" for value in difference.apart)
        rows.append(
            [f"{difference.name} [{unit}]" if unit else difference.name, *map(_text, difference.values), *apart]
        )
    return [*(aligned(rows, numbers=True) if len(rows) > 1 else ()), *below]


def _flat(figures: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in figures.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{before}{name}.")
        elif value is not None and value != [] and value != ():
            flat[before + name] = value
    return flat


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, Real) and not isinstance(value, bool) else None


def _difference_of(first: Any, other: Any) -> float | None:
    a, b = _number(first), _number(other)
    return None if a is None or b is None else b - a


def _differ(first: Any, other: Any, step: float) -> bool:
    apart = _difference_of(first, other)
    if apart is None or not math.isfinite(apart):
        return str(first) != str(other)
    return abs(apart) >= step


def _part_with_unit(name: str) -> str:
    """Return the last part of a dotted name that ends in a unit: ``fz_N`` for ``fz_N.max``."""
    return next((part for part in reversed(name.split(".")) if unit_of(part)), "")


def _resolution(name: str) -> float:
    return resolution_of(_part_with_unit(name))


def _text(value: Any) -> str:
    if value is None:
        return "-"
    number = _number(value)
    return str(value) if number is None else f"{number:.6g}"
