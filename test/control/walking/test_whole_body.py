"""Whole-body accelerations and the wrenches of the feet against pinocchio, finite differences and the limits."""

from __future__ import annotations

import dataclasses
import itertools
from functools import lru_cache

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings, strategies as st
from refusals import refusal
from scipy.optimize import nnls
from walking_support import loaded

from bipedsim.control.walking.ankle_limits import sole_polygons
from bipedsim.control.walking.distribution import Distribution, DistributionParams, _rows
from bipedsim.control.walking.reference import turn
from bipedsim.control.walking.supervision import measured_zmp
from bipedsim.control.walking.whole_body import STANCE, SWING, TaskParams, WholeBody
from bipedsim.model import Robot, Sole
from bipedsim.numerics import Array
from bipedsim.numerics.cholesky import solve_positive_definite

ROBOTS = ("biped14", "talos", "g1")
seeds = st.integers(0, 10_000)
PARAMS = DistributionParams()


@lru_cache
def whole(name: str) -> WholeBody:
    """Return the model of a robot."""
    return WholeBody(loaded(name), TaskParams())


def state(robot: Robot, seed: int, spread: float = 0.3, speed: float = 1.0) -> tuple[Array, Array]:
    """Return a random state about standing, anywhere."""
    generator = np.random.default_rng(seed)
    q = pin.integrate(robot.model, robot.q_nominal, spread * generator.uniform(-1.0, 1.0, robot.model.nv))
    return q, speed * generator.uniform(-1.0, 1.0, robot.model.nv)


def feet_at(robot: Robot, data: pin.Data, q: Array, v: Array) -> list[tuple[pin.SE3, Array]]:
    """Return pose and velocity (6,) in the axes of the world of the centre of every sole, by pinocchio."""
    pin.forwardKinematics(robot.model, data, q, v)
    found = []
    for sole in robot.soles:
        centre = sole.placement_joint_sole * pin.SE3(np.eye(3), np.append(sole.centre, 0.0))
        pose = data.oMi[sole.joint_id] * centre
        twist = centre.actInv(data.v[sole.joint_id])
        found.append((pose, np.concatenate([pose.rotation @ twist.linear, pose.rotation @ twist.angular])))
    return found


@pytest.mark.parametrize("name", ROBOTS)
@settings(max_examples=15)
@given(seed=seeds)
def test_feet_are_where_pinocchio_has_them(name: str, seed: int) -> None:
    """Pose, velocity and Jacobian; J a + bias is the derivative of the velocity, by central differences."""
    robot, body = loaded(name), whole(name)
    data = robot.model.createData()
    q, v = state(robot, seed)
    a = np.random.default_rng(seed + 1).uniform(-1.0, 1.0, robot.model.nv)
    body.update(q, v)
    h = 1e-5
    either = [
        feet_at(robot, data, pin.integrate(robot.model, q, s * h * v + 0.5 * h * h * a), v + s * h * a)
        for s in (1.0, -1.0)
    ]
    for k, (pose, twist) in enumerate(feet_at(robot, data, q, v)):
        assert body.feet.R[k] == pytest.approx(pose.rotation, abs=1e-12)
        assert body.feet.p[k] == pytest.approx(pose.translation, abs=1e-12)
        assert body.feet.twist[k] == pytest.approx(twist, abs=1e-10)
        assert body.feet.J[k] @ v == pytest.approx(twist, abs=1e-10)
        rate = (either[0][k][1] - either[1][k][1]) / (2.0 * h)
        assert body.feet.J[k] @ a + body.feet.bias[k] == pytest.approx(rate, abs=1e-5 * (1.0 + np.abs(rate).max()))


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("flying", [-1, 0, 1])
@settings(max_examples=8)
@given(seed=seeds)
def test_tasks_that_agree_are_all_served(name: str, flying: int, seed: int) -> None:
    """Goals that one acceleration serves exactly: least squares finds one that serves them all."""
    robot = loaded(name)
    q, v = state(robot, seed, 0.1, 0.3)
    free = WholeBody(robot, TaskParams(posture_weight=0.0, regularisation=1e-9))
    free.update(q, v)
    goal, feet = free.goal, free.feet
    generator = np.random.default_rng(seed)
    to_rest = -(feet.bias + 20.0 * feet.twist)
    wanted_a = np.linalg.lstsq(np.vstack(feet.J), to_rest.ravel())[0]
    if flying >= 0:
        J = feet.J[1 - flying]
        wanted_a = np.linalg.pinv(J) @ to_rest[1 - flying] + (
            np.eye(len(v)) - np.linalg.pinv(J) @ J
        ) @ generator.uniform(-1.0, 1.0, len(v))
    goal.foot[:] = STANCE
    if flying >= 0:
        goal.foot[flying] = SWING
        goal.R[flying], goal.p[flying], goal.twist[flying] = feet.R[flying], feet.p[flying], feet.twist[flying]
        goal.acceleration[flying] = feet.J[flying] @ wanted_a + feet.bias[flying]
    data = robot.model.createData()
    pin.centerOfMass(robot.model, data, q, v, wanted_a)
    goal.com[:] = data.acom[0]
    R = pin.Quaternion(q[3:7]).toRotationMatrix()
    goal.R_base[:] = R
    # The base turns as it does, and its angular acceleration is that of wanted_a.
    goal.w_base[:] = R @ (v[3:6] + wanted_a[3:6] / 28.0)
    a = free.accelerations(q, v)
    scale = 1.0 + np.abs(wanted_a).max()
    for k in (0, 1):
        served = feet.J[k] @ a + feet.bias[k]
        target = goal.acceleration[k] if k == flying else -20.0 * feet.twist[k]
        assert np.abs(served - target).max() < 1e-6 * scale
    pin.centerOfMass(robot.model, data, q, v, a)
    assert np.abs(data.acom[0] - goal.com).max() < 1e-6 * scale
    assert np.abs(a[3:6] - wanted_a[3:6]).max() < 1e-6 * scale


@pytest.mark.parametrize("name", ROBOTS)
def test_each_gain_acts_on_its_error(name: str) -> None:
    """One error at a time, at rest: the acceleration of that task is stiffness times error, and the way back."""
    robot = loaded(name)
    body = WholeBody(robot, TaskParams(posture_weight=0.0, regularisation=1e-9))
    q, zero = robot.q_nominal, np.zeros(robot.model.nv)
    for case in ("swing", "swing_turn", "base"):
        body.update(q, zero)
        goal, feet = body.goal, body.feet
        goal.foot[:] = STANCE, SWING
        goal.R[:], goal.p[:], goal.twist[:], goal.acceleration[:], goal.com[:] = feet.R, feet.p, 0.0, 0.0, 0.0
        R = pin.Quaternion(q[3:7]).toRotationMatrix()
        goal.R_base[:], goal.w_base[:] = R, 0.0
        off = np.array([0.01, -0.02, 0.03])
        # The error of a rotation is its sine.
        sine = np.sin(np.linalg.norm(off)) / np.linalg.norm(off)
        expected_foot, expected_base = np.zeros(6), np.zeros(3)
        if case == "swing":
            goal.p[1] += off
            expected_foot[:3] = 400.0 * off
        elif case == "swing_turn":
            goal.R[1] = pin.exp3(off) @ goal.R[1]
            expected_foot[3:] = 1600.0 * sine * off
        else:
            goal.R_base[:] = pin.exp3(off) @ R
            expected_base = 200.0 * sine * (R.T @ off)
        a = body.accelerations(q, zero)
        assert feet.J[1] @ a + feet.bias[1] == pytest.approx(expected_foot, abs=3e-3)
        assert a[3:6] == pytest.approx(expected_base, abs=3e-3)


@pytest.mark.parametrize("name", ROBOTS)
@settings(max_examples=10)
@given(seed=seeds)
def test_torques_are_inverse_dynamics_less_the_share_of_the_ground(name: str, seed: int) -> None:
    robot, body = loaded(name), whole(name)
    q, v = state(robot, seed)
    generator = np.random.default_rng(seed)
    a, wrench = generator.normal(0.0, 1.0, len(v)), generator.normal(0.0, 50.0, (2, 6))
    body.update(q, v)
    tau = np.zeros(robot.nu)
    body.torques(a, wrench, tau)
    data = robot.model.createData()
    forces = pin.StdVec_Force()
    for _ in range(robot.model.njoints):
        forces.append(pin.Force.Zero())
    for k, sole in enumerate(robot.soles):
        pose = pin.SE3(np.eye(3), body.feet.p[k])
        pin.forwardKinematics(robot.model, data, q)
        forces[sole.joint_id] = data.oMi[sole.joint_id].actInv(pose.act(pin.Force(wrench[k])))
    expected = pin.rnea(robot.model, data, q, v, a, forces)
    # Not every release of pinocchio counts the reflected inertia in rnea.
    bare = pin.rnea(robot.model, data, q, np.zeros_like(v), a) - pin.rnea(
        robot.model, data, q, np.zeros_like(v), 0.0 * a
    )
    missing = body.body.M @ a - bare
    whole_torque = (expected + missing)[robot.idx_v]
    clipped = np.clip(whole_torque, -robot.effort_limit, robot.effort_limit)
    assert tau == pytest.approx(clipped, abs=1e-8 * np.abs(expected).max())
    assert (clipped == whole_torque).any()


def torsion(name: str, weight: float, counter: float, seed: int) -> tuple[float, Array, Array]:
    """Return the vertical moment [N.m] of the ground about the pivot that the tasks require in a swing phase, by
    pinocchio.

    The second value is the tracking error of the CoM (3,) and of the feet (2, 6).
    """
    robot = loaded(name)
    q, v = state(robot, seed, 0.05, 0.2)
    body = WholeBody(robot, TaskParams(momentum_weight=weight, posture_weight=1e-3, heading_weight=1e-3))
    body.update(q, v)
    goal, feet = body.goal, body.feet
    generator = np.random.default_rng(seed)
    goal.foot[:] = STANCE, SWING
    goal.R[:], goal.p[:], goal.twist[:] = feet.R, feet.p, feet.twist
    goal.acceleration[1] = generator.uniform(-10.0, 10.0, 6) * [1.0, 0.2, 0.3, 0.1, 0.1, 0.1]
    goal.com[:] = generator.uniform(-2.0, 2.0, 3)
    goal.R_base[:] = pin.Quaternion(q[3:7]).toRotationMatrix()
    goal.pivot[:], goal.counter[0] = feet.p[0, :2] + [0.02, 0.01], counter
    a = body.accelerations(q, v).copy()
    data = robot.model.createData()
    pin.centerOfMass(robot.model, data, q, v, a)
    served = np.array([feet.J[k] @ a + feet.bias[k] for k in (0, 1)])
    served -= [-20.0 * feet.twist[0], goal.acceleration[1]]
    pin.computeCentroidalMomentumTimeVariation(robot.model, data, q, v, a)
    arm, force = data.com[0][:2] - goal.pivot, body.body.mass * data.acom[0][:2]
    # Reflected inertia is no momentum of the robot, and the ground does not feel it.
    moment = float(data.dhg.angular[2] + arm[0] * force[1] - arm[1] * force[0])
    return moment, data.acom[0] - goal.com, served


@pytest.mark.parametrize("name", ROBOTS)
@settings(max_examples=8)
@given(seed=seeds)
def test_arms_waist_or_base_spare_the_foot_its_torsion_and_cost_no_other_task(name: str, seed: int) -> None:
    free, com, feet = torsion(name, 1e4, 0.0, seed)
    spared, com_spared, feet_spared = torsion(name, 1e4, 1.0, seed)
    assert abs(spared) < 0.05 * abs(free) + 0.1
    assert np.abs(com_spared - com).max() < 0.02
    assert np.abs(feet_spared - feet).max() < 0.05


@pytest.mark.parametrize("name", ROBOTS)
def test_a_leg_that_bends_moves_the_zmp_back_half_way(name: str) -> None:
    """By as much for either foot, at the posture where it passes the other one."""
    robot, body = loaded(name), whole(name)
    for foot in (0, 1):
        q = body.passing(robot.q_nominal, foot, 0.05, 0.03)
        body.update(q, np.zeros(robot.model.nv))
        high, com = body.feet.p[:, 2].copy(), float(body.body.com[2])
        body.update(robot.q_nominal, np.zeros(robot.model.nv))
        assert high[foot] - high[1 - foot] == pytest.approx(0.05, rel=0.05)
        # The path has eight linear parts. No part corrects the errors of the one before.
        assert com - body.body.com[2] == pytest.approx(-0.03, rel=0.1)
        assert 0.004 < body.knee_inertia(q, foot) < 0.012


@pytest.mark.parametrize("name", ROBOTS)
def test_a_foot_that_speeds_up_ahead_moves_the_zmp_ahead(name: str) -> None:
    robot, body = loaded(name), whole(name)
    kappa = [body.swing_inertia(robot.q_nominal, foot) for foot in (0, 1)]
    assert all(0.004 < value < 0.008 for value in kappa)
    assert kappa[0] == pytest.approx(kappa[1], rel=0.1)
    assert body.goal.foot.tolist() == [STANCE, STANCE]


def test_a_state_that_is_no_number_asks_nothing_of_the_feet() -> None:
    robot, body = loaded("biped14"), WholeBody(loaded("biped14"), TaskParams())
    distribution = Distribution(robot, PARAMS, body.body, body.feet, sole_polygons(robot, 0.0))
    for part in (0, 1):
        q, v = robot.q_nominal.copy(), np.zeros(robot.model.nv)
        (q, v)[part][8] = np.nan
        body.update(q, v)
        try:
            a = body.accelerations(q, v)
        except ArithmeticError:
            continue
        assert not distribution.solve(a, (0, 1))
        assert not distribution.wrench.any()


@given(st.tuples(*[st.floats(-0.3, 0.3)] * 3), seeds, st.floats(0.0, 1.0))
def test_turns_are_rotation_vectors(vector: tuple[float, float, float], seed: int, share: float) -> None:
    R = pin.Quaternion(np.random.default_rng(seed).normal(0.0, 1.0, 4)).normalized().toRotationMatrix()
    turned = R.copy()
    turn(turned, *vector, share)
    w = share * np.array(vector)
    assert turned == pytest.approx(pin.exp3(w) @ R, abs=1e-12)


def shares(name: str, seed: int, effort: float, contact: tuple[int, ...]) -> tuple[WholeBody, Distribution, bool]:
    """Return tasks and foot wrenches for a random CoM acceleration of about ``effort`` [m/s^2], and whether the solve
    succeeded.
    """
    robot, body = loaded(name), WholeBody(loaded(name), TaskParams())
    distribution = Distribution(robot, PARAMS, body.body, body.feet, sole_polygons(robot, 0.0))
    body.update(robot.q_nominal, np.zeros(robot.model.nv))
    generator = np.random.default_rng(seed)
    body.goal.com[:] = effort * generator.uniform(-1.0, 1.0, 3)
    body.goal.R_base[:] = pin.exp3(0.01 * effort * generator.uniform(-1.0, 1.0, 3))
    a = body.accelerations(robot.q_nominal, np.zeros(robot.model.nv))
    solved = distribution.solve(a, contact)
    assert distribution.target == pytest.approx((body.body.M @ a + body.body.nle)[:6], abs=1e-6)
    return body, distribution, solved


def pushes_of(sole: Sole, friction: float) -> np.ndarray:
    """Return the wrenches (6, 4 N) about the centre that the edges of a friction pyramid at each vertex give."""
    mu = friction / np.sqrt(2.0)
    wrenches = []
    for x, y in sole.vertices - sole.centre:
        for force in itertools.product((mu, -mu), (mu, -mu), (1.0,)):
            wrenches.append([*force, *np.cross([x, y, 0.0], force)])
    return np.array(wrenches).T


def not_of_vertices(sole: Sole, wrench: np.ndarray, friction: float) -> float:
    """Return the part of a wrench (6,) about the centre that vertex forces cannot produce [N, 20 N.m]."""
    scale = np.array([1.0, 1.0, 1.0, 20.0, 20.0, 20.0])
    return float(nnls(scale[:, None] * pushes_of(sole, friction), scale * wrench)[1])


@given(seed=seeds, name=st.sampled_from(ROBOTS), inside=st.booleans())
@settings(max_examples=60)
def test_a_foot_may_be_asked_for_what_its_vertices_can_give_and_for_nothing_else(
    seed: int, name: str, inside: bool
) -> None:
    sole = loaded(name).soles[0]
    params = DistributionParams(edge=0.0)
    rows = _rows(sole.name, sole.vertices - sole.centre, params)
    pushes = pushes_of(sole, params.friction)
    generator = np.random.default_rng(seed)
    wrench = pushes @ generator.exponential(1.0, pushes.shape[1]) ** 3
    wrench /= wrench[2]
    if inside:
        assert (rows @ wrench).max() < 1e-9
    else:
        wrench += generator.normal(0.0, 1.0, 6) * [0.1, 0.1, 0.0, 0.01, 0.01, 0.01]
        beyond, missing = (rows @ wrench).max(), not_of_vertices(sole, wrench, params.friction)
        assert beyond > 0.0 or missing < 1e-6
        assert missing > 0.0 or beyond < 1e-6


def test_the_torsion_of_a_rectangle_is_that_of_the_literature() -> None:
    """Caron, Pham and Nakamura (2015), eq. (20) to (22), for random forces at a CoP anywhere in the sole."""
    sole = loaded("biped14").soles[0]
    params = DistributionParams(edge=0.0)
    rows = _rows(sole.name, sole.vertices - sole.centre, params)
    X, Y = np.ptp(sole.vertices, axis=0) / 2.0
    mu = params.friction / np.sqrt(2.0)
    generator = np.random.default_rng(3)
    for _ in range(200):
        fx, fy = mu * generator.uniform(-1.0, 1.0, 2)
        mx, my = generator.uniform(-1.0, 1.0, 2) * [Y, X]
        most = mu * (X + Y) - abs(Y * fx + mu * mx) - abs(X * fy + mu * my)
        least = -mu * (X + Y) + abs(Y * fx - mu * mx) + abs(X * fy - mu * my)
        for sign, limit in ((1.0, most), (-1.0, least)):
            w = np.array([fx, fy, 1.0, mx, my, limit])
            assert abs((rows @ w).max()) < 1e-8
            w[5] += sign * 1e-4
            assert (rows @ w).max() > 1e-5


@given(seed=seeds)
@settings(max_examples=30)
def test_of_a_round_sole_no_more_is_asked_than_all_its_vertices_can_give_and_little_less(seed: int) -> None:
    """Rows are those of six of its 32 vertices: a hexagon, which holds all of the circle but the sixth near its rim."""
    radius, n = 0.1, 32
    turns = 2.0 * np.pi * np.arange(n) / n
    circle = radius * np.column_stack([np.cos(turns), np.sin(turns)])
    sole = dataclasses.replace(loaded("biped14").soles[0], vertices=circle)
    params = DistributionParams(edge=0.0)
    rows = _rows(sole.name, sole.vertices - sole.centre, params)
    assert len(rows) < 4 * n, "all 32 vertices would have more rows than friction pyramids have edges"
    generator = np.random.default_rng(seed)
    # The farthest that the rows let a random wrench go.
    wrench = np.array([*generator.normal(0.0, 0.1, 2), 1.0, *generator.normal(0.0, 0.03, 3)])
    ahead = np.concatenate([wrench[:2], [0.0], wrench[3:]])
    up = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    reach = min(-(row @ up) / (row @ ahead) for row in rows if row @ ahead > 1e-12)
    assert not_of_vertices(sole, up + 0.999999 * reach * ahead, params.friction) < 1e-6
    # Pressure alone, at three quarters of the radius, whichever way.
    angle = generator.uniform(0.0, 2.0 * np.pi)
    x, y = 0.75 * radius * np.array([np.cos(angle), np.sin(angle)])
    assert (rows @ np.array([0.0, 0.0, 1.0, y, -x, 0.0])).max() < 0.0


def test_many_vertices_at_one_place_leave_the_sole_its_size() -> None:
    """Every n-th vertex of this sole of 0.3 x 0.03 m is at one end; reference: the rectangle without rounded end."""
    turns = np.linspace(-0.5, 0.5, 14) * np.pi
    end = np.column_stack([0.15 + 0.015 * np.cos(turns), 0.015 * np.sin(turns)])
    polygon = np.vstack([end, [[-0.15, 0.015], [-0.15, -0.015]]])
    rows = _rows("left", polygon, DistributionParams(edge=0.003))
    for x in (-0.14, 0.14):
        assert (rows @ np.array([0.0, 0.0, 1.0, 0.0, -x, 0.0])).max() < 0.0
    assert (rows @ np.array([0.0, 0.0, 1.0, 0.0, 0.148, 0.0])).max() > 0.0


def test_an_edge_that_leaves_nothing_of_a_sole_is_refused() -> None:
    with refusal(place="edge", value=0.5):
        _rows("left", loaded("biped14").soles[0].vertices, DistributionParams(edge=0.5))


def asked(body: WholeBody, distribution: Distribution, k: int) -> Array:
    """Return the wrench (6,) that a foot is asked for, in the axes of its sole."""
    wrench: Array = (distribution.wrench[k].reshape(2, 3) @ body.feet.R[k]).ravel()
    return wrench


def slack(body: WholeBody, distribution: Distribution, robot: Robot, k: int) -> dict[str, float]:
    """Return how far a foot is from each limit, scaled to forces [N]."""
    f, m = np.split(asked(body, distribution, k), 2)
    found = {
        "pull": f[2],
        "friction": PARAMS.friction / np.sqrt(2.0) * f[2] - np.abs(f[:2]).max(),
        "torsion": -(distribution._limits[k] @ np.concatenate([f, m])).max(),
    }
    if f[2] > 1e-3:
        sole = robot.soles[k]
        cop = sole.centre + np.array([-m[1], m[0]]) / f[2]
        found["edge"] = f[2] * (sole.margin(cop) - PARAMS.edge) / 0.05
    return found


@pytest.mark.parametrize("name", ROBOTS)
@settings(max_examples=15)
@given(seed=seeds, effort=st.sampled_from([0.1, 1.0, 5.0, 30.0]), contact=st.sampled_from([(0,), (1,), (0, 1)]))
def test_feet_are_asked_for_what_they_can_do_and_that_is_what_the_base_needs(
    name: str, seed: int, effort: float, contact: tuple[int, ...]
) -> None:
    robot = loaded(name)
    body, distribution, solved = shares(name, seed, effort, contact)
    assert solved
    least = [slack(body, distribution, robot, k) for k in contact]
    assert min(min(room.values()) for room in least) > -1e-4 * robot.weight
    for k in contact:
        wrench = asked(body, distribution, k)
        assert not_of_vertices(robot.soles[k], wrench, PARAMS.friction) < 1e-4 * robot.weight
    for k in {0, 1} - set(contact):
        assert not distribution.wrench[k].any()
    if min(min(room.values()) for room in least) > 1.0:
        # No limit is active: the six rows of the base hold, moments in N.m.
        given_ = sum(body.feet.J[k][:, :6].T @ distribution.wrench[k] for k in contact)
        assert given_ == pytest.approx(distribution.target, abs=0.5)


def test_standing_at_ease_is_within_all_limits_and_shared_evenly() -> None:
    for name in ROBOTS:
        body, distribution, _ = shares(name, 0, 0.0, (0, 1))
        robot = loaded(name)
        assert min(min(slack(body, distribution, robot, k).values()) for k in (0, 1)) > 1.0
        assert distribution.wrench[:, 2].sum() == pytest.approx(robot.weight, abs=0.5)
        assert distribution.wrench[0, 2] == pytest.approx(0.5 * robot.weight, rel=0.02)


def test_demands_that_are_no_numbers_are_refused_and_no_feet_bear_nothing() -> None:
    body, distribution, _ = shares("biped14", 0, 0.0, (0, 1))
    before = distribution.wrench.copy()
    for bad in (np.nan, np.inf):
        assert not distribution.solve(np.full(len(body.body.nle), bad), (0, 1))
        assert (distribution.wrench == before).all()
    assert distribution.solve(np.zeros(len(body.body.nle)), ())
    assert not distribution.wrench.any()


@given(seeds)
@settings(max_examples=30)
def test_the_zmp_is_where_the_moment_of_all_feet_is_vertical(seed: int) -> None:
    robot, body = loaded("g1"), whole("g1")
    generator = np.random.default_rng(seed)
    body.update(robot.q_nominal, np.zeros(robot.model.nv))
    wrench = generator.uniform(-1.0, 1.0, (2, 6)) * [50.0, 50.0, 200.0, 8.0, 8.0, 5.0] + [
        0.0,
        0.0,
        250.0,
        0.0,
        0.0,
        0.0,
    ]
    centres = np.array([sole.centre for sole in robot.soles])
    zmp = np.zeros(2)
    assert measured_zmp(body.feet, wrench, centres, 50.0, zmp)
    total = pin.Force.Zero()
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, robot.q_nominal)
    for sole, w in zip(robot.soles, wrench, strict=True):
        total += (data.oMi[sole.joint_id] * sole.placement_joint_sole).act(pin.Force(w))
    # The soles lie on z = 0.
    at = np.array([-total.angular[1], total.angular[0]]) / total.linear[2]
    assert zmp == pytest.approx(at, abs=1e-6)
    assert not measured_zmp(body.feet, wrench, centres, 1e6, zmp)
    wrench[0, 2] = -10.0
    assert measured_zmp(body.feet, wrench, centres, 1.0, zmp)
    alone = robot.soles[1].placement_joint_sole
    cop = (data.oMi[robot.soles[1].joint_id] * alone).act(np.array([-wrench[1, 4], wrench[1, 3], 0.0]) / wrench[1, 2])
    assert zmp == pytest.approx(cop[:2], abs=1e-6)


@given(n=st.integers(1, 45), seed=seeds)
def test_positive_definite_equations_are_solved_and_others_refused(n: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    root = generator.normal(size=(n, n))
    matrix, wanted = root @ root.T + 0.1 * np.eye(n), generator.normal(size=n)
    work, b = np.triu(matrix), matrix @ wanted
    assert solve_positive_definite(work, b)
    assert b == pytest.approx(wanted, abs=1e-9 * np.linalg.cond(matrix))
    assert np.triu(work).T @ np.triu(work) == pytest.approx(matrix, abs=1e-10 * np.abs(matrix).max())
    for spoilt in (-1.0, np.nan):
        indefinite = np.triu(matrix)
        indefinite[n - 1, n - 1] = spoilt
        assert not solve_positive_definite(indefinite, np.ones(n))
    assert not solve_positive_definite(np.triu(matrix), np.full(n, np.inf))
