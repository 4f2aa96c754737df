"""What a robot is like, in words and numbers, with every doubt about it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pinocchio as pin

from bipedsim.descriptions.guesses import gains
from bipedsim.descriptions.importing import import_robot
from bipedsim.descriptions.legs import Figure, mirrored_joints, outline
from bipedsim.descriptions.notes import TITLES, Notes, some
from bipedsim.descriptions.source import SUFFIXES
from bipedsim.errors import ConfigError
from bipedsim.model import Robot, Sole, inverse_inertia, load_robot, sole_placements, standing_torque
from bipedsim.numerics import Array

FAR_SOLE = 0.05
"""Distance [m] from the lowest point of a foot's geometry to its sole that is odd."""
AT_LIMIT = 0.03
"""Distance [rad] of a standing joint to its limit that leaves no room to balance."""
UNEVEN = 0.02
"""Relative difference of the masses of mirrored bodies that is odd."""
LIGHT = 1e-3
"""Effective inertia [kg.m^2] that a drive with a gear would be far above."""
TIRED = 0.8
"""Share of the effort limit that standing may take."""
WAYS = (("ahead", "behind"), ("left", "right"), ("up", "down"))
"""Where the axes x, y and z point, and the other way."""


@dataclass(frozen=True)
class Described:
    """A description.

    Attributes:
        robot: As it was loaded; None where it cannot be.
        text: In Markdown.
        doubts: What is wrong or odd, one sentence each.
    """

    robot: Robot | None
    text: str
    doubts: tuple[str, ...]


def describe(name_or_file: str | Path) -> Described:
    """Describe a robot by its name, its robot.yaml, or a URDF, xacro or MJCF file, which is imported for it.

    Raises:
        ConfigError: There is no such robot or file.
    """
    path = Path(name_or_file)
    if path.suffix in SUFFIXES or (path.is_dir() and not (path / "robot.yaml").is_file()):
        with tempfile.TemporaryDirectory(prefix="bipedsim_describe_") as folder:
            made = import_robot(path, folder, replace=True)
            if made.robot is not None:
                # Shapes are read when they are asked for, and the folder is gone by then.
                _ = made.robot.shapes
        told = [f"{text} ({TITLES[kind].lower()})" for kind, all_of in made.notes.said.items() for text in all_of]
        if made.robot is None:
            return Described(None, "", tuple(told))
        return _described(made.robot, made.notes)
    try:
        robot = load_robot(name_or_file)
    except ConfigError as error:
        if not os.path.exists(name_or_file):
            raise
        return Described(None, "", tuple(str(error).split("\n  ")))
    return _described(robot, None)


def _described(robot: Robot, notes: Notes | None) -> Described:
    doubts = list(find_doubts(robot))
    if notes is not None:
        doubts += [text for text in notes.said["doubts"] if text not in doubts]
    lines = [f"# {robot.name}", "", robot.description, ""]
    lines += _masses(robot)
    lines += _joints(robot)
    lines += _soles(robot)
    if notes is not None:
        for kind in ("guessed", "dropped", "mended"):
            if notes.said[kind]:
                lines += [f"## {TITLES[kind]}", "", *(f"- {text}" for text in notes.said[kind]), ""]
    lines += ["## Doubts", "", *(f"- {text}" for text in doubts or ["none"])]
    return Described(robot, "\n".join(lines) + "\n", tuple(doubts))


def _masses(robot: Robot) -> list[str]:
    model = robot.model
    lines = ["## Masses", "", f"- {robot.mass:.3f} kg, {robot.nu} driven joints, {len(robot.loops)} closed chains"]
    bodies = sorted(range(1, model.njoints), key=lambda j: -model.inertias[j].mass)[:5]
    heaviest = ", ".join(f"{model.names[j]} {model.inertias[j].mass:.2f}" for j in bodies)
    lines.append(f"- heaviest bodies, by the joint that carries them, kg: {heaviest}")
    if robot.free_flyer and robot.soles:
        com, stretched = robot.com_height, _stretched(robot)
        time = np.sqrt(com / (robot.weight / robot.mass))
        lines.append(f"- the CoM stands {com:.3f} m above the soles: a pendulum of 1 / omega = {time:.2f} s")
        lines.append(
            f"- zmp: com_height 0 means {com:.3f} m; stretched legs would have it {stretched:.3f} m high. Above about "
            f"{0.98 * stretched:.3f} m knees stretch within a step; lower costs torque in the knees"
        )
    return [*lines, ""]


def _stretched(robot: Robot) -> float:
    """Return the height of the CoM [m] with stretched legs: that of the stance, and what the knees take from it."""
    model = robot.model
    data = model.createData()
    pin.forwardKinematics(model, data, robot.q_nominal)
    lacking = []
    for sole in robot.soles:
        chain = []
        joint = sole.joint_id
        while joint > 1:
            chain.append(data.oMi[joint].translation)
            joint = int(model.parents[joint])
        if len(chain) < 2:
            continue
        straight = float(np.linalg.norm(chain[0] - chain[-1]))
        length = sum(float(np.linalg.norm(b - a)) for a, b in pairwise(chain))
        # Offsets of crossing hip and ankle joints are no slack of the knee: only what turning across can give.
        lacking.append(min(length - straight, 0.1 * length))
    return robot.com_height + (min(lacking) if lacking else 0.0)


def _joints(robot: Robot) -> list[str]:
    found = gains(robot)
    figure = _standing(robot)
    pairs = mirrored_joints(figure, np.array([1.0, 0.0, 0.0])) if robot.free_flyer else {}
    lines = [
        "## Joints",
        "",
        "Signs: the axis of a positive angle, as the robot stands. Inertia: effective, base free.",
    ]
    lines += ["kd at most: what an explicit damping of all joints, held for 1 ms, may have before it diverges.", ""]
    lines += [
        (
            "| joint | limits, rad | + turns about | mirror | effort, N.m | speed, rad/s | inertia, kg.m^2 | kp | kd | "
            "kd at most |"
        ),
        "| --- " * 10 + "|",
    ]
    for i, joint in enumerate(robot.joint_names):
        axis = figure.axis(robot.model.getJointId(joint))
        k = int(np.argmax(np.abs(axis)))
        about = f"{'xyz'[k]}, {WAYS[k][0 if axis[k] > 0 else 1]}" + ("" if abs(axis[k]) > 0.98 else " (oblique)")
        mirror = "" if joint not in pairs else f"{'+' if pairs[joint][1] > 0 else '-'}{pairs[joint][0]}"
        numbers = " | ".join(f"{found[key][i]:.3g}" for key in ("inertia", "kp", "kd", "kd_most"))
        lines.append(
            f"| {joint} | {robot.position_lower[i]:.3g} to {robot.position_upper[i]:.3g} | {about} | {mirror} | "
            f"{robot.effort_limit[i]:.4g} | {robot.velocity_limit[i]:.3g} | {numbers} |"
        )
    return [*lines, ""]


def _standing(robot: Robot) -> Figure:
    return Figure.of(robot.model, robot.q_nominal, robot.shapes.shapes)


def _soles(robot: Robot) -> list[str]:
    lines = ["## Soles", ""]
    data = robot.model.createData()
    for sole, place in zip(robot.soles, sole_placements(robot.model, data, robot.soles, robot.q_nominal), strict=True):
        size = np.ptp(sole.vertices, axis=0)
        below = float(data.oMi[sole.joint_id].translation[2] - place.translation[2])
        kind = {1: "a point", 2: "a blade"}.get(sole.n_vertices, f"{sole.n_vertices} corners")
        gap = _gap(robot, sole)
        where = f"its geometry ends {1e3 * gap:+.1f} mm above it" if np.isfinite(gap) else "the foot has no geometry"
        lines.append(
            f"- {sole.name}: {kind}, {size[0]:.3g} x {size[1]:.3g} m, {below:.3g} m below joint "
            f"{robot.model.names[sole.joint_id]!r}; {where}; friction {sole.friction_static:g}"
        )
    return [*lines, ""]


def _gap(robot: Robot, sole: Sole) -> float:
    """Return how far [m] the lowest point of the foot's geometry is above its sole; NaN without geometry."""
    inverse = sole.placement_joint_sole.inverse()
    heights = [
        float((outline(shape) @ inverse.rotation[2]).min()) + float(inverse.translation[2]) - shape.radius
        for shape in robot.shapes.shapes
        if shape.joint_id == sole.joint_id
    ]
    return min(heights) + sole.radius if heights else float("nan")


def find_doubts(robot: Robot) -> Iterator[str]:
    """Yield what is odd about a robot that loads: what a mistake in its description looks like."""
    prefix = f"{robot.source}: "
    for text in (*robot.warnings, *robot.shapes.warnings):
        yield text.removeprefix(prefix)
    yield from _doubts_of_soles(robot)
    yield from _doubts_of_joints(robot)
    yield from _doubts_of_masses(robot)


def _doubts_of_soles(robot: Robot) -> Iterator[str]:
    for sole in robot.soles:
        gap = _gap(robot, sole)
        joint = robot.model.names[sole.joint_id]
        if abs(gap) > FAR_SOLE:
            yield (
                f"feet.{sole.name}: the sole is {abs(gap):.3g} m {'below' if gap > 0 else 'above'} the lowest point of "
                f"the geometry of its foot (joint {joint!r}); look at placement"
            )
        away = float(np.linalg.norm(sole.placement_joint_sole.act(np.append(sole.centre, 0.0))))
        reach = 0.35 * robot.com_height if robot.free_flyer else np.inf
        if not np.isfinite(gap) and away > reach:
            yield f"feet.{sole.name}: the middle of the sole is {away:.3g} m from joint {joint!r}, far for a foot"
        size = float(np.ptp(sole.vertices, axis=0).max())
        if sole.n_vertices > 2 and robot.free_flyer and not 0.05 < size / robot.com_height < 0.6:
            yield f"feet.{sole.name}: a sole of {size:.3g} m under a CoM at {robot.com_height:.3g} m is of an odd size"
    flat = [sole for sole in robot.soles if sole.n_vertices > 2]
    if len(flat) == 2 and robot.free_flyer:
        data = robot.model.createData()
        places = sole_placements(robot.model, data, flat, robot.q_nominal)
        sides = [
            (place.rotation[1, :2] @ sole.vertices.T + place.translation[1])
            for place, sole in zip(places, flat, strict=True)
        ]
        low, high = sorted(sides, key=lambda y: float(y.mean()))
        if low.max() > high.min():
            yield f"the soles overlap by {low.max() - high.min():.3g} m to the side as the robot stands"
        sizes = [np.ptp(sole.vertices, axis=0) for sole in flat]
        if np.abs(sizes[0] - sizes[1]).max() > 5e-3:
            yield f"the two soles differ in size: {_two(sizes[0])} and {_two(sizes[1])} m"


def _two(size: Array) -> str:
    return f"{size[0]:.3g} x {size[1]:.3g}"


def _doubts_of_joints(robot: Robot) -> Iterator[str]:
    if not robot.nu:
        return
    legs = {j for sole in robot.soles for j in Figure.of(robot.model, robot.q_nominal).chain(sole.joint_id)}
    room = np.minimum(robot.posture - robot.position_lower, robot.position_upper - robot.posture)
    near = [
        name
        for name, r in zip(robot.joint_names, room, strict=True)
        if r < AT_LIMIT and robot.model.getJointId(name) in legs
    ]
    if near:
        yield f"posture: {some(near)} stand within {AT_LIMIT:g} rad of a limit"
    if robot.free_flyer and robot.soles:
        share = np.abs(standing_torque(robot)) / robot.effort_limit
        tired = [f"{name} {s:.0%}" for name, s in zip(robot.joint_names, share, strict=True) if s > TIRED]
        if tired:
            yield f"standing takes most of the effort limit of {some(tired)}"
    inertia = 1.0 / np.diag(inverse_inertia(robot))
    armature = robot.model.armature[robot.idx_v]
    bare = np.flatnonzero((armature == 0.0) & (inertia < LIGHT))
    light = [f"{robot.joint_names[i]} {inertia[i]:.2g}" for i in bare]
    if light:
        yield f"effective inertia without that of a rotor, kg.m^2: {some(light)}; give them `armature`"


def _doubts_of_masses(robot: Robot) -> Iterator[str]:
    if not robot.free_flyer or len(robot.soles) != 2:
        return
    model = robot.model
    pairs = mirrored_joints(Figure.of(model, robot.q_nominal), np.array([1.0, 0.0, 0.0]))
    uneven = []
    for name, (other, _) in pairs.items():
        masses = [model.inertias[model.getJointId(n)].mass for n in (name, other)]
        if name < other and abs(masses[0] - masses[1]) > UNEVEN * max(masses):
            uneven.append(f"{name} {masses[0]:.3g} and {other} {masses[1]:.3g} kg")
    if uneven:
        yield f"mirrored bodies of different mass: {some(uneven)}"
