"""Define the keys of robot.yaml, and find its URDF."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from bipedsim.config import PerJoint, Polygon, Vector, check_readable, from_file, param
from bipedsim.errors import ConfigError, UnknownNameError, install
from bipedsim.model.loops import CONNECT, WELD
from bipedsim.model.names import CONTACT_SWITCH, IMU, SWITCH_THRESHOLD

PACKAGE = "example-robot-data"
STRICT, MEND = "strict", "mend"
"""Handling of an inertia that is impossible for a rigid body: refuse the robot, or correct the inertia."""


@dataclass(frozen=True)
class PlacementConfig:
    """Placement of a frame in another one."""

    xyz: Vector = param((0.0, 0.0, 0.0), "its origin", unit="m")
    rpy: Vector = param((0.0, 0.0, 0.0), "its axes by roll, pitch, yaw", unit="rad")

    def transform(self) -> pin.SE3:
        """Return the placement as a transformation."""
        return pin.SE3(pin.rpy.rpyToMatrix(np.array(self.rpy)), np.array(self.xyz))


@dataclass(frozen=True)
class FootConfig:
    """Entry of ``feet``."""

    frame: str = param("", "URDF link or frame in which the sole is placed", required=True)
    vertices: Polygon = param((), "sole polygon, a list of [x, y] in the sole frame", unit="m", required=True)
    radius: float = param(
        0.0, "of a ball around the vertex of a point foot, which rolls; 0 for none", unit="m", low=0.0, high=10.0
    )
    placement: PlacementConfig = param(
        PlacementConfig(), "sole frame in `frame`: {xyz: [m], rpy: [rad]}; z up into the foot; default the same"
    )
    friction_static: float = param(0.45, "Coulomb friction while sticking", low=0.0, high=10.0)
    friction_dynamic: float = param(0.45, "Coulomb friction while sliding, at most friction_static", low=0.0, high=10.0)
    ankle_frame: str = param("", "frame of the ankle force-torque sensor; default the frame of the foot's parent joint")
    load_cell: bool = param(False, "the sensor is in the sole, below all mass of the foot, and not at its joint")
    passes_ground: float = param(
        0.0,
        "for straight legs: a lifted foot ignores the ground until it descends this far in front of the others",
        unit="m",
        low=0.0,
        high=10.0,
    )

    def problems(self) -> Iterator[ConfigError]:
        """Yield inconsistencies between the keys."""
        if self.friction_dynamic > self.friction_static:
            yield ConfigError(
                f"is above friction_static = {self.friction_static}; sliding friction cannot exceed sticking friction",
                "friction_dynamic",
                self.friction_dynamic,
            )


@dataclass(frozen=True)
class LoopConfig:
    """Entry of ``loops``: two frames on different bodies that coincide."""

    type: str = param(
        CONNECT, "connect: the origins are one point; weld: the axes are the same too", choices=(CONNECT, WELD)
    )
    frame1: str = param("", "URDF link or frame of the one body; forces are along its axes", required=True)
    frame2: str = param("", "the same of the other body", required=True)
    placement1: PlacementConfig = param(
        PlacementConfig(), "placement of the constraint in frame1: {xyz: [m], rpy: [rad]}"
    )
    placement2: PlacementConfig = param(
        PlacementConfig(), "placement of the constraint in frame2: {xyz: [m], rpy: [rad]}"
    )


@dataclass(frozen=True)
class ShapeConfig:
    """Shape of a link: an entry in the link's list under ``bodies``."""

    kind: str = param("", "what it is", choices=("sphere", "capsule", "cylinder", "box"), required=True)
    radius: float = param(0.0, "of sphere, capsule or cylinder", unit="m", low=0.0, high=100.0)
    length: float = param(0.0, "of a cylinder, or a capsule without its caps; along z", unit="m", low=0.0, high=100.0)
    size: Vector = param((0.0, 0.0, 0.0), "edges of a box", unit="m")
    placement: PlacementConfig = param(PlacementConfig(), "its centre in the link: {xyz: [m], rpy: [rad]}")

    def problems(self) -> Iterator[ConfigError]:
        """Yield inconsistencies between the keys."""
        if self.kind == "box":
            if not min(self.size) > 0.0:
                yield ConfigError("m of a box must be positive", "size", self.size)
        elif not self.radius > 0.0:
            yield ConfigError(f"m of a {self.kind} must be positive", "radius", self.radius)
        if self.kind in ("capsule", "cylinder") and not self.length > 0.0:
            yield ConfigError(f"m of a {self.kind} must be positive", "length", self.length)


@dataclass(frozen=True)
class InertiaConfig:
    """Entry of ``inertia``: about the CoM, in the axes of the link's <inertial>."""

    ixx: float = param(0.0, "moment about x", unit="kg.m^2", required=True)
    ixy: float = param(0.0, "product of x and y, as in the URDF", unit="kg.m^2")
    ixz: float = param(0.0, "product of x and z", unit="kg.m^2")
    iyy: float = param(0.0, "moment about y", unit="kg.m^2", required=True)
    iyz: float = param(0.0, "product of y and z", unit="kg.m^2")
    izz: float = param(0.0, "moment about z", unit="kg.m^2", required=True)


@dataclass(frozen=True)
class ImuConfig:
    """The key ``imu``."""

    frame: str = param("", "URDF frame of the IMU; default the root link")


@dataclass(frozen=True)
class SensorConfig:
    """Entry of ``sensors``: an IMU in addition to that of the key ``imu``, or a switch in the sole of a foot."""

    type: str = param("", "kind of sensor", choices=(IMU, CONTACT_SWITCH), required=True)
    frame: str = param("", "of an IMU: URDF link or frame in whose axes it measures")
    foot: str = param("", "of a contact switch: foot whose sole closes it")
    threshold: float | None = param(
        None,
        f"of a contact switch: normal force of the sole above which it is closed; default {SWITCH_THRESHOLD:g}",
        unit="N",
        low=0.0,
        high=1e5,
    )
    topic: str = param("", "topic of its messages; default /NAME/data of an IMU, /NAME/closed of a contact switch")

    def problems(self) -> Iterator[ConfigError]:
        """Yield inconsistencies between the keys."""
        own, other = ("frame", "foot") if self.type == IMU else ("foot", "frame")
        if not getattr(self, own):
            yield ConfigError(f"missing; the sensor is of type {self.type}", own)
        if getattr(self, other):
            yield ConfigError(f"is no key of type {self.type}, which needs {own}", other, getattr(self, other))
        if self.type == IMU and self.threshold is not None:
            yield ConfigError(f"is no key of type {self.type}", "threshold", self.threshold)


@dataclass(frozen=True)
class RobotConfig:
    """Keys of robot.yaml. Values per joint use joint names or regular expressions; the last match is used."""

    name: str = param("", "name of the robot", required=True)
    description: str = param("", "one line about the robot")
    urdf: str = param(
        "", f"URDF file next to robot.yaml, or package:{PACKAGE}/<path below its robots folder>", required=True
    )
    root: str = param("free_flyer", "joint between the world and the root link", choices=("free_flyer", "fixed"))
    joints: list[str] | None = param(
        None, "actuated joints in the order of commands; default every joint not locked or passive"
    )
    passive: list[str] = param([], "list of movable joints without drive, command, limit or sensor")
    locked: Mapping[str, float] = param(
        {}, "welded joint to its angle [rad]; `others` is the angle of all joints without an entry"
    )
    loops: Mapping[str, LoopConfig] = param({}, "loop name to the two frames that close a chain")
    loops_from: str = param(
        "", "MJCF file next to robot.yaml; its equality constraints (connect, weld) also close chains"
    )
    feet: Mapping[str, FootConfig] = param({}, "foot name to its sole")
    bodies: Mapping[str, list[ShapeConfig]] = param(
        {}, "link to its collision shapes, instead of those of the URDF; `[]` for none"
    )
    self_collision: list[list[str]] = param(
        [], "pairs of links, [[link, link], ...], with contact between their spheres, capsules and cylinders"
    )
    imu: ImuConfig = param(ImuConfig(), "{frame: URDF frame of the IMU}; default the root link")
    sensors: Mapping[str, SensorConfig] = param(
        {}, "name of a further IMU or of a contact switch to its place: {type: imu, frame: ...}"
    )
    effort_limit: PerJoint | None = param(None, "per joint, instead of the URDF's", unit="N.m")
    velocity_limit: PerJoint | None = param(None, "per joint, instead of the URDF's", unit="rad/s")
    position_limit: tuple[float, float] | Mapping[str, tuple[float, float]] | None = param(
        None, "per joint [lower, upper], instead of the URDF's", unit="rad"
    )
    armature: PerJoint | None = param(None, "reflected rotor inertia per joint", unit="kg.m^2", low=0.0)
    joint_damping: PerJoint | None = param(
        None, "viscous friction per joint, instead of the URDF's", unit="N.m.s/rad", low=0.0
    )
    drive_stiffness: PerJoint | None = param(
        None,
        "stiffness of the position loop in the drive of a joint; default: from the inertia",
        unit="N.m/rad",
        low=0.0,
    )
    drive_damping: PerJoint | None = param(None, "damping of this position loop", unit="N.m.s/rad", low=0.0)
    inertia: Mapping[str, InertiaConfig] = param({}, "link to its inertia, instead of the URDF's: {ixx: ..., iyy: ...}")
    inertia_check: str = param(
        STRICT,
        "strict: refuse inertias that are impossible for a rigid body; mend: replace them by the nearest possible one",
        choices=(STRICT, MEND),
    )
    gravity: float = param(
        9.81, "gravity of the world of the robot; 1 in normalised units", unit="m/s^2", low=0.0, high=1000.0
    )
    posture: PerJoint | None = param(
        None, "standing posture per joint, with bent knees; joints without an entry are at 0", unit="rad"
    )
    postures: Mapping[str, Mapping[str, float]] = param(
        {}, "other postures by name: joint to its angle; a run may start in one", unit="rad"
    )
    controllers: Mapping[str, Mapping[str, Any] | None] = param(
        {}, "controller name to the parameters that differ from its defaults"
    )
    hardware: Mapping[str, Mapping[str, Any]] = param(
        {}, "preset of the hardware to the parameters that this robot changes in it"
    )
    sources: Mapping[str, Any] = param({}, "where armature, soles and limits were published")

    def problems(self) -> Iterator[ConfigError]:
        """Yield inconsistencies between the keys."""
        for name in self.feet:
            if not re.fullmatch(r"[A-Za-z]\w*", name):
                yield ConfigError(
                    "a foot's name becomes part of topic names: letters, digits and _, starting with a letter",
                    f"feet.{name}",
                )


def read_robot_config(path: Path) -> RobotConfig:
    """Read and check the keys of ``path``; joints and frames are checked later with the URDF.

    Raises:
        ConfigError: The file or a key is missing, or a key is unknown or of the wrong type.
    """
    return from_file(RobotConfig, path)


def _prefixes() -> Iterable[Path]:
    """Yield folders that may contain share/example-robot-data: pip's cmeel prefix, ROS, and the Python prefix."""
    for entry in sys.path:
        yield Path(entry) / "cmeel.prefix"
    for variable in ("AMENT_PREFIX_PATH", "CMAKE_PREFIX_PATH"):
        for entry in os.environ.get(variable, "").split(os.pathsep):
            if entry:
                yield Path(entry)
    yield Path(sys.prefix)


def urdf_path(text: str, source: Path) -> Path:
    """Return the file that the key ``urdf`` of ``source`` refers to.

    Raises:
        ConfigError: The file or its package does not exist.
    """
    if not text.startswith("package:"):
        path = source.parent / text
        try:
            check_readable(path)
        except ConfigError as error:
            raise ConfigError(f"must be the path of a URDF; {error}", f"{source}: urdf", text) from error
        return path.resolve()
    package, _, relative = text.removeprefix("package:").partition("/")
    if package != PACKAGE or not relative:
        raise ConfigError(
            f"must be a file or package:{PACKAGE}/<path below its robots folder>", f"{source}: urdf", text
        )
    for prefix in _prefixes():
        folder = prefix / "share" / PACKAGE / "robots"
        if (folder / relative).is_file():
            return (folder / relative).resolve()
        if folder.is_dir():
            known = sorted(str(p.relative_to(folder)) for p in folder.glob("*/*/*.urdf"))
            raise UnknownNameError("urdf", relative, known, str(source))
    raise ConfigError(f"needs the package {PACKAGE}: {install('bipedsim[robots]')}", f"{source}: urdf", text)
