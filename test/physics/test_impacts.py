"""Impacts apart from finite forces, and ticks of several physics steps: no impulse is lost on the way to the user."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings, strategies as st
from physics_support import SELECTION_MODELS, G, box_robot, rectangle

from bipedsim.model import Robot, load_robot
from bipedsim.sim.simulator import Simulator

H = 1e-3
MASS = 2.0
NOTHING = np.zeros(0)


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Robot:
    return box_robot(tmp_path_factory.mktemp("box"), rectangle(0.3, 0.2), mass=MASS)


@pytest.mark.parametrize("model", SELECTION_MODELS)
def test_a_flat_landing_is_an_impact_and_weight_ever_after(box: Robot, model: str) -> None:
    """The landing step has the momentum of the fall, and all others the weight."""
    sim = Simulator(box, contact=model)
    sim.reset(np.array([0.0, 0.0, 0.05, 0.0, 0.0, 0.0, 1.0]))
    impacts = []
    for _ in range(300):
        contact = sim.advance(NOTHING)
        if contact.impact.any():
            impacts.append(contact.impact[0, 2])
        else:
            finite = [0, 0, MASS * G if contact.mode[0] else 0.0, 0, 0, 0]
            np.testing.assert_allclose(contact.wrench[0], finite, atol=1e-8)
    assert impacts == [pytest.approx(MASS * np.sqrt(2 * G * 0.05), rel=1e-9)]


@settings(max_examples=20)
@given(
    tilt=st.floats(-0.3, 0.3),
    roll=st.floats(-0.3, 0.3),
    slide=st.floats(-1.0, 1.0),
    model=st.sampled_from(SELECTION_MODELS),
)
def test_what_is_left_of_a_tumble_without_its_impacts_is_a_few_weights(
    box: Robot, tilt: float, roll: float, slide: float, model: str
) -> None:
    """Finite forces of a box that tumbles at a few rad/s stay within a few m g; the wrench peaks at ten times that."""
    sim = Simulator(box, contact=model)
    pose = pin.SE3(pin.rpy.rpyToMatrix(roll, tilt, 0.0), np.array([0.0, 0.0, 0.1]))
    sim.reset(pin.SE3ToXYZQUAT(pose), np.array([slide, 0.0, 0.0, 0.0, 0.0, 0.0]))
    peak, largest = 0.0, 0.0
    for _ in range(600):
        contact = sim.advance(NOTHING)
        peak = max(peak, contact.wrench[0, 2])
        finite = contact.wrench[0, :3] - contact.impact[0, :3] / H
        largest = max(largest, float(np.linalg.norm(finite)))
    assert peak > 20 * MASS * G
    assert largest < 4 * MASS * G


@pytest.mark.parametrize("substeps", [2, 5])
@pytest.mark.parametrize("model", SELECTION_MODELS)
def test_ticks_of_several_steps_keep_the_momentum(substeps: int, model: str) -> None:
    """m (v_com+ - v_com) = dt (f - m g) over every tick of a landing, which one of several steps would miss."""
    robot = load_robot("biped14")
    sim = Simulator(robot, contact=model, physics_dt=H / substeps, control_dt=H)
    fine = Simulator(robot, contact=model, physics_dt=H / substeps)
    q = robot.q_nominal.copy()
    q[2] += 0.02
    sim.reset(q)
    fine.reset(q)
    data = robot.model.createData()
    tau = np.zeros(robot.nu)

    def momentum() -> np.ndarray:
        pin.centerOfMass(robot.model, data, sim.q, sim.v)
        return robot.mass * data.vcom[0].copy()

    for _ in range(120):
        before = momentum()
        contact = sim.advance(tau)
        impulse, impact, forces = np.zeros((2, 6)), np.zeros((2, 6)), []
        for _ in range(substeps):
            step = fine.advance(tau)
            impulse += step.impulse
            impact += step.impact
            forces.append(step.wrench.copy())
        np.testing.assert_array_equal(sim.q, fine.q)
        np.testing.assert_allclose(contact.impulse, impulse, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(contact.impact, impact, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(contact.wrench, np.mean(forces, axis=0), rtol=1e-12, atol=1e-9)
        expected = contact.impulse[:, :3].sum(axis=0) - [0, 0, robot.weight * H]
        np.testing.assert_allclose(momentum() - before, expected, atol=0.05 * H * robot.weight)
        loaded = contact.impulse[:, 2] > 0.0
        assert (contact.cop_margin[loaded] > -1e-6).all()
        assert all(robot.soles[k].margin(contact.cop[k]) > -1e-6 for k in np.flatnonzero(loaded))
        assert np.isnan(contact.cop[~loaded]).all()
    assert loaded.any()


def test_a_snapshot_within_ticks_repeats_the_future(box: Robot) -> None:
    sim = Simulator(box, physics_dt=H / 4, control_dt=H)
    sim.reset(np.array([0.0, 0.0, 0.01, 0.0, 0.1, 0.0, 1.0]))
    for _ in range(30):
        sim.step(NOTHING)
    snapshot, seen = sim.snapshot(), sim.contact.wrench.copy()
    first = [sim.step(NOTHING).foot_wrench.copy() for _ in range(50)]
    sim.restore(snapshot)
    np.testing.assert_array_equal(sim.contact.wrench, seen)
    again = [sim.step(NOTHING).foot_wrench.copy() for _ in range(50)]
    np.testing.assert_array_equal(first, again)
