"""Late commands are named as the likely cause of a fall, and only then."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from bipedsim_ros.loop.late_commands import Late, LateCommands

DT = 1e-3


def at_ticks(late: np.ndarray) -> LateCommands:
    commands = LateCommands(DT)
    for tick in late:
        commands.add(tick * DT)
    return commands


@pytest.mark.parametrize(
    ("late", "count", "longest"),
    [
        (np.arange(4000, 4024), 24, 24),
        (np.arange(3001, 5000, 10), 200, 1),
        (np.r_[1000:2000, 4000:4012], 12, 12),
    ],
)
def test_a_long_gap_or_many_short_ones_explain_a_fall(late: np.ndarray, count: int, longest: int) -> None:
    commands = at_ticks(late)
    assert commands.before(5.0) == Late(count, 2.0, longest * DT)
    assert commands.explain({"fell_at_s": 5.0, "verdict": "fell"})["verdict"].startswith("fell; ")


@pytest.mark.parametrize("late", [np.zeros(0), np.arange(1000, 2000), np.arange(3001, 5000, 50), np.arange(5001, 5100)])
def test_others_do_not(late: np.ndarray) -> None:
    """They were long before, too few, or after the fall."""
    commands, outcome = at_ticks(late), {"fell_at_s": 5.0, "verdict": "fell"}
    assert commands.before(5.0) is None
    assert commands.explain(outcome) == outcome


def test_a_run_without_a_fall_needs_no_explanation() -> None:
    outcome = {"fell_at_s": None, "verdict": "stood"}
    assert at_ticks(np.arange(1000, 3000)).explain(outcome) == outcome


def test_a_reset_forgets_them() -> None:
    commands = at_ticks(np.arange(4000, 4100))
    commands.clear()
    assert commands.before(5.0) is None
