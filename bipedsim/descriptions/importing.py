"""A description of others -> robot.yaml with a report: what was found, guessed, dropped and mended."""

from __future__ import annotations

import os
import shutil
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from bipedsim.descriptions.compare import compare
from bipedsim.descriptions.description import GRAVITY, STANDING, Description, is_imu
from bipedsim.descriptions.doubts import find_doubts, told_once
from bipedsim.descriptions.guesses import gains, gait, guess_drives, zmp_shift
from bipedsim.descriptions.legs import ALONG, Figure, Leg, find_legs, mirrored_joints
from bipedsim.descriptions.mjcf import stl
from bipedsim.descriptions.notes import Notes
from bipedsim.descriptions.soles import FoundSole, find_sole, sole_of_inertia, upright_sole
from bipedsim.descriptions.source import read_description
from bipedsim.descriptions.standing import standing_posture
from bipedsim.descriptions.write import report_text, short_text, yaml_text
from bipedsim.errors import BipedSimError, ConfigError, some
from bipedsim.model import (
    Robot,
    RobotReader,
    Shape,
    Sole,
    collada_up_axis,
    inertia_matrix,
    inertia_problem,
    inertia_values,
    load_robot,
    mesh_path,
    nearest_inertia,
    read_shapes,
    read_urdf,
    welded,
)
from bipedsim.numerics import Array

ALWAYS = ("robot.yaml", "report.md")
"""Files that every import writes."""
FRICTION = 0.45
"""Of soles, where nobody says."""
LEAST_SHIFT = 1e-3
"""Of the ZMP, below which none is written [m]."""
LACKING = 1e-3
"""Width [m] of what is missing of a sole that is told."""
MOVED = 0.01
"""Angle [rad] from which a posture is another one than that of its keyframe."""


@dataclass(frozen=True)
class Imported:
    """What an import made.

    Attributes:
        folder: Holds robot.yaml, report.md, and what was made of other formats.
        robot: As it was read back; None where it cannot be.
        notes: What there was to say.
        report: The text of report.md.
        short: What a reader must know at once.
    """

    folder: Path
    robot: Robot | None
    notes: Notes
    report: str
    short: str

    @property
    def stands(self) -> bool:
        """Whether it has soles that can keep it from tipping; on points and blades only a controller can."""
        robot = self.robot
        return robot is not None and robot.free_flyer and all(sole.n_vertices > 2 for sole in robot.soles)


def import_robot(
    file: str | Path, folder: str | Path | None = None, other: str | Path | None = None, replace: bool = False
) -> Imported:
    """Read a URDF, xacro or MJCF file, or the folder of a description package, and write robot.yaml and report.md.

    Args:
        file: The description.
        folder: Where to write; by default a folder with the name of the robot, here.
        other: Another description of the robot, of which the report says in what they differ.
        replace: Whether files that are there already may be written anew.

    Raises:
        ConfigError: The description cannot be read, or a file that the import writes is there already.
    """
    file = Path(file)
    if not file.exists():
        raise ConfigError(f"{file}: no such file or folder")
    with tempfile.TemporaryDirectory(prefix="bipedsim_import_") as work:
        found = read_description(file, Path(work))
        target = Path(folder) if folder is not None else Path(found.name)
        _write_made(found)
        written = _written(Path(work))
        there = [str(target / path) for path in written if (target / path).exists()]
        if target.is_file():
            raise ConfigError(f"{target} is a file; name a folder with --output")
        if there and not replace:
            said = "there already; name another folder with --output, or give --replace"
            raise ConfigError(f"{', '.join(there)}: {said}")
        config, lines = _Import(found, Path(work)).config()
        if other is not None:
            second = read_description(Path(other), Path(work) / "other")
            _write_made(second)
            for said in compare(found, second):
                found.notes.differs(said)
        target.mkdir(parents=True, exist_ok=True)
        if found.made:
            config["urdf"] = found.path.name
        for path in written[len(ALWAYS) :]:
            (target / path).parent.mkdir(exist_ok=True)
            shutil.copy(Path(work) / path, target / path)
    (target / "robot.yaml").write_text(yaml_text(config, found), encoding="utf-8")
    robot = None
    try:
        robot = load_robot(target / "robot.yaml")  # the folder may have the name of a robot of the table
    except BipedSimError as error:
        found.notes.doubts(f"robot.yaml does not load yet: {error}")
    else:
        for said in find_doubts(robot):
            # What the reader of the file has said already, here with the file's name.
            found.notes.doubts(said.removeprefix(f"{robot.urdf_path}: "))
        lines += _gains_table(robot)
    text = report_text(found, robot, lines)
    (target / "report.md").write_text(text, encoding="utf-8")
    return Imported(target, robot, found.notes, text, short_text(found.notes, robot))


def _written(work: Path) -> list[Path]:
    """Return the files that an import writes, relative to its folder; those after ``ALWAYS`` are in ``work``."""
    made = [*work.glob("*.urdf"), *(path for path in work.glob("meshes/**/*") if path.is_file())]
    return [*map(Path, ALWAYS), *(path.relative_to(work) for path in made)]


def _write_made(found: Description) -> None:
    """Write the URDF that was made, with its meshes."""
    if not found.made:
        return
    ElementTree.indent(found.urdf)
    found.path.parent.mkdir(parents=True, exist_ok=True)
    found.path.write_text(ElementTree.tostring(found.urdf, encoding="unicode") + "\n", encoding="utf-8")
    if found.meshes:
        (found.path.parent / "meshes").mkdir(exist_ok=True)
    for name, triangles in found.meshes.items():
        (found.path.parent / "meshes" / name).write_bytes(stl(triangles))


class _Import:
    """The steps from a description to robot.yaml."""

    def __init__(self, found: Description, work: Path) -> None:
        self.found = found
        self.notes = found.notes
        self.work = work
        self.lines: list[str] = []

    def config(self) -> tuple[dict[str, Any], list[str]]:
        """Return the keys of robot.yaml, and tables for the report."""
        found, notes = self.found, self.notes
        config: dict[str, Any] = {
            "name": found.name,
            "description": f"imported from {found.source.name}",
            "urdf": os.path.relpath(found.path, self.work) if found.made else str(found.path),
        }
        if found.gravity != GRAVITY:
            config["gravity"] = found.gravity
            notes.found(f"gravity of {found.gravity:g} m/s^2")
        inertia = self._mended()
        if inertia:
            config["inertia"] = inertia
        covers = dict.fromkeys(("effort_limit", "velocity_limit", "position_limit"), lambda joint: True)
        model, xml, _ = read_urdf(found.path, True, covers, inertia)
        self._weld_massless(model)
        model = self._welded(model)
        shapes = read_shapes(model, xml, found.path, whole=True)
        self._tell_missing(shapes.warnings)
        seen, odd = read_shapes(model, xml, found.path, tag="visual", whole=True)
        self._tell_pictures(odd)
        start, given = self._start(model)
        figure = Figure.of(model, start, shapes.shapes, seen)
        legs, ahead = find_legs(figure, notes)
        toes = [model.names[toe] for leg in legs for toe in leg.toes]
        if toes:
            found.locked |= dict.fromkeys(toes, 0.0)
            notes.guessed(f"toes {some(toes)} are welded at 0: a sole is one flat")
            model = self._welded(model)
            shapes = read_shapes(model, xml, found.path, whole=True)
            seen = read_shapes(model, xml, found.path, tag="visual", whole=True).shapes
            start, given = self._start(model)
            figure = Figure.of(model, start, shapes.shapes, seen)
            legs, ahead = find_legs(figure, notes)
        if found.passive:
            config["passive"] = [joint for joint in found.passive if joint in list(model.names)]
            for what, values in (("armature", found.armature), ("friction", found.friction)):
                lost = [joint for joint in config["passive"] if values.get(joint, 0.0) > 0.0]
                if lost:
                    notes.dropped(f"{what} of joints without a drive: {some(lost)}")
        if found.locked:
            config["locked"] = {joint: float(angle) for joint, angle in found.locked.items()}
        if found.loops:
            config["loops"] = found.loops
        feet = {leg.side: self._foot(figure, leg, ahead, list(shapes.shapes), list(seen)) for leg in legs}
        self._compare_feet(feet)
        config["feet"] = {side: foot for side, (foot, _) in feet.items()}
        self._imu(config, model)
        driven = [name for name in list(model.names)[2:] if name not in found.passive]
        in_legs = {model.names[j] for leg in legs for j in leg.joints}
        weight = GRAVITY * sum(body.mass for body in model.inertias)
        drives = guess_drives(found, driven, in_legs, weight, figure.height)
        for key, values in vars(drives).items():
            if values and key != "coulomb_friction":
                config[key] = values
        config["hardware"] = {"realistic": {"coulomb_friction": drives.coulomb_friction}}
        self._postures(config, model)
        self._stand(config, legs, ahead, given)
        self._mirrors(figure, ahead)
        return config, self.lines

    def _mended(self) -> dict[str, dict[str, float]]:
        """Return the inertia of links that no body can have, mended."""
        mended = {}
        for link in self.found.urdf.findall("link"):
            element, mass = link.find("inertial/inertia"), link.find("inertial/mass")
            if element is None or mass is None:
                continue
            values = {key: float(element.get(key) or 0.0) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")}
            inertia, kg = inertia_matrix(values), float(mass.get("value") or 0.0)
            if not kg > 0.0 or not inertia_problem(kg, inertia):
                continue
            nearest = nearest_inertia(inertia)
            name = link.get("name", "")
            mended[name] = {key: float(f"{value:.9g}") for key, value in inertia_values(nearest).items()}
            before, after = np.linalg.eigvalsh(inertia), np.linalg.eigvalsh(nearest)
            self.notes.mended(
                f"inertia of {name}: principal moments {_three(before)} are not those of a rigid body, the nearest "
                f"that are: {_three(after)} kg.m^2"
            )
        return mended

    def _weld_massless(self, model: pin.Model) -> None:
        """Weld joints beyond which there is no mass."""
        carried = [body.mass for body in model.inertias]
        for joint in range(model.njoints - 1, 0, -1):
            carried[model.parents[joint]] += carried[joint]
        empty = [model.names[j] for j in range(2, model.njoints) if not carried[j] > 0.0]
        new = [name for name in empty if name not in self.found.locked]
        if new:
            self.found.locked |= dict.fromkeys(new, 0.0)
            self.notes.dropped(f"joints {some(new)}: nothing beyond them has mass; they are welded at 0")

    def _welded(self, model: pin.Model) -> pin.Model:
        return welded(model, {n: angle for n, angle in self.found.locked.items() if model.existJointName(n)})

    def _tell_missing(self, warnings: Iterable[str]) -> None:
        """Tell of meshes that are missing, or odd: what is told here stands even where robot.yaml does not load."""
        for said in told_once(warnings, str(self.found.path)):
            self.notes.doubts(said)

    def _tell_pictures(self, warnings: Iterable[str]) -> None:
        """Tell of shapes that are only seen with wrong sizes, and of meshes whose own axes are not followed."""
        for said in warnings:
            if said.endswith("left out"):
                self.notes.dropped(said.removeprefix(f"{self.found.path}: "))
        turned = []
        for mesh in self.found.urdf.iter("mesh"):
            path = mesh_path(mesh.get("filename", ""), self.found.path)
            if path is None or path.suffix.lower() != ".dae" or path.name in turned:
                continue
            try:
                turned += [path.name] if collada_up_axis(path) != "Z" else []
            except (OSError, ValueError, ImportError):
                continue  # told where its shape is read
        if turned:
            self.notes.guessed(
                f"meshes {some(turned)} say that y or x is up: their points are taken as they are, as RViz and Gazebo "
                "do; where a mesh lies on its side, turn it by the rpy of its <origin>"
            )

    def _start(self, model: pin.Model) -> tuple[Array, bool]:
        """Return the configuration (nq,) that the description stands in, and whether it says so."""
        q = pin.neutral(model)
        key = self._standing_key()
        named = self.found.postures.get(key, {})
        if key in self.found.attitudes:
            q[3:7] = pin.Quaternion(self.found.attitudes[key]).coeffs()
        for joint in range(2, model.njoints):
            i = model.joints[joint].idx_q
            low, high = model.lowerPositionLimit[i], model.upperPositionLimit[i]
            wanted = named.get(model.names[joint], 0.0)
            q[i] = min(max(wanted, low), high) if low < high else wanted
        return q, bool(named)

    def _standing_key(self) -> str:
        """Return the name of the posture that is called as those are in which robots stand, or an empty one."""
        return next((name for name in STANDING if name in self.found.postures), "")

    def _foot(
        self, figure: Figure, leg: Leg, ahead: Array, touching: list[Shape], seen: list[Shape]
    ) -> tuple[dict[str, Any], FoundSole]:
        """Return the entry of a foot."""
        model, joint = figure.model, leg.foot
        turn = figure.places[joint].rotation.T
        down, forward = turn @ np.array([0.0, 0.0, -1.0]), turn @ ahead
        links = [f for f in model.frames if f.type == pin.BODY and f.parentJoint == joint]
        body = model.inertias[joint]
        length = float(figure.places[leg.joints[0]].translation[2] - figure.lowest[joint])
        frames = [f.placement for f in links]
        of_touching, of_seen = (
            find_sole([shape for shape in shapes if shape.joint_id == joint], down, forward, frames, length)
            for shapes in (touching, seen)
        )
        sole = of_touching or of_seen or sole_of_inertia(body, down, forward, length)
        tell = self.notes.found if of_touching else self.notes.guessed
        said = "collision geometry" if of_touching else "visual geometry, as none is for collisions"
        said = said if of_touching or of_seen else "no geometry"
        frame = links[0]
        placement = frame.placement.inverse() * sole.placement
        corners = sole.vertices
        shape = {1: "a point", 2: "a blade"}.get(len(corners), f"{len(corners)} corners")
        size = np.ptp(corners, axis=0)
        tell(
            f"foot {leg.side!r}: joint {model.names[joint]!r}, {len(leg.joints)} joints from the base; sole from "
            f"{said} ({sole.how}): {shape}, {size[0]:.3g} x {size[1]:.3g} m"
        )
        if sole.lacks > LACKING:
            self.notes.guessed(
                f"foot {leg.side!r}: its sole of {len(corners)} corners lacks up to {1e3 * sole.lacks:.2g} mm of the "
                "outline of its shapes"
            )
        names = [f.name for f in links]
        stated = [value for name in names for value in self.found.sole_friction.get(name, [])]
        friction = min(stated, default=FRICTION)
        if stated:
            self.notes.found(f"friction of foot {leg.side!r}: {friction:g}")
        else:
            self.notes.guessed(f"friction of foot {leg.side!r}: {friction:g}; rubber on wood or tiles has more")
        if friction < max(stated, default=friction):
            self.notes.guessed(
                f"friction of foot {leg.side!r}: {friction:g}, the lowest of its shapes, of which others have "
                f"{max(stated):g}; a sole has one value"
            )
        entry: dict[str, Any] = {
            "frame": frame.name,
            **_outline(placement, corners),
            "friction_static": friction,
            "friction_dynamic": friction,
        }
        if sole.radius > 0.0:
            entry["radius"] = _short(sole.radius, 5)
        return entry, sole

    def _compare_feet(self, feet: dict[str, tuple[dict[str, Any], FoundSole]]) -> None:
        if set(feet) != {"left", "right"}:
            return
        left, right = (feet[side][1].vertices for side in ("left", "right"))
        ends = [(c.max(axis=0), c.min(axis=0)) for c in (left, right * [1.0, -1.0])]
        apart = max(float(np.abs(a - b).max()) for a, b in zip(*ends, strict=True))
        if apart > 5e-3:
            self.notes.doubts(f"soles of the two feet differ by {1e3 * apart:.0f} mm; the description has them so")

    def _imu(self, config: dict[str, Any], model: pin.Model) -> None:
        """Choose the IMU: that of the sensors of an MJCF file, or the one called so that is nearest to the root."""
        frame = self.found.imu
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
            self.notes.guessed("IMU: in the frame of the root link; nothing is called imu")

    def _postures(self, config: dict[str, Any], model: pin.Model) -> None:
        movable = set(list(model.names)[2:])
        for name, angles in self.found.postures.items():
            kept = {joint: _short(angle, 6) for joint, angle in angles.items() if joint in movable}
            if kept:
                config.setdefault("postures", {})[name] = kept
        if "postures" in config:
            self.notes.found(f"postures: {some(list(config['postures']))}; --posture NAME starts there")

    def _stand(self, config: dict[str, Any], legs: list[Leg], ahead: Array, given: bool) -> None:
        """Add the standing posture, and what zmp is to do with a robot of that size."""
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
            self.notes.doubts("no posture was looked for, as robot.yaml does not load")
            return
        if not soles:
            return
        figure = Figure.of(model, self._start(model)[0])
        q = standing_posture(figure, soles, legs, ahead, loops, given, reader.passive, self.notes)
        if q is None:
            self.notes.doubts(
                "posture: none was found in which the soles are flat and the CoM is over them; give one in robot.yaml "
                "with the knees bent, and look at the soles in the picture"
            )
            return
        flat = [sole for sole in soles if sole.n_vertices > 2]
        self._compare_posture(model, q, given)
        # Where it stands exactly, the loader finds again; on points and blades it leaves the joints where they are.
        digits = 3 if flat else 6
        low, high = model.lowerPositionLimit, model.upperPositionLimit
        angles = {n: min(max(_short(q[i], digits), low[i]), high[i]) for n, i in zip(joints, idx_q, strict=True)}
        passive = {n: _short(q[model.joints[model.getJointId(n)].idx_q], 5) for n in reader.passive}
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
                foot.update(_outline(link.placement.inverse() * placement, vertices))
        if len(legs) == 2 and len(flat) == 2:
            at = [data.oMi[j].translation for j in legs[0].joints]
            length = float(sum(np.linalg.norm(b - a) for a, b in pairwise(at)))
            com = float(pin.centerOfMass(model, data, q)[2])
            shortest = min(float(np.ptp(sole.vertices[:, 0])) for sole in flat)
            params = gait(length, com, shortest, 9.81)
            shift = _ankle_shift(Figure.of(model, q), legs[0], flat[0], ahead)
            if abs(shift) >= LEAST_SHIFT:
                params["zmp_forward"] = float(f"{shift:.2g}")
            config["controllers"] = {"zmp": params}
            self.notes.guessed(
                f"parameters of zmp by similarity from legs of {length:.3g} m and a CoM at {com:.3g} m: "
                + ", ".join(f"{key} {value:g}" for key, value in params.items())
            )

    def _compare_posture(self, model: pin.Model, q: Array, given: bool) -> None:
        """Tell by how much a robot that stands (nq,) differs from the keyframe that it stands by."""
        if not given:
            if self.found.postures:
                self.notes.guessed(
                    f"posture: none of the keyframes {some(list(self.found.postures))} is called as those are in which "
                    f"robots stand ({', '.join(STANDING)})"
                )
            return
        key = self._standing_key()
        wanted = self.found.postures[key]
        moved = {
            name: float(q[model.joints[model.getJointId(name)].idx_q]) - angle
            for name, angle in wanted.items()
            if model.existJointName(name)
        }
        worst = max(moved, key=lambda name: abs(moved[name]), default="")
        attitude = self.found.attitudes.get(key, np.eye(3))
        tilt = float(np.linalg.norm(pin.log3(attitude.T @ pin.Quaternion(q[3:7]).toRotationMatrix())))
        said = [f"{worst} by {moved[worst]:+.3g} rad"] if worst and abs(moved[worst]) > MOVED else []
        said += [f"the base by {tilt:.3g} rad"] if tilt > MOVED else []
        if said:
            self.notes.guessed(
                f"posture: keyframe {key!r} does not stand with flat soles and the CoM over them; the nearest one that "
                f"does moves {' and '.join(said)}"
            )

    def _mirrors(self, figure: Figure, ahead: Array) -> None:
        pairs = mirrored_joints(figure, ahead)
        rows = [(a, b, sign) for a, (b, sign) in pairs.items() if a <= b]
        if not rows:
            return
        self.notes.found(f"{sum(a != b for a, b, _ in rows)} pairs of joints that mirror each other")
        self.lines += ["## Joints that mirror each other", "", "| joint | its mirror | sign |", "| --- | --- | --- |"]
        self.lines += [f"| {a} | {'itself' if a == b else b} | {'+' if sign > 0 else '-'} |" for a, b, sign in rows]
        alone = [name for name in list(figure.model.names)[2:] if name not in pairs]
        if alone:
            self.lines += ["", f"Without a mirror: {some(alone, 12)}."]
        self.lines.append("")


def _ankle_shift(figure: Figure, leg: Leg, sole: Sole, ahead: Array) -> float:
    """Return `zmp_forward` [m] of a robot that stands, of whose leg the ankle is the last joint across the robot."""
    model, across = figure.model, np.cross([0.0, 0.0, 1.0], ahead)
    pitch = [j for j in leg.joints if figure.turns(j) and abs(figure.axis(j) @ across) > ALONG]
    if not pitch:
        return 0.0
    middle = figure.places[sole.joint_id].act(sole.placement_joint_sole.act(np.append(sole.centre, 0.0)))
    lever = float((middle - figure.places[pitch[-1]].translation) @ ahead)
    effort = float(model.upperEffortLimit[model.joints[pitch[-1]].idx_v])
    weight = float(pin.computeTotalMass(model)) * 9.81
    return zmp_shift(lever, effort, weight, float(np.ptp(sole.vertices[:, 0])))


def _outline(placement: pin.SE3, vertices: Array) -> dict[str, Any]:
    """Return the keys of a foot that say where its sole is, in the frame of its link."""
    return {
        "placement": {
            "xyz": [_short(v, 5) for v in placement.translation],
            "rpy": [_short(v, 6) for v in pin.rpy.matrixToRpy(placement.rotation)],
        },
        "vertices": [[_short(x, 5), _short(y, 5)] for x, y in vertices],
    }


def _short(value: float, digits: int) -> float:
    """Return ``value`` rounded, without a negative zero."""
    return round(float(value), digits) + 0.0


def _three(moments: Any) -> str:
    return ", ".join(f"{moment:.4g}" for moment in moments)


def _gains_table(robot: Robot) -> list[str]:
    """Return the table of gains that follow from the robot."""
    found = gains(robot)
    lines = ["## Gains", "", "From the effective inertia of each joint, for drives that answer every millisecond.", ""]
    lines.append("| joint | inertia, kg.m^2 | kp, N.m/rad | kd, N.m.s/rad | kd at most |")
    lines.append("| --- | --- | --- | --- | --- |")
    for i, joint in enumerate(robot.joint_names):
        values = " | ".join(f"{found[key][i]:.3g}" for key in ("inertia", "kp", "kd", "kd_most"))
        lines.append(f"| {joint} | {values} |")
    return [*lines, ""]
