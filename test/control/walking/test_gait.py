"""Footsteps of velocity commands and of plans: where they land, and that the DCM can follow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings, strategies as st

from bipedsim.control.walking.cadence import SLOWEST
from bipedsim.control.walking.dcm import evaluate
from bipedsim.control.walking.footsteps import Heading, level_with
from bipedsim.control.walking.gait import WalkGait
from bipedsim.control.walking.stride import WARY, GaitBuild, GaitParams
from bipedsim.numerics import Array

WIDTH, OMEGA, ROOM, PERIOD = 0.2, 3.4, 0.02, 0.7
PARAMS = GaitParams(single_support=0.6, double_support=0.1, swing_inertia=0.005)


class Walked:
    """A gait on ideal feet, which land where they should.

    Attributes:
        gait: The gait. p, R: (2, 3), (2, 3, 3) of the feet, the first one is the left.
        centres: The gait's own, after each step.
    """

    def __init__(self, params: GaitParams = PARAMS, start: Heading | None = None, room: float = ROOM) -> None:
        start = start or Heading(0.0, 0.0, 0.0)
        self.gait = WalkGait(params, GaitBuild(WIDTH, OMEGA, 0, room))
        feet = [start.moved(0.0, side * 0.5 * WIDTH, 0.0) for side in (1.0, -1.0)]
        self.p = np.array([[foot.x, foot.y, 0.0] for foot in feet])
        self.R = np.array([level_with(np.array([0.0, 0.0, 1.0]), start.yaw)] * 2)
        self.gait.reset(0.0, self.p[:, :2].mean(axis=0), self.p, self.R, 1.0)
        self.centres: list[Heading] = []

    def dcm(self, t: float) -> Array:
        zmp, xi = np.zeros(2), np.zeros(2)
        evaluate(self.gait.plan, OMEGA, t, zmp, xi)
        return xi

    def start(self, command: Any) -> Walked:
        gait = self.gait
        gait.start(gait.end, self.dcm(gait.end), self.p, self.R, np.array(command))
        return self

    def step(self, command: Any = (0.0, 0.0, 0.0)) -> int:
        """Take one step and return its foot."""
        gait, foot = self.gait, self.gait.swing
        assert gait.phase == "double"
        before = self.dcm(gait.end)
        gait.lift_off(gait.end, before, self.p, self.R, np.array(command))
        # A command does not cause a jump of the DCM.
        assert np.abs(self.dcm(gait.begin) - before).max() < 1e-9
        self.p[foot], self.R[foot] = gait.step.land_p, gait.step.land_R
        self.centres.append(gait.state.centre)
        gait.touch_down(gait.end, self.R)
        return foot

    def apart(self, foot: int) -> float:
        """Return how far ``foot`` is outside of the other one, in the frame of that."""
        apart = float((self.R[1 - foot].T @ (self.p[foot] - self.p[1 - foot]))[1])
        return -apart if foot else apart


LIMITS = np.array([0.8, 0.2, 0.6])


def possible(command: tuple[float, float, float]) -> tuple[float, float, float]:
    """Return ``command``, or the largest one of its direction that is not limited."""
    x, y, turn = np.array(command) / max(1.0, float(np.linalg.norm(command / LIMITS)))
    return float(x), float(y), float(turn)


commands = st.tuples(st.floats(-0.4, 0.8), st.floats(-0.2, 0.2), st.floats(-0.6, 0.6)).map(possible)


@given(commands)
def test_the_centre_of_the_feet_follows_the_command(command: tuple[float, float, float]) -> None:
    if max(map(abs, command)) < 0.01:
        return
    walked = Walked().start(command)
    feet = [walked.step(command) for _ in range(12)]
    assert feet == [feet[0], 1 - feet[0]] * 6
    vx, vy, wz = command
    assert feet[0] == (0 if (vy if abs(vy) > 1e-3 else wz) > 0.0 else 1)
    # Over two steps; the first ones speed up.
    a, b = walked.centres[-3], walked.centres[-1]
    assert b.yaw - a.yaw == pytest.approx(2.0 * PERIOD * wz, abs=1e-9)
    # One step ahead on either side of the turn, which is made at once, as is the way to the side.
    turns = [walked.centres[i].yaw - walked.centres[i - 1].yaw for i in (-2, -1)]
    yaw, expected = a.yaw, np.zeros(2)
    for turned, foot in zip(turns, feet[-2:], strict=True):
        left = 2.0 * PERIOD * vy if (vy > 0.0) == (foot == 0) else 0.0
        c, s = np.cos(yaw), np.sin(yaw)
        expected += [c * vx * PERIOD - s * left, s * vx * PERIOD + c * left]
        yaw += turned
    assert b.point - a.point == pytest.approx(expected, abs=1e-9)


@given(commands, commands)
def test_feet_never_cross_whatever_is_commanded_next(
    first: tuple[float, float, float], then: tuple[float, float, float]
) -> None:
    walked = Walked().start(first)
    for command in (*[first] * 4, *[then] * 4, *[first] * 2):
        foot = walked.step(command)
        if walked.gait.phase == "stand":
            break
        assert walked.apart(foot) > 0.7 * WIDTH
        centre = walked.gait.state.centre
        side = WIDTH * (0.5 - foot)
        assert walked.p[foot, :2] == pytest.approx(centre.moved(0.0, side, 0.0).point, abs=1e-12)


@given(commands, st.floats(-3.1, 3.1), st.tuples(st.floats(-5.0, 5.0), st.floats(-5.0, 5.0)))
@settings(max_examples=30)
def test_north_is_like_east(command: tuple[float, float, float], yaw: float, at: tuple[float, float]) -> None:
    """Turning and moving the world turns and moves the walk."""
    here, there = Walked().start(command), Walked(start=Heading(*at, yaw)).start(command)
    for _ in range(4):
        here.step(command)
        there.step(command)
        if here.gait.phase == "stand":
            break
        frame = Heading(*at, yaw)
        for foot in (0, 1):
            x, y, _ = here.p[foot]
            assert there.p[foot, :2] == pytest.approx(frame.moved(x, y, 0.0).point, abs=1e-9)
        x, y = here.dcm(here.gait.end)
        assert there.dcm(there.gait.end) == pytest.approx(frame.moved(x, y, 0.0).point, abs=1e-6)


def test_speed_grows_by_the_limit_of_acceleration_and_commands_are_limited() -> None:
    walked = Walked(room=1.0).start((5.0, 0.0, 0.0))
    speeds = []
    for _ in range(5):
        walked.step((5.0, 0.0, 0.0))
        speeds.append(walked.gait.state.velocity[0])
    assert speeds == pytest.approx([0.28, 0.56, 0.8, 0.8, 0.8])
    for command, limit in (((-5.0, 0.0, 0.0), -0.4), ((0.0, -5.0, 0.0), -0.2), ((0.0, 0.0, 5.0), 0.6)):
        walked = Walked().start(command)
        for _ in range(6):
            walked.step(command)
        axis = int(np.argmax(np.abs(command)))
        assert walked.gait.state.velocity[axis] == pytest.approx(limit)


@given(commands)
def test_a_stop_ends_with_the_feet_abreast_and_the_dcm_between_them(command: tuple[float, float, float]) -> None:
    if max(map(abs, command)) < 0.01:
        return
    walked = Walked().start(command)
    for _ in range(4):
        walked.step(command)
    for _ in range(8):
        walked.step()
        if walked.gait.phase == "stand":
            break
    assert walked.gait.phase == "stand"
    assert walked.gait.swing == -1
    assert np.abs(walked.gait.state.velocity).max() == 0.0
    left, right = walked.p
    assert np.linalg.norm(left - right) == pytest.approx(WIDTH, abs=1e-9)
    assert np.abs(walked.R[0] - walked.R[1]).max() < 1e-9
    assert walked.dcm(walked.gait.end) == pytest.approx(0.5 * (left + right)[:2], abs=1e-9)


@given(commands, commands)
def test_a_sudden_command_asks_no_more_of_the_zmp_than_there_is_room(
    first: tuple[float, float, float], then: tuple[float, float, float]
) -> None:
    """Under the foot that stands, the plan stays within twice the room; at rest at lift-off the leg takes nothing."""
    walked = Walked().start(first)
    gait = walked.gait
    for command in (*[first] * 3, *[then] * 3):
        foot = walked.step(command)
        assert np.abs(gait.plan.zmp[0, :, 0] - walked.p[1 - foot, :2]).max() <= 2.0 * ROOM + 1e-12
        if gait.phase == "stand":
            break


def test_feet_may_bear_ahead_of_their_middle_and_inwards() -> None:
    walked = Walked(replace(PARAMS, zmp_forward=0.02, zmp_inward=0.01)).start((0.3, 0.0, 0.0))
    for _ in range(6):
        foot = walked.step((0.3, 0.0, 0.0))
        zmp, xi = np.zeros(2), np.zeros(2)
        evaluate(walked.gait.plan, OMEGA, walked.gait.begin - 1e-9, zmp, xi)
        stance = 1 - foot
        inward = -0.01 if stance == 0 else 0.01
        assert zmp - walked.p[stance, :2] == pytest.approx([0.02, inward], abs=2.0 * ROOM)
    # In a steady walk nothing has to be made up for.
    assert zmp - walked.p[stance, :2] == pytest.approx([0.02, inward], abs=2e-3)


def test_the_ground_is_as_the_feet_have_found_it() -> None:
    """On a slope, normals found at landings turn half of the way at a time, and steps land on the plane."""
    normal = np.array([np.sin(-0.1), 0.0, np.cos(-0.1)])
    walked = Walked()
    walked.R[:] = level_with(normal, 0.0)
    walked.gait.reset(0.0, np.zeros(2), walked.p, walked.R, 1.0)
    assert walked.gait.step.normal == pytest.approx(normal)
    walked.start((0.3, 0.0, 0.0))
    for _ in range(3):
        foot = walked.step((0.3, 0.0, 0.0))
        assert normal @ (walked.p[foot] - walked.p[1 - foot]) == pytest.approx(0.0, abs=1e-12)
        assert walked.R[foot, :, 2] == pytest.approx(normal)
    gait = walked.gait
    gait.lift_off(gait.end, walked.dcm(gait.end), walked.p, walked.R, np.array([0.3, 0.0, 0.0]))
    walked.R[gait.swing] = np.eye(3)
    gait.touch_down(gait.end, walked.R)
    half = normal + np.array([0.0, 0.0, 1.0])
    assert gait.step.normal == pytest.approx(half / np.linalg.norm(half))


@pytest.mark.parametrize(("higher", "leans"), [(0.02, 0.0), (-0.02, 0.0), (0.0, 0.08)])
def test_steps_are_quick_for_a_while_after_a_landing_on_uneven_ground(higher: float, leans: float) -> None:
    """The steps stay quick until the ground has been level for some steps, at the same speed.

    Sensor and drive errors do not trigger quick steps.
    """
    walked = Walked(GaitParams(swing_inertia=0.005))
    walked.start((0.2, 0.0, 0.0))
    slow, quick = (slowest / OMEGA for slowest in (SLOWEST, GaitParams().uneven_period))

    def period() -> float:
        foot = walked.step((0.2, 0.0, 0.0))
        walked.p[foot, 2] += 0.003 * (-1.0) ** foot
        return walked.gait.end - walked.gait.lifted

    assert [period() for _ in range(4)] == pytest.approx([slow] * 4)
    landed = 1 - walked.gait.swing
    walked.p[landed, 2] += higher
    walked.R[landed] = walked.R[landed] @ pin.exp3(np.array([0.0, leans, 0.0]))
    after = [period() for _ in range(WARY + 4)]
    assert after == pytest.approx([quick] * WARY + [slow] * 4)
    assert walked.gait.state.velocity == pytest.approx([0.2, 0.0, 0.0])


def test_steps_whose_time_the_user_gives_keep_it_on_uneven_ground() -> None:
    walked = Walked()
    walked.start((0.2, 0.0, 0.0))
    for _ in range(4):
        foot = walked.step((0.2, 0.0, 0.0))
        assert walked.gait.end - walked.gait.lifted == pytest.approx(PERIOD)
        walked.p[foot, 2] += 0.03


def test_a_foot_on_the_edge_of_a_tile_is_no_slope() -> None:
    """It counts as a tilt of at most 0.1 rad, since one landing at any angle turns the plan by half of that."""
    walked = Walked()
    walked.start((0.2, 0.0, 0.0))
    walked.step((0.2, 0.0, 0.0))
    gait = walked.gait
    gait.lift_off(gait.end, walked.dcm(gait.end), walked.p, walked.R, np.array([0.2, 0.0, 0.0]))
    walked.R[gait.swing] = pin.exp3(np.array([0.0, 0.5, 0.0]))
    gait.touch_down(gait.end, walked.R)
    assert np.arccos(gait.step.normal[2]) == pytest.approx(0.05, abs=2e-3)


PLAN = np.array([[0.2, 0.1, 0.0], [0.4, -0.12, 0.1], [0.55, 0.12, 0.3], [0.5, -0.06, 0.2]])


@pytest.mark.parametrize("mirrored", [False, True])
def test_footsteps_are_taken_where_they_are_planned(mirrored: bool) -> None:
    plan = PLAN * [1.0, -1.0, -1.0] if mirrored else PLAN
    frame = Heading(1.0, -2.0, 0.7)
    walked = Walked(start=frame)
    gait = walked.gait
    gait.planner.check(plan)
    gait.follow(gait.end, walked.dcm(gait.end), walked.p, walked.R, plan)
    for i, (x, y, yaw) in enumerate(plan):
        # A velocity command does not interfere.
        foot = walked.step((0.5, 0.1, 0.0))
        assert foot == (i + mirrored) % 2
        landed = frame.moved(x, y, yaw)
        assert walked.p[foot, :2] == pytest.approx(landed.point, abs=1e-12)
        assert np.arctan2(walked.R[foot, 1, 0], walked.R[foot, 0, 0]) == pytest.approx(landed.yaw, abs=1e-12)
    assert gait.phase == "stand"
    assert walked.dcm(gait.end) == pytest.approx(walked.p[:, :2].mean(axis=0), abs=1e-9)
