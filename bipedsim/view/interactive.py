"""Convert matplotlib figures to interactive HTML pages with bokeh, in one file without network access.

Panels are defined once, for matplotlib. This module reads their axes, curves, bars and texts from the figure and keeps
their positions. Import of bokeh takes a second, so the functions import it when they write a page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bipedsim.errors import ConfigError, RecordingError, install
from bipedsim.numerics import Array
from bipedsim.view.time_axes import is_over_time

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D
    from matplotlib.text import Text


POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
HINT = "drag: zoom into a time span · Ctrl + wheel: zoom · all time axes are linked"
RESET_ID = "reset"
_RESET = "for (const document of Bokeh.documents) for (const plot of document.roots()) plot.reset.emit()"
_STYLE = (
    "body{font:13px system-ui,sans-serif;margin:8px 16px 8px 8px;color:#222}.page{position:relative;min-width:876px}"
    ".page>*{position:absolute}.words{white-space:pre;line-height:1.15;pointer-events:none}"
    ".key{display:flex;flex-wrap:wrap;gap:0 1em;white-space:nowrap}.mono{font-family:monospace}"
    ".bar{color:#666;margin-bottom:4px}"
)
_PX = 4.0 / 3.0
"""CSS pixels per point."""
_BEYOND = 16
"""Space to the right of axes for half of the last tick label [px]."""
NARROW = 0.24
"""Fraction of the page's width below which axes get fewer ticks, so that tick labels do not overlap."""
_MARKERS = {".": "circle", "o": "circle", "x": "x", "s": "square", "^": "triangle"}


def import_bokeh() -> Any:
    """Return the module bokeh.

    Raises:
        ConfigError: bokeh is not installed.
    """
    try:
        import bokeh
    except ImportError as error:
        raise ConfigError(
            f"interactive figures need bokeh: {install('bipedsim[view]')}, or use a name that ends in .png or .pdf"
        ) from error
    return bokeh


def write_interactive(figure: Figure, path: Path, title: str) -> None:
    """Write a figure as an HTML page: curves show their values under the mouse, and all time axes zoom together.

    Args:
        figure: The complete figure.
        path: .html.
        title: Title of the page.

    Raises:
        ConfigError: bokeh is not installed.
        RecordingError: The figure contains other elements than curves, bars, areas and texts.
        OSError: The file cannot be written.
    """
    import_bokeh()
    from bokeh.embed import components
    from bokeh.models import Range1d
    from bokeh.models.annotations import Span
    from bokeh.resources import Resources

    figure.draw_without_rendering()
    times: dict[tuple[float, float], Any] = {}
    line = Span(dimension="height", line_color="#999999", line_width=1.0)
    sources = _Sources()
    plots, boxes = {}, {}
    for number, ax in enumerate(ax for ax in figure.axes if ax.get_visible()):
        limits = ax.get_xlim()
        shared = times.setdefault(limits, Range1d(*limits, bounds="auto")) if is_over_time(ax) else None
        name, around = f"plot{number}", _around(ax)
        plots[name] = _plot(ax, shared, line, sources)
        plots[name].update(**{f"min_border_{side}": room for side, room in around.items()})
        boxes[name] = _place(figure, ax.bbox, **around)
    script, divs = components(plots) if plots else ("", {})
    width, height = figure.get_size_inches() * 100.0
    parts = [f'<div style="{boxes[name]}">{div}</div>' for name, div in divs.items()]
    parts += [_words(figure, text) for text in _texts(figure)]
    parts += [_key(figure, legend) for legend in _legends(figure)]
    bar = f'<p class="bar"><button id="{RESET_ID}" onclick="{escape(_RESET)}">show all</button> {escape(HINT)}</p>'
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"><style>{_STYLE}</style>'
        f"{Resources(mode='inline', components=['bokeh']).render()}</head><body>{bar}"
        f'<div class="page" style="max-width:{1.5 * width:.0f}px;height:{height:.0f}px">{"".join(parts)}</div>'
        f"{script}</body></html>\n"
    )
    path.write_text(page, encoding="utf-8")


def _parts(figure: Figure | SubFigure) -> Iterator[Figure | SubFigure]:
    yield figure
    for inner in figure.subfigs:
        yield from _parts(inner)


def _texts(figure: Figure) -> list[Text]:
    return [text for part in _parts(figure) for text in part.texts if text.get_text() and text.get_visible()]


def _legends(figure: Figure) -> list[Legend]:
    of_axes = [ax.get_legend() for ax in figure.axes if ax.get_visible()]
    return [legend for legend in chain(of_axes, *(part.legends for part in _parts(figure))) if legend is not None]


def _around(ax: Axes) -> dict[str, int]:
    """Return the space around axes for ticks and texts [px], by side."""
    inner, outer = ax.bbox.extents, np.asarray((ax.get_tightbbox() or ax.bbox).extents)
    beyond = (_page_pixels(ax.figure.figure) * np.abs(outer - inner)).round().astype(int)
    left, bottom, _, top = (int(room) for room in beyond)
    return {"left": max(left + 8, 40), "bottom": max(bottom + 2, 4), "right": _BEYOND, "top": top + 4}


def _page_pixels(figure: Figure) -> float:
    """Return the number of page pixels per canvas pixel."""
    return float(100.0 * figure.get_size_inches()[1] / figure.canvas.get_width_height()[1])


def _place(figure: Figure, box: Any, left: int = 0, bottom: int = 0, right: int = 0, top: int = 0) -> str:
    """Return the CSS position of a box of the canvas on the page, with space [px] around it.

    Widths scale with the browser window; heights do not.
    """
    low, down, high, up = box.extents
    wide, tall = figure.canvas.get_width_height()
    scale = _page_pixels(figure)
    return (
        f"left:calc({100.0 * low / wide:.2f}% - {left}px);"
        f"width:calc({100.0 * (high - low) / wide:.2f}% + {left + right}px);"
        f"top:{(tall - up) * scale - top:.0f}px;height:{(up - down) * scale + top + bottom:.0f}px"
    )


def _plot(ax: Axes, shared: Any, time_line: Any, sources: _Sources) -> Any:
    """Convert axes to a bokeh plot.

    Args:
        ax: The axes.
        shared: Common range of all axes over this time; None for axes over another quantity.
        time_line: Line under the mouse in all time axes.
        sources: Data tables of the page.
    """
    from bokeh.models import BoxZoomTool, CrosshairTool, HoverTool, Range1d, ResetTool, WheelZoomTool
    from bokeh.plotting import figure

    _refuse_others(ax)
    over_time = shared is not None
    equal = ax.get_aspect() != "auto"
    kinds = {"linear": "linear", "log": "log"}
    plot = figure(
        sizing_mode="stretch_both",
        x_range=shared if over_time else Range1d(*ax.get_xlim()),
        y_range=Range1d(*ax.get_ylim()),
        x_axis_type=kinds.get(ax.get_xscale(), "linear"),
        y_axis_type=kinds.get(ax.get_yscale(), "linear"),
        title="\n".join(filter(None, (ax.get_title(location) for location in ("left", "center", "right")))) or None,
        toolbar_location=None,
        tools="",
        match_aspect=equal,
        output_backend="canvas",
        outline_line_color=None,
        # In a small window, plots overlap. A transparent border keeps elements visible there.
        border_fill_color=None,
        background_fill_color=None,
    )
    zoom = BoxZoomTool(dimensions="width" if over_time else "both", match_aspect=equal)
    wheel = WheelZoomTool(dimensions="width" if over_time else "both", modifiers={"ctrl": True})
    plot.add_tools(zoom, wheel, ResetTool())
    plot.toolbar.active_drag, plot.toolbar.active_scroll = zoom, wheel
    if over_time:
        plot.add_tools(CrosshairTool(overlay=time_line))
    _dress(plot, ax)
    drawn = _areas(plot, ax)
    for line in ax.lines:
        if line.get_visible():
            drawn += _curve(plot, ax, line, over_time, sources)
    for text in ax.texts:
        _label(plot, ax, text)
    for glyph, name, column in drawn:
        if name:
            value = f"@{column}{{0.0000}}"
            tips = [(name, f"{value} at @x{{0.000}} s" if over_time else f"@x{{0.0000}}, {value}" if column else " ")]
            mode = "vline" if column and over_time else "mouse"
            plot.add_tools(HoverTool(renderers=[glyph], tooltips=tips, mode=mode, show_arrow=False, limit=1))
    return plot


def _refuse_others(ax: Axes) -> None:
    """Raise RecordingError if axes contain elements that the page cannot show."""
    from matplotlib.collections import LineCollection, PathCollection, PolyCollection

    known = (LineCollection, PathCollection, PolyCollection)
    others = [*ax.images, *(other for other in ax.collections if not isinstance(other, known))]
    if ax.name != "rectilinear" or others:
        kind = type(others[0]).__name__ if others else f"{ax.name} axes"
        raise RecordingError("no interactive page can show it. Write a .png or .pdf", kind)


def _dress(plot: Any, ax: Axes) -> None:
    """Copy title, ticks and grid from axes to a plot."""
    from bokeh.models import FixedTicker
    from matplotlib.text import Text

    titles = (ax.get_title(location) for location in ("left", "center", "right"))
    title = next(filter(None, titles), "")
    for text in ax.get_children():
        if not (isinstance(text, Text) and title and text.get_text() == title):
            continue
        plot.title.text_font_size = f"{_PX * float(text.get_fontsize()):.0f}px"
        plot.title.text_font_style = "bold" if text.get_fontweight() == "bold" else "normal"
    plot.grid.grid_line_color = "#DDDDDD"
    for axis, grid, own in ((plot.xaxis, plot.xgrid, ax.xaxis), (plot.yaxis, plot.ygrid, ax.yaxis)):
        grid.visible = any(line.get_visible() for line in own.get_gridlines())
        ticks = own.get_ticklabels()
        shown = [(float(at), text.get_text()) for at, text in zip(own.get_ticklocs(), ticks, strict=False)]
        axis.axis_label = own.get_label_text() or None
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_font_size = axis.major_label_text_font_size = f"{_PX * 8.0:.0f}px"
        axis.minor_tick_line_color = None
        axis.axis_label_standoff = 1
        if type(own.get_major_locator()).__name__ == "FixedLocator":
            axis.ticker = FixedTicker(ticks=[at for at, _ in shown])
            axis.major_label_overrides = dict(shown)
        elif own is ax.xaxis and ax.bbox.width < NARROW * ax.figure.canvas.figure.bbox.width:
            axis[0].ticker.desired_num_ticks = 4
        if own is ax.xaxis and not any(text.get_visible() and text.get_text() for text in ticks):
            axis.major_label_text_font_size = "0px"


def _data(ax: Axes, artist: Artist, points: Any) -> Array:
    """Return points (n, 2) of an artist in the data coordinates of its axes."""
    points = np.asarray(points, dtype=np.float64).reshape(-1, 2)
    transform = artist.get_transform()
    if transform == ax.transData:
        return points
    return np.asarray(ax.transData.inverted().transform(transform.transform(points)))


def _colour(colour: Any) -> tuple[str, float]:
    """Return a colour in bokeh's format, and its opacity."""
    from matplotlib.colors import to_hex, to_rgba

    return to_hex(colour), float(to_rgba(colour)[3])


def _name(artist: Artist) -> str:
    """Return the label of an artist for the tooltip; labels with a leading ``_`` are not in the legend."""
    label = str(artist.get_label())
    return "" if label.startswith(("_child", "_nolegend_")) else label.removeprefix("_")


class _Sources:
    """Data tables of a page; curves with the same x share a table."""

    def __init__(self) -> None:
        self._tables: dict[bytes, Any] = {}

    def add(self, points: Array) -> tuple[Any, str]:
        """Add points (n, 2) to a table; return the table and the name of the y column; the x column is ``x``."""
        from bokeh.models import ColumnDataSource

        x, y = np.ascontiguousarray(points[:, 0]), points[:, 1]
        table = self._tables.setdefault(x.tobytes(), ColumnDataSource({"x": x}))
        # Single precision is enough for a screen. Time needs double precision for milliseconds after an hour.
        return table, table.add(y.astype(np.float32), f"y{len(table.data)}")


def _curve(plot: Any, ax: Axes, line: Line2D, over_time: bool, sources: _Sources) -> list[tuple[Any, str, str]]:
    """Draw a curve, or a line across the axes; return glyph, name and column of its values."""
    from bokeh.models.annotations import Span

    colour, _ = _colour(line.get_color())
    look: dict[str, Any] = {
        "line_color": colour,
        "line_width": _PX * line.get_linewidth(),
        "line_alpha": 1.0 if line.get_alpha() is None else line.get_alpha(),
        "line_dash": _dash(line),
    }
    x, y = np.asarray(line.get_xdata(), dtype=np.float64), np.asarray(line.get_ydata(), dtype=np.float64)
    for across, values, dimension in (
        (ax.get_yaxis_transform(), y, "width"),
        (ax.get_xaxis_transform(), x, "height"),
    ):
        if line.get_transform() == across and len(values) == 2 and values[0] == values[1]:
            plot.add_layout(Span(location=float(values[0]), dimension=dimension, level="underlay", **look))
            return []
    points = _data(ax, line, np.column_stack([x, y]))
    source, column = sources.add(points)
    drawn = []
    if line.get_linestyle() != "None":
        drawn.append((plot.line("x", column, source=source, **look), _name(line), column))
    marker = _MARKERS.get(str(line.get_marker()))
    # Markers would only thicken a curve over time.
    if marker and not (over_time and drawn and len(x) > 2):
        every = line.get_markevery()
        points = points[slice(None, None, every) if isinstance(every, int) else slice(None)]
        source, column = sources.add(points)
        size = _PX * line.get_markersize() * (0.5 if line.get_marker() == "." else 1.0)
        dots = plot.scatter("x", column, source=source, marker=marker, size=size, color=colour)
        drawn = drawn or [(dots, _name(line), column)]
    return drawn


def _dash(line: Any) -> list[int]:
    # matplotlib has no public attribute for dash lengths in points.
    dashes: Sequence[float] = getattr(line, "_dash_pattern", (0.0, None))[1] or ()
    return [max(1, round(_PX * length)) for length in dashes]


def _areas(plot: Any, ax: Axes) -> list[tuple[Any, str, str]]:
    """Draw filled areas behind the curves; return glyph, name and column of the values for the tooltip."""
    from bokeh.models import ColumnDataSource
    from bokeh.models.annotations import BoxAnnotation
    from matplotlib.collections import LineCollection, PathCollection

    drawn: list[tuple[Any, str, str]] = []
    for patch in ax.patches:
        colour, alpha = _colour(patch.get_facecolor())
        corners = _data(ax, patch, _corners(patch))
        if patch.get_transform() != ax.transData and _spans(ax, patch):
            left, right = float(corners[:, 0].min()), float(corners[:, 0].max())
            look: dict[str, Any] = {"fill_color": colour, "fill_alpha": alpha, "level": "underlay"}
            plot.add_layout(BoxAnnotation(left=left, right=right, **look))
            continue
        edge, opacity = _colour(patch.get_edgecolor())
        glyph = plot.patch(
            *corners.T, fill_color=colour, fill_alpha=alpha, line_color=edge, line_alpha=opacity, line_width=1.0
        )
        drawn.append((glyph, _name(patch), ""))
    for collection in ax.collections:
        faces, edges = collection.get_facecolor(), collection.get_edgecolor()
        if isinstance(collection, PathCollection):
            points = np.asarray(collection.get_offsets(), dtype=np.float64)
            size = _PX * float(np.sqrt(collection.get_sizes()[0]))
            glyph = plot.scatter(*points.T, size=size, color=_colour(faces[0])[0])
            drawn.append((glyph, _name(collection), "y"))
            continue
        shapes = [_data(ax, collection, path.vertices) for path in collection.get_paths()]
        if not shapes:
            continue
        source = ColumnDataSource({"x": [shape[:, 0] for shape in shapes], "y": [shape[:, 1] for shape in shapes]})
        if isinstance(collection, LineCollection):
            colours = [_colour(edges[k % len(edges)]) for k in range(len(shapes))]
            source.add([colour for colour, _ in colours], "colour")
            source.add([alpha for _, alpha in colours], "alpha")
            width = _PX * float(np.atleast_1d(collection.get_linewidth())[0])
            glyph = plot.multi_line("x", "y", source=source, color="colour", alpha="alpha", line_width=width)
        else:
            colour, alpha = _colour(faces[0]) if len(faces) else ("#FFFFFF", 0.0)
            has_hatch = collection.get_hatch()
            hatch = {"hatch_pattern": "/", "hatch_color": "#555555", "hatch_alpha": 0.6} if has_hatch else {}
            glyph = plot.patches("x", "y", source=source, fill_color=colour, fill_alpha=alpha, line_color=None, **hatch)
        drawn.append((glyph, _name(collection), ""))
    return drawn


def _corners(patch: Any) -> Array:
    return np.asarray(patch.get_patch_transform().transform(patch.get_path().vertices))


def _spans(ax: Axes, patch: Any) -> bool:
    """Return whether a patch covers the whole height of its axes."""
    heights = ax.transAxes.inverted().transform(patch.get_transform().transform(patch.get_path().vertices))[:, 1]
    return bool(heights.min() <= 1e-6 and heights.max() >= 1.0 - 1e-6)


_TURNED = {"top": "right", "bottom": "left", "right": "bottom", "left": "top", "center": "center"}
"""Alignment of a text that is turned to the left, to the alignment before it was turned."""


def _label(plot: Any, ax: Axes, text: Text) -> None:
    """Write a text at its position in the data."""
    from bokeh.models.annotations import Label

    if not text.get_text().strip():
        return
    ((x, y),) = _data(ax, text, [text.get_position()])
    box = text.get_bbox_patch()
    background = {"background_fill_color": "#FFFFFF", "background_fill_alpha": 0.8} if box is not None else {}
    align: str = text.get_horizontalalignment()
    baseline: str = text.get_verticalalignment()
    if text.get_rotation() == 90.0:
        # Bokeh aligns a text before it turns it, matplotlib after that.
        align, baseline = _TURNED[baseline], _TURNED[align]
    plot.add_layout(
        Label(
            x=float(x),
            y=float(y),
            text=text.get_text(),
            text_align=align,
            text_baseline={"center": "middle", "baseline": "alphabetic"}.get(baseline, baseline),
            angle=np.deg2rad(text.get_rotation()),
            text_font_size=f"{_PX * float(text.get_fontsize()):.0f}px",
            text_color=_colour(text.get_color())[0],
            **background,
        )
    )


def _words(figure: Figure, text: Text) -> str:
    """Return a text of the figure as HTML at its position."""
    bold = ";font-weight:bold" if text.get_fontweight() == "bold" else ""
    mono = " mono" if "monospace" in text.get_fontfamily() else ""
    look = f"font-size:{_PX * float(text.get_fontsize()):.0f}px;color:{_colour(text.get_color())[0]}{bold}"
    position = _place(figure, text.get_window_extent())
    return f'<div class="words{mono}" style="{position};{look}">{escape(text.get_text())}</div>'


def _key(figure: Figure, legend: Any) -> str:
    """Return a legend as HTML at its position."""
    # matplotlib before 3.7 uses another attribute name.
    handles = getattr(legend, "legend_handles", None) or legend.legendHandles
    entries = [
        f"<span>{_sample(handle)} {escape(text.get_text())}</span>"
        for handle, text in zip(handles, legend.get_texts(), strict=True)
    ]
    size = f"font-size:{_PX * legend.get_texts()[0].get_fontsize():.0f}px" if entries else ""
    return f'<div class="key" style="{_place(figure, legend.get_window_extent())};{size}">{"".join(entries)}</div>'


def _sample(handle: Any) -> str:
    """Return a sample of a curve or of an area for the legend, as SVG."""
    from matplotlib.lines import Line2D

    if isinstance(handle, Line2D):
        colour, dash = _colour(handle.get_color())[0], " ".join(map(str, _dash(handle)))
        mark = f'stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"'
        inner = f'<line x1="0" y1="5" x2="26" y2="5" {mark}/>' if handle.get_linestyle() != "None" else ""
        if handle.get_marker() not in (None, "None", "", " ") and not inner:
            inner = f'<circle cx="13" cy="5" r="3" fill="{colour}"/>'
    else:
        colour, alpha = _colour(handle.get_facecolor())
        inner = f'<rect width="26" height="9" fill="{colour}" fill-opacity="{alpha:.2f}"/>'
        if handle.get_hatch():
            inner += "".join(f'<line x1="{x}" y1="9" x2="{x + 8}" y2="0" stroke="#555"/>' for x in (0, 8, 16))
    return f'<svg width="26" height="10">{inner}</svg>'
