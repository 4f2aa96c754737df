"""Model of an MJCF file as MuJoCo's own compiler sees it: names, the robot's bodies, actuators, friction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PureWindowsPath
from typing import Any, NamedTuple

import numpy as np

from bipedsim.config import read_xml, together
from bipedsim.descriptions.mjcf_gears import find_gears
from bipedsim.descriptions.notes import Notes
from bipedsim.errors import ConfigError, install, some
from bipedsim.model import mesh_path
from bipedsim.numerics import Array

_SLIDING = 3
"""Dimension from which on a contact of MuJoCo has friction."""
NEGLIGIBLE = 1e-3
"""Mass of a body between world and robot that counts as none, as a fraction of the total mass."""


class MissingShape(NamedTuple):
    """Shape that a model lacks because the file of its mesh does not exist.

    Attributes:
        name: Name of the shape.
        body: Index of its body in the model.
        collides: Whether anything could touch it.
        mesh: Name of the missing file.
    """

    name: str
    body: int
    collides: bool
    mesh: str


def compiled_mjcf(file: Path, notes: Notes | None = None) -> tuple[Any, Any, list[MissingShape]]:
    """Compile an MJCF file without textures and, if necessary, without its missing meshes.

    A shape without a name is called ``geom<i>``, where i counts the shapes of the file. The names are therefore the
    same with and without the files of the meshes.

    Args:
        file: The file.
        notes: Receives what is left out. Without it, missing height fields are errors.

    Returns:
        The module mujoco, its model, and the shapes of missing meshes.

    Raises:
        ConfigError: MuJoCo is not installed, or cannot compile the file.
    """
    try:
        import mujoco
    except ImportError as error:
        raise ConfigError(f"MJCF needs MuJoCo's compiler: {install('bipedsim[mujoco]')} ({error})", file) from error
    refused = (ValueError, RuntimeError, mujoco.FatalError)
    parts = dict(_parts(file, "", set()))
    try:
        return mujoco, _compile(_read(mujoco, file, parts), file, parts), []
    except refused:
        # The file may refer to missing files, or to shapes of a scene that includes it.
        pass
    missing: list[str] = []
    try:
        spec = _read(mujoco, file, parts)
        folders = list(dict.fromkeys(path.parent for path, _ in parts.values()))
        shapes = _leave_out_missing(spec, file, folders, notes, missing)
        model = _compile(spec, file, parts)
        return mujoco, model, [MissingShape(name, body.id, touch, mesh) for name, body, touch, mesh in shapes]
    except refused as error:
        lacking = f"; missing meshes: {some(missing)}" if missing else ""
        raise ConfigError(f"MuJoCo cannot read this file: {error}{lacking}", file) from error


def _compile(spec: Any, file: Path, parts: Mapping[str, tuple[Path, str]]) -> Any:
    """Compile the specification of a file, and check the sizes of its keyframes.

    MuJoCo 4 completes a keyframe that is too short, so that its angles belong to other joints than before a change of
    the file. Files that attach others rely on this.

    Raises:
        ConfigError: A keyframe has another number of positions than the model.
    """
    sizes = {key.name: len(key.qpos) for key in spec.keys}
    model = spec.compile()
    if not any("<attach" in text for _, text in parts.values()):
        together(
            [
                ConfigError(
                    f"the keyframe has {size} numbers, and the model {model.nq} positions. Complete or delete it",
                    f"{file}: key {name!r}: qpos",
                )
                for name, size in sizes.items()
                if size not in (0, model.nq)
            ]
        )
    return model


def _parts(file: Path, name: str, seen: set[Path]) -> Iterator[tuple[str, tuple[Path, str]]]:
    """Yield the name, path and text of an MJCF file and of all existing files that it includes or attaches."""
    seen.add(file)
    root, text, _ = read_xml(file)
    yield name, (file, text)
    for element in (*root.iter("include"), *root.iterfind("asset/model")):
        inner = element.get("file", "")
        path = file.parent / inner
        if inner and path.is_file() and path not in seen:
            yield from _parts(path, inner, seen)


def mjcf_files(file: Path) -> list[Path]:
    """Return the existing files that an MJCF file includes or attaches, and those of its meshes and height fields.

    Raises:
        ConfigError: A part cannot be read.
    """
    parts = [path for path, _ in dict(_parts(file, "", set())).values()]
    roots = [read_xml(path)[0] for path in parts]
    compilers = [compiler for root in roots for compiler in root.iter("compiler")]
    below = ["", *(compiler.get(key, "") for compiler in compilers for key in ("meshdir", "assetdir"))]
    names = [element.get("file", "") for root in roots for tag in ("hfield", "mesh") for element in root.iter(tag)]
    folders = dict.fromkeys(path.parent / part for path in parts for part in below)
    assets = [folder / name for name in names if name for folder in folders]
    return list(dict.fromkeys([*parts[1:], *(path for path in assets if path.is_file())]))


def _read(mujoco: Any, file: Path, parts: dict[str, tuple[Path, str]]) -> Any:
    """Return the specification of a file; MuJoCo itself reads only UTF-8."""
    if all(path.read_bytes().decode(errors="ignore") == text for path, text in parts.values()):
        spec = mujoco.MjSpec.from_file(str(file))
    else:
        text = parts[""][1]
        spec = mujoco.MjSpec.from_string(text, {name: part.encode() for name, (_, part) in parts.items() if name})
        spec.modelfiledir = str(file.parent)
    _name_shapes(spec)
    return spec


def _name_shapes(spec: Any) -> None:
    """Name the shapes without a name by their number, with an underscore if another shape has this name."""
    taken = {geom.name for geom in spec.geoms}
    for i, geom in enumerate(spec.geoms):
        if not geom.name:
            name = f"geom{i}"
            while name in taken:
                name += "_"
            geom.name = name
            taken.add(name)


def _delete_shapes(spec: Any, missing: Mapping[str, str]) -> list[tuple[str, Any, bool, str]]:
    """Delete the shapes with meshes that are ``missing``; return them as :class:`MissingShape`, with body elements."""
    paired = {name for pair in spec.pairs for name in (pair.geomname1, pair.geomname2)}
    without = [geom for geom in spec.geoms if geom.meshname in missing]
    shapes = [
        (
            str(geom.name),
            geom.parent,
            bool(geom.contype or geom.conaffinity or geom.name in paired),
            missing[geom.meshname],
        )
        for geom in without
    ]
    for geom in without:
        spec.delete(geom)
    return shapes


def _leave_out_missing(
    spec: Any, file: Path, folders: list[Path], notes: Notes | None, missing_meshes: list[str]
) -> list[tuple[str, Any, bool, str]]:
    """Delete elements that refer to missing files, shapes or bodies; return the shapes as :func:`_delete_shapes`.

    Without ``notes``, height fields are kept, so that the compiler refuses the file.

    Meshes that MuJoCo does not find are searched as those of a URDF, in the folders of all parts of the file. The
    files of those that do not exist are appended to ``missing_meshes``.
    """
    strict, notes = notes is None, Notes() if notes is None else notes

    def found(asset: Any) -> Path | None:
        # With `strippath`, which attached files do not pass on, only the last part of a name counts.
        names = [*([] if spec.strippath else [asset.file]), PureWindowsPath(asset.file).name]
        names = [f"{prefix}{name}" for name in names for prefix in (f"{asset.compiler.meshdir}/", "")]
        paths = (mesh_path(name, folder / file.name) for folder in folders for name in names)
        return next(filter(None, paths), None)

    missing: dict[str, str] = {}
    for mesh in [mesh for mesh in spec.meshes if mesh.file]:
        path = found(mesh)
        if path is None:
            missing[mesh.name or Path(mesh.file).stem] = mesh.file
            spec.delete(mesh)
        else:
            mesh.file = str(path.absolute())
    spec.strippath = False
    shapes = _delete_shapes(spec, missing)
    missing_meshes += missing.values()
    if missing:
        users = sorted({body.name for _, body, *_ in shapes})
        notes.doubts(f"{len(missing)} meshes do not exist, so {some(users)} lack them: {some(missing_meshes)}")
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
    # Neither textures nor skins influence the motion.
    for material in spec.materials:
        material.textures = [""] * len(material.textures)
    lacking = []
    for field in [field for field in spec.hfields if field.file]:
        path = found(field)
        if path is not None:
            field.file = str(path.absolute())
        elif not strict:
            lacking.append(field)
    for geom in [geom for geom in spec.geoms if geom.hfieldname in [field.name for field in lacking]]:
        spec.delete(geom)
    for asset in (*spec.textures, *spec.skins, *lacking):
        spec.delete(asset)
    return shapes


class MjcfModel:
    """Compile an MJCF file, and answer questions about it.

    Args:
        file: The file.
        notes: Receives what the file lacks, and the bodies that are left out.

    Attributes:
        mj: The module mujoco.
        m: MuJoCo's model.
        title: Name of the model; empty without one.
        bodies: Bodies of the robot, parents first.
        base_joints: Joints between world and robot.
        actuators: Actuators of each hinge or slide joint, with their gear ratios. Those of a rotor count for the joint
            that it drives.
        gears: Gears between rotors and driven joints.
        paired: Shapes that a contact pair allows to touch the world, and the pair.
        floors: Shapes of the world that can be touched.
    """

    def __init__(self, file: Path, notes: Notes) -> None:
        self.mj, self.m, _ = compiled_mjcf(file, notes)
        m = self.m
        self.title = bytes(m.names).split(b"\0", 1)[0].decode(errors="replace")
        self._file = file
        self.bodies = self._robot(file, notes)
        self.base_joints = self._take_base()
        self.actuators: dict[int, list[tuple[int, float]]] = {}
        for i in range(m.nu):
            joint = self.driven_joint(i)
            if joint >= 0 and int(m.jnt_type[joint]) in self.simple:
                self.actuators.setdefault(joint, []).append((i, abs(float(m.actuator_gear[i, 0]))))
        self.gears = find_gears(self.mj, m, set(self.actuators))
        through_gears = {
            joint: [(i, gear * abs(turns)) for rotor, turns in rotors.items() for i, gear in self.actuators[rotor]]
            for joint, rotors in self.gears.driven.items()
        }
        rotors = self.gears.rotors
        self.actuators = {j: each for j, each in self.actuators.items() if j not in rotors} | through_gears
        self.paired = {geom: i for i in range(m.npair) for geom in self._against_world(i)}
        self.floors = [g for g in range(m.ngeom) if self._is_static(g) and (m.geom_contype[g] or m.geom_conaffinity[g])]

    def name(self, kind: str, index: int) -> str:
        """Return the name of an element, or its kind and index."""
        try:
            name = self.mj.mj_id2name(self.m, getattr(self.mj.mjtObj, f"mjOBJ_{kind.upper()}"), int(index))
        except UnicodeDecodeError as error:
            raise ConfigError(f"a name is not text in UTF-8 ({kind} {index}). Save it in UTF-8", self._file) from error
        return str(name or f"{kind}{int(index)}")

    def _robot(self, file: Path, notes: Notes) -> list[int]:
        """Return the bodies of the robot, parents first."""
        m = self.m
        roots: dict[int, list[int]] = {}
        for body in range(1, m.nbody):
            roots.setdefault(int(m.body_rootid[body]), []).append(body)
        if not roots:
            raise ConfigError("the model has no bodies", file)
        joints = {root: int(sum(m.body_jntnum[b] for b in bodies)) for root, bodies in roots.items()}
        chosen = max(roots, key=lambda root: joints[root])
        others = [self.name("body", root) for root in roots if root != chosen]
        if others:
            notes.dropped(
                f"other bodies than the robot: {some(others)}. Define free objects in a scenario (docs/objects.md)"
            )
        return roots[chosen]

    def _take_base(self) -> list[int]:
        """Remove the bodies of a planar base from the robot; return all joints between world and robot.

        Models of planar robots have a chain of nearly massless bodies with slides and a hinge.
        """
        m, root = self.m, self.bodies[0]
        chain = [root]
        while m.body_mass[chain[-1]] <= NEGLIGIBLE * m.body_subtreemass[root]:
            children = [body for body in self.bodies if m.body_parentid[body] == chain[-1]]
            if len(children) != 1:
                break
            chain += children
        joints = [joint for body in chain for joint in self.joints(body)]
        slide = int(self.mj.mjtJoint.mjJNT_SLIDE)
        if len(chain) == 1 or [int(m.jnt_type[joint]) for joint in joints].count(slide) < 2:
            return self.joints(root)
        self.bodies = [body for body in self.bodies if body not in chain[:-1]]
        return joints

    def joints(self, body: int) -> list[int]:
        """Return the joints between a body and its parent."""
        first = int(self.m.body_jntadr[body])
        return [] if first < 0 else list(range(first, first + int(self.m.body_jntnum[body])))

    @property
    def simple(self) -> tuple[int, int]:
        """Types of joints with one coordinate."""
        return int(self.mj.mjtJoint.mjJNT_HINGE), int(self.mj.mjtJoint.mjJNT_SLIDE)

    def driven_joint(self, actuator: int) -> int:
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

    def friction(self, geom: int) -> float | None:
        """Return the coefficient of sliding friction between a shape and the floor, by MuJoCo's rules.

        A contact pair defines its own value. Otherwise the shape of higher priority decides, or the larger value for
        equal priorities. Contacts of dimension one are frictionless. A file without floor uses the shape's own value,
        and the dimension of a contact with a default floor.

        Returns:
            None if the file has a floor, and the shape cannot touch it.
        """
        m = self.m
        if geom in self.paired:
            pair = self.paired[geom]
            return 0.0 if m.pair_dim[pair] < _SLIDING else float(m.pair_friction[pair, :2].min())
        planes = (int(self.mj.mjtGeom.mjGEOM_PLANE), int(self.mj.mjtGeom.mjGEOM_HFIELD))
        reachable = [
            floor
            for floor in self.floors
            if m.geom_contype[geom] & m.geom_conaffinity[floor] or m.geom_contype[floor] & m.geom_conaffinity[geom]
        ]
        floors = [floor for floor in reachable if int(m.geom_type[floor]) in planes] or reachable
        if not self.floors:
            frictionless = m.geom_priority[geom] > 0 and m.geom_condim[geom] < _SLIDING
            return 0.0 if frictionless else float(m.geom_friction[geom, 0])
        candidates = []
        for floor in floors:
            order = int(m.geom_priority[geom]) - int(m.geom_priority[floor])
            deciding = [geom] if order > 0 else [floor] if order < 0 else [geom, floor]
            rubs = m.geom_condim[deciding].max() >= _SLIDING
            candidates.append(float(m.geom_friction[deciding, 0].max()) if rubs else 0.0)
        return min(candidates, default=None)

    def attitude(self, key: int = -1) -> Array:
        """Return the rotation (3, 3) of the root body in the world, in a keyframe or with all joints at 0."""
        state = self.mj.MjData(self.m)
        if key >= 0:
            self.mj.mj_resetDataKeyframe(self.m, state, key)
        self.mj.mj_kinematics(self.m, state)
        return np.array(state.xmat[self.bodies[0]]).reshape(3, 3)

    @property
    def has_loops(self) -> bool:
        """Whether the file closes kinematic chains."""
        kinds = self.mj.mjtEq
        pairs = zip(self.m.eq_type, self.m.eq_active0, strict=True)
        return any(on and int(t) in (int(kinds.mjEQ_CONNECT), int(kinds.mjEQ_WELD)) for t, on in pairs)
