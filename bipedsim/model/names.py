"""The robots that can be named."""

from __future__ import annotations

from pathlib import Path

from bipedsim.config import Files

ROBOTS = Files(
    "robot", "bipedsim.robots", Path(__file__).parents[1] / "robots", "*/robot.yaml", lambda path: path.parent.name
)
"""Name to robot.yaml: a new robot is a new folder."""
DESCRIPTIONS = (".urdf", ".xacro", ".xml", ".mjcf")
"""Suffixes of what `bipedsim import` makes a robot.yaml of."""
