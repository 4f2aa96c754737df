"""Metrics of free objects agree with the recorded columns, for the whole recording and block by block."""

from __future__ import annotations

import numpy as np
import pytest
from recording_support import standing

from bipedsim.analysis import RunSummary, summary_lines


def test_where_it_ended_how_far_and_how_fast_it_got() -> None:
    run, rng = standing(500), np.random.default_rng(2)
    states = rng.standard_normal((500, 13))
    run.objects = {"ball": states}
    whole, blocks = RunSummary(), RunSummary()
    whole.add(run)
    for begin in range(0, 500, 130):
        blocks.add(run.rows(slice(begin, begin + 130)))
    ball = whole.figures()["objects"]["ball"]
    assert blocks.figures()["objects"] == {"ball": ball}
    assert list(ball["end_m"].values()) == states[-1, :3].tolist()
    assert ball["farthest_m"] == pytest.approx(np.sqrt(((states[:, :3] - states[0, :3]) ** 2).sum(axis=1)).max())
    assert ball["fastest_m_s"] == pytest.approx(np.sqrt((states[:, 7:10] ** 2).sum(axis=1)).max())
    (line,) = (line for line in summary_lines(whole.figures()) if line.startswith("object ball"))
    for number in (*ball["end_m"].values(), ball["farthest_m"], ball["fastest_m_s"]):
        assert f"{number:.4g}" in line


def test_without_objects_there_is_no_such_figure() -> None:
    summary = RunSummary()
    summary.add(standing(50))
    assert "objects" not in summary.figures()
