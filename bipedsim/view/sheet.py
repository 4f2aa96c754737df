"""Provide the common parts of all plots: style, colours, output and marks over time.

Import of matplotlib takes a second, so the functions import it when they draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from weakref import WeakKeyDictionary

import numpy as np

from bipedsim.errors import RecordingError
from bipedsim.view.interactive import import_bokeh, write_interactive
from bipedsim.view.palette import LIMIT_COLOUR, PUSH_COLOUR, TOTAL_COLOUR
from bipedsim.view.time_axes import time_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.text import Text

    from bipedsim.config import ParameterChange
    from bipedsim.recording import Recording

PAGES = (".html", ".htm")
"""Suffixes of interactive plots."""
PAGE = 12.5
"""Width of a plot [in]."""
DOT = "  ·  "
"""Separator between the parts of a title."""
_TITLE, _NOTE = 11.5, 8.0
"""Font sizes of the title of a plot, and of a note above axes [pt]."""
CHANGE_STYLES = {"controller": "-.", "drives": ":"}
MOST_CHANGES = 12
"""Maximum number of changed parameters whose names are next to their lines."""
_WITHOUT_METRICS: WeakKeyDictionary[Axes, str] = WeakKeyDictionary()
"""Titles of axes that contain metrics, without them."""
_MARGIN = 0.01
"""Margin of a title, as a fraction of the width."""

STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.1,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}


@contextmanager
def picture(path: Path, size: tuple[float, float], title: str, style: Any = STYLE) -> Iterator[Figure]:
    """Provide an empty figure in this project's style, and write it at the end of the block.

    Args:
        path: .png, .pdf or .svg, or .html for an interactive page; missing folders are created.
        size: Width and height [in].
        title: Title, wrapped if necessary.
        style: Settings of matplotlib for drawing and writing.

    Raises:
        RecordingError: The plot cannot be written.
        ConfigError: The path ends in .html, and bokeh is not installed.
    """
    if path.suffix in PAGES:
        import_bokeh()
    with drawn(size, title, style) as figure:
        yield figure
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with no_half(path):
                if path.suffix in PAGES:
                    write_interactive(figure, path, title)
                elif path.suffix == ".png":
                    write_png(figure, path, 120)
                else:
                    figure.savefig(path, dpi=120)
        except (OSError, ValueError) as error:
            raise RecordingError(f"the figure cannot be written ({error})", path) from error


def write_png(figure: Figure, file: Path | BinaryIO, dpi: float) -> None:
    """Write the same bytes as ``savefig``, without its additional drawing pass for the layout."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure.set_dpi(dpi)
    canvas: Any = FigureCanvasAgg(figure)
    canvas.print_png(file)


@contextmanager
def no_half(path: Path) -> Iterator[None]:
    """Remove ``path`` if an error or Ctrl-C prevents its completion."""
    try:
        yield
    except BaseException:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        raise


@contextmanager
def drawn(size: tuple[float, float], title: str, style: Any = STYLE) -> Iterator[Figure]:
    """Provide an empty figure in this project's style, as :func:`picture` does, without writing it."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(style):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        if title:
            shown = figure.suptitle(title, fontsize=_TITLE, x=_MARGIN, ha="left")
            _fit(figure, shown, (1.0 - 2.0 * _MARGIN) * figure.bbox.width)
        yield figure


def fit_titles(figure: Figure) -> None:
    """Wrap the titles of axes that exceed the right edge of their part of a completely drawn figure."""
    from matplotlib.text import Text

    figure.draw_without_rendering()
    for ax in figure.axes:
        end = ax.figure.bbox.x1 - _MARGIN * ax.figure.bbox.width
        titles = {ax.get_title(location) for location in ("left", "center", "right")} - {""}
        for text in ax.get_children():
            if isinstance(text, Text) and text.get_text() in titles and text.get_window_extent().x1 > end:
                _fit(figure, text, end - text.get_window_extent().x0)


def _fit(figure: Figure, text: Text, room: float) -> None:
    """Wrap a text of a figure at ``room`` [px]."""
    canvas: Any = figure.canvas
    measure, letters = canvas.get_renderer().get_text_width_height_descent, text.get_fontproperties()

    def fits(line: str) -> bool:
        return bool(measure(line, letters, ismath=False)[0] <= room)

    text.set_text("\n".join(_broken(text.get_text(), fits)))


def _broken(text: str, fits: Callable[[str], bool], at: tuple[str, ...] = ("\n", DOT, " ", "")) -> list[str]:
    """Return the lines of a text, broken where necessary: between parts, else words, else letters."""
    separator, *finer = at
    if separator != "\n" and fits(text):
        return [text]
    lines: list[str] = []
    for part in text.split(separator) if separator else text:
        if lines and separator != "\n" and fits(f"{lines[-1]}{separator}{part}"):
            lines[-1] += separator + part
        else:
            lines += _broken(part, fits, tuple(finer)) if finer else [part]
    return lines


def foot_dash(k: int) -> str | tuple[int, tuple[int, int]]:
    """Return the line style of foot ``k``; styles differ because curves coincide in a symmetric motion."""
    return "-" if k % 2 == 0 else (0, (5, 3))


def mark_events(ax: Axes, recording: Recording) -> None:
    """Mark pushes, changed parameters of controller and drives, and the time at which the controller was stopped."""
    for number, (start, end) in enumerate(recording.pushes):
        # Short pushes are widened, so that they are visible in a long run.
        end = max(end, start + 0.003 * recording.duration)
        ax.axvspan(start, end, color=PUSH_COLOUR, alpha=0.2, linewidth=0.0, zorder=0.5, label="" if number else "push")
    if np.isfinite(recording.gave_up_at):
        ax.axvline(recording.gave_up_at, color=LIMIT_COLOUR, linestyle=":", linewidth=1.2, label="stopped")
    if len(recording.t):
        shown = [change for change in recording.changes if recording.t[0] <= change.at <= recording.t[-1]]
        _mark_changes(ax, shown)


def _mark_changes(ax: Axes, changes: Sequence[ParameterChange]) -> None:
    """Draw a line with name and new value for each change, dotted for the drives; many changes have no texts."""
    for change in changes:
        ax.axvline(change.at, color=TOTAL_COLOUR, linestyle=CHANGE_STYLES[change.of], linewidth=0.7)
        if len(changes) <= MOST_CHANGES:
            look: Any = {"rotation": 90, "va": "top", "ha": "right", "fontsize": 6.5, "color": TOTAL_COLOUR}
            ax.text(change.at, 1.0, str(change), transform=ax.get_xaxis_transform(), **look)


def heading(figure: SubFigure, text: str) -> None:
    """Write the heading of a panel."""
    figure.suptitle(text, fontsize=9.5, fontweight="bold", x=0.01, ha="left")


def small_title(ax: Axes, text: str, metrics: str = "") -> None:
    """Write the title of one of many axes, with the metrics of a single run if there are any."""
    ax.set_title(f"{text}   ({metrics})" if metrics else text, fontweight="normal", pad=2, fontsize=8.5)
    if metrics:
        _WITHOUT_METRICS[ax] = text
    else:
        _WITHOUT_METRICS.pop(ax, None)


def without_metrics(ax: Axes) -> str:
    """Return the title of axes without the metrics of a single run."""
    return _WITHOUT_METRICS.get(ax) or ax.get_title() or ax.get_title("left")


def note_above(ax: Axes, note: str) -> None:
    """Write a note above the right end of axes; a legend there is moved up."""
    from matplotlib.transforms import ScaledTranslation

    ax.set_title(note, loc="right", pad=3, fontsize=_NOTE, fontweight="normal")
    legend = ax.get_legend()
    if legend is not None:
        height = 1.3 * _NOTE * len(note.splitlines()) / 72.0
        legend.set_bbox_to_anchor((1.0, 1.0), ax.transAxes + ScaledTranslation(0.0, height, ax.figure.dpi_scale_trans))


def finish_grid(axes: Any, recording: Recording, used: int) -> None:
    """Set a common time axis for the first ``used`` axes of a grid, and hide the others."""
    for ax in axes.flat[:used]:
        ax.set_xlim(recording.t[0], recording.t[-1])
        ax.tick_params(labelsize=7.5)
    for ax in axes.flat[used:]:
        ax.set_visible(False)
    for column in range(axes.shape[1]):
        shown = [ax for ax in axes[:, column] if ax.get_visible()]
        if shown:
            time_axis(*shown)
            shown[-1].tick_params(labelbottom=True)


def at_least(ax: Axes, span: float) -> None:
    """Extend the y axis to at least ``span``, so that rounding errors do not fill the plot."""
    low, high = ax.get_ylim()
    if high - low < span:
        middle = 0.5 * (low + high)
        ax.set_ylim(middle - 0.5 * span, middle + 0.5 * span)
