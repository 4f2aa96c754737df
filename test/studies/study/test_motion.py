"""Motion metrics of recordings with known paths."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from bipedsim.model import load_robot
from bipedsim.recording import Recording
from bipedsim.runs import Velocity
from bipedsim_studies.study.motion import motion_figures

RATE = 1000
POWER = 10.0


def walked(speed: float, turn: float, yaw: float = 0.7, seconds: float = 6.0) -> Recording:
    """A base that moves along its heading while it turns, with joints that produce and absorb 10 W in total."""
    robot = load_robot("biped14")
    t = np.arange(1, round(RATE * seconds) + 1) / RATE
    run = Recording.empty(len(t), robot.joint_names, [sole.name for sole in robot.soles])
    run.weight = robot.weight
    run.t[:] = t
    heading = yaw + turn * t
    between = heading - 0.5 * turn / RATE
    along = np.column_stack([np.cos(between), np.sin(between)])
    run.base_pose[:, :2] = np.cumsum(speed * along, axis=0) / RATE
    run.base_pose[:, 2:] = np.column_stack([np.full((len(t), 3), 0.0), np.sin(heading / 2), np.cos(heading / 2)])
    run.joint_effort[:], run.joint_velocity[:] = 0.0, 1.0
    run.joint_effort[:, :2] = POWER, -POWER
    return run


@given(st.floats(-0.5, 0.8), st.floats(-0.6, 0.6), st.floats(-3.0, 3.0))
@settings(max_examples=10, deadline=None)
def test_who_does_as_told_has_no_error(speed: float, turn: float, yaw: float) -> None:
    figures = motion_figures(walked(speed, turn, yaw), [Velocity(vx=speed, wz=turn)])
    assert figures["velocity_error"] == pytest.approx(0.0, abs=1e-6)
    assert figures["turn_error"] == pytest.approx(0.0, abs=1e-6)
    assert figures["turned_rad"] == pytest.approx(6.0 * turn, abs=1e-3)
    assert figures["work_J"] == pytest.approx(6.0 * POWER, rel=1e-3)


def test_a_way_ahead_is_ahead_however_the_robot_stood() -> None:
    figures = motion_figures(walked(0.5, 0.0, yaw=2.0), [Velocity(vx=0.4)])
    assert figures["travel_x_m"] == pytest.approx(3.0, rel=1e-3)
    assert figures["travel_y_m"] == pytest.approx(0.0, abs=1e-9)
    assert figures["velocity_error"] == pytest.approx(0.25)
    weight = load_robot("biped14").weight
    assert figures["cost_of_transport"] == pytest.approx(POWER / (weight * 0.5), rel=0.02)


def test_the_worst_stretch_counts_and_short_ones_do_not() -> None:
    run = walked(0.3, 0.0)
    steps = [Velocity(at=0.0, vx=0.3), Velocity(at=3.0, vx=0.6), Velocity(at=3.5, vx=0.3)]
    assert motion_figures(run, steps)["velocity_error"] == pytest.approx(0.0, abs=1e-6)
    assert motion_figures(run, [Velocity(vx=0.2)])["velocity_error"] == pytest.approx(0.5)
    assert motion_figures(run, [])["velocity_error"] is None


@pytest.mark.parametrize(("first", "second"), [(0.6, 0.3), (0.3, 0.6)])
def test_the_worst_stretch_counts_wherever_it_is(first: float, second: float) -> None:
    run = walked(0.3, 0.1, seconds=9.0)
    steps = [Velocity(at=0.0, vx=first, wz=0.1), Velocity(at=4.5, vx=second, wz=0.1)]
    assert motion_figures(run, steps)["velocity_error"] == pytest.approx(0.5, abs=1e-6)
    turns = [Velocity(at=0.0, vx=0.3, wz=first / 3.0), Velocity(at=4.5, vx=0.3, wz=second / 3.0)]
    assert motion_figures(run, turns)["turn_error"] == pytest.approx(0.5, abs=1e-3)


def test_whole_turns_are_counted() -> None:
    assert motion_figures(walked(0.0, 2.0), [])["turned_rad"] == pytest.approx(12.0, rel=1e-3)
