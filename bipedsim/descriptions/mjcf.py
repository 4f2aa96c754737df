"""Convert MJCF to URDF with MuJoCo's own compiler, which resolves defaults, includes, angles and frames."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from bipedsim.descriptions.description import STANDING, Description, is_imu, plain
from bipedsim.descriptions.notes import Notes
from bipedsim.errors import ConfigError, install, some
from bipedsim.numerics import Array

FAR = 10.0
"""Position limit of sliding joints without a limit [m]."""
ENDLESS = np.pi * 100.0
"""Spring reference angle from which the reference is taken as an exporter's placeholder [rad]."""
LEVEL, STEEP = 1e-6, 0.25 * np.pi
"""Tilt of a root body below which it is upright, and from which its z axis is not the intended vertical [rad]."""


def read_mjcf(file: Path, folder: Path, notes: Notes) -> Description:
    """Read an MJCF file and convert it to a description with a URDF.

    The robot is the tree below the world with the most joints. Joint angles keep the zeros of the file.

    Raises:
        ConfigError: MuJoCo is not installed or cannot compile the file, or the file contains no bodies.
    """
    return _MjcfImport(file, folder, notes).description()


def _compiled(file: Path, notes: Notes) -> Any:
    try:
        import mujoco
    except ImportError as error:
        raise ConfigError(f"MJCF needs MuJoCo's compiler: {install('bipedsim[mujoco]')} ({error})", file) from error
    refused = (ValueError, RuntimeError, mujoco.FatalError)
    try:
        return mujoco.MjSpec.from_file(str(file)).compile()
    except refused:
        # The file may refer to missing files, or to shapes of a scene that includes it.
        pass
    try:
        spec = mujoco.MjSpec.from_file(str(file))
        _leave_out_missing(spec, file, notes)
        return spec.compile()
    except refused as error:
        raise ConfigError(f"MuJoCo cannot read this file: {error}", file) from error


def _leave_out_missing(spec: Any, file: Path, notes: Notes) -> None:
    """Delete elements of a specification that refer to missing files, shapes or bodies."""
    base = Path(spec.modelfiledir or file.parent)
    geoms, bodies = {geom.name for geom in spec.geoms}, {body.name for body in spec.bodies}
    dangling = [pair for pair in spec.pairs if not {pair.geomname1, pair.geomname2} <= geoms]
    if dangling:
        names = sorted({name for pair in dangling for name in (pair.geomname1, pair.geomname2)} - geoms)
        notes.doubts(
            f"{len(dangling)} contact pairs name missing shapes: {some(names)}. These pairs and their friction are "
            "left out. To keep them, import the scene that includes the file"
        )
    dangling += [pair for pair in spec.excludes if not {pair.bodyname1, pair.bodyname2} <= bodies]
    for pair in dangling:
        spec.delete(pair)

    def missing(asset: Any, folder: str) -> bool:
        return bool(asset.file) and not (base / folder / asset.file).is_file() and not (base / asset.file).is_file()

    missing_meshes = {mesh.name or Path(mesh.file).stem for mesh in spec.meshes if missing(mesh, spec.meshdir)}
    if missing_meshes:
        users = sorted({geom.parent.name for geom in spec.geoms if geom.meshname in missing_meshes})
        for geom in [geom for geom in spec.geoms if geom.meshname in missing_meshes]:
            spec.delete(geom)
        for mesh in [mesh for mesh in spec.meshes if (mesh.name or Path(mesh.file).stem) in missing_meshes]:
            spec.delete(mesh)
        notes.doubts(f"{len(missing_meshes)} meshes do not exist, so {some(users)} lack them")
    for kind, folder in ((spec.textures, spec.texturedir), (spec.hfields, spec.meshdir), (spec.skins, spec.meshdir)):
        for asset in [asset for asset in kind if missing(asset, folder)]:
            for geom in [geom for geom in spec.geoms if geom.hfieldname == asset.name and asset.name]:
                spec.delete(geom)
            spec.delete(asset)


def _pose(pos: Array, quat: Array) -> pin.SE3:
    w, x, y, z = quat / np.linalg.norm(quat)
    return pin.SE3(pin.Quaternion(w, x, y, z).toRotationMatrix(), np.array(pos, dtype=np.float64))


def _shift(point: Array) -> pin.SE3:
    return pin.SE3(np.eye(3), np.array(point, dtype=np.float64))


def _numbers(values: Array) -> str:
    return " ".join(f"{0.0 if abs(v) < 1e-15 else v:.12g}" for v in values)


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
        self.m = m = _compiled(file, notes)
        import mujoco

        self.mj = mujoco
        self.notes = notes
        name = plain(_name_of_model(m) or file.stem)
        urdf = ElementTree.Element("robot", name=name)
        self.out = Description(name, file, urdf, folder / f"{name}.urdf", True, notes)
        self.bodies = self._robot(file)
        # Body to its URDF link in the frame of the body; the link is at the anchor of the last joint.
        self.anchor: dict[int, Array] = {}
        self.base_joints: set[int] = set()
        # Actuators of each hinge or slide joint, with their gear ratios.
        self.actuators: dict[int, list[tuple[int, float]]] = {}
        for i in range(m.nu):
            joint = self._driven_joint(i)
            if joint >= 0 and int(m.jnt_type[joint]) in self._simple:
                self.actuators.setdefault(joint, []).append((i, abs(float(m.actuator_gear[i, 0]))))
        # Shapes that a contact pair allows to touch the world, and the pair.
        self.paired = {geom: i for i in range(m.npair) for geom in self._against_world(i)}
        self.floors = [g for g in range(m.ngeom) if self._is_static(g) and (m.geom_contype[g] or m.geom_conaffinity[g])]

    def description(self) -> Description:
        """Convert the file and return the description."""
        self._base_link()
        for body in self.bodies:
            self._add_body(body)
        self._imu()
        self._drives()
        self._loops()
        self._postures()
        self._world()
        self._left_out()
        if self.out.sole_friction and not self.floors and not self.paired:
            self.notes.guessed(
                "friction of feet: from their own shapes, because the file has no floor. With a floor, MuJoCo uses the "
                "larger of both values"
            )
        return self.out

    @property
    def _simple(self) -> tuple[int, int]:
        """Types of joints with one coordinate."""
        return int(self.mj.mjtJoint.mjJNT_HINGE), int(self.mj.mjtJoint.mjJNT_SLIDE)

    def _driven_joint(self, actuator: int) -> int:
        """Return the joint that an actuator drives, or -1."""
        transmission = self.mj.mjtTrn
        kinds = (int(transmission.mjTRN_JOINT), int(transmission.mjTRN_JOINTINPARENT))
        return int(self.m.actuator_trnid[actuator, 0]) if int(self.m.actuator_trntype[actuator]) in kinds else -1

    def _is_static(self, geom: int) -> bool:
        """Return whether a shape belongs to the world and not to the robot."""
        body = int(self.m.geom_bodyid[geom])
        return int(self.m.body_weldid[body]) == 0 and body not in self.bodies

    def _against_world(self, pair: int) -> list[int]:
        """Return the shape of a contact pair that can touch the world through it, if any."""
        ends = int(self.m.pair_geom1[pair]), int(self.m.pair_geom2[pair])
        return [geom for geom, other in (ends, ends[::-1]) if self._is_static(other) and not self._is_static(geom)]

    def _friction(self, geom: int) -> float:
        """Return the coefficient of sliding friction between a shape and the floor, by MuJoCo's rules.

        A contact pair defines its own value. Otherwise the shape of higher priority decides, or the larger value for
        equal priorities. Contacts of dimension one are frictionless. A file without floor uses the shape's own value.
        """
        m = self.m
        if geom in self.paired:
            pair = self.paired[geom]
            return 0.0 if m.pair_dim[pair] < 3 else float(m.pair_friction[pair, :2].min())
        planes = (int(self.mj.mjtGeom.mjGEOM_PLANE), int(self.mj.mjtGeom.mjGEOM_HFIELD))
        reachable = [
            floor
            for floor in self.floors
            if m.geom_contype[geom] & m.geom_conaffinity[floor] or m.geom_contype[floor] & m.geom_conaffinity[geom]
        ]
        floors = [floor for floor in reachable if int(m.geom_type[floor]) in planes] or reachable
        candidates = []
        for floor in floors or [geom]:
            order = int(m.geom_priority[geom]) - int(m.geom_priority[floor])
            deciding = [geom] if order > 0 else [floor] if order < 0 else [geom, floor]
            dimensions = max(int(m.geom_condim[deciding_geom]) for deciding_geom in deciding)
            candidates.append(
                0.0 if dimensions < 3 else max(float(m.geom_friction[deciding_geom, 0]) for deciding_geom in deciding)
            )
        return min(candidates)

    def _attitude(self, key: int = -1) -> Array:
        """Return the rotation (3, 3) of the root body in the world, in a keyframe or with all joints at 0."""
        state = self.mj.MjData(self.m)
        if key >= 0:
            self.mj.mj_resetDataKeyframe(self.m, state, key)
        self.mj.mj_kinematics(self.m, state)
        return np.array(state.xmat[self.bodies[0]]).reshape(3, 3)

    def _base_link(self) -> None:
        """Add an upright link above a root body whose axes are tilted in the standing posture.

        The root of the URDF must be upright, because controllers and monitors measure its tilt. A standing keyframe is
        used if it rotates the root body by more than 45 degrees from its pose in the tree.
        """
        at_zero = self._attitude()
        keys = {plain(self._name("key", k)): k for k in range(self.m.nkey)}
        standing = next((keys[name] for name in STANDING if name in keys), -1)
        attitude = self._attitude(standing) if standing >= 0 else at_zero
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
        root = self._name("body", self.bodies[0])
        name = f"{root}_upright"
        ElementTree.SubElement(self.out.urdf, "link", name=name)
        self._joint(f"{name}_fixed", "fixed", name, root, _rotated(attitude))
        self.out.base = name
        self.notes.found(
            f"the root body {root!r} is rotated by {np.degrees(tilt):.3g} degrees in the standing posture; "
            f"the upright link {name!r} is the base"
        )

    def _name(self, kind: str, index: int) -> str:
        name = self.mj.mj_id2name(self.m, getattr(self.mj.mjtObj, f"mjOBJ_{kind.upper()}"), int(index))
        return str(name or f"{kind}{int(index)}")

    def _robot(self, file: Path) -> list[int]:
        """Return the bodies of the robot, parents first."""
        m = self.m
        roots: dict[int, list[int]] = {}
        for body in range(1, m.nbody):
            roots.setdefault(int(m.body_rootid[body]), []).append(body)
        if not roots:
            raise ConfigError("the model has no bodies", file)
        joints = {root: int(sum(m.body_jntnum[b] for b in bodies)) for root, bodies in roots.items()}
        chosen = max(roots, key=lambda root: joints[root])
        others = [self._name("body", root) for root in roots if root != chosen]
        if others:
            self.notes.dropped(
                f"other bodies than the robot: {some(others)}. Define free objects in a scenario (docs/objects.md)"
            )
        return roots[chosen]

    def _joints(self, body: int) -> list[int]:
        first = int(self.m.body_jntadr[body])
        return [] if first < 0 else list(range(first, first + int(self.m.body_jntnum[body])))

    def _add_body(self, body: int) -> None:
        m, name = self.m, self._name("body", body)
        joints, root = self._joints(body), body == self.bodies[0]
        if root:
            self._mark_base_joints(joints)
        pose = _pose(m.body_pos[body], m.body_quat[body])
        parent = int(m.body_parentid[body])
        if not root:
            pose = _shift(-self.anchor[parent]) * pose
            previous, at = self._name("body", parent), np.zeros(3)
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

    def _mark_base_joints(self, joints: list[int]) -> None:
        """Mark all joints of the root body as parts of the floating base, and note the change."""
        kinds = [int(self.m.jnt_type[j]) for j in joints]
        slide, free = int(self.mj.mjtJoint.mjJNT_SLIDE), int(self.mj.mjtJoint.mjJNT_FREE)
        if free in kinds:
            self.base_joints = set(joints)
        elif kinds.count(slide) >= 2:
            self.base_joints = set(joints)
            names = [self._name("joint", j) for j in joints]
            self.notes.found(f"joints {some(names)} of the base are replaced by a floating base")
        elif joints:
            names = [self._name("joint", j) for j in joints]
            self.notes.dropped(f"joints {some(names)} between world and robot are replaced by a floating base")
            self.base_joints = set(joints)
        else:
            self.notes.guessed("root: free_flyer; the file fixes the base to the world")

    def _steps(self, joints: list[int]) -> list[tuple[int, str, Array, str]]:
        """Return joint, kind, axis and name of the URDF joints that replace those of one body."""
        types, steps = self.mj.mjtJoint, []
        for joint in joints:
            kind, name = int(self.m.jnt_type[joint]), self._name("joint", joint)
            axis = np.array(self.m.jnt_axis[joint], dtype=np.float64)
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
        m = self.m
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
            float(dofs[dof]) + sum(gear**2 * float(of[i]) for i, gear in self.actuators.get(joint, ()))
            for dofs, of in (
                (m.dof_armature, getattr(m, "actuator_armature", np.zeros(m.nu))),
                (m.dof_damping, getattr(m, "actuator_damping", np.zeros(m.nu))),
            )
        )
        friction = float(m.dof_frictionloss[dof])
        if damping or friction:
            ElementTree.SubElement(element, "dynamics", damping=repr(damping), friction=repr(friction))
        # MJCF has defaults for these values, so 0 is also a stated value.
        self.out.armature[name], self.out.damping[name], self.out.friction[name] = armature, damping, friction

    def _link(self, body: int, name: str) -> None:
        m, back = self.m, _shift(-self.anchor[body])
        link = ElementTree.SubElement(self.out.urdf, "link", name=name)
        if m.body_mass[body] > 0.0:
            inertial = ElementTree.SubElement(link, "inertial")
            _origin(inertial, back * _pose(m.body_ipos[body], m.body_iquat[body]))
            ElementTree.SubElement(inertial, "mass", value=f"{m.body_mass[body]:.12g}")
            xx, yy, zz = (f"{value:.12g}" for value in m.body_inertia[body])
            ElementTree.SubElement(inertial, "inertia", ixx=xx, iyy=yy, izz=zz, ixy="0", ixz="0", iyz="0")
        first, count = int(m.body_geomadr[body]), int(m.body_geomnum[body])
        for geom in range(first, first + count):
            touches = bool(m.geom_contype[geom] or m.geom_conaffinity[geom]) or geom in self.paired
            element = ElementTree.SubElement(link, "collision" if touches else "visual")
            _origin(element, back * _pose(m.geom_pos[geom], m.geom_quat[geom]))
            if not self._geometry(ElementTree.SubElement(element, "geometry"), geom, name):
                link.remove(element)
            elif touches:
                self.out.sole_friction.setdefault(name, []).append(self._friction(geom))

    def _geometry(self, element: ElementTree.Element, geom: int, link: str) -> bool:
        """Fill the <geometry> of a geom; return False if URDF has no equivalent."""
        m, types = self.m, self.mj.mjtGeom
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
        m = self.m
        if int(m.geom_type[geom]) == self.mj.mjtGeom.mjGEOM_ELLIPSOID:
            i = np.arange(200) + 0.5
            z, turn = 1.0 - 2.0 * i / 200.0, np.pi * (1.0 + np.sqrt(5.0)) * i
            level = np.sqrt(1.0 - z * z)
            return np.column_stack([level * np.cos(turn), level * np.sin(turn), z]) * size
        mesh = int(m.geom_dataid[geom])
        start = int(m.mesh_vertadr[mesh])
        return np.array(m.mesh_vert[start : start + int(m.mesh_vertnum[mesh])], dtype=np.float64)

    def _imu(self) -> None:
        """Add a link for the site of gyros and accelerometers, or for a site with the name of an IMU."""
        m, kinds = self.m, self.mj.mjtSensor
        inertial = (int(kinds.mjSENS_GYRO), int(kinds.mjSENS_ACCELEROMETER))
        sites = [int(m.sensor_objid[i]) for i in range(m.nsensor) if int(m.sensor_type[i]) in inertial]
        sites += [i for i in range(m.nsite) if is_imu(self._name("site", i))]
        for site in sites:
            body = int(m.site_bodyid[site])
            if body not in self.anchor:
                continue
            name, taken = self._name("site", site), {e.get("name") for e in self.out.urdf.findall("link")}
            name = f"{name}_site" if name in taken else name
            ElementTree.SubElement(self.out.urdf, "link", name=name)
            place = _shift(-self.anchor[body]) * _pose(m.site_pos[site], m.site_quat[site])
            self._joint(f"{name}_fixed", "fixed", self._name("body", body), name, place)
            self.out.imu = name
            return

    def _drives(self) -> None:
        """Read limits and gains of the actuators; joints without actuator become passive, or welded if on a spring."""
        m = self.m
        self._note_other_actuators()
        limits: dict[int, float] = {}
        for joint, actuators in self.actuators.items():
            limits[joint] = sum(self._effort(i, gear) for i, gear in actuators)
            gains = [
                (gear**2 * -float(m.actuator_biasprm[i, 1]), gear**2 * -float(m.actuator_biasprm[i, 2]))
                for i, gear in actuators
                if self._is_servo(i)
            ]
            if gains:
                self.out.stiffness[self._name("joint", joint)] = (sum(k for k, _ in gains), sum(d for _, d in gains))
        slow = [
            self._name("actuator", i)
            for i in range(m.nu)
            if int(m.actuator_dyntype[i]) != int(self.mj.mjtDyn.mjDYN_NONE)
        ]
        if slow:
            self.notes.dropped(f"dynamics of actuators {some(slow)}: their forces follow commands without delay")
        robot_joints = [j for body in self.bodies for j in self._joints(body) if j not in self.base_joints]
        passive, welded = [], []
        for joint in robot_joints:
            if int(m.jnt_type[joint]) == int(self.mj.mjtJoint.mjJNT_BALL):
                continue
            name = self._name("joint", joint)
            self._write_limit(joint, limits.get(joint))
            stiffness = float(np.asarray(m.jnt_stiffness[joint]).flat[0])
            if not self.actuators or joint in self.actuators:
                if stiffness > 0.0:
                    self.notes.dropped(f"spring of joint {name!r}, {stiffness:.4g} N.m/rad, in addition to its drive")
            elif stiffness > 0.0:
                reference = float(m.qpos_spring[m.jnt_qposadr[joint]])
                self.out.locked[name] = reference if abs(reference) < ENDLESS else 0.0
                welded.append(name)
            else:
                self.out.passive.append(name)
                passive.append(name)
        if welded:
            self.notes.dropped(
                f"springs of {some(welded)}: these joints have no drive and are welded at their rest position"
            )
        if passive and not self._in_loops():
            self.notes.doubts(f"{some(passive)} have no drive: they are passive joints")

    def _note_other_actuators(self) -> None:
        """Note actuators that drive no hinge or slide joint."""
        transmission = self.mj.mjtTrn
        others: dict[str, list[str]] = {}
        for i in range(self.m.nu):
            joint = self._driven_joint(i)
            if joint < 0:
                tendon = int(self.m.actuator_trntype[i]) == int(transmission.mjTRN_TENDON)
                place = "on tendons" if tendon else "not on joints"
            elif joint not in self.actuators:
                place = f"of ball joint {self._name('joint', joint)!r}, whose hinges are passive"
            else:
                continue
            others.setdefault(place, []).append(self._name("actuator", i))
        for place, names in others.items():
            self.notes.dropped(f"actuators {place}: {some(names)}")

    def _write_limit(self, joint: int, effort: float | None) -> None:
        """Write the <limit> of a joint; ``effort`` is the largest force of its actuators."""
        m, name = self.m, self._name("joint", joint)
        element = next(e for e in self.out.urdf.findall("joint") if e.get("name") == name)
        if m.jnt_actfrclimited[joint]:
            largest = self._largest(m.jnt_actfrcrange[joint], f"joint {name!r}")
            effort = largest if effort is None else min(effort, largest)
        limit = element.find("limit")
        if limit is None:
            limit = ElementTree.SubElement(element, "limit")
        # URDF requires effort and velocity; 0 means no limit.
        limit.set("effort", repr(effort) if effort is not None and np.isfinite(effort) else "0")
        limit.set("velocity", "0")
        if element.get("type") == "prismatic" and limit.get("lower") is None:
            limit.set("lower", f"{-FAR:g}")
            limit.set("upper", f"{FAR:g}")
            self.notes.guessed(f"limits of the unlimited joint {name!r}: {FAR:g} m in both directions")

    def _is_servo(self, actuator: int) -> bool:
        """Return whether an actuator is a position drive."""
        affine = int(self.m.actuator_biastype[actuator]) == int(self.mj.mjtBias.mjBIAS_AFFINE)
        return affine and float(self.m.actuator_biasprm[actuator, 1]) < 0.0

    def _effort(self, actuator: int, gear: float) -> float:
        """Return the largest force of an actuator on its joint [N.m or N]; inf without a limit."""
        m, name = self.m, f"actuator {self._name('actuator', actuator)!r}"
        largest = np.inf
        if m.actuator_forcelimited[actuator]:
            largest = self._largest(m.actuator_forcerange[actuator], name)
        is_motor = int(m.actuator_biastype[actuator]) == int(self.mj.mjtBias.mjBIAS_NONE)
        if is_motor and m.actuator_ctrllimited[actuator]:
            gain = abs(float(m.actuator_gainprm[actuator, 0]))
            largest = min(largest, gain * self._largest(m.actuator_ctrlrange[actuator], name))
        return gear * largest

    def _largest(self, limits: Array, name: str) -> float:
        """Return the larger of two absolute limits; robot.yaml has a single limit for both signs."""
        low, high = (abs(float(value)) for value in limits)
        if low != high:
            self.notes.dropped(
                f"lower limit of {name}, [{limits[0]:g}, {limits[1]:g}]: both signs have {max(low, high):g}"
            )
        return max(low, high)

    def _in_loops(self) -> bool:
        kinds = self.mj.mjtEq
        pairs = zip(self.m.eq_type, self.m.eq_active0, strict=True)
        return any(on and int(t) in (int(kinds.mjEQ_CONNECT), int(kinds.mjEQ_WELD)) for t, on in pairs)

    def _loops(self) -> None:
        m, kinds = self.m, self.mj.mjtEq
        for i in range(m.neq):
            kind, name = int(m.eq_type[i]), self._name("equality", i)
            if not m.eq_active0[i]:
                self.notes.dropped(f"equality {name!r}: it is not active")
                continue
            if kind == int(kinds.mjEQ_JOINT):
                follower = self._name("joint", int(m.eq_obj1id[i]))
                self.out.locked[follower] = float(m.eq_data[i, 0])
                if follower in self.out.passive:
                    self.out.passive.remove(follower)
                self.notes.dropped(f"coupling {name!r} of joints: {follower} is welded at {m.eq_data[i, 0]:.4g} rad")
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
                entry[f"frame{k}"] = self._name("body", body)
                entry[f"placement{k}"] = {
                    "xyz": [round(float(v), 9) for v in place.translation],
                    "rpy": [round(float(v), 9) for v in pin.rpy.matrixToRpy(place.rotation)],
                }
            self.out.loops[plain(name)] = entry
        if self.out.loops:
            names = list(self.out.loops)
            self.notes.found(f"{len(names)} closed chains: {some(names)}; they are `loops` in robot.yaml")

    def _ends(self, i: int, weld: bool) -> list[tuple[int, pin.SE3]] | None:
        """Return the two bodies that an equality connects, and the pose in each; None if a body is not of the robot."""
        m = self.m
        first, second = int(m.eq_obj1id[i]), int(m.eq_obj2id[i])
        if int(m.eq_objtype[i]) == int(self.mj.mjtObj.mjOBJ_SITE):
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
        m = self.m
        for k in range(m.nkey):
            angles = {}
            for body in self.bodies:
                for joint in self._joints(body):
                    if int(m.jnt_type[joint]) in self._simple and joint not in self.base_joints:
                        angles[self._name("joint", joint)] = float(m.key_qpos[k, m.jnt_qposadr[joint]])
            name = plain(self._name("key", k))
            self.out.postures[name] = angles
            base = self._attitude(k) @ self.upright.T
            yaw = np.arctan2(base[1, 0], base[0, 0])
            self.out.attitudes[name] = pin.rpy.rpyToMatrix(0.0, 0.0, -float(yaw)) @ base

    def _world(self) -> None:
        """Read gravity, and note all other forces of the world on the robot."""
        m = self.m
        x, y, z = (float(value) for value in m.opt.gravity)
        if m.opt.disableflags & int(self.mj.mjtDisableBit.mjDSBL_GRAVITY):
            x = y = z = 0.0
        if x or y or z > 0.0:
            self.notes.dropped(f"gravity of [{x:g}, {y:g}, {z:g}] m/s^2: gravity points down instead")
        self.out.gravity = float(np.hypot(np.hypot(x, y), z))
        if m.opt.density or m.opt.viscosity:
            self.notes.dropped("density and viscosity of the medium")
        compensated = [self._name("body", body) for body in self.bodies if m.body_gravcomp[body]]
        if compensated:
            self.notes.dropped(f"gravcomp of {some(compensated)}: not compensated, all bodies have their full weight")

    def _left_out(self) -> None:
        m = self.m
        base = [j for j in self.base_joints if int(m.jnt_type[j]) in self._simple] + [
            j for j in self.base_joints if int(m.jnt_type[j]) == int(self.mj.mjtJoint.mjJNT_FREE)
        ]
        affected = [
            self._name("joint", j)
            for j in base
            if any(values[int(m.jnt_dofadr[j])] for values in (m.dof_armature, m.dof_damping, m.dof_frictionloss))
        ]
        if affected:
            self.notes.dropped(f"armature, damping and friction of the base's joints {some(affected)}: the base floats")
        nonlinear = [
            self._name("joint", j)
            for body in self.bodies
            for j in self._joints(body)
            if np.any(getattr(m, "dof_dampingpoly", np.zeros((m.nv, 1)))[int(m.jnt_dofadr[j])])
        ]
        if nonlinear:
            self.notes.dropped(
                f"damping of higher order of joints {some(nonlinear)}: only the linear part is simulated"
            )
        if m.ntendon:
            self.notes.dropped(f"{m.ntendon} tendons: {some([self._name('tendon', i) for i in range(m.ntendon)])}")
        if m.nflex or m.nskin:
            self.notes.dropped("soft bodies: flexes and skins")


def _name_of_model(m: Any) -> str:
    return bytes(m.names).split(b"\0", 1)[0].decode(errors="replace")


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
