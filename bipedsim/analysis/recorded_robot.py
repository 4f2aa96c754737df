"""Which robot a recording is of."""

from __future__ import annotations

from bipedsim.errors import ConfigError, RecordingError
from bipedsim.model import Robot, load_robot
from bipedsim.recording import Recording


def robot_of(recording: Recording) -> Robot:
    """Return the robot that a recording names.

    Raises:
        RecordingError: It names none.
        ConfigError: There is none of this name here, or no such file.
    """
    name = recording.robot_source
    if not name:
        raise RecordingError("the recording does not say which robot it is of: give its name or robot.yaml (--robot)")
    try:
        return load_robot(name)
    except ConfigError as error:
        way_out = "if it lies elsewhere by now, give it by --robot where the command has that"
        raise ConfigError(f"the robot of the recording: {error}; {way_out}") from error
