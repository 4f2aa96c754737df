"""Represent free objects as lines."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from bipedsim.numerics import Array
from bipedsim.objects import ObjectConfig, ObjectShape, parse_objects
from bipedsim.recording import Recording

AROUND = 24
"""Number of points of a circle."""


def outline(config: ObjectConfig) -> list[Array]:
    """Return the lines (P, 3) of an object, in its own frame [m]."""
    if config.urdf is not None:
        return [line for shape in config.make().shapes for line in _lines(shape)]
    if config.size is not None:
        half = 0.5 * np.array(config.size)
        level = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0]])
        ends = [np.column_stack([level, np.full(5, z)]) * half for z in (-1.0, 1.0)]
        return [*ends, *(np.array([ends[0][i], ends[1][i]]) for i in range(4))]
    assert config.radius is not None
    angle = np.linspace(0.0, 2.0 * np.pi, AROUND + 1)
    circle = config.radius * np.column_stack([np.cos(angle), np.sin(angle), np.zeros(AROUND + 1)])
    if config.length is None:
        return [circle, circle[:, [0, 2, 1]], circle[:, [2, 0, 1]]]
    ends = [circle + np.array([0.0, 0.0, z]) for z in (-0.5 * config.length, 0.5 * config.length)]
    return [*ends, *(np.array([ends[0][i], ends[1][i]]) for i in range(0, AROUND, AROUND // 4))]


def _lines(shape: ObjectShape) -> list[Array]:
    """Return the faces of a box or hull, or circles around another shape, in the frame of the body."""
    loops = [shape.vertices[[*face, face[0]]] for face in shape.faces]
    if not loops:
        angle = np.linspace(0.0, 2.0 * np.pi, AROUND + 1)
        circle = shape.size[0] * np.column_stack([np.cos(angle), np.sin(angle), np.zeros(AROUND + 1)])
        ends = np.array([[0.0, 0.0, -shape.size[1]], [0.0, 0.0, shape.size[1]]])
        loops = [circle + ends[0], circle + ends[1], circle[:, [0, 2, 1]] if shape.size[1] == 0.0 else ends]
    return [loop @ shape.rotation.T + shape.centre for loop in loops]


def moving_outlines(recording: Recording) -> tuple[list[Array], tuple[str, ...], str]:
    """Return the lines of all objects in the world.

    Returns:
        Lines (n, P, 3) [m] over the rows, names of the objects that they show, and a note on objects without a shape.
    """
    known = {config.name: config for config in parse_objects(recording.run.get("objects", ()))}
    lines: list[Array] = []
    for name, states in recording.objects.items():
        if name not in known:
            continue
        turns = [pin.Quaternion(*quaternion[[3, 0, 1, 2]]).toRotationMatrix() for quaternion in states[:, 3:7]]
        R = np.array(turns).reshape(-1, 3, 3)
        lines += [np.einsum("nij,pj->npi", R, line) + states[:, None, :3] for line in outline(known[name])]
    unknown = sorted({*recording.objects} - {*known})
    shown = tuple(name for name in recording.objects if name in known)
    return lines, shown, f"without {', '.join(unknown)}: their shapes were not recorded" if unknown else ""
