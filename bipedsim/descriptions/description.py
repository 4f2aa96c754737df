"""What a description holds, whatever its format: a URDF, and what a URDF has no words for."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bipedsim.descriptions.notes import Notes
from bipedsim.numerics import Array

STANDING = ("home", "stand", "standing", "knees_bent", "default", "init", "half_sitting", "rest")
"""Names of postures in which robots of published files stand, in the order of trust."""
GRAVITY = 9.81
"""Standard gravity [m/s^2], where a file says nothing else."""
IMU = re.compile(r"(^|[_\W])imu([_\W]|\d|$)|imu_?(link|frame|site|sensor)|inertial_measurement", re.IGNORECASE)


@dataclass
class Description:
    """A robot as others have described it.

    Attributes:
        name: Of the robot.
        source: The file that was read.
        urdf: Root of the URDF, of the file itself or made from another format.
        path: Where that URDF is, or is to be written; meshes are looked for beside it.
        made: Whether it was made and has to be written.
        notes: What there was to say.
        armature, damping, friction: Joint to reflected inertia [kg.m^2], viscous damping [N.m.s/rad] and Coulomb
            friction [N.m], where the file states them or its format has a default; damping is in the URDF, too.
        stiffness: Joint to (kp, kd) of its position drive.
        passive: Joints without a drive.
        locked: Joints to weld, and their angles [rad].
        loops: What closes chains, as robot.yaml has it.
        postures: Names of postures to joint angles [rad].
        attitudes: The same names to the rotation (3, 3) of the base in the world, its heading left out.
        base: Upright link that was added above the root of the file, or empty.
        imu: Frame of the sensors of an MJCF file, or empty.
        sole_friction: Link to the coefficients of sliding friction between its shapes and the floor.
        gravity: Of the file [m/s^2].
        meshes: File names to the triangles (T, 3, 3) [m] that are to be written beside the URDF.
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


def plain(name: str) -> str:
    """Return a name of letters, digits and _."""
    return re.sub(r"\W+", "_", name).strip("_").lower() or "robot"


def is_imu(name: str) -> bool:
    """Whether a link or site is called as IMUs are."""
    return IMU.search(name) is not None
