"""Show the ground in the scene: patches and height field coloured by friction, and a grid on unbounded planes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from bipedsim.ground import Ground, Patch
from bipedsim.model import Sole
from bipedsim.numerics import Array
from bipedsim.view.page.layers import Layer, place, rgb
from bipedsim.view.palette import SOIL_COLOUR, SURFACE_COLOUR

SLIPPERY, ROUGH = "#9CCBE8", "#D9B98C"
"""Colours of patches with friction 0 and :data:`MOST`."""
MOST = 1.0
ON_TOP = 5e-4
"""Height by which each patch is drawn above the previous one in the same plane [m]."""
FAR = 40.0
"""Half the edge of the drawn part of an unbounded plane [m]."""


def add_ground(scene: Any, root: str, ground: Ground, soles: tuple[Sole, ...], layers: dict[str, Layer]) -> None:
    """Add the ground to the scene.

    Args:
        scene: Scene of viser.
        root: Name of the world node.
        ground: The ground.
        soles: Soles of the robot; their friction applies to patches without a coefficient.
        layers: Layers of the page.
    """
    for i, patch in enumerate(ground.patches):
        name = f"{root}/patch_{i}"
        frame = scene.add_frame(name, show_axes=False)
        place(frame, pin.SE3(patch.rotation_world_patch, patch.point_world + i * ON_TOP * patch.normal_world))
        region = patch.region
        if region is None:
            layers["ground"].see(
                scene.add_grid(
                    f"{name}/grid",
                    width=2.0 * FAR,
                    height=2.0 * FAR,
                    cell_size=0.1,
                    section_size=0.5,
                    cell_color=rgb("#DDD8CE"),
                    section_color=rgb("#BDB6A8"),
                    plane_color=rgb(friction_colour(patch)),
                    plane_opacity=1.0,
                    fade_distance=15.0,
                )
            )
        else:
            fan = np.array([(0, j, j + 1) for j in range(1, len(region) - 1)])
            flat = np.column_stack([region, np.zeros(len(region))])
            colour = rgb(friction_colour(patch))
            layers["ground"].see(
                scene.add_mesh_simple(f"{name}/face", flat, fan, color=colour, side="double", cast_shadow=False)
            )
            ring = np.stack([flat, np.roll(flat, -1, axis=0)], axis=1)
            layers["ground"].see(scene.add_line_segments(f"{name}/border", ring, rgb(SURFACE_COLOUR), thickness=0.006))
        middle = (0.0, 0.0) if region is None else tuple(region.mean(axis=0))
        layers["names"].see(scene.add_label(f"{name}/name", patch_text(patch, soles), position=(*middle, 0.02)))
    if (field := ground.field) is not None:
        vertices, triangles = field.mesh()
        plane = field.plane(*field.centre)
        assert plane is not None, "the centre is inside"
        look: Any = {"color": rgb(friction_colour(plane)), "flat_shading": True, "side": "double"}
        layers["ground"].see(scene.add_mesh_simple(f"{root}/field", vertices, triangles, cast_shadow=False, **look))
        # Every line of the grid would hide the surface, so about forty along each edge are drawn.
        grid = vertices.reshape(*field.heights.shape, 3) + np.array([0.0, 0.0, ON_TOP])
        every = max(1, round(max(field.heights.shape) / 40))
        lines = [np.stack([g[:-1], g[1:]], axis=2).reshape(-1, 2, 3) for g in _rows(grid, every)]
        layers["ground"].see(
            scene.add_line_segments(f"{root}/field_grid", np.concatenate(lines), rgb(SURFACE_COLOUR), thickness=0.004)
        )
        position = (*field.centre, float(field.height(*field.centre)) + 0.02)
        layers["names"].see(scene.add_label(f"{root}/field_name", patch_text(plane, soles), position=position))


def _rows(grid: Array, every: int) -> tuple[Array, Array]:
    """Return every n-th line of a grid (X, Y, 3) of points along both directions, (points, lines, 3) each."""
    return grid[:, ::every], grid[::every].transpose(1, 0, 2)


def friction_colour(patch: Patch) -> str:
    """Return the colour of a patch by its friction; the colour of soil if the friction of the soles applies."""
    if patch.friction_static is None:
        return SOIL_COLOUR
    share = min(1.0, patch.friction_static / MOST)
    mixed = [round((1.0 - share) * a + share * b) for a, b in zip(rgb(SLIPPERY), rgb(ROUGH), strict=True)]
    return "#" + bytes(mixed).hex()


def patch_text(patch: Patch, soles: tuple[Sole, ...]) -> str:
    """Return name and friction of a patch."""
    if patch.friction_static is None:
        coefficients = sorted({f"{sole.friction_static:g}" for sole in soles})
        return f"{patch.name}, friction of the soles: {' and '.join(coefficients)}"
    static, dynamic = patch.friction_static, patch.friction_dynamic
    return f"{patch.name}, friction {static:g}" + ("" if dynamic == static else f", sliding {dynamic:g}")
