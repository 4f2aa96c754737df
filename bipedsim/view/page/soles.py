"""Draw the soles with their contacts and forces."""

from __future__ import annotations

from typing import Any

import numpy as np

from bipedsim.ground import Ground
from bipedsim.model import Robot
from bipedsim.numerics import Array, Flags
from bipedsim.view.animation import ARROW, LONGEST
from bipedsim.view.page.bodies import ball, cone
from bipedsim.view.page.instant import Instant
from bipedsim.view.page.layers import Layer, arrows, place, point, rgb, rounded, shortened, wxyz
from bipedsim.view.page.state import UNKNOWN, DerivedState
from bipedsim.view.palette import AIR, COP_COLOUR, FORCE_COLOUR, LIMIT_COLOUR, MODE_COLOURS, UNKNOWN_COLOUR

COLOURS = {**MODE_COLOURS, UNKNOWN: UNKNOWN_COLOUR}
"""Colours of contact modes."""
AROUND = 1.3
"""Size of the plate in the colour of the mode, relative to the sole, so that it is visible next to the foot."""
LIFTED = np.array([0.0, 0.0, 0.003])
"""Offset of lines above the sole plane [m], so that the ground does not hide them."""
SHORTEST = 1e-3
"""Minimum length of arrows [m]; shorter arrows would be dots."""


class SoleNodes:
    """Nodes of all soles of a robot.

    Args:
        scene: Scene of viser.
        robot, ground: The robot and the ground.
        parents: Names of the joint nodes that carry the feet.
        layers: Layers of the page.
        size: Size of the robot [m].
    """

    def __init__(
        self, scene: Any, robot: Robot, ground: Ground, parents: list[str], layers: dict[str, Layer], size: float
    ) -> None:
        self._robot, self._ground, self._layers = robot, ground, layers
        self._scale = ARROW * size / robot.weight
        self._longest = LONGEST * ARROW * size
        self._feet = [_FootNodes(scene, f"{parent}/sole_{k}", robot, k, size) for k, parent in enumerate(parents)]
        self._cone_of = [(np.nan, 0)] * len(parents)
        self._height = 0.12 * size

    def show(self, instant: Instant, state: DerivedState) -> None:
        """Show modes and forces of an instant."""
        for k, foot in enumerate(self._feet):
            sliding = instant.sliding is not None and bool(instant.sliding[k])
            foot.colour(self._layers["soles"], state.kinds[k], state.touching[k], sliding)
            cop = np.full(2, np.nan) if instant.cop is None else instant.cop[k]
            force = np.full(3, np.nan) if instant.wrench is None else instant.wrench[k, :3]
            at = np.array([*cop, 0.0])
            point(self._layers["forces"], foot.arrow, at[None], self.arrow(force)[None], SHORTEST)
            has_cop = bool(np.isfinite(cop).all())
            if has_cop:
                foot.cop.position = tuple(rounded(at + LIFTED))
            self._layers["forces"].see(foot.cop, has_cop)
            forces = np.full((1, 3), np.nan) if instant.vertex_forces is None else instant.vertex_forces[k]
            vectors = np.array([self.arrow(vertex_force) for vertex_force in forces])
            tails = foot.corners if len(foot.corners) == len(vectors) else np.full(vectors.shape, np.nan)
            point(self._layers["vertex_forces"], foot.vertex_arrows, tails, vectors, SHORTEST)
            self._show_cone(k, foot, instant, state, at)

    def arrow(self, force: Array) -> Array:
        """Convert a force (3,) [N] to an arrow (3,) [m]."""
        return shortened(force * self._scale, self._longest)

    def _show_cone(self, k: int, foot: _FootNodes, instant: Instant, state: DerivedState, cop: Array) -> None:
        """Show the friction cone of sticking; its colour changes to red with the used friction."""
        layer = self._layers["cones"]
        if not (layer.on and np.isfinite(cop).all()):
            layer.see(foot.cone, False)
            return
        at = state.soles[k].act(cop)
        patch = self._ground.patch_below(at)
        mu = self._robot.soles[k].friction_static if patch.friction_static is None else patch.friction_static
        used = np.nan if instant.friction_used is None else float(instant.friction_used[k])
        tenth = int(np.clip(np.nan_to_num(used) * 10.0, 0.0, 10.0))
        if self._cone_of[k] != (mu, tenth):
            self._cone_of[k] = mu, tenth
            vertices, faces = cone(max(mu, 1e-3) * self._height, self._height)
            share = tenth / 10.0
            foot.cone.vertices, foot.cone.faces = vertices.astype(np.float32), faces.astype(np.uint32)
            foot.cone.color = tuple(
                round((1.0 - share) * a + share * b) for a, b in zip(rgb(FORCE_COLOUR), rgb(LIMIT_COLOUR), strict=True)
            )
        # The node is a child of the sole, but the cone is aligned with the ground.
        turn = state.soles[k].rotation.T @ patch.rotation_world_patch
        foot.cone.position, foot.cone.wxyz = tuple(rounded(cop)), tuple(wxyz(turn))
        layer.see(foot.cone, True)


class _FootNodes:
    """Nodes of one foot, in its sole frame.

    Attributes:
        corners: (N, 3) corners of the sole [m].
    """

    def __init__(self, scene: Any, name: str, robot: Robot, k: int, size: float) -> None:
        sole = robot.soles[k]
        place(scene.add_frame(name, show_axes=False), sole.placement_joint_sole)
        n = sole.n_vertices
        self.corners = np.column_stack([sole.vertices, np.zeros(n)])
        lifted = self.corners + LIFTED
        self._edges = [(i, (i + 1) % n) for i in range(n)] if n > 2 else [(0, 1)] if n == 2 else []
        self._last_colours: tuple[str, bytes, bool] | None = None
        self._plate = self._lines = None
        if n > 2:
            around = sole.centre + AROUND * (sole.vertices - sole.centre)
            fan = np.array([(0, i, i + 1) for i in range(1, n - 1)])
            flat = np.column_stack([around, np.zeros(n)]) + 0.5 * LIFTED
            self._plate = scene.add_mesh_simple(
                f"{name}/plate", flat, fan, opacity=0.45, side="double", cast_shadow=False, receive_shadow=False
            )
        if self._edges:
            ends = np.array([[lifted[i], lifted[j]] for i, j in self._edges])
            self._lines = scene.add_line_segments(
                f"{name}/edges", ends, np.zeros(ends.shape, dtype=np.uint8), thickness=0.004 * size
            )
        self._points = scene.add_point_cloud(
            f"{name}/vertices",
            lifted.astype(np.float32),
            np.zeros((n, 3), dtype=np.uint8),
            point_size=0.008 * size,
            point_shape="circle",
            precision="float32",
        )
        self.arrow = arrows(scene, f"{name}/force", FORCE_COLOUR, size)
        self.vertex_arrows = arrows(scene, f"{name}/vertex_forces", FORCE_COLOUR, 0.6 * size)
        vertices, faces = ball(0.009 * size)
        self.cop = scene.add_mesh_simple(f"{name}/pressure", vertices, faces, color=rgb(COP_COLOUR), visible=False)
        vertices, faces = cone(1.0, 1.0)
        self.cone = scene.add_mesh_simple(
            f"{name}/cone", vertices, faces, opacity=0.35, side="double", cast_shadow=False, visible=False
        )

    def colour(self, layer: Layer, kind: str, touching: Flags, sliding: bool) -> None:
        """Colour plate, edges and vertices by the contact mode; sliding contacts are red."""
        for node in (self._plate, self._lines, self._points):
            if node is not None:
                layer.see(node)
        now = kind, touching.tobytes(), sliding
        if now == self._last_colours:
            return
        self._last_colours = now
        air, mode = rgb(COLOURS[AIR]), rgb(LIMIT_COLOUR if sliding and touching.any() else COLOURS[kind])
        if self._plate is not None:
            self._plate.color = rgb(COLOURS[kind])
        vertex = np.array([mode if touches else air for touches in touching], dtype=np.uint8)
        self._points.colors = vertex
        if self._lines is not None:
            edge_colours = [mode if touching[i] and touching[j] else air for i, j in self._edges]
            self._lines.colors = np.repeat(np.array(edge_colours, dtype=np.uint8)[:, None], 2, axis=1)
