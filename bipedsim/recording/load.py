"""Runs from files, whatever wrote them."""

from __future__ import annotations

from pathlib import Path

from bipedsim.errors import RecordingError
from bipedsim.recording.bag import find_bag, name_one, recording_from_bag
from bipedsim.recording.recording import Recording, load_npz


def load_recording(path: Path | str, segment: int = -1) -> Recording:
    """Read a run (.npz), a bag directory, a bring-up's directory that holds ``bag/``, or an .mcap file.

    Args:
        path: What to read. A bag that its recorder could not finish is read up to the last whole message; ``notes``
            say so.
        segment: Of a bag in which time jumps back (reset): which stretch; -1 is the last one.

    Raises:
        RecordingError: Nothing readable is there; the message says what was found.
    """
    path = Path(path)
    if not path.exists():
        raise RecordingError(f"{path}: no such file or directory")
    if path.is_file() and path.suffix == ".npz":
        return load_npz(path)
    if find_bag(path) is None and (which := name_one(path, (".npz",))):
        raise RecordingError(f"{path}: neither a bag nor a run{which}")
    return recording_from_bag(path, segment)
