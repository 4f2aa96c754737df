"""Axes of the picture of a comparison: where the event is, and bars that are as long as what they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from bipedsim_studies.compare.picture import DECADES, bar_axis, event_span


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
