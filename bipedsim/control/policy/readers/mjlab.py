"""ONNX files that mujocolab/mjlab exports; their metadata describe the policy.

The metadata do not contain the period, and those of older releases no scales, limits and histories of the observations.
The reader uses the values of mjlab's tasks: 0.02 s, 1 (0.2 for the height scan), none and 1. For a task with other
values, write a bipedsim file that ``extends`` the ONNX file.
"""

from __future__ import annotations

import math
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
_NUMBERS = ("default_joint_pos", "joint_stiffness", "joint_damping", "action_scale")
"""Keys of the metadata with a number, or one for each joint."""
_SCAN = {"scale": 0.2, "offset": 0.0}
"""Height scan of velocity_env_cfg.py: scaled by its largest distance of 5 m, relative to the base."""

_UNLIMITED = 1e9
"""Replaces a limit of infinity."""


def translate(path: Path) -> dict[str, Any]:
    """Return the metadata in bipedsim's keys.

    Raises:
        ConfigError: The metadata are missing, or the commands are not velocities.
    """
    metadata: dict[str, str] = open_session(path).get_modelmeta().custom_metadata_map
    missing = [key for key in _NEEDED if key not in metadata]
    if missing:
        raise ConfigError(
            "is not in the metadata, where mjlab writes it, so the network does not say what it reads and moves. Write "
            f"a deployment file next to it (docs/controllers/policy.md): {MINIMAL}",
            f"{path}: {', '.join(missing)}",
        )
    if "anchor_body_name" in metadata:
        commanded = metadata.get("command_names", "anchor_body_name")
        raise ConfigError("it tracks a motion, and only velocities can be commanded", f"{path}: {commanded}")
    numbers = {key: _numbers(metadata[key], f"{path}: {key}") for key in _NUMBERS}
    scale = numbers["action_scale"]
    return {
        "network": str(path),
        "period": _PERIOD,
        "joints": _texts(metadata["joint_names"]),
        "default": numbers["default_joint_pos"],
        "stiffness": numbers["joint_stiffness"],
        "damping": numbers["joint_damping"],
        "action": {"scale": scale if len(scale) > 1 else scale[0]},
        "observations": _observations(metadata),
    }


def _observations(metadata: dict[str, str]) -> list[dict[str, Any]]:
    names = _texts(metadata["observation_names"])
    terms = [{"term": _TERMS.get(name, name), **(_SCAN if name == "height_scan" else {})} for name in names]
    for key, name in (("scale", "scale"), ("clip", "clip"), ("history_length", "history")):
        if f"observation_terms_{key}" not in metadata:
            continue
        for term, text in zip(terms, _texts(metadata[f"observation_terms_{key}"]), strict=True):
            values = [float(part) for part in text.split(";")]
            if key == "history_length":
                # 0 is a term without history.
                term[name] = max(1, round(values[0]))
            elif any(map(math.isfinite, values)):
                bounded = [min(max(value, -_UNLIMITED), _UNLIMITED) for value in values]
                term[name] = bounded if len(bounded) > 1 else bounded[0]
    return terms


def _texts(text: str) -> list[str]:
    """Return the parts of a list that is separated by commas, or of one in JSON."""
    listed = text.strip()
    if listed.startswith("[") and listed.endswith("]"):
        listed = listed[1:-1]
    return [part.strip().strip("\"'") for part in listed.split(",")]


def _numbers(text: str, place: str) -> list[float]:
    try:
        return [float(part) for part in _texts(text)]
    except ValueError as error:
        raise ConfigError("must be numbers, separated by commas", place, text) from error
