"""Standing on one leg and kicking a ball: balance, momentum, and standing afterwards."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
import pytest
from refusals import refusal

from bipedsim.control.controllers import make_controller
from bipedsim.control.walking.dcm import evaluate
from bipedsim.control.walking.gait import WalkGait
from bipedsim.control.walking.kicking import POINTS, KickParams, along_route, route_of
from bipedsim.control.walking.stride import GaitBuild, GaitParams
from bipedsim.errors import UnknownNameError
from bipedsim.model import load_robot
from bipedsim.numerics import Array
from bipedsim.runs import get_scenario
from bipedsim.sim.simulator import Simulator

G, H = 9.81, 1e-3
BALL, RADIUS = 0.4, 0.11
BEGIN, HOLD = 1.0, 5.0


class Rows(NamedTuple):
    """One row per tick: time [s], loads of the feet [N], origins of the soles [m], and whether the robot fell.

    ``speed`` and ``spin`` are those of the ball [m/s], [rad/s]. ``robot`` is the change of the robot's momentum in the
    tick [N.s]. ``ground`` is the impulse of the ground on its feet.
    """

    t: Array
    load: Array
    feet: Array
    speed: Array
    spin: Array
    robot: Array
    ground: Array
    fallen: Array
    friction: float
    mass: float


@lru_cache
def kicked(foot: str = "right", hold: float = HOLD, until: float = 12.0) -> Rows:
    """Run the scenario until some time [s], with the ball in front of ``foot``, which is held up for ``hold`` [s]."""
    robot = load_robot("biped14")
    model, data = robot.model, robot.model.createData()
    scenario = get_scenario("one_leg_kick")
    ball = scenario.objects[0]
    side = 1.0 if foot == "left" else -1.0
    at = ball.position[0], side * abs(ball.position[1]), ball.position[2]
    sim = Simulator(robot, objects=[type(ball)(**{**vars(ball), "position": at})])
    assert sim.objects is not None
    given = {**scenario.controller_params, "kick_foot": foot, "kick_hold": hold}
    controller: Any = make_controller("zmp", robot, given, sim.control_dt)
    observation = sim.reset()
    controller.reset(observation)
    rows: list[tuple[Any, ...]] = []
    while sim.t < until - 0.5 * H:
        q, v = sim.q.copy(), sim.v.copy()
        observation = sim.step(controller.update(observation).tau_joint)
        # A step is one of the equations of motion where it began.
        rate = pin.computeCentroidalMomentumTimeVariation(model, data, q, v, (sim.v - v) / H)
        pin.framesForwardKinematics(model, data, q)
        feet = [data.oMi[sole.joint_id].act(sole.placement_joint_sole) for sole in robot.soles]
        ground = sum(f.rotation @ w[:3] for f, w in zip(feet, sim.contact.wrench, strict=True)) * H
        soles = [f.translation for f in feet]
        momentum = H * np.array(rate.linear)
        bodies = sim.objects.world.bodies
        soles = [f.translation for f in feet]
        rows.append(
            (
                sim.t,
                sim.contact.wrench[:, 2].copy(),
                soles,
                bodies.v[0].copy(),
                bodies.w[0].copy(),
                momentum,
                ground,
                controller.fallen,
            )
        )
    return Rows(
        *(np.array(column) for column in zip(*rows, strict=True)), ball.friction_static, pin.computeTotalMass(model)
    )


@pytest.mark.long
def test_it_stands_on_one_leg_for_five_seconds() -> None:
    run = kicked()
    lifted = (run.load[:, 1] == 0.0) & (run.feet[:, 1, 2] > 0.04)
    times = run.t[lifted]
    assert times[-1] - times[0] > HOLD + 1.0
    assert lifted[(run.t > times[0]) & (run.t < times[-1])].all()
    still = (run.t > times[0] + 1.0) & (run.t < times[0] + HOLD - 0.5)
    # At rest neither foot moves, and the stance foot supports the full weight.
    assert np.ptp(run.feet[still], axis=0).max() < 1e-4
    assert np.ptp(run.load[still, 0]) < 0.5


@pytest.mark.long
def test_the_foot_that_stands_keeps_its_place() -> None:
    run = kicked()
    assert np.abs(run.feet[:, 0] - run.feet[0, 0]).max() < 1e-5


@pytest.mark.long
@pytest.mark.parametrize("foot", ["left", "right"])
def test_ball_robot_and_ground_exchange_momentum_in_the_kick(foot: str) -> None:
    """The ball's momentum beyond that lost by the robot comes from the floor: an upward impulse, and friction within
    its cone.
    """
    run = kicked() if foot == "right" else kicked(foot, 0.2, 4.0)
    hit = int(np.argmax(run.speed[:, 0] > 0.1))
    assert run.speed[hit - 1, 0] == 0.0
    assert 2.5 < run.speed[hit, 0] < 4.0
    gained = BALL * (run.speed[hit] - run.speed[hit - 1])
    weight = np.array([0.0, 0.0, -G * H])
    lost = run.ground[hit] + run.mass * weight - run.robot[hit]
    floor = gained - BALL * weight - lost
    assert gained[0] > 1.0
    assert 0.0 < floor[2] < 0.1 * gained[0]
    assert np.hypot(*floor[:2]) < run.friction * floor[2] + 1e-6


@pytest.mark.long
def test_the_ball_rolls_in_the_end_and_the_robot_stands() -> None:
    run = kicked()
    assert not run.fallen.any()
    # Nothing else is lifted, before or after.
    down = run.load[:, 1] > 0.0
    assert np.count_nonzero(np.diff(down.astype(int)) < 0) == 1
    assert (run.load[:, 0] > 0.0).all()
    hit = int(np.argmax(run.speed[:, 0] > 0.1))
    # It slides at first, and then rolls: about the line on the floor its angular momentum stays.
    kept = (5.0 * run.speed[hit, 0] + 2.0 * RADIUS * run.spin[hit, 1]) / 7.0
    assert run.speed[-1, 0] == pytest.approx(kept, rel=1e-3)
    np.testing.assert_allclose(run.speed[-1, :2], RADIUS * np.array([run.spin[-1, 1], -run.spin[-1, 0]]), atol=1e-9)
    np.testing.assert_allclose(run.load[-1], 0.5 * run.load[-1].sum(), rtol=0.01)
    assert np.abs(run.feet[-1] - run.feet[0]).max() < 5e-4


def test_a_route_goes_from_rest_to_rest_through_its_points() -> None:
    route = route_of(KickParams(kick_hold=0.7))
    p, v, a = np.zeros((3, 3))
    times = np.linspace(-0.1, route[-1, 0] + 0.1, 2001)
    places, speeds = [], []
    for t in times:
        along_route(route, t, p, v, a)
        places.append(p.copy())
        speeds.append(v.copy())
    np.testing.assert_allclose(np.gradient(np.array(places), times, axis=0)[2:-2], np.array(speeds)[2:-2], atol=0.01)
    for point in route:
        along_route(route, point[0], p, v, a)
        np.testing.assert_allclose(p, point[1:], atol=1e-12)
        np.testing.assert_allclose(np.concatenate([v, a]), 0.0, atol=1e-9)
    assert len(route) == POINTS


@pytest.mark.parametrize("yaw", [0.0, 0.7])
def test_the_foot_swings_along_the_heading(yaw: float) -> None:
    """The plan ends where it began, over the stance foot."""
    params, route = GaitParams(single_support=0.6, swing_inertia=0.005), route_of(KickParams())
    gait = WalkGait(params, GaitBuild(0.17, 3.3, 0, 0.02))
    R = pin.rpy.rpyToMatrix(0.0, 0.0, yaw)
    feet, axes = np.array([R @ [0.0, 0.085, 0.0], R @ [0.0, -0.085, 0.0]]), np.array([R, R])
    xi = np.zeros(2)
    gait.reset(0.0, xi, feet, axes, 1.0)
    gait.stand_on_one(1.0, xi, feet, axes, 1, route)
    assert (gait.phase, gait.swing) == ("double", 1)
    lifts = gait.end
    zmp, planned = np.zeros(2), np.zeros(2)
    evaluate(gait.plan, 3.3, lifts, zmp, planned)
    np.testing.assert_allclose(planned, feet[0, :2], atol=2e-3)
    gait.lift_off(lifts, planned, feet, axes, np.zeros(3))
    assert (gait.phase, gait.kicking) == ("single", True)
    np.testing.assert_allclose(gait.step.route[4, 1:], R @ [0.3, 0.0, 0.05], atol=1e-12)
    np.testing.assert_allclose(gait.step.land_p, feet[1])
    assert gait.end == pytest.approx(lifts + route[-1, 0])
    # The impact of the ball on the foot is not a touchdown.
    assert gait.lowers == pytest.approx(lifts + route[-2, 0])
    # The swing takes kappa a from the ZMP of the pendulum, a quintic's acceleration.
    begin, duration = lifts + route[3, 0], route[4, 0] - route[3, 0]
    evaluate(gait.plan, 3.3, begin + 0.25 * duration, zmp, planned)
    acceleration = (60.0 * 0.25 - 180.0 * 0.25**2 + 120.0 * 0.25**3) * 0.45 / duration**2
    np.testing.assert_allclose(zmp, feet[0, :2] - 0.005 * acceleration * R[:2, 0], atol=2e-3)
    gait.touch_down(gait.end, axes)
    assert (gait.phase, gait.kicking) == ("stand", False)
    evaluate(gait.plan, 3.3, gait.end + 1.0, zmp, planned)
    np.testing.assert_allclose(planned, 0.0, atol=1e-9)


def test_what_no_kick_can_be_is_refused() -> None:
    robot = load_robot("biped14")
    with refusal(UnknownNameError, name="middle", choices=("none", "left", "right")):
        make_controller("zmp", robot, {"kick_foot": "middle"}, H)
    with refusal(place="kick_time", value=0.0):
        make_controller("zmp", robot, {"kick_time": 0.0}, H)
