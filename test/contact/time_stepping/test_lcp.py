"""The contact model ``lcp``: friction of a pyramid, restitution, energy, other solvers, and robots that stand."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from motion_support import Motion
from physics_support import G, box_robot, rectangle, regular_polygon, slope, special_robot, standing_torque
from refusals import refusal

from bipedsim.contact.models import make_contact_model
from bipedsim.contact.time_stepping.lcp import Lcp
from bipedsim.dynamics.projection import Projection
from bipedsim.dynamics.step import Dynamics
from bipedsim.ground.ground import Ground
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array
from bipedsim.runs.scenario import SCENARIOS
from bipedsim.sim.simulator import Simulator
from bipedsim_studies.complementarity.coulomb import CoulombContacts
from bipedsim_studies.complementarity.time_stepping import assemble_step, solve_step

H = 1e-3
NOTHING = np.zeros(0)
MASS = 2.0
SOLES = {"point": [[0.0, 0.0]], "block": rectangle(0.3, 0.2)}


@pytest.fixture(scope="module", params=sorted(SOLES))
def body(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Robot:
    """Return a point or a block of 2 kg with the CoM in its sole, so that friction does not tilt it."""
    return box_robot(tmp_path_factory.mktemp("body"), SOLES[request.param], mass=MASS, height=0.0, mu_s=0.5, mu_d=0.4)


def lcp_simulator(robot: Robot, h: float = H, **params: float) -> Simulator:
    return Simulator(robot, contact="lcp", physics_dt=h, contact_params=params)


# Friction


@pytest.mark.parametrize("sides", [4, 5, 16])
@pytest.mark.parametrize("angle", [0.0, 0.3, np.pi / 4, -1.9])
def test_a_body_sticks_up_to_the_cone_and_slides_beyond(body: Robot, sides: int, angle: float) -> None:
    """mu m g in every direction, for any number of sides: a corner of each pyramid is opposite to the pull."""
    limit = 0.5 * MASS * G
    for share in (0.9999, 1.0001):
        sim = lcp_simulator(body, sides=sides)
        sim.push(share * limit * np.array([np.cos(angle), np.sin(angle), 0.0, 0.0, 0.0, 0.0]))
        for _ in range(20):
            sim.step(NOTHING)
        assert sim.contact.sliding[0] == (share > 1.0)
        assert (np.linalg.norm(sim.v[:2]) < 1e-12) == (share < 1.0)
        assert sim.contact.wrench[0, 2] == pytest.approx(MASS * G)
        assert sim.contact.vertex_forces[0, :, 2].sum() == pytest.approx(MASS * G)


@pytest.mark.parametrize("angle", [0.0, -np.pi / 2, np.pi / 8, np.pi / 4, 2.0])
def test_a_body_slides_straight_and_stops(body: Robot, angle: float) -> None:
    """The friction mu_d m g opposes the velocity at every step, for any heading.

    The body stops after v / (mu g) and stays at rest.
    """
    direction = np.array([np.cos(angle), np.sin(angle)])
    sim = lcp_simulator(body)
    sim.reset(v=np.array([*direction, 0.0, 0.0, 0.0, 0.0]))
    sim.step(NOTHING)
    steps = int(1.0 / (0.4 * G) / H) - 2
    for _ in range(steps):
        speed = sim.v[:2] @ direction
        sim.step(NOTHING)
        np.testing.assert_allclose(sim.contact.wrench[0, :2], -0.4 * MASS * G * direction, atol=1e-9)
        assert speed - sim.v[:2] @ direction == pytest.approx(0.4 * G * H, rel=1e-9)
        np.testing.assert_allclose(sim.v[2:], 0.0, atol=1e-12)
        assert sim.contact.sliding[0]
    for _ in range(5):
        sim.step(NOTHING)
    np.testing.assert_allclose(sim.v, 0.0, atol=1e-12)
    assert not sim.contact.sliding[0]


@pytest.mark.parametrize("across", [0.58, 0.62])
def test_a_pyramid_turns_with_friction_that_changes_at_once(body: Robot, across: float) -> None:
    """A pull of 0.8 of mu m g along t1, then another one across.

    It sticks up to 0.6; fixed corners would stick up to 0.2.
    """
    sim = lcp_simulator(body)
    limit = 0.5 * MASS * G
    for step in range(60):
        sim.push(limit * np.array([0.8, across if step >= 30 else 0.0, 0.0, 0.0, 0.0, 0.0]))
        sim.step(NOTHING)
    assert sim.contact.sliding[0] == (across > 0.6)


# Slip and spin of a disc of 32 vertices under equal loads, by an ODE of its own: way [m], turn [rad], time to rest [s].
DISC = {(0.0, 30.0): (0.0, 5.734, 0.382), (1.0, 10.0): (0.1617, 1.328, 0.3075), (0.3, 20.0): (0.0636, 2.607, 0.2893)}


@pytest.mark.parametrize("model", ["lcp", "ncp"])
@pytest.mark.parametrize(("speed", "spin"), DISC)
def test_a_disc_that_slides_and_spins_has_coulomb_friction_at_every_vertex(
    tmp_path: Path, model: str, speed: float, spin: float
) -> None:
    """All of them share the load, so that way and turn are right to the first order of the step, (v, w) h / 2."""
    disc = regular_polygon(32, 0.1)
    robot = box_robot(tmp_path, disc, mass=1.0, height=0.0, inertia=(0.01, 0.01, 0.005), mu_s=0.4, mu_d=0.4)
    sim = Simulator(robot, contact=model)
    sim.reset(v=np.array([speed, 0.0, 0.0, 0.0, 0.0, spin]))
    turned, steps = 0.0, 0
    while np.abs(sim.v).max() > 1e-6 and steps < 1000:
        sim.step(NOTHING)
        turned += sim.v[5] * H
        steps += 1
    way, turn, rest = DISC[speed, spin]
    assert np.linalg.norm(sim.q[:2]) == pytest.approx(way, abs=0.5 * speed * H + 2e-3)
    assert turned == pytest.approx(turn, abs=0.5 * spin * H + 2e-3)
    assert steps * H == pytest.approx(rest, abs=2.5 * H)
    assert sim.contact.unresolved == 0


@pytest.mark.parametrize(("share", "slips"), [(0.99, False), (1.01, True)])
def test_a_ball_rolls_down_a_slope_and_slips_where_it_is_too_steep(share: float, slips: bool) -> None:
    """A planar robot on a ball accelerates at 5/7 g sin up to a slope of 7/2 mu. Its contact point can slide freely."""
    ball = special_robot("ball")
    mu, radius = ball.soles[0].friction_dynamic, ball.soles[0].radius
    assert ball.soles[0].friction_static == mu
    angle = np.arctan(3.5 * mu * share)
    sim = Simulator(ball, slope(angle), contact="lcp")
    sim.reset(np.array([radius * np.sin(angle), radius * np.cos(angle), 0.0]))
    for _ in range(300):
        sim.step(NOTHING)
    expected = G * (np.sin(angle) - mu * np.cos(angle)) if slips else 5.0 / 7.0 * G * np.sin(angle)
    assert sim.v[0] * np.cos(angle) - sim.v[1] * np.sin(angle) == pytest.approx(0.3 * expected, rel=1e-9)
    assert sim.contact.sliding[0] == slips
    assert sim.contact.unresolved == 0


# Restitution


def height_and_speed(sim: Simulator) -> tuple[float, float]:
    return float(sim.q[2]), float(sim.v[2])


def energy_of(sim: Simulator) -> float:
    """Return v^2 / 2 + g z [m^2/s^2]."""
    z, v = height_and_speed(sim)
    return 0.5 * v * v + G * z


@pytest.mark.parametrize("e", [0.0, 0.3, 0.8, 1.0])
def test_energy_never_rises_in_flat_drops(body: Robot, e: float) -> None:
    """Energy rises neither at impacts nor between them.

    It is constant for e = 1, and the ball comes to rest for e < 1.
    """
    sim = lcp_simulator(body, restitution=e)
    sim.reset(np.array([0.0, 0.0, 0.05, 0.0, 0.0, 0.0, 1.0]))
    start = energy_of(sim)
    energy, lowest = start, 0.0
    for _ in range(4000):
        sim.step(NOTHING)
        after = energy_of(sim)
        assert after <= energy + 1e-13
        energy, lowest = after, min(lowest, height_and_speed(sim)[0])
    assert lowest > -1e-12
    assert sim.contact.unresolved == 0
    if e == 1.0:
        assert energy == pytest.approx(start, abs=1e-11)
    else:
        assert np.abs(sim.v).max() < 1e-10
        assert abs(sim.q[2]) < 1e-9


@pytest.mark.parametrize("e", [0.25, 0.5, 0.9])
def test_a_bounce_returns_e_of_the_speed(body: Robot, e: float) -> None:
    """This holds in time and height for any step: between its bounces the body is in free fall, to rounding."""
    drop = 0.2
    fall = np.sqrt(2.0 * drop / G)
    for h in (2e-3, 1e-3, 5e-4):
        sim = lcp_simulator(body, h=h, restitution=e)
        sim.reset(np.array([0.0, 0.0, drop, 0.0, 0.0, 0.0, 1.0]))
        while sim.contact.impulse[0, 2] == 0.0:
            sim.step(NOTHING)
        flown = sim.t - fall
        assert 0.0 <= flown < h
        assert sim.v[2] == pytest.approx(e * G * fall - G * flown, rel=1e-9)
        assert sim.q[2] == pytest.approx(e * G * fall * flown - 0.5 * G * flown**2, abs=1e-12)
        # As high as its speed takes it.
        assert energy_of(sim) == pytest.approx(e * e * G * drop, rel=1e-9)


def test_the_impact_of_a_landing_is_its_momentum(body: Robot) -> None:
    """One step contains the impact and the weight for its rest. After that, there is only the weight."""
    sim = lcp_simulator(body)
    sim.reset(np.array([0.0, 0.0, 0.05, 0.0, 0.0, 0.0, 1.0]))
    speed = np.sqrt(2.0 * G * 0.05)
    while sim.contact.impulse[0, 2] == 0.0:
        sim.step(NOTHING)
    impact = [0.0, 0.0, MASS * speed, 0.0, 0.0, 0.0]
    np.testing.assert_allclose(sim.contact.impact[0], impact, atol=1e-10)
    assert sim.contact.impulse[0, 2] == pytest.approx(impact[2] + MASS * (G * sim.t - speed), rel=1e-9)
    for _ in range(3):
        sim.step(NOTHING)
        np.testing.assert_allclose(sim.contact.impact, 0.0, atol=1e-10)
        np.testing.assert_allclose(sim.contact.wrench[0, 2], MASS * G, rtol=1e-9)
    assert abs(sim.q[2]) < 1e-12


# Other solvers


def with_friction(robot: Robot, mu: float) -> Robot:
    soles = tuple(dataclasses.replace(sole, friction_static=mu, friction_dynamic=mu) for sole in robot.soles)
    return dataclasses.replace(robot, soles=soles)


def vertex_rows(robot: Robot, q: Array) -> tuple[Array, Array]:
    """Return the Jacobians (m, 3, nv) of all sole vertices in world axes and their heights (m,), by pinocchio."""
    rows, heights = [], []
    for sole in robot.soles:
        for vertex in sole.vertices:
            placement = sole.placement_joint_sole * pin.SE3(np.eye(3), np.array([*vertex, 0.0]))
            model = pin.Model(robot.model)
            frame = model.addFrame(pin.Frame("vertex", sole.joint_id, 0, placement, pin.FrameType.OP_FRAME), False)
            data = model.createData()
            axes = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
            rows.append(pin.computeFrameJacobian(model, data, q, frame, axes)[:3].copy())
            pin.framesForwardKinematics(model, data, q)
            heights.append(data.oMf[frame].translation[2])
    return np.array(rows), np.array(heights)


@pytest.mark.parametrize("sides", [pytest.param(4, marks=pytest.mark.slow), 6])
def test_steps_of_a_robot_are_those_of_the_general_time_stepping(sides: int) -> None:
    """60 random states of biped14 on and just above the ground: v+ of another assembly with these pyramids, to 1e-8."""
    robot = with_friction(load_robot("biped14"), 0.6)
    model, data = robot.model, robot.model.createData()
    dynamics = Dynamics(robot, Ground.flat(), H)
    contact = make_contact_model("lcp", dynamics.projection, H, {"sides": sides})
    assert isinstance(contact, Lcp)
    rng = np.random.default_rng(31)
    touched = 0
    for case in range(60):
        wiggle = np.concatenate([np.zeros(3), 3e-3 * rng.normal(size=model.nv - 3)])
        q = pin.integrate(model, robot.q_nominal, wiggle)
        q[2] += 1e-4 * (case % 3) - vertex_rows(robot, q)[1].min()
        v = 10.0 ** rng.uniform(-3.0, 0.0) * rng.normal(size=model.nv)
        v[2] -= 0.5
        tau = standing_torque(robot) + 5.0 * rng.normal(size=robot.nu)
        contact.reset()
        projection = dynamics.project(q, v, tau)
        ours = v.copy()
        dynamics.advance(ours, contact.solve(projection).impulse)
        assert contact.residual < 1e-9
        assert contact.result.unresolved == 0
        upper = pin.crba(model, data, q)
        M = np.triu(upper) + np.triu(upper, 1).T + H * np.diag(robot.joint_damping)
        force = -pin.nonLinearEffects(model, data, q, v) - robot.joint_damping * v
        force[robot.idx_v] += tau
        rows, heights = vertex_rows(robot, q)
        points = contact.arrays.lcp.points
        for a in range(points.points[0]):
            x, y = points.axis[a]
            at = 4 * points.foot[a] + contact.arrays.lcp.vertex[a]
            rows[at, :2] = np.array([[x, y], [-y, x]]) @ rows[at, :2]
        contacts = CoulombContacts(rows[:, 2], rows[:, :2], np.array(0.6))
        theirs = solve_step(assemble_step(M, force, v, contacts, heights, H, sides=sides))
        np.testing.assert_allclose(ours, theirs.v, atol=1e-8 * (1.0 + np.abs(theirs.v).max()))
        touched += contact.result.impulse[:, 2].sum() > 0.0
    assert touched > 50


def test_sticking_feet_carry_the_wrenches_that_exact_selection_finds() -> None:
    """Where both feet stick with their whole soles, the wrench is that which holds them: no pyramid, no modes."""
    robot = with_friction(load_robot("biped14"), 0.9)
    dynamics = Dynamics(robot, Ground.flat(), H)
    rng = np.random.default_rng(32)
    compared = 0
    for _ in range(100):
        tau = standing_torque(robot) + 2.0 * rng.normal(size=robot.nu)
        projection = dynamics.project(robot.q_nominal, np.zeros(robot.model.nv), tau)
        results = [make_contact_model(name, projection, H).solve(projection) for name in ("exact", "lcp")]
        faces = all((result.mode == 9).all() and not result.sliding.any() for result in results)
        if faces and (results[0].friction_used < 0.6).all():
            compared += 1
            np.testing.assert_allclose(results[1].wrench, results[0].wrench, atol=1e-6)
            np.testing.assert_allclose(results[1].cop, results[0].cop, atol=1e-8)
    assert compared > 30


# Dependent rows, and problems without an answer


def lone_foot(response: Array, w_free: Array) -> tuple[Projection, Lcp]:
    """Return a square foot on the ground with the Delassus matrix ``response`` (6, 6), and its contact model."""
    sole = dataclasses.replace(load_robot("biped14").soles[0], vertices=np.array(rectangle(0.2, 0.1)))
    projection = Projection.of_soles((sole,))
    projection.G[...], projection.w_free[...] = response, w_free
    projection.offsets[0, :, :2] = sole.vertices
    contact = make_contact_model("lcp", projection, H, {"restitution": 0.5})
    assert isinstance(contact, Lcp)
    return projection, contact


def test_a_planar_foot_has_rows_of_zeros() -> None:
    """It cannot move along t2, roll or turn. It rests with its weight, and slides along t1 only."""
    response = np.diag([0.5, 0.0, 0.5, 0.0, 20.0, 0.0])
    for pull in (0.1, 2.0):
        w_free = np.array([pull * G * H, 0.0, -G * H, 0.0, 0.0, 0.0])
        projection, contact = lone_foot(response, w_free)
        result = contact.solve(projection)
        mu = projection.mu_dynamic[0] if pull > 1.0 else pull
        assert contact.residual < 1e-9
        np.testing.assert_allclose(result.wrench[0, [0, 2]], [-2.0 * G * mu, 2.0 * G], rtol=1e-9)
        assert result.unresolved == 0
        after = w_free + response @ result.impulse[0]
        np.testing.assert_allclose(after, [max(pull - mu, 0.0) * G * H, 0.0, 0.0, 0.0, 0.0, 0.0], atol=1e-12)


def test_a_foot_that_no_impulse_stops_is_counted_and_left_alone() -> None:
    """No contact force can move it, so the step has no solution: no impulse, no NaN, one unresolved step."""
    projection, contact = lone_foot(np.zeros((6, 6)), np.array([0.1, 0.0, -1.0, 0.0, 0.0, 0.0]))
    result = contact.solve(projection)
    assert result.unresolved == 1
    assert result.candidates == 3
    np.testing.assert_array_equal(result.impulse, 0.0)
    np.testing.assert_array_equal(result.vertex_forces, 0.0)


def test_errors_name_the_parameter() -> None:
    projection, _ = lone_foot(np.eye(6), np.zeros(6))
    with refusal(place="contact model lcp: sides", value=3):
        make_contact_model("lcp", projection, H, {"sides": 3})
    with refusal(place="contact model lcp: restitution", value=1.1):
        make_contact_model("lcp", projection, H, {"restitution": 1.1})


# Robots


@pytest.mark.long
@pytest.mark.parametrize("name", ["biped14", "talos"])
@pytest.mark.parametrize("scenario", ["stand", "squat"])
def test_robots_stand_and_squat_without_pivots(name: str, scenario: str) -> None:
    robot = load_robot(name)
    motion = Motion(robot, SCENARIOS[scenario], "lcp")
    contact = motion.sim.solver
    assert isinstance(contact, Lcp)
    worst, path = 0.0, 0
    for _ in range(4000):
        result = motion.step()
        worst = max(worst, contact.residual)
        path += contact.pivots > 0
        assert (result.vertex_forces[:, :, 2] >= 0.0).all()
    print(f"\n{name} {scenario}: residual {worst:.1e}, {path} steps of Lemke's path, {result.state_changes} changes")
    assert worst < 1e-9
    assert result.unresolved == 0
    assert result.state_changes <= (0 if scenario == "stand" else 24)
    assert motion.sim.q[2] > 0.7 * robot.q_nominal[2]
    # Newton's method finds every solution, which makes it cheap.
    assert path == 0


def test_falls_with_limp_joints_have_an_answer_in_every_step() -> None:
    """Newton's method alone does not solve them. Lemke's method has to help, and its results are as accurate."""
    robot = load_robot("biped14")
    rng = np.random.default_rng(34)
    sim = lcp_simulator(robot)
    contact = sim.solver
    assert isinstance(contact, Lcp)
    pivoted = 0
    for _ in range(10):
        q = robot.q_nominal.copy()
        q[2] += 0.02
        sim.reset(q, rng.uniform(-1.0, 1.0, robot.model.nv))
        of_stops = 0
        for _ in range(500):
            sim.step(np.zeros(robot.nu))
            pivoted += contact.pivots > 0
            # The dynamics finds the joint limits. In a few cases, no set of limits is consistent with the contacts.
            of_stops += sim.dynamics.unresolved
            assert contact.residual < 1e-9
            assert (sim.contact.vertex_forces[:, :, 2] >= 0.0).all()
        assert sim.contact.unresolved == of_stops
        assert of_stops <= 1
    print(f"\n{pivoted} of 5000 steps took pivots")
    assert 0 < pivoted < 250


def test_the_same_bits_twice_and_from_a_snapshot() -> None:
    """A landing that bounces and slides, forwards and back.

    A fresh model restored from the snapshot continues with the same bits.
    """
    robot = load_robot("biped14")
    params = {"restitution": 0.3, "sides": 6}
    rng = np.random.default_rng(33)
    torques = standing_torque(robot) + rng.normal(size=(400, robot.nu))
    q = robot.q_nominal.copy()
    q[2] += 0.01

    def bits(sim: Simulator, first: int) -> list[bytes]:
        seen = []
        for tau in torques[first:]:
            sim.step(tau)
            seen.append(sim.q.tobytes() + sim.v.tobytes() + sim.contact.vertex_forces.tobytes())
        return seen

    sim = Simulator(robot, contact="lcp", contact_params=params)
    sim.reset(q)
    whole = bits(sim, 0)
    sim.reset(q)
    for tau in torques[:150]:
        sim.step(tau)
    snapshot = copy.deepcopy(sim.snapshot())
    assert bits(sim, 150) == whole[150:]
    other = Simulator(robot, contact="lcp", contact_params=params)
    for target in (sim, other):
        target.restore(snapshot)
        assert bits(target, 150) == whole[150:]
