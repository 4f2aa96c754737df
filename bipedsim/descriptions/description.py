"""Define the content of a robot description of any format: a URDF, and everything that a URDF cannot express."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bipedsim.descriptions.notes import Notes
from bipedsim.numerics import Array

STANDING = ("home", "stand", "standing", "knees_bent", "default", "init", "half_sitting", "rest")
"""Names of standing postures in published files, most reliable first."""
GRAVITY = 9.81
"""Standard gravity [m/s^2], the default for files without gravity."""
IMU = re.compile(r"(^|[_\W])imu([_\W]|\d|$)|imu_?(link|frame|site|sensor)|inertial_measurement", re.IGNORECASE)


@dataclass
class Description:
    """A robot from a description file.

    Attributes:
        name: Name of the robot.
        source: The file that was read.
        urdf: Root of the URDF, read from the file or converted from another format.
        path: Path of the URDF, or where it is to be written; mesh paths are relative to it.
        made: Whether the URDF was converted and must be written.
        notes: Notes for the report.
        armature, damping, friction: Joint to reflected inertia [kg.m^2], viscous damping [N.m.s/rad] and Coulomb
            friction [N.m], if the file states them or its format has defaults; damping is also in the URDF.
        stiffness: Joint to (kp, kd) of its position drive.
        passive: Joints without a drive.
        locked: Joints to weld, and their angles [rad].
        loops: Closed kinematic chains in the format of robot.yaml.
        postures: Name of a posture to joint angles [rad].
        attitudes: Name of a posture to the rotation (3, 3) of the base in the world, without heading.
        base: Upright link that was added above the root of the file, or empty.
        imu: Frame of the sensors of an MJCF file, or empty.
        sole_friction: Link to the coefficients of sliding friction between its shapes and the floor.
        gravity: Gravity of the file [m/s^2].
        meshes: File name to the triangles (T, 3, 3) [m] that are to be written next to the URDF.
    """

    name: str
    source: Path
    urdf: ElementTree.Element
    path: Path
    made: bool
    notes: Notes
    armature: dict[str, float] = field(default_factory=dict)
    damping: dict[str, float] = field(default_factory=dict)
    friction: dict[str, float] = field(default_factory=dict)
    stiffness: dict[str, tuple[float, float]] = field(default_factory=dict)
    passive: list[str] = field(default_factory=list)
    locked: dict[str, float] = field(default_factory=dict)
    loops: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    postures: dict[str, dict[str, float]] = field(default_factory=dict)
    attitudes: dict[str, Array] = field(default_factory=dict)
    base: str = ""
    imu: str = ""
    sole_friction: dict[str, list[float]] = field(default_factory=dict)
    gravity: float = GRAVITY
    meshes: dict[str, Array] = field(default_factory=dict)


def standing_name(names: Iterable[str]) -> str:
    """Return the name of the posture that is most typical of standing, or an empty string.

    A name is typical if it is in ``STANDING``, or else if one of its words is.
    """
    names = list(names)
    words = (name for typical in STANDING for name in names if typical in name.split("_"))
    return next((name for name in STANDING if name in names), next(words, ""))


def plain(name: str) -> str:
    """Convert a name to lower-case letters, digits and _."""
    return re.sub(r"\W+", "_", name).strip("_").lower() or "robot"


def is_imu(name: str) -> bool:
    """Return whether the name of a link or site is typical of an IMU."""
    return IMU.search(name) is not None
