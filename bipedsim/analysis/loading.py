"""Load runs for analyses and figures, and complete them from the robot's own sensors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np

from bipedsim.analysis.ankles import feet_with_ankles_only, fill_from_ankles
from bipedsim.analysis.recorded_robot import robot_of
from bipedsim.errors import ConfigError, RecordingError
from bipedsim.recording import Recording, between, load_recording, nothing_between, read_blocks


def load_run(
    path: Path | str,
    segment: int = -1,
    start: float | None = None,
    stop: float | None = None,
    remap: Mapping[str, str] | None = None,
    robot: str = "",
) -> Recording:
    """Read a run as :func:`load_recording` does, and fill the sole wrenches of a robot from its ankle sensors.

    Args:
        path: A run (.npz or .csv), a bag directory, a directory of a launch that contains ``bag/``, or an .mcap file.
        segment: Segment of a bag in which time jumps back; -1 is the last one.
        start, stop: Rows outside these times [s] are left out and take no memory; None for no limit.
        remap, robot: See :func:`load_recording`.

    Raises:
        RecordingError: The path cannot be read, no row is between these times, or the rows exceed the memory; the
            message says what was found.
    """
    return completed(load_recording(path, segment, start, stop, remap, robot))


class Gathers(Protocol):
    """Accumulate data of a run, block by block."""

    def add(self, rows: Recording) -> None:
        """Process the next rows."""
        ...


Gathered = TypeVar("Gathered", bound=Gathers)


def gather(
    path: Path | str,
    begin: Callable[[], Gathered],
    columns: Collection[str] | None = None,
    start: float | None = None,
    stop: float | None = None,
    remap: Mapping[str, str] | None = None,
    robot: str = "",
) -> Gathered:
    """Accumulate data of the last segment of a run, which may exceed the memory.

    Args:
        path: See :func:`load_run`.
        begin: Make a new accumulator; called again where time jumps back.
        columns: The columns to read; all by default.
        start, stop: Rows outside these times [s] are left out; None for no limit.
        remap, robot: See :func:`load_recording`.

    Raises:
        RecordingError: The path cannot be read, or no row is between these times; the message says what was found.
    """
    current, gathered, has_rows = -1, begin(), False
    first = last = 0.0
    # The newest rows wait for the notes on the whole run, which only its last block has.
    newest: Recording | None = None
    notes: tuple[str, ...] = ()
    for number, rows in read_blocks(path, columns, remap, robot):
        if number != current:
            current, gathered, has_rows, newest = number, begin(), False, None
            first = rows.t[0] if len(rows) else 0.0
        last = rows.t[-1] if len(rows) else last
        inside = between(rows.t, start, stop)
        notes = rows.notes
        if inside.any() or not len(rows):
            if newest is not None:
                gathered.add(newest)
            newest = completed(rows if inside.all() else rows.rows(inside))
            has_rows = has_rows or len(rows) > 0
    if not (has_rows or start is stop is None):
        raise nothing_between(start, stop, str(path), first, last)
    if newest is not None:
        newest.notes = tuple(dict.fromkeys([*notes, *newest.notes]))
        gathered.add(newest)
    return gathered


def completed(recording: Recording) -> Recording:
    """Fill the sole wrenches of a robot's recording from its ankle sensors, if they are missing; return it."""
    if not feet_with_ankles_only(recording):
        return recording
    try:
        robot = robot_of(recording)
    except (ConfigError, RecordingError):
        # The notes of the recording already name this problem.
        return recording
    if fill_from_ankles(recording, robot):
        note = "forces under the soles were not recorded; they follow from the ankle sensors and the weight of the feet"
        recording.notes = (*recording.notes, note)
        if np.nanmedian(recording.wrench[:, :, 2].sum(axis=1)) < -0.5 * robot.weight:
            upside_down = (
                "the ankle sensors seem to measure the foot on the ground: change their sign (docs/other_bag.md#signs)"
            )
            recording.notes = (*recording.notes, upside_down)
    return recording
