"""A biped with further IMUs and contact switches."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from bipedsim.model import Robot, load_robot, robot_file

SENSORS: dict[str, Any] = {
    "shank_imu": {"type": "imu", "frame": "l_shank"},
    "left_switch": {"type": "contact_switch", "foot": "left", "threshold": 30.0},
    "sole_imu": {"type": "imu", "frame": "r_sole", "topic": "/right/sole/imu"},
    "right_switch": {"type": "contact_switch", "foot": "right", "topic": "/right/sole/loaded"},
}


def write_robot(folder: Path, sensors: Mapping[str, Any] = SENSORS) -> Path:
    """Write the robot.yaml of a biped14 with these sensors, and return its path."""
    source = robot_file("biped14")
    config = yaml.safe_load(source.read_text(encoding="utf-8"))
    config |= {"urdf": str(source.parent / config["urdf"]), "sensors": dict(sensors)}
    path = folder / "robot.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    return path


def instrumented(folder: Path, sensors: Mapping[str, Any] = SENSORS) -> Robot:
    """Return the robot of :func:`write_robot`."""
    return load_robot(write_robot(folder, sensors))
