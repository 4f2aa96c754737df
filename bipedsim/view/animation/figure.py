"""Compose scenes in a figure: an animated image, or a strip of postures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bipedsim.view.animation.camera import VIEWS, Camera
from bipedsim.view.animation.scene import COM_MARKER, Stage, ViewArtists
from bipedsim.view.palette import FORCE_COLOUR, OBJECT_COLOUR, TOTAL_COLOUR, foot_colour

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.text import Text


DPI = 100
"""Resolution of animations [dpi]."""
STRIP_DPI = 150
"""Resolution of strips [dpi]."""
HEIGHT = 4.0
"""Height of a view [in]."""
GAP = 0.03
"""Fraction of a posture's width that remains empty, because the ground below the next posture is elsewhere."""
STRIP_HEIGHT = 2.6
"""Height of a posture in a strip [in]."""
NARROWEST = 4.2
"""Minimum width for title, time and legend [in]."""
WIDEST = 9.0
"""Maximum total width of the views next to each other [in]; larger views are scaled down."""
MARGIN = 0.18
"""Space next to the views of an animation, for protruding coordinates [in]."""
HEAD, FOOT = 0.42, 0.78
"""Space above the views for the title, and below them for coordinates and legend [in]."""
TITLE_SIZES = (10, 9, 8, 7, 6)
"""Font sizes of the title, the first that fits."""
GREY = "#555555"
WIDE = 6.0
"""Minimum width for a legend in one row [in]."""
NAMED = 2
"""Maximum number of objects in the legend."""


class Film:
    """Animated figure: call :meth:`show` for a frame, then :meth:`pixels`.

    Args:
        stage: Content of the figure.
        view: Key of :data:`bipedsim.view.animation.camera.VIEWS`.
        title: Title above the views.
        feet: Names of the feet.
        speed: Simulated seconds per second of the animation, shown next to the time if it is not 1.
    """

    def __init__(self, stage: Stage, view: str, title: str, feet: tuple[str, ...], speed: float = 1.0) -> None:
        self.stage = stage
        self._speed = "" if speed == 1.0 else f"   (speed {speed:g})"
        figure, height, widths, cameras = _figure(stage, VIEWS[view])
        total = figure.get_figwidth()
        self.scenes: list[ViewArtists] = []
        left = MARGIN
        for name, width, camera in zip(VIEWS[view], widths, cameras, strict=True):
            full = figure.get_figheight()
            ax = figure.add_axes((left / total, FOOT / full, width / total, height / full))
            self.scenes.append(ViewArtists(ax, stage, name, camera, measure=not self.scenes))
            left += width + MARGIN
        self._time = figure.text(1.0 - 0.1 / total, 1.0 - 0.12 / figure.get_figheight(), "", ha="right", va="top")
        self._time.set(fontsize=10, color=TOTAL_COLOUR, family="monospace")
        self.figure = figure
        self.show(len(stage.motion.t) - 1)
        _write(figure, title, stage, feet, _inches(self._time))
        self._still: Any = None

    def show(self, i: int) -> None:
        """Move all artists to frame ``i``."""
        for scene in self.scenes:
            scene.update(i)
        self._time.set_text(f"t = {self.stage.motion.t[i]:.3f} s{self._speed}")

    def pixels(self) -> NDArray[np.uint8]:
        """Draw and return the image (height, width, 4) in RGBA, which the next call overwrites."""
        canvas: Any = self.figure.canvas
        moving = [scene.ax for scene in self.scenes] + [self._time]
        if self._still is None:
            # Title and legend take as long to draw as a view and never change, so they are drawn once.
            for artist in moving:
                artist.set_visible(False)
            canvas.draw()
            self._still = canvas.copy_from_bbox(self.figure.bbox)
            for artist in moving:
                artist.set_visible(True)
        canvas.restore_region(self._still)
        for artist in moving:
            self.figure.draw_artist(artist)
        return np.asarray(canvas.buffer_rgba())


def draw_strip(stage: Stage, view: str, title: str, feet: tuple[str, ...]) -> Figure:
    """Return a figure with all frames next to each other, and the views below each other."""
    postures = len(stage.motion.t)
    views = VIEWS[view]
    cameras = [stage.camera(name) for name in views]
    spans = [np.diff(camera.window)[::2] for camera in cameras]
    heights = [STRIP_HEIGHT * float(span[1]) / max(float(s[1]) for s in spans) for span in spans]
    width = max(h * float(span[0] / span[1]) for h, span in zip(heights, spans, strict=True))
    figure = _new_figure(max(postures * width, NARROWEST), sum(heights) + HEAD + FOOT)
    total = figure.get_figheight()
    bottom = total - HEAD
    for name, height, camera in zip(views, heights, cameras, strict=True):
        bottom -= height
        for i in range(postures):
            ax = figure.add_axes((i / postures, bottom / total, (1.0 - GAP) / postures, height / total))
            ViewArtists(ax, stage, name, camera, measure=i == 0 and name == views[0], coordinates=False).update(i)
    for i, t in enumerate(stage.motion.t):
        figure.text(
            (i + 0.5 - 0.5 * GAP) / postures, (FOOT - 0.1) / total, f"{t:.2f} s", ha="center", va="top", fontsize=9
        )
    _write(figure, title, stage, feet)
    return figure


def _figure(stage: Stage, views: tuple[str, ...]) -> tuple[Figure, float, list[float], list[Camera]]:
    """Return an empty figure for views of equal scale next to each other, their height and widths [in], and cameras."""
    cameras = [stage.camera(name) for name in views]
    tallest = max(float(np.diff(camera.window)[2]) for camera in cameras)
    margins = MARGIN * (len(views) + 1)
    missing = NARROWEST - margins - HEIGHT / tallest * sum(float(np.diff(camera.window)[0]) for camera in cameras)
    if missing > 0.0:
        aside = 0.5 * missing / len(views) * tallest / HEIGHT
        cameras = [replace(c, window=c.window + np.array([-aside, aside, 0.0, 0.0])) for c in cameras]
    # Heights differ between tilted and level views, so the windows are extended at the top.
    cameras = [replace(c, window=np.array([*c.window[:3], c.window[2] + tallest])) for c in cameras]
    widths = [HEIGHT * float(np.diff(camera.window)[0]) / tallest for camera in cameras]
    shrink = min(1.0, WIDEST / sum(widths))
    height, widths = HEIGHT * shrink, [width * shrink for width in widths]
    return _new_figure(sum(widths) + margins, height + HEAD + FOOT), height, widths, cameras


def _new_figure(width: float, height: float) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # The usual codecs need even numbers of pixels.
    figure = Figure(figsize=tuple(2.0 * np.round(0.5 * DPI * np.array([width, height])) / DPI), dpi=DPI)
    FigureCanvasAgg(figure)
    return figure


def _inches(text: Text) -> float:
    """Return the width of a text [in]."""
    figure: Any = text.figure
    return float(text.get_window_extent(figure.canvas.get_renderer()).width / figure.dpi)


def _fit(text: Text, available: float) -> None:
    """Reduce the font of a text to the available width [in], and break it into lines if the smallest is too wide."""
    for size in TITLE_SIZES:
        text.set_fontsize(size)
        if _inches(text) <= available:
            return
    words, lines = text.get_text().split(" "), [""]
    for word in words:
        line = f"{lines[-1]} {word}" if lines[-1] else word
        text.set_text(line)
        if lines[-1] and _inches(text) > available:
            lines.append(word)
        else:
            lines[-1] = line
    text.set_text("\n".join(line.strip() for line in lines))


def _write(figure: Figure, title: str, stage: Stage, feet: tuple[str, ...], reserved: float = 0.0) -> None:
    """Write title and legend; the title leaves ``reserved`` inches at the right."""
    from matplotlib.lines import Line2D

    width, height = figure.get_size_inches()
    text = figure.text(0.1 / width, 1.0 - 0.12 / height, title, ha="left", va="top", fontweight="bold")
    _fit(text, width - 0.3 - reserved)
    handles = [Line2D([], [], color=foot_colour(k), linewidth=3.0, label=foot) for k, foot in enumerate(feet)]
    handles.append(Line2D([], [], **COM_MARKER, label="CoM"))
    force = Line2D([], [], color=FORCE_COLOUR, marker=r"$\uparrow$", markersize=9, linestyle="none")
    force.set_label(f"ground force (m g = {stage.weight:.3g} N)")
    handles.append(force)
    if stage.motion.objects:
        first, more = stage.motion.objects[:NAMED], len(stage.motion.objects) - NAMED
        names = ", ".join(first) + (f" and {more} more" if more > 0 else "")
        handles.append(Line2D([], [], color=OBJECT_COLOUR, linewidth=1.2, label=names))
    figure.legend(
        handles=handles,
        loc="lower left",
        # A narrow figure has space for four entries next to each other.
        ncols=len(handles) if len(handles) < 5 or width > WIDE else 3,
        fontsize=8.5,
        frameon=False,
        handlelength=1.2,
        borderaxespad=0.3,
        columnspacing=1.2,
        labelcolor=GREY,
    )
