"""The walk of the planar biped: plan, distribution of forces to the feet, twenty steps, a push, invalid arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from numpy.testing import assert_allclose
from physics_support import G
from refusals import refusal
from reproduce_support import measured, outcome

from bipedsim.control.controllers import make_controller
from bipedsim.control.output.planar_body import PlanarBody
from bipedsim.control.output.planar_gait import DEPTH, PlanarGait, PlanarWalk
from bipedsim.control.output.supported import LEAST_PRESSURE, SupportedDynamics, Task
from bipedsim.model import Robot, load_robot
from bipedsim.sim.simulator import Simulator

GAIT = PlanarGait(7, 0.25, 0.05, 0.45, 0.15, 0.6, 0.03)


@pytest.fixture(scope="module")
def biped() -> Robot:
    return load_robot("planar_biped")


@pytest.fixture(scope="module")
def walk(biped: Robot) -> PlanarWalk:
    return PlanarWalk(biped, GAIT, "test")


# The plan


def placed(biped: Robot, joints: np.ndarray, foot: int, ahead: float) -> np.ndarray:
    """Return the configuration in which one foot is flat on the ground at ``ahead`` [m], by hand: two lengths a leg."""
    q = np.zeros(9)
    q[biped.idx_q] = joints
    q[2] = -joints[3 * foot : 3 * foot + 3].sum()
    data = biped.model.createData()
    pin.forwardKinematics(biped.model, data, q)
    sole = biped.soles[foot]
    at = data.oMi[sole.joint_id].act(sole.placement_joint_sole.translation)
    q[:2] = ahead - at[0], -at[2]
    return q


def test_velocities_and_accelerations_are_derivatives_and_it_begins_and_ends_at_rest(
    biped: Robot, walk: PlanarWalk
) -> None:
    h = 1e-4
    for t in np.random.default_rng(1).uniform(0.0, walk.duration, 200):
        before, now, after = walk.at(t - h), walk.at(t), walk.at(t + h)
        assert_allclose((after[0] - before[0]) / (2.0 * h), now[1], atol=2e-4)
        assert_allclose((after[1] - before[1]) / (2.0 * h), now[2], atol=0.5)
    for t in (-1.0, 0.0, walk.duration, walk.duration + 1.0):
        assert_allclose(walk.at(t)[0], biped.posture, atol=1e-8)
    for t in (1e-6, walk.duration - 1e-6):
        assert_allclose(walk.at(t)[1], 0.0, atol=1e-3)


def test_feet_are_flat_and_a_step_apart_and_the_trunk_is_upright(biped: Robot, walk: PlanarWalk) -> None:
    """In double support both feet are on the ground, within the depth to which a landing foot is controlled."""
    landings = [GAIT.walk_begin + (k + 1) * GAIT.period - GAIT.step_shift for k in range(GAIT.n_steps - 1)]
    for k, landing in enumerate(landings):
        joints = walk.at(landing + GAIT.step_shift)[0]
        new = (k + 1) % 2
        q = placed(biped, joints, new, 0.0)
        assert q[2] == pytest.approx(0.0, abs=1e-6)
        data = biped.model.createData()
        pin.forwardKinematics(biped.model, data, q)
        other = biped.soles[1 - new]
        points = np.array([data.oMi[other.joint_id].act(vertex) for vertex in other.vertices_joint])
        assert_allclose(points[:, 2], 0.0, atol=1e-5)
        own = data.oMi[biped.soles[new].joint_id].translation[0]
        assert own - data.oMi[other.joint_id].translation[0] == pytest.approx(GAIT.step_length, abs=1e-5)


def test_the_centre_of_pressure_is_that_of_newton_and_euler(biped: Robot, walk: PlanarWalk) -> None:
    """The momentum of all bodies, by differences, compared with the plan: mid-foot in single support."""
    h = 1e-3
    model, data = biped.model, biped.model.createData()
    landed = GAIT.walk_begin + 2.0 * GAIT.period + GAIT.step_duration
    for t in np.linspace(landed + GAIT.step_shift + 0.02, landed + GAIT.step_shift + GAIT.step_duration - 0.02, 9):
        stance = 1
        moments, forces, com = [], [], None
        for s in (-h, 0.0, h):
            now, rate = walk.at(t + s)[:2]
            q = placed(biped, now, stance, 0.0)
            ahead = placed(biped, now + 1e-6 * rate, stance, 0.0)
            pin.computeCentroidalMomentum(model, data, q, (ahead - q) / 1e-6)
            forces.append(data.hg.linear.copy())
            moments.append(data.hg.angular[1])
            com = data.com[0].copy() if s == 0.0 else com
        assert com is not None
        force = (forces[2] - forces[0]) / (2.0 * h) + [0.0, 0.0, biped.weight]
        moment = (moments[2] - moments[0]) / (2.0 * h)
        # M_y about the CoM = -z f_x - (p - x) f_z
        cop = com[0] - (moment + com[2] * force[0]) / force[2]
        assert cop == pytest.approx(biped.soles[stance].centre[0], abs=2e-3)


def test_a_stride_repeats_and_the_feet_change_places(walk: PlanarWalk) -> None:
    t = GAIT.walk_begin + 2.0 * GAIT.period + 0.1
    left, right = walk.at(t)[0], walk.at(t + GAIT.period)[0]
    assert_allclose(left[:3], right[3:], atol=1e-5)
    assert_allclose(walk.share(t), walk.share(t + GAIT.period)[::-1], atol=1e-9)


def test_shares_pass_from_foot_to_foot(walk: PlanarWalk) -> None:
    shares = np.array([walk.share(t) for t in np.arange(-0.5, walk.duration + 0.5, 1e-2)])
    assert_allclose(shares.sum(axis=1), 1.0, atol=1e-12)
    assert_allclose(shares[[0, -1]], 0.5)
    assert shares.min() == 0.0
    swings = [np.flatnonzero(np.diff((column == 0.0).astype(int)) > 0).size for column in shares.T]
    assert sum(swings) == GAIT.n_steps


# Shared forces


@pytest.mark.parametrize("share", [(0.5, 0.5), (0.9, 0.1), (1.0, 0.0)])
def test_feet_that_share_move_the_robot_as_before_and_do_not_pull(biped: Robot, share: tuple[float, float]) -> None:
    sim = Simulator(biped)
    observation = sim.reset()
    dynamics = SupportedDynamics(biped)
    dynamics.place(observation)
    parts = np.array(share)
    dynamics.update(observation, parts > 0.0)
    rng = np.random.default_rng(5)
    eye = np.eye(9)[biped.idx_v]
    for _ in range(20):
        # Both legs alike, as feet that rest ask for; so slow that the weight stays between heel and toe.
        wanted = np.tile(rng.normal(size=3) * 0.05, 2) if parts.min() > 0.0 else rng.normal(size=6) * 0.05
        u = dynamics.torque([Task(eye, np.zeros(6), wanted)], np.zeros(6))
        shared = dynamics.shared(u, parts)
        a = dynamics.A @ shared + dynamics.b
        assert_allclose(a, dynamics.A @ u + dynamics.b, atol=1e-8)
        # The simulator agrees on the forces: loads as they are shared.
        sim.reset()
        sim.step(shared)
        loads = sim.contact.wrench[:, 2]
        assert_allclose(loads, parts * loads.sum(), atol=0.2 * biped.weight * 0.05)
        assert_allclose(loads.sum(), biped.mass * (G + _com_rise(biped, a)), rtol=2e-3)


def _com_rise(biped: Robot, a: np.ndarray) -> float:
    data = biped.model.createData()
    return float(pin.jacobianCenterOfMass(biped.model, data, biped.q_nominal)[2] @ a)


@pytest.mark.parametrize("acceleration", [-2.0, -1.5, 1.5])
def test_joints_give_way_where_the_foot_would_tip(biped: Robot, acceleration: float) -> None:
    """In single support, a command throws the body at the ankle.

    The CoP stops before the edge, the foot stays, joints lag.
    """
    q = biped.q_nominal.copy()
    q[biped.idx_q[3:]] += [-0.4, 0.8, -0.4]
    sim = Simulator(biped)
    dynamics = SupportedDynamics(biped)
    dynamics.place(observation := sim.reset(q))
    share = np.array([1.0, 0.0])
    dynamics.update(observation, share > 0.0)
    wanted = np.zeros(6)
    wanted[2] = acceleration
    u = dynamics.torque([Task(np.eye(9)[biped.idx_v], np.zeros(6), wanted)], np.zeros(6))
    shared = dynamics.shared(u, share)
    assert_allclose((dynamics.A @ u + dynamics.b)[biped.idx_v], wanted, atol=1e-9)
    assert 0.1 < np.abs((dynamics.A @ shared + dynamics.b)[biped.idx_v] - wanted).max() < abs(acceleration)
    sim.reset(q)
    sim.step(u)
    assert sim.contact.clamped[0] != 3, "the foot tips"
    sim.reset(q)
    sim.step(shared)
    assert sim.contact.clamped[0] == 3
    edge = biped.soles[0].vertices[:, 0].min() if acceleration < 0.0 else biped.soles[0].vertices[:, 0].max()
    least = LEAST_PRESSURE * np.ptp(biped.soles[0].vertices[:, 0])
    assert abs(sim.contact.cop[0, 0] - edge) == pytest.approx(least, rel=0.05)


# The walk


@pytest.mark.slow
def test_it_walks_twenty_steps_and_returns_when_pushed() -> None:
    assert [check.quantity for check in outcome("hurmuzlu2001", "planar_gait").checks if not check.ok] == []
    assert measured("hurmuzlu2001", "planar_gait", "pushed by") > 0.01


@pytest.mark.long
def test_partial_linearisation_walks_as_well(biped: Robot) -> None:
    sim = Simulator(biped)
    observation = sim.reset()
    controller = make_controller("pfl", biped, {"mode": "walk", "walk_delay": 0.1, "ramp": 0.1})
    controller.reset(observation)
    for _ in range(1400):
        observation = sim.step(controller.update(observation).tau_joint)
    assert np.abs(sim.q[2]) < 2e-3
    assert sim.q[0] > 0.2


@pytest.mark.parametrize(
    ("robot", "controller", "params", "key"),
    [
        ("biped14", "computed_torque", {}, "mode"),
        ("compass", "computed_torque", {}, "mode"),
        ("planar_biped", "computed_torque", {"n_steps": 3}, "n_steps"),
        ("planar_biped", "computed_torque", {"posture": {"l_knee": 0.5}}, "posture"),
        (
            "planar_biped",
            "computed_torque",
            {"step_length": 0.8},
            "walk of planar_biped",
        ),
        ("planar_biped", "finite_time", {}, "mode"),
        ("planar_biped", "computed_torque", {"mode": "squat"}, "mode"),
    ],
)
def test_what_it_cannot_do_is_said(robot: str, controller: str, params: dict[str, Any], key: str) -> None:
    with refusal(place=f"{controller}: {key}"):
        make_controller(controller, load_robot(robot), {"mode": "walk", **params})


def test_a_start_that_would_tip_the_foot_is_refused(biped: Robot) -> None:
    with refusal(place="test: walk of planar_biped"):
        PlanarWalk(biped, PlanarGait(0, 0.35, 0.05, 0.3, 0.05, 0.6, 0.05), "test")


def test_the_body_knows_where_its_weight_is(biped: Robot) -> None:
    body = PlanarBody(biped, "test")
    still = np.zeros((1, 9))
    assert body.centre_of_pressure(biped.q_nominal[None], still, still)[0] == pytest.approx(body.middle, abs=1e-9)
    assert body.room == pytest.approx(0.12)
    assert DEPTH < 1e-3
