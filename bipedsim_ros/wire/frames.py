"""Frame ids, and the topic names of commands and feet (REP-103, REP-105, REP-120), the same on robot and simulator."""

from __future__ import annotations

from bipedsim.recording import READOUTS

WORLD_FRAME = "odom"
BASE_FRAME = "base_link"
FEET_FRAME = "feet"
"""Midway between the feet as they stand, level, x ahead: footsteps are given in it."""

VELOCITY_TOPIC = "/cmd_vel"
COMMAND_TOPIC = "/effort_controller/commands"

_SHORT = {"left": "l", "right": "r"}


def sole_frame(foot: str) -> str:
    """Return the frame of a foot's sole: l_sole and r_sole for left and right."""
    return f"{_SHORT.get(foot, foot)}_sole"


def ankle_frame(foot: str) -> str:
    """Return the frame of a foot's force-torque sensor: l_ankle and r_ankle for left and right."""
    return f"{_SHORT.get(foot, foot)}_ankle"


def ankle_wrench_topic(foot: str) -> str:
    """Return the topic of a foot's force-torque sensor, as force_torque_sensor_broadcaster names it."""
    return f"/{foot}_foot_ft/wrench"


def foot_topic(foot: str, what: str) -> str:
    """Return a topic of the ground under a foot: wrench, cop, contact or contact_mode."""
    return f"/{foot}_foot/{what}"


def readout_topic(name: str) -> str:
    """Return the topic of one of the numbers that a controller shows."""
    return f"{READOUTS}{name}"
