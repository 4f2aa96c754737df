"""Where a run begins: the standing posture, another one of robot.yaml, or one of a file."""

from __future__ import annotations

from pathlib import Path

from bipedsim.config import is_path, numbers_per_joint, read_yaml
from bipedsim.errors import UnknownNameError
from bipedsim.model.robot import Robot
from bipedsim.numerics import Array

STANDING = "standing"
"""Name of the posture that every robot has."""


def start_configuration(robot: Robot, posture: str = "") -> Array:
    """Return q (nq,) in which a run begins: joints as ``posture`` says, the soles on z = 0 by least squares.

    Args:
        robot: The robot.
        posture: Name of a posture of robot.yaml, or a YAML file of joints, or regular expressions, to angles [rad];
            joints that it does not name stand. Empty is the standing posture.

    Raises:
        UnknownNameError: No such posture or joint; the message lists them.
        ConfigError: The file cannot be read, an angle is no number, or with such angles a loop cannot be closed.
    """
    if posture in ("", STANDING):
        return robot.q_nominal.copy()
    angles = robot.posture.copy()
    if is_path(posture):
        named = numbers_per_joint(read_yaml(Path(posture)), robot.joint_names, posture)
    elif posture in robot.postures:
        named = dict(robot.postures[posture])
    else:
        choices = (STANDING, *robot.postures)
        raise UnknownNameError("posture", posture, choices, str(robot.source), "the path of a YAML file")
    for i, joint in enumerate(robot.joint_names):
        angles[i] = named.get(joint, angles[i])
    return robot.settle(angles)
