"""Save and load the layout of a page, and the state of the robot, as YAML files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import yaml

from bipedsim.errors import ConfigError
from bipedsim.model import Robot
from bipedsim.view.page.instant import Instant
from bipedsim.view.page.layers import LAYERS

LAYOUT_KEYS = ("plots", "layers", "follow", "opacity", "camera", "target")


def to_yaml(content: Mapping[str, Any]) -> bytes:
    """Return a YAML file."""
    return yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True).encode()


def state_of_instant(robot: Robot, instant: Instant) -> dict[str, Any]:
    """Return the state of a robot; its ``posture`` is that of a robot.yaml."""
    joints = zip(robot.joint_names, robot.idx_q, robot.idx_v, strict=True)
    state: dict[str, Any] = {"robot": robot.name, "t": float(instant.t)}
    if robot.free_flyer:
        state["base_pose"] = instant.q[:7].tolist()
        if instant.v is not None:
            state["base_velocity"] = instant.v[:6].tolist()
    state["posture"] = {name: float(instant.q[i]) for name, i, _ in joints}
    if instant.v is not None:
        state["velocity"] = dict(zip(robot.joint_names, instant.v[robot.idx_v].tolist(), strict=True))
    return state


def read_posture(content: bytes, name: str, robot: Robot) -> dict[str, float]:
    """Return the joint positions of a saved state or of a robot.yaml.

    Raises:
        ConfigError: The file contains none, or joints of another robot.
    """
    posture = _read(content, name).get("posture")
    if not isinstance(posture, dict) or not posture:
        raise ConfigError("has no `posture`. Use a file of Save state, or name joints: {posture: {JOINT: rad}}", name)
    for joint, value in posture.items():
        if joint not in robot.joint_names:
            raise ConfigError(f"{robot.name} has no joint of this name", f"{name}: posture", joint)
        if not _is_number(value):
            raise ConfigError("must be a number", f"{name}: posture: {joint}", value)
    return {joint: float(value) for joint, value in posture.items()}


def read_layout(content: bytes, name: str) -> dict[str, Any]:
    """Return a saved layout.

    Raises:
        ConfigError: The file is no layout.
    """
    layout = _read(content, name)
    unknown = [key for key in layout if key not in LAYOUT_KEYS]
    if unknown or not layout:
        raise ConfigError(f"is no layout. Use a file of Save layout, whose keys are {', '.join(LAYOUT_KEYS)}", name)
    layers, plots = layout.get("layers", {}), layout.get("plots", [])
    if not isinstance(layers, dict) or any(key not in LAYERS for key in layers):
        raise ConfigError(f"must contain some of {', '.join(LAYERS)}", f"{name}: layers", layers)
    if not isinstance(plots, list) or not all(isinstance(plot, list) for plot in plots):
        raise ConfigError("must be a list of lists of signals", f"{name}: plots", plots)
    for key in ("camera", "target"):
        point = layout.get(key, [0.0, 0.0, 0.0])
        if not (isinstance(point, list) and len(point) == 3 and all(map(_is_number, point))):
            raise ConfigError("must be three numbers", f"{name}: {key}", point)
    opacity = layout.get("opacity", 1.0)
    if not (_is_number(opacity) and 0.0 < opacity <= 1.0):
        raise ConfigError("must be from 0 to 1", f"{name}: opacity", opacity)
    return layout


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and bool(np.isfinite(value))


def _read(content: bytes, name: str) -> dict[str, Any]:
    try:
        read = yaml.safe_load(content)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"is no YAML file: {error}", name) from error
    if not isinstance(read, dict):
        raise ConfigError("is no mapping", name)
    return read
