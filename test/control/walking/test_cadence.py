"""How long steps take: by hand, and in the plan of a walk that speeds up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from bipedsim.control.walking.cadence import Cadence
from bipedsim.control.walking.dcm import evaluate
from bipedsim.control.walking.footsteps import level_with
from bipedsim.control.walking.gait import WalkGait
from bipedsim.control.walking.stride import GaitBuild, GaitParams

G = 9.81
heights = st.floats(0.3, 1.5)
speeds = st.floats(0.01, 3.0)


def chosen(height: float, single: float = 0.0, double: float = 0.0) -> Cadence:
    return Cadence(single, double, 1.15, float(np.sqrt(G / height)), G)


@given(heights, speeds, speeds)
def test_who_walks_faster_takes_longer_and_quicker_steps(height: float, one: float, other: float) -> None:
    """Either all of the time of the slowest step, or the same product of length and time."""
    cadence = chosen(height)
    slow, fast = sorted((one, other))
    times = [cadence.timing(speed).period for speed in (slow, fast)]
    assert times[0] >= times[1]
    assert slow * times[0] <= fast * times[1] + 1e-12
    slowest = cadence.timing(0.0).period
    for speed, time in zip((slow, fast), times, strict=True):
        if time < slowest:
            # Times in 1 / omega, lengths in the height.
            assert speed * time / height * time * np.sqrt(G / height) == pytest.approx(1.15)
        assert cadence.timing(-speed) == cadence.timing(speed)


@given(heights, speeds, st.floats(0.5, 2.0))
def test_robots_of_all_sizes_walk_alike(height: float, speed: float, scale: float) -> None:
    """The step times are equal in units of 1 / omega if the Froude numbers are equal."""
    small, large = chosen(height).timing(speed), chosen(scale * height).timing(np.sqrt(scale) * speed)
    assert np.array(large) == pytest.approx(np.sqrt(scale) * np.array(small))


def test_a_person_who_is_given_the_walk_ratio_of_people_walks_at_their_cadence() -> None:
    """0.42 m.s: at 1.3 m/s steps of 0.57 s and 0.74 m."""
    period = Cadence(0.0, 0.0, 1.4, float(np.sqrt(G / 0.96)), G).timing(1.3).period
    assert period == pytest.approx(0.57, abs=0.01)


@given(heights, speeds, st.sampled_from([0.0, 0.4, 0.8]), st.sampled_from([0.0, 0.05, 0.5]))
def test_what_is_given_stays_and_a_length_has_its_speed(
    height: float, speed: float, single: float, double: float
) -> None:
    cadence = chosen(height, single, double)
    timing = cadence.timing(speed)
    assert not single or timing.single == single
    assert not double or timing.double == double
    assert cadence.speed(speed * timing.period) == pytest.approx(speed, rel=1e-9)


BUILD = GaitBuild(width=0.2, omega=3.4, left=0, room=1.0)


def walked(params: GaitParams, build: GaitBuild, commands: list[tuple[float, float, float]]) -> list[tuple[float, ...]]:
    """Return length, width and time of every step, to where the next one begins, of ideal feet."""
    gait = WalkGait(params, build)
    p = np.array([[0.0, 0.1, 0.0], [0.0, -0.1, 0.0]])
    R = np.array([level_with(np.array([0.0, 0.0, 1.0]), 0.0)] * 2)
    gait.reset(0.0, np.zeros(2), p, R, 1.0)
    gait.start(1.0, np.zeros(2), p, R, np.array(commands[0]))
    steps = []
    for command in commands:
        begin, foot, centre = gait.end, gait.swing, gait.state.centre
        zmp, xi = np.zeros(2), np.zeros(2)
        evaluate(gait.plan, 3.4, begin, zmp, xi)
        gait.lift_off(begin, xi, p, R, np.array(command))
        p[foot] = gait.step.land_p
        gait.touch_down(gait.end, R)
        steps.append((gait.state.centre.x - centre.x, abs(float(p[0, 1] - p[1, 1])), gait.end - begin))
    return steps


def test_a_walk_that_speeds_up_shortens_its_steps_in_time_and_narrows_them() -> None:
    params = GaitParams(max_forward=1.2, acceleration=10.0)
    slow, fast = (walked(params, BUILD._replace(narrow=0.15), [(v, 0.0, 0.0)] * 4)[-1] for v in (0.3, 1.2))
    assert fast[0] > 2.0 * slow[0]
    assert fast[2] < 0.8 * slow[2]
    assert [slow[0] / slow[2], fast[0] / fast[2]] == pytest.approx([0.3, 1.2])
    assert [slow[1], fast[1]] == pytest.approx([0.1875, 0.15])


def test_given_times_hold_at_any_speed() -> None:
    params = GaitParams(single_support=0.5, double_support=0.2, max_forward=1.2, acceleration=10.0)
    for v in (0.2, 1.2):
        assert walked(params, BUILD, [(v, 0.0, 0.0)] * 3)[-1][2] == pytest.approx(0.7)


def test_steps_to_the_side_are_quick_too() -> None:
    """Every other one goes twice as far."""
    params = GaitParams(max_forward=1.2, max_sideways=0.6, acceleration=10.0)
    ahead, aside = (walked(params, BUILD, [command] * 4)[-1][2] for command in ((1.0, 0.0, 0.0), (0.0, 0.5, 0.0)))
    assert aside == pytest.approx(ahead)
