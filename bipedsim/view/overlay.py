"""Runs of one robot over each other in the panels of a picture, and in what their figures differ."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bipedsim.analysis import difference_lines, differences, sample_rate
from bipedsim.errors import RecordingError
from bipedsim.recording import Recording, between, without_plan
from bipedsim.view.panels import USUAL_PANELS, panel_names
from bipedsim.view.plots import Page
from bipedsim.view.sheet import DOT, LIMIT_COLOUR, PAGE, TOTAL_COLOUR, drawn, note_above, picture, small_title
from bipedsim.view.thinned import columns_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D


DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)), (0, (6, 1.5, 1, 1.5, 1, 1.5)))
"""Of the first run, the second, and so on."""
BARS = {"modes": "contact modes are bars, which hide each other"}
"""Panels that runs cannot share, and why."""
MOST_ROWS = 60
"""Rows of the table below the picture."""
_ROW = 0.15
"""Height of a line of text [in]."""
_WIDTH = 170
"""Letters in a line of text."""


class NothingCommonError(RecordingError):
    """Runs have no panel in common.

    Attributes:
        notes: Why, a line each.
    """

    def __init__(self, notes: Sequence[str]) -> None:
        super().__init__("; ".join(["no panel that all runs have", *notes]))
        self.notes = tuple(notes)


def overlay(
    runs: Mapping[str, Recording],
    path: Path | str,
    panels: Sequence[str] = USUAL_PANELS,
    summaries: Sequence[Mapping[str, Any]] = (),
) -> list[str]:
    """Draw runs over each other, colours as :func:`plot` has them and a dash for each run; return what to read.

    That is the table of the figures that differ, and what was left out or does not fit, a line each; both are below the
    picture, too.

    Args:
        runs: Name to run, two to five of the same robot.
        path: .png, .pdf, .svg or .html.
        panels: Which of :data:`PANELS`, in any order, or ``all``; those that a run lacks are left out.
        summaries: The figures of each run, with the keys of summary.json.

    Raises:
        UnknownNameError: No such panel.
        RecordingError: The runs are of different robots or have no time in common, there is no panel that all have, or
            the picture cannot be written.
    """
    comparison = Comparison(runs, panels)
    notes = [f"note: {note}" for note in comparison.notes]
    table = difference_lines(differences(summaries), list(runs))
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
    """Panels of runs over each other, on any figure; see :func:`overlay`.

    Attributes:
        notes: What is left out, or does not fit, a line each.
        size: Width and height [in].
        title: What was run.

    Raises:
        UnknownNameError: No such panel.
        RecordingError: See :func:`overlay`.
    """

    def __init__(self, runs: Mapping[str, Recording], panels: Sequence[str] = USUAL_PANELS) -> None:
        if not 2 <= len(runs) <= len(DASHES):
            raise RecordingError(f"{len(runs)} runs: from 2 to {len(DASHES)} can be told apart over each other")
        asked = panel_names(panels)
        self.notes: list[str] = []
        self._runs = self._together(runs, asked)
        self._panels: dict[str, tuple[Page, list[dict[tuple[str, int], Axes]]]] = {}
        for name in asked:
            self._add(name, given=panels is not USUAL_PANELS)
        if not self._panels:
            raise NothingCommonError(self.notes)
        # Each page has room for a title, which is drawn once.
        self._heights = [page.size[1] - 0.6 for page, _ in self._panels.values()]
        self.size = (PAGE, sum(self._heights) + 1.0)
        whose = next(iter(self._runs.values())).robot or "unknown robot"
        self.title = DOT.join([whose, *self._runs])

    def _together(self, runs: Mapping[str, Recording], panels: Sequence[str]) -> dict[str, Recording]:
        """Return the runs over the time that they share, joints in the same order; note what differs."""
        name, first = next(iter(runs.items()))
        for other, run in runs.items():
            if not len(run):
                raise RecordingError(f"{other}: the recording has no rows: there is nothing to draw")
            if run.robot != first.robot:
                raise RecordingError(
                    f"{name} is a run of {first.robot or 'an unnamed robot'}, {other} one of "
                    f"{run.robot or 'an unnamed robot'}: only runs of one robot can be compared; draw each by itself"
                )
            if sorted(run.joint_names) != sorted(first.joint_names) or run.feet != first.feet:
                raise RecordingError(f"{name} and {other} have other joints or feet, although both say {run.robot!r}")
        rates = {other: _rate(run) for other, run in runs.items()}
        if np.ptp(list(rates.values())) > 1e-3 * rates[name]:
            self.notes.append("rates differ: " + ", ".join(f"{other} {rate:.4g} Hz" for other, rate in rates.items()))
        begin, end = max(run.t[0] for run in runs.values()), min(run.t[-1] for run in runs.values())
        spans = ", ".join(f"{other} from {run.t[0]:.6g} to {run.t[-1]:.6g} s" for other, run in runs.items())
        if end < begin:
            raise RecordingError(f"the runs have no time in common: {spans}")
        # A bag may begin a tick before a run without ROS.
        slack = 1.5 / min(rates.values())
        if any(run.t[0] < begin - slack or run.t[-1] > end + slack for run in runs.values()):
            self.notes.append(
                f"lengths differ: {spans}; drawn from {begin:.6g} to {end:.6g} s, where all are; figures are of each "
                "whole run"
            )
        self._note_columns(runs, panels)
        known = all(np.isfinite(run.sole_poses).any() for run in runs.values())
        together = {}
        for other, run in runs.items():
            cut = run.rows(between(run.t, begin, end)).in_order(first.joint_names)
            # Forces in the world and in the axes of the soles are no curves of the same thing.
            together[other] = cut if known else replace(cut, sole_poses=np.full_like(cut.sole_poses, np.nan))
        if any(run.pushes != first.pushes for run in runs.values()):
            self.notes.append(f"pushes differ: those that are marked are of {name}")
        return together

    def _note_columns(self, runs: Mapping[str, Recording], panels: Sequence[str]) -> None:
        """Note what only some of the runs have, of what the panels show."""
        have: dict[str, list[str]] = {}
        for name, run in runs.items():
            there = [column for column in columns_of(panels) if _known(getattr(run, column))]
            if "readouts" in panels or "tracking" in panels:
                there += [f"readout {readout}" for readout in without_plan(run.readouts)]
            if "objects" in panels:
                there += [f"object {one}" for one in run.objects]
            for column in there:
                have.setdefault(column, []).append(name)
        partly: dict[tuple[str, ...], list[str]] = {}
        for column, names in have.items():
            if len(names) < len(runs):
                partly.setdefault(tuple(names), []).append(column)
        self.notes += [f"only in {', '.join(names)}: {', '.join(columns)}" for names, columns in partly.items()]

    def _add(self, panel: str, given: bool) -> None:
        """Draw a panel of each run by itself; note why it is left out, where it was asked for or some run has it."""
        if panel in BARS:
            self.notes.append(f"without {panel}: {BARS[panel]}")
            return
        pages, lacking = [], {}
        for name, run in self._runs.items():
            try:
                # What never changes in one run may be other in the next one.
                pages.append(Page(run, [panel], constants=True))
            except RecordingError as error:
                lacking[name] = str(error)
        if lacking:
            if given or pages:
                whys = (
                    dict.fromkeys(lacking.values()) if not pages else [f"{name}: {lacking[name]}" for name in lacking]
                )
                self.notes.append(f"without {panel}: {'; '.join(whys)}")
            return
        each = []
        for page in pages:
            with drawn(page.size, "") as scratch:
                page.draw(scratch)
            each.append(_by_title(scratch.axes))
        self._note_axes(panel, each)
        self._panels[panel] = pages[0], each[1:]

    def _note_axes(self, panel: str, each: Sequence[dict[tuple[str, int], Axes]]) -> None:
        """Note which axes of a panel not all runs have, and which have no curves."""
        for name, axes in zip(self._runs, each, strict=True):
            lacking = [title for title in each[0] if title not in axes]
            if lacking:
                self.notes.append(f"{panel}: {name} has no {_quoted(lacking)}")
            alone = [title for title in axes if title not in each[0]]
            if alone:
                self.notes.append(f"{panel}: without {_quoted(alone)} of {name}, which the first run has not")
        bars = [title for title, ax in each[0].items() if not _curves(ax)]
        if bars:
            self.notes.append(f"{panel}: without {_quoted(bars)}: no curves, so that runs cannot lie over each other")

    def draw(self, figure: Figure | SubFigure) -> None:
        """Draw all panels, the first run's as they are and the curves of the others over it."""
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
            if said := ax.get_title("right"):
                note_above(ax, _named(first, said))
        for number, (name, theirs) in enumerate(zip(names, others, strict=True), start=1):
            for title in axes.keys() & theirs.keys():
                _copy_curves(theirs[title], axes[title], number, name)
        legends = [ax.get_legend() for ax in axes.values()]
        for legend in [*legends, *(one for part in _parts(figure) for one in part.legends)]:
            for handle in legend.get_lines() if legend is not None else ():
                if handle.get_color() != LIMIT_COLOUR:
                    handle.set_linestyle("-")


def _quoted(titles: Sequence[tuple[str, int]]) -> str:
    return ", ".join(dict.fromkeys(f"{title!r}" for title, _ in titles))


def _rate(run: Recording) -> float:
    # Of a long run some rows were left out.
    return float(run.about.get("rate") or sample_rate(run.t))


def _known(column: Any) -> bool:
    # Integers are never unknown, but for those below 0.
    return bool(np.isfinite(column).any() if column.dtype.kind == "f" else (column >= 0).any())


def _parts(figure: SubFigure) -> list[SubFigure]:
    """Return a part of a figure and all parts of it, which know of their own axes and legends only."""
    return [figure, *(part for inner in figure.subfigs for part in _parts(inner))]


def _title(ax: Axes) -> str:
    """Return the title without the figures of one run behind it."""
    return (ax.get_title() or ax.get_title("left")).partition("   (")[0].replace("\n", ", ")


def _by_title(axes: Sequence[Axes]) -> dict[tuple[str, int], Axes]:
    """Return the visible axes by title, and by number where several have the same."""
    found: dict[tuple[str, int], Axes] = {}
    for ax in axes:
        if ax.get_visible():
            title = _title(ax)
            found[title, sum(other == title for other, _ in found)] = ax
    return found


def _curves(ax: Axes) -> list[Line2D]:
    """Return what shows data, without lines across the axes."""
    return [line for line in ax.lines if line.get_transform() == ax.transData]


def _some(line: Line2D) -> int:
    """Return which points are marked: few, as they would hide the dash, but what stays in a place is a point."""
    return max(1, len(np.asarray(line.get_xdata())) // 10)


def _dress(ax: Axes) -> None:
    """Give all curves the dash of the first run; leave figures of one run out of the title."""
    for line in _curves(ax):
        line.set(linestyle=DASHES[0], markevery=_some(line))
    shown = ax.get_title() or ax.get_title("left")
    if "   (" in shown:
        small_title(ax, _title(ax))


def _copy_curves(source: Axes, target: Axes, number: int, run: str) -> None:
    """Draw the curves of ``source`` in ``target``, too, in the dash of run ``number``; both stay in sight."""
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
            markevery=_some(line),
            label=f"_{line.get_label()} {run}",
        )
    if target.get_aspect() == "auto":
        target.set(xlim=limits[0], ylim=limits[1])
    if said := source.get_title("right"):
        note_above(target, "\n".join(filter(None, (target.get_title("right"), _named(run, said)))))


def _named(run: str, notes: str) -> str:
    return "\n".join(f"{run}: {note}" for note in notes.splitlines())
