"""Nonlinear damping: order of the substeps, bristles that stick, slip and stick again, torsion, energy, and memory.

Impacts against the closed form are in test_reproduce_marhefka1996.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings, strategies as st
from physics_support import G, box_robot, pose_on, rectangle, slope, special_robot

from bipedsim.contact.compliant.nonlinear_damping import NonlinearDampingParams
from bipedsim.model import Robot
from bipedsim.sim.simulator import Simulator
from bipedsim_studies.reproduce.marhefka1996 import closed_form
from bipedsim_studies.reproduce.marhefka1996.impact import PointContact, impact
from bipedsim_studies.reproduce.moraud2008.friction import loaded_block

MODEL = "nonlinear_damping"
DEFAULT = NonlinearDampingParams()
NOTHING = np.zeros(0)
H = 1e-3
MU, LOAD = 0.45, 20.0
CORNER = float(np.hypot(0.105, 0.065))
"""Distance of the block's vertices from the middle of its sole [m]."""


@pytest.fixture(scope="module")
def block() -> Robot:
    """25 kg, mu_s = 0.45, mu_d = 0.36."""
    return loaded_block(MU, LOAD)


def settled(robot: Robot) -> Simulator:
    """Return the robot at rest on its springs."""
    sim = Simulator(robot, contact=MODEL)
    sim.reset()
    push(sim, np.zeros(6), 3.0)
    return sim


def push(sim: Simulator, wrench: np.ndarray, duration: float) -> None:
    """Hold a wrench on the root body for a while."""
    sim.push(wrench)
    for _ in range(round(duration / sim.physics_dt)):
        sim.advance(NOTHING)


def sideways(force: float, torsion: float = 0.0) -> np.ndarray:
    return np.array([0.0, force, 0.0, 0.0, 0.0, torsion])


def ramp(sim: Simulator, end: np.ndarray, duration: float) -> None:
    """Let the wrench on the root body grow from zero to ``end``, slowly enough for nothing to ring."""
    steps = round(duration / sim.physics_dt)
    for i in range(1, steps + 1):
        push(sim, end * (i / steps), sim.physics_dt)


def slipped(sim: Simulator) -> np.ndarray:
    """Return how far each vertex has slipped [m] since it stuck."""
    return np.asarray(sim.snapshot().contact["slipped"][0, :, 0])


def yaw(sim: Simulator) -> float:
    return float(pin.rpy.matrixToRpy(pin.XYZQUATToSE3(sim.q).rotation)[2])


@pytest.mark.parametrize(
    ("exponent", "ratio", "order"), [(1.0, 1.0, 4.0), (2.0, 1.0, 4.0), (1.5, 1.0, 2.5), (1.0, 3.0, 3.0)]
)
def test_impacts_converge_with_the_order_of_the_substeps(exponent: float, ratio: float, order: float) -> None:
    """Runge and Kutta's fourth order where the force is smooth in the ground.

    x^(3/2) has no second derivative at x = 0; with two alphas the force has a kink where the mass turns.
    """
    contact = PointContact(3.0, 2e4, 0.3, exponent, ratio)
    speed = 1.7
    resolutions = 0.3 / 2.0 ** np.arange(6)
    expected = closed_form.restitution(contact.alpha * speed, ratio)
    errors = [abs(impact(contact, speed, 0.05, r).leaves / speed - expected) for r in resolutions]
    slope = np.polyfit(np.log(resolutions), np.log(errors), 1)[0]
    assert slope > order - 0.4
    assert errors[-1] < 1e-6


def test_a_body_rests_at_its_weight_over_the_stiffness(block: Robot) -> None:
    sim = settled(block)
    assert sim.q[2] == pytest.approx(-block.weight / (4.0 * DEFAULT.stiffness), rel=1e-6)
    assert sim.contact.wrench[0, 2] == pytest.approx(block.weight, rel=1e-6)
    assert sim.contact.cop[0] == pytest.approx([0.0, 0.0], abs=1e-9)
    assert sim.contact.unresolved == 0


@pytest.mark.parametrize("stiffness", [1e5, 1e7, 1e9])
def test_a_body_let_go_at_the_surface_is_not_thrown_up(stiffness: float) -> None:
    """Without damping, the body returns to its initial height at any stiffness.

    The tolerance is a part of its static depth.
    """
    brick = special_robot("brick")
    sim = Simulator(brick, contact=MODEL, contact_params={"stiffness": stiffness, "alpha": 0.0, "max_substeps": 10**6})
    for height in (0.0, 1e-9, 2e-6):
        sim.reset(brick.q_nominal + np.array([0.0, 0.0, height, 0.0, 0.0, 0.0, 0.0]))
        highest = -np.inf
        for _ in range(100):
            sim.advance(NOTHING)
            highest = max(highest, float(sim.q[2]))
        assert highest < height + 0.01 * brick.weight / (4.0 * stiffness)
        assert sim.contact.unresolved == 0


@pytest.mark.long
def test_what_sticks_does_not_creep(block: Robot) -> None:
    """The force is half of the friction limit, for a minute.

    The bristles bend by force over stiffness and do not creep.
    """
    sim = settled(block)
    start = sim.q.copy()
    push(sim, sideways(50.0), 2.0)
    assert sim.q[1] - start[1] == pytest.approx(50.0 / (4.0 * DEFAULT.tangential_stiffness), rel=1e-6)
    bent = sim.q.copy()
    push(sim, sideways(50.0), 60.0)
    np.testing.assert_allclose(sim.q, bent, rtol=0.0, atol=1e-12)
    push(sim, np.zeros(6), 2.0)
    np.testing.assert_allclose(sim.q, start, rtol=0.0, atol=1e-10)


def test_it_slips_at_mu_slides_on_the_cone_and_sticks_again(block: Robot) -> None:
    sim = settled(block)
    limit = MU * block.weight
    pull = 0.95 * limit
    ramp(sim, sideways(pull), 1.0)
    while not slipped(sim).all():
        pull += 1e-4 * limit
        push(sim, sideways(pull), H)
        assert pull < 1.01 * limit
    assert pull == pytest.approx(limit, rel=1e-3)

    dynamic = 0.8 * MU
    used = [MU]
    while not sim.contact.sliding[0]:
        push(sim, sideways(pull), H)
        x, y, z = sim.contact.vertex_forces[0].sum(axis=0)
        used.append(np.hypot(x, y) / z)
        assert dynamic * (1.0 - 1e-9) < used[-1] < used[-2] * (1.0 + 1e-6)
    assert slipped(sim).min() > DEFAULT.slip_distance
    push(sim, sideways(pull), H)
    for _ in range(100):
        before = sim.v.copy()
        push(sim, sideways(pull), H)
        assert sim.contact.sliding[0]
        # In ground axes: the wrench is in those of the sole, which the deceleration tilts by 0.7 mrad.
        forces = sim.contact.vertex_forces[0]
        assert np.hypot(forces[:, 0], forces[:, 1]) == pytest.approx(dynamic * forces[:, 2], rel=1e-12)
        assert (forces[:, 1] < 0.0).all()
    speed = float(before[1])
    assert speed > 0.1

    push(sim, np.zeros(6), speed / (dynamic * G) + 1.0)
    assert not sim.contact.sliding[0]
    np.testing.assert_allclose(sim.v, 0.0, atol=1e-6)
    stands = float(sim.q[1])
    push(sim, sideways(0.5 * limit), 2.0)
    assert sim.q[1] == pytest.approx(stands, abs=limit / DEFAULT.tangential_stiffness)


def test_a_foot_that_lands_sticks_by_the_force_of_its_dampers_too(block: Robot) -> None:
    """At 1 m/s the damping forces are four times the spring forces, which alone would not hold the body."""
    sim = Simulator(block, contact=MODEL)
    sim.reset(sim.q, np.array([0.0, 0.6, -1.0, 0.0, 0.0, 0.0]))
    sim.advance(NOTHING)
    springs = -DEFAULT.stiffness * float(sim.q[2])
    bristles = DEFAULT.tangential_stiffness * sim.q[1]
    assert MU * springs < bristles < MU * springs * (1.0 - 1.5 * DEFAULT.alpha * sim.v[2])
    assert not slipped(sim).any()


@pytest.mark.parametrize("height", [0.0, 0.03, 0.1])
def test_a_body_that_starts_without_a_load_holds_on_a_slope_far_beyond_dynamic_friction(
    height: float, tmp_path: Path
) -> None:
    """The body starts at depth 0.

    It accelerates along the slope before friction builds up, and slips by micrometres.
    """
    mu_static, share = 1.0, 0.8
    ground = slope(np.arctan(share * mu_static))
    robot = box_robot(tmp_path, rectangle(0.3, 0.2), height=height, mu_s=mu_static, mu_d=0.2)
    sim = Simulator(robot, ground, MODEL)
    sim.reset(pose_on(ground))
    push(sim, np.zeros(6), 1.0)
    start = sim.q.copy()
    assert np.linalg.norm(start[:3]) < DEFAULT.slip_distance
    push(sim, np.zeros(6), 1.0)
    np.testing.assert_allclose(sim.q, start, rtol=0.0, atol=1e-6)
    assert not slipped(sim).any()


def test_a_slide_stops_where_coulomb_says(block: Robot) -> None:
    """Way v^2 / (2 mu_d g), up to the bending of the bristles and the rocking of the block."""
    sim = settled(block)
    sim.reset(sim.q, np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0]))
    push(sim, np.zeros(6), 1.0)
    np.testing.assert_allclose(sim.v, 0.0, atol=1e-4)
    assert sim.q[1] == pytest.approx(1.0 / (2.0 * 0.8 * MU * G), rel=0.01)


def test_torsion_is_limited_to_what_the_vertices_carry(block: Robot) -> None:
    """Under an even load four corners hold mu f_z times their distance."""
    sim = settled(block)
    limit = MU * block.weight * CORNER
    ramp(sim, sideways(0.0, 0.99 * limit), 2.0)
    push(sim, sideways(0.0, 0.99 * limit), 1.0)
    held = yaw(sim)
    push(sim, sideways(0.0, 0.99 * limit), 5.0)
    assert yaw(sim) == pytest.approx(held, abs=1e-10)
    torque = 0.99 * limit
    while not slipped(sim).all():
        torque += 1e-4 * limit
        push(sim, sideways(0.0, torque), H)
        assert torque < 1.01 * limit
    assert torque == pytest.approx(limit, rel=2e-3)
    while not sim.contact.sliding[0]:
        push(sim, sideways(0.0, torque), H)
    push(sim, sideways(0.0, torque), 0.05)
    assert sim.contact.wrench[0, 5] == pytest.approx(-0.8 * limit, rel=1e-3)


@dataclass(frozen=True)
class Throw:
    """A brick over the ground: how it is turned [rad], and its velocities in its own axes [m/s], [rad/s]."""

    turn: tuple[float, float, float]
    linear: tuple[float, float, float]
    angular: tuple[float, float, float]


def triples(size: float) -> st.SearchStrategy[tuple[float, float, float]]:
    return st.tuples(*[st.floats(-size, size)] * 3)


def energies(brick: Robot, throw: Throw, h: float, exponent: float) -> np.ndarray:
    """Return energy of the body, of the ground under its vertices and of the bristles, after each step [J]."""
    stiffness = 1e5 if exponent == 1.0 else 3e6
    params = {"stiffness": stiffness, "exponent": exponent, "alpha": 0.5}
    sim = Simulator(brick, contact=MODEL, physics_dt=h, contact_params=params)
    pose = pin.SE3(pin.exp3(np.array(throw.turn)), np.array([0.0, 0.0, 0.15]))
    sim.reset(pin.SE3ToXYZQUAT(pose), np.array([*throw.linear, *throw.angular]))
    data = brick.model.createData()
    corners = np.column_stack([brick.soles[0].vertices, np.zeros(4)])
    found = []
    for _ in range(round(0.4 / h)):
        contact = sim.advance(NOTHING)
        assert contact.vertex_forces[..., 2].min() >= 0.0
        friction = np.linalg.norm(contact.vertex_forces[0, :, :2], axis=1)
        assert (friction <= 0.6 * contact.vertex_forces[0, :, 2] * (1.0 + 1e-9) + 1e-12).all()
        heights = (corners @ pin.XYZQUATToSE3(sim.q).rotation.T)[:, 2] + sim.q[2]
        bend = sim.snapshot().contact["bend"]
        springs = stiffness / (exponent + 1.0) * np.maximum(-heights, 0.0) ** (exponent + 1.0)
        energy = pin.computeMechanicalEnergy(brick.model, data, sim.q, sim.v)
        found.append(energy + springs.sum() + 0.5 * DEFAULT.tangential_stiffness * np.square(bend).sum())
    assert contact.unresolved == 0
    return np.array(found)


@pytest.mark.long
@settings(max_examples=15)
@given(
    throw=st.builds(Throw, turn=triples(0.5), linear=triples(1.5), angular=triples(4.0)),
    exponent=st.sampled_from([1.0, 1.5]),
)
def test_contact_never_adds_energy(throw: Throw, exponent: float) -> None:
    """The tolerance is the integration error of the rotating brick, which is of first order in the step."""
    brick = special_robot("brick")
    for h in (1e-3, 2.5e-4):
        energy = energies(brick, throw, h, exponent)
        scale = energy[0]
        assert (energy - np.minimum.accumulate(energy)).max() < 4.0 * h * scale


@pytest.mark.parametrize("h", [1e-3, 2.5e-4])
def test_steps_add_no_energy(h: float) -> None:
    """A thrown, rotating brick: the error of its impacts is 1e-6 of its energy."""
    throw = Throw((0.4, -0.3, 0.3), (0.5, -0.5, -0.5), (2.0, 2.0, -1.0))
    energy = energies(special_robot("brick"), throw, h, 1.0)
    assert (energy - np.minimum.accumulate(energy)).max() < 1e-6 * energy[0]


def test_a_snapshot_repeats_every_bit() -> None:
    """In the middle of a slide with bent bristles and vertices that come and go."""
    brick = special_robot("brick")
    sim = Simulator(brick, contact=MODEL)
    pose = pin.SE3(pin.exp3(np.array([0.2, 0.1, 0.3])), np.array([0.0, 0.0, 0.05]))
    sim.reset(pin.SE3ToXYZQUAT(pose), np.array([0.8, 0.3, -0.5, 1.0, -2.0, 0.5]))

    def course(steps: int) -> list[np.ndarray]:
        rows = []
        for _ in range(steps):
            contact = sim.advance(NOTHING)
            rows.append(np.concatenate([sim.q, sim.v, contact.wrench.ravel(), contact.vertex_forces.ravel()]))
        return rows

    course(150)
    snapshot = sim.snapshot()
    assert np.abs(snapshot.contact["bend"]).max() > 1e-5
    first = course(300)
    changes = sim.contact.state_changes
    sim.restore(snapshot)
    np.testing.assert_array_equal(course(300), first)
    assert sim.contact.state_changes == changes


def test_a_step_that_needs_more_substeps_than_allowed_is_counted(block: Robot) -> None:
    """On the ground with one substep a step, never in the air; with as many as it takes, nowhere."""
    for most in (1, DEFAULT.max_substeps):
        sim = Simulator(block, contact=MODEL, contact_params={"max_substeps": most, "resolution": 0.1})
        sim.reset(block.q_nominal + np.array([0.0, 0.0, 0.05, 0.0, 0.0, 0.0, 0.0]))
        push(sim, np.zeros(6), 0.09)
        assert sim.contact.unresolved == 0
        push(sim, np.zeros(6), 3.0)
        before = sim.contact.unresolved
        push(sim, np.zeros(6), 0.1)
        assert sim.contact.unresolved - before == (100 if most == 1 else 0)
    assert before == 0
