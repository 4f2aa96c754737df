"""Configurations of unitreerobotics/unitree_rl_gym: deploy/deploy_mujoco/configs and deploy/deploy_real/configs.

The programs deploy_mujoco.py and deploy_real.py hard-code some values for all robots: the terms and their order, and a
clock with a period of 0.8 s that counts from one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bipedsim.config import read_xml
from bipedsim.control.policy.readers.picked import picked
from bipedsim.control.policy.readers.unitree_motors import motors_of
from bipedsim.errors import ConfigError
from bipedsim.model import Robot

_ROOT = "LEGGED_GYM_ROOT_DIR"
_STRIDE = 0.8


def translate(path: Path, values: Mapping[str, Any], robot: Robot) -> dict[str, Any]:
    """Return the file in bipedsim's keys.

    Raises:
        ConfigError: The names of the joints are unknown.
    """
    real = "control_dt" in values
    period = float(values["control_dt"] if real else values["simulation_dt"] * values["control_decimation"])
    legs = _of_motors(path, values, robot) if real else _of_model(path, values, robot)
    if len(legs) != values["num_actions"]:
        raise ConfigError(f"and the joints are {', '.join(legs)}", f"{path}: num_actions", values["num_actions"])
    joints, default, kp, kd = list(legs), list(values["default_angles"]), list(values["kps"]), list(values["kds"])
    if real:
        motors = motors_of(robot)
        other_joints = picked(motors, values["arm_waist_joint2motor_idx"], f"{path}: arm_waist_joint2motor_idx")
        other_values = zip(
            other_joints,
            values["arm_waist_target"],
            values["arm_waist_kps"],
            values["arm_waist_kds"],
            strict=True,
        )
        # In a model of the legs alone these joints are welded.
        for name, target, stiffness, damping in other_values:
            if name in robot.joint_names:
                joints.append(name)
                default.append(target)
                kp.append(stiffness)
                kd.append(damping)
    scales = {
        "base_ang_vel": values["ang_vel_scale"],
        "projected_gravity": 1.0,
        "velocity_commands": values["cmd_scale"],
        "joint_pos_rel": values["dof_pos_scale"],
        "joint_vel": values["dof_vel_scale"],
        "last_action": 1.0,
        "clock": 1.0,
    }
    of_joints = ("joint_pos_rel", "joint_vel")
    config = {
        "network": str(_from_root(path, values["policy_path"])),
        "period": period,
        "joints": joints,
        "default": default,
        "stiffness": kp,
        "damping": kd,
        "action": {"joints": legs, "scale": values["action_scale"]},
        "observations": [
            {"term": term, "scale": scale, **({"joints": legs} if term in of_joints else {})}
            for term, scale in scales.items()
        ],
        "clock": {"period": _STRIDE, "start": period},
    }
    if "max_cmd" in values:
        limits = [float(x) for x in values["max_cmd"]]
        config["command"] = {"low": [-x for x in limits], "high": limits}
    return config


def _from_root(path: Path, text: str) -> Path:
    """Resolve a path of the file in which the repository's root is a name in braces."""
    marker = f"{{{_ROOT}}}/"
    if marker not in text:
        return path.parent / text
    relative = text.replace(marker, "")
    roots = [path.resolve().parent, *path.resolve().parents]
    if _ROOT in os.environ:
        roots.insert(0, Path(os.environ[_ROOT]))
    return next((root / relative for root in roots if (root / relative).exists()), roots[0] / relative)


def _of_motors(path: Path, values: Mapping[str, Any], robot: Robot) -> list[str]:
    """Return the joints of a deploy_real file, which gives motor numbers."""
    motors = motors_of(robot)
    if not motors:
        raise ConfigError(
            f"they are given by number, and {robot.name!r} has joints of no robot whose motors are known; take the "
            "configuration of deploy_mujoco, or write a file of your own with `joints`",
            f"{path}: motors",
        )
    return picked(motors, values["leg_joint2motor_idx"], f"{path}: leg_joint2motor_idx")


def _of_model(path: Path, values: Mapping[str, Any], robot: Robot) -> list[str]:
    """Return the joints of a deploy_mujoco file in the motor order of its MJCF; the robot's joints if it is missing."""
    scene = _from_root(path, values["xml_path"])
    if not scene.is_file():
        if len(robot.joint_names) != values["num_actions"]:
            raise ConfigError(
                f"they are in the order of {scene}, which is not there; {robot.name!r} has "
                f"{len(robot.joint_names)} joints, and the policy moves {values['num_actions']}",
                f"{path}: joints",
            )
        return list(robot.joint_names)
    return list(_motors(scene, set()))


def _motors(path: Path, read: set[Path]) -> Iterator[str]:
    """Yield the joint of every motor in an MJCF file and in the files that it includes."""
    if path in read:
        return
    read.add(path)
    for element in read_xml(path)[0]:
        if element.tag == "include":
            yield from _motors(path.parent / element.attrib["file"], read)
        elif element.tag == "actuator":
            yield from (motor.attrib["joint"] for motor in element)
