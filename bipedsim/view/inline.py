"""Show plots and animations in the cells of a notebook."""

from __future__ import annotations

import base64
import io
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bipedsim.recording import Recording
from bipedsim.view.animation import animate
from bipedsim.view.panels import USUAL_PANELS
from bipedsim.view.plots import PanelPlot
from bipedsim.view.sheet import drawn, write_png

DPI = 70
"""Resolution of plots [dpi]; it is low, because notebooks store their output."""
FPS = 10.0
"""Default frame rate of an animation [Hz]."""


@dataclass(frozen=True)
class Inline:
    """Output of a notebook cell, if it is the value of the last line.

    Attributes:
        data: Content of the image file.
        kind: ``png`` or ``gif``.
    """

    data: bytes = field(repr=False)
    kind: str

    def _repr_mimebundle_(self, **_wanted: Any) -> dict[str, str]:
        return {f"image/{self.kind}": base64.b64encode(self.data).decode("ascii")}


def show(recording: Recording, panels: Sequence[str] = USUAL_PANELS, cutoff: float | None = None) -> Inline:
    """Return the plot of :func:`bipedsim.plot` for a notebook.

    Raises:
        UnknownNameError, RecordingError, ConfigError: See :func:`bipedsim.plot`.
    """
    page, file = PanelPlot(recording, panels, cutoff), io.BytesIO()
    with drawn(page.size, page.title) as figure:
        page.draw(figure)
        write_png(figure, file, DPI)
    return Inline(file.getvalue(), "png")


def show_motion(recording: Recording, *, fps: float = FPS, **options: Any) -> Inline:
    """Return the animation of :func:`bipedsim.animate` for a notebook.

    Args:
        recording: The run.
        fps: Frames per second.
        **options: Further options of :func:`bipedsim.animate`.

    Raises:
        ConfigError, RecordingError: See :func:`bipedsim.animate`.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "motion.gif")
        animate(recording, path, fps=fps, **options)
        return Inline(path.read_bytes(), "gif")
