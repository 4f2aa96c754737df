"""Convert MJCF to URDF with MuJoCo's own compiler, which resolves defaults, includes, angles and frames."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from bipedsim.descriptions.description import Description, is_imu, plain, standing_name
from bipedsim.descriptions.mjcf_drives import MjcfDrives
from bipedsim.descriptions.mjcf_model import MjcfModel
from bipedsim.descriptions.notes import Notes
from bipedsim.errors import some
from bipedsim.numerics import Array

LEVEL, STEEP = 1e-6, 0.25 * np.pi
"""Tilt of a root body below which it is upright, and from which its z axis is not the intended vertical [rad]."""


def read_mjcf(file: Path, folder: Path, notes: Notes) -> Description:
    """Read an MJCF file and convert it to a description with a URDF.

    The robot is the tree below the world with the most joints. Joint angles keep the zeros of the file.

    Raises:
        ConfigError: MuJoCo is not installed or cannot compile the file, or the file contains no bodies.
    """
    return _MjcfImport(file, folder, notes).description()


def _pose(pos: Array, quat: Array) -> pin.SE3:
    w, x, y, z = quat / np.linalg.norm(quat)
    return pin.SE3(pin.Quaternion(w, x, y, z).toRotationMatrix(), np.array(pos, dtype=np.float64))


def _shift(point: Array) -> pin.SE3:
    return pin.SE3(np.eye(3), np.array(point, dtype=np.float64))


def _numbers(values: Array) -> str:
    return " ".join(f"{0.0 if abs(v) < 1e-15 else v:.17g}" for v in values)


def _origin(parent: ElementTree.Element, pose: pin.SE3) -> None:
    rpy = pin.rpy.matrixToRpy(pose.rotation)
    ElementTree.SubElement(parent, "origin", xyz=_numbers(pose.translation), rpy=_numbers(rpy))


def _rotated(rotation: Array) -> pin.SE3:
    return pin.SE3(np.asarray(rotation, dtype=np.float64), np.zeros(3))


def _tilt(first: Array, second: Array) -> float:
    """Return the angle between the vertical axes of two rotations (3, 3) from body to world [rad]."""
    return float(np.arccos(np.clip(first[2] @ second[2], -1.0, 1.0)))


class _MjcfImport:
    """Converter of one MJCF file to a URDF."""

    def __init__(self, file: Path, folder: Path, notes: Notes) -> None:
        self._model = MjcfModel(file, notes)
        self.notes = notes
        name = plain(self._model.title or file.stem)
        urdf = ElementTree.Element("robot", name=name)
        self.out = Description(name, file, urdf, folder / f"{name}.urdf", True, notes)
        # Body to its URDF link in the frame of the body; the link is at the anchor of the last joint.
        self.anchor: dict[int, Array] = {}
        self.base_joints = self._model.base_joints
        # Keyframe of the standing posture; -1 without one.
        self.standing = -1

    def description(self) -> Description:
        """Convert the file and return the description."""
        self._base_link()
        for body in self._model.bodies:
            self._add_body(body)
        self._imu()
        MjcfDrives(self._model, self.out).read(self.base_joints)
        self._gears()
        self._loops()
        self._postures()
        self._world()
        self._left_out()
        if self.out.sole_friction and not self._model.floors and not self._model.paired:
            self.notes.guessed(
                "friction of feet: from their own shapes, because the file has no floor. With a floor, MuJoCo uses the "
                "larger of both values"
            )
        return self.out

    def _base_link(self) -> None:
        """Add an upright link above a root body whose axes are tilted in the standing posture.

        The root of the URDF must be upright, because controllers and monitors measure its tilt. A standing keyframe is
        used if it rotates the root body by more than 45 degrees from its pose in the tree.
        """
        at_zero = self._model.attitude()
        keys = {plain(self._model.name("key", k)): k for k in range(self._model.m.nkey)}
        self.standing = keys.get(standing_name(keys), -1)
        attitude = self._model.attitude(self.standing) if self.standing >= 0 else at_zero
        if _tilt(at_zero, attitude) < STEEP:
            attitude = at_zero
        tilt = np.arccos(np.clip(attitude[2, 2], -1.0, 1.0))
        if tilt < STEEP:
            # The body's z axis is the intended vertical. Removing the heading keeps the x axis of the base.
            yaw = np.arctan2(attitude[1, 0], attitude[0, 0])
            attitude = pin.rpy.rpyToMatrix(0.0, 0.0, -float(yaw)) @ attitude
        self.upright = attitude
        if tilt < LEVEL:
            return
        root = self._model.name("body", self._model.bodies[0])
        name = f"{root}_upright"
        ElementTree.SubElement(self.out.urdf, "link", name=name)
        self._joint(f"{name}_fixed", "fixed", name, root, _rotated(attitude))
        self.out.base = name
        self.notes.found(
            f"the root body {root!r} is rotated by {np.degrees(tilt):.3g} degrees in the standing posture; "
            f"the upright link {name!r} is the base"
        )

    def _add_body(self, body: int) -> None:
        m, name = self._model.m, self._model.name("body", body)
        joints, root = self._model.joints(body), body == self._model.bodies[0]
        if root:
            self._note_base_joints(self._model.base_joints)
        pose = _pose(m.body_pos[body], m.body_quat[body])
        parent = int(m.body_parentid[body])
        if not root:
            pose = _shift(-self.anchor[parent]) * pose
            previous, at = self._model.name("body", parent), np.zeros(3)
            steps = self._steps(joints)
            if not steps:
                self._joint(f"{name}_fixed", "fixed", previous, name, pose)
            for i, (joint, kind, axis, label) in enumerate(steps):
                anchor = np.array(m.jnt_pos[joint])
                place = (pose if i == 0 else pin.SE3.Identity()) * _shift(anchor - at)
                reference = float(m.qpos0[m.jnt_qposadr[joint]]) if kind != "ball" else 0.0
                if kind == "prismatic":
                    place = place * _shift(-reference * axis)
                else:
                    place = place * pin.SE3(pin.exp3(-reference * axis), np.zeros(3))
                last = i == len(steps) - 1
                link = name if last else f"{name}_{label}"
                if not last:
                    ElementTree.SubElement(self.out.urdf, "link", name=link)
                self._joint(label, kind, previous, link, place, joint, axis)
                previous, at = link, anchor
            self.anchor[body] = at
        else:
            self.anchor[body] = np.zeros(3)
        self._link(body, name)

    def _note_base_joints(self, joints: list[int]) -> None:
        """Note that the joints between world and robot are parts of the floating base."""
        kinds = [int(self._model.m.jnt_type[j]) for j in joints]
        slide, free = int(self._model.mj.mjtJoint.mjJNT_SLIDE), int(self._model.mj.mjtJoint.mjJNT_FREE)
        if free in kinds:
            return
        if kinds.count(slide) >= 2:
            names = [self._model.name("joint", j) for j in joints]
            self.notes.found(f"joints {some(names)} of the base are replaced by a floating base")
        elif joints:
            names = [self._model.name("joint", j) for j in joints]
            self.notes.dropped(f"joints {some(names)} between world and robot are replaced by a floating base")
        else:
            self.notes.guessed("root: free_flyer; the file fixes the base to the world")

    def _steps(self, joints: list[int]) -> list[tuple[int, str, Array, str]]:
        """Return joint, kind, axis and name of the URDF joints that replace those of one body."""
        types, steps = self._model.mj.mjtJoint, []
        for joint in joints:
            kind, name = int(self._model.m.jnt_type[joint]), self._model.name("joint", joint)
            axis = np.array(self._model.m.jnt_axis[joint], dtype=np.float64)
            if kind == int(types.mjJNT_BALL):
                for label, axis in zip("xyz", np.eye(3), strict=True):
                    steps.append((joint, "ball", axis, f"{name}_{label}"))
                    self.out.passive.append(f"{name}_{label}")
                self.notes.guessed(
                    f"ball joint {name!r}: three hinges about x, y and z, which are singular at 90 degrees about y"
                )
            elif kind == int(types.mjJNT_SLIDE):
                steps.append((joint, "prismatic", axis, name))
            elif kind == int(types.mjJNT_HINGE):
                steps.append((joint, "revolute", axis, name))
        return steps

    def _joint(
        self, name: str, kind: str, parent: str, child: str, place: pin.SE3, joint: int = -1, axis: Array | None = None
    ) -> None:
        m = self._model.m
        limited = joint >= 0 and kind != "ball" and bool(m.jnt_limited[joint])
        written = kind if kind in ("fixed", "prismatic") else "revolute" if limited else "continuous"
        element = ElementTree.SubElement(self.out.urdf, "joint", name=name, type=written)
        _origin(element, place)
        ElementTree.SubElement(element, "parent", link=parent)
        ElementTree.SubElement(element, "child", link=child)
        if joint < 0 or axis is None:
            return
        ElementTree.SubElement(element, "axis", xyz=_numbers(axis))
        if limited:
            low, high = m.jnt_range[joint]
            ElementTree.SubElement(element, "limit", lower=f"{low:.12g}", upper=f"{high:.12g}")
        dof = int(m.jnt_dofadr[joint])
        # A gear reflects the armature and damping of an actuator by its square.
        armature, damping = (
            float(dofs[dof]) + sum(gear**2 * float(of[i]) for i, gear in self._model.actuators.get(joint, ()))
            for dofs, of in (
                (m.dof_armature, getattr(m, "actuator_armature", np.zeros(m.nu))),
                (m.dof_damping, getattr(m, "actuator_damping", np.zeros(m.nu))),
            )
        )
        if joint in self._model.gears.driven:
            armature = float(m.dof_armature[dof])  # The inertia of rotors contains the armature of their actuators.
        friction = float(m.dof_frictionloss[dof])
        for rotor, turns in self._model.gears.driven.get(joint, {}).items():
            turned = int(m.jnt_dofadr[rotor])
            armature += turns**2 * float(m.dof_M0[turned])
            damping += turns**2 * float(m.dof_damping[turned])
            friction += abs(turns) * float(m.dof_frictionloss[turned])
        if damping or friction:
            ElementTree.SubElement(element, "dynamics", damping=repr(damping), friction=repr(friction))
        # MJCF has defaults for these values, so 0 is also a stated value.
        self.out.armature[name], self.out.damping[name], self.out.friction[name] = armature, damping, friction

    def _link(self, body: int, name: str) -> None:
        m, back = self._model.m, _shift(-self.anchor[body])
        link = ElementTree.SubElement(self.out.urdf, "link", name=name)
        if m.body_mass[body] > 0.0:
            inertial = ElementTree.SubElement(link, "inertial")
            _origin(inertial, back * _pose(m.body_ipos[body], m.body_iquat[body]))
            ElementTree.SubElement(inertial, "mass", value=f"{m.body_mass[body]:.12g}")
            xx, yy, zz = (f"{value:.12g}" for value in m.body_inertia[body])
            ElementTree.SubElement(inertial, "inertia", ixx=xx, iyy=yy, izz=zz, ixy="0", ixz="0", iyz="0")
        first, count = int(m.body_geomadr[body]), int(m.body_geomnum[body])
        for geom in range(first, first + count):
            touches = bool(m.geom_contype[geom] or m.geom_conaffinity[geom]) or geom in self._model.paired
            element = ElementTree.SubElement(link, "collision" if touches else "visual")
            _origin(element, back * _pose(m.geom_pos[geom], m.geom_quat[geom]))
            if not self._geometry(ElementTree.SubElement(element, "geometry"), geom, name):
                link.remove(element)
            elif touches and (friction := self._model.friction(geom)) is not None:
                self.out.sole_friction.setdefault(name, []).append(friction)

    def _geometry(self, element: ElementTree.Element, geom: int, link: str) -> bool:
        """Fill the <geometry> of a geom; return False if URDF has no equivalent."""
        m, types = self._model.m, self._model.mj.mjtGeom
        kind, size = int(m.geom_type[geom]), m.geom_size[geom]
        if kind == types.mjGEOM_SPHERE:
            ElementTree.SubElement(element, "sphere", radius=f"{size[0]:.12g}")
        elif kind in (types.mjGEOM_CAPSULE, types.mjGEOM_CYLINDER):
            tag = "capsule" if kind == types.mjGEOM_CAPSULE else "cylinder"
            ElementTree.SubElement(element, tag, radius=f"{size[0]:.12g}", length=f"{2.0 * size[1]:.12g}")
        elif kind == types.mjGEOM_BOX:
            ElementTree.SubElement(element, "box", size=_numbers(2.0 * size))
        elif kind in (types.mjGEOM_MESH, types.mjGEOM_ELLIPSOID):
            points = self._points(geom, size)
            triangles = _hull_triangles(points)
            if triangles is None:
                self.notes.doubts(f"a mesh of {link} has no volume, and is left out")
                return False
            name = f"{plain(link)}_{geom}.stl"
            self.out.meshes[name] = triangles
            ElementTree.SubElement(element, "mesh", filename=f"meshes/{name}")
        else:
            self.notes.dropped(f"a shape of {link} that is neither sphere, capsule, cylinder, box, ellipsoid nor mesh")
            return False
        return True

    def _points(self, geom: int, size: Array) -> Array:
        m = self._model.m
        if int(m.geom_type[geom]) == self._model.mj.mjtGeom.mjGEOM_ELLIPSOID:
            i = np.arange(200) + 0.5
            z, turn = 1.0 - 2.0 * i / 200.0, np.pi * (1.0 + np.sqrt(5.0)) * i
            level = np.sqrt(1.0 - z * z)
            return np.column_stack([level * np.cos(turn), level * np.sin(turn), z]) * size
        mesh = int(m.geom_dataid[geom])
        start = int(m.mesh_vertadr[mesh])
        return np.array(m.mesh_vert[start : start + int(m.mesh_vertnum[mesh])], dtype=np.float64)

    def _imu(self) -> None:
        """Add a link for the site of gyros and accelerometers, or for a site with the name of an IMU."""
        m, kinds = self._model.m, self._model.mj.mjtSensor
        inertial = (int(kinds.mjSENS_GYRO), int(kinds.mjSENS_ACCELEROMETER))
        sites = [int(m.sensor_objid[i]) for i in range(m.nsensor) if int(m.sensor_type[i]) in inertial]
        sites += [i for i in range(m.nsite) if is_imu(self._model.name("site", i))]
        for site in sites:
            body = int(m.site_bodyid[site])
            if body not in self.anchor:
                continue
            name, taken = self._model.name("site", site), {e.get("name") for e in self.out.urdf.findall("link")}
            name = f"{name}_site" if name in taken else name
            ElementTree.SubElement(self.out.urdf, "link", name=name)
            place = _shift(-self.anchor[body]) * _pose(m.site_pos[site], m.site_quat[site])
            self._joint(f"{name}_fixed", "fixed", self._model.name("body", body), name, place)
            self.out.imu = name
            return

    def _gears(self) -> None:
        """Weld the rotors of gears; the joints that they drive have their actuators."""
        gears = self._model.gears
        for rotor in gears.rotors:
            name = self._model.name("joint", rotor)
            self.out.locked[name] = 0.0
            if name in self.out.passive:
                self.out.passive.remove(name)
        for joint, ratios in gears.driven.items():
            rotors = some([f"{self._model.name('joint', rotor)} ({turns:.4g})" for rotor, turns in ratios.items()])
            self.notes.found(
                f"gear between {self._model.name('joint', joint)} and the rotors {rotors}: the joint has the torque, "
                "inertia, damping and friction of its rotors, times the ratio in parentheses or its square. The rotors "
                "are welded"
            )

    def _weld_followers(self, couplings: dict[int, int]) -> None:
        """Weld the joints that equalities couple to others, where MuJoCo holds them in the standing posture.

        Args:
            couplings: Joint to its equality.
        """
        m, slide = self._model.m, int(self._model.mj.mjtJoint.mjJNT_SLIDE)

        def angle(joint: int, remaining: dict[int, int]) -> float:
            """Return the position of a joint: of its coupling, of the keyframe, or the one nearest to 0."""
            place = int(m.jnt_qposadr[joint])
            equality = remaining.pop(joint, -1)
            if equality >= 0:
                leader = int(m.eq_obj2id[equality])
                moved = angle(leader, remaining) - float(m.qpos0[m.jnt_qposadr[leader]]) if leader >= 0 else 0.0
                return float(m.qpos0[place] + np.polynomial.polynomial.polyval(moved, m.eq_data[equality, :5]))
            if self._model.name("joint", joint) in self.out.locked:
                return self.out.locked[self._model.name("joint", joint)]
            if self.standing >= 0:
                return float(m.key_qpos[self.standing, place])
            return float(np.clip(0.0, *m.jnt_range[joint])) if m.jnt_limited[joint] else 0.0

        for joint, i in couplings.items():
            name, equality = self._model.name("joint", joint), self._model.name("equality", i)
            if int(m.jnt_bodyid[joint]) not in self.anchor:
                self.notes.dropped(f"equality {equality!r}: it constrains a body outside the robot")
                continue
            self.out.locked[name] = angle(joint, dict(couplings))
            if name in self.out.passive:
                self.out.passive.remove(name)
            unit = "m" if int(m.jnt_type[joint]) == slide else "rad"
            self.notes.dropped(
                f"coupling {equality!r} of joints: {name} is welded at {self.out.locked[name]:.4g} {unit}"
            )

    def _loops(self) -> None:
        m, kinds = self._model.m, self._model.mj.mjtEq
        couplings: dict[int, int] = {}
        for i in range(m.neq):
            kind, name = int(m.eq_type[i]), self._model.name("equality", i)
            if not m.eq_active0[i]:
                self.notes.dropped(f"equality {name!r}: it is not active")
                continue
            if i in self._model.gears.couplings:
                continue
            if kind == int(kinds.mjEQ_JOINT):
                couplings[int(m.eq_obj1id[i])] = i
                continue
            if kind not in (int(kinds.mjEQ_CONNECT), int(kinds.mjEQ_WELD)):
                self.notes.dropped(f"equality {name!r}: unsupported type; connect, weld and joint are supported")
                continue
            ends = self._ends(i, kind == int(kinds.mjEQ_WELD))
            if ends is None:
                self.notes.dropped(f"equality {name!r}: it constrains a body outside the robot")
                continue
            entry: dict[str, Any] = {"type": "weld" if kind == int(kinds.mjEQ_WELD) else "connect"}
            for k, (body, pose) in enumerate(ends, start=1):
                place = _shift(-self.anchor[body]) * pose
                entry[f"frame{k}"] = self._model.name("body", body)
                entry[f"placement{k}"] = {
                    "xyz": place.translation.tolist(),
                    "rpy": pin.rpy.matrixToRpy(place.rotation).tolist(),
                }
            self.out.loops[plain(name)] = entry
        self._weld_followers(couplings)
        if self.out.loops:
            names = list(self.out.loops)
            self.notes.found(f"{len(names)} closed chains: {some(names)}; they are `loops` in robot.yaml")

    def _ends(self, i: int, weld: bool) -> list[tuple[int, pin.SE3]] | None:
        """Return the two bodies that an equality connects, and the pose in each; None if a body is not of the robot."""
        m = self._model.m
        first, second = int(m.eq_obj1id[i]), int(m.eq_obj2id[i])
        if int(m.eq_objtype[i]) == int(self._model.mj.mjtObj.mjOBJ_SITE):
            places = [_pose(m.site_pos[s], m.site_quat[s]) for s in (first, second)]
            first, second = (int(m.site_bodyid[s]) for s in (first, second))
        elif weld:
            # eq_data contains the anchor in body 2, then the pose of body 2 in body 1.
            relative = _pose(m.eq_data[i, 3:6], m.eq_data[i, 6:10])
            anchor = _shift(m.eq_data[i, 0:3])
            places = [relative * anchor, anchor]
        else:
            places = [_shift(m.eq_data[i, 0:3]), _shift(m.eq_data[i, 3:6])]
        if first not in self.anchor or second not in self.anchor:
            return None
        return [(first, places[0]), (second, places[1])]

    def _postures(self) -> None:
        m = self._model.m
        for k in range(m.nkey):
            angles = {}
            for body in self._model.bodies:
                for joint in self._model.joints(body):
                    if int(m.jnt_type[joint]) in self._model.simple and joint not in self.base_joints:
                        angles[self._model.name("joint", joint)] = float(m.key_qpos[k, m.jnt_qposadr[joint]])
            name = plain(self._model.name("key", k))
            self.out.postures[name] = angles
            base = self._model.attitude(k) @ self.upright.T
            yaw = np.arctan2(base[1, 0], base[0, 0])
            self.out.attitudes[name] = pin.rpy.rpyToMatrix(0.0, 0.0, -float(yaw)) @ base

    def _world(self) -> None:
        """Read gravity, and note all other forces of the world on the robot."""
        m = self._model.m
        x, y, z = (float(value) for value in m.opt.gravity)
        if m.opt.disableflags & int(self._model.mj.mjtDisableBit.mjDSBL_GRAVITY):
            x = y = z = 0.0
        if x or y or z > 0.0:
            self.notes.dropped(f"gravity of [{x:g}, {y:g}, {z:g}] m/s^2: gravity points down instead")
        self.out.gravity = float(np.hypot(np.hypot(x, y), z))
        if m.opt.density or m.opt.viscosity:
            self.notes.dropped("density and viscosity of the medium")
        compensated = [self._model.name("body", body) for body in self._model.bodies if m.body_gravcomp[body]]
        if compensated:
            self.notes.dropped(f"gravcomp of {some(compensated)}: not compensated, all bodies have their full weight")

    def _left_out(self) -> None:
        m = self._model.m
        base = [j for j in self.base_joints if int(m.jnt_type[j]) in self._model.simple] + [
            j for j in self.base_joints if int(m.jnt_type[j]) == int(self._model.mj.mjtJoint.mjJNT_FREE)
        ]
        affected = [
            self._model.name("joint", j)
            for j in base
            if any(values[int(m.jnt_dofadr[j])] for values in (m.dof_armature, m.dof_damping, m.dof_frictionloss))
        ]
        if affected:
            self.notes.dropped(f"armature, damping and friction of the base's joints {some(affected)}: the base floats")
        nonlinear = [
            self._model.name("joint", j)
            for body in self._model.bodies
            for j in self._model.joints(body)
            if np.any(getattr(m, "dof_dampingpoly", np.zeros((m.nv, 1)))[int(m.jnt_dofadr[j])])
        ]
        if nonlinear:
            self.notes.dropped(
                f"damping of higher order of joints {some(nonlinear)}: only the linear part is simulated"
            )
        tendons = [self._model.name("tendon", i) for i in range(m.ntendon) if i not in self._model.gears.tendons]
        if tendons:
            self.notes.dropped(f"{len(tendons)} tendons: {some(tendons)}")
        if m.nflex or m.nskin:
            self.notes.dropped("soft bodies: flexes and skins")


def _hull_triangles(points: Array) -> Array | None:
    """Return the outward triangles (T, 3, 3) of a mesh's convex hull; None for a mesh without volume."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError):
        return None
    triangles = points[hull.simplices]
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    inward = np.einsum("ij,ij->i", normals, hull.equations[:, :3]) < 0.0
    triangles[inward] = triangles[inward][:, ::-1]
    return np.asarray(triangles)


def stl(triangles: Array) -> bytes:
    """Encode triangles (T, 3, 3) as a binary STL."""
    row = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("unused", "<u2")])
    rows = np.zeros(len(triangles), dtype=row)
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    rows["normal"] = normals / np.maximum(np.linalg.norm(normals, axis=1), 1e-30)[:, None]
    rows["corners"] = triangles
    return bytes(80) + len(triangles).to_bytes(4, "little") + rows.tobytes()
