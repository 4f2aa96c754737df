"""Runs as analyses and pictures want them: read, and completed by what follows from the robot's own sensors."""

from __future__ import annotations

from pathlib import Path

from bipedsim.analysis.ankles import feet_with_ankles_only, fill_from_ankles
from bipedsim.errors import ConfigError
from bipedsim.model import load_robot
from bipedsim.recording import Recording, load_recording


def load_run(path: Path | str, segment: int = -1) -> Recording:
    """Read a run as :func:`load_recording` does; where it is a robot's, sole wrenches come from its ankle sensors.

    Args:
        path: A run (.npz), a bag directory, a bring-up's directory that holds ``bag/``, or an .mcap file.
        segment: Of a bag in which time jumps back: which stretch; -1 is the last one.

    Raises:
        RecordingError: Nothing readable is there; the message says what was found.
    """
    recording = load_recording(path, segment)
    if not feet_with_ankles_only(recording):
        return recording
    try:
        robot = load_robot(recording.about.get("robot") or recording.robot)
    except ConfigError:
        # The notes of the recording say so already.
        return recording
    if fill_from_ankles(recording, robot):
        note = "a robot's: forces under the soles are those of the ankle sensors and the weight of the feet"
        recording.notes = (*recording.notes, note)
    return recording
