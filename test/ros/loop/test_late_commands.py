"""Late commands are named as the likely cause of a fall, and only then."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from bipedsim_ros.loop.late_commands import LateCommands

DT = 1e-3


def verdict(late: np.ndarray, fell_at: float | None = 5.0) -> str:
    commands = LateCommands(DT)
    for tick in late:
        commands.add(tick * DT)
    return str(commands.explain({"fell_at_s": fell_at, "verdict": "fell"})["verdict"])


@pytest.mark.parametrize(
    ("late", "counted"),
    [
        (np.arange(4000, 4024), "24 in the 2 s before, at most 24 ms"),
        (np.arange(3001, 5000, 10), "200 in the 2 s before, at most 1 ms"),
        (np.r_[1000:2000, 4000:4012], "12 in the 2 s before, at most 12 ms"),
    ],
)
def test_a_long_gap_or_many_short_ones_explain_a_fall(late: np.ndarray, counted: str) -> None:
    assert counted in verdict(late)


@pytest.mark.parametrize("late", [np.zeros(0), np.arange(1000, 2000), np.arange(3001, 5000, 50), np.arange(5001, 5100)])
def test_what_was_long_before_or_short_or_after_does_not(late: np.ndarray) -> None:
    assert verdict(late) == "fell"


def test_a_run_without_a_fall_needs_no_explanation() -> None:
    assert verdict(np.arange(1000, 3000), None) == "fell"


def test_a_reset_forgets_them() -> None:
    commands = LateCommands(DT)
    for tick in range(4000, 4100):
        commands.add(tick * DT)
    commands.clear()
    assert commands.explain({"fell_at_s": 5.0, "verdict": "fell"})["verdict"] == "fell"
