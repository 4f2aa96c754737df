"""The gantry: statics of a rope, lowering, letting go, taking up again, and bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from refusals import refusal

from bipedsim.config import RunConfig
from bipedsim.errors import UnknownNameError
from bipedsim.model import drive_gains, load_robot, standing_torque
from bipedsim.numerics import Array
from bipedsim.runs import rerun, run
from bipedsim.sim import Command, GantryConfig, Simulator, read_gantry

ROBOT = load_robot("g1")


def hung(clearance: float = 0.1, physics_dt: float = 1e-3, **config: Any) -> Simulator:
    """Return a simulator of a robot that hangs in a gantry."""
    sim = Simulator(ROBOT, physics_dt=physics_dt, gantry=GantryConfig(clearance=clearance, **config))
    q = ROBOT.q_nominal.copy()
    q[2] += clearance
    sim.reset(q)
    return sim


def stiff() -> Command:
    """Return a command that holds the standing posture."""
    stiffness, damping = drive_gains(ROBOT, 1e-3)
    return Command(standing_torque(ROBOT), ROBOT.posture, None, stiffness, damping)


def steps(sim: Simulator, seconds: float, command: Command | None = None) -> None:
    """Simulate for a while; free joints by default."""
    for _ in range(round(seconds / sim.control_dt)):
        sim.step(np.zeros(ROBOT.nu) if command is None else command)


def com(q: Array) -> Array:
    """Return the CoM in the world."""
    return np.asarray(pin.centerOfMass(ROBOT.model, ROBOT.model.createData(), q))


def energy(sim: Simulator) -> float:
    """Return kinetic and potential energy [J]."""
    data = ROBOT.model.createData()
    kinetic = pin.computeKineticEnergy(ROBOT.model, data, sim.q, sim.v)
    return float(kinetic + pin.computePotentialEnergy(ROBOT.model, data, sim.q))


@pytest.mark.long
def test_at_rest_the_rope_carries_the_weight_straight_above_the_com() -> None:
    sim = hung()
    start = com(sim.q)
    steps(sim, 12.0, stiff())
    assert not sim.contact.wrench.any()
    # Statics: the rope supports the weight, and no moment acts on the robot. The hanging load moves the CoM under the
    # anchor.
    np.testing.assert_allclose(sim.gantry.force, [0.0, 0.0, ROBOT.weight], atol=0.01 * ROBOT.weight)
    np.testing.assert_allclose(com(sim.q)[:2], start[:2], atol=1e-3)


def test_free_joints_hang_and_no_energy_comes_from_the_rope() -> None:
    sim = hung()
    before = energy(sim)
    steps(sim, 3.0)
    assert energy(sim) < before
    assert not sim.contact.wrench.any()
    assert sim.q[2] > 0.7


def test_it_is_lowered_until_the_feet_carry_and_lets_go() -> None:
    sim, command = hung(0.05, lower_at=0.5, release_at=2.0), stiff()
    steps(sim, 1.9, command)
    assert sim.gantry.doing == "lowered"
    assert 0.0 <= sim.gantry.force[2] < 0.15 * ROBOT.weight
    assert sim.contact.wrench[:, 2].sum() == pytest.approx(ROBOT.weight - sim.gantry.force[2], rel=0.01)
    steps(sim, 0.7, command)
    assert np.isnan(sim.gantry.force).all()


def test_who_fell_is_taken_up_again_from_where_it_lies() -> None:
    sim = hung(speed=0.5)
    sim.hang("release")
    steps(sim, 2.0)
    assert sim.q[2] < 0.4
    with refusal(place="gantry"):
        sim.hang("lower")
    sim.hang("lift")
    steps(sim, 3.0)
    assert sim.q[2] > 0.7
    # Its toes point down and may brush the ground.
    assert sim.contact.wrench[:, 2].sum() < 0.02 * ROBOT.weight


def test_the_rope_of_a_lift_is_above_where_the_robot_is_then() -> None:
    """The robot walked two metres after its release. The first pull of the rope is vertical."""
    sim = hung(0.0, speed=1.0)
    sim.hang("release")
    steps(sim, 0.6, stiff())
    assert np.isnan(sim.gantry.force).all()
    snapshot = sim.snapshot()
    sim.restore(replace(snapshot, q=snapshot.q + np.eye(len(snapshot.q))[0] * 2.0))
    sim.hang("lift")
    steps(sim, 0.03, stiff())
    assert sim.gantry.force[2] > 0.01 * ROBOT.weight
    assert np.abs(sim.gantry.force[:2]).max() < 0.05 * sim.gantry.force[2]


@pytest.mark.long
def test_it_lifts_straight_up_from_where_the_robot_lies() -> None:
    """The rope is fixed above the displaced trunk, and takes the load without a jerk."""
    sim = hung(speed=0.3)
    sim.push(np.array([60.0, 0.0, 0.0, 0.0, 0.0, 0.0]), duration=0.4)
    sim.hang("release")
    steps(sim, 2.5)
    lies = com(sim.q)
    assert np.linalg.norm(lies[:2] - com(ROBOT.q_nominal)[:2]) > 0.3
    sim.hang("lift")
    sim.step(np.zeros(ROBOT.nu))
    assert np.abs(sim.gantry.force).max() < 0.05 * ROBOT.weight
    most = 0.0
    for _ in range(4000):
        sim.step(np.zeros(ROBOT.nu))
        most = max(most, float(sim.gantry.force[2]))
    assert com(sim.q)[2] > lies[2] + 0.4
    assert sim.contact.wrench[:, 2].sum() < 0.02 * ROBOT.weight
    trunk = sim.gantry._above(sim.q)
    np.testing.assert_allclose(com(sim.q)[:2], trunk[:2], atol=0.1)
    np.testing.assert_allclose(trunk[:2], lies[:2], atol=0.25)
    assert most < 2.0 * ROBOT.weight


def test_a_rope_that_is_slack_pulls_nothing() -> None:
    """The robot falls freely below its anchor until the rope is tight, as without a gantry."""
    sim, free = hung(1.0, speed=1.0), Simulator(ROBOT)
    sim.hang("release")
    steps(sim, 0.5)
    free.reset(sim.q, sim.v)
    steps(sim, 0.05)
    steps(free, 0.05)
    np.testing.assert_array_equal(sim.q, free.q)


def test_a_snapshot_holds_it_and_finer_steps_change_little() -> None:
    sim = hung(lower_at=0.2)
    steps(sim, 0.3)
    kept = sim.snapshot()
    steps(sim, 0.3)
    once = sim.q.copy(), sim.gantry.force.copy()
    sim.restore(kept)
    steps(sim, 0.3)
    np.testing.assert_array_equal(sim.q, once[0])
    np.testing.assert_array_equal(sim.gantry.force, once[1])
    fine = hung(lower_at=0.2, physics_dt=2.5e-4)
    steps(fine, 0.6)
    np.testing.assert_allclose(fine.q[:3], sim.q[:3], atol=2e-3)


@pytest.mark.long
def test_a_recorded_run_is_simulated_again_to_the_bit() -> None:
    gantry = "{clearance: 0.02, lower_at: 0.2, release_at: 0.9}"
    recording, summary = run(RunConfig(robot="g1", duration=2.4, gantry=gantry))
    assert summary["fell_at_s"] is None
    assert recording.wrench[-1, :, 2].sum() == pytest.approx(ROBOT.weight, rel=1e-3)
    assert np.isfinite(recording.gantry_force[:1300]).all()
    assert np.isnan(recording.gantry_force[1500:]).all()
    again = rerun(recording)
    assert again.first is None
    assert "gantry_force" in again.compared
    held = run(RunConfig(robot="g1", duration=0.05, gantry="hang"))[1]
    assert held["verdict"] == "hung in its gantry for 0.05 s, did not fall"
    # Manual actions are in the recording as well.
    recording.run["gantry_actions"] = [{"t": 0.1, "action": "release"}]
    assert rerun(recording).first.t == pytest.approx(0.101)


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        ("up", {"place": "gantry", "value": "up"}),
        ("{lower_at: 3, release_at: 2}", {"place": "gantry: release_at", "value": 2.0}),
        ("{height: 1}", {"place": "gantry", "name": "height"}),
        ("{clearance: -1}", {"place": "gantry: clearance", "value": -1.0}),
    ],
)
def test_what_is_none_is_refused(given: str, fields: dict[str, Any]) -> None:
    with refusal(**fields):
        read_gantry(given)


def test_actions_need_a_gantry_and_a_gantry_a_floating_base() -> None:
    with refusal(place="gantry"):
        Simulator(ROBOT).hang("lower")
    with refusal(UnknownNameError, name="drop", choices=("lower", "release", "lift")):
        hung().hang("drop")
    assert read_gantry("") is None
    assert read_gantry("hang") == GantryConfig()
    config = GantryConfig(lower_at=1.5)
    assert read_gantry(config.text()) == config
