"""Find by bisection where a condition changes from true to false."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Threshold:
    """Bracket of the value at which the condition changes, and the number of trials.

    Attributes:
        survived: Largest value with a success; 0 without any.
        failed: Smallest failed value above it; infinite if the search ended at its limit.
        trials: Number of calls.
    """

    survived: float
    failed: float
    trials: int


def threshold(survives: Callable[[float], bool], guess: float, tolerance: float, limit: float) -> Threshold:
    """Bracket the value at which ``survives`` changes from true to false, and bisect it.

    If there are several such values, the search finds one of them. A robot can survive a push that is stronger than
    one that makes it fall.

    Args:
        survives: Condition to evaluate for positive values.
        guess: Initial value. A hundredth of it counts as zero.
        tolerance: Distance of the bracket's ends, relative to the upper one.
        limit: Largest value that is tried.
    """
    trials = 0

    def succeeds(value: float) -> bool:
        nonlocal trials
        trials += 1
        return survives(value)

    low, high = 0.0, float("inf")
    value = min(guess, limit)
    if succeeds(value):
        low = value
        while low < limit:
            value = min(1.5 * low, limit)
            if not succeeds(value):
                high = value
                break
            low = value
    else:
        high = value
        while high > 1e-2 * guess:
            value = high / 1.5
            if succeeds(value):
                low = value
                break
            high = value
    while high < float("inf") and low > 0.0 and high - low > tolerance * high:
        middle = 0.5 * (low + high)
        if succeeds(middle):
            low = middle
        else:
            high = middle
    return Threshold(low, high, trials)
