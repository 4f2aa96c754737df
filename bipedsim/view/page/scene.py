"""Draw the 3D scene of a page: the meshes of the robot, and the data of an instant around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pinocchio as pin

from bipedsim.ground import Ground
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.objects import ObjectConfig
from bipedsim.view.page.bodies import FINEST, looks, object_looks
from bipedsim.view.page.instant import Instant
from bipedsim.view.page.layers import make_layers, place, rgb, rounded
from bipedsim.view.page.marks import Marks
from bipedsim.view.page.patches import add_ground
from bipedsim.view.page.soles import SoleNodes
from bipedsim.view.page.state import DerivedState, mode_text, state_of
from bipedsim.view.page.structure import add_structure
from bipedsim.view.palette import OBJECT_COLOUR

WORLD = "/world"
"""Name of the root node. To follow the robot, this node moves and not the camera, which stays where the user put it."""
FOLLOW = 0.3
"""Time constant with which the world follows the robot [s], so that steps do not shake the image."""
JUMP = 1.0
"""Distance [m] or time difference [s] from which on the world follows at once."""
WXYZ_LAST = (0, 1, 2, 6, 3, 4, 5)
"""Order of viser's pose in that of pinocchio: the real part of the quaternion is before the imaginary parts."""
OPACITY, FOOT_OPACITY = 1.0, 0.5
"""Opacity of bodies at the start, and the largest opacity of feet, which would hide their soles and forces."""


class Scene:
    """3D scene of a page.

    Args:
        scene: Scene of viser.
        robot: The robot.
        ground: The ground.
        objects: Free objects.
        finest: Maximum number of triangles of the robot.

    Attributes:
        layers: Name of each layer to the layer.
        missing: Descriptions of elements of the robot that cannot be shown, with the reason.
        detail: Text with the number of triangles of the robot, and of its original meshes.
        offset: (3,) position of the world's origin in the axes of the image [m].
        follows: Whether the world moves so that the robot stays in the middle.
        size: Approximate size of the robot [m].
    """

    def __init__(
        self, scene: Any, robot: Robot, ground: Ground, objects: Sequence[ObjectConfig], finest: int = FINEST
    ) -> None:
        self._robot, self._ground = robot, ground
        self._data, self._spare = robot.model.createData(), robot.model.createData()
        self.layers = make_layers()
        self.size = 1.8 * robot.com_height
        self.offset, self.follows = np.zeros(3), True
        self._time = np.nan
        self._root = scene.add_frame(WORLD, show_axes=False)
        add_ground(scene, WORLD, ground, robot.soles, self.layers)
        self._base = scene.add_frame(f"{WORLD}/robot", show_axes=False)
        model = robot.model
        names = [f"{WORLD}/robot"]
        for joint in range(1, model.njoints):
            names.append(f"{names[model.parents[joint]]}/{joint}")
        # If the root of the robot is welded, joint 0 (the world) carries links too.
        self._joints = [self._base, *(scene.add_frame(name, show_axes=False) for name in names[1:])]
        self._poses = np.full((model.njoints, 7), np.nan)
        meshes, self.missing, self.detail = looks(robot, finest)
        self._feet = {sole.joint_id for sole in robot.soles}
        self._meshes: list[tuple[str, int, Any]] = []
        for i, look in enumerate(meshes):
            node = scene.add_mesh_simple(
                f"{names[look.joint_id]}/look_{i}",
                look.vertices.astype(np.float32),
                look.faces.astype(np.uint32),
                color=look.colour,
                flat_shading=not look.smooth,
                opacity=self._opacity(look.joint_id, OPACITY),
            )
            self.layers["robot"].see(node)
            self._meshes.append((look.name, look.joint_id, node))
        add_structure(scene, names, robot, self.layers, self.size)
        parents = [names[sole.joint_id] for sole in robot.soles]
        self._soles = SoleNodes(scene, robot, ground, parents, self.layers, self.size)
        self._marks = Marks(scene, WORLD, robot, self.layers, self.size)
        self._caption = scene.add_label(f"{WORLD}/caption", "", anchor="bottom-center", visible=False)
        self._objects = {config.name: self._add_object(scene, config) for config in objects}

    def _add_object(self, scene: Any, config: ObjectConfig) -> Any:
        frame = scene.add_frame(f"{WORLD}/object_{config.name}", show_axes=False, visible=False)
        for i, look in enumerate(object_looks(config)):
            scene.add_mesh_simple(
                f"{WORLD}/object_{config.name}/{i}",
                look.vertices.astype(np.float32),
                look.faces.astype(np.uint32),
                color=rgb(OBJECT_COLOUR),
                flat_shading=not look.smooth,
            )
        return frame

    def on_click(self, chosen: Callable[[str, int], None]) -> None:
        """Call ``chosen`` with link and joint of a body that the user clicks."""
        for name, joint, node in self._meshes:
            node.on_click(lambda _, name=name, joint=joint: chosen(name, joint))

    @property
    def bodies(self) -> dict[str, tuple[str, int]]:
        """Name of each node of a body to its link and joint."""
        return {node.name: (name, joint) for name, joint, node in self._meshes}

    def see_through(self, opacity: float) -> None:
        """Set the opacity of all bodies, from 0 to 1; feet are limited to their own opacity."""
        for _, joint, node in self._meshes:
            node.opacity = self._opacity(joint, opacity)

    def _opacity(self, joint: int, opacity: float) -> float | None:
        """Return the opacity of the bodies of a joint, None if they are opaque."""
        opacity = min(opacity, FOOT_OPACITY) if joint in self._feet else opacity
        return None if opacity >= 1.0 else opacity

    def on_drag(self, dragged: Callable[[str, Array, bool], None]) -> None:
        """Call ``dragged`` while the user drags a body with Ctrl (Cmd).

        Args:
            dragged: Called with the name of the link, the vector of the drag in the world (3,) [m], and whether the
                drag continues.
        """

        def on_event(event: Any, name: str) -> None:
            displacement = np.subtract(event.end_position, event.start_position)
            dragged(name, displacement, event.phase != "end")

        for name, _, node in self._meshes:
            # viser may call functions that are not coroutines out of order.
            async def on_mesh(event: Any, name: str = name) -> None:
                on_event(event, name)

            node.on_drag("left", modifier="cmd/ctrl")(on_mesh)

    def show(self, instant: Instant) -> DerivedState | None:
        """Show an instant; return the derived state, or None if the pose of the robot is unknown."""
        for name, node in self._objects.items():
            pose = instant.objects.get(name)
            is_known = pose is not None and bool(np.isfinite(pose).all())
            if pose is not None and is_known:
                place(node, pin.XYZQUATToSE3(np.asarray(pose[:7])))
            self.layers["objects"].see(node, is_known)
        if self._base.visible != instant.placed:
            self._base.visible = instant.placed
        if not instant.placed:
            self._marks.hide()
            return None
        state = state_of(self._robot, self._ground, self._data, instant)
        self._move(state.data)
        self._soles.show(instant, state)
        self._marks.show(instant, state)
        self._follow(instant.t, state.com, state.ground)
        if self.layers["caption"].on:
            self._caption.text = self._caption_text(instant, state)
            self._caption.position = tuple(rounded(state.com + np.array([0.0, 0.0, 0.5 * self.size])))
        self.layers["caption"].see(self._caption)
        return state

    def derive(self, instant: Instant) -> DerivedState | None:
        """Return the derived state of an instant without showing it; the next call overwrites it."""
        return state_of(self._robot, self._ground, self._spare, instant) if instant.placed else None

    def _caption_text(self, instant: Instant, state: DerivedState) -> str:
        modes = [
            f"{sole.name}: {mode_text(instant, k, sole, state.kinds[k])}" for k, sole in enumerate(self._robot.soles)
        ]
        return "   ".join([f"t = {instant.t:.2f} s", *modes])

    def _move(self, data: pin.Data) -> None:
        """Move the joints whose pose relative to their parent has changed."""
        poses = rounded(np.array([pin.SE3ToXYZQUAT(pose) for pose in data.liMi])[:, WXYZ_LAST])
        shifted = (poses[:, :3] != self._poses[:, :3]).any(axis=1)
        rotated = (poses[:, 3:] != self._poses[:, 3:]).any(axis=1)
        for j in range(1, len(self._joints)):
            if shifted[j]:
                self._joints[j].position = tuple(poses[j, :3])
            if rotated[j]:
                self._joints[j].wxyz = tuple(poses[j, 3:])
        self._poses = poses

    def _follow(self, t: float, com: Array, height: float) -> None:
        """Move the world so that the robot stays in the middle, horizontally and with its ``height`` [m]."""
        if not self.follows:
            return
        wanted = -np.array([*com[:2], height])
        distance, passed = np.linalg.norm(wanted - self.offset), abs(t - self._time)
        share = 1.0 if not (passed < JUMP and distance < JUMP) else 1.0 - np.exp(-passed / FOLLOW)
        self._time = t
        self.offset = self.offset + share * (wanted - self.offset)
        self._root.position = tuple(rounded(self.offset))

    def reset_offset(self) -> None:
        """Move the world back to its original position, for a page that does not follow the robot."""
        self.offset, self._time = np.zeros(3), np.nan
        self._root.position = (0.0, 0.0, 0.0)
