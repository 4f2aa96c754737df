"""The robot of a recording."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bipedsim.config import changes
from bipedsim.errors import ConfigError, RecordingError, some, warn_changed
from bipedsim.model import Robot, load_robot
from bipedsim.recording import Recording


def robot_of(recording: Recording) -> Robot:
    """Load the robot that a recording names.

    Raises:
        RecordingError: The recording names no robot.
        ConfigError: There is no robot of this name, or no such file.

    Warns:
        ChangedWarning: The robot's files have changed since the recording.
    """
    name = recording.robot_source
    if not name:
        raise RecordingError("not recorded: pass its name or robot.yaml (--robot)", "robot")
    try:
        robot = load_robot(name)
    except ConfigError as error:
        way_out = "if its file was moved, pass its path with --robot"
        raise ConfigError(f"{error}; {way_out}", "the robot of the recording") from error
    compare_robot(robot, recording.run)
    return robot


def unused_joints(recording: Recording, robot: Robot) -> tuple[str, ...]:
    """Return a note on the joints of a recording that the robot does not have; () if there are none."""
    names = [name for name in recording.joint_names if name not in robot.model.names]
    return (f"joints that {robot.name} does not have are not used: {some(names)}",) if names else ()


def compare_robot(robot: Robot, run: Mapping[str, Any]) -> None:
    """Warn if the files of a robot have changed since a run.

    Args:
        robot: The robot as it is now.
        run: All data needed to simulate the run again (:func:`bipedsim.runs.describe_run`).
    """
    recorded = run.get("robot_content", {})
    if recorded and robot.content and (differ := changes(recorded, robot.content)):
        warn_changed(f"robot {robot.name} differs from the recorded one: {some(differ)}")
