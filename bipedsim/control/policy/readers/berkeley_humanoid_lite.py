"""Configurations of HybridRobotics/Berkeley-Humanoid-Lite: configs/*.yaml.

``RlController`` of Berkeley-Humanoid-Lite-Lowlevel has the terms and their order, without scales.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bipedsim.control.policy.readers.picked import picked
from bipedsim.model import Robot

_TERMS = ("velocity_commands", "base_ang_vel", "projected_gravity", "joint_pos_rel", "joint_vel", "last_action")


def translate(path: Path, values: Mapping[str, Any], robot: Robot) -> dict[str, Any]:
    """Return the file in bipedsim's keys; paths in it are relative to the folder above ``configs``."""
    joints = values["joints"]
    moved = picked(joints, values["action_indices"], f"{path}: action_indices")
    name = values["policy_checkpoint_path"]
    folders = (path.resolve().parent.parent, path.parent)
    network = next((folder / name for folder in folders if (folder / name).exists()), folders[0] / name)
    return {
        "network": str(network),
        "period": values["policy_dt"],
        "joints": joints,
        "default": values["default_joint_positions"],
        "stiffness": values["joint_kp"],
        "damping": values["joint_kd"],
        "action": {
            "joints": moved,
            "scale": values["action_scale"],
            "clip": [values["action_limit_lower"], values["action_limit_upper"]],
        },
        "observations": [{"term": term, **({"joints": moved} if term.startswith("joint") else {})} for term in _TERMS],
        "frames": {"count": values["history_length"] + 1},
        "history_start": "zeros",
    }
