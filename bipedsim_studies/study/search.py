"""Where a yes turns into a no, by bisection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Threshold:
    """A value that was survived, the next one that was not, and how many trials that took.

    Attributes:
        survived: The largest value with a yes; 0 if there was none.
        failed: The smallest value above it with a no; infinite if the search ended at its limit.
        trials: Number of calls.
    """

    survived: float
    failed: float
    trials: int


def threshold(survives: Callable[[float], bool], guess: float, tolerance: float, limit: float) -> Threshold:
    """Bracket where ``survives`` turns from yes to no, and bisect.

    Of several such places one is found: robots may survive a push that is harder than one that fells them.

    Args:
        survives: Asked for positive values.
        guess: Where to begin; what is a hundredth of it counts as nothing.
        tolerance: How near the two ends get, as a share of the upper one.
        limit: Beyond it nothing is asked.
    """
    trials = 0

    def ask(value: float) -> bool:
        nonlocal trials
        trials += 1
        return survives(value)

    low, high = 0.0, float("inf")
    value = min(guess, limit)
    if ask(value):
        low = value
        while low < limit:
            value = min(1.5 * low, limit)
            if not ask(value):
                high = value
                break
            low = value
    else:
        high = value
        while high > 1e-2 * guess:
            value = high / 1.5
            if ask(value):
                low = value
                break
            high = value
    while high < float("inf") and low > 0.0 and high - low > tolerance * high:
        middle = 0.5 * (low + high)
        if ask(middle):
            low = middle
        else:
            high = middle
    return Threshold(low, high, trials)
