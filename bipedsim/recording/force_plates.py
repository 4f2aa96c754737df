"""Store the samples of force plates in a recording. A sample belongs to the first row that follows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bipedsim.numerics import Array
from bipedsim.plates import PlateSignals, as_json, from_json

if TYPE_CHECKING:
    from bipedsim.sim import ForcePlates

ARRAY = "force_plate_"
"""Prefix of the array names in a file."""


class PlateRows:
    """Collect the samples of a run's force plates in arrays that double when they are full.

    Args:
        plates: Force plates of the simulation.
    """

    def __init__(self, plates: ForcePlates) -> None:
        self._plates = plates
        amplifiers = plates.amplifiers
        self._arrays = [np.empty((1024, 1 + len(g.channel_names))) for g in amplifiers.geometries]
        self._counts = [0] * len(self._arrays)

    def append(self) -> None:
        """Append the samples of the last tick."""
        for p, array in enumerate(self._arrays):
            new = self._plates.amplifiers.samples(p)
            n = self._counts[p]
            while n + len(new) > len(array):
                self._arrays[p] = array = np.concatenate([array, np.empty_like(array)])
            array[n : n + len(new)] = new
            self._counts[p] = n + len(new)

    def signals(self) -> dict[str, PlateSignals]:
        """Return all samples appended so far; the arrays are views."""
        amplifiers = self._plates.amplifiers
        signals = {}
        for p, name in enumerate(amplifiers.names):
            rows = self._arrays[p][: self._counts[p]]
            signals[name] = PlateSignals(rows[:, 0], amplifiers.geometries[p], rows[:, 1:], amplifiers.clipped[p])
        return signals


def samples_of_rows(plates: Mapping[str, PlateSignals], t: Array, rows: Any) -> dict[str, PlateSignals]:
    """Return the samples of the selected rows: after the row that precedes the first one, up to the last one.

    Args:
        plates: All samples.
        t: (n,) times of all rows [s].
        rows: Selected rows: a slice or an index array.
    """
    if not plates:
        return {}
    chosen = np.arange(len(t))[rows]
    if not len(chosen):
        return {name: _select(plate, slice(0)) for name, plate in plates.items()}
    first, last = int(chosen.min()), int(chosen.max())
    begin = t[first - 1] if first > 0 else -np.inf
    end = t[last] if last + 1 < len(t) else np.inf
    # Stamps are in nanoseconds. A sample with the same time as a row belongs to this row.
    selected = {}
    for name, plate in plates.items():
        i, j = np.searchsorted(plate.t, [begin + 1e-9, end + 1e-9], side="left")
        selected[name] = _select(plate, slice(int(i), int(j)))
    return selected


def _select(signals: PlateSignals, rows: slice) -> PlateSignals:
    return replace(signals, t=signals.t[rows], channels=signals.channels[rows])


def joined_signals(parts: Sequence[Mapping[str, PlateSignals]]) -> dict[str, PlateSignals]:
    """Concatenate the samples of parts of one run."""
    joined = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        same_plate = [part[name] for part in parts if name in part]
        t, channels = (
            np.concatenate([plate.t for plate in same_plate]),
            np.concatenate([plate.channels for plate in same_plate]),
        )
        joined[name] = replace(same_plate[-1], t=t, channels=channels)
    return joined


def to_arrays(plates: Mapping[str, PlateSignals]) -> tuple[list[dict[str, Any]], dict[str, Array]]:
    """Return the header entries of the plates and their arrays by name, with time and channels in columns."""
    headers = [
        {"geometry": as_json(plate.geometry), "clipped": plate.clipped, "note": plate.note} for plate in plates.values()
    ]
    return headers, {f"{ARRAY}{name}": np.column_stack([plate.t, plate.channels]) for name, plate in plates.items()}


def from_arrays(headers: Sequence[Mapping[str, Any]], arrays: Mapping[str, Array]) -> dict[str, PlateSignals]:
    """Return the plates from the output of :func:`to_arrays`; plates without an array are left out."""
    plates = {}
    for entry in headers:
        geometry = from_json(entry["geometry"])
        array = arrays.get(f"{ARRAY}{geometry.name}")
        if array is not None:
            plates[geometry.name] = PlateSignals(array[:, 0], geometry, array[:, 1:], entry["clipped"], entry["note"])
    return plates
