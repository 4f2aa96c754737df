"""Which robot a recording is of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bipedsim.config import changes
from bipedsim.errors import ConfigError, RecordingError, some, warn_changed
from bipedsim.model import Robot, load_robot
from bipedsim.recording import Recording


def robot_of(recording: Recording) -> Robot:
    """Return the robot that a recording names.

    Raises:
        RecordingError: It names none.
        ConfigError: There is none of this name here, or no such file.

    Warns:
        ChangedWarning: Its files have changed since.
    """
    name = recording.robot_source
    if not name:
        raise RecordingError("the recording does not say which robot it is of: give its name or robot.yaml (--robot)")
    try:
        robot = load_robot(name)
    except ConfigError as error:
        way_out = "if it lies elsewhere by now, give it by --robot where the command has that"
        raise ConfigError(f"the robot of the recording: {error}; {way_out}") from error
    compare_robot(robot, recording.run)
    return robot


def compare_robot(robot: Robot, run: Mapping[str, Any]) -> None:
    """Warn if files of a robot have changed since a run.

    Args:
        robot: As it is now.
        run: All that it takes to simulate the run again (:func:`bipedsim.runs.describe_run`).
    """
    was = run.get("robot_content", {})
    if was and robot.content and (differ := changes(was, robot.content)):
        warn_changed(f"robot {robot.name} is not the one that was recorded: {some(differ)}")
