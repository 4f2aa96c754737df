"""Draw coordinates below a view with a moving window: ticks, and numbers that are rendered once and then copied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.path import Path
from matplotlib.transforms import IdentityTransform
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOUR = "#555555"
TICK, GAP = 3.0, 3.5
"""Length of a tick, and distance from its end to its number [pt]."""
FONT_SIZE = 8.0
"""Font size of the numbers [pt]. Ticks are one pixel wide."""


class Ruler(Artist):
    """X-axis of ``ax`` for animations, which takes a tenth of the time of matplotlib's axis.

    Matplotlib's axis lays out and draws each number again in every frame. This class stores each number as an image,
    from the first frame that shows it. It needs a canvas of pixels (Agg).

    Args:
        ax: The view; the ticks are below it.
        step: Distance of the ticks [m].
    """

    def __init__(self, ax: Axes, step: float) -> None:
        super().__init__()
        self._ax, self._step = ax, step
        self._numbers: dict[int, NDArray[np.uint8]] = {}
        self._figure: Any = ax.get_figure(root=True)

    def ticks(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the multiples of ``step`` in the window (N,), and their positions in the figure (N,) [pixel]."""
        left, right = self._ax.get_xlim()
        multiples = np.arange(np.ceil(left / self._step), np.floor(right / self._step) + 1.0)
        box = self._ax.bbox
        return multiples.astype(np.int64), box.x0 + (multiples * self._step - left) / (right - left) * box.width

    def draw(self, renderer: Any) -> None:
        """Draw ticks and numbers."""
        point = renderer.points_to_pixels(1.0)
        multiples, positions = self.ticks()
        top = float(np.round(self._ax.bbox.y0))
        gc = renderer.new_gc()
        gc.set_foreground(COLOUR)
        gc.set_linewidth(1.0)
        gc.set_snap(True)
        for multiple, x in zip(multiples.tolist(), positions.tolist(), strict=True):
            renderer.draw_path(gc, Path([(x, top), (x, top - TICK * point)]), IdentityTransform())
            number = self._number(multiple)
            height, width = number.shape[:2]
            renderer.draw_image(gc, np.round(x - 0.5 * width), np.round(top - (TICK + GAP) * point) - height, number)
        gc.restore()

    def _number(self, multiple: int) -> NDArray[np.uint8]:
        """Return the image (height, width, 4) of a number, upside down, as the canvas needs it."""
        if multiple not in self._numbers:
            alone = Figure(figsize=(1.0, 0.25), dpi=self._figure.dpi, facecolor="none")
            canvas: Any = FigureCanvasAgg(alone)
            decimals = max(0, int(np.ceil(-np.log10(self._step))))
            text = f"{multiple * self._step:.{decimals}f}".replace("-", "\N{MINUS SIGN}")
            alone.text(0.5, 1.0, text, ha="center", va="top", fontsize=FONT_SIZE, color=COLOUR)
            canvas.draw()
            picture = np.asarray(canvas.buffer_rgba())
            inked = np.flatnonzero(picture[:, :, 3].any(axis=0))
            self._numbers[multiple] = np.ascontiguousarray(picture[::-1, inked[0] : inked[-1] + 1])
        return self._numbers[multiple]
