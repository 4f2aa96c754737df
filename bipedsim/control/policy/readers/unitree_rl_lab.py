"""deploy.yaml of unitreerobotics/unitree_rl_lab, as its export_deploy_cfg.py writes and its C++ programs read it.

unitree_rl_mjlab uses the same format. The terms of its observation_manager.h may be stacked by update
(``use_gym_history``) and scaled before they are clipped (``scale_first``).

Joints are in Isaac Lab's order and gains in the order of the vendor's motors. ``joint_ids_map`` maps the joints to the
motors. The network is ../exported/policy.onnx.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bipedsim.control.policy.readers.picked import picked
from bipedsim.control.policy.readers.unitree_motors import motors_of
from bipedsim.errors import ConfigError
from bipedsim.model import Robot

_STANDING_PHASE = "gait_phase_my"
_STILL_BELOW = 0.1
"""Norm of the velocity command below which the clock of unitree_rl_mjlab's State_RLBase.cpp is zero."""
_OURS: dict[str, dict[str, Any]] = {
    _STANDING_PHASE: {"term": "clock"},
    "zero_velocity_commands": {"term": "constant", "values": [0.0, 0.0, 0.0]},
}
"""Terms of those programs that have another name here."""


def translate(path: Path, values: Mapping[str, Any], robot: Robot) -> dict[str, Any]:
    """Return the file in bipedsim's keys.

    Raises:
        ConfigError: The names of the motors are unknown, or the actions are not joint positions.
    """
    order = values["joint_ids_map"]
    motors = motors_of(robot)
    if len(motors) < len(order):
        raise ConfigError(
            f"{len(order)} are numbered, and {robot.name!r} has joints of no such robot whose motors are known; write "
            "a file of your own with `joints`",
            f"{path}: motors",
        )
    actions = values["actions"]
    if list(actions) != ["JointPositionAction"]:
        raise ConfigError("only JointPositionAction is known", f"{path}: actions {', '.join(actions)}")
    action = actions["JointPositionAction"]
    joints = picked(motors, order, f"{path}: joint_ids_map")
    moved = _subset(action.get("joint_ids"), joints, f"{path}: joint_ids")
    terms = dict(values["observations"])
    by_update, scale_first = bool(terms.pop("use_gym_history", False)), bool(terms.pop("scale_first", False))
    groups = [name for name, term in terms.items() if "params" not in term and "history_length" not in term]
    if groups:
        raise ConfigError(
            "in groups: only networks of one input are known", f"{path}: observations {', '.join(groups)}"
        )
    config = {
        "network": str(path.parent.parent / "exported" / "policy.onnx"),
        "period": values["step_dt"],
        "joints": joints,
        "default": values["default_joint_pos"],
        "stiffness": picked(values["stiffness"], order, f"{path}: joint_ids_map"),
        "damping": picked(values["damping"], order, f"{path}: joint_ids_map"),
        "action": {"joints": moved, "scale": action["scale"], "offset": action["offset"], "limits": action["clip"]},
        "observations": [_term(f"{path}: {name}", name, term, joints, scale_first) for name, term in terms.items()],
    }
    if by_update:
        lengths = {term.pop("history") for term in config["observations"]}
        if len(lengths) != 1:
            raise ConfigError("must be one history_length of all terms", f"{path}: use_gym_history", sorted(lengths))
        config["frames"] = {"count": lengths.pop()}
    phase = terms.get("gait_phase") or terms.get(_STANDING_PHASE)
    if phase:
        # Unitree's clock advances before it is read, so it starts at one step.
        still = _STILL_BELOW if _STANDING_PHASE in terms else 0.0
        config["clock"] = {"period": phase["params"]["period"], "start": values["step_dt"], "still_below": still}
    ranges = (values.get("commands") or {}).get("base_velocity", {}).get("ranges")
    if ranges:
        bounds = [ranges[name] for name in ("lin_vel_x", "lin_vel_y", "ang_vel_z")]
        config["command"] = {"low": [low for low, _ in bounds], "high": [high for _, high in bounds]}
    return config


def _subset(ids: Any, joints: list[str], place: str) -> list[str]:
    """Return the joints with these indices; all joints if ``ids`` is None or a full slice."""
    return list(joints) if ids is None or None in ids else picked(joints, ids, place)


def _term(where: str, name: str, term: Mapping[str, Any], joints: list[str], scale_first: bool) -> dict[str, Any]:
    entry = {"term": name, "clip": term.get("clip"), "history": term.get("history_length", 1)}
    entry |= _OURS.get(name, {})
    if term.get("scale") is not None:
        entry["scale"] = term["scale"]
        if scale_first and entry["clip"] is not None:
            entry["clip"] = _before(where, entry["clip"], set(term["scale"]))
    ids = (term.get("params") or {}).get("asset_cfg", {}).get("joint_ids")
    if ids is not None:
        entry["joints"] = _subset(ids, joints, f"{where}: joint_ids")
    return entry


def _before(where: str, clip: list[float], scales: set[float]) -> list[float]:
    """Convert clip limits that the file applies after the scale to limits before it.

    Raises:
        ConfigError: The scales differ, so that each value would need its own limits.
    """
    if len(scales) != 1 or not min(scales) > 0.0:
        raise ConfigError("must be one positive scale, as there is a clip", f"{where}: scale_first", sorted(scales))
    scale = scales.pop()
    return [bound / scale for bound in clip]
