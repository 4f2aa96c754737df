"""Cycles of a sequence of discrete states: an invariant set of the discrete-event system, if it is no fixed state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bipedsim_studies.gait_modes.sequence import Entry
from bipedsim_studies.gait_modes.states import State


@dataclass(frozen=True)
class Cycle:
    """States that come again and again.

    Attributes:
        states: One turn of it.
        turns: How many whole turns were seen.
        t: When the first one begins [s].
        period: Mean time of a turn [s].
        spread: Standard deviation of it over the turns [s].
    """

    states: tuple[State, ...]
    turns: int
    t: float
    period: float
    spread: float


def find_cycle(entries: list[Entry]) -> Cycle | None:
    """Return the cycle that covers the largest part of a sequence, the shortest of equals; None if none turns twice.

    For every period p, the longest stretch in which each state is that of p entries before, by one pass: O(n^2).
    """
    states = [entry.state for entry in entries]
    number = {state: i for i, state in enumerate(dict.fromkeys(states))}
    word = np.array([number[state] for state in states], dtype=np.int64)
    best: tuple[int, int, int] | None = None
    for period in range(1, len(word) // 2 + 1):
        same = np.concatenate([[False], word[period:] == word[:-period], [False]])
        edges = np.flatnonzero(np.diff(same.astype(np.int8)))
        if not len(edges):
            continue
        lengths = edges[1::2] - edges[::2]
        i = int(np.argmax(lengths))
        turns = 1 + int(lengths[i]) // period
        if turns >= 2 and (best is None or turns * period > best[1] * best[0]):
            best = period, turns, int(edges[2 * i])
    if best is None:
        return None
    period, turns, start = best
    starts = [entry.t for entry in entries[start : start + turns * period : period]]
    end = entries[start + turns * period - 1]
    lengths = np.diff([*starts, end.t + end.duration])
    return Cycle(tuple(states[start : start + period]), turns, starts[0], float(lengths.mean()), float(lengths.std()))
