"""Landings and flight: events do not reduce the order, and without external forces the conserved quantities stay
constant.

The reference for landings is Housner's theory of the rocking block ("The behavior of inverted pendulum structures
during earthquakes", Bulletin of the Seismological Society of America 53, 1963). Between impacts it is a pendulum about
an edge, integrated here to 1e-12. An impact conserves the angular momentum about the edge that lands.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from marks import sampled
from physics_support import G, box_robot, rectangle, special_robot
from rocking_theory import CRITICAL, HEIGHT, REACH, WIDTH, housner
from theory import MODELS, THEORY, Theory

from bipedsim.contact.base import STATE_CHANGES, STEPS, UNRESOLVED, ContactResult
from bipedsim.contact.models import CONTACT_MODELS
from bipedsim.dynamics import Outcome
from bipedsim.ground import Ground
from bipedsim.model import Robot, load_robot
from bipedsim.sim.arrival import Calls
from bipedsim.sim.simulator import Simulator

MASS = 2.0
NOTHING = np.zeros(0)
# Those that look for the velocity after the step, of all that are in the table.
VELOCITY_LEVEL = [name for name in MODELS if THEORY.get(name, Theory()).rigid]
BOUNCING = [name for name in VELOCITY_LEVEL if hasattr(CONTACT_MODELS[name].Params(), "restitution")]


@pytest.fixture(scope="module")
def block(tmp_path_factory: pytest.TempPathFactory) -> Robot:
    inertia = MASS / 3.0 * REACH**2
    return box_robot(
        tmp_path_factory.mktemp("block"),
        [[-WIDTH, 0.0], [WIDTH, 0.0]],
        MASS,
        HEIGHT,
        (inertia, inertia, 0.01),
        0.45,
        0.45,
    )


def let_go(robot: Robot, model: str, h: float) -> Simulator:
    """Return the block at rest on an edge, at half its critical angle."""
    sim = Simulator(robot, contact=model, physics_dt=h)
    turned = pin.utils.rotate("y", 0.5 * CRITICAL)
    edge = np.array([WIDTH, 0.0, 0.0])
    sim.reset(pin.SE3ToXYZQUAT(pin.SE3(turned, edge - turned @ edge)))
    return sim


def rocked(robot: Robot, model: str, h: float, duration: float) -> tuple[np.ndarray, np.ndarray, Simulator]:
    """Return the times at which the block passes the upright [s], and the largest angles between [rad]."""
    sim = let_go(robot, model, h)
    angles = [0.5 * CRITICAL]
    for _ in range(round(duration / h)):
        sim.advance(NOTHING)
        angles.append(2.0 * np.arcsin(sim.q[4]))
    angle = np.array(angles)
    passed = np.flatnonzero(angle[:-1] * angle[1:] < 0.0)
    share = angle[passed] / (angle[passed] - angle[passed + 1])
    peaks = [np.abs(angle[a:b]).max() for a, b in itertools.pairwise(passed)]
    return h * (passed + share), np.array(peaks), sim


@pytest.mark.parametrize("model", VELOCITY_LEVEL)
def test_a_block_rocks_as_housner_says(block: Robot, model: str) -> None:
    times, peaks = housner(6)
    found, angles, sim = rocked(block, model, 1e-3, 2.4)
    np.testing.assert_allclose(angles[:5], peaks, rtol=1e-3)
    np.testing.assert_allclose(found[:6], times, atol=1e-3)
    assert sim.contact.unresolved == 0


@pytest.mark.parametrize("model", sampled(VELOCITY_LEVEL, 1))
def test_impacts_cost_no_order(block: Robot, model: str) -> None:
    """Up to an impact a block rocks with an error of first order; six impacts more must not add to the order."""
    times, peaks = housner(6)
    errors = []
    for h in (4e-3, 2e-3, 1e-3):
        found, angles, _ = rocked(block, model, h, 2.4)
        errors.append((abs(found[0] - times[0]), abs(found[5] - times[5]), np.abs(angles[:5] - peaks).max() / CRITICAL))
        # Released between two steps, the block is half a step ahead or behind, and stays so.
        assert errors[-1][0] < h
        assert errors[-1][1] < errors[-1][0] + h
        assert errors[-1][2] < 0.2 * h


def check_bounces(sim: Simulator, upward: np.ndarray, gap: float, pull: float, count: int) -> None:
    """Let a ball with e = 0.7 fall through ``gap`` [m] under ``pull`` [m/s^2], and compare its first ``count`` bounces.

    ``upward`` (nv,) takes its velocity away from the ground out of that of the robot.
    """
    e = 0.7
    speed = np.sqrt(2.0 * pull * gap)
    expected = speed / pull * (1.0 + 2.0 * np.cumsum([0.0, *e ** np.arange(1, count)]))
    times: list[float] = []
    while len(times) < count:
        contact = sim.advance(NOTHING)
        if contact.impact[0, 2] > 0.0:
            # When it was at the ground, from how fast it is now.
            times.append(sim.t - (e ** (len(times) + 1) * speed - upward @ sim.v) / pull)
        assert sim.t < 3.0
    np.testing.assert_allclose(times, expected, rtol=1e-10)


@pytest.mark.parametrize("model", BOUNCING)
@pytest.mark.parametrize("body", ["ball", "ball_3d"])
def test_a_ball_bounces_in_time(body: str, model: str) -> None:
    """Flight and impacts of a ball are exact at any step."""
    robot = special_robot(body)
    sim = Simulator(robot, contact=model, physics_dt=2e-3, contact_params={"restitution": 0.7})
    up = 1 if body == "ball" else 2
    q = robot.q_nominal.copy()
    q[up] += 1.0
    sim.reset(q)
    check_bounces(sim, np.eye(robot.model.nv)[up], 1.0, G, 10)


@pytest.mark.parametrize("model", sampled(BOUNCING, 1))
def test_a_ball_bounces_in_time_down_a_slope(model: str) -> None:
    """Without friction, the way along the normal is that over flat ground under its share of gravity."""
    angle, gap = 0.3, 0.5
    robot = special_robot("ball_3d")
    ground = Ground.slope(-angle, friction_static=0.0)
    sim = Simulator(robot, ground, contact=model, physics_dt=2e-3, contact_params={"restitution": 0.7})
    uphill, _, normal = ground.patches[0].rotation_world_patch.T
    q = robot.q_nominal.copy()
    q[:3] = (q[2] + gap) * normal
    sim.reset(q)
    check_bounces(sim, np.append(normal, np.zeros(3)), gap, G * np.cos(angle), 6)
    assert uphill @ sim.v[:3] == pytest.approx(-G * uphill[2] * sim.t, rel=1e-9)


@pytest.mark.parametrize("model", VELOCITY_LEVEL)
def test_plain_time_stepping_falls_as_a_semi_implicit_step_does(model: str) -> None:
    """Without events z falls by g h^2 n (n + 1) / 2 in n steps; and closes the last gap."""
    h, height = 2e-3, 0.05
    robot = special_robot("ball_3d")
    sim = Simulator(robot, contact=model, physics_dt=h, events=False)
    q = robot.q_nominal.copy()
    q[2] += height
    sim.reset(q)
    steps = 0
    while height - 0.5 * G * h**2 * (steps + 1) * (steps + 2) > 0.0:
        sim.advance(NOTHING)
        steps += 1
        left = height - 0.5 * G * h**2 * steps * (steps + 1)
        assert sim.q[2] - robot.q_nominal[2] == pytest.approx(left, abs=1e-13)
        assert sim.v[2] == pytest.approx(-G * h * steps, rel=1e-12)
    sim.advance(NOTHING)
    assert sim.q[2] == pytest.approx(robot.q_nominal[2], abs=1e-12)
    assert sim.v[2] == pytest.approx(-left / h, rel=1e-9)


@pytest.mark.parametrize("h", [1e-3, 5e-3])
@pytest.mark.parametrize("model", sampled(MODELS, 1))
def test_momentum_stays_in_flight_and_the_mass_falls_along_its_parabola(model: str, h: float) -> None:
    robot = load_robot("biped14")
    pinocchio, data = robot.model, robot.model.createData()
    rng = np.random.default_rng(1)
    sim = Simulator(robot, contact=model, physics_dt=h)
    q = robot.q_nominal.copy()
    q[2] += 20.0
    sim.reset(q, rng.normal(size=pinocchio.nv))

    def carried() -> tuple[np.ndarray, np.ndarray]:
        momentum = pin.computeCentroidalMomentum(pinocchio, data, sim.q, sim.v).vector.copy()
        return momentum, pin.centerOfMass(pinocchio, data, sim.q).copy()

    (begun, place), base = carried(), sim.q[:3].copy()
    push = np.array([30.0, -20.0, 10.0, 2.0, -1.0, 3.0])
    sim.push(push, duration=0.1)
    pushed_spin = np.zeros(3)
    down = robot.mass * np.array([0.0, 0.0, -G])
    impulse = np.zeros(3)
    for _ in range(round(0.5 / h)):
        momentum, com = carried()
        pushes = sim.t < 0.1 - 1e-9
        force = down + push[:3] * pushes
        pushed_spin += h * (np.cross(sim.q[:3] - com, push[:3]) + push[3:]) * pushes
        np.testing.assert_allclose(com, place, atol=1e-11)
        place += h * momentum[:3] / robot.mass + 0.5 * h**2 * force / robot.mass
        impulse += h * force
        sim.advance(np.zeros(robot.nu))
    momentum, _ = carried()
    np.testing.assert_allclose(momentum[:3], begun[:3] + impulse, rtol=1e-11)
    np.testing.assert_allclose(momentum[3:], begun[3:] + pushed_spin, atol=1e-10)
    assert np.linalg.norm(sim.q[:3] - base) > 0.1


@pytest.mark.parametrize("model", VELOCITY_LEVEL)
def test_a_landing_is_told_as_one_step(model: str) -> None:
    """It counts as one step. Its impulse is the change of momentum, and `impact` contains the impulse of the impact."""
    robot = load_robot("biped14")
    pinocchio, data = robot.model, robot.model.createData()
    sim = Simulator(robot, contact=model)
    q = robot.q_nominal.copy()
    q[2] += 5.3e-3
    sim.reset(q)
    for step in range(40):
        before = pin.computeCentroidalMomentum(pinocchio, data, sim.q, sim.v).linear.copy()
        contact = sim.advance(np.zeros(robot.nu))
        after = pin.computeCentroidalMomentum(pinocchio, data, sim.q, sim.v).linear
        assert contact.steps == step + 1
        if contact.impact.any():
            break
    assert contact.impulse[:, :3].sum(axis=0) == pytest.approx(
        after - before + [0.0, 0.0, robot.weight * 1e-3], abs=1e-3 * np.linalg.norm(contact.impulse)
    )
    assert contact.state_changes == 2, "both feet, from none to face"
    assert contact.impact[:, 2].sum() == pytest.approx(contact.impulse[:, 2].sum(), rel=0.02)
    soles = sim.ground_truth().pose_world_sole[:, 2]
    assert np.abs(soles).max() < 1e-6, "they are on the ground in the step in which they land"


@pytest.mark.parametrize("model", VELOCITY_LEVEL)
def test_the_impact_is_told_in_the_axes_of_the_sole(model: str, tmp_path: Path) -> None:
    """A box comes down flat on a slope, turned and sliding. The impact impulse equals its change of momentum."""
    robot = box_robot(tmp_path, rectangle(0.3, 0.2))
    ground = Ground.slope(-0.2)
    axes = ground.patches[0].rotation_world_patch
    turned = axes @ pin.utils.rotate("z", 0.7)
    sim = Simulator(robot, ground, contact=model)
    sim.reset(pin.SE3ToXYZQUAT(pin.SE3(turned, 5e-4 * axes[:, 2])), [*(turned.T @ axes @ [0.3, 0.2, -1.0]), 0, 0, 0])
    before = turned @ sim.v[:3]
    contact = sim.advance(NOTHING)
    assert contact.impact[0, 2] > 0.0
    after = pin.Quaternion(sim.q[3:]).matrix() @ sim.v[:3]
    gained = robot.mass * (after - before - [0.0, 0.0, -G * 1e-3])
    assert turned @ contact.impact[0, :3] == pytest.approx(gained, abs=0.03 * np.linalg.norm(gained))
    assert np.linalg.norm(gained - axes @ [0.0, 0.0, axes[:, 2] @ gained]) > 0.1 * np.linalg.norm(gained), "it slid"


@pytest.mark.parametrize("model", sampled(VELOCITY_LEVEL, 1))
def test_what_is_told_of_a_landing_on_one_foot_while_another_carries_is_its_change_of_momentum(
    block: Robot, model: str
) -> None:
    """The velocities are then half a step behind, and the parts of the step count for other shares than their times."""
    h = 4e-3
    sim = let_go(block, model, h)
    landings = 0
    for _ in range(round(1.5 / h)):
        attitude, begun = pin.Quaternion(sim.q[3:]).matrix(), sim.v.copy()
        contact = sim.advance(NOTHING)
        if contact.impact.any():
            landings += 1
            # At the configuration of the landing, which both velocities are taken to.
            lever = np.array([0.0, 0.0, HEIGHT])
            change = sim.v - begun
            gained = block.mass * attitude @ (change[:3] + np.cross(change[3:], lever))
            told = contact.impulse[:, :3].sum(axis=0) + block.mass * h * np.array([0.0, 0.0, -G])
            assert gained[2] == pytest.approx(told[2], abs=0.02 * np.linalg.norm(told)), "but for the turn of the step"
    assert landings >= 3


@pytest.mark.parametrize("model", MODELS)
def test_plain_time_stepping_keeps_no_momentum_in_flight(model: str) -> None:
    robot = load_robot("biped14")
    data = robot.model.createData()
    sim = Simulator(robot, contact=model, physics_dt=5e-3, events=False)
    q = robot.q_nominal.copy()
    q[2] += 20.0
    sim.reset(q, np.random.default_rng(1).normal(size=robot.model.nv))
    spin = pin.computeCentroidalMomentum(robot.model, data, sim.q, sim.v).angular.copy()
    for _ in range(60):
        sim.advance(np.zeros(robot.nu))
    assert np.linalg.norm(pin.computeCentroidalMomentum(robot.model, data, sim.q, sim.v).angular - spin) > 1e-6


@pytest.mark.parametrize("model", VELOCITY_LEVEL)
def test_a_landing_without_an_answer_is_a_step_of_plain_time_stepping(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failed attempt leaves no trace."""
    robot = load_robot("biped14")
    tried, plain = Simulator(robot, contact=model), Simulator(robot, contact=model, events=False)
    q, v = robot.q_nominal.copy(), np.zeros(robot.model.nv)
    q[2] += 3e-4
    v[2] = -0.5
    made = Calls.of
    monkeypatch.setattr(Calls, "of", lambda *given: made(*given)._replace(finish=lambda *its: Outcome.NO_ANSWER))
    for sim in (tried, plain):
        sim.reset(q, v)
        sim.advance(np.zeros(robot.nu))
    np.testing.assert_array_equal(tried.contact.impact, plain.contact.impact)
    np.testing.assert_array_equal(tried.v, plain.v)
    np.testing.assert_array_equal(tried.q, plain.q)
    kept, wanted = (sim.snapshot().contact for sim in (tried, plain))
    assert kept.keys() == wanted.keys()
    # The candidate counters include all attempts.
    for name in kept.keys() - {"counters"}:
        np.testing.assert_array_equal(kept[name], wanted[name], err_msg=name)
    for counter in (STATE_CHANGES, STEPS, UNRESOLVED):
        assert tried.contact.counters[counter] == plain.contact.counters[counter]


@pytest.mark.parametrize("model", VELOCITY_LEVEL)
def test_the_parts_of_a_landing_are_solved_once_each(model: str) -> None:
    """Both feet land flat, in three sub-steps: before the impact, the impact, the rest. None of these asks for the
    impact fraction.

    Constraint selection takes another solve in the impact and in the rest, in which the feet get their modes.
    """
    robot = load_robot("biped14")
    sim = Simulator(robot, contact=model)
    q, v = robot.q_nominal.copy(), np.zeros(robot.model.nv)
    q[2] += 3e-4
    v[2] = -0.5
    sim.reset(q, v)
    sim.advance(np.zeros(robot.nu))
    assert (sim.contact.impact[:, 2] > 1.0).all()
    assert sim.contact.candidates <= (2 if model in BOUNCING else 4)


@pytest.mark.parametrize("model", VELOCITY_LEVEL)
def test_a_second_arrival_in_the_same_step_closes_the_gap(model: str, tmp_path: Path) -> None:
    """A box comes down tilted, without friction. The impact of one edge turns the other one down before the step ends.

    Newton and Euler give the result of the first impact. The second edge gets the velocity that closes its gap in a
    whole step, for the rest of this one. It ends above the ground, never below, and lands in the next step.
    """
    robot, h, speed, half = box_robot(tmp_path, rectangle(0.3, 0.2)), 2e-3, 1.5, 0.15
    tilt, first = np.arcsin(2.5e-3 / (2.0 * half)), 0.9e-3
    turned = pin.utils.rotate("y", tilt)
    sim = Simulator(robot, Ground.slope(0.0, friction_static=0.0), contact=model, physics_dt=h)
    place = np.array([0.0, 0.0, first + half * np.sin(tilt)])
    sim.reset(pin.SE3ToXYZQUAT(pin.SE3(turned, place)), [*(turned.T @ [0.0, 0.0, -speed]), 0.0, 0.0, 0.0])
    begun = robot.mass * speed
    push = begun / (1.0 + robot.mass * half**2 / 0.02)
    late = speed - push / robot.mass + push * half**2 / 0.02
    arrives = first / speed + 2.5e-3 / late
    assert first / speed < 0.5 * h
    assert 0.8 * h < arrives < h

    def edges() -> np.ndarray:
        attitude = pin.Quaternion(sim.q[3:]).matrix()
        return np.array([(sim.q[:3] + attitude @ [x, 0.0, 0.0])[2] for x in (half, -half)])

    def pressed(contact: ContactResult) -> float:
        return float(contact.impulse[0, 2])

    total = pressed(sim.advance(NOTHING))
    assert sim.stepper.landed == pytest.approx(first / speed / h, rel=0.02)
    assert edges()[0] == pytest.approx(0.0, abs=5e-6)
    assert edges()[1] == pytest.approx(sim.stepper.landed * 2.5e-3, rel=0.02)
    for _ in range(3):
        total += pressed(sim.advance(NOTHING))
        assert edges().min() > -1e-9
    np.testing.assert_allclose(sim.v[2:], 0.0, atol=1e-3)
    assert total == pytest.approx(begun + robot.weight * 4.0 * h, rel=1e-3)
    assert sim.contact.unresolved == 0
