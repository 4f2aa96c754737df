"""Draw marks around the robot in the world: CoM, capture point, support polygon, plan, pushes, body contact forces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pinocchio as pin

from bipedsim.model import Robot, drivers
from bipedsim.numerics import Array, hull_corners
from bipedsim.recording import Plan
from bipedsim.view.animation import ARROW, LONGEST, bottom
from bipedsim.view.page.bodies import ball
from bipedsim.view.page.instant import Instant, Pushed
from bipedsim.view.page.layers import Layer, arrows, point, rgb, rounded, shortened
from bipedsim.view.page.soles import SHORTEST
from bipedsim.view.page.state import DerivedState
from bipedsim.view.palette import (
    CAPTURE_COLOUR,
    FORCE_COLOUR,
    PLAN_COLOUR,
    PUSH_COLOUR,
    SUPPORT_COLOUR,
    TOTAL_COLOUR,
    foot_colour,
)

LIFTED = np.array([0.0, 0.0, 0.002])
"""Offset above the ground of marks on the ground [m]."""
MOST_CORNERS = 64
"""Maximum number of corners of the support polygon."""


class Marks:
    """Marks of a page.

    Args:
        scene: Scene of viser.
        root: Name of the world node.
        robot: The robot.
        layers: Layers of the page.
        size: Size of the robot [m].
    """

    def __init__(self, scene: Any, root: str, robot: Robot, layers: dict[str, Layer], size: float) -> None:
        self._robot, self._layers = robot, layers
        self._scale, self._longest = ARROW * size / robot.weight, LONGEST * ARROW * size
        self._driver = drivers(robot.model, robot.joint_names)

        def dot(name: str, colour: str, radius: float) -> Any:
            vertices, faces = ball(radius * size)
            return scene.add_mesh_simple(f"{root}/{name}", vertices, faces, color=rgb(colour), visible=False)

        def lines(name: str, colour: str, thickness: float) -> Any:
            return scene.add_line_segments(
                f"{root}/{name}", np.zeros((1, 2, 3)), rgb(colour), thickness=thickness * size, visible=False
            )

        self._com, self._below = dot("com", TOTAL_COLOUR, 0.016), dot("com_below", TOTAL_COLOUR, 0.008)
        self._plumb = lines("plumb", TOTAL_COLOUR, 0.0015)
        self._capture = dot("capture", CAPTURE_COLOUR, 0.012)
        self._support = lines("support", SUPPORT_COLOUR, 0.0022)
        self._steps = [lines(f"step_{k}", foot_colour(k), 0.003) for k in range(len(robot.soles))]
        self._planned = {name: dot(f"plan_{name}", PLAN_COLOUR, 0.012) for name in ("com", "dcm", "zmp")}
        self._pushes = arrows(scene, f"{root}/pushes", PUSH_COLOUR, size)
        self._bodies = arrows(scene, f"{root}/body_forces", FORCE_COLOUR, 0.8 * size)

    def hide(self) -> None:
        """Hide all marks, because the pose of the robot is unknown."""
        for name, nodes in (
            ("com", (self._com, self._below, self._plumb)),
            ("capture", (self._capture,)),
            ("support", (self._support,)),
            ("pushes", (self._pushes,)),
            ("bodies", (self._bodies,)),
        ):
            for node in nodes:
                self._layers[name].see(node, False)

    def show(self, instant: Instant, state: DerivedState) -> None:
        """Show the marks of an instant."""
        com, below = state.com, np.array([*state.com[:2], state.ground]) + LIFTED
        self._dot("com", self._com, com)
        self._dot("com", self._below, below)
        self._lines("com", self._plumb, np.array([[com, below]]))
        self._dot("capture", self._capture, state.capture + LIFTED)
        self._lines("support", self._support, support_polygon(self._robot, state))
        self._show_plan(instant.plan, state.ground)
        tails, vectors = self._pushed(instant.push, state.data)
        point(self._layers["pushes"], self._pushes, tails, vectors, SHORTEST)
        tails, vectors = self._touched(instant, state.data)
        point(self._layers["bodies"], self._bodies, tails, vectors, SHORTEST)

    def _dot(self, layer: str, node: Any, at: Array | None) -> None:
        is_known = at is not None and bool(np.isfinite(at).all())
        if at is not None and is_known:
            node.position = tuple(rounded(at))
        self._layers[layer].see(node, is_known)

    def _lines(self, layer: str, node: Any, ends: Array) -> None:
        if len(ends):
            node.points = rounded(ends)
        self._layers[layer].see(node, bool(len(ends)))

    def _show_plan(self, plan: Plan | None, ground: float) -> None:
        for name, node in self._planned.items():
            self._dot("plan", node, None if plan is None else getattr(plan, name))
        steps = np.zeros((0, 4)) if plan is None or plan.footsteps is None else np.asarray(plan.footsteps)
        feet = np.zeros(len(steps), dtype=np.int64) if plan is None or plan.feet is None else plan.feet
        for k, node in enumerate(self._steps):
            outline = self._robot.soles[k].vertices
            ends = [np.zeros((0, 2, 3))]
            for x, y, z, heading in steps[feet == k]:
                c, s = np.cos(heading), np.sin(heading)
                level = outline @ np.array([[c, s], [-s, c]]) + [x, y]
                height = z if np.isfinite(z) else ground
                corners = np.column_stack([level, np.full(len(level), height)]) + LIFTED
                ends.append(np.stack([corners, np.roll(corners, -1, axis=0)], axis=1))
            self._lines("plan", node, np.concatenate(ends))

    def _pushed(self, pushes: Sequence[Pushed], data: pin.Data) -> tuple[Array, Array]:
        """Return arrows for pushes; they end at the points of action."""
        tips, vectors = [np.zeros((0, 3))], [np.zeros((0, 3))]
        for push in pushes:
            at = push.point
            if at is None:
                at = _origin(self._robot.model, data, push.frame)
            tips.append(np.asarray(at)[None])
            vectors.append(self._vector(np.asarray(push.force))[None])
        along = np.concatenate(vectors)
        return np.concatenate(tips) - along, along

    def _touched(self, instant: Instant, data: pin.Data) -> tuple[Array, Array]:
        """Return arrows of the contact forces on bodies other than soles, from the mean of their lowest points."""
        tails, vectors = [np.zeros((0, 3))], [np.zeros((0, 3))]
        forces = np.zeros((0, 3)) if instant.body_forces is None else np.nan_to_num(instant.body_forces)
        for b in np.flatnonzero(forces.any(axis=1)):
            shapes = [shape for shape in self._robot.shapes.shapes if self._driver[shape.joint_id] == b]
            if shapes:
                tails.append(bottom(shapes, data)[None])
                vectors.append(self._vector(forces[b])[None])
        return np.concatenate(tails), np.concatenate(vectors)

    def _vector(self, force: Array) -> Array:
        return shortened(force * self._scale, self._longest)


def support_polygon(robot: Robot, state: DerivedState) -> Array:
    """Return the edges (n, 2, 3) [m] of the horizontal hull of all vertices in contact."""
    points = [
        np.column_stack([sole.vertices, np.zeros(sole.n_vertices)])[touching] @ pose.rotation.T + pose.translation
        for sole, pose, touching in zip(robot.soles, state.soles, state.touching, strict=True)
    ]
    corners = np.concatenate([np.zeros((0, 3)), *points])
    if len(corners) < 2:
        return np.zeros((0, 2, 3))
    order = _hull(corners[:, :2])[:MOST_CORNERS]
    ring = corners[order] + LIFTED
    return np.stack([ring, np.roll(ring, -1, axis=0)], axis=1)


def _hull(points: Array) -> list[int]:
    """Return the indices of points (n, 2) on their hull, counter-clockwise; two indices for points on a line."""
    corners = np.empty((len(points) + 1, 2))
    count = hull_corners(points.copy(), len(points), 0.0, corners)
    number = {point: i for i, point in enumerate(map(tuple, points.tolist()))}
    return [number[tuple(corner)] for corner in corners[:count].tolist()]


def _origin(model: pin.Model, data: pin.Data, frame: str) -> Array:
    """Return the origin (3,) of a frame in the world [m]; of the root link if the name is empty."""
    if not frame or not model.existFrame(frame):
        return np.asarray(data.oMi[min(1, model.njoints - 1)].translation)
    placed = model.frames[model.getFrameId(frame)]
    return np.asarray((data.oMi[placed.parentJoint] * placed.placement).translation)
