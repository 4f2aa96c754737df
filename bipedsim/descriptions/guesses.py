"""Estimate properties that a description lacks: limits, reflected inertia, friction, gains and gait.

The estimates are rules of thumb; the report of the import lists them.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bipedsim.descriptions.description import Description
from bipedsim.errors import some
from bipedsim.model import HELD, Robot, drive_gains, inverse_inertia, joint_gains
from bipedsim.numerics import Array

ARMATURE = 2e-4
"""Reflected inertia divided by effort limit [s^2]; G1 has 1.2e-4 to 1.8e-4, Talos 3e-4."""
DAMPING = 0.01
"""Viscous friction torque at the velocity limit, as a fraction of the effort limit."""
FRICTION = 0.01
"""Coulomb friction divided by effort limit; G1 has 0.1 of 25 to 139 N.m, Talos 1 to 2 of 100 to 400 N.m."""
LEG_EFFORT, OTHER_EFFORT = 0.5, 0.15
"""Effort limit divided by weight times height of the robot, in the legs and elsewhere."""
NO_EFFORT = 2.0
"""Effort limit divided by weight times height above which it is not the limit of a drive. Bipeds in known files have at
most 0.4. Files without real limits contain values such as 1000 N.m for 1.3 kg or 50 000 N.m for 33 kg."""
VELOCITY = 10.0
"""Velocity limit [rad/s or m/s]."""
UNITS = {
    "effort_limit": ("N.m", "N"),
    "armature": ("kg.m^2", "kg"),
    "joint_damping": ("N.m.s/rad", "N.s/m"),
    "coulomb_friction": ("N.m", "N"),
}
"""Unit of each property of drives for joints that turn, and for joints that slide."""
STEP = 1e-3
"""Time for which torques are held [s], for a control rate of 1 kHz."""
UNSTABLE = 2.0
"""Largest eigenvalue of h M^-1 Kd at which explicit damping becomes unstable."""
ANKLE_SHARE = 0.4
"""Fraction of an ankle's effort limit for static load on one foot; the rest is reserved for balance."""


@dataclass
class DriveDefaults:
    """Drive properties for robot.yaml, per joint; only values that differ from the URDF."""

    effort_limit: dict[str, float] = field(default_factory=dict)
    velocity_limit: dict[str, float] = field(default_factory=dict)
    position_limit: dict[str, list[float]] = field(default_factory=dict)
    armature: dict[str, float] = field(default_factory=dict)
    joint_damping: dict[str, float] = field(default_factory=dict)
    drive_stiffness: dict[str, float] = field(default_factory=dict)
    drive_damping: dict[str, float] = field(default_factory=dict)
    coulomb_friction: dict[str, float] = field(default_factory=dict)


def default_drives(
    description: Description, joints: Sequence[str], legs: set[str], weight: float, height: float
) -> DriveDefaults:
    """Estimate missing properties of all driven joints and note them.

    Args:
        description: The description.
        joints: Driven joints.
        legs: Driven joints that belong to legs.
        weight: Weight of the robot [N].
        height: Height of the robot [m].
    """
    drives, notes = DriveDefaults(), description.notes
    elements = {e.get("name", ""): e for e in description.urdf.findall("joint")}
    effort, velocity = {}, {}
    largest, implausible = NO_EFFORT * weight * height, {}
    for joint in joints:
        limit = elements[joint].find("limit")
        effort[joint], velocity[joint] = (_positive(limit, key) for key in ("effort", "velocity"))
        if effort[joint] > largest:
            implausible[joint], effort[joint] = effort[joint], 0.0
        if not effort[joint]:
            share = LEG_EFFORT if joint in legs else OTHER_EFFORT
            effort[joint] = drives.effort_limit[joint] = _round(share * weight * height)
        if not velocity[joint]:
            velocity[joint] = drives.velocity_limit[joint] = VELOCITY
        if elements[joint].get("type") == "continuous":
            continue
        low, high = (0.0 if limit is None else float(limit.get(key) or 0.0) for key in ("lower", "upper"))
        if not low < high:
            drives.position_limit[joint] = [-float(np.pi), float(np.pi)]
    for key, why in (
        ("effort_limit", f"{LEG_EFFORT:g} of weight times height in the legs, {OTHER_EFFORT:g} elsewhere"),
        ("velocity_limit", f"{VELOCITY:g} rad/s"),
        ("position_limit", "half a turn in both directions"),
    ):
        if getattr(drives, key):
            notes.guessed(f"{key} of {some(list(getattr(drives, key)))}: {why}; the description has no usable value")
    if implausible:
        names = some([f"{joint} {value:g}" for joint, value in implausible.items()])
        unit = _unit("effort_limit", elements, implausible)
        notes.doubts(
            f"effort limits of {names} {unit} are ignored. Values above {largest:.3g} {unit} ({NO_EFFORT:g} times "
            "weight times height) are implausible for a drive"
        )
    for joint, (kp, kd) in description.stiffness.items():
        if joint in effort:
            drives.drive_stiffness[joint] = kp
            if kd > 0.0:
                drives.drive_damping[joint] = kd
    if drives.drive_stiffness:
        notes.found(f"stiffness of the position drives of {some(list(drives.drive_stiffness))}")
    if len(drives.drive_damping) < len(joints):
        notes.guessed("gains of position loops: from the joint inertia, see the table of gains")
    _friction(drives, description, effort, velocity, elements)
    return drives


def _friction(
    drives: DriveDefaults,
    description: Description,
    effort: Mapping[str, float],
    velocity: Mapping[str, float],
    elements: Mapping[str, ElementTree.Element],
) -> None:
    """Set reflected inertia, damping and Coulomb friction."""
    notes = description.notes
    unstated: dict[str, list[str]] = {"armature": [], "joint_damping": [], "coulomb_friction": []}
    for joint, limit in effort.items():
        for key, stated, guess in (
            ("armature", description.armature, ARMATURE * limit),
            ("joint_damping", description.damping, DAMPING * limit / velocity[joint]),
            ("coulomb_friction", description.friction, FRICTION * limit),
        ):
            if joint not in stated:
                unstated[key].append(joint)
                getattr(drives, key)[joint] = _round(guess)
            elif key != "joint_damping":  # which the URDF has
                getattr(drives, key)[joint] = stated[joint]
    for key, why in (
        ("armature", f"{ARMATURE:g} s^2 times the effort limit, as in published robots"),
        ("joint_damping", f"{DAMPING:.0%} of the effort limit at the velocity limit"),
        ("coulomb_friction", f"{FRICTION:.0%} of the effort limit; only under --hardware realistic"),
    ):
        names = unstated[key]
        n_stated = len(effort) - len(names)
        if n_stated:
            notes.found(f"{key} of {n_stated} joints")
        if names:
            values = sorted(getattr(drives, key)[name] for name in names)
            size = f"{values[0]:.3g}" if values[0] == values[-1] else f"{values[0]:.3g} to {values[-1]:.3g}"
            size += f" {_unit(key, elements, names)}"
            notes.guessed(f"{key} of {'all joints' if not n_stated else some(names)}, {size}: {why}; an estimate")
    with_friction = [name for name, value in description.friction.items() if value > 0.0]
    if any(name in effort for name in with_friction):
        notes.dropped(f"friction of {some(with_friction)} under the ideal hardware; --hardware realistic simulates it")


def _unit(key: str, elements: Mapping[str, ElementTree.Element], joints: Iterable[str]) -> str:
    """Return the unit of a property of drives; both units if some of the joints turn and others slide."""
    slides = {elements[joint].get("type") == "prismatic" for joint in joints}
    return " or ".join(UNITS[key][slide] for slide in sorted(slides))


def _positive(limit: ElementTree.Element | None, key: str) -> float:
    value = 0.0 if limit is None else float(limit.get(key) or 0.0)
    return value if 0.0 < value < 1e9 else 0.0


def _round(value: float) -> float:
    """Round to four significant digits."""
    return float(f"{value:.4g}")


def gains(robot: Robot) -> dict[str, Array]:
    """Return the effective inertia and the gains of each joint (nu,).

    Returns:
        ``inertia`` [kg.m^2]. ``kp`` [N.m/rad] and ``kd`` [N.m.s/rad] of drives with a position loop at 1 kHz
        (:func:`bipedsim.model.drive_gains`). ``kd_most``: stability limit for explicit damping of all joints at once,
        held for 1 ms. The inertia of a joint that closed chains block is inf, and all gains are then NaN.
    """
    inertia = effective_inertia(inverse_inertia(robot))
    if not robot.nu or np.isinf(inertia).any():
        undefined = np.full(robot.nu, np.nan)
        return {"inertia": inertia, "kp": undefined, "kd": undefined, "kd_most": undefined}
    kp, kd = drive_gains(robot, STEP)
    return {"inertia": inertia, "kp": kp, "kd": kd, "kd_most": joint_gains(robot, STEP, UNSTABLE)[1]}


def effective_inertia(inverse: Array) -> Array:
    """Return 1 / (M^-1)_ii (nu,) [kg.m^2]; inf for joints that closed chains block.

    Args:
        inverse: (nu, nu) from :func:`bipedsim.model.inverse_inertia`.
    """
    mobility = np.diag(inverse)
    blocked = mobility <= HELD * mobility.max(initial=0.0)
    return np.asarray(np.where(blocked, np.inf, 1.0 / np.where(blocked, 1.0, mobility)))


def zmp_shift(lever: float, effort: float, weight: float, sole: float) -> float:
    """Return the forward offset of the ZMP from the sole centre that ``zmp`` needs for a weak ankle [m].

    On one foot, the ankle torque is the weight times the distance to the ZMP. If the torque at the sole centre is too
    large, the ZMP moves towards the ankle by at most a quarter of the sole. The offset is 0 for a strong ankle.

    Args:
        lever: Forward distance from the ankle's axis to the sole centre [m].
        effort: Effort limit of the ankle [N.m].
        weight: Weight of the robot [N].
        sole: Length of the sole [m].
    """
    reach = ANKLE_SHARE * effort / weight
    return float(np.clip(np.clip(lever, -reach, reach) - lever, -0.25 * sole, 0.25 * sole))


def scaled_gait(leg: float, com: float, sole: float, g: float) -> dict[str, Any]:
    """Return parameters of ``zmp`` for a robot of another size, scaled by similarity from the tuned robots.

    Lengths scale with the leg length, velocities with its square root, as for a pendulum (Froude number). ``zmp``
    computes step times itself, from the pendulum and the speed.

    Args:
        leg: Length of the stretched legs [m].
        com: Height of the CoM above the soles in the standing posture [m].
        sole: Length of the soles [m].
        g: Gravity [m/s^2].
    """
    time = float(np.sqrt(leg / g)) / float(np.sqrt(0.85 / 9.81))
    return {
        "com_height": float(f"{0.985 * com:.3g}"),
        "step_height": float(f"{0.055 * leg:.2g}"),
        "max_forward": float(f"{min(0.13 * np.sqrt(g * leg), 2.0 * sole / time):.2g}"),
        "max_sideways": float(f"{0.03 * np.sqrt(g * leg):.2g}"),
    }
