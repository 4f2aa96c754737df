"""The equations of motion: true for a simulated robot, with the derivatives that they claim."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bipedsim.config.run import RunConfig
from bipedsim.errors import ConfigError
from bipedsim.model import Robot, load_robot
from bipedsim.runs.runner import run
from bipedsim_studies.identify.equations import Equations
from bipedsim_studies.identify.parameters import parameters_of
from bipedsim_studies.identify.signals import TAPS, Signals, signals_of


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("biped14")


def part(signals: Signals, n: int) -> Signals:
    fields = {
        name: value[:n] for name, value in vars(signals).items() if isinstance(value, np.ndarray) and name != "noise"
    }
    return replace(signals, **fields)


@pytest.fixture(scope="module")
def squat(robot: Robot) -> Signals:
    return signals_of(run(RunConfig(scenario="squat", duration=4.0))[0], robot)


@pytest.fixture(scope="module")
def walk(robot: Robot) -> Signals:
    settings = RunConfig(scenario="walk", controller="zmp", duration=6.0)
    return signals_of(run(settings)[0], robot)


def test_the_equations_hold_for_a_simulated_robot(robot: Robot, squat: Signals) -> None:
    parameters = parameters_of(robot)
    rows = Equations(robot, parameters).rows(squat, parameters.start)
    nv = robot.model.nv
    forces = rows.residual[:, :3]
    assert np.abs(forces).max() < 1e-3 * robot.weight
    knees = rows.residual[:, robot.idx_v[[3, 10]]]
    assert np.sqrt(np.mean(knees**2)) < 2e-3 * np.abs(squat.effort[:, 3]).max()
    assert not rows.used[:, nv:].any(), "both feet are on the ground"


def test_a_foot_in_the_air_weighs_what_its_sensor_says(robot: Robot, walk: Signals) -> None:
    parameters = parameters_of(robot)
    rows = Equations(robot, parameters).rows(walk, parameters.start)
    nv = robot.model.nv
    foot = robot.model.inertias[robot.ankle_joint_ids[0]].mass * 9.81
    swing = rows.used[:, nv]
    assert swing.sum() > 10
    assert np.abs(rows.residual[swing, nv : nv + 3]).max() < 0.02 * foot


@pytest.mark.ci
def test_the_slopes_are_the_derivatives_of_the_residuals(robot: Robot, walk: Signals) -> None:
    parameters = parameters_of(robot)
    equations = Equations(robot, parameters)
    rng = np.random.default_rng(3)
    some = part(walk, TAPS + 2)
    values = parameters.start + 0.3 * parameters.spread * rng.uniform(-1.0, 1.0, len(parameters))
    slope = equations.rows(some, values).slope
    one_of_each = [indices.ravel()[rng.integers(indices.size)] for indices in parameters.at.values()]
    for i in [*one_of_each, *rng.choice(len(parameters), 20, replace=False)]:
        step = np.zeros(len(parameters))
        step[i] = 1e-3 * parameters.spread[i]
        ahead, behind = (equations.rows(some, values + sign * step).residual for sign in (1.0, -1.0))
        expected = (ahead - behind) / (2.0 * step[i])
        if parameters.kinds[i] in ("encoder_offset", "accelerometer_offset", "imu_rotation", "imu_delay"):
            # Left out on purpose: the weight of a foot hardly depends on them.
            expected[:, robot.model.nv :] = 0.0
        scale = np.abs(expected).max()
        # The delay of the IMU also turns its angular velocity, and an encoder its lever: effects of second order.
        tolerance = 2e-2 if parameters.kinds[i] in ("imu_delay", "imu_rotation") else 1e-4
        assert_allclose(slope[..., i], expected, atol=tolerance * scale + 1e-9, err_msg=parameters.label(i))


def test_robots_that_the_equations_do_not_describe_are_refused() -> None:
    for name in ("parallel_ankles", "compass"):
        other = load_robot(name)
        with pytest.raises(ConfigError):
            Equations(other, parameters_of(other))
