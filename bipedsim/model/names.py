"""The robots that can be named."""

from __future__ import annotations

import os
from pathlib import Path

from bipedsim.config import Files

ROBOTS = Files(
    "robot", "bipedsim.robots", Path(__file__).parents[1] / "robots", "*/robot.yaml", lambda path: path.parent.name
)
"""Name to robot.yaml: a new robot is a new folder."""
DESCRIPTIONS = (".urdf", ".xacro", ".xml", ".mjcf")
"""Suffixes of what `bipedsim import` makes a robot.yaml of."""


def robot_file(name_or_path: str | Path) -> Path:
    """Return the robot.yaml of a name, or of the path of a file or of its folder.

    Raises:
        UnknownNameError: No such name; the message lists the names.
    """
    source = ROBOTS.find(name_or_path, "the path of a robot.yaml")
    return source / "robot.yaml" if os.path.isdir(source) else source
