"""Plot a standing robot from behind and from the right, and its soles below its feet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bipedsim.model import Robot, Shape, sole_placements
from bipedsim.numerics import Array
from bipedsim.view.palette import LIMIT_COLOUR, TOTAL_COLOUR, foot_colour
from bipedsim.view.sheet import PAGE, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST = ((-0.05, 0.05), (-0.05, 0.05))
"""Points [m] that every view contains, because robots may be thin."""
HALF_WIDTH = 0.12
"""Minimum extent of a view of the robot to both sides, divided by its height."""
KEY = "grey: collision geometry, next to the sole that of its own body; dots: joints; +: parent joint of the sole"
X_TICKS = 3
"""Maximum number of intervals between the ticks of a horizontal axis."""
CIRCLE = np.linspace(0.0, 2.0 * np.pi, 25)[:-1]


def draw_robot(robot: Robot, path: Path) -> None:
    """Plot the collision geometry of ``robot`` in its standing posture, and each sole from above with its foot.

    Args:
        robot: The robot.
        path: .png, .pdf, .svg or .html.

    Raises:
        RecordingError: The plot cannot be written.
    """
    data = robot.model.createData()
    poses = sole_placements(robot.model, data, robot.soles, robot.q_nominal)
    outlines = [
        (shape, _points(shape) @ data.oMi[shape.joint_id].rotation.T + data.oMi[shape.joint_id].translation)
        for shape in robot.shapes.shapes
    ]
    joint_origins = [data.oMi[j].translation for j in range(1, robot.model.njoints)]
    columns = 2 + max(1, len(robot.soles))
    with picture(path, (PAGE, PAGE / columns * 1.6), f"{robot.name}: {robot.mass:.1f} kg, standing") as figure:
        axes = figure.subplots(1, columns)
        views = ((0, "from the right", "x, forward [m]"), (1, "from behind", "y, to the left [m]"))
        for ax, (i, title, label) in zip(axes, views, strict=False):
            for _, points in outlines:
                _fill(ax, points[:, [i, 2]], "#999999")
            ax.plot([p[i] for p in joint_origins], [p[2] for p in joint_origins], ".", ms=3, color=TOTAL_COLOUR)
            for k, (sole, pose) in enumerate(zip(robot.soles, poses, strict=True)):
                flat = np.column_stack([sole.vertices, np.zeros(sole.n_vertices)])
                flat = flat @ pose.rotation.T + pose.translation
                ax.plot(flat[:, i], flat[:, 2], "-o", ms=2.5, lw=2.5, color=foot_colour(k))
            ax.axhline(0.0, color=LIMIT_COLOUR, lw=0.6)
            # A thin robot would leave no room for the labels of the ticks.
            half = HALF_WIDTH * ax.get_ylim()[1]
            ax.plot((-half, half), (0.0, 0.0), alpha=0.0)
            ax.plot(*LEAST, alpha=0.0)
            ax.set(title=title, xlabel=label, ylabel="z, height [m]", aspect="equal")
        for k, (ax, sole, pose) in enumerate(zip(axes[2:], robot.soles, poses, strict=False)):
            for shape, points in outlines:
                if shape.joint_id == sole.joint_id:
                    _fill(ax, ((points - pose.translation) @ pose.rotation)[:, [1, 0]], "#999999")
            ring = np.vstack([sole.vertices, sole.vertices[:1]])
            ax.plot(ring[:, 1], ring[:, 0], "-o", ms=3, color=foot_colour(k))
            ankle = (data.oMi[sole.joint_id].translation - pose.translation) @ pose.rotation
            ax.plot(ankle[1], ankle[0], "+", color=TOTAL_COLOUR)
            ax.plot(*LEAST, alpha=0.0)
            ax.set(title=f"{sole.name} sole", xlabel="y, to the left [m]", ylabel="x, forward [m]", aspect="equal")
        for ax in axes[1:]:
            # In views from behind and from above, left must be on the left.
            ax.invert_xaxis()
        for ax in axes:
            # Labels with three decimals would overlap at more ticks.
            ax.locator_params(axis="x", nbins=X_TICKS)
        figure.supxlabel(KEY, fontsize=8.5, x=0.01, ha="left")


def _points(shape: Shape) -> Array:
    """Return points (n, 3) on the surface of a shape, in the frame of its joint."""
    points = shape.points
    if shape.ring > 0.0:
        side = np.linalg.svd(shape.axis[None])[2][1:]
        circle = shape.ring * (np.outer(np.cos(CIRCLE), side[0]) + np.outer(np.sin(CIRCLE), side[1]))
        points = np.vstack([point + circle for point in points])
    if shape.radius > 0.0:
        planes = [
            np.outer(np.cos(CIRCLE), np.eye(3)[i]) + np.outer(np.sin(CIRCLE), np.eye(3)[j])
            for i, j in ((0, 1), (0, 2), (1, 2))
        ]
        points = np.vstack([point + shape.radius * plane for point in points for plane in planes])
    return points


def _fill(ax: Axes, points: Array, colour: str) -> None:
    """Draw the hull of points (n, 2)."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        hull = points[ConvexHull(points).vertices]
    except (QhullError, ValueError):
        ax.plot(points[:, 0], points[:, 1], color=colour, lw=1.0)
        return
    ax.fill(hull[:, 0], hull[:, 1], facecolor=colour, edgecolor=colour, alpha=0.25, lw=0.6)
