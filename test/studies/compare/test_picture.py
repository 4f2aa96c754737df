"""Axes of the picture of a comparison: where the event is, and bars that are as long as what they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.text import Text

from bipedsim.config.run import RunConfig
from bipedsim.view import sheet
from bipedsim_studies.compare.comparison import Measured, compare
from bipedsim_studies.compare.picture import DECADES, SIZE, bar_axis, draw, event_span


def test_time_is_that_of_the_event() -> None:
    t = np.linspace(0.0, 3.0, 3001)
    force = np.full_like(t, 700.0)
    assert event_span([(t, force)], 700.0) == (0.0, 3.0)
    other = force.copy()
    force[(t > 1.0) & (t < 1.2)] = 0.0
    other[(t > 1.1) & (t < 1.5)] = 900.0
    begin, end = event_span([(t, force), (t, other)], 700.0)
    assert begin == pytest.approx(0.95, abs=0.005)
    assert end == pytest.approx(1.55, abs=0.005)
    # Of a walk all of it is shown.
    force[::100] = 800.0
    assert event_span([(t, force)], 700.0) == (0.0, 3.0)


def test_bars_begin_at_zero_unless_they_are_far_apart() -> None:
    assert bar_axis([11.5, 15.0, 0.4]) == (0.0, 15.0)
    assert bar_axis([0.0, 3.0]) == (0.0, 3.0)
    assert bar_axis([0.0, 0.0]) == (0.0, 1.0)
    start, end = bar_axis([2e-3, 4.0])
    assert (start, end) == (pytest.approx(1e-3), 4.0)
    start, end = bar_axis([1e-20, 4.0])
    assert start == pytest.approx(4.0 * 10.0**-DECADES)


def test_all_that_is_written_fits() -> None:
    comparison = compare(RunConfig(scenario="drop", duration=0.4), ("one_step", "feedback_linearised", "lcp"))
    rows = {name: row for name, row in comparison.rows.items() if isinstance(row, Measured)}
    with sheet.drawn(SIZE, "") as figure:
        draw(figure, comparison, rows)
        figure.draw_without_rendering()
        # Labels of ticks beyond the ends of an axis are there and not drawn.
        ticks = {label for ax in figure.axes for label in (*ax.get_xticklabels(), *ax.get_yticklabels())}
        shown = {text for text in figure.findobj(Text) if text.get_text() and text.get_visible()} - ticks
        boxes = {text.get_text(): text.get_window_extent() for text in shown}
    broken = next(text for text in boxes if text.startswith("joints from reference"))
    assert broken.replace("\n", " ") == "joints from reference, max [rad], logarithmic"
    width, height = figure.bbox.size
    cut = [text for text, b in boxes.items() if min(b.x0, b.y0) < 0.0 or b.x1 > width or b.y1 > height]
    assert cut == []
