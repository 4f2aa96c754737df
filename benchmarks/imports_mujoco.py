"""Compare imports with MuJoCo's own compilation: `python benchmarks/imports_mujoco.py --sources FOLDER`.


MuJoCo compiles each MJCF or URDF file of imports_mujoco.yaml, and `bipedsim import` reads the same file. All common
properties are compared:

- masses, centres of mass and inertia of all bodies at random joint angles;
- armature, damping, friction loss, limits of positions and efforts, and gains of drives;
- friction, planes and outlines of the soles;
- the standing posture.

A difference is acceptable if the import prints a line about it. Any other difference is a failure.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin
import yaml
from scipy.spatial import ConvexHull

from bipedsim.config import numbers_per_joint
from bipedsim.descriptions import import_robot
from bipedsim.errors import BipedSimError
from bipedsim.model import Robot, Sole, located, read_hardware

LIST = Path(__file__).with_name("imports_mujoco.yaml")
SAME = 1e-9
"""Largest rounding difference, relative to the largest value or to 1, whichever is larger."""
LIMITS = {"sole plane": 1e-3, "sole outline": 1e-3, "posture": 0.01, "keyframe": 0.01}
"""Larger tolerances for positions of soles [m] and joint angles of the posture [rad]."""
HUGE = 1e6
"""Actuator command beyond all limits."""
POSES = 3
"""Number of configurations in which bodies are compared."""
STANDING = ("home", "stand", "standing", "knees_bent", "default", "init", "half_sitting", "rest")
"""Names of keyframes that are standing postures, as listed in docs/importing.md."""
COLUMNS = (
    *("robot", "from", "format", "kg", "joints", "bodies", "dynamics", "joints and drives", "soles, mm"),
    *("posture, rad", "printed differences", "silent"),
)
"""Columns of the report."""
BALL, HINGE, SLIDE = (int(getattr(mujoco.mjtJoint, f"mjJNT_{name}")) for name in ("BALL", "HINGE", "SLIDE"))
PLANE, MESH, BOX, CYLINDER, CAPSULE, ELLIPSOID = (
    int(getattr(mujoco.mjtGeom, f"mjGEOM_{name}"))
    for name in ("PLANE", "MESH", "BOX", "CYLINDER", "CAPSULE", "ELLIPSOID")
)
SAID = {
    "mass": "inertia of|do not exist",
    "com": "inertia of|do not exist",
    "inertia": "inertia of|do not exist",
    "armature": "armature",
    "damping": "joint_damping|damping of",
    "friction": "friction of",
    "effort": "effort_limit|effort limits|lower limit of",
    "range": "position_limit",
    "gains": "actuator|dynamics of",
    "sole friction": "friction of foot",
    "sole plane": "sole from",
    "sole outline": "its sole",
    "posture": "posture",
    "keyframe": "keyframe",
}
"""For each quantity, the pattern of a line that reports a difference."""


def compiled(file: Path) -> tuple[mujoco.MjModel, bool]:
    """Return MuJoCo's compilation of a file, and whether it contains the shapes of the bodies."""
    if file.suffix != ".urdf":
        return mujoco.MjModel.from_xml_path(str(file)), True
    root = ElementTree.fromstring(located(file.read_text(encoding="utf-8"), file.resolve()).replace("file://", ""))
    for old in root.findall("mujoco"):
        root.remove(old)
    options = ElementTree.SubElement(root, "mujoco")
    # In a URDF, a link without <inertial> has no mass, even if it has shapes.
    flags = {"fusestatic": "false", "discardvisual": "true", "strippath": "false", "inertiafromgeom": "false"}
    ElementTree.SubElement(options, "compiler", flags)
    try:
        return mujoco.MjModel.from_xml_string(ElementTree.tostring(root, encoding="unicode")), True
    except ValueError:
        # MuJoCo fails if meshes are missing or have another format, so the shapes are removed.
        for link in root.findall("link"):
            for tag in ("visual", "collision"):
                for shape in link.findall(tag):
                    link.remove(shape)
        return mujoco.MjModel.from_xml_string(ElementTree.tostring(root, encoding="unicode")), False


class Comparison:
    """Comparison of one robot, as imported and as compiled by MuJoCo.

    Args:
        robot: The imported robot.
        m: MuJoCo's model.
        shapes: Whether ``m`` has the shapes of the bodies.
        locked: Angles at which the import has locked joints, by name [rad].
    """

    def __init__(self, robot: Robot, m: mujoco.MjModel, shapes: bool, locked: dict[str, float]) -> None:
        self.robot, self.m, self.shapes, self.locked = robot, m, shapes, locked
        self.d = mujoco.MjData(m)
        self.pin, self.data = robot.model, robot.model.createData()
        self.bodies = {
            b: int(self.pin.frames[self.pin.getFrameId(m.body(b).name, pin.BODY)].parentJoint)
            for b in range(1, m.nbody)
            if m.body(b).name and self.pin.existFrame(m.body(b).name, pin.BODY)
        }
        self.root = min(self.bodies)
        self.joints = {m.joint(j).name: j for j in range(m.njnt)}
        self.dofs = np.array([m.jnt_dofadr[self.joints[name]] for name in robot.joint_names], dtype=int)

    def differences(self) -> Iterator[tuple[str, str, float]]:
        """Yield quantity, joint or body, and the difference."""
        worst: dict[tuple[str, str], float] = {}
        rng = np.random.default_rng(1)
        for k in range(POSES):
            q = self.robot.q_nominal.copy()
            if k and not self.robot.loops:
                span = np.clip([self.robot.position_lower, self.robot.position_upper], -2.0, 2.0)
                q[self.robot.idx_q] = rng.uniform(*span)
            for quantity, name, value in self._bodies(q):
                worst[quantity, name] = max(value, worst.get((quantity, name), 0.0))
        yield from ((quantity, name, value) for (quantity, name), value in worst.items())
        yield from self._joints()
        if self.shapes:
            for sole in self.robot.soles:
                yield from self._sole(sole)
        yield from self._posture()

    def set_configuration(self, q: np.ndarray) -> pin.SE3:
        """Set MuJoCo's joint angles from ``q`` (nq,). Return the transform from MuJoCo's world to that of ``q``."""
        m, d = self.m, self.d
        mujoco.mj_resetData(m, d)
        for name, joint in self.joints.items():
            address = m.jnt_qposadr[joint]
            if m.jnt_type[joint] == BALL and self.pin.existJointName(f"{name}_x"):
                angles = [q[self.pin.joints[self.pin.getJointId(f"{name}_{axis}")].idx_q] for axis in "xyz"]
                rotation = pin.Quaternion(
                    np.linalg.multi_dot([pin.exp3(a * e) for a, e in zip(angles, np.eye(3), strict=True)])
                )
                d.qpos[address : address + 4] = rotation.w, rotation.x, rotation.y, rotation.z
            elif m.jnt_type[joint] in (HINGE, SLIDE):
                if self.pin.existJointName(name):
                    d.qpos[address] = q[self.pin.joints[self.pin.getJointId(name)].idx_q]
                elif name in self.locked:
                    d.qpos[address] = self.locked[name]
        mujoco.mj_kinematics(m, d)
        mujoco.mj_comPos(m, d)
        pin.framesForwardKinematics(self.pin, self.data, q)
        frame = self.data.oMf[self.pin.getFrameId(m.body(self.root).name, pin.BODY)]
        return frame * pin.SE3(d.xmat[self.root].reshape(3, 3), d.xpos[self.root]).inverse()

    def _bodies(self, q: np.ndarray) -> Iterator[tuple[str, str, float]]:
        """Compare the bodies attached to each joint, in the world of ``q`` (nq,)."""
        m, d, pin_from_mujoco = self.m, self.d, self.set_configuration(q)
        for joint in range(1, self.pin.njoints):
            theirs = pin.Inertia.Zero()
            for body in (b for b, carrier in self.bodies.items() if carrier == joint):
                rotation = d.ximat[body].reshape(3, 3)
                tensor = rotation @ np.diag(m.body_inertia[body]) @ rotation.T
                inertia = pin.Inertia(m.body_mass[body], d.xipos[body], tensor)
                theirs += pin_from_mujoco.act(inertia)
            ours = self.data.oMi[joint].act(self.pin.inertias[joint])
            name = self.pin.names[joint]
            yield "mass", name, relative(ours.mass, theirs.mass)
            if theirs.mass > 0.0:
                yield "com", name, float(np.abs(ours.lever - theirs.lever).max())
                yield "inertia", name, relative(ours.inertia, theirs.inertia)

    def _joints(self) -> Iterator[tuple[str, str, float]]:
        """Compare joints and drives with the forces of MuJoCo's model under a velocity, an angle and a command."""
        m, d, robot, dofs = self.m, self.d, self.robot, self.dofs
        names = robot.joint_names
        mujoco.mj_resetData(m, d)
        with_armature = mass_matrix(m, d)
        saved = [m.dof_armature.copy(), m.actuator_armature.copy()]
        m.dof_armature[:], m.actuator_armature[:] = 0.0, 0.0
        armature = np.diag(with_armature - mass_matrix(m, d))[dofs]
        m.dof_armature[:], m.actuator_armature[:] = saved
        d.qvel[dofs] = 1.0
        mujoco.mj_forward(m, d)
        damping = -d.qfrc_damper[dofs]
        stated = numbers_per_joint(read_hardware("realistic", robot).coulomb_friction, names, "")
        friction = np.array([stated.get(name, 0.0) for name in names])
        for quantity, ours, theirs in (
            ("armature", robot.model.armature[robot.idx_v], armature),
            ("damping", robot.joint_damping[robot.idx_v], damping),
            ("friction", friction, m.dof_frictionloss[dofs]),
            ("effort", robot.effort_limit, self._efforts()),
        ):
            yield from ((quantity, name, relative(a, b)) for name, a, b in zip(names, ours, theirs, strict=True))
        for name, low, high in zip(names, robot.position_lower, robot.position_upper, strict=True):
            joint = self.joints[name]
            theirs = m.jnt_range[joint] if m.jnt_limited[joint] else np.array([-np.inf, np.inf])
            distance = max(0.0 if a == b else abs(a - b) for a, b in zip((low, high), theirs, strict=True))
            yield "range", name, float(distance)
        for quantity, ours, theirs in zip(
            ("kp", "kd"), (robot.drive_stiffness, robot.drive_damping), self._gains(), strict=True
        ):
            for name, gain in zip(names, theirs, strict=True):
                if gain > 0.0 or name in ours:
                    yield "gains", f"{name} {quantity}", relative(ours.get(name, 0.0), gain)

    def _efforts(self) -> np.ndarray:
        """Return the largest effort of each joint permitted by actuators and limits; inf without a limit."""
        m, d, largest = self.m, self.d, np.zeros(self.m.nv)
        if not m.nu:  # The file is a URDF, whose effort limits apply to the sum of all actuators of a joint.
            limits = [np.abs(m.jnt_actfrcrange[j]).max() if m.jnt_actfrclimited[j] else np.inf for j in range(m.njnt)]
            return np.array([limits[self.joints[name]] for name in self.robot.joint_names])
        for sign in (1.0, -1.0):
            mujoco.mj_resetData(m, d)
            d.ctrl[:] = sign * HUGE
            mujoco.mj_forward(m, d)
            largest = np.maximum(largest, np.abs(d.qfrc_actuator))
        return np.where(largest < 0.1 * HUGE, largest, np.inf)[self.dofs]

    def _gains(self) -> tuple[np.ndarray, np.ndarray]:
        """Return stiffness and damping of position drives: the decrease of torque per radian, or per rad/s."""
        m, d, dofs = self.m, self.d, self.dofs
        if not m.nu:
            return np.zeros(len(dofs)), np.zeros(len(dofs))
        saved = m.actuator_forcelimited.copy(), m.jnt_actfrclimited.copy()
        m.actuator_forcelimited[:], m.jnt_actfrclimited[:] = 0, 0
        drive_gains = []
        for values, addresses in (
            (d.qpos, [m.jnt_qposadr[self.joints[name]] for name in self.robot.joint_names]),
            (d.qvel, dofs),
        ):
            gains = np.zeros(len(dofs))
            for k in range(len(dofs)):
                mujoco.mj_resetData(m, d)
                mujoco.mj_forward(m, d)
                torque_before = d.qfrc_actuator[dofs[k]]
                values[addresses[k]] += 1.0
                mujoco.mj_forward(m, d)
                gains[k] = torque_before - d.qfrc_actuator[dofs[k]]
            drive_gains.append(gains)
        m.actuator_forcelimited[:], m.jnt_actfrclimited[:] = saved
        return drive_gains[0], np.where(drive_gains[0] > 0.0, drive_gains[1], 0.0)

    def _sole(self, sole: Sole) -> Iterator[tuple[str, str, float]]:
        """Compare a sole with the lowest points of the foot's shapes."""
        m, d = self.m, self.d
        pin_from_mujoco = self.set_configuration(self.robot.q_nominal)
        sole_from_mujoco = (self.data.oMi[sole.joint_id] * sole.placement_joint_sole).inverse() * pin_from_mujoco
        paired = {int(g) for pair in (m.pair_geom1, m.pair_geom2) for g in pair}
        geoms = [g for g in range(m.ngeom) if self.bodies.get(int(m.geom_bodyid[g])) == sole.joint_id]
        touching = [g for g in geoms if m.geom_contype[g] or m.geom_conaffinity[g] or g in paired]
        if not touching:
            return
        points = (
            np.vstack([surface(m, d, g) for g in touching]) @ sole_from_mujoco.rotation.T + sole_from_mujoco.translation
        )
        lowest = float(points[:, 2].min())
        yield "sole plane", sole.name, abs(lowest + sole.radius)
        yield "sole outline", sole.name, outline_distance(sole, points, lowest)
        yield from self._sole_friction(sole, touching)

    def _sole_friction(self, sole: Sole, touching: list[int]) -> Iterator[tuple[str, str, float]]:
        """Compare the friction of a sole with MuJoCo's contacts between foot and floor."""
        m, d = self.m, self.d
        floors = [g for g in range(m.ngeom) if m.geom_type[g] == PLANE and not m.body_weldid[m.geom_bodyid[g]]]
        if not floors:
            theirs = [0.0 if m.geom_condim[g] < 3 else float(m.geom_friction[g, 0]) for g in touching]
        else:
            pin_from_mujoco = self.set_configuration(self.robot.q_nominal)
            saved_positions = m.geom_pos[floors].copy()
            plane = self.data.oMi[sole.joint_id] * sole.placement_joint_sole
            # The floor is moved to 2 mm above the foot's lowest point, so that the joints of the base do not matter.
            normal = pin_from_mujoco.rotation.T @ np.array([0.0, 0.0, 1.0])
            m.geom_pos[floors] = pin_from_mujoco.inverse().act(
                plane.translation + np.array([0.0, 0.0, 0.002 - sole.radius])
            )
            quats = m.geom_quat[floors].copy()
            rotation = pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), normal)
            m.geom_quat[floors] = rotation.w, rotation.x, rotation.y, rotation.z
            mujoco.mj_kinematics(m, d)
            mujoco.mj_collision(m, d)
            m.geom_pos[floors], m.geom_quat[floors] = saved_positions, quats
            theirs = [
                0.0 if contact.dim < 3 else float(contact.friction[0])
                for contact in d.contact
                if {contact.geom1, contact.geom2} & set(floors) and {contact.geom1, contact.geom2} & set(touching)
            ]
        if theirs:
            yield "sole friction", sole.name, abs(sole.friction_static - min(theirs))

    def _posture(self) -> Iterator[tuple[str, str, float]]:
        """Compare the posture with a keyframe for standing, or else with the angles in the file."""
        m = self.m
        keys = {re.sub(r"\W+", "_", m.key(k).name).strip("_").lower(): k for k in range(m.nkey)}
        key = next((keys[name] for name in STANDING if name in keys), None)
        qpos = m.qpos0 if key is None else m.key_qpos[key]
        for name, angle in zip(self.robot.joint_names, self.robot.posture, strict=True):
            yield (
                "posture" if key is None else "keyframe",
                name,
                abs(float(qpos[m.jnt_qposadr[self.joints[name]]] - angle)),
            )


def relative(ours: Any, theirs: Any) -> float:
    """Return the largest difference relative to the largest value or 1; 0 for equal infinities."""
    a, b = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    if np.array_equal(a, b):
        return 0.0
    return float(np.abs(a - b).max() / max(1.0, float(np.abs(b).max())) if np.isfinite(b).all() else np.inf)


def mass_matrix(m: mujoco.MjModel, d: mujoco.MjData) -> np.ndarray:
    """Return the mass matrix (nv, nv) with all joints at their current positions."""
    mujoco.mj_forward(m, d)
    full = np.zeros((m.nv, m.nv))
    for i, unit in enumerate(np.eye(m.nv)):
        column = np.zeros(m.nv)
        mujoco.mj_mulM(m, d, column, unit)
        full[:, i] = column
    return full


def surface(m: mujoco.MjModel, d: mujoco.MjData, geom: int) -> np.ndarray:
    """Return points (n, 3) on the surface of a shape, in the world."""
    kind, size = m.geom_type[geom], m.geom_size[geom]
    if kind == MESH:
        mesh = m.geom_dataid[geom]
        start = m.mesh_vertadr[mesh]
        points = np.array(m.mesh_vert[start : start + m.mesh_vertnum[mesh]], dtype=float)
    elif kind == BOX:
        points = size * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    else:
        turn, level = np.meshgrid(np.linspace(0, 2 * np.pi, 241), np.linspace(-np.pi / 2, np.pi / 2, 241))
        ball = np.stack([np.cos(level) * np.cos(turn), np.cos(level) * np.sin(turn), np.sin(level)], axis=-1).reshape(
            -1, 3
        )
        if kind == CYLINDER:
            rim = np.column_stack([np.cos(turn[0]), np.sin(turn[0]), np.ones(241)]) * [size[0], size[0], size[1]]
            points = np.vstack([rim, rim * [1, 1, -1]])
        elif kind == CAPSULE:
            points = np.vstack([size[0] * ball + [0, 0, end] for end in (-size[1], size[1])])
        else:
            points = ball * (size if kind == ELLIPSOID else size[0])
    return points @ d.geom_xmat[geom].reshape(3, 3).T + d.geom_xpos[geom]


def outline_distance(sole: Sole, points: np.ndarray, lowest: float) -> float:
    """Return the distance between a sole and the outline of the foot's lowest points [m].

    No corner may be outside the outline of all points within 5 mm of the lowest one. No point within 0.01 mm of the
    lowest one may be outside the sole.
    """
    corners = sole.vertices
    near_points = points[points[:, 2] < lowest + 5e-3][:, :2]
    lowest_points = points[points[:, 2] < lowest + 1e-5][:, :2]
    outside = [outside_by(near_points, corner) for corner in corners]
    if len(corners) > 2:
        outside += [outside_by(corners, point) for point in lowest_points]
    return max(outside)


def outside_by(polygon: np.ndarray, point: np.ndarray) -> float:
    """Return the distance from a point to the convex hull of points (n, 2) [m]; 0 inside."""
    try:
        equations = ConvexHull(polygon).equations
    except Exception:
        return float(np.linalg.norm(polygon - point, axis=1).min())
    return float(max(0.0, (equations[:, :2] @ point + equations[:, 2]).max()))


def is_reported(quantity: str, name: str, screen: str) -> bool:
    """Return whether the output reports a difference: the quantity, and the joint, all joints or many joints."""
    pattern = re.compile(SAID[quantity])
    joint = name.split(" ")[0]
    return any(
        pattern.search(line)
        and (joint in line or "all joints" in line or " more" in line or quantity in ("posture", "keyframe"))
        for line in screen.splitlines()
        if line.startswith("- ")
    )


def compare(row: dict[str, Any], sources: Path, folder: Path) -> dict[str, Any]:
    """Compare one file and return the results."""
    file = sources / row["from"].replace("/", "+") / row["file"]
    result: dict[str, Any] = {
        "name": row["name"],
        "from": row["from"],
        "format": "URDF" if file.suffix == ".urdf" else "MJCF",
    }
    try:
        m, shapes = compiled(file)
    except (ValueError, OSError) as error:
        return result | {"error": f"MuJoCo does not compile it: {error}"}
    try:
        imported = import_robot(file, folder / row["name"], replace=True)
    except BipedSimError as error:
        return result | {"error": str(error)}
    if imported.robot is None:
        return result | {"error": "robot.yaml does not load: " + "; ".join(imported.notes.said["doubts"])}
    written = yaml.safe_load((imported.folder / "robot.yaml").read_text(encoding="utf-8"))
    comparison = Comparison(imported.robot, m, shapes, written.get("locked", {}))
    worst: dict[str, float] = {}
    reported: dict[str, float] = {}
    silent: list[str] = []
    for quantity, name, value in comparison.differences():
        if value <= LIMITS.get(quantity, SAME):
            worst[quantity] = max(value, worst.get(quantity, 0.0))
        elif is_reported(quantity, name, imported.short):
            reported[quantity] = max(value, reported.get(quantity, 0.0))
        else:
            silent.append(f"{quantity} of {name} by {value:.3g}")
    return result | {
        "mass_kg": round(imported.robot.mass, 3),
        "joints": imported.robot.nu,
        "bodies": len(comparison.bodies),
        "shapes": shapes,
        "same": worst,
        "said": reported,
        "silent": silent,
        "screen": imported.short,
    }


def table(rows: list[dict[str, Any]], machine: str) -> str:
    """Return the report as Markdown."""
    read = [row for row in rows if "error" not in row]
    failed = [row for row in read if row["silent"]]
    head = [
        "# Imports and MuJoCo's own compilation",
        "",
        f"`python benchmarks/imports_mujoco.py`, {date.today():%Y-%m-%d}, MuJoCo {mujoco.__version__}, {machine}.",
        "",
        f"{len(read)} of {len(rows)} files are compared, {sum(row['format'] == 'MJCF' for row in read)} of them MJCF.",
        f"{len(failed)} have a difference that the import does not print.",
        "Columns in the middle show the largest difference that counts as none.",
        "",
        f"| {' | '.join(COLUMNS)} |",
        "| --- " * len(COLUMNS) + "|",
    ]
    groups = (
        ("mass", "com", "inertia"),
        ("armature", "damping", "friction", "effort", "range", "gains"),
        ("sole plane", "sole outline"),
        ("posture", "keyframe"),
    )
    for row in read:
        cells = []
        for group, scale in zip(groups, (1.0, 1.0, 1e3, 1.0), strict=True):
            values = [row["same"][key] for key in group if key in row["same"]]
            cells.append(f"{scale * max(values):.2g}" if values else "")
        printed = ", ".join(row["said"]) or "none"
        first = [row["name"], row["from"], row["format"], f"{row['mass_kg']}", f"{row['joints']}", f"{row['bodies']}"]
        head.append(f"| {' | '.join([*first, *cells, printed, str(len(row['silent']))])} |")
    lines = [f"- {row['name']}: {text}" for row in failed for text in row["silent"]]
    lines += [f"- {row['name']}: not compared: {row['error']}" for row in rows if "error" in row]
    return "\n".join([*head, *(["", "## Differences that are not printed", "", *lines] if lines else [])]) + "\n"


def main() -> int:
    """Compare all files, and print and store the report. Return 1 if a difference is not printed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sources", type=Path, required=True, help="folder with OWNER+NAME of each repository")
    parser.add_argument("--only", nargs="*", help="compare these robots alone")
    parser.add_argument("--output", type=Path, help="write all results as JSON, and the table next to it as .md")
    args = parser.parse_args()
    rows = [
        row for row in yaml.safe_load(LIST.read_text(encoding="utf-8")) if not args.only or row["name"] in args.only
    ]
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    results = []
    with tempfile.TemporaryDirectory(prefix="imports_mujoco_") as work:
        for row in rows:
            results.append(compare(row, args.sources.resolve(), Path(work)))
            print(row["name"], results[-1].get("error") or results[-1]["silent"] or "same", flush=True)
    if args.output:
        args.output.write_text(json.dumps({"machine": machine, "robots": results}, indent=1) + "\n", encoding="utf-8")
        args.output.with_suffix(".md").write_text(table(results, machine), encoding="utf-8")
    print(table(results, machine))
    return int(any(row.get("silent") for row in results))


if __name__ == "__main__":
    sys.exit(main())
