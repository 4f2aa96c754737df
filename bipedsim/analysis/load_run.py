"""Runs as analyses and pictures want them: read, and completed by what follows from the robot's own sensors."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np

from bipedsim.analysis.ankles import feet_with_ankles_only, fill_from_ankles
from bipedsim.analysis.recorded_robot import robot_of
from bipedsim.errors import ConfigError, RecordingError
from bipedsim.recording import Recording, between, load_recording, nothing_between, read_blocks


def load_run(path: Path | str, segment: int = -1, start: float | None = None, stop: float | None = None) -> Recording:
    """Read a run as :func:`load_recording` does; where it is a robot's, sole wrenches come from its ankle sensors.

    Args:
        path: A run (.npz), a bag directory, a bring-up's directory that holds ``bag/``, or an .mcap file.
        segment: Of a bag in which time jumps back: which stretch; -1 is the last one.
        start, stop: Rows before and behind these times [s] are left out, and take no memory; None: none are.

    Raises:
        RecordingError: Nothing readable is there, or no row between these times, or more rows than there is memory for;
            the message says what was found.
    """
    return completed(load_recording(path, segment, start, stop))


class Gathers(Protocol):
    """What is gathered of a run, block by block."""

    def add(self, rows: Recording) -> None:
        """Take the next rows."""
        ...


Gathered = TypeVar("Gathered", bound=Gathers)


def gather(
    path: Path | str,
    begin: Callable[[], Gathered],
    columns: Collection[str] | None = None,
    grows: Callable[[], bool] | None = None,
    start: float | None = None,
    stop: float | None = None,
) -> Gathered:
    """Return what is gathered of the last stretch of a run that may be too long to hold.

    Args:
        path: See :func:`load_run`.
        begin: Begins to gather; called again where time jumps back.
        columns: Which columns are wanted; all by default.
        grows: Whether a bag is still being written, so that more is waited for; None: it is not.
        start, stop: Rows before and behind these times [s] are left out; None: none are.

    Raises:
        RecordingError: Nothing readable is there, or no row between these times; the message says what was found.
    """
    current, gathered, found = -1, begin(), False
    first = last = 0.0
    for number, rows in read_blocks(path, columns, grows):
        if number != current:
            current, gathered, found = number, begin(), False
            first = rows.t[0] if len(rows) else 0.0
        last = rows.t[-1] if len(rows) else last
        here = between(rows.t, start, stop)
        if here.all():
            gathered.add(completed(rows))
        elif here.any():
            gathered.add(completed(rows.rows(here)))
        found = found or bool(here.any())
    if not (found or start is stop is None):
        raise nothing_between(start, stop, str(path), first, last)
    return gathered


def completed(recording: Recording) -> Recording:
    """Fill in the forces under the soles of a robot's recording, which has only those of its ankles; return it."""
    if not feet_with_ankles_only(recording):
        return recording
    try:
        robot = robot_of(recording)
    except (ConfigError, RecordingError):
        # The notes of the recording say so already.
        return recording
    if fill_from_ankles(recording, robot):
        note = "a robot's: forces under the soles are those of the ankle sensors and the weight of the feet"
        recording.notes = (*recording.notes, note)
        if np.nanmedian(recording.wrench[:, :, 2].sum(axis=1)) < -0.5 * robot.weight:
            upside_down = "the ankle sensors seem to measure the foot on the ground: record with ft_sign = -1"
            recording.notes = (*recording.notes, upside_down)
    return recording
