"""Force plates in a recording: samples at rates of their own, which go with the rows that they were taken before."""

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
"""What the names of their arrays in a file begin with."""


class PlateRows:
    """Collects the samples of the plates of a run, in arrays that double when they are full.

    Args:
        plates: Of the simulation.
    """

    def __init__(self, plates: ForcePlates) -> None:
        self._plates = plates
        amplifiers = plates.amplifiers
        self._arrays = [np.empty((1024, 1 + len(g.channel_names))) for g in amplifiers.geometries]
        self._counts = [0] * len(self._arrays)

    def append(self) -> None:
        """Take the samples of the last tick."""
        for p, array in enumerate(self._arrays):
            new = self._plates.amplifiers.samples(p)
            n = self._counts[p]
            while n + len(new) > len(array):
                self._arrays[p] = array = np.concatenate([array, np.empty_like(array)])
            array[n : n + len(new)] = new
            self._counts[p] = n + len(new)

    def signals(self) -> dict[str, PlateSignals]:
        """Return what was appended so far; the arrays are views."""
        amplifiers = self._plates.amplifiers
        found = {}
        for p, name in enumerate(amplifiers.names):
            rows = self._arrays[p][: self._counts[p]]
            found[name] = PlateSignals(rows[:, 0], amplifiers.geometries[p], rows[:, 1:], amplifiers.clipped[p])
        return found


def samples_of_rows(plates: Mapping[str, PlateSignals], t: Array, rows: Any) -> dict[str, PlateSignals]:
    """Return the samples that belong to some rows: those since the row before the first of them, up to the last one.

    Args:
        plates: All samples.
        t: (n,) times of all rows [s].
        rows: Which are chosen: a slice, or an array as of an index.
    """
    if not plates:
        return {}
    chosen = np.arange(len(t))[rows]
    if not len(chosen):
        return {name: _part(one, slice(0)) for name, one in plates.items()}
    first, last = int(chosen.min()), int(chosen.max())
    begin = t[first - 1] if first > 0 else -np.inf
    end = t[last] if last + 1 < len(t) else np.inf
    # To the nanosecond of stamps: a sample of the time of a row belongs to it.
    found = {}
    for name, one in plates.items():
        i, j = np.searchsorted(one.t, [begin + 1e-9, end + 1e-9], side="left")
        found[name] = _part(one, slice(int(i), int(j)))
    return found


def _part(signals: PlateSignals, rows: slice) -> PlateSignals:
    return replace(signals, t=signals.t[rows], channels=signals.channels[rows])


def joined_signals(parts: Sequence[Mapping[str, PlateSignals]]) -> dict[str, PlateSignals]:
    """Return the samples of parts of one run, one behind the other."""
    found = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        some = [part[name] for part in parts if name in part]
        t, channels = np.concatenate([one.t for one in some]), np.concatenate([one.channels for one in some])
        found[name] = replace(some[-1], t=t, channels=channels)
    return found


def to_arrays(plates: Mapping[str, PlateSignals]) -> tuple[list[dict[str, Any]], dict[str, Array]]:
    """Return what a file's header says of the plates, and their arrays by name: time and channels side by side."""
    said = [{"geometry": as_json(one.geometry), "clipped": one.clipped, "note": one.note} for one in plates.values()]
    return said, {f"{ARRAY}{name}": np.column_stack([one.t, one.channels]) for name, one in plates.items()}


def from_arrays(said: Sequence[Mapping[str, Any]], arrays: Mapping[str, Array]) -> dict[str, PlateSignals]:
    """Return the plates that :func:`to_arrays` gave; those whose array is missing are left out."""
    found = {}
    for one in said:
        geometry = from_json(one["geometry"])
        array = arrays.get(f"{ARRAY}{geometry.name}")
        if array is not None:
            found[geometry.name] = PlateSignals(array[:, 0], geometry, array[:, 1:], one["clipped"], one["note"])
    return found
