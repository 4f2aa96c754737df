"""Signals: their names, their values, and axes on which noise is no curve."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("viser", reason="viser, the extra `view`, is not installed")

from bipedsim import Ground, load_robot
from bipedsim.config import RunConfig
from bipedsim.runs import run
from bipedsim.view.page import frames_of
from bipedsim.view.page.figures import now
from bipedsim.view.page.signals import Signals, SignalTable, axis, usual_plots
from bipedsim.view.page.state import state_of


@pytest.mark.parametrize(
    ("low", "high", "resolution", "expected"),
    [
        (-1e-16, 1e-16, 1e-3, (-6e-4, 6e-4)),
        (0.0, 890.0, 1.0, (0.0, 1000.0)),
        (0.862, 0.871, 1e-3, (0.862, 0.872)),
        (np.inf, -np.inf, 1.0, (-0.6, 0.6)),
        (-890.0, -10.0, 1.0, (-1000.0, 0.0)),
    ],
)
def test_an_axis_is_round_and_not_below_the_resolution(
    low: float, high: float, resolution: float, expected: tuple[float, float]
) -> None:
    assert axis(low, high, resolution) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["biped14", "parallel_ankles", "compass"])
def test_each_signal_has_a_name_of_its_own(name: str) -> None:
    robot = load_robot(name)
    names = [signal.name for signal in Signals(robot).all]
    assert len(set(names)) == len(names)
    assert {one for plot in usual_plots(robot) for one in plot} <= set(names)
    assert SignalTable(robot).number("no such signal") is None


def test_a_cop_on_an_edge_has_no_margin_of_rounding_errors() -> None:
    recording, _ = run(RunConfig(scenario="squat", duration=0.05))
    recording.cop_margin[:, 0] = -1.7e-14
    robot = load_robot("biped14")
    frames = frames_of(recording.rows(np.array([20])), robot)
    table = SignalTable(robot)
    instant = frames.instant(0)
    state = state_of(robot, Ground.flat(), robot.model.createData(), instant)
    table.add(instant, state)
    column = table.number("left foot CoP to edge [mm]")
    assert column is not None
    assert str(table.values([column])[0, 0]) == "0.0"
    assert "-0 mm" not in now(instant, robot, state)


def test_values_are_those_of_the_recording() -> None:
    recording, _ = run(RunConfig(scenario="squat", duration=0.5))
    robot = load_robot("biped14")
    frames = frames_of(recording.rows(np.arange(0, len(recording), 50)), robot)
    table = SignalTable(robot)
    for i in range(len(frames)):
        instant = frames.instant(i)
        table.add(instant, state_of(robot, Ground.flat(), robot.model.createData(), instant))
    r = frames.recording
    knee = robot.joint_names.index("l_knee")
    for name, expected in {
        "l_knee position [rad]": r.joint_position[:, knee],
        "l_knee velocity [rad/s]": r.joint_velocity[:, knee],
        "l_knee commanded torque [N.m]": r.joint_command[:, knee],
        "right foot torque y [N.m]": r.wrench[:, 1, 4],
        "right foot CoP to edge [mm]": 1e3 * r.cop_margin[:, 1],
        "base z [m]": r.base_pose[:, 2],
        "largest torque [% of its limit]": 100.0 * np.max(np.abs(r.joint_effort) / robot.effort_limit, axis=1),
    }.items():
        column = table.number(name)
        assert column is not None
        values = table.values([column])[:, 0]
        assert table.t == pytest.approx(r.t)
        np.testing.assert_allclose(values[1:], expected[1:], rtol=1e-5, atol=1e-6, err_msg=name)
