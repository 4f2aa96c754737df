"""Configurations of fan-ziqi/rl_sar: policy/ROBOT/POLICY/config.yaml, with the base.yaml of the robot.

The program computes the terms in ``RL::ComputeObservation``, and starts with a history of zeros.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bipedsim.config import read_yaml
from bipedsim.control.policy.readers.picked import picked
from bipedsim.errors import ConfigError
from bipedsim.model import Robot

_TERMS = {
    "lin_vel": ("base_lin_vel", "lin_vel_scale"),
    "ang_vel": ("base_ang_vel", "ang_vel_scale"),
    "gravity_vec": ("projected_gravity", ""),
    "commands": ("velocity_commands", "commands_scale"),
    "dof_pos": ("joint_pos_rel", "dof_pos_scale"),
    "dof_vel": ("joint_vel", "dof_vel_scale"),
    "actions": ("last_action", ""),
}
"""Names of the terms there, their names here, and the keys of their scales."""


def translate(path: Path, values: Mapping[str, Any], robot: Robot) -> dict[str, Any]:
    """Return the file in bipedsim's keys.

    Raises:
        ConfigError: base.yaml is missing, the robot has wheels, or the history is not contiguous.
    """
    own = {**_base(path), **next(iter(values.values()))}
    if own.get("wheel_indices"):
        raise ConfigError("have velocity drives, which a policy cannot command", f"{path}: wheel_indices")
    names = own["joint_names"]
    clip = float(own["clip_obs"])
    terms = [_TERMS.get(name, (name, "")) for name in own["observations"]]
    observations = [{"term": term, **({"scale": own[scale]} if scale else {})} for term, scale in terms]
    past = [int(i) for i in own.get("observations_history") or [0]]
    if sorted(past) != list(range(len(past))) or past not in (sorted(past), sorted(past, reverse=True)):
        raise ConfigError("must be consecutive updates", f"{path}: observations_history", past)
    newest_first = len(past) > 1 and past[0] == 0
    of_terms = own.get("observations_history_priority", "time") == "term"
    if of_terms and newest_first:
        raise ConfigError("puts the newest value of a term first, and only the reverse order can be read", f"{path}")
    for entry in observations if of_terms else ():
        entry["history"] = len(past)
    return {
        "network": str(path.parent / own["model_name"]),
        "period": float(own["dt"]) * int(own["decimation"]),
        "joints": picked(names, own["joint_mapping"], f"{path}: joint_mapping"),
        "default": own["default_dof_pos"],
        "stiffness": own["rl_kp"],
        "damping": own["rl_kd"],
        "action": {
            "scale": own["action_scale"],
            "clip": [list(pair) for pair in zip(own["clip_actions_lower"], own["clip_actions_upper"], strict=True)]
            or None,
        },
        "observations": observations,
        "clip": [-clip, clip],
        "frames": {"count": 1 if of_terms else len(past), "newest_first": newest_first},
        "history_start": "zeros",
    }


def _base(path: Path) -> dict[str, Any]:
    """Return the entries of the robot's base.yaml, in a folder above the policy's."""
    folder = path.resolve().parent
    for above in (folder, *list(folder.parents)[:3]):
        if (above / "base.yaml").is_file():
            of_robot = next(iter(read_yaml(above / "base.yaml", dumped=True).values()), None)
            if not isinstance(of_robot, Mapping):
                raise ConfigError("must be the name of the robot with its values, as in rl_sar", above / "base.yaml")
            return dict(of_robot)
    raise ConfigError(
        "is missing; rl_sar has it in the folder of the robot, above that of the policy", f"{path}: base.yaml"
    )
