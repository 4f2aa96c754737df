"""What a description leaves open, by rules of thumb that are told: limits, reflected inertia, friction, gains, gait."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bipedsim.descriptions.description import Description
from bipedsim.descriptions.notes import Notes
from bipedsim.errors import some
from bipedsim.model import HELD, Robot, drive_gains, inverse_inertia, joint_gains
from bipedsim.numerics import Array

ARMATURE = 2e-4
"""Reflected inertia per effort limit [s^2]: G1's drives have 1.2e-4 to 1.8e-4, Talos' 3e-4."""
DAMPING = 0.01
"""Share of the effort limit that viscous friction takes at the velocity limit."""
FRICTION = 0.01
"""Coulomb friction over the effort limit: G1 0.1 N.m of 25 to 139, Talos 1 to 2 N.m of 100 to 400."""
LEG_EFFORT, OTHER_EFFORT = 0.5, 0.15
"""Effort limit over weight times height of a robot, in the legs and elsewhere."""
NO_EFFORT = 2.0
"""Effort limit over weight times height from which it is no drive's: bipeds that were read have 0.4 at most, and those
who want none write 1000 N.m for a robot of 1.3 kg, 50 000 for one of 33 kg."""
VELOCITY = 10.0
"""Velocity limit [rad/s or m/s]."""
STEP = 1e-3
"""Step [s] over which torques are held: a control rate of 1 kHz."""
UNSTABLE = 2.0
"""Largest eigenvalue of h M^-1 Kd from which an explicit damping diverges."""
ANKLE_SHARE = 0.4
"""Of an ankle's effort limit that may be gone as the robot stands on one foot; the rest is for balance."""


@dataclass
class Drives:
    """Keys of robot.yaml about drives, joint by joint; only what differs from the URDF."""

    effort_limit: dict[str, float] = field(default_factory=dict)
    velocity_limit: dict[str, float] = field(default_factory=dict)
    position_limit: dict[str, list[float]] = field(default_factory=dict)
    armature: dict[str, float] = field(default_factory=dict)
    joint_damping: dict[str, float] = field(default_factory=dict)
    drive_stiffness: dict[str, float] = field(default_factory=dict)
    drive_damping: dict[str, float] = field(default_factory=dict)
    coulomb_friction: dict[str, float] = field(default_factory=dict)


def guess_drives(found: Description, joints: Sequence[str], legs: set[str], weight: float, height: float) -> Drives:
    """Return what the URDF lacks of each driven joint, and tell it.

    Args:
        found: The description.
        joints: Driven joints.
        legs: Those of them that belong to legs.
        weight: Of the robot [N].
        height: Of the robot [m].
    """
    drives, notes = Drives(), found.notes
    elements = {e.get("name", ""): e for e in found.urdf.findall("joint")}
    effort, velocity = {}, {}
    most, beyond = NO_EFFORT * weight * height, {}
    for joint in joints:
        limit = elements[joint].find("limit")
        effort[joint], velocity[joint] = (_positive(limit, key) for key in ("effort", "velocity"))
        if effort[joint] > most:
            beyond[joint], effort[joint] = effort[joint], 0.0
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
        ("position_limit", "half a turn to either side"),
    ):
        if getattr(drives, key):
            notes.guessed(f"{key} of {some(list(getattr(drives, key)))}: {why}; the description has none")
    if beyond:
        names = some([f"{joint} {value:g}" for joint, value in beyond.items()])
        notes.doubts(
            f"effort limits of {names} are no drive's: beyond {NO_EFFORT:g} times weight times height ({most:.3g}); "
            "taken as none"
        )
    for joint, (kp, kd) in found.stiffness.items():
        if joint in effort:
            drives.drive_stiffness[joint] = kp
            if kd > 0.0:
                drives.drive_damping[joint] = kd
    if drives.drive_stiffness:
        notes.found(f"stiffness of the position drives of {some(list(drives.drive_stiffness))}")
    if len(drives.drive_damping) < len(joints):
        notes.guessed("gains of drives that are not in robot.yaml: from the inertia of the joints, see the table below")
    _friction(drives, found, effort, velocity, notes)
    return drives


def _friction(
    drives: Drives, found: Description, effort: Mapping[str, float], velocity: Mapping[str, float], notes: Notes
) -> None:
    """Fill reflected inertia, damping and dry friction."""
    lacking: dict[str, list[str]] = {"armature": [], "joint_damping": [], "coulomb_friction": []}
    for joint, most in effort.items():
        for key, stated, guess in (
            ("armature", found.armature, ARMATURE * most),
            ("joint_damping", found.damping, DAMPING * most / velocity[joint]),
            ("coulomb_friction", found.friction, FRICTION * most),
        ):
            if joint not in stated:
                lacking[key].append(joint)
                getattr(drives, key)[joint] = _round(guess)
            elif key != "joint_damping":  # which the URDF has
                getattr(drives, key)[joint] = stated[joint]
    for key, why in (
        ("armature", f"{ARMATURE:g} s^2 times the effort limit, as drives of published robots have it"),
        ("joint_damping", f"{DAMPING:.0%} of the effort limit at the velocity limit"),
        ("coulomb_friction", f"{FRICTION:.0%} of the effort limit; only under --hardware realistic"),
    ):
        names = lacking[key]
        known = len(effort) - len(names)
        if known:
            notes.found(f"{key} of {known} joints")
        if names:
            values = sorted(getattr(drives, key)[name] for name in names)
            size = f"{values[0]:.3g}" if values[0] == values[-1] else f"{values[0]:.3g} to {values[-1]:.3g}"
            notes.guessed(f"{key} of {'all joints' if not known else some(names)}, {size}: {why}; an estimate")
    rubbing = [name for name, value in found.friction.items() if value > 0.0]
    if any(name in effort for name in rubbing):
        notes.dropped(f"friction of {some(rubbing)} under the ideal hardware; --hardware realistic has it")


def _positive(limit: ElementTree.Element | None, key: str) -> float:
    value = 0.0 if limit is None else float(limit.get(key) or 0.0)
    return value if 0.0 < value < 1e9 else 0.0


def _round(value: float) -> float:
    """Return ``value`` to four digits."""
    return float(f"{value:.4g}")


def gains(robot: Robot) -> dict[str, Array]:
    """Return what a joint shows to its drive, and the gains that follow, each (nu,).

    Returns:
        ``inertia`` [kg.m^2], ``kp`` [N.m/rad] and ``kd`` [N.m.s/rad] of the robot's drives that close their loops every
        millisecond (:func:`bipedsim.model.drive_gains`), and ``kd_most``, at which an explicit damping of all joints at
        once, held for a millisecond, is about to diverge. Where loops hold a joint, its inertia is inf, and the others
        are NaN.
    """
    inertia = effective_inertia(inverse_inertia(robot))
    if not robot.nu or np.isinf(inertia).any():
        nothing = np.full(robot.nu, np.nan)
        return {"inertia": inertia, "kp": nothing, "kd": nothing, "kd_most": nothing}
    kp, kd = drive_gains(robot, STEP)
    return {"inertia": inertia, "kp": kp, "kd": kd, "kd_most": joint_gains(robot, STEP, UNSTABLE)[1]}


def effective_inertia(inverse: Array) -> Array:
    """Return 1 / (M^-1)_ii (nu,) [kg.m^2]; inf of a joint that loops hold.

    Args:
        inverse: (nu, nu), of :func:`bipedsim.model.inverse_inertia`.
    """
    mobility = np.diag(inverse)
    held = mobility <= HELD * mobility.max(initial=0.0)
    return np.asarray(np.where(held, np.inf, 1.0 / np.where(held, 1.0, mobility)))


def zmp_shift(lever: float, effort: float, weight: float, sole: float) -> float:
    """Return how far from the middle of the sole ``zmp`` plans the ZMP, ahead [m], so that the ankle can carry it.

    On one foot the ankle holds the weight at the distance of the ZMP. Where the middle of the sole is too far, the ZMP
    goes nearer to the ankle, by a quarter of the sole at most; 0 where the ankle is strong enough.

    Args:
        lever: How far the middle of the sole is ahead of the ankle's axis [m].
        effort: Limit of the ankle [N.m].
        weight: Of the robot [N].
        sole: Length of the sole [m].
    """
    reach = ANKLE_SHARE * effort / weight
    return float(np.clip(np.clip(lever, -reach, reach) - lever, -0.25 * sole, 0.25 * sole))


def gait(leg: float, com: float, sole: float, g: float) -> dict[str, Any]:
    """Return parameters of ``zmp`` for a robot of another size than those it was tuned on, by similarity.

    Lengths go with the length of the leg, velocities with its root, as of a pendulum (Froude). Times of steps are not
    among them: ``zmp`` has them from the pendulum and the speed.

    Args:
        leg: Length of the legs, stretched [m].
        com: Height of the CoM over the soles as the robot stands [m].
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
