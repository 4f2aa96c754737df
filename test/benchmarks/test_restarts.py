"""Defects that the campaign counts after a restart."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from benchmark_modules import benchmark

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")


@pytest.fixture(scope="module")
def restarts() -> ModuleType:
    """Return the part of the campaign."""
    return benchmark("campaign/restarts")


def row(**changes: Any) -> dict[str, Any]:
    good = {"clock": "lock_step", "process": "controller_node", "data_s": 0.1, "silent_s": 1.0, "gap_s": 3.2}
    return {**good, **changes}


def test_times_are_those_after_and_between_others(restarts: ModuleType) -> None:
    times = [1.0, 1.5, 4.0, 4.25]
    assert restarts.first_after(times, 1.5) == 4.0
    assert restarts.first_after(times, 4.25) is None
    assert restarts.longest_silence(times, 1.25, 4.125) == 2.5
    assert restarts.longest_silence(times, 4.25, 9.0) == 4.75
    assert restarts.longest_silence([], 1.0, 3.0) == 2.0


@pytest.mark.parametrize(
    ("changes", "faults"),
    [
        ({}, 0),
        ({"data_s": None}, 1),
        ({"data_s": 3.5, "silent_s": 2.5}, 2),
        ({"gap_s": None}, 1),
        ({"gap_s": None, "process": "echo"}, 0),
        ({"silent_s": None, "process": "sim_node"}, 0),
    ],
)
def test_late_data_silence_and_unreported_gaps_are_defects(
    restarts: ModuleType, changes: dict[str, Any], faults: int
) -> None:
    assert len(restarts.faults_of(row(**changes))) == faults


def test_the_reader_reports_data_after_a_silence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    echo = benchmark("campaign/echo")
    reader, now = echo.Reader(), iter([10.0, 10.5, 12.0, 12.5])
    monkeypatch.setattr(echo.time, "time", lambda: next(now))
    for _ in range(4):
        reader.read("a message")
    captured = capsys.readouterr()
    assert captured.out.count("a message") == 4
    assert np.allclose([float(t) for t in re.findall(r"data ([\d.]+)", captured.err)], [10.0, 12.0])
