"""ONNX files that mujocolab/mjlab exports; their metadata describe the policy.

The metadata contain neither the period nor scales, clips and histories of the observations. The reader uses the values
of mjlab's tasks: 0.02 s, 1, none and 1. For a task with other values, write a bipedsim file that ``extends`` the ONNX
file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bipedsim.control.policy.config import MINIMAL
from bipedsim.control.policy.network import open_session
from bipedsim.errors import ConfigError

_PERIOD = 0.02
"""Decimation 4 of steps of 5 ms in velocity_env_cfg.py and tracking_env_cfg.py."""
_NEEDED = ("joint_names", "joint_stiffness", "joint_damping", "default_joint_pos", "action_scale", "observation_names")
_TERMS = {
    "joint_pos": "joint_pos_rel",
    "joint_vel": "joint_vel_rel",
    "actions": "last_action",
    "command": "velocity_commands",
    "imu_ang_vel": "base_ang_vel",
}
"""Names of terms in mjlab's tasks, and their names here."""


def translate(path: Path) -> dict[str, Any]:
    """Return the metadata in bipedsim's keys.

    Raises:
        ConfigError: The metadata are missing, or the commands are not velocities.
    """
    if not path.is_file():
        raise ConfigError("no such file", path)
    metadata: dict[str, str] = open_session(path).get_modelmeta().custom_metadata_map
    missing = [key for key in _NEEDED if key not in metadata]
    if missing:
        raise ConfigError(
            "is not in the metadata, where mjlab writes it, so the network does not say what it reads and moves. Write "
            f"a deployment file next to it (docs/controllers/policy.md): {MINIMAL}",
            f"{path}: {', '.join(missing)}",
        )
    if "anchor_body_name" in metadata:
        raise ConfigError(
            "it tracks a motion, and only velocities can be commanded", f"{path}: {metadata['command_names']}"
        )
    scale = _numbers(metadata["action_scale"])
    return {
        "network": str(path),
        "period": _PERIOD,
        "joints": _texts(metadata["joint_names"]),
        "default": _numbers(metadata["default_joint_pos"]),
        "stiffness": _numbers(metadata["joint_stiffness"]),
        "damping": _numbers(metadata["joint_damping"]),
        "action": {"scale": scale if len(scale) > 1 else scale[0]},
        "observations": [{"term": _TERMS.get(name, name)} for name in _texts(metadata["observation_names"])],
    }


def _texts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]
