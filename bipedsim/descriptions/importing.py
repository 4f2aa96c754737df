"""Import a robot description: write robot.yaml and a report with properties, estimates, omissions and corrections."""

from __future__ import annotations

import os
import shutil
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from bipedsim.config import check_readable
from bipedsim.descriptions.compare import compare
from bipedsim.descriptions.description import GRAVITY, STANDING, Description, is_imu, standing_name
from bipedsim.descriptions.doubts import find_doubts, grouped_warnings
from bipedsim.descriptions.guesses import default_drives, gains, scaled_gait, zmp_shift
from bipedsim.descriptions.legs import ALONG, Leg, PosedRobot, find_legs, mirrored_joints
from bipedsim.descriptions.mjcf import stl
from bipedsim.descriptions.notes import Notes
from bipedsim.descriptions.soles import DetectedSole, find_sole, sole_from_inertia, upright_sole
from bipedsim.descriptions.source import read_description
from bipedsim.descriptions.standing import standing_posture
from bipedsim.descriptions.write import ValueOrigin, report_text, short_text, value_table, yaml_text
from bipedsim.errors import BipedSimError, ConfigError, some
from bipedsim.model import (
    Loop,
    Robot,
    RobotReader,
    Shape,
    ShapeFault,
    ShapeWarning,
    Sole,
    collada_up_axis,
    effort_and_velocity_limits,
    inertia_matrix,
    inertia_problem,
    inertia_values,
    load_robot,
    mesh_path,
    nearest_inertia,
    read_shapes,
    read_urdf,
    stand,
    welded,
)
from bipedsim.numerics import Array

ALWAYS = ("robot.yaml", "report.md")
"""Files that every import writes."""
FRICTION = 0.45
"""Friction coefficient of soles without a stated value."""
LEAST_SHIFT = 1e-3
"""Smallest ZMP offset that is written [m]."""
LACKING = 1e-3
"""Width that a polygon cuts off a sole from which a note is added [m]."""
BENT, NEARLY = 0.1, 0.1
"""Smallest angle in a posture with bent joints, and largest change of a keyframe that nearly stands [rad]."""
JOINT_UNITS = {
    "effort_limit": "N.m",
    "velocity_limit": "rad/s",
    "armature": "kg.m^2",
    "joint_damping": "N.m.s/rad",
    "coulomb_friction": "N.m",
    "drive_stiffness": "N.m/rad",
}
"""Unit of each property of joints that turn."""
MOVED = 0.01
"""Angle from which a posture differs from its keyframe [rad]."""


@dataclass(frozen=True)
class Imported:
    """Result of an import.

    Attributes:
        folder: Folder with robot.yaml, report.md, and files converted from other formats.
        robot: The robot loaded from robot.yaml; None if it cannot be loaded.
        notes: Notes for the report.
        report: The text of report.md.
        short: Summary of the report.
        origins: Values of robot.yaml by their origin; empty if the robot cannot be loaded.
        config: Keys of robot.yaml.
        description: The description.
        tables: Tables of the report.
    """

    folder: Path
    robot: Robot | None
    notes: Notes
    report: str
    short: str
    origins: tuple[ValueOrigin, ...]
    config: Mapping[str, Any] = field(repr=False)
    description: Description = field(repr=False)
    tables: tuple[str, ...] = field(repr=False)

    @property
    def gait(self) -> dict[str, float] | None:
        """Parameters of ``zmp`` in robot.yaml; None without two flat feet, or if the robot cannot be loaded."""
        params = self.config.get("controllers", {}).get("zmp")
        return None if params is None or self.robot is None else dict(params)

    def with_gait(self, params: Mapping[str, float]) -> Imported:
        """Write other parameters of ``zmp`` to robot.yaml, write the report again with all notes, and return both.

        Args:
            params: All parameters of ``zmp`` for robot.yaml.
        """
        config = {**self.config, "controllers": {**self.config["controllers"], "zmp": dict(params)}}
        (self.folder / "robot.yaml").write_text(yaml_text(config, self.description), encoding="utf-8")
        text = report_text(self.description, self.robot, list(self.tables))
        (self.folder / "report.md").write_text(text, encoding="utf-8")
        short = short_text(self.notes, self.robot, value_table(self.origins))
        return replace(self, config=config, report=text, short=short)

    @property
    def stands(self) -> bool:
        """Whether its soles can prevent tipping; point and line feet need a controller."""
        robot = self.robot
        return robot is not None and robot.free_flyer and all(sole.n_vertices > 2 for sole in robot.soles)


def import_robot(
    file: str | Path, folder: str | Path | None = None, other: str | Path | None = None, replace: bool = False
) -> Imported:
    """Read a URDF, xacro or MJCF file, or a folder of a description package, and write robot.yaml and report.md.

    Args:
        file: The description.
        folder: Output folder; by default a folder with the robot's name in the working directory.
        other: A second description of the robot; the report lists the differences.
        replace: Overwrite existing files.

    Raises:
        ConfigError: The description cannot be read, or an output file exists.
    """
    file = Path(file)
    check_readable(file, directories=True)
    with tempfile.TemporaryDirectory(prefix="bipedsim_import_") as work:
        description = read_description(file, Path(work))
        target = Path(folder) if folder is not None else Path(description.name)
        _write_converted(description)
        output_files = _output_files(Path(work))
        existing = [str(target / path) for path in output_files if (target / path).exists()]
        if target.is_file():
            raise ConfigError("a file. Name a folder with --output", target)
        if existing and not replace:
            hint = "already exists. Name another folder with --output, or pass --replace"
            raise ConfigError(hint, ", ".join(existing))
        builder = _RobotYamlBuilder(description, Path(work))
        config, lines = builder.config()
        if other is not None:
            second = read_description(Path(other), Path(work) / "other")
            _write_converted(second)
            for difference in compare(description, second):
                description.notes.differs(difference)
        target.mkdir(parents=True, exist_ok=True)
        if description.made:
            config["urdf"] = description.path.name
        for path in output_files[len(ALWAYS) :]:
            (target / path).parent.mkdir(exist_ok=True)
            shutil.copy(Path(work) / path, target / path)
    (target / "robot.yaml").write_text(yaml_text(config, description), encoding="utf-8")
    robot, origins = None, []
    try:
        robot = load_robot(target / "robot.yaml")  # the folder may have the name of a robot of the table
    except BipedSimError as error:
        description.notes.doubts(f"robot.yaml does not load: {error}")
    else:
        for warning in find_doubts(robot):
            # The messages of the reader contain the file's name. Removing it detects messages that are already noted.
            description.notes.doubts(warning.removeprefix(f"{robot.urdf_path}: "))
        origins = _origins(robot, config, description, builder.touching)
        lines += ["## Values", "", *value_table(origins), ""]
        lines += _gains_table(robot)
    text = report_text(description, robot, lines)
    (target / "report.md").write_text(text, encoding="utf-8")
    short = short_text(description.notes, robot, value_table(origins) if origins else [])
    return Imported(target, robot, description.notes, text, short, tuple(origins), config, description, tuple(lines))


def _output_files(work: Path) -> list[Path]:
    """Return the output files of an import relative to its folder; those after ``ALWAYS`` are in ``work``."""
    converted = [*work.glob("*.urdf"), *(path for path in work.glob("meshes/**/*") if path.is_file())]
    return [*map(Path, ALWAYS), *(path.relative_to(work) for path in converted)]


def _write_converted(description: Description) -> None:
    """Write a converted URDF with its meshes."""
    if not description.made:
        return
    ElementTree.indent(description.urdf)
    description.path.parent.mkdir(parents=True, exist_ok=True)
    description.path.write_text(ElementTree.tostring(description.urdf, encoding="unicode") + "\n", encoding="utf-8")
    if description.meshes:
        (description.path.parent / "meshes").mkdir(exist_ok=True)
    for name, triangles in description.meshes.items():
        (description.path.parent / "meshes" / name).write_bytes(stl(triangles))


class _RobotYamlBuilder:
    """Converts a description to the keys of robot.yaml, step by step."""

    def __init__(self, description: Description, work: Path) -> None:
        self.description = description
        self.notes = description.notes
        self.work = work
        self.lines: list[str] = []
        self.touching: set[str] = set()
        """Feet whose soles come from collision geometry."""

    def config(self) -> tuple[dict[str, Any], list[str]]:
        """Return the keys of robot.yaml, and tables for the report."""
        description, notes = self.description, self.notes
        config: dict[str, Any] = {
            "name": description.name,
            "description": f"imported from {description.source.name}",
            "urdf": os.path.relpath(description.path, self.work) if description.made else str(description.path),
        }
        if description.gravity != GRAVITY:
            config["gravity"] = description.gravity
            notes.found(f"gravity of {description.gravity:g} m/s^2")
        inertia = self._corrected_inertias()
        if inertia:
            config["inertia"] = inertia
        covers = dict.fromkeys(("effort_limit", "velocity_limit", "position_limit"), lambda joint: True)
        model, xml, _ = read_urdf(description.path, True, covers, inertia)
        self._weld_massless(model)
        model = self._weld_locked(model)
        shapes = read_shapes(model, xml, description.path, whole=True)
        self._note_missing_meshes(shapes.warnings)
        visual, visual_warnings = read_shapes(model, xml, description.path, tag="visual", whole=True)
        self._note_visual_shapes(visual_warnings)
        start = self._start(model)
        posed = PosedRobot.of(model, start, shapes.shapes, visual)
        legs, ahead = find_legs(posed, notes)
        toes = [model.names[toe] for leg in legs for toe in leg.toes]
        if toes:
            description.locked |= dict.fromkeys(toes, 0.0)
            notes.guessed(f"toes {some(toes)} are welded at 0, because a sole is one plane")
            model = self._weld_locked(model)
            shapes = read_shapes(model, xml, description.path, whole=True)
            visual = read_shapes(model, xml, description.path, tag="visual", whole=True).shapes
            start = self._start(model)
            posed = PosedRobot.of(model, start, shapes.shapes, visual)
            legs, ahead = find_legs(posed, notes)
        if description.passive:
            config["passive"] = [joint for joint in description.passive if joint in list(model.names)]
            for quantity, values in (("armature", description.armature), ("friction", description.friction)):
                affected = [joint for joint in config["passive"] if values.get(joint, 0.0) > 0.0]
                if affected:
                    notes.dropped(f"{quantity} of joints without a drive: {some(affected)}")
        if description.locked:
            config["locked"] = {joint: float(angle) for joint, angle in description.locked.items()}
        if description.loops:
            config["loops"] = description.loops
        feet = {leg.side: self._foot(posed, leg, ahead, list(shapes.shapes), list(visual)) for leg in legs}
        self._compare_feet(feet)
        config["feet"] = {side: foot for side, (foot, _) in feet.items()}
        self._imu(config, model)
        driven = [name for name in list(model.names)[2:] if name not in description.passive]
        in_legs = {model.names[j] for leg in legs for j in leg.joints}
        weight = GRAVITY * sum(body.mass for body in model.inertias)
        drives = default_drives(description, driven, in_legs, weight, posed.height)
        for key, values in vars(drives).items():
            if values and key != "coulomb_friction":
                config[key] = values
        config["hardware"] = {"realistic": {"coulomb_friction": drives.coulomb_friction}}
        self._postures(config, model)
        self._stand(config, legs, ahead)
        self._mirrors(posed, ahead)
        return config, self.lines

    def _corrected_inertias(self) -> dict[str, dict[str, float]]:
        """Return the corrected inertia of links with an impossible one."""
        corrected = {}
        for link in self.description.urdf.findall("link"):
            element, mass = link.find("inertial/inertia"), link.find("inertial/mass")
            if element is None or mass is None:
                continue
            values = {key: float(element.get(key) or 0.0) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")}
            inertia, kg = inertia_matrix(values), float(mass.get("value") or 0.0)
            if not kg > 0.0 or not inertia_problem(kg, inertia):
                continue
            nearest = nearest_inertia(inertia)
            name = link.get("name", "")
            corrected[name] = {key: float(f"{value:.9g}") for key, value in inertia_values(nearest).items()}
            before, after = np.linalg.eigvalsh(inertia), np.linalg.eigvalsh(nearest)
            self.notes.mended(
                f"inertia of {name}: principal moments {_list_moments(before)} are impossible for a rigid body; "
                f"replaced by the nearest possible ones, {_list_moments(after)} kg.m^2"
            )
        return corrected

    def _weld_massless(self, model: pin.Model) -> None:
        """Weld joints without mass beyond them."""
        mass_beyond = [body.mass for body in model.inertias]
        for joint in range(model.njoints - 1, 0, -1):
            mass_beyond[model.parents[joint]] += mass_beyond[joint]
        massless = [model.names[j] for j in range(2, model.njoints) if not mass_beyond[j] > 0.0]
        not_locked = [name for name in massless if name not in self.description.locked]
        if not_locked:
            self.description.locked |= dict.fromkeys(not_locked, 0.0)
            self.notes.dropped(f"joints {some(not_locked)}: all links after them are massless; they are welded at 0")

    def _weld_locked(self, model: pin.Model) -> pin.Model:
        return welded(model, {n: angle for n, angle in self.description.locked.items() if model.existJointName(n)})

    def _note_missing_meshes(self, warnings: Iterable[ShapeWarning]) -> None:
        """Note missing or implausible meshes; these notes remain even if robot.yaml does not load."""
        for warning in grouped_warnings(warnings, str(self.description.path)):
            self.notes.doubts(warning)

    def _note_visual_shapes(self, warnings: Iterable[ShapeWarning]) -> None:
        """Note visual shapes with wrong sizes, and meshes with an up axis that is ignored."""
        for warning in warnings:
            if warning.fault is ShapeFault.INVALID:
                self.notes.dropped(warning.text.removeprefix(f"{self.description.path}: "))
        rotated = []
        for mesh in self.description.urdf.iter("mesh"):
            path = mesh_path(mesh.get("filename", ""), self.description.path)
            if path is None or path.suffix.lower() != ".dae" or path.name in rotated:
                continue
            try:
                rotated += [path.name] if collada_up_axis(path) != "Z" else []
            except (OSError, ValueError, ImportError):
                continue  # the shape reader reports this file
        if rotated:
            self.notes.guessed(
                f"meshes {some(rotated)} declare y or x as up axis, which is ignored, as in RViz and Gazebo. Rotate a "
                "tilted mesh with the rpy of its <origin>"
            )

    def _start(self, model: pin.Model, key: str = "") -> Array:
        """Return the initial configuration (nq,).

        Args:
            model: The model.
            key: Name of a posture; by default the one with a name that is typical of standing.
        """
        q = pin.neutral(model)
        key = key or standing_name(self.description.postures)
        angles = self.description.postures.get(key, {})
        if key in self.description.attitudes:
            q[3:7] = pin.Quaternion(self.description.attitudes[key]).coeffs()
        for joint in range(2, model.njoints):
            i = model.joints[joint].idx_q
            low, high = model.lowerPositionLimit[i], model.upperPositionLimit[i]
            angle = angles.get(model.names[joint], 0.0)
            q[i] = min(max(angle, low), high) if low < high else angle
        return q

    def _foot(
        self, posed: PosedRobot, leg: Leg, ahead: Array, collision: list[Shape], visual: list[Shape]
    ) -> tuple[dict[str, Any], DetectedSole]:
        """Return the entry of a foot in robot.yaml, and its sole."""
        model, joint = posed.model, leg.foot
        rotation = posed.placements[joint].rotation.T
        down, forward = rotation @ np.array([0.0, 0.0, -1.0]), rotation @ ahead
        links = [f for f in model.frames if f.type == pin.BODY and f.parentJoint == joint]
        body = model.inertias[joint]
        length = float(posed.placements[leg.joints[0]].translation[2] - posed.lowest[leg.shaped])
        frames = [f.placement for f in links]
        from_collision, from_visual = (
            find_sole(_foot_shapes(posed, leg, shapes), down, forward, frames, length) for shapes in (collision, visual)
        )
        sole = from_collision or from_visual or sole_from_inertia(body, down, forward, length)
        note = self.notes.found if from_collision else self.notes.guessed
        self.touching.update({leg.side} if from_collision else ())
        origin = "collision geometry" if from_collision else "visual geometry, because there is no collision geometry"
        origin = origin if from_collision or from_visual else "no geometry"
        frame = links[0]
        placement = frame.placement.inverse() * sole.placement
        corners = sole.vertices
        shape = {1: "a point", 2: "a line"}.get(len(corners), f"{len(corners)} corners")
        size = np.ptp(corners, axis=0)
        note(
            f"foot {leg.side!r}: joint {model.names[joint]!r}, {len(leg.joints)} joints from the base; sole from "
            f"{origin} ({sole.how}): {shape}, {size[0]:.3g} x {size[1]:.3g} m"
        )
        if sole.cut_off > LACKING:
            self.notes.guessed(
                f"foot {leg.side!r}: its sole with {len(corners)} corners cuts off up to {1e3 * sole.cut_off:.2g} mm "
                "of the outline of its shapes"
            )
        names = [f.name for f in model.frames if f.type == pin.BODY and f.parentJoint in (joint, leg.shaped)]
        stated_values = [value for name in names for value in self.description.sole_friction.get(name, [])]
        friction = min(stated_values, default=FRICTION)
        if stated_values:
            self.notes.found(f"friction of foot {leg.side!r}: {friction:g}")
        else:
            self.notes.guessed(
                f"friction of foot {leg.side!r}: {friction:g}; rubber on wood or tiles has a higher value"
            )
        if friction < max(stated_values, default=friction):
            self.notes.guessed(
                f"friction of foot {leg.side!r}: {friction:g}, the minimum of its shapes (maximum "
                f"{max(stated_values):g}), because a sole has one value"
            )
        entry: dict[str, Any] = {
            "frame": frame.name,
            **_sole_keys(placement, corners),
            "friction_static": friction,
            "friction_dynamic": friction,
        }
        if sole.radius > 0.0:
            entry["radius"] = _rounded(sole.radius, 5)
        return entry, sole

    def _compare_feet(self, feet: dict[str, tuple[dict[str, Any], DetectedSole]]) -> None:
        if set(feet) != {"left", "right"}:
            return
        left, right = (feet[side][1].vertices for side in ("left", "right"))
        ends = [(c.max(axis=0), c.min(axis=0)) for c in (left, right * [1.0, -1.0])]
        difference = max(float(np.abs(a - b).max()) for a, b in zip(*ends, strict=True))
        if difference > 5e-3:
            self.notes.doubts(f"soles of the two feet differ by {1e3 * difference:.0f} mm in the description")

    def _imu(self, config: dict[str, Any], model: pin.Model) -> None:
        """Choose the IMU: the sensor site of an MJCF file, or the link with an IMU's name closest to the root."""
        frame = self.description.imu
        if not frame:
            named = [f for f in model.frames if f.type == pin.BODY and is_imu(f.name)]
            frame = min(named, key=lambda f: f.parentJoint).name if named else ""
            others = [f.name for f in named if f.name != frame]
            if others:
                self.notes.guessed(f"IMU: {frame}, the nearest to the root; others: {some(others)}")
        if frame:
            config["imu"] = {"frame": frame}
            self.notes.found(f"IMU: {frame}")
        else:
            self.notes.guessed("IMU: in the frame of the root link, because no link is named imu")

    def _postures(self, config: dict[str, Any], model: pin.Model) -> None:
        movable = set(list(model.names)[2:])
        for name, angles in self.description.postures.items():
            angles_of_joints = {joint: _rounded(angle, 6) for joint, angle in angles.items() if joint in movable}
            if angles_of_joints:
                config.setdefault("postures", {})[name] = angles_of_joints
        if "postures" in config:
            self.notes.found(
                f"postures: {some(list(config['postures']))}; start in one with `posture: NAME` in a scenario"
            )

    def _stand(self, config: dict[str, Any], legs: list[Leg], ahead: Array) -> None:
        """Add the standing posture, and parameters of zmp for the robot's size."""
        path = self.work / "draft.yaml"
        path.write_text(yaml_text(config, None), encoding="utf-8")
        try:
            reader = RobotReader(path)
            model, joints, _, _ = reader.read_model()
            ids = [model.getJointId(name) for name in joints]
            idx_q = np.array([model.joints[i].idx_q for i in ids], dtype=np.intp)
            reader.set_limits(model, joints, idx_q, np.array([model.joints[i].idx_v for i in ids], dtype=np.intp))
            soles = [reader.read_foot(model, name, foot)[0] for name, foot in reader.config.feet.items()]
            loops = reader.loops(model)
        except ConfigError:
            self.notes.doubts("posture: no search, because robot.yaml does not load")
            return
        if not soles:
            return
        key = standing_name(self.description.postures) or self._bent_key(model, soles, loops)
        key = key if self.description.postures.get(key) else ""
        posed = PosedRobot.of(model, self._start(model, key))
        q = standing_posture(posed, soles, legs, ahead, loops, bool(key), reader.passive, self.notes)
        if q is None:
            self.notes.doubts(
                "posture: found none with flat soles and the CoM above them. Define one with bent knees in robot.yaml, "
                "and check the soles in the figure"
            )
            return
        flat = [sole for sole in soles if sole.n_vertices > 2]
        self._compare_posture(model, q, key)
        # The loader refines the standing posture of flat feet, but not that of point and line feet.
        digits = 3 if flat else 6
        low, high = model.lowerPositionLimit, model.upperPositionLimit
        angles = {n: min(max(_rounded(q[i], digits), low[i]), high[i]) for n, i in zip(joints, idx_q, strict=True)}
        passive = {n: _rounded(q[model.joints[model.getJointId(n)].idx_q], 5) for n in reader.passive}
        config["posture"] = {name: float(angle) for name, angle in (angles | passive).items() if angle} or {
            joints[0]: 0.0
        }
        data = model.createData()
        pin.forwardKinematics(model, data, q)
        if not flat:
            for sole in soles:
                foot = config["feet"][sole.name]
                link = model.frames[model.getFrameId(foot["frame"], pin.BODY)]
                placement, vertices = upright_sole(sole, data.oMi[sole.joint_id], ahead)
                foot.update(_sole_keys(link.placement.inverse() * placement, vertices))
        if len(legs) == 2 and len(flat) == 2:
            positions = [data.oMi[j].translation for j in legs[0].joints]
            length = float(sum(np.linalg.norm(b - a) for a, b in pairwise(positions)))
            com = float(pin.centerOfMass(model, data, q)[2])
            shortest = min(float(np.ptp(sole.vertices[:, 0])) for sole in flat)
            params = scaled_gait(length, com, shortest, 9.81)
            shift = _ankle_shift(PosedRobot.of(model, q), legs[0], flat[0], ahead)
            if abs(shift) >= LEAST_SHIFT:
                params["zmp_forward"] = float(f"{shift:.2g}")
            config["controllers"] = {"zmp": params}
            self.notes.guessed(
                f"parameters of zmp, scaled by the leg length {length:.3g} m and the CoM height {com:.3g} m: "
                + ", ".join(f"{key} {value:g}" for key, value in params.items())
            )

    def _bent_key(self, model: pin.Model, soles: list[Sole], loops: Sequence[Loop]) -> str:
        """Return the first posture with bent joints that nearly stands on flat soles, or ''."""
        for name, angles in self.description.postures.items():
            start = self._start(model, name)
            if max(map(abs, angles.values()), default=0.0) < BENT or min(sole.n_vertices for sole in soles) < 3:
                continue
            q = stand(model, soles, start, loops)
            if q is None or np.abs(q[7:] - start[7:]).max() > NEARLY:
                continue
            vertical = [pin.Quaternion(each[3:7]).toRotationMatrix()[2] for each in (start, q)]
            if vertical[0] @ vertical[1] > np.cos(NEARLY):
                return name
        return ""

    def _compare_posture(self, model: pin.Model, q: Array, key: str) -> None:
        """Note the difference between the standing configuration (nq,) and its keyframe ``key``."""
        if not key:
            if self.description.postures:
                self.notes.guessed(
                    f"posture: none of the keyframes {some(list(self.description.postures))} has the name of a "
                    f"standing posture ({', '.join(STANDING)})"
                )
            return
        self.notes.found(f"posture: keyframe {key!r}")
        target_angles = self.description.postures[key]
        differences = {
            name: float(q[model.joints[model.getJointId(name)].idx_q]) - angle
            for name, angle in target_angles.items()
            if model.existJointName(name)
        }
        worst = max(differences, key=lambda name: abs(differences[name]), default="")
        attitude = self.description.attitudes.get(key, np.eye(3))
        tilt = float(np.linalg.norm(pin.log3(attitude.T @ pin.Quaternion(q[3:7]).toRotationMatrix())))
        changes = [f"{worst} by {differences[worst]:+.3g} rad"] if worst and abs(differences[worst]) > MOVED else []
        changes += [f"the base by {tilt:.3g} rad"] if tilt > MOVED else []
        if changes:
            self.notes.guessed(
                f"posture: keyframe {key!r} has no flat soles with the CoM above them. The nearest such posture "
                f"moves {' and '.join(changes)}"
            )

    def _mirrors(self, posed: PosedRobot, ahead: Array) -> None:
        pairs = mirrored_joints(posed, ahead)
        rows = [(a, b, sign) for a, (b, sign) in pairs.items() if a <= b]
        if not rows:
            return
        self.notes.found(f"{sum(a != b for a, b, _ in rows)} pairs of mirrored joints")
        self.lines += ["## Mirrored joints", "", "| joint | its mirror | sign |", "| --- | --- | --- |"]
        self.lines += [f"| {a} | {'itself' if a == b else b} | {'+' if sign > 0 else '-'} |" for a, b, sign in rows]
        unmirrored = [name for name in list(posed.model.names)[2:] if name not in pairs]
        if unmirrored:
            self.lines += ["", f"Joints without a mirrored joint: {some(unmirrored, 12)}."]
        self.lines.append("")


def _ankle_shift(posed: PosedRobot, leg: Leg, sole: Sole, ahead: Array) -> float:
    """Return `zmp_forward` of a standing robot [m]; the ankle is the last pitch joint of its leg."""
    model, across = posed.model, np.cross([0.0, 0.0, 1.0], ahead)
    pitch = [j for j in leg.joints if posed.is_hinge(j) and abs(posed.axis(j) @ across) > ALONG]
    if not pitch:
        return 0.0
    sole_centre = posed.placements[sole.joint_id].act(sole.placement_joint_sole.act(np.append(sole.centre, 0.0)))
    lever = float((sole_centre - posed.placements[pitch[-1]].translation) @ ahead)
    effort = float(effort_and_velocity_limits(model)[0][model.joints[pitch[-1]].idx_v])
    weight = float(pin.computeTotalMass(model)) * 9.81
    return zmp_shift(lever, effort, weight, float(np.ptp(sole.vertices[:, 0])))


def _foot_shapes(posed: PosedRobot, leg: Leg, shapes: Iterable[Shape]) -> list[Shape]:
    """Return the shapes of a foot in the frame of the joint that moves its sole."""
    pose = posed.placements[leg.foot].actInv(posed.placements[leg.shaped])
    return [
        replace(
            shape,
            joint_id=leg.foot,
            points=shape.points @ pose.rotation.T + pose.translation,
            axis=pose.rotation @ shape.axis,
        )
        if leg.shaped != leg.foot
        else shape
        for shape in shapes
        if shape.joint_id == leg.shaped
    ]


def _sole_keys(placement: pin.SE3, vertices: Array) -> dict[str, Any]:
    """Return the keys of a foot that define the position of its sole in the frame of its link."""
    return {
        "placement": {
            "xyz": [_rounded(v, 5) for v in placement.translation],
            "rpy": [_rounded(v, 6) for v in pin.rpy.matrixToRpy(placement.rotation)],
        },
        "vertices": [[_rounded(x, 5), _rounded(y, 5)] for x, y in vertices],
    }


def _rounded(value: float, digits: int) -> float:
    """Round ``value``, without a negative zero."""
    return round(float(value), digits) + 0.0


def _list_moments(moments: Any) -> str:
    return ", ".join(f"{moment:.4g}" for moment in moments)


def _origins(
    robot: Robot, config: Mapping[str, Any], description: Description, touching: set[str]
) -> list[ValueOrigin]:
    """Return the values of drives and feet by their origin.

    Args:
        robot: The loaded robot.
        config: Keys of its robot.yaml.
        description: The description.
        touching: Feet whose soles come from collision geometry.
    """
    joints, everything = robot.joint_names, set(robot.joint_names)
    friction, kp = config["hardware"]["realistic"]["coulomb_friction"], gains(robot)["kp"].tolist()
    drives: list[tuple[str, Sequence[float], set[str]]] = [
        ("effort_limit", robot.effort_limit.tolist(), everything - set(config.get("effort_limit", ()))),
        ("velocity_limit", robot.velocity_limit.tolist(), everything - set(config.get("velocity_limit", ()))),
        ("armature", robot.model.armature[robot.idx_v].tolist(), set(description.armature)),
        ("joint_damping", robot.joint_damping[robot.idx_v].tolist(), set(description.damping)),
        ("coulomb_friction", [friction.get(joint, 0.0) for joint in joints], set(description.friction)),
        (
            "drive_stiffness",
            [robot.drive_stiffness.get(j, kp[i]) for i, j in enumerate(joints)],
            set(robot.drive_stiffness),
        ),
    ]
    origins = []
    for name, values, taken in drives:
        origin = ValueOrigin(name, JOINT_UNITS[name])
        for joint, value in zip(joints, values, strict=True):
            (origin.taken if joint in taken else origin.inferred)[joint] = value
        origins.append(origin)
    length, width, mu = ValueOrigin("sole length", "m"), ValueOrigin("sole width", "m"), ValueOrigin("friction", "")
    for sole in robot.soles:
        links = [f.name for f in robot.model.frames if f.type == pin.BODY and f.parentJoint == sole.joint_id]
        for origin, value, taken_here in (
            (length, float(np.ptp(sole.vertices[:, 0])), sole.name in touching),
            (width, float(np.ptp(sole.vertices[:, 1])), sole.name in touching),
            (mu, sole.friction_static, any(link in description.sole_friction for link in links)),
        ):
            (origin.taken if taken_here else origin.inferred)[sole.name] = value
    return [*origins, length, width, mu]


def _gains_table(robot: Robot) -> list[str]:
    """Return the table of gains of a robot."""
    joint_gains = gains(robot)
    lines = [
        "## Gains",
        "",
        "These gains follow from the effective inertia of each joint, for drives with a cycle of 1 ms.",
        "",
    ]
    lines.append("| joint | inertia, kg.m^2 | kp, N.m/rad | kd, N.m.s/rad | maximum kd |")
    lines.append("| --- | --- | --- | --- | --- |")
    for i, joint in enumerate(robot.joint_names):
        values = " | ".join(f"{joint_gains[key][i]:.3g}" for key in ("inertia", "kp", "kd", "kd_most"))
        lines.append(f"| {joint} | {values} |")
    return [*lines, ""]
