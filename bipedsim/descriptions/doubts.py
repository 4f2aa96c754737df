"""Check a robot that loads for implausible properties, which often come from mistakes in its description."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pinocchio as pin

from bipedsim.descriptions.guesses import effective_inertia, gains
from bipedsim.descriptions.legs import PosedRobot, mirrors, outline
from bipedsim.errors import some
from bipedsim.model import (
    Robot,
    Shape,
    ShapeFault,
    ShapeWarning,
    Sole,
    inverse_inertia,
    sole_placements,
    standing_torque,
)
from bipedsim.numerics import Array

FAR_SOLE = 0.05
"""Implausible distance from the lowest point of a foot's geometry to its sole [m]."""
AT_LIMIT = 0.03
"""Distance of a standing joint to its limit that leaves too little range for balance [rad]."""
UNEVEN = 0.02
"""Implausible relative difference between the masses of mirrored bodies."""
TILTED = 0.2
"""Tilt of the trunk that is implausible for a standing posture [rad]."""
IN_GROUND = 0.01
"""Depth of a body in the ground from which the simulator refuses to start [m]."""
LIGHT = 1e-3
"""Effective inertia that is implausibly small for a geared drive [kg.m^2]."""
TURN, CIRCLE = 6.3, 360.0
"""Joint limits between these are probably in degrees; larger ones mean no limit [rad]."""
WEIGHTLESS, HOLLOW = 1e-3, 50.0
"""Implausible mass of the trunk: as a fraction of the robot's, and over the volume of its shapes [kg/m^3]."""
TIRED = 0.8
"""Implausible effort for standing, as a fraction of the effort limit."""
SHARED = {
    ShapeFault.NO_FILE: "collision meshes of {} do not exist, so these links make no contact. Set ROS_PACKAGE_PATH to "
    "the folder of their package, or define shapes under `bodies`",
    ShapeFault.UNREADABLE: "collision meshes of {} cannot be read, so they make no contact. Define shapes under "
    "`bodies`",
    ShapeFault.THIN: "meshes of {} are thinner than 1 mm",
}
"""Fault of shapes to one sentence for all links with this fault."""


def find_doubts(robot: Robot) -> Iterator[str]:
    """Yield warnings about implausible properties of a robot that loads."""
    yield from dict.fromkeys(text.removeprefix(f"{robot.source}: ") for text in robot.warnings)
    yield from grouped_warnings(robot.shapes.warnings, str(robot.source))
    if robot.free_flyer and robot.nu and not robot.shapes.shapes:
        yield (
            "no link has collision geometry: only the soles make contact with the ground, also after a fall. "
            "Define shapes under `bodies`"
        )
    yield from _doubts_of_stance(robot)
    yield from _doubts_of_soles(robot)
    yield from _doubts_of_joints(robot)
    yield from _doubts_of_masses(robot)


def grouped_warnings(warnings: Iterable[ShapeWarning], source: str) -> Iterator[str]:
    """Yield the warnings about the shapes of a robot, with one sentence for warnings that several links share.

    Args:
        warnings: Warnings about its shapes.
        source: File name to remove from the warnings.
    """
    links: dict[ShapeFault, dict[str, None]] = {fault: {} for fault in SHARED}
    others: dict[str, None] = {}
    for warning in warnings:
        if warning.fault in SHARED:
            links[warning.fault][warning.link] = None
        else:
            others[warning.text.removeprefix(f"{source}: ")] = None
    for fault, names in links.items():
        if names:
            yield SHARED[fault].format(some(list(names)))
    yield from others


def _doubts_of_stance(robot: Robot) -> Iterator[str]:
    if not robot.free_flyer or not robot.soles:
        return
    tilt = float(np.arccos(np.clip(pin.Quaternion(robot.q_nominal[3:7]).toRotationMatrix()[2, 2], -1.0, 1.0)))
    if tilt > TILTED:
        yield f"posture: the trunk is tilted by {tilt:.2g} rad. Use a posture with flat soles and an upright trunk"
    posed = posed_robot(robot)
    feet = {sole.joint_id for sole in robot.soles}
    penetrating = [
        f"{robot.model.names[j]} {-1e3 * posed.lowest[j]:.0f} mm"
        for j in sorted(posed.touching - feet)
        if posed.lowest[j] < -IN_GROUND
    ]
    if penetrating:
        yield (
            f"posture: bodies penetrate the ground, named by their joint: {some(penetrating)}. A run cannot start in "
            "this posture"
        )


def _doubts_of_soles(robot: Robot) -> Iterator[str]:
    for sole in robot.soles:
        gap = sole_gap(robot, sole)
        joint = robot.model.names[sole.joint_id]
        if abs(gap) > FAR_SOLE:
            yield (
                f"feet.{sole.name}: the sole is {abs(gap):.3g} m {'below' if gap > 0 else 'above'} the lowest point of "
                f"the geometry of its foot (joint {joint!r}). Check its placement"
            )
        distance = float(np.linalg.norm(sole.placement_joint_sole.act(np.append(sole.centre, 0.0))))
        reach = 0.35 * robot.com_height if robot.free_flyer else np.inf
        if not np.isfinite(gap) and distance > reach:
            yield f"feet.{sole.name}: the sole centre is {distance:.3g} m from joint {joint!r}, which is far for a foot"
        size = float(np.ptp(sole.vertices, axis=0).max())
        if sole.n_vertices > 2 and robot.free_flyer and not 0.05 < size / robot.com_height < 0.6:
            yield f"feet.{sole.name}: its size {size:.3g} m is unusual for a CoM height of {robot.com_height:.3g} m"
    flat = [sole for sole in robot.soles if sole.n_vertices > 2]
    if len(flat) == 2 and robot.free_flyer:
        data = robot.model.createData()
        placements = sole_placements(robot.model, data, flat, robot.q_nominal)
        sides = [
            (placement.rotation[1, :2] @ sole.vertices.T + placement.translation[1])
            for placement, sole in zip(placements, flat, strict=True)
        ]
        low, high = sorted(sides, key=lambda y: float(y.mean()))
        if low.max() > high.min():
            yield f"the soles overlap laterally by {low.max() - high.min():.3g} m in the standing posture"
        sizes = [np.ptp(sole.vertices, axis=0) for sole in flat]
        if np.abs(sizes[0] - sizes[1]).max() > 5e-3:
            yield f"the two soles differ in size: {_two(sizes[0])} and {_two(sizes[1])} m"


def _two(size: Array) -> str:
    return f"{size[0]:.3g} x {size[1]:.3g}"


def _doubts_of_joints(robot: Robot) -> Iterator[str]:
    if not robot.nu:
        return
    legs = {j for sole in robot.soles for j in PosedRobot.of(robot.model, robot.q_nominal).chain(sole.joint_id)}
    margin = np.minimum(robot.posture - robot.position_lower, robot.position_upper - robot.posture)
    near_limit = [
        name
        for name, margin_of_joint in zip(robot.joint_names, margin, strict=True)
        if margin_of_joint < AT_LIMIT and robot.model.getJointId(name) in legs
    ]
    largest = np.maximum(np.abs(robot.position_lower), np.abs(robot.position_upper))
    in_degrees = [
        f"{name} {robot.position_lower[i]:.4g} to {robot.position_upper[i]:.4g} rad"
        for i, name in enumerate(robot.joint_names)
        if TURN < largest[i] <= CIRCLE
        and not robot.model.joints[robot.model.getJointId(name)].shortname().startswith("JointModelP")
    ]
    if in_degrees:
        yield f"limits beyond a whole turn: {some(in_degrees)}. Write radians, if these are degrees"
    if near_limit:
        yield f"posture: {some(near_limit)} are within {AT_LIMIT:g} rad of a limit"
    if robot.free_flyer and robot.soles:
        share = np.abs(standing_torque(robot)) / robot.effort_limit
        overloaded = [f"{name} {s:.0%}" for name, s in zip(robot.joint_names, share, strict=True) if s > TIRED]
        if overloaded:
            yield f"standing needs most of the effort limit of {some(overloaded)}"
    inertia = effective_inertia(inverse_inertia(robot))
    joint_gains = gains(robot)
    unstable = [
        f"{name} {kd:.3g}, at most {limit:.3g}"
        for name, kd, limit in zip(robot.joint_names, joint_gains["kd"], joint_gains["kd_most"], strict=True)
        if kd > limit
    ]
    if unstable:
        yield f"drive_damping diverges at 1 kHz: {some(unstable)} N.m.s/rad"
    blocked = [name for name, i in zip(robot.joint_names, inertia, strict=True) if np.isinf(i)]
    if blocked:
        yield f"closed chains block {some(blocked)}, so their actuators cannot move"
    armature = robot.model.armature[robot.idx_v]
    small = np.flatnonzero((armature == 0.0) & (inertia < LIGHT))
    light = [f"{robot.joint_names[i]} {inertia[i]:.2g}" for i in small]
    if light:
        yield f"no rotor inertia and a small effective inertia [kg.m^2]: {some(light)}. Set `armature`"


def _doubts_of_masses(robot: Robot) -> Iterator[str]:
    if not robot.free_flyer or len(robot.soles) != 2:
        return
    model = robot.model
    yield from _doubts_of_trunk(robot)
    pairs = mirrors(robot, robot.q_nominal)
    uneven = []
    for name, (other, _) in pairs.items():
        masses = [model.inertias[model.getJointId(n)].mass for n in (name, other)]
        if name < other and abs(masses[0] - masses[1]) > UNEVEN * max(masses):
            uneven.append(f"{name} {masses[0]:.3g} and {other} {masses[1]:.3g} kg")
    if uneven:
        yield f"mirrored bodies of different mass: {some(uneven)}"


def _doubts_of_trunk(robot: Robot) -> Iterator[str]:
    model = robot.model
    trunk, total = model.inertias[1].mass, sum(body.mass for body in model.inertias)
    volume = sum(_volume(shape) for shape in robot.shapes.shapes if shape.joint_id == 1)
    least = max(WEIGHTLESS * total, HOLLOW * volume)
    if trunk < least:
        name = next(frame.name for frame in model.frames if frame.type == pin.BODY and frame.parentJoint == 1)
        yield (
            f"{name}: the trunk with all that is fixed to it has a mass of {trunk:.3g} kg; its size suggests more than "
            f"{least:.3g} kg. Check the masses of its links"
        )


def _volume(shape: Shape) -> float:
    """Return the volume of the hull of a shape, without the radius around its points [m^3]."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        return float(ConvexHull(outline(shape)).volume)
    except (QhullError, ValueError):
        return 0.0


def posed_robot(robot: Robot) -> PosedRobot:
    """Return a robot in its standing posture with the extent of its bodies."""
    return PosedRobot.of(robot.model, robot.q_nominal, robot.shapes.shapes)


def sole_gap(robot: Robot, sole: Sole) -> float:
    """Return the height of the lowest point of the foot's geometry above its sole [m]; NaN without geometry."""
    inverse = sole.placement_joint_sole.inverse()
    heights = [
        float((outline(shape) @ inverse.rotation[2]).min()) + float(inverse.translation[2]) - shape.radius
        for shape in robot.shapes.shapes
        if shape.joint_id == sole.joint_id
    ]
    return min(heights) + sole.radius if heights else float("nan")
