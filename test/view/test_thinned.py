"""Long runs, thinned for a figure: every extreme stays, and rows are unchanged."""

from __future__ import annotations

import numpy as np
import pytest
from recording_support import standing

from bipedsim.recording import COLUMNS
from bipedsim.view import Thinned, plot, thinned


def test_what_is_short_is_left_alone() -> None:
    run = standing(50)
    gathered = Thinned()
    for first in range(0, 50, 20):
        gathered.add(run.rows(slice(first, first + 20)))
    out = gathered.recording()
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(out, name), getattr(run, name))
    assert out.notes == ()


def test_of_what_is_long_the_extremes_are_kept(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thinned, "MOST", 4000)
    monkeypatch.setattr(thinned, "INTERVALS", 40)
    rng = np.random.default_rng(0)
    run = standing(40_000)
    run.wrench += rng.standard_normal(run.wrench.shape)
    run.joint_effort += rng.standard_normal(run.joint_effort.shape)
    run.readouts = {"margin": rng.standard_normal(len(run))}
    run.mode[17_001, 1] = 3
    gathered = Thinned()
    for first in range(0, len(run), 3000):
        gathered.add(run.rows(slice(first, first + 3000)))
    out = gathered.recording()
    assert len(out) < 4000
    rows = np.searchsorted(run.t, out.t)
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(out, name), getattr(run, name)[rows])
    for curves in ("wrench", "joint_effort"):
        kept, all_of_it = getattr(out, curves)[..., :3], getattr(run, curves)[..., :3]
        np.testing.assert_array_equal(kept.max(axis=0), all_of_it.max(axis=0))
        np.testing.assert_array_equal(kept.min(axis=0), all_of_it.min(axis=0))
    assert 17_001 in rows
    assert (out.t[0], out.t[-1]) == (run.t[0], run.t[-1])
    assert f"drawn from {len(out)} of 40000 rows" in out.notes[0]
    assert out.about["rate"] == "1000"


def test_a_thinned_run_can_be_drawn(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thinned, "MOST", 500)
    gathered = Thinned()
    gathered.add(standing(3000))
    plot(gathered.recording(), f"{tmp_path}/run.png")
