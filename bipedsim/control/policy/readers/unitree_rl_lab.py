"""deploy.yaml of unitreerobotics/unitree_rl_lab, as its export_deploy_cfg.py writes and its C++ programs read it.

Joints are in Isaac Lab's order, gains in that of the vendor's motors, ``joint_ids_map`` leads from the one to the
other. The network is ../exported/policy.onnx.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bipedsim.control.policy.readers.unitree_motors import motors_of
from bipedsim.errors import ConfigError
from bipedsim.model import Robot


def translate(path: Path, values: Mapping[str, Any], robot: Robot) -> dict[str, Any]:
    """Return the file in our own keys.

    Raises:
        ConfigError: Its motors have no names, or it gives other actions than positions of joints.
    """
    order = values["joint_ids_map"]
    motors = motors_of(robot)
    if len(motors) < len(order):
        raise ConfigError(
            f"{path}: numbers {len(order)} motors, and {robot.name!r} has joints of no such robot whose motors are "
            "known; write a file of your own with `joints`"
        )
    actions = values["actions"]
    if list(actions) != ["JointPositionAction"]:
        raise ConfigError(f"{path}: actions {', '.join(actions)}: only JointPositionAction is known")
    action = actions["JointPositionAction"]
    joints = [motors[i] for i in order]
    moved = _subset(action.get("joint_ids"), joints)
    found = {
        "network": str(path.parent.parent / "exported" / "policy.onnx"),
        "period": values["step_dt"],
        "joints": joints,
        "default": values["default_joint_pos"],
        "stiffness": [values["stiffness"][i] for i in order],
        "damping": [values["damping"][i] for i in order],
        "action": {"joints": moved, "scale": action["scale"], "offset": action["offset"], "limits": action["clip"]},
        "observations": [_term(name, term, joints) for name, term in values["observations"].items()],
    }
    phase = values["observations"].get("gait_phase")
    if phase:
        # Their clock counts before it is read.
        found["clock"] = {"period": phase["params"]["period"], "start": values["step_dt"]}
    ranges = (values.get("commands") or {}).get("base_velocity", {}).get("ranges")
    if ranges:
        bounds = [ranges[name] for name in ("lin_vel_x", "lin_vel_y", "ang_vel_z")]
        found["command"] = {"low": [low for low, _ in bounds], "high": [high for _, high in bounds]}
    return found


def _subset(ids: Any, joints: list[str]) -> list[str]:
    """Return the joints with these numbers; all, if they are a slice of everything."""
    return list(joints) if ids is None or None in ids else [joints[i] for i in ids]


def _term(name: str, term: Mapping[str, Any], joints: list[str]) -> dict[str, Any]:
    found = {"term": name, "clip": term.get("clip"), "history": term.get("history_length", 1)}
    if term.get("scale") is not None:
        found["scale"] = term["scale"]
    ids = (term.get("params") or {}).get("asset_cfg", {}).get("joint_ids")
    if ids is not None:
        found["joints"] = _subset(ids, joints)
    return found
