"""Find cycles in a sequence of discrete states. Every cycle except a fixed state is an invariant set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bipedsim.numerics import true_runs
from bipedsim_studies.gait_modes.sequence import Entry
from bipedsim_studies.gait_modes.states import State


@dataclass(frozen=True)
class Cycle:
    """A repeated sequence of states.

    Attributes:
        states: States of one period.
        turns: Number of complete periods.
        t: Start time of the first period [s].
        period: Mean duration of a period [s].
        spread: Standard deviation of the duration of a period [s].
    """

    states: tuple[State, ...]
    turns: int
    t: float
    period: float
    spread: float


def find_cycle(entries: list[Entry]) -> Cycle | None:
    """Return the cycle that covers the largest part of a sequence, or None if no cycle occurs twice.

    Of equally long cycles, return the one with the shortest period. For every period p, one pass finds the longest
    segment in which each state equals the state p entries before. The total effort is O(n^2).
    """
    states = [entry.state for entry in entries]
    number = {state: i for i, state in enumerate(dict.fromkeys(states))}
    word = np.array([number[state] for state in states], dtype=np.int64)
    best: tuple[int, int, int] | None = None
    for period in range(1, len(word) // 2 + 1):
        first, last = max(true_runs(word[period:] == word[:-period]), key=lambda run: run[1] - run[0], default=(0, 0))
        turns = 1 + (last - first) // period
        if turns >= 2 and (best is None or turns * period > best[1] * best[0]):
            best = period, turns, first
    if best is None:
        return None
    period, turns, start = best
    starts = [entry.t for entry in entries[start : start + turns * period : period]]
    last_entry = entries[start + turns * period - 1]
    lengths = np.diff([*starts, last_entry.t + last_entry.duration])
    return Cycle(tuple(states[start : start + period]), turns, starts[0], float(lengths.mean()), float(lengths.std()))
