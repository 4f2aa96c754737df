"""The benchmark of policies as nodes: its criteria for a reply in time."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from benchmark_modules import benchmark


@pytest.fixture(scope="module")
def policy_node() -> ModuleType:
    """Return the benchmark."""
    return benchmark("policy_node")


def test_a_command_is_in_time_that_the_next_step_follows(policy_node: ModuleType) -> None:
    """Answers to the states at 0, 20, ... 80 ms, in the row of the next step. The answer to 60 ms is missing."""
    setpoint = np.full((101, 6, 2), np.nan)
    for row, value in ((1, 1.0), (21, 2.0), (44, 3.0), (82, 4.0)):
        setpoint[row:] = value
    whole = SimpleNamespace(t=np.arange(101) * 1e-3, setpoint=setpoint)
    found = policy_node.timing(whole, 20)
    assert (found.commands, found.in_time, found.worst_ms, found.not_recorded) == (5, 2, 20.0, 0)
    gaps = np.delete(np.arange(101), [50, 51])
    assert policy_node.timing(SimpleNamespace(t=whole.t[gaps], setpoint=setpoint[gaps]), 20).not_recorded == 2


def test_velocities_share_the_time(policy_node: ModuleType) -> None:
    asked = policy_node.schedule(("stand", "turn 0.5 rad/s"), 30.0)
    assert asked == [{"at": 0.0, "vx": 0.0, "vy": 0.0, "wz": 0.0}, {"at": 15.0, "vx": 0.0, "vy": 0.0, "wz": 0.5}]
