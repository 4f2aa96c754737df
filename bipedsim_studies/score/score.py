"""Compute the score of a battery from its rows, and the paired difference of two scores."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from types import MappingProxyType
from typing import Any

from bipedsim.errors import ConfigError
from bipedsim_studies.score.battery import POINT, SAME, TEST
from bipedsim_studies.study import STOOD, meets, wilson

ALL = "all"
MEDIANS = ("velocity_error", "cost_of_transport", "torque_limited_fraction")
"""Metrics whose median over the successful trials is part of a score."""


@dataclass(frozen=True)
class MissedFigure:
    """A metric that missed the limits of a success.

    Attributes:
        name: Name of the metric.
        limits: Required value, or its lowest and highest value, None without a limit.
        values: Value of each trial that missed.
    """

    name: str
    limits: Any
    values: tuple[Any, ...]


@dataclass(frozen=True)
class ScoreLine:
    """Score of a test, of a group of tests, or of all tests.

    Attributes:
        name, group: Name of the test and its group. The line of a group has an empty ``group``.
        trials, successes: Number of trials and successes.
        low, high: Wilson's interval of the success rate at 95 %; None for a single trial.
        figures: Medians of :data:`MEDIANS` over the successful trials; None without any.
        failures: Number of failed trials with each outcome.
        missed: Metrics beyond their limits in trials in which the robot stayed up. Only a test has them, because tests
            have limits of their own.
        beyond: Number of trials in which the physics exceeded the limits of the contact model, successful or not.
    """

    name: str
    group: str
    trials: int
    successes: int
    low: float | None
    high: float | None
    figures: Mapping[str, float | None]
    failures: Mapping[str, int]
    missed: tuple[MissedFigure, ...]
    beyond: int

    @property
    def share(self) -> float:
        """Success rate."""
        return self.successes / self.trials


def score(
    rows: Iterable[Mapping[str, Any]], groups: Mapping[str, str], limits: Mapping[str, Mapping[str, Any]]
) -> list[ScoreLine]:
    """Return a line for each test with rows, for each group, and for all tests.

    In the lines of groups and of all tests, each test has a weight proportional to its number of trials.

    Args:
        rows: Results of the trials.
        groups: Group of each test by its name.
        limits: Conditions of a success of each test by its name.
    """
    by_test: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_test.setdefault(row[TEST], []).append(row)
    tests = [name for name in groups if name in by_test]
    lines = [_line(name, groups[name], by_test[name], limits.get(name, {})) for name in tests]
    for group in dict.fromkeys(groups[name] for name in tests):
        lines.append(_line(group, "", [row for name in tests if groups[name] == group for row in by_test[name]]))
    return [*lines, _line(ALL, "", [row for name in tests for row in by_test[name]])]


def _line(
    name: str, group: str, rows: Sequence[Mapping[str, Any]], limits: Mapping[str, Any] = MappingProxyType({})
) -> ScoreLine:
    successful = [row for row in rows if row["success"]]
    figures: dict[str, float | None] = {}
    for figure in MEDIANS:
        values = [row[figure] for row in successful if row.get(figure) is not None]
        figures[figure] = median(values) if values else None
    failures: dict[str, int] = {}
    for row in rows:
        if not row["success"]:
            kind = row["outcome"] if row["outcome"] != STOOD else "missed its figures"
            failures[kind] = failures.get(kind, 0) + 1
    low, high = wilson(len(successful), len(rows)) if len(rows) > 1 else (None, None)
    stood = [row for row in rows if row["outcome"] == STOOD and not row["success"]]
    missed = []
    for figure, wanted in limits.items():
        if beyond_limits := tuple(row[figure] for row in stood if not meets(row[figure], wanted)):
            missed.append(MissedFigure(figure, wanted, beyond_limits))
    beyond = sum(any(row.get(name) for name in row if name.endswith(".steps_beyond")) for row in rows)
    return ScoreLine(name, group, len(rows), len(successful), low, high, figures, failures, tuple(missed), beyond)


@dataclass(frozen=True)
class PairedDifference:
    """Comparison of two controllers on the same trials.

    Attributes:
        name: Name of the test or group, or ``all``.
        trials: Number of common trials.
        first, second: Number of successes of each controller.
        only_first, only_second: Number of trials in which only one controller was successful.
        low, high: Interval of the difference of the success rates, first minus second, at 95 %.
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
    """Return the differences between the conditions of two scores, apart from the controller, in words.

    Args:
        ours, theirs: Conditions of both scores, see :func:`bipedsim_studies.score.battery.read_battery`.
        folder: Folder of the other score, for messages.

    Raises:
        ConfigError: The scores have no common trials, because battery, robot or hardware differ.
    """
    if not theirs:
        raise ConfigError("it holds no score, or one of an older bipedsim; run that score again", f"--against {folder}")
    differing = {name: f"{name}: {theirs.get(name)} there, {value} here" for name, value in ours.items()}
    differing = {name: text for name, text in differing.items() if theirs.get(name) != ours[name]}
    if any(name in differing for name in SAME):
        reason = f"of other trials, which cannot be compared one by one: {'; '.join(differing.values())}"
        raise ConfigError(reason, f"--against {folder}: {', '.join(differing)}")
    return list(differing.values())


def differences(
    first: Iterable[Mapping[str, Any]], second: Iterable[Mapping[str, Any]], groups: Mapping[str, str]
) -> list[PairedDifference]:
    """Return the paired differences for each test, each group and all tests, over the trials that both scores have."""
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


def _difference(name: str, pairs: Sequence[tuple[bool, bool]]) -> PairedDifference:
    both = sum(a and b for a, b in pairs)
    only_first, only_second = sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs)
    neither = len(pairs) - both - only_first - only_second
    low, high = paired_interval(both, only_first, only_second, neither)
    first, second = both + only_first, both + only_second
    return PairedDifference(name, len(pairs), first, second, only_first, only_second, low, high)


def paired_interval(both: int, only_first: int, only_second: int, neither: int) -> tuple[float, float]:
    """Return the interval at 95 % of the difference of two proportions in paired trials.

    This is Newcombe's method 10 (Statistics in Medicine 17, 1998, p. 2635). It combines Wilson's intervals of both
    proportions with their correlation.
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
