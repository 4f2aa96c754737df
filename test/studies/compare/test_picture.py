"""Axes of the figure of a comparison: time of the event, and bar lengths in proportion to the values."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.text import Annotation, Text

from bipedsim.config.run import RunConfig
from bipedsim.view import sheet
from bipedsim_studies.compare.comparison import MeasuredRun, compare
from bipedsim_studies.compare.picture import DECADES, LINE, PERIOD, SIZE, bar_axis, dashes, draw, event_span


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


def test_curves_in_one_place_all_show() -> None:
    """Of k curves in one place each is on top in a k-th of the length; one apart, or for a moment, is solid."""
    t = np.linspace(0.0, 1.0, 1001)
    wave, spike = np.sin(6.0 * t), np.where(np.abs(t - 0.5) < 0.01, 3.0, 0.0)
    lacking = np.where(t < 0.1, np.nan, wave)
    made = dashes({"a": wave, "b": wave + spike, "apart": wave + 1.0, "c": lacking, "short": wave[1:]})
    assert made["a"] == made["apart"] == made["short"] == (0.0, ())
    length = np.linspace(0.0, PERIOD / LINE, 3001, endpoint=False) + 1e-9
    top = np.zeros(len(length), dtype=int)
    for i, name in enumerate("abc"):
        offset, pattern = made[name]
        assert offset == 0.0
        assert not pattern or sum(pattern) == pytest.approx(PERIOD / LINE)
        top[length < (pattern[0] if pattern else np.inf)] = i
    np.testing.assert_allclose(np.bincount(top) / len(top), 1.0 / 3.0, atol=1e-3)


def test_all_that_is_written_fits() -> None:
    comparison = compare(RunConfig(scenario="drop", duration=0.4), ("one_step", "feedback_linearised", "lcp"))
    rows = {name: row for name, row in comparison.rows.items() if isinstance(row, MeasuredRun)}
    with sheet.drawn(SIZE, "") as figure:
        draw(figure, comparison, rows)
        figure.draw_without_rendering()
        # Labels of ticks beyond the ends of an axis are there and not drawn.
        ticks = {label for ax in figure.axes for label in (*ax.get_xticklabels(), *ax.get_yticklabels())}
        shown = {text for text in figure.findobj(Text) if text.get_text() and text.get_visible()} - ticks
        boxes = {text.get_text(): text.get_window_extent() for text in shown}
        numbers = [text.get_window_extent() for text in shown if isinstance(text, Annotation)]
    assert any("deviation from one_step [rad]; soft contact sinks in first" in text for text in boxes)
    broken = next(text for text in boxes if text.startswith("joints from reference"))
    assert broken.replace("\n", " ") == "joints from reference, max [rad], logarithmic"
    width, height = figure.bbox.size
    cut = [text for text, b in boxes.items() if min(b.x0, b.y0) < 0.0 or b.x1 > width or b.y1 > height]
    assert cut == []
    laid_over = [(a, b) for i, a in enumerate(numbers) for b in numbers[:i] if a.overlaps(b)]
    assert not laid_over
    # lcp and the reference have the same value, which a bar of zero length shows.
    assert any(text == "0" or text.endswith("(below the axis)") for text in boxes)
    assert sum("residual" in text and text[0].isdigit() for text in boxes) > 0
