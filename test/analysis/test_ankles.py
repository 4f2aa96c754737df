"""Sole wrenches and CoP of a robot that has ankle sensors only."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from contract_support import CONTRACT, LEFT, ROBOT, ankle_wrenches, good_robot
from physics_support import standing_torque
from recording_support import write_bag

from bipedsim.analysis.ankles import centre_of_pressure, sole_wrench
from bipedsim.analysis.loading import load_run
from bipedsim.control.estimation.estimator import Estimator, EstimatorParams
from bipedsim.recording import load_recording
from bipedsim.sim.simulator import Simulator


def test_a_level_sole_feels_what_its_ankle_does_and_its_own_weight() -> None:
    for k, (sole, ankle) in enumerate(zip(ROBOT.soles, ankle_wrenches(CONTRACT), strict=True)):
        wrench = sole_wrench(ROBOT, k, [ankle, 0.0 * ankle])
        np.testing.assert_allclose(wrench[0, :3], [0.0, 0.0, 0.5 * ROBOT.weight], atol=1e-9)
        np.testing.assert_allclose(centre_of_pressure(wrench[0], 1.0), sole.centre, atol=1e-9)
        np.testing.assert_allclose(centre_of_pressure(wrench, 0.1 * ROBOT.weight)[1], np.nan)


def test_nothing_hangs_below_a_load_cell() -> None:
    """The simulator weighs the loads at the soles.

    The estimator knows a foot by its sensor alone. Both must agree with the load cells.
    """
    cells = tuple(replace(sole, load_cell=True) for sole in ROBOT.soles)
    ankles = tuple(sole.placement_joint_sole for sole in cells)
    robot = replace(ROBOT, soles=cells, placement_joint_ankle=ankles)
    sim = Simulator(robot)
    for _ in range(20):
        observation = sim.step(standing_torque(robot))
    for k, cell in enumerate(observation.foot_wrench):
        np.testing.assert_allclose(cell, sim.contact.wrench[k], atol=1e-6)
        np.testing.assert_array_equal(sole_wrench(robot, k, cell), cell)
    estimator = Estimator(robot, EstimatorParams(), sim.control_dt)
    estimator.reset(observation)
    estimate = estimator.update(observation)
    assert estimate.normal_force.sum() == pytest.approx(robot.weight, rel=1e-3)


def test_a_bag_of_a_robot_has_forces_under_its_soles(tmp_path: Path) -> None:
    robot = good_robot()
    seen = robot.evidence().topics
    rows = [
        (name, topic.types[0], topic.messages[i])
        for i in range(len(seen[LEFT]))
        for name, topic in seen.items()
        if "commands" not in name
    ]
    write_bag(tmp_path / "bag", rows, {"robot": "biped14", "feet": "left,right"}).close()
    assert np.isnan(load_recording(tmp_path / "bag").wrench).all()
    recording = load_run(tmp_path / "bag")
    np.testing.assert_allclose(recording.wrench[:, :, 2].sum(axis=1), ROBOT.weight)
    np.testing.assert_allclose(recording.cop[:, 0], ROBOT.soles[0].centre + np.zeros((len(recording), 2)), atol=1e-9)
    assert any("ankle sensors" in note for note in recording.notes)


def test_sensors_that_measure_the_foot_on_the_ground_are_noticed(tmp_path: Path) -> None:
    """The recording does not state ft_sign = -1, so its forces have the wrong sign: the soles seem to pull at the
    ground. This used to pass unnoticed.
    """
    robot = good_robot()
    seen = robot.evidence().topics
    rows = []
    for i in range(len(seen[LEFT])):
        for name, topic in seen.items():
            raw = topic.messages[i] if "commands" not in name else b""
            if "_ft/" in name:
                numbers = -np.frombuffer(raw[-48:], dtype="<f8")
                raw = raw[:-48] + numbers.tobytes()
            rows += [(name, topic.types[0], raw)] * bool(raw)
    write_bag(tmp_path / "bag", rows, {"robot": "biped14", "feet": "left,right"}).close()
    recording = load_run(tmp_path / "bag")
    assert any("other_bag.md#signs" in note for note in recording.notes)
    write_bag(tmp_path / "told", rows, {"robot": "biped14", "feet": "left,right", "ft_sign": "-1"}).close()
    told = load_run(tmp_path / "told")
    np.testing.assert_allclose(told.wrench[:, :, 2].sum(axis=1), ROBOT.weight)
    assert not any("ft_sign" in note for note in told.notes)
