"""Configurations of BoosterRobotics/booster_gym: deploy/configs/*.yaml.

``Policy`` of its deploy/utils has the terms and their order: motors have the order of the robot's description, and the
network moves the last ones, which are the legs. The low-pass filter of the targets is omitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bipedsim.errors import ConfigError
from bipedsim.model import Robot

_STILL = 1e-5
"""Norm of the velocity command below which the program stops the gait."""


def translate(path: Path, values: Mapping[str, Any], robot: Robot) -> dict[str, Any]:
    """Return the file in bipedsim's keys; the path of the network is relative to the folder above ``configs``.

    Raises:
        ConfigError: The robot has another number of joints.
    """
    common, policy = values["common"], values["policy"]
    default = common["default_qpos"]
    if len(default) != robot.nu:
        raise ConfigError(
            f"has {len(default)} joints, and {robot.name!r} has {robot.nu}. The file has the order of the robot's "
            "joints, but not their names",
            f"{path}: common: default_qpos",
        )
    scales, control = policy["normalization"], policy["control"]
    names = robot.joint_names
    moved = {"joints": list(names[-policy["num_actions"] :])}
    return {
        "network": str(path.resolve().parent.parent / policy["policy_path"]),
        "period": common["dt"] * control["decimation"],
        "joints": list(names),
        "default": default,
        "stiffness": common["stiffness"],
        "damping": common["damping"],
        "action": {
            **moved,
            "scale": control["action_scale"],
            "clip": [-scales["clip_actions"], scales["clip_actions"]],
        },
        "observations": [
            {"term": "projected_gravity", "scale": scales["gravity"]},
            {"term": "base_ang_vel", "scale": scales["ang_vel"]},
            {"term": "velocity_commands", "scale": [scales["lin_vel"], scales["lin_vel"], scales["ang_vel"]]},
            {"term": "clock_cos"},
            {"term": "clock_sin"},
            {"term": "joint_pos_rel", "scale": scales["dof_pos"], **moved},
            {"term": "joint_vel", "scale": scales["dof_vel"], **moved},
            {"term": "last_action"},
        ],
        "clock": {"period": 1.0 / policy["gait_frequency"], "still_below": _STILL},
    }
