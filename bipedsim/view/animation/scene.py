"""Draw one view of a moving robot with artists that are created once and moved from frame to frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bipedsim.ground import Ground, Patch
from bipedsim.numerics import Array
from bipedsim.view.animation.camera import ARROW, Camera, arrows, drawn_skeleton, follow, make_camera, robot_size
from bipedsim.view.animation.motion import MotionFrames
from bipedsim.view.animation.skeleton import TRUNK, Skeleton
from bipedsim.view.palette import FORCE_COLOUR, OBJECT_COLOUR, SOIL_COLOUR, SURFACE_COLOUR, TOTAL_COLOUR, foot_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes


TRUNK_COLOUR = "#4A4A4A"
HEAD = 0.05
"""Length of an arrow head, as a fraction of the robot's size."""
SECTION = 600
"""Number of points of the section through the ground, across the image."""
GRID = 0.5
"""Distance of the grid lines on a plane in the 3d view [m]."""
LABEL = -18.0
"""Distance of the coordinate label from the lower edge of a view [pt]."""
NEAR = 1.0
"""Maximum distance from the robot of objects that the window must contain, in robot sizes."""
PLANE = 1.3
"""Half the edge of the drawn part of an unbounded plane in the 3d view, in robot sizes."""


class Stage:
    """Data that all views of a motion share.

    Args:
        motion, skeleton: The moving robot.
        ground: The ground.
        weight: Force of the reference arrow [N].
        strip: Whether postures are next to each other; then the camera is centred on each of them.
    """

    def __init__(
        self, motion: MotionFrames, skeleton: Skeleton, ground: Ground, weight: float, strip: bool = False
    ) -> None:
        self.motion, self.skeleton, self.ground, self.weight = motion, skeleton, ground, weight
        self.size = robot_size(motion)
        self.target = follow(motion, self.size, each=strip)
        self.arrows = arrows(motion, weight, self.size)
        self.tips = motion.cop + self.arrows
        below = ground.height(motion.com[:, 0], motion.com[:, 1])
        self.below_com = np.stack([motion.com[:, 0], motion.com[:, 1], below], axis=-1)

    def camera(self, view: str) -> Camera:
        """Return the camera of a view."""
        shown = [self.motion.points, self.motion.com[:, None], self.below_com[:, None], self.tips]
        for line in self.motion.outlines:
            away = np.linalg.norm(line.mean(axis=1) - self.motion.com, axis=1)
            shown.append(np.where(away[:, None, None] < NEAR * self.size, line, np.nan))
        return make_camera(view, np.concatenate(shown, axis=1), self.target, self.size)


class ViewArtists:
    """Artists of one view in one axes.

    Args:
        ax: Empty axes.
        stage: Content of the view.
        view: Key of :data:`bipedsim.view.animation.camera.AXES`.
        camera: Camera of this view.
        measure: Whether to draw the reference arrow of the weight.
        coordinates: Whether to show world coordinates on an axis below the view.

    Attributes:
        ax: The axes.
        camera: The camera.
    """

    def __init__(
        self, ax: Axes, stage: Stage, view: str, camera: Camera, measure: bool = True, coordinates: bool = True
    ) -> None:
        from matplotlib.collections import LineCollection, PolyCollection
        from matplotlib.colors import to_rgba
        from matplotlib.patches import Polygon

        self.ax, self._stage, self._view = ax, stage, view
        self.camera = camera
        ax.set_aspect("equal")
        ax.set_axis_off()
        if coordinates and view != "3d":
            self._draw_coordinates("x, forward [m]" if view == "side" else "y, to the left [m]")
        self._patches: list[tuple[Patch, Any, Any]] = []
        self._field: Any = None
        if view == "3d":
            if stage.ground.field is not None:
                # The field is drawn above all patches, without the triangles that are below one.
                look: Any = {"facecolors": SOIL_COLOUR, "edgecolors": SURFACE_COLOUR, "linewidths": 0.3, "zorder": 2.2}
                self._field = PolyCollection([], **look)
                vertices, triangles = stage.ground.field.mesh()
                x, y, z = vertices[triangles].mean(axis=1).T
                self._mesh = vertices, triangles[z >= stage.ground.height(x, y) - SAME_HEIGHT]
                ax.add_collection(self._field, autolim=False)
            for patch in stage.ground.patches:
                face = Polygon(np.zeros((3, 2)), facecolor=SOIL_COLOUR, edgecolor=SURFACE_COLOUR, linewidth=0.6)
                lines = LineCollection([], colors=SURFACE_COLOUR, linewidths=0.4, alpha=0.6)
                ax.add_patch(face)
                ax.add_collection(lines, autolim=False)
                self._patches.append((patch, face, lines))
        else:
            self._soil = Polygon(np.zeros((3, 2)), facecolor=SOIL_COLOUR, edgecolor="none")
            ax.add_patch(self._soil)
            (self._surface,) = ax.plot([], [], color=SURFACE_COLOUR, linewidth=1.0)
        sides = stage.skeleton.sides
        self._colours = np.array([to_rgba(TRUNK_COLOUR if s == TRUNK else foot_colour(int(s))) for s in sides])
        self._robot = LineCollection([], capstyle="round", joinstyle="round", zorder=3)
        feet = range(len(stage.skeleton.soles))
        feet_colours = [foot_colour(k) for k in feet]
        self._soles = PolyCollection([], facecolors=feet_colours, edgecolors=feet_colours, zorder=2.5)
        self._forces = LineCollection([], colors=FORCE_COLOUR, linewidths=1.8, zorder=4)
        self._objects = LineCollection([], colors=OBJECT_COLOUR, linewidths=1.2, zorder=2.8)
        self._plumb = LineCollection([], colors=TOTAL_COLOUR, linewidths=0.8, linestyles=":", zorder=3.5)
        for collection in (self._soles, self._objects, self._robot, self._forces, self._plumb):
            ax.add_collection(collection, autolim=False)
        (self._foot_point,) = ax.plot([], [], "x", color=TOTAL_COLOUR, markersize=5, markeredgewidth=1.2, zorder=5)
        (self._com,) = ax.plot([], [], **COM_MARKER, zorder=6)
        if measure:
            self._draw_measure()

    def update(self, i: int) -> None:
        """Move all artists to frame ``i``."""
        stage, camera = self._stage, self.camera
        motion, points = stage.motion, stage.motion.points[i]
        limits = camera.limits(i)
        self.ax.set_xlim(*limits[:2])
        self.ax.set_ylim(*limits[2:])
        if self._view == "3d":
            for patch, face, lines in self._patches:
                self._draw_patch(patch, face, lines, stage.target[i])
            if self._field is not None:
                self._draw_field(stage.target[i])
        else:
            self._draw_section(limits, stage.target[i])
        lines, order = drawn_skeleton(stage.skeleton, camera, points)
        self._robot.set_segments(list(lines))
        self._robot.set_color(list(self._colours[order]))
        self._robot.set_linewidth(stage.skeleton.widths[order].tolist())
        self._objects.set_segments([camera.project(line[i]) for line in motion.outlines])
        self._soles.set_verts([camera.project(points[corners]) for corners in stage.skeleton.soles])
        heads: list[Array] = []
        for k in range(motion.cop.shape[1]):
            tail, tip = camera.project(np.array([motion.cop[i, k], stage.tips[i, k]]))
            heads += _arrow(tail, tip, HEAD * stage.size)
        self._forces.set_segments(heads)
        com, below = camera.project(motion.com[i]), camera.project(stage.below_com[i])
        self._com.set_data([com[0]], [com[1]])
        self._foot_point.set_data([below[0]], [below[1]])
        self._plumb.set_segments([np.array([com, below])])

    def _draw_coordinates(self, label: str) -> None:
        """Draw moving ticks, and a label that belongs to the figure, so that it is drawn only once."""
        from matplotlib.transforms import ScaledTranslation

        from bipedsim.view.animation.ruler import COLOUR, FONT_SIZE, Ruler

        figure = self.ax.get_figure(root=True)
        assert figure is not None
        ruler = Ruler(self.ax, 0.5 if self._stage.size > 0.5 else 0.1)
        self.ax.add_artist(ruler)
        ruler.set_clip_on(False)
        below = ScaledTranslation(0.0, LABEL / 72.0, figure.dpi_scale_trans)
        at = self.ax.transAxes + below
        figure.text(0.5, 0.0, label, ha="center", va="top", fontsize=FONT_SIZE, color=COLOUR, transform=at)

    def _draw_measure(self) -> None:
        """Draw a bar as long as the arrow of the weight; it belongs to the figure, because the window size is fixed."""
        from matplotlib.lines import Line2D

        left, right, bottom, top = self.camera.window
        x, y = 0.04 * self._stage.size / (right - left), 1.0 - 0.02 * self._stage.size / (top - bottom)
        length = ARROW * self._stage.size / (top - bottom)
        of_axes, figure = self.ax.transAxes, self.ax.get_figure(root=True)
        assert figure is not None
        style: Any = {"marker": "_", "color": FORCE_COLOUR, "linewidth": 1.2, "markersize": 7}
        figure.add_artist(Line2D([x, x], [y - length, y], transform=of_axes, **style))
        at = x + 0.03 * self._stage.size / (right - left)
        figure.text(at, y - 0.5 * length, "m g", va="center", fontsize=8, color=FORCE_COLOUR, transform=of_axes)

    def _draw_section(self, limits: Array, target: Array) -> None:
        """Draw the section through the ground at the target; where there is no ground, the image remains empty."""
        across = np.linspace(limits[0], limits[1], SECTION)
        x, y = (across, target[1]) if self._view == "side" else (target[0], across)
        heights = self._stage.ground.height(x, y)
        bottom = limits[2] - 1.0
        top = np.where(np.isnan(heights), bottom, heights)
        self._soil.set_xy(np.concatenate([np.column_stack([across, top]), [[limits[1], bottom], [limits[0], bottom]]]))
        self._surface.set_data(across, heights)

    def _draw_field(self, target: Array) -> None:
        """Draw the part of the height field around the robot, the farthest triangles first."""
        field = self._stage.ground.field
        assert field is not None
        vertices, triangles = self._mesh
        middle = vertices[triangles].mean(axis=1)
        near = abs(middle[:, :2] - target[:2]).max(axis=1) < PLANE * self._stage.size
        order = np.argsort(self.camera.depth(middle[near]))
        self._field.set_verts(
            list(self.camera.project(vertices[triangles[near][order]].reshape(-1, 3)).reshape(-1, 3, 2))
        )

    def _draw_patch(self, patch: Patch, face: Any, lines: Any, target: Array) -> None:
        """Draw the region of a patch, or a square with a grid around the robot for an unbounded plane."""
        origin, (t1, t2) = patch.point_world, patch.rotation_world_patch[:, :2].T
        region = patch.region
        if region is None:
            half = PLANE * self._stage.size
            centre = np.array([(target - origin) @ t1, (target - origin) @ t2])
            region = centre + half * np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
            low, high = region[0], region[2]
            grid = [
                _on_axis(axis, value, low, high)
                for axis in range(2)
                for value in GRID * np.arange(np.ceil(low[axis] / GRID), np.floor(high[axis] / GRID) + 1)
            ]
            lines.set_segments([self.camera.project(origin + ends @ np.array([t1, t2])) for ends in grid])
        face.set_xy(self.camera.project(origin + region @ np.array([t1, t2])))


SAME_HEIGHT = 1e-9
"""Height of a patch above a triangle of the height field at which the triangle is hidden [m]."""
COM_MARKER: Any = {
    "marker": "o",
    "color": "white",
    "markeredgecolor": TOTAL_COLOUR,
    "markeredgewidth": 1.5,
    "markersize": 7,
    "linestyle": "none",
}


def _on_axis(axis: int, value: float, low: Array, high: Array) -> Array:
    """Return the ends (2, 2) of the line at ``value`` on ``axis``, clipped to the box from ``low`` to ``high``."""
    ends = np.array([low, high])
    ends[:, axis] = value
    return ends


def _arrow(tail: Array, tip: Array, head: float) -> list[Array]:
    """Return shaft (2, 2) and head (3, 2) of an arrow in the image; both are NaN for a force of NaN or zero."""
    along = tip - tail
    length = float(np.hypot(*along))
    if not length > 0.0:
        nothing = np.full((2, 2), np.nan)
        return [nothing, nothing]
    head = min(head, 0.5 * length)
    back, aside = -along / length * head, np.array([-along[1], along[0]]) / length * head * 0.45
    return [np.array([tail, tip]), np.array([tip + back + aside, tip, tip + back - aside])]
