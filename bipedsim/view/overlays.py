"""Compare runs of one robot: overlay their curves in the panels of a plot, and list differences in their metrics."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bipedsim.analysis import aligned, difference_lines, differences, sample_rate
from bipedsim.errors import RecordingError
from bipedsim.recording import Recording, between, without_plan
from bipedsim.view.palette import LIMIT_COLOUR, TOTAL_COLOUR
from bipedsim.view.panels import USUAL_PANELS, panel_names
from bipedsim.view.plots import PanelPlot
from bipedsim.view.settings import differing_settings
from bipedsim.view.sheet import DOT, PAGE, drawn, note_above, picture, small_title, without_metrics
from bipedsim.view.thinned import columns_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D


DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)), (0, (6, 1.5, 1, 1.5, 1, 1.5)))
"""Line styles of the first run, the second, and so on."""
BARS = {"modes": "contact modes are bars, which would cover each other"}
"""Panels that cannot show several runs, and the reason."""
MOST_ROWS = 60
"""Maximum number of rows in the table below the plot."""
MOST_SETTINGS = 3
"""Maximum number of differing settings in the title."""
_ROW = 0.15
"""Height of a line of text [in]."""
_WIDTH = 170
"""Characters per line of text."""


class NothingCommonError(RecordingError):
    """Error for runs without a common panel.

    Attributes:
        notes: Reasons, one per line.
    """

    def __init__(self, notes: Sequence[str]) -> None:
        super().__init__("; ".join(["the runs have no panel in common", *notes]))
        self.notes = tuple(notes)


def overlay(
    runs: Mapping[str, Recording],
    path: Path | str,
    panels: Sequence[str] = USUAL_PANELS,
    summaries: Sequence[Mapping[str, Any]] = (),
) -> list[str]:
    """Plot runs over each other, with the colours of :func:`plot` and a line style for each run.

    Args:
        runs: Name to run, two to five runs of the same robot.
        path: .png, .pdf, .svg or .html.
        panels: Some of :data:`PANELS`, in any order, or ``all``; panels that a run lacks are omitted.
        summaries: Metrics of each run, with the keys of summary.json.

    Returns:
        Table of the metrics that differ, then notes on omissions and differences, one per line. Both are also below
        the plot.

    Raises:
        UnknownNameError: A panel does not exist.
        RecordingError: The runs are of different robots or have no time in common, no panel is common to all, or the
            plot cannot be written.
    """
    comparison = Comparison(runs, panels)
    notes = [f"note: {note}" for note in comparison.notes]
    settings = [["settings", *runs], *([name, *row] for name, row in differing_settings(runs).items())]
    table = [*(aligned(settings) if len(settings) > 1 else ()), *difference_lines(differences(summaries), list(runs))]
    below = table if len(table) <= MOST_ROWS else [*table[:MOST_ROWS], f"and {len(table) - MOST_ROWS} more lines"]
    below = [*below, "", *(line for note in notes for line in textwrap.wrap(note, _WIDTH))]
    width, height = comparison.size
    text_height = 0.3 + _ROW * len(below)
    with picture(Path(path), (width, height + text_height), comparison.title) as figure:
        upper, lower = figure.subfigures(2, 1, height_ratios=[height, text_height], squeeze=False)[:, 0]
        comparison.draw(upper)
        size = 7.5 * min(1.0, _WIDTH / max(map(len, below)))
        lower.text(0.01, 0.98, "\n".join(below), family="monospace", fontsize=size, va="top")
    return [*table, *notes]


class Comparison:
    """Panels of runs over each other, for any figure; see :func:`overlay`.

    Attributes:
        notes: Notes on omissions and differences, one per line.
        size: Width and height [in].
        title: Robot, and names of the runs with the settings that differ.

    Raises:
        UnknownNameError: A panel does not exist.
        RecordingError: See :func:`overlay`.
    """

    def __init__(self, runs: Mapping[str, Recording], panels: Sequence[str] = USUAL_PANELS) -> None:
        if not 2 <= len(runs) <= len(DASHES):
            raise RecordingError(f"a comparison takes 2 to {len(DASHES)}", f"{len(runs)} runs")
        requested = panel_names(panels)
        self.notes: list[str] = []
        self._runs = self._aligned(runs, requested)
        self._panels: dict[str, tuple[PanelPlot, list[dict[tuple[str, int], Axes]]]] = {}
        for name in requested:
            self._add(name, requested=panels is not USUAL_PANELS)
        if not self._panels:
            raise NothingCommonError(self.notes)
        # The height of each plot includes a title, which is drawn only once here.
        self._heights = [page.size[1] - 0.6 for page, _ in self._panels.values()]
        self.size = (PAGE, sum(self._heights) + 1.0)
        robot = next(iter(self._runs.values())).robot or "unknown robot"
        differing = list(differing_settings(runs).items())[:MOST_SETTINGS]
        texts = {
            name: ", ".join(f"{setting} {row[i]}" for setting, row in differing) for i, name in enumerate(self._runs)
        }
        self.title = DOT.join([robot, *(f"{name} ({text})" if text else name for name, text in texts.items())])

    def _aligned(self, runs: Mapping[str, Recording], panels: Sequence[str]) -> dict[str, Recording]:
        """Return the runs over their common time, with joints in the same order; note the differences."""
        name, first = next(iter(runs.items()))
        for other, run in runs.items():
            if not len(run):
                raise RecordingError("no rows: there is nothing to draw", other)
            if run.robot != first.robot:
                raise RecordingError(
                    f"runs of {first.robot or 'an unnamed robot'} and {run.robot or 'an unnamed robot'}. Compare runs "
                    "of one robot, or plot each run separately",
                    f"{name} and {other}",
                )
            if sorted(run.joint_names) != sorted(first.joint_names) or run.feet != first.feet:
                raise RecordingError(
                    f"different joints or feet, although both name {run.robot!r}", f"{name} and {other}"
                )
        rates = {other: _rate(run) for other, run in runs.items()}
        if np.ptp(list(rates.values())) > 1e-3 * rates[name]:
            self.notes.append("rates differ: " + ", ".join(f"{other} {rate:.4g} Hz" for other, rate in rates.items()))
        begin, end = max(run.t[0] for run in runs.values()), min(run.t[-1] for run in runs.values())
        spans = ", ".join(f"{other} from {run.t[0]:.6g} to {run.t[-1]:.6g} s" for other, run in runs.items())
        if end < begin:
            raise RecordingError(f"no time in common: {spans}", " and ".join(runs))
        # A bag may begin one tick earlier than a run without ROS.
        slack = 1.5 / min(rates.values())
        if any(run.t[0] < begin - slack or run.t[-1] > end + slack for run in runs.values()):
            self.notes.append(
                f"lengths differ: {spans}; plotted from {begin:.6g} to {end:.6g} s, where all are; figures are of each "
                "whole run"
            )
        self._note_columns(runs, panels)
        known = all(np.isfinite(run.sole_poses).any() for run in runs.values())
        aligned = {}
        for other, run in runs.items():
            cut = run.rows(between(run.t, begin, end)).in_order(first.joint_names)
            # Forces in world axes and in sole axes must not be compared.
            aligned[other] = cut if known else replace(cut, sole_poses=np.full_like(cut.sole_poses, np.nan))
        if any(run.pushes != first.pushes for run in runs.values()):
            self.notes.append(f"pushes differ; the marked pushes are those of {name}")
        if any(run.changes != first.changes for run in runs.values()):
            self.notes.append(f"changed parameters differ; the marked ones are those of {name}")
        return aligned

    def _note_columns(self, runs: Mapping[str, Recording], panels: Sequence[str]) -> None:
        """Note the data for the panels that only some of the runs contain."""
        runs_by_data: dict[str, list[str]] = {}
        for name, run in runs.items():
            available = [column for column in columns_of(panels) if _known(getattr(run, column))]
            if "readouts" in panels or "tracking" in panels:
                available += [f"readout {readout}" for readout in without_plan(run.readouts)]
            if "objects" in panels:
                available += [f"object {object_name}" for object_name in run.objects]
            for column in available:
                runs_by_data.setdefault(column, []).append(name)
        partly: dict[tuple[str, ...], list[str]] = {}
        for column, names in runs_by_data.items():
            if len(names) < len(runs):
                partly.setdefault(tuple(names), []).append(column)
        self.notes += [f"only in {', '.join(names)}: {', '.join(columns)}" for names, columns in partly.items()]

    def _add(self, panel: str, requested: bool) -> None:
        """Draw a panel for each run separately; note an omission if the panel was requested or some run has it."""
        if panel in BARS:
            self.notes.append(f"without {panel}: {BARS[panel]}")
            return
        pages, missing = [], {}
        for name, run in self._runs.items():
            try:
                # A telemetry signal that is constant in one run may have another value in the next.
                pages.append(PanelPlot(run, [panel], constants=True))
            except RecordingError as error:
                missing[name] = str(error)
        if missing:
            if requested or pages:
                reasons = (
                    dict.fromkeys(missing.values()) if not pages else [f"{name}: {missing[name]}" for name in missing]
                )
                self.notes.append(f"without {panel}: {'; '.join(reasons)}")
            return
        each = []
        for page in pages:
            with drawn(page.size, "") as scratch:
                page.draw(scratch)
            each.append(_by_title(scratch.axes))
        self._note_axes(panel, each)
        self._panels[panel] = pages[0], each[1:]

    def _note_axes(self, panel: str, each: Sequence[dict[tuple[str, int], Axes]]) -> None:
        """Note the axes of a panel that not all runs have, and the axes without curves."""
        for name, axes in zip(self._runs, each, strict=True):
            missing = [title for title in each[0] if title not in axes]
            if missing:
                self.notes.append(f"{panel}: {name} has no {_quoted(missing)}")
            extra = [title for title in axes if title not in each[0]]
            if extra:
                self.notes.append(f"{panel}: without {_quoted(extra)} of {name}, which the first run lacks")
        bars = [title for title, ax in each[0].items() if not _curves(ax)]
        if bars:
            self.notes.append(f"{panel}: without {_quoted(bars)}: no curves, so runs cannot share axes")

    def draw(self, figure: Figure | SubFigure) -> None:
        """Draw all panels of the first run, and the curves of the other runs over them."""
        from matplotlib.lines import Line2D

        rows = figure.subfigures(1 + len(self._panels), 1, height_ratios=[0.35, *self._heights], squeeze=False)[:, 0]
        handles = [
            Line2D([], [], color=TOTAL_COLOUR, linestyle=dash, label=name)
            for name, dash in zip(self._runs, DASHES, strict=False)
        ]
        rows[0].legend(handles=handles, loc="center left", ncols=len(handles), handlelength=4.0)
        for row, (page, others) in zip(rows[1:], self._panels.values(), strict=True):
            page.draw(row)
            axes = _by_title([ax for part in _parts(row) for ax in part.axes])
            self._lay_over(row, axes, others)

    def _lay_over(
        self,
        figure: SubFigure,
        axes: dict[tuple[str, int], Axes],
        others: Sequence[dict[tuple[str, int], Axes]],
    ) -> None:
        first, *names = self._runs
        for ax in axes.values():
            ax.set_visible(bool(_curves(ax)))
            _dress(ax)
            if note := ax.get_title("right"):
                note_above(ax, _named(first, note))
        for number, (name, other_axes) in enumerate(zip(names, others, strict=True), start=1):
            for title in axes.keys() & other_axes.keys():
                _copy_curves(other_axes[title], axes[title], number, name)
        legends = [ax.get_legend() for ax in axes.values()]
        for legend in [*legends, *(legend for part in _parts(figure) for legend in part.legends)]:
            for handle in legend.get_lines() if legend is not None else ():
                if handle.get_color() != LIMIT_COLOUR:
                    handle.set_linestyle("-")


def _quoted(titles: Sequence[tuple[str, int]]) -> str:
    return ", ".join(dict.fromkeys(f"{title!r}" for title, _ in titles))


def _rate(run: Recording) -> float:
    # Rows of a long run are thinned, so the rate does not follow from their times.
    return float(run.about.get("rate") or sample_rate(run.t))


def _known(column: Any) -> bool:
    # Integer columns use negative values for unknown.
    return bool(np.isfinite(column).any() if column.dtype.kind == "f" else (column >= 0).any())


def _parts(figure: SubFigure) -> list[SubFigure]:
    """Return a part of a figure and all its subfigures; each of them has its own axes and legends."""
    return [figure, *(part for inner in figure.subfigs for part in _parts(inner))]


def _title(ax: Axes) -> str:
    """Return the title of axes in one line, without the metrics of a single run."""
    return without_metrics(ax).replace("\n", ", ")


def _by_title(axes: Sequence[Axes]) -> dict[tuple[str, int], Axes]:
    """Return the visible axes by title, with a number if several have the same title."""
    titled: dict[tuple[str, int], Axes] = {}
    for ax in axes:
        if ax.get_visible():
            title = _title(ax)
            titled[title, sum(other == title for other, _ in titled)] = ax
    return titled


def _curves(ax: Axes) -> list[Line2D]:
    """Return the lines that show data, without lines across the axes."""
    return [line for line in ax.lines if line.get_transform() == ax.transData]


def _marker_interval(line: Line2D) -> int:
    """Return the interval of markers: few enough to show the line style, but a constant point remains visible."""
    return max(1, len(np.asarray(line.get_xdata())) // 10)


def _dress(ax: Axes) -> None:
    """Give all curves the line style of the first run, and remove metrics of a single run from the title."""
    for line in _curves(ax):
        line.set(linestyle=DASHES[0], markevery=_marker_interval(line))
    if without_metrics(ax) != (ax.get_title() or ax.get_title("left")):
        small_title(ax, _title(ax))


def _copy_curves(source: Axes, target: Axes, number: int, run: str) -> None:
    """Copy the curves of ``source`` to ``target`` in the line style of run ``number``; extend the axis limits."""
    limits = [
        (min(a, c), max(b, d))
        for (a, b), (c, d) in zip(
            (source.get_xlim(), source.get_ylim()), (target.get_xlim(), target.get_ylim()), strict=True
        )
    ]
    for line in _curves(source):
        target.plot(
            line.get_xdata(),
            line.get_ydata(),
            color=line.get_color(),
            linewidth=line.get_linewidth(),
            alpha=line.get_alpha(),
            zorder=line.get_zorder(),
            linestyle=DASHES[number],
            marker=line.get_marker(),
            markersize=line.get_markersize(),
            markevery=_marker_interval(line),
            label=f"_{line.get_label()} {run}",
        )
    if target.get_aspect() == "auto":
        target.set(xlim=limits[0], ylim=limits[1])
    if note := source.get_title("right"):
        note_above(target, "\n".join(filter(None, (target.get_title("right"), _named(run, note)))))


def _named(run: str, notes: str) -> str:
    return "\n".join(f"{run}: {note}" for note in notes.splitlines())
