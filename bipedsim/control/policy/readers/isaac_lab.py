"""Isaac Lab's IO descriptors (``--export_io_descriptors``): actions and observations of a policy, with their joints.

The network is policy.onnx or policy.pt in the folder of the file, or in its subfolder ``exported``, where play.py
writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bipedsim.errors import ConfigError
from bipedsim.model import Robot

_POSITIONS = "JointPositionAction"


def refuse(path: Path, values: Mapping[str, Any], robot: Robot) -> dict[str, Any]:
    """Refuse env.yaml and name the file to use instead.

    Raises:
        ConfigError: Always.
    """
    raise ConfigError(
        "Isaac Lab's env.yaml does not name them in their order; take the IO descriptors, which "
        "scripts/environments/export_io_descriptors.py or train.py --export_io_descriptors write",
        f"{path}: joints",
    )


def translate(path: Path, values: Mapping[str, Any], robot: Robot) -> dict[str, Any]:
    """Return the file in bipedsim's keys.

    Raises:
        ConfigError: The actions are not joint positions, or code modifies the terms.
    """
    actions = [action for action in values["actions"] if action.get("export", True)]
    kinds = [str(action["full_path"]).rpartition(".")[2] for action in actions]
    if kinds != [_POSITIONS]:
        raise ConfigError(f"only one {_POSITIONS} is known", f"{path}: actions {', '.join(kinds)}")
    action = actions[0]
    articulations = values["articulations"]
    body = articulations["robot" if "robot" in articulations else next(iter(articulations))]
    groups = values["observations"]
    terms = groups["policy" if "policy" in groups else next(iter(groups))]
    changed = [term["name"] for term in terms if (term.get("extras") or {}).get("modifiers")]
    if changed:
        raise ConfigError("has modifiers, which are code that only Isaac Lab has", f"{path}: {', '.join(changed)}")
    kp, kd = body["default_joint_stiffness"], body["default_joint_damping"]
    config = {
        "network": str(_network(path)),
        "period": values["scene"]["dt"],
        "joints": body["joint_names"],
        "default": body["default_joint_pos"],
        "action": {
            "joints": action["joint_names"],
            "scale": action["scale"],
            "offset": action["offset"],
            "limits": action["clip"],
        },
        "observations": [_term(term) for term in terms],
    }
    # With an explicit actuator model Isaac Lab sets the simulator's gains to zero, and the file has no other gains.
    if any(kp) or any(kd):
        config |= {"stiffness": kp, "damping": kd}
    return config


def _network(path: Path) -> Path:
    """Return the path of the network, or its expected path if there is no file."""
    candidates = [
        path.parent / folder / f"policy{suffix}" for folder in (".", "exported") for suffix in (".onnx", ".pt")
    ]
    return next((candidate for candidate in candidates if candidate.is_file()), candidates[0])


def _term(term: Mapping[str, Any]) -> dict[str, Any]:
    overloads = term.get("overloads") or {}
    entry = {
        "term": term["name"],
        "clip": overloads.get("clip"),
        "history": max(overloads.get("history_length") or 1, 1),
    }
    if overloads.get("scale") is not None:
        entry["scale"] = overloads["scale"]
    if term.get("joint_names"):
        entry["joints"] = term["joint_names"]
    return entry
