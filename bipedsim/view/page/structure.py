"""Draw the axes of joints, and the boxes with the mass and inertia of the bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pinocchio as pin

from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.view.page.layers import Layer, arrows, rgb, wxyz
from bipedsim.view.palette import AXIS_COLOUR, INERTIA_COLOUR

LENGTH = 0.14
"""Length of an axis, in robot sizes."""


def add_structure(scene: Any, names: Sequence[str], robot: Robot, layers: dict[str, Layer], size: float) -> None:
    """Add axes and boxes to the scene.

    Args:
        scene: Scene of viser.
        names: Name of the node of each joint.
        robot: The robot.
        layers: Layers of the page.
        size: Size of the robot [m].
    """
    model = robot.model
    data = model.createData()
    for j in range(1, model.njoints):
        name, joint = names[j], model.joints[j]
        if joint.nv == 1:
            subspace = pin.computeJointJacobian(model, data, robot.q_nominal, j)[:, joint.idx_v]
            turns = bool(np.any(subspace[3:]))
            along = 0.5 * LENGTH * size * (subspace[3:] if turns else subspace[:3])
            node = arrows(scene, f"{name}/axis", AXIS_COLOUR, size)
            node.points = np.array([[-along, along]])
            layers["axes"].see(node)
        box = inertia_box(model.inertias[j])
        if box is not None:
            sides, rotation = box
            layers["inertia"].see(
                scene.add_box(
                    f"{name}/inertia",
                    color=rgb(INERTIA_COLOUR),
                    dimensions=tuple(sides),
                    opacity=0.5,
                    position=tuple(model.inertias[j].lever),
                    wxyz=tuple(wxyz(rotation)),
                    cast_shadow=False,
                )
            )


def inertia_box(inertia: pin.Inertia) -> tuple[Array, Array] | None:
    """Return sides (3,) [m] and axes (3, 3) of the homogeneous box with this mass and inertia; None without a mass."""
    if not inertia.mass > 0.0:
        return None
    moments, axes = np.linalg.eigh(inertia.inertia)
    squares = 6.0 * (moments.sum() - 2.0 * moments) / inertia.mass
    # Point masses have no size, and moments of files may violate the triangle inequality.
    return np.sqrt(np.maximum(squares, 1e-6)), axes * np.linalg.det(axes)
