"""Describe a robot in words and numbers, with all warnings about it."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pinocchio as pin

from bipedsim.descriptions.doubts import find_doubts, posed_robot, sole_gap
from bipedsim.descriptions.guesses import gains
from bipedsim.descriptions.importing import import_robot
from bipedsim.descriptions.legs import mirrored_joints
from bipedsim.descriptions.notes import TITLES, Notes
from bipedsim.errors import ConfigError
from bipedsim.model import DESCRIPTIONS, Robot, load_robot, sole_placements

WAYS = (("ahead", "behind"), ("left", "right"), ("up", "down"))
"""Directions of the positive and negative x, y and z axes."""


@dataclass(frozen=True)
class Described:
    """Description of a robot.

    Attributes:
        robot: The loaded robot; None if it cannot be loaded.
        text: The description in Markdown.
        doubts: Errors and warnings.
    """

    robot: Robot | None
    text: str
    doubts: tuple[str, ...]


def describe(name_or_file: str | Path) -> Described:
    """Describe a robot, given by name, by robot.yaml, or by a URDF, xacro or MJCF file that is imported first.

    Raises:
        ConfigError: The robot or file does not exist.
    """
    path = Path(name_or_file)
    if path.suffix.lower() in DESCRIPTIONS or (path.is_dir() and not (path / "robot.yaml").is_file()):
        with tempfile.TemporaryDirectory(prefix="bipedsim_describe_") as folder:
            imported = import_robot(path, folder, replace=True)
            if imported.robot is not None:
                # Shapes are loaded lazily, and must be read before the folder is deleted.
                _ = imported.robot.shapes
        messages = [f"{text} ({TITLES[kind].lower()})" for kind, texts in imported.notes.said.items() for text in texts]
        if imported.robot is None:
            return Described(None, "", tuple(messages))
        return _described(imported.robot, imported.notes)
    try:
        robot = load_robot(name_or_file)
    except ConfigError as error:
        if not os.path.exists(name_or_file):
            raise
        return Described(None, "", tuple(str(error).split("\n  ")))
    return _described(robot, None)


def _described(robot: Robot, notes: Notes | None) -> Described:
    warnings = list(find_doubts(robot))
    if notes is not None:
        warnings += [text for text in notes.said["doubts"] if text not in warnings]
    lines = [f"# {robot.name}", "", robot.description, ""]
    lines += _masses(robot)
    lines += _joints(robot)
    lines += _soles(robot)
    if notes is not None:
        for kind in ("guessed", "dropped", "mended"):
            if notes.said[kind]:
                lines += [f"## {TITLES[kind]}", "", *(f"- {text}" for text in notes.said[kind]), ""]
    lines += ["## Warnings", "", *(f"- {text}" for text in warnings or ["none"])]
    return Described(robot, "\n".join(lines) + "\n", tuple(warnings))


def _masses(robot: Robot) -> list[str]:
    model = robot.model
    lines = ["## Masses", "", f"- {robot.mass:.3f} kg, {robot.nu} driven joints, {len(robot.loops)} closed chains"]
    bodies = sorted(range(1, model.njoints), key=lambda j: -model.inertias[j].mass)[:5]
    heaviest = ", ".join(f"{model.names[j]} {model.inertias[j].mass:.2f}" for j in bodies)
    lines.append(f"- heaviest bodies, named by their joint, kg: {heaviest}")
    if robot.free_flyer and robot.soles:
        com, stretched = robot.com_height, _stretched(robot)
        time = np.sqrt(com / (robot.weight / robot.mass))
        lines.append(
            f"- CoM height: {com:.3f} m above the soles; time constant of the pendulum 1 / omega = {time:.2f} s"
        )
        lines.append(
            f"- zmp: com_height 0 means {com:.3f} m; with straight legs the CoM is {stretched:.3f} m high. Above about "
            f"{0.98 * stretched:.3f} m the knees straighten within a step. A lower CoM needs more knee torque"
        )
    return [*lines, ""]


def _stretched(robot: Robot) -> float:
    """Return the height of the CoM with stretched legs [m]: the height of the stance plus the slack of the knees."""
    model = robot.model
    data = model.createData()
    pin.forwardKinematics(model, data, robot.q_nominal)
    slack = []
    for sole in robot.soles:
        chain = [data.oMi[joint].translation for joint in list(model.supports[sole.joint_id])[2:]]
        if len(chain) < 2:
            continue
        straight = float(np.linalg.norm(chain[0] - chain[-1]))
        length = sum(float(np.linalg.norm(b - a)) for a, b in pairwise(chain))
        # Offsets between crossing hip or ankle axes are not slack of the knee, so the slack is limited.
        slack.append(min(length - straight, 0.1 * length))
    return robot.com_height + (min(slack) if slack else 0.0)


def _joints(robot: Robot) -> list[str]:
    joint_gains = gains(robot)
    posed = posed_robot(robot)
    pairs = mirrored_joints(posed, np.array([1.0, 0.0, 0.0])) if robot.free_flyer else {}
    lines = [
        "## Joints",
        "",
        "Column + turns about: axis of positive rotation in the standing posture. Inertia: effective, free base.",
    ]
    lines += ["Maximum kd: stability limit for explicit damping of all joints with a 1 ms hold.", ""]
    lines += [
        (
            "| joint | limits, rad | + turns about | mirror | effort, N.m | speed, rad/s | inertia, kg.m^2 | kp | kd | "
            "maximum kd |"
        ),
        "| --- " * 10 + "|",
    ]
    for i, joint in enumerate(robot.joint_names):
        axis = posed.axis(robot.model.getJointId(joint))
        k = int(np.argmax(np.abs(axis)))
        about = f"{'xyz'[k]}, {WAYS[k][0 if axis[k] > 0 else 1]}" + ("" if abs(axis[k]) > 0.98 else " (oblique)")
        mirror = "" if joint not in pairs else f"{'+' if pairs[joint][1] > 0 else '-'}{pairs[joint][0]}"
        numbers = " | ".join(f"{joint_gains[key][i]:.3g}" for key in ("inertia", "kp", "kd", "kd_most"))
        lines.append(
            f"| {joint} | {robot.position_lower[i]:.3g} to {robot.position_upper[i]:.3g} | {about} | {mirror} | "
            f"{robot.effort_limit[i]:.4g} | {robot.velocity_limit[i]:.3g} | {numbers} |"
        )
    return [*lines, ""]


def _soles(robot: Robot) -> list[str]:
    lines = ["## Soles", ""]
    data = robot.model.createData()
    for sole, placement in zip(
        robot.soles, sole_placements(robot.model, data, robot.soles, robot.q_nominal), strict=True
    ):
        size = np.ptp(sole.vertices, axis=0)
        below = float(data.oMi[sole.joint_id].translation[2] - placement.translation[2])
        kind = {1: "a point", 2: "a line"}.get(sole.n_vertices, f"{sole.n_vertices} corners")
        gap = sole_gap(robot, sole)
        where = (
            f"the lowest point of the foot geometry is {round(1e3 * gap, 1) + 0.0:+.1f} mm above it"
            if np.isfinite(gap)
            else "the foot has no collision geometry"
        )
        lines.append(
            f"- {sole.name}: {kind}, {size[0]:.3g} x {size[1]:.3g} m, {below:.3g} m below joint "
            f"{robot.model.names[sole.joint_id]!r}; {where}; friction {sole.friction_static:g}"
        )
    return [*lines, ""]
