"""Steps of a walk with known timing."""

from __future__ import annotations

import numpy as np
import pytest

from bipedsim.analysis import gait_steps
from bipedsim.recording import Recording

STEP, WIDTH, SWING, DOUBLE = 0.3, 0.2, 0.4, 0.1


def walk(yaw: float = 0.0) -> Recording:
    """Return two feet that step in turn.

    The right one starts at 0.5 s, and each step ends STEP ahead of the other foot.
    """
    recording = Recording.empty(3001, ["hip"], ["left", "right"])
    recording.t[:] = 1e-3 * np.arange(3001)
    recording.weight = 100.0
    x, loaded = np.zeros((3001, 2)), np.ones((3001, 2), dtype=bool)
    for n in range(4):
        lift = round(1e3 * (0.5 + n * (SWING + DOUBLE)))
        down, foot = lift + round(1e3 * SWING), (n + 1) % 2
        loaded[lift:down, foot] = False
        x[down:, foot] = (n + 1) * STEP
    y = np.array([0.5, -0.5]) * WIDTH
    c, s = np.cos(yaw), np.sin(yaw)
    recording.sole_poses[:] = 0.0
    recording.sole_poses[:, :, 0], recording.sole_poses[:, :, 1] = c * x - s * y, s * x + c * y
    recording.sole_poses[:, :, 5:] = np.sin(0.5 * yaw), np.cos(0.5 * yaw)
    recording.wrench[:] = 0.0
    recording.wrench[:, :, 2] = 50.0 * loaded
    return recording


@pytest.mark.parametrize("yaw", [0.0, 2.0])
def test_times_lengths_widths_and_speeds(yaw: float) -> None:
    steps = gait_steps(walk(yaw))
    assert [step.foot for step in steps] == ["right", "left", "right", "left"]
    np.testing.assert_allclose([step.t for step in steps], 0.9 + 0.5 * np.arange(4))
    for name, value in {"swing": SWING, "length": STEP, "width": WIDTH}.items():
        np.testing.assert_allclose([getattr(step, name) for step in steps], value, err_msg=name)
    np.testing.assert_allclose([step.double_support for step in steps], [DOUBLE] * 3 + [np.nan])
    np.testing.assert_allclose([step.stance for step in steps], [SWING + 2.0 * DOUBLE] * 2 + [np.nan] * 2)
    np.testing.assert_allclose([step.speed for step in steps], [np.nan] + [STEP / (SWING + DOUBLE)] * 3)


def test_who_bounces_or_is_dropped_makes_no_step() -> None:
    recording = walk()
    recording.wrench[:, :, 2] = 50.0
    recording.wrench[:200, :, 2] = 0.0
    recording.wrench[1000:1050, 0, 2] = 0.0
    assert gait_steps(recording) == []
