"""Compute the initial configuration of a run: standing, another posture of robot.yaml, or one from a file."""

from __future__ import annotations

from pathlib import Path

from bipedsim.config import is_path, numbers_per_joint, read_yaml
from bipedsim.errors import UnknownNameError
from bipedsim.model.robot import Robot
from bipedsim.numerics import Array

STANDING = "standing"
"""Name of the default posture of every robot."""


def start_configuration(robot: Robot, posture: str = "") -> Array:
    """Return the initial q (nq,) of a run: joints at ``posture``, soles on z = 0 by least squares.

    Args:
        robot: The robot.
        posture: Name of a posture in robot.yaml, or a YAML file that maps joints or regular expressions to angles
            [rad]. Unnamed joints keep their standing angles. Empty means the standing posture.

    Raises:
        UnknownNameError: The posture or a joint does not exist; the message lists the choices.
        ConfigError: The file cannot be read, an angle is not a number, or a loop cannot be closed with these angles.
    """
    if posture in ("", STANDING):
        return robot.q_nominal.copy()
    angles = robot.posture.copy()
    if is_path(posture):
        given_angles = numbers_per_joint(read_yaml(Path(posture)), robot.joint_names, posture)
    elif posture in robot.postures:
        given_angles = dict(robot.postures[posture])
    else:
        choices = (STANDING, *robot.postures)
        raise UnknownNameError("posture", posture, choices, str(robot.source), "the path of a YAML file")
    for i, joint in enumerate(robot.joint_names):
        angles[i] = given_angles.get(joint, angles[i])
    return robot.settle(angles)
