"""Assign messages to rows by the nearest stamp, for topics whose stamps are not those of the joint states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bipedsim.numerics import Indices, Integers
from bipedsim.recording.bag.cdr import NS_PER_S
from bipedsim.recording.schema import JOINT_STATES

EXACT = 0.5
"""Share of the messages with the stamp of a row from which a topic has the stamps of the joint states."""
FEW = 3
"""Number of messages among the first rows up to which later messages also show the rate of a topic."""
LONGEST = 1.5
"""Time between two messages over the usual one from which a message between them is lost."""


@dataclass
class _Topic:
    """Result of the search for rows.

    Attributes:
        window: Maximum distance of a message from its row [ns]; None if the stamps are equal, or not compared yet.
        compared: Whether the stamps were compared with those of rows.
        rate: Messages a second; 0 if unknown.
        distance: Largest distance of a message from its row [ns].
        rows, empty: Number of rows, and of those without a message.
        first, last: Smallest and largest stamp [ns].
        joints: Stamp of a row [ns].
    """

    window: int | None = None
    compared: bool = False
    rate: float = 0.0
    distance: int = 0
    rows: int = 0
    empty: int = 0
    first: int = 2**63 - 1
    last: int = -(2**63)
    joints: int = 0


class NearestStamps:
    """Find the messages of each row for topics with stamps of their own.

    The first rows of a bag decide for each topic. It has the stamps of the joint states if at least ``EXACT`` of its
    messages have the stamp of a row. A lost message then leaves NaN. Otherwise each row has the message with the
    nearest stamp. Rows between the messages of a slower sensor have the nearest one, too.
    """

    def __init__(self) -> None:
        self._topics: dict[str, _Topic] = {}

    def window(self, topic: str, stamp: Integers, rows: Integers, held: bool) -> int | None:
        """Return the maximum distance of a message from its row [ns]; None if only equal stamps count.

        Args:
            topic: The topic.
            stamp: (m,) stamps of its messages so far [ns].
            rows: (n,) rising stamps of the next rows [ns].
            held: Whether rows between two messages have the nearest one, as those of a sensor.
        """
        found = self._topics.setdefault(topic, _Topic())
        if not found.compared and len(stamp):
            stamps = np.unique(stamp)
            found.first, found.last = min(found.first, int(stamps[0])), max(found.last, int(stamps[-1]))
            found.joints = int(rows[0])
            inside = stamps[(stamps >= rows[0]) & (stamps <= rows[-1])]
            if len(rows) > 1 and len(inside):
                found.compared = True
                row_period = float(np.median(np.diff(rows)))
                # A first segment may be shorter than the time between two messages.
                gaps = np.diff(inside if len(inside) > FEW else stamps)
                period = float(np.median(gaps)) if len(gaps) else row_period
                found.rate = NS_PER_S / period
                slower = held and period > LONGEST * row_period
                if slower or np.isin(inside, rows).mean() < EXACT:
                    found.window = round(0.5 * LONGEST * (max(period, row_period) if held else row_period))
        return found.window

    def assign(self, topic: str, stamp: Integers, rows: Integers) -> tuple[Indices, Indices]:
        """Return the indices (k,) of the rows that have a message within the window, and of their messages.

        Args:
            topic, stamp, rows: See :meth:`window`, which has returned a distance.
        """
        found = self._topics[topic]
        assert found.window is not None
        found.rows += len(rows)
        if not len(stamp):
            found.empty += len(rows)
            return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
        order = np.argsort(stamp, kind="stable")
        stamps = stamp[order]
        after = np.minimum(np.searchsorted(stamps, rows), len(stamps) - 1)
        before = np.maximum(after - 1, 0)
        best = np.where(np.abs(stamps[after] - rows) < np.abs(stamps[before] - rows), after, before)
        # The last of several messages with one stamp counts, as for equal stamps.
        best = np.searchsorted(stamps, stamps[best], side="right") - 1
        distance = np.abs(stamps[best] - rows)
        near = distance <= found.window
        found.empty += int((~near).sum())
        found.distance = max(found.distance, int(distance[near].max(initial=0)))
        return np.flatnonzero(near), order[best[near]]

    def notes(self) -> list[str]:
        """Return a description of each topic that was assigned by the nearest stamp."""
        return [
            f"{topic} ({one.rate:.4g} messages a second) has stamps other than {JOINT_STATES}: each row has the "
            f"message with the nearest stamp, at most {1e-6 * one.distance:.3g} ms away"
            + (f"; {one.empty} of {one.rows} rows have none" if one.empty else "")
            for topic, one in sorted(self._topics.items())
            if one.window is not None
        ]

    def losses(self) -> list[str]:
        """Return a description of each topic of which no row has a message."""
        return [
            f"{topic}: its stamps, {1e-9 * one.first:.3f} to {1e-9 * one.last:.3f} s, are outside those of "
            f"{JOINT_STATES}, near {1e-9 * one.joints:.3f} s; no row has a message"
            for topic, one in sorted(self._topics.items())
            if not one.compared
        ]
