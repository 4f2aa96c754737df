"""Reactive steps after a push: new foothold, path to it, the plan after it, and its benefit."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from marks import sampled
from numpy.typing import NDArray
from refusals import refusal
from scipy.integrate import solve_ivp
from walking_support import Walker

from bipedsim.control.walking import catching
from bipedsim.control.walking.catching import CatchParams, CatchStep, best_landing, must_step
from bipedsim.control.walking.dcm import evaluate
from bipedsim.control.walking.footsteps import level_with
from bipedsim.control.walking.gait import WalkGait
from bipedsim.control.walking.stride import GaitBuild, GaitParams
from bipedsim.control.walking.swing import FORWARD, along_path, along_rise, path_to, rise_to

Array = NDArray[np.float64]

OMEGA, WIDTH = 3.4, 0.2
SOLE = np.array([[0.15, 0.05], [-0.05, 0.05], [-0.05, -0.05], [0.15, -0.05]])
directions = st.floats(0.0, 2.0 * math.pi).map(lambda angle: np.array([math.cos(angle), math.sin(angle)]))
pairs = st.tuples(st.floats(-1.0, 1.0), st.floats(-1.0, 1.0)).map(np.array)


LAND, FOOT, LEFT = np.array([0.2, WIDTH]), np.array([-0.05, WIDTH]), 0.4
BOX = np.array([-0.5, 0.14]), np.array([0.5, 0.5])
MEAN = np.array([0.02, 0.0])
"""A constant ZMP that moves the DCM of a walk to its target at touchdown."""


def step_with(
    error: Array, planned: Array, *, low: Array = BOX[0], high: Array = BOX[1], latest: float = 0.6
) -> CatchStep:
    """Return a step on a foot at the origin whose DCM is off by ``error``."""
    end = MEAN + (planned - MEAN) * math.exp(OMEGA * LEFT)
    here = (planned + error, planned, end, LAND, SOLE, np.zeros(2), np.eye(2), low, high, FOOT)
    return CatchStep(*here, LEFT, CatchParams().catch_quickest, latest)


def off(step: CatchStep, places: Array, left: Array) -> Array:
    """Return the difference (n, 2) between the DCM and its planned value for these landings, by the equation of the
    DCM.

    The DCM evolves freely until a foot lands. It is integrated once, to the largest of the times ``left`` (n,).

    The ZMP moves by the trusted fraction of the way to the required position.
    """
    grown = math.exp(OMEGA * step.left)
    needed = MEAN + (step.xi - step.planned) * grown / (grown - 1.0)
    reached = np.clip(needed, SOLE.min(axis=0), SOLE.max(axis=0))
    zmp = MEAN + catching._TRUST * (reached - MEAN)
    times, order = np.unique(left, return_inverse=True)
    span = (0.0, times[-1])
    flow = solve_ivp(lambda _t, xi: OMEGA * (xi - zmp), span, step.xi, t_eval=times, rtol=1e-10, atol=1e-12)
    return np.asarray(flow.y.T[order] - places - (step.end - step.land))


small = st.tuples(st.floats(-0.12, 0.12), st.floats(-0.12, 0.12)).map(np.array)
places = st.tuples(st.floats(-0.02, 0.1), st.floats(0.01, 0.08)).map(np.array)


@given(small, places)
def test_no_other_landing_in_reach_leaves_less_of_a_push(error: Array, planned: Array) -> None:
    """The reference is a search over positions and times, each with the equation of the pendulum."""
    step, params = step_with(error, planned), CatchParams()
    found = best_landing(step, OMEGA, params)
    assert (step.low - 1e-6 <= found.place).all()
    assert (found.place <= step.high + 1e-6).all()
    assert params.catch_quickest - 1e-6 <= found.left <= step.latest + 1e-6

    # Not sooner than the foot gets to where it lands.
    soonest = max(params.catch_quickest, float(np.hypot(*(found.place - FOOT))) / params.catch_speed)
    rng = np.random.default_rng(1)
    places = np.vstack([found.place, rng.uniform(step.low, step.high, (60, 2))])
    left = np.append(found.left, rng.uniform(min(soonest, LEFT), step.latest, 60))
    change = np.exp(OMEGA * (left - LEFT)) - 1.0
    spent = catching._PLACE * ((places - LAND) ** 2).sum(axis=1) + catching._TIME * change**2
    cost = (off(step, places, left) ** 2).sum(axis=1) + spent
    assert (cost[1:] > cost[0] - 1e-6).all()


def test_without_a_push_a_step_lands_as_planned() -> None:
    found = best_landing(step_with(np.zeros(2), np.array([0.05, 0.03])), OMEGA, CatchParams())
    np.testing.assert_allclose(found.place, LAND, atol=1e-9)
    assert found.left == pytest.approx(LEFT)


def test_what_place_cannot_give_time_does() -> None:
    """A push over the swing foot makes it land sooner, at the maximum width.

    A push that the sole can absorb makes it land later.
    """
    planned = np.array([0.05, 0.03])
    wide = best_landing(step_with(np.array([0.0, 0.12]), planned, high=np.array([0.5, 0.3])), OMEGA, CatchParams())
    assert wide.place[1] == pytest.approx(0.3)
    assert wide.left < 0.75 * LEFT
    waits = best_landing(step_with(np.array([0.0, -0.05]), planned), OMEGA, CatchParams())
    assert waits.place[1] == pytest.approx(0.14)
    assert waits.left > 1.1 * LEFT


@given(*[st.floats(-1.0, 1.0)] * 4, st.floats(0.0, 0.2), st.floats(0.05, 1.0))
def test_a_foot_that_lands_at_another_time_goes_on_from_where_it_is_and_clears_the_ground(
    z: float, v: float, a: float, end: float, least: float, duration: float
) -> None:
    path = rise_to(z, v, a, end, least, duration)
    np.testing.assert_allclose(along_rise(path, 0.0, duration), [z, v, a], atol=1e-12)
    scale = np.array([1.0, duration, duration**2])
    for t in (duration, duration + 3.0):
        np.testing.assert_allclose(along_rise(path, t, duration) * scale, [end, 0.0, 0.0], atol=1e-9)
    assert along_rise(path, 0.5 * duration, duration)[0] >= least - 1e-9
    near = [along_rise(path, 0.3 * duration + e, duration) for e in (-1e-5, 0.0, 1e-5)]
    assert (near[2][0] - near[0][0]) / 2e-5 == pytest.approx(near[1][1], rel=1e-4, abs=1e-4)
    assert (near[2][1] - near[0][1]) / 2e-5 == pytest.approx(near[1][2], rel=1e-4, abs=1e-2)


@given(pairs, pairs, pairs, pairs, st.floats(0.05, 1.0))
def test_the_new_way_goes_on_as_the_old_one_and_ends_at_rest(
    p: Array, v: Array, a: Array, end: Array, duration: float
) -> None:
    path = path_to(p, v, a, end, duration)
    at = np.zeros((3, 3))
    along_path(path, 0.0, duration, *at)
    np.testing.assert_allclose(at[:, :2], [p, v, a], atol=1e-12)
    for t in (duration, duration + 3.0):
        along_path(path, t, duration, *at)
        np.testing.assert_allclose(at[:, :2] * [[1.0], [duration], [duration**2]], [end, 0 * end, 0 * end], atol=1e-9)


PARAMS = GaitParams(single_support=0.6, double_support=0.1)


class Caught:
    """A gait in the middle of a step whose landing is moved.

    Attributes:
        gait: The gait. before, after: DCM (n, 2) at ``t`` (n,) before and after that.
        landing: (2,) planned landing position. moved: (2,) its displacement.
    """

    def __init__(
        self, shift: Array, stopping: bool = False, most: float = 1.0, yaw: float = 0.0, later: float = 0.0
    ) -> None:
        self.gait = gait = WalkGait(PARAMS, GaitBuild(WIDTH, OMEGA, 0, 0.2))
        R = np.array([level_with(np.array([0.0, 0.0, 1.0]), yaw)] * 2)
        p = np.array([R[0] @ [0.0, y, 0.0] for y in (0.5 * WIDTH, -0.5 * WIDTH)])
        gait.reset(0.0, np.zeros(2), p, R, 1.0)
        command = np.array([0.05 if stopping else 0.3, 0.0, 0.0])
        gait.start(1.0, np.zeros(2), p, R, command)
        begin = gait.end
        gait.lift_off(begin, self._dcm(begin), p, R, 0.0 * command if stopping else command)
        t = begin + 0.3
        self.t = np.linspace(t, begin + 2.5, 60)
        self.landing = gait.step.land_p[:2].copy()
        self.before = np.array([self._dcm(now) for now in self.t])
        stance = p[1 - gait.swing]
        swing = (np.append(self.landing, 0.03), np.zeros(3), np.zeros(3), R[0])
        gait.catch(t, self.landing + shift, gait.end + later, most, stance, yaw, swing)
        self.after = np.array([self._dcm(now) for now in self.t])
        self.moved = gait.step.land_p[:2] - self.landing
        way = R[0].T @ (gait.step.land_p - stance)
        self.ahead, self.apart = float(way[0]), float(way[1]) * (1.0 if gait.swing == 0 else -1.0)

    def _dcm(self, t: float) -> Array:
        zmp, xi = np.zeros(2), np.zeros(2)
        evaluate(self.gait.plan, OMEGA, t, zmp, xi)
        return xi


@given(st.tuples(st.floats(-0.05, 0.1), st.floats(-0.01, 0.05)).map(np.array), st.floats(-3.0, 3.0))
def test_the_plan_moves_along_and_the_dcm_of_now_by_what_the_push_was(shift: Array, yaw: float) -> None:
    """After the weight has passed over, everything is shifted; before, the shift grows with e^(omega t)."""
    side = -1.0 if Caught(np.zeros(2), yaw=yaw).gait.swing else 1.0
    c, s = math.cos(yaw), math.sin(yaw)
    wanted = np.array([[c, -s], [s, c]]) @ (shift * [1.0, side])
    caught = Caught(wanted, yaw=yaw)
    if np.linalg.norm(wanted) < 1e-3:
        assert not caught.moved.any()
        return
    np.testing.assert_allclose(caught.moved, wanted, atol=1e-12)
    gait, t = caught.gait, caught.t
    difference = caught.after - caught.before
    over = t > gait.end + gait._params.double_support
    np.testing.assert_allclose(difference[over], np.tile(wanted, (over.sum(), 1)), atol=1e-12)
    single = t < gait.end
    grown = np.exp(OMEGA * (t[single] - t[0]))[:, None] * difference[0]
    np.testing.assert_allclose(difference[single], grown, atol=1e-12)
    begin, duration = gait.step.path_time
    assert begin + duration == pytest.approx(FORWARD[1] * gait._params.single_support)


@given(st.floats(-0.25, 0.2))
def test_a_plan_that_lands_at_another_time_obeys_the_pendulum_and_is_the_same_after_it(later: float) -> None:
    still, caught = Caught(np.zeros(2)), Caught(np.zeros(2), later=later)
    gait = caught.gait
    assert gait.end == pytest.approx(still.gait.end + later)
    assert gait.step.time[0] == pytest.approx(gait.end - gait.lifted)
    zmp, xi = np.zeros(2), np.zeros(2)

    def rate(t: float, at: Array) -> Array:
        evaluate(gait.plan, OMEGA, t, zmp, xi)
        return np.asarray(OMEGA * (at - zmp))

    begin, end = caught.t[0], gait.end - 1e-6
    flow = solve_ivp(rate, (begin, end), caught.after[0], rtol=1e-9, atol=1e-11, max_step=0.01)
    np.testing.assert_allclose(flow.y[:, -1], caught._dcm(end), atol=1e-5)
    over = np.linspace(0.0, 1.0, 20)
    before, after = ([who._dcm(who.gait.end + t) for t in over] for who in (still, caught))
    np.testing.assert_allclose(after, before, atol=1e-12)


def test_a_robot_that_stops_comes_to_rest_between_its_feet() -> None:
    caught = Caught(np.array([0.0, 0.04]), stopping=True)
    np.testing.assert_allclose(caught.after[-1] - caught.before[-1], 0.5 * caught.moved, atol=1e-6)
    assert len(caught.gait.footsteps) == 1


def test_a_last_step_that_lands_ahead_is_followed_by_one_that_closes_up() -> None:
    caught = Caught(np.array([0.08, 0.0]), stopping=True)
    caught_step, closing = caught.gait.footsteps
    assert (caught_step.foot, closing.foot) == (caught.gait.swing, 1 - caught.gait.swing)
    assert caught_step.x - closing.x == pytest.approx(0.0, abs=1e-9)
    assert abs(caught_step.y - closing.y) == pytest.approx(WIDTH)
    plan = caught.gait.plan
    np.testing.assert_allclose(plan.end[plan.n[0] - 1], [closing.x, 0.5 * (closing.y + caught_step.y)], atol=1e-9)


@given(pairs, st.floats(-3.0, 3.0))
def test_no_step_is_longer_than_legs_reach_nor_crosses_the_other_one(shift: Array, yaw: float) -> None:
    caught, params = Caught(shift, yaw=yaw), PARAMS
    longest = params.max_forward * (params.single_support + params.double_support)
    assert abs(caught.ahead) < longest + 1e-9
    low, high = caught.gait.box()
    assert low[1] - 1e-9 < caught.apart < high[1] + 1e-9


@given(pairs, st.floats(0.0, 0.3))
def test_no_landing_moves_further_than_is_allowed(shift: Array, most: float) -> None:
    assert np.linalg.norm(Caught(shift, most=most).moved) < most + 1e-9


# [N.s] forward, and towards the swing foot: larger than the same walk can take with planned landings only.
PUSHES = [("biped14", 0, 40.0), ("biped14", 1, 24.0), ("talos", 0, 45.0), ("talos", 1, 28.0), ("g1", 1, 4.5)]


@pytest.mark.long
@pytest.mark.parametrize(("name", "axis", "impulse"), sampled(PUSHES, 2))
def test_a_push_that_tips_a_walk_is_caught_by_the_next_step(name: str, axis: int, impulse: float) -> None:
    fell = []
    for most in (0.5, 0.0):
        walker = Walker(name, catch_most=most).go(1.2).go(3.0, (0.3, 0.0, 0.0))
        gait = walker.controller._gait
        for phase in ("single", "double"):
            while gait.phase == phase:
                walker.go(1e-3)
        while walker.sim.t < 0.5 * (gait.begin + gait.end):
            walker.go(1e-3)
        wrench = np.zeros(6)
        wrench[axis] = impulse / 0.1 * (1.0 if axis == 0 or gait.swing == gait._build.left else -1.0)
        walker.sim.push(wrench, None, 0.1)
        fell.append(walker.go(4.0).fell)
    assert fell[0] is None
    assert fell[1] is not None


# [deg] from ahead, to the side of the foot that stands; share of the step; J / (m omega) over the length of a leg.
QUICK = [(90, 0.19, 0.12), (75, 0.19, 0.12)]


@pytest.mark.long
@pytest.mark.parametrize(("degrees", "share", "size"), sampled(QUICK, 1))
def test_a_push_is_caught_by_when_a_foot_lands(degrees: float, share: float, size: float) -> None:
    fell = []
    for quickest in (0.15, 2.0):
        # A step that cannot be quicker nor longer lands when it was to.
        times = {"catch_longer": 0.1 if quickest < 1.0 else 0.0, "catch_quickest": quickest}
        walker = Walker("biped14", **times).go(1.2).go(3.0, (0.3, 0.0, 0.0))
        gait = walker.controller._gait
        for phase in ("single", "double"):
            while gait.phase == phase:
                walker.go(1e-3)
        out = 1.0 if 1 - gait.swing == gait._build.left else -1.0
        walker.go(share * (gait.step.time[0] + gait._passing))
        force = size * 0.84 * walker.robot.mass * walker.controller._omega / 0.1
        angle = math.radians(degrees)
        push = np.array([math.cos(angle), out * math.sin(angle), 0.0, 0.0, 0.0, 0.0])
        walker.sim.push(force * push, None, 0.1)
        fell.append(walker.go(3.5).fell)
    assert fell[0] is None
    assert fell[1] is not None


@pytest.mark.long
@pytest.mark.parametrize(("name", "impulse"), sampled([("biped14", 40.0), ("biped14", -45.0), ("talos", 50.0)]))
def test_a_robot_that_stands_steps_after_a_push_and_stands_again(name: str, impulse: float) -> None:
    wrench = np.zeros(6)
    wrench[0] = impulse / 0.1
    stays = Walker(name, catch_time=0.0).go(2.0)
    stays.sim.push(wrench, None, 0.1)
    assert stays.go(4.0).fell is not None
    steps = Walker(name).go(2.0)
    steps.sim.push(wrench, None, 0.1)
    assert steps.go(6.0).fell is None
    assert 1 <= steps.controller.steps <= 4
    assert steps.controller._gait.phase == "stand"
    rows = steps.rows
    assert rows.speed[-500:].max() < 1e-3
    apart = rows.foot[-1, 0] - rows.foot[-1, 1]
    np.testing.assert_allclose(apart[:2], (rows.foot[0, 0] - rows.foot[0, 1])[:2], atol=5e-3)


@pytest.mark.long
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_the_foot_on_the_side_to_which_the_robot_falls_carries_it(side: float) -> None:
    walker = Walker("biped14").go(2.0)
    wrench = np.zeros(6)
    wrench[:2] = 400.0, side * 80.0
    walker.sim.push(wrench, None, 0.1)
    gait = walker.controller._gait
    while gait.phase == "stand" and walker.sim.t < 2.3:
        walker.go(1e-3)
    assert gait.phase == "single"
    assert gait.swing == (1 - gait._build.left if side > 0.0 else gait._build.left)
    assert walker.go(4.0).fell is None


@given(directions, st.floats(1e-3, 0.3), st.floats(-3.0, 3.0))
def test_a_standing_robot_must_step_where_its_feet_are_too_few_and_a_step_helps(
    way: Array, size: float, heading: float
) -> None:
    turned = np.array([[math.cos(heading), -math.sin(heading)], [math.sin(heading), math.cos(heading)]])
    edges = zip((0.15, 0.05, 0.05, 0.05), (*way, *-way), strict=True)
    reach = min(edge / part for edge, part in edges if part > 1e-12)
    expected = size > 0.95 * reach and abs(way[0]) > abs(way[1])
    if abs(size - 0.95 * reach) > 1e-9 and abs(abs(way[0]) - abs(way[1])) > 1e-9:
        assert must_step(turned @ (size * way), np.zeros(2), SOLE @ turned.T, heading) == expected


def test_a_step_that_no_leg_can_take_is_refused() -> None:
    with refusal(place="zmp: catch_time", value=0.05):
        Walker("biped14", catch_time=0.05)


def test_a_zmp_that_rolls_goes_on_rolling_where_a_landing_is_given_another_time() -> None:
    """The plan goes from the current ZMP to the next foot. A change of the step time moves neither end."""
    gait = WalkGait(replace(PARAMS, swing_inertia=0.004), GaitBuild(WIDTH, OMEGA, 0, 0.2, rolls=0.05))
    R = np.tile(np.eye(3), (2, 1, 1))
    p = np.array([[0.0, 0.5 * WIDTH, 0.0], [0.0, -0.5 * WIDTH, 0.0]])
    zmp, xi, ahead = np.zeros(2), np.zeros(2), np.array([0.4, 0.0, 0.0])
    gait.reset(0.0, np.zeros(2), p, R, 1.0)
    gait.start(1.0, np.zeros(2), p, R, ahead)
    evaluate(gait.plan, OMEGA, gait.end, zmp, xi)
    gait.lift_off(gait.end, xi, p, R, ahead)
    foot, begin, last = gait.swing, gait.lifted, gait.plan.knots[3]
    ends = []
    for t in (begin, last - 1e-9):
        evaluate(gait.plan, OMEGA, t, zmp, xi)
        ends.append(zmp.copy())
    assert ends[1][0] - ends[0][0] > 0.01
    t = begin + 0.4 * (gait.end - begin)
    swing = (p[foot] + [0.05, 0.0, 0.04], np.array([0.6, 0.0, 0.0]), np.zeros(3), R[foot])
    gait.catch(t, gait.step.land_p[:2].copy(), gait.end - 0.1, 1.0, p[1 - foot], 0.0, swing)
    plan, knot = gait.plan, gait.end
    assert plan.knots[0] == t
    # No foot swings at the very end of single support, where the plan is the ZMP alone.
    evaluate(plan, OMEGA, knot - 1e-9, zmp, xi)
    np.testing.assert_allclose(zmp, ends[1], atol=1e-6)
    # At the change: half of the acceleration of the quintic is its third coefficient, and it begins at none.
    assert plan.zmp[0, 0, 0] == pytest.approx(ends[0][0] + 0.4 * (ends[1][0] - ends[0][0]), abs=1e-9)
