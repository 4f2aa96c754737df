"""What pictures of runs show of objects."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from bipedsim.errors import RecordingError
from bipedsim.recording import Recording
from bipedsim.view import plot
from bipedsim.view.plots import MOST_OBJECTS, _draw_objects


def run_with(count: int) -> Recording:
    """Return half a second with balls that roll, each faster than the one before."""
    recording = Recording.empty(50, ["hip"], ["left"])
    recording.t[:] = 0.01 * np.arange(50)
    recording.wrench[:] = 0.0
    for i in range(count):
        states = np.zeros((50, 13))
        states[:, 0], states[:, 2], states[:, 8] = (i + 1.0) * recording.t, 0.1, -(i + 1.0)
        recording.objects[f"ball_{i}"] = states
    return recording


@pytest.mark.parametrize("count", [1, MOST_OBJECTS + 2])
def test_objects_are_drawn_over_time_with_names_and_units(count: int) -> None:
    figure, recording = Figure().subfigures(1, 1), run_with(count)
    _draw_objects(figure, recording)
    assert [ax.get_title() for ax in figure.axes] == ["x, forward [m]", "height z [m]", "speed [m/s]"]
    shown = min(count, MOST_OBJECTS)
    for ax, at in zip(figure.axes, (0.49, 0.1, 1.0), strict=True):
        assert len(ax.lines) == shown
        assert ax.lines[0].get_ydata()[-1] == pytest.approx(at)
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names[0].startswith("ball_0")
    assert names[-1] == f"ball_{shown - 1}" + (" (and 2 more)" if count > shown else "")


def test_the_panel_is_left_out_where_there_are_none(tmp_path: Path) -> None:
    none = run_with(0)
    with pytest.raises(RecordingError, match="no objects"):
        plot(none, tmp_path / "none.png", ["objects"])
    with pytest.raises(RecordingError, match=r"no readouts.*no objects"):
        plot(none, tmp_path / "none.png", ["readouts", "objects"])
    plot(run_with(1), tmp_path / "some.png", ["readouts", "objects"])
    assert (tmp_path / "some.png").stat().st_size > 5_000
