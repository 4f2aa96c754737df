"""robot.yaml: its keys, and the rules for values that are given per joint."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from bipedsim.config import from_mapping, param, read_yaml
from bipedsim.errors import ConfigError, UnknownNameError

PACKAGE = "example-robot-data"


@dataclass(frozen=True)
class FootConfig:
    """One entry of ``feet``."""

    frame: str = param("", "URDF link or frame that the sole is placed in")
    vertices: Any = param(None, "sole polygon, a list of [x, y] in the sole frame", unit="m")
    radius: float = param(
        0.0, "of a ball around the vertex of a point foot, which rolls; 0 for none", unit="m", low=0.0, high=10.0
    )
    placement: Any = param(None, "sole frame in `frame`: {xyz: [m], rpy: [rad]}; z up into the foot; default the same")
    friction_static: float = param(0.45, "Coulomb friction while sticking", low=0.0, high=10.0)
    friction_dynamic: float = param(0.45, "Coulomb friction while sliding, at most friction_static", low=0.0, high=10.0)
    ankle_frame: str = param("", "frame of the ankle force-torque sensor; default the frame of the foot's parent joint")
    load_cell: bool = param(False, "the sensor is in the sole, below all mass of the foot, and not at its joint")
    passes_ground: float = param(
        0.0,
        "of straight legs: once lifted, the foot meets no ground until it comes down this far in front of the others",
        unit="m",
        low=0.0,
        high=10.0,
    )


@dataclass(frozen=True)
class RobotConfig:
    """robot.yaml. Values per joint are given by joint name or regular expression; later lines win."""

    name: str = param("", "name of the robot")
    description: str = param("", "one line about the robot")
    urdf: str = param("", f"URDF file beside robot.yaml, or package:{PACKAGE}/<path below its robots folder>")
    root: str = param("free_flyer", "how the root link hangs in the world", choices=("free_flyer", "fixed"))
    joints: Any = param(None, "actuated joints in the order of commands; default every joint not locked or passive")
    passive: Any = param(None, "movable joints without a drive, a list; joints of no command, limit or sensor")
    locked: Any = param(None, "joint to angle [rad] that is welded; `others` is the angle of joints named nowhere else")
    feet: Any = param(None, "foot name to its sole")
    imu: Any = param(None, "{frame: URDF frame of the IMU}; default the root link")
    effort_limit: Any = param(None, "per joint, instead of the URDF's", unit="N.m")
    velocity_limit: Any = param(None, "per joint, instead of the URDF's", unit="rad/s")
    position_limit: Any = param(None, "per joint [lower, upper], instead of the URDF's", unit="rad")
    armature: Any = param(None, "reflected rotor inertia per joint", unit="kg.m^2")
    joint_damping: Any = param(None, "viscous friction per joint, instead of the URDF's", unit="N.m.s/rad")
    gravity: float = param(9.81, "where the robot lives; 1 in normalised units", unit="m/s^2", low=0.0, high=1000.0)
    posture: Any = param(None, "standing posture per joint, knees bent; 0 where nothing is given", unit="rad")
    controllers: Any = param(None, "controller name to the parameters that differ from its defaults")
    hardware: Any = param(None, "preset of the hardware to the parameters that this robot changes in it")
    sources: Any = param(None, "where armature, soles and limits were published")


def read_robot_config(path: Path) -> RobotConfig:
    """Read and check the keys of ``path``; joints and frames are checked once the URDF is known.

    Raises:
        ConfigError: File or key is missing, unknown, or of the wrong type.
    """
    config = from_mapping(RobotConfig, read_yaml(path), str(path))
    for key in ("name", "urdf"):
        if not getattr(config, key):
            raise ConfigError(f"{path}: key {key!r} is missing")
    for key in ("locked", "feet", "imu", "controllers", "hardware", "sources"):
        value = getattr(config, key)
        if value is not None and not isinstance(value, Mapping):
            raise ConfigError(f"{path}: {key} = {value!r} must be a mapping")
    for name, values in (config.controllers or {}).items():
        if values is not None and not isinstance(values, Mapping):
            raise ConfigError(f"{path}: controllers.{name} = {values!r} must be a mapping of parameters")
    return config


def foot_config(name: Any, values: Any, where: str) -> FootConfig:
    """Check one entry of ``feet``.

    Raises:
        ConfigError: A key is missing or unknown, or friction_dynamic is above friction_static.
    """
    where = f"{where}: feet.{name}"
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z]\w*", name):
        raise ConfigError(
            f"{where}: a foot's name becomes part of topic names: letters, digits and _, starting with a letter"
        )
    foot = from_mapping(FootConfig, values, where)
    for key in ("frame", "vertices"):
        if not getattr(foot, key):
            raise ConfigError(f"{where}: key {key!r} is missing")
    if foot.friction_dynamic > foot.friction_static:
        raise ConfigError(
            f"{where}: friction_dynamic = {foot.friction_dynamic} is above friction_static = {foot.friction_static}; "
            "sliding friction cannot exceed sticking friction"
        )
    return foot


def placement(values: Any, where: str) -> pin.SE3:
    """Return the transform of ``{xyz: [m], rpy: [rad]}``; both are optional."""
    if values is None:
        return pin.SE3.Identity()
    if not isinstance(values, Mapping):
        raise ConfigError(f"{where} = {values!r} must be a mapping with xyz and rpy")
    parts: dict[str, NDArray[np.float64]] = {"xyz": np.zeros(3), "rpy": np.zeros(3)}
    for key, value in values.items():
        if key not in parts:
            raise UnknownNameError("key", str(key), parts, where)
        if not isinstance(value, Sequence) or len(value) != 3:
            raise ConfigError(f"{where}: {key} = {value!r} must be three numbers")
        parts[key] = np.array([number(v, f"{where}: {key}") for v in value])
    return pin.SE3(pin.rpy.rpyToMatrix(parts["rpy"]), parts["xyz"])


def number(value: Any, where: str) -> float:
    """Return ``value`` as a finite float.

    Raises:
        ConfigError: It is no finite number.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ConfigError(f"{where} = {value!r} must be a finite number")
    return float(value)


def per_joint(values: Any, names: Sequence[str], where: str) -> dict[str, Any]:
    """Spread ``{joint name or regular expression: value}`` over the joints; later entries win.

    Args:
        values: The mapping, or one value for every joint, or None for nothing.
        names: Joints that may be named.
        where: File and key, for messages.

    Raises:
        UnknownNameError: A key matches no joint; the message lists the joints.
        ConfigError: A key is no valid regular expression.
    """
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        return dict.fromkeys(names, values)
    found: dict[str, Any] = {}
    for pattern, value in values.items():
        try:
            matches = [n for n in names if n == pattern or re.fullmatch(str(pattern), n)]
        except re.error as error:
            raise ConfigError(f"{where}: {pattern!r} is neither a joint nor a regular expression ({error})") from error
        if not matches:
            raise UnknownNameError("joint", str(pattern), names, where)
        found.update(dict.fromkeys(matches, value))
    return found


def numbers_per_joint(values: Any, names: Sequence[str], where: str, low: float = -math.inf) -> dict[str, float]:
    """Like :func:`per_joint`, for finite numbers that are at least ``low``."""
    found = {n: number(v, f"{where}.{n}") for n, v in per_joint(values, names, where).items()}
    for name, value in found.items():
        if value < low:
            raise ConfigError(f"{where}.{name} = {value} is below its minimum {low}")
    return found


def _prefixes() -> Iterable[Path]:
    """Folders that may hold share/example-robot-data: pip's cmeel prefix, a ROS install, the interpreter's own."""
    for entry in sys.path:
        yield Path(entry) / "cmeel.prefix"
    for variable in ("AMENT_PREFIX_PATH", "CMAKE_PREFIX_PATH"):
        for entry in os.environ.get(variable, "").split(os.pathsep):
            if entry:
                yield Path(entry)
    yield Path(sys.prefix)


def urdf_path(text: str, source: Path) -> Path:
    """Return the file that the key ``urdf`` of ``source`` means.

    Raises:
        ConfigError: The file or its package is not there.
    """
    if not text.startswith("package:"):
        path = source.parent / text
        if not path.is_file():
            raise ConfigError(f"{source}: urdf = {text!r}: no such file {path}")
        return path.resolve()
    package, _, relative = text.removeprefix("package:").partition("/")
    if package != PACKAGE or not relative:
        raise ConfigError(
            f"{source}: urdf = {text!r} must be a file or package:{PACKAGE}/<path below its robots folder>"
        )
    for prefix in _prefixes():
        folder = prefix / "share" / PACKAGE / "robots"
        if (folder / relative).is_file():
            return (folder / relative).resolve()
        if folder.is_dir():
            known = sorted(str(p.relative_to(folder)) for p in folder.glob("*/*/*.urdf"))
            raise UnknownNameError("urdf", relative, known, str(source))
    raise ConfigError(f"{source}: urdf = {text!r} needs the package {PACKAGE}: pip install 'bipedsim[robots]'")
