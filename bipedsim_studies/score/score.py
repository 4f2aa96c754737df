"""Rows of a battery to a score, and two of them on the same seeds to their difference."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from bipedsim.errors import ConfigError
from bipedsim_studies.score.battery import POINT, SAME, TEST
from bipedsim_studies.study import wilson

ALL = "all"
MEDIANS = ("velocity_error", "cost_of_transport", "torque_limited_fraction")
"""Figures of which a score has the median of the trials that were a success."""


@dataclass(frozen=True)
class Line:
    """What came out of a test, a group of tests, or all.

    Attributes:
        name, group: Of the test; a group of tests has no group, it is one.
        trials, successes: How many.
        low, high: Wilson's interval of the share of successes at 95 %.
        figures: :data:`MEDIANS` of the successes, None without any.
        failures: What became of the others, and how often.
        beyond: Trials in which the physics was beyond what the contact model promises, successes or not.
    """

    name: str
    group: str
    trials: int
    successes: int
    low: float
    high: float
    figures: Mapping[str, float | None]
    failures: Mapping[str, int]
    beyond: int

    @property
    def share(self) -> float:
        """Share of successes."""
        return self.successes / self.trials


def score(rows: Iterable[Mapping[str, Any]], groups: Mapping[str, str]) -> list[Line]:
    """Return a line for each test of which there are rows, then for each group, then for all.

    In the lines of groups and of all every test counts as much as another one has trials.
    """
    by_test: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_test.setdefault(row[TEST], []).append(row)
    tests = [name for name in groups if name in by_test]
    lines = [_line(name, groups[name], by_test[name]) for name in tests]
    for group in dict.fromkeys(groups[name] for name in tests):
        lines.append(_line(group, "", [row for name in tests if groups[name] == group for row in by_test[name]]))
    return [*lines, _line(ALL, "", [row for name in tests for row in by_test[name]])]


def _line(name: str, group: str, rows: Sequence[Mapping[str, Any]]) -> Line:
    good = [row for row in rows if row["success"]]
    figures: dict[str, float | None] = {}
    for figure in MEDIANS:
        values = [row[figure] for row in good if row.get(figure) is not None]
        figures[figure] = median(values) if values else None
    failures: dict[str, int] = {}
    for row in rows:
        if not row["success"]:
            kind = row["outcome"] if row["outcome"] != "stayed up" else "missed its figures"
            failures[kind] = failures.get(kind, 0) + 1
    beyond = sum(any(row.get(name) for name in row if name.endswith(".steps_beyond")) for row in rows)
    return Line(name, group, len(rows), len(good), *wilson(len(good), len(rows)), figures, failures, beyond)


@dataclass(frozen=True)
class Difference:
    """Two controllers on the same trials.

    Attributes:
        name: Of the test, the group, or all.
        trials: That both have.
        first, second: Successes of each.
        only_first, only_second: Trials in which one alone was successful.
        low, high: Interval of the difference of the shares, first less second, at 95 %.
    """

    name: str
    trials: int
    first: int
    second: int
    only_first: int
    only_second: int
    low: float
    high: float


def compared(ours: Mapping[str, str], theirs: Mapping[str, str], folder: str) -> list[str]:
    """Return what differs beside the controller between two scores, in words.

    Args:
        ours, theirs: Conditions of both, see :func:`bipedsim_studies.score.battery.read_battery`.
        folder: That of the other one, for messages.

    Raises:
        ConfigError: They have no trials in common, as battery or robot differ.
    """
    if not theirs:
        raise ConfigError(f"--against {folder}: it holds no score, or one of an older bipedsim; run that score again")
    differ = {name: f"{name}: {theirs.get(name)} there, {value} here" for name, value in ours.items()}
    differ = {name: text for name, text in differ.items() if theirs.get(name) != ours[name]}
    if any(name in differ for name in SAME):
        text = "it is of other trials, which cannot be compared one by one"
        raise ConfigError(f"--against {folder}: {text}: {'; '.join(differ.values())}")
    return list(differ.values())


def differences(
    first: Iterable[Mapping[str, Any]], second: Iterable[Mapping[str, Any]], groups: Mapping[str, str]
) -> list[Difference]:
    """Return the lines of :func:`score` for what both have tried, trial by trial."""
    ours = {_key(row): bool(row["success"]) for row in first}
    theirs = {_key(row): bool(row["success"]) for row in second}
    pairs: dict[str, list[tuple[bool, bool]]] = {}
    for key in ours:
        if key in theirs:
            for name in (key[0], groups[key[0]], ALL):
                pairs.setdefault(name, []).append((ours[key], theirs[key]))
    names = [name for name in (*groups, *dict.fromkeys(groups.values()), ALL) if name in pairs]
    return [_difference(name, pairs[name]) for name in names]


def _key(row: Mapping[str, Any]) -> tuple[str, int, int]:
    return row[TEST], row[POINT], row["repetition"]


def _difference(name: str, pairs: Sequence[tuple[bool, bool]]) -> Difference:
    both = sum(a and b for a, b in pairs)
    only_first, only_second = sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs)
    neither = len(pairs) - both - only_first - only_second
    low, high = paired_interval(both, only_first, only_second, neither)
    first, second = both + only_first, both + only_second
    return Difference(name, len(pairs), first, second, only_first, only_second, low, high)


def paired_interval(both: int, only_first: int, only_second: int, neither: int) -> tuple[float, float]:
    """Return the interval at 95 % of the difference of two shares that were seen on the same trials.

    Newcombe's method 10 (Statistics in Medicine 17, 1998, p. 2635): Wilson's intervals of both, with their correlation.
    """
    n = both + only_first + only_second + neither
    first, second = both + only_first, both + only_second
    p1, p2 = first / n, second / n
    (l1, u1), (l2, u2) = wilson(first, n), wilson(second, n)
    product = first * (n - first) * second * (n - second)
    cross: float = both * neither - only_first * only_second
    if cross > 0:
        cross = max(cross - n / 2, 0.0)
    phi = cross / math.sqrt(product) if product else 0.0
    down = (p1 - l1) ** 2 - 2.0 * phi * (p1 - l1) * (u2 - p2) + (u2 - p2) ** 2
    up = (u1 - p1) ** 2 - 2.0 * phi * (u1 - p1) * (p2 - l2) + (p2 - l2) ** 2
    return p1 - p2 - math.sqrt(max(down, 0.0)), p1 - p2 + math.sqrt(max(up, 0.0))
