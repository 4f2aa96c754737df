"""Shape of the steps of a walk: limits of the velocity, and reach of the legs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from bipedsim.control.walking.cadence import StepTiming
from bipedsim.control.walking.stride import GaitBuild, GaitParams, Stride, farthest

OMEGA, PERIOD = 3.4, 0.7
PARAMS = GaitParams(single_support=0.6, double_support=0.1)
BUILD = GaitBuild(width=0.2, omega=OMEGA, left=0, room=0.02)
LIMITS = np.array([0.8, 0.2, 0.6])


@given(st.tuples(*[st.floats(-3.0, 3.0)] * 3))
def test_one_step_is_not_asked_for_the_largest_of_everything_at_once(command: tuple[float, float, float]) -> None:
    """Commands inside the ellipsoid of the limits are obeyed, others get the largest of their direction."""
    limited = Stride(PARAMS, BUILD).limited(np.array(command))
    inside = np.clip(command, -LIMITS * [0.5, 1.0, 1.0], LIMITS)
    size = float(np.linalg.norm(inside / LIMITS))
    assert limited == pytest.approx(inside / max(1.0, size))
    assert np.linalg.norm(limited / LIMITS) <= 1.0 + 1e-12


@pytest.mark.parametrize("double", [0.02, 0.1, 0.6, 2.0])
@pytest.mark.parametrize("single", [0.3, 0.6, 2.0])
def test_how_far_a_foot_gets_from_the_mass_is_that_of_the_pendulum(single: float, double: float) -> None:
    """Twenty steps of 1 m, integrated: its DCM backwards from the end, where it is right, and its mass ahead."""
    h, count = 1e-3, 20
    t = np.arange(0.0, count * (single + double), h)
    step, within = np.divmod(t, single + double)
    zmp = step + np.clip((within - single) / double, 0.0, 1.0)
    decay = np.exp(-OMEGA * h)
    dcm, mass = np.empty(len(t)), np.empty(len(t))
    dcm[-1], mass[0] = zmp[-1], 0.0
    for i in range(len(t) - 1, 0, -1):
        dcm[i - 1] = zmp[i] + (dcm[i] - zmp[i]) * decay
    for i in range(len(t) - 1):
        mass[i + 1] = dcm[i] + (mass[i] - dcm[i]) * decay
    # The foot behind, until it leaves at the end of double support; that ahead, from the beginning of it.
    middle = np.flatnonzero((step == count // 2) & (within > single))
    away = max((mass - step)[middle].max(), (step + 1.0 - mass)[middle].max())
    assert farthest(StepTiming(single, double), OMEGA) == pytest.approx(away, abs=5e-3)


def test_no_velocity_asks_for_a_longer_step_than_legs_reach() -> None:
    stride, usual = Stride(PARAMS, BUILD._replace(longest=0.3)), Stride(PARAMS, BUILD)
    fast = np.array([2.0, 0.0, 0.0])
    assert stride.limited(fast)[0] * PERIOD == pytest.approx(0.3)
    assert usual.limited(fast)[0] == PARAMS.max_forward
