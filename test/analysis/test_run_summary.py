"""Metrics collected block by block equal those of the whole run, of a bag and of a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recording_support import standing

from bipedsim.analysis import RunSummary, controller_figures, summary
from bipedsim.analysis.loading import gather
from bipedsim.cli.main import main
from bipedsim.recording import Recording, load, recording


def walked(n: int = 4000) -> Recording:
    """Return a run in which every input of the metrics changes."""
    rng = np.random.default_rng(4)
    run = standing(n)
    run.wrench[:, :, 2] += rng.standard_normal((n, 2))
    run.wrench[1500:1600, 1] = 0.0
    run.joint_velocity[2500:2700, 0] = 0.1
    run.cop += 0.06 * rng.standard_normal(run.cop.shape)
    run.mode[1500:1600, 1] = 0
    run.sliding[3000:3010, 0] = True
    run.base_pose[:] = run.odometry[:] = [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
    run.odometry[:, 0] += 1e-5 * np.arange(n)
    run.odometry[:, 3:] = [0.0, 0.0, np.sin(0.1), np.cos(0.1)]
    run.odometry[:7] = np.nan
    run.readouts = {"margin": rng.standard_normal(n), "silent": np.full(n, np.nan)}
    run.gave_up_at = 3.5
    return run


def test_blocks_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = walked()
    whole = {"robot": "twofoot", **summary(run), **controller_figures(run)}
    assert whole["standing_s"] > 0.0
    assert whole["base_orientation_error_rad"] == pytest.approx(0.2)
    run.save(tmp_path / "run.npz")
    monkeypatch.setattr(load, "ROWS", 301)
    blocks = gather(tmp_path / "run.npz", RunSummary).figures()
    assert blocks == whole


def test_what_was_measured_before_the_first_step_is_no_change() -> None:
    """The rows of a bag begin at t = 0. Those of a run without ROS begin after the first step."""
    run = standing(100)
    run.mode[0], run.wrench[0] = 0, 0.0
    figures = summary(run)
    assert figures["state_changes"] == summary(run.rows(slice(1, None)))["state_changes"] == 0
    run.mode[50:, 1] = 0
    assert summary(run)["state_changes"] == 1


def test_a_fall_in_one_block_is_that_of_the_run() -> None:
    """Each block of a bag contains its own falls."""
    figures = RunSummary()
    for gave_up_at in (np.nan, 1.5, np.nan, 3.5):
        block = standing(10)
        block.gave_up_at = gave_up_at
        figures.add(block)
    assert figures.figures()["gave_up_at_s"] == 1.5


def test_a_stop_that_only_the_bag_knows_is_in_the_verdict() -> None:
    stood = {"verdict": "stood 2 s, did not fall, under imu lost", "fell_at_s": None, "faults": ["imu lost"]}
    for stopped, said in ((np.nan, ""), (1.5, ", but the controller was stopped at t = 1.500 s")):
        figures = RunSummary()
        rows = standing(10)
        rows.gave_up_at, rows.statistics = stopped, stood
        figures.add(rows)
        assert figures.figures()["verdict"] == stood["verdict"] + said


def test_the_command_prints_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = walked()
    run.notes = ("something to know",)
    run.save(tmp_path / "run.npz")
    assert main(["summary", str(tmp_path / "run.npz")]) == 0
    out = capsys.readouterr().out
    assert "duration                   3.999 s" in out
    assert "note: something to know" in out
    run.readouts["margin"][3] = np.inf
    run.save(tmp_path / "run.npz")
    assert main(["summary", "--json", str(tmp_path / "run.npz")]) == 0

    def refuse(constant: str) -> Any:
        raise AssertionError(f"{constant} is no JSON")

    figures = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert figures["ticks"] == 4000
    assert figures["readouts"]["margin"]["max"] is None


def test_an_empty_run_has_no_figures() -> None:
    figures = RunSummary()
    figures.add(recording.Recording.empty(0, ["a"], ["left"]))
    assert figures.figures()["ticks"] == 0
