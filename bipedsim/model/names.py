"""Find robots by name."""

from __future__ import annotations

import os
from pathlib import Path

from bipedsim.config import Files

ROBOTS = Files(
    "robot", "bipedsim.robots", Path(__file__).parents[1] / "robots", "*/robot.yaml", lambda path: path.parent.name
)
"""Name to robot.yaml; every folder with a robot.yaml is a robot."""
IMU, CONTACT_SWITCH = "imu", "contact_switch"
"""Kinds of additional sensors."""
SWITCH_THRESHOLD = 20.0
"""Default normal force of a sole above which a contact switch is closed [N]."""
SENSOR_TOPICS = {IMU: "/{sensor}/data", CONTACT_SWITCH: "/{sensor}/closed"}
"""Kind of an additional sensor to its default topic, with ``{sensor}`` for its name."""
MAIN_IMU_TOPIC = "/imu/data"
DESCRIPTIONS = (".urdf", ".xacro", ".xml", ".mjcf")
"""Suffixes of files that `bipedsim import` converts to a robot.yaml."""


def robot_file(name_or_path: str | Path) -> Path:
    """Return the robot.yaml for a robot's name, or for the path of a file or folder.

    Raises:
        UnknownNameError: The name is unknown; the message lists the names.
    """
    source = ROBOTS.find(name_or_path, "the path of a robot.yaml (bipedsim robots lists all)")
    return source / "robot.yaml" if os.path.isdir(source) else source
