"""Time axes: the marks are made with the axes, for any labels."""

from __future__ import annotations

from matplotlib.figure import Figure

from bipedsim.view.time_axes import is_over_time, time_axis


def test_marked_axes_and_those_that_share_their_x_axis_are_over_time() -> None:
    upper, lower = Figure().subplots(2, 1, sharex=True)
    time_axis(lower)
    assert is_over_time(upper)
    assert is_over_time(lower)
    assert lower.get_xlabel()
    assert not upper.get_xlabel()


def test_a_label_alone_marks_nothing_and_a_mark_needs_no_label() -> None:
    first, second, third = Figure().subplots(1, 3)
    third.set(xlabel="time of a step [s]", xlim=(0.0, 1.0))
    for ax in (first, second):
        ax.set_xlim(0.0, 1.0)
    time_axis(first, second, text="")
    assert [is_over_time(ax) for ax in (first, second, third)] == [True, True, False]
