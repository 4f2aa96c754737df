"""Walks of three robots: tracking of the plan, limits of drives and joints, and changes that must have no effect."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pinocchio as pin
import pytest
from marks import sampled
from numpy.typing import NDArray
from paths import BODIES
from refusals import refusal
from walking_support import SPEED, Rows, Walker, loaded, loads

from bipedsim.control.controllers import make_controller
from bipedsim.errors import ControllerWarning
from bipedsim.model import load_robot
from bipedsim.sim.io import Observation

Array = NDArray[np.float64]

ROBOTS = tuple(SPEED)
BEGIN, STOP = 1.2, 12.0
"""Times [s] of the command to walk and to stop."""


@lru_cache
def walk(name: str) -> tuple[Walker, Rows]:
    """Return a walk of 12 steps and more, and the standing after it."""
    walker = Walker(name).go(BEGIN, (0.0, 0.0, 0.0)).go(STOP - BEGIN, (SPEED[name], 0.0, 0.0)).go(6.0, (0.0, 0.0, 0.0))
    return walker, walker.rows


@lru_cache
def short(name: str, kind: str = "plain", **params: float) -> tuple[Walker, Rows]:
    """Return the first steps of that walk, with ``noise`` on the forces if ``kind`` asks for it."""
    walker = Walker(name, noise_on_forces() if kind == "noise" else None, **params)
    walker.go(BEGIN).go(3.8, (SPEED[name], 0.0, 0.0))
    return walker, walker.rows


def noise_on_forces() -> Callable[[Observation], None]:
    """Return white noise of 5 N and 0.5 N.m."""
    generator = np.random.default_rng(5)

    def spoil(observation: Observation) -> None:
        observation.foot_wrench += generator.normal(0.0, 1.0, observation.foot_wrench.shape) * ([5.0] * 3 + [0.5] * 3)

    return spoil


def landings(walker: Walker, rows: Rows) -> list[tuple[int, int]]:
    """Return row and foot of every touch-down."""
    feet = (0, 1)
    return sorted((a, foot) for foot in feet for a, _ in loads(rows, foot, 0.06 * walker.robot.weight)[1:])


@pytest.mark.parametrize("name", sampled(ROBOTS))
class TestOneWalk:
    def test_it_takes_its_steps_and_keeps_up_with_the_command(self, name: str) -> None:
        walker, rows = walk(name)
        assert walker.fell is None
        assert rows.steps[-1] >= 12
        cruise = (rows.t > 5.0) & (rows.t < 11.0)
        # A whole number of steps fits into no window: one of a dozen may be missing or more.
        speed = np.polyfit(rows.t[cruise], rows.base[cruise, 0], 1)[0]
        assert speed == pytest.approx(SPEED[name], rel=0.03)

    def test_loads_of_the_feet_do_not_jump_while_both_stand(self, name: str) -> None:
        """The ZMP moves from between the feet to under the next stance foot.

        No tick changes it by 1 % of the weight.
        """
        walker, rows = walk(name)
        lifted = int(np.flatnonzero(rows.flying >= 0)[0])
        jumps = np.abs(np.diff(rows.force[100:lifted], axis=0))
        assert jumps.max() < 0.01 * walker.robot.weight

    def test_feet_lift_in_turn_and_one_is_always_down(self, name: str) -> None:
        _, rows = walk(name)
        lifted = rows.flying[np.flatnonzero((rows.flying[1:] >= 0) & (rows.flying[:-1] < 0)) + 1]
        assert len(lifted) == rows.steps[-1]
        assert (lifted[1:] != lifted[:-1]).all()
        assert (rows.force.max(axis=1) > 0.0).all()

    def test_drives_and_knees_have_room(self, name: str) -> None:
        _, rows = walk(name)
        assert rows.effort.max() < 0.9
        assert rows.knee.min() > 0.5

    def test_the_dcm_stays_with_its_plan(self, name: str) -> None:
        _, rows = walk(name)
        assert rows.dcm_error.max() < 0.015

    def test_the_zmp_stays_inside_but_for_touch_downs(self, name: str) -> None:
        walker, rows = walk(name)
        since = np.full(len(rows.t), np.inf)
        for row, _ in landings(walker, rows):
            since[row:] = rows.t[row:] - rows.t[row]
        # The first tick has measured nothing yet.
        assert rows.zmp_margin[(since > 0.05) & (rows.t > 0.01)].min() > 0.0

    def test_the_measured_zmp_is_the_centre_of_pressure(self, name: str) -> None:
        """The measurement is of the previous step, with the feet at their estimated positions.

        The ankle sensors cannot separate the inertia of a swinging foot from ground forces.
        """
        _, rows = walk(name)
        error = np.linalg.norm(rows.zmp_now[1:] - rows.cop[:-1], axis=1)[10:]
        assert np.median(error) < 2e-4
        assert np.percentile(error, 95) < 2e-3
        assert error[(rows.flying[1:] < 0)[10:]].max() < 0.02

    def test_the_robot_walks_straight(self, name: str) -> None:
        walker, rows = walk(name)
        middle = rows.foot.mean(axis=1)[:, 1]
        # The last foot lands as far away as it is to stand; half of what that is wider than in a walk moves the middle.
        build = walker.controller._gait._build
        wider = build.width - (build.narrow or build.width)
        assert abs(middle[-1] - middle[0]) < 1e-3 + 0.5 * wider

    def test_feet_meet_the_ground_gently(self, name: str) -> None:
        walker, rows = walk(name)
        for row, foot in landings(walker, rows):
            fall = (rows.foot[row - 8 : row - 1, foot, 2] - rows.foot[row - 7 : row, foot, 2]) / 1e-3
            # From 50 mm in 0.29 s: the last millimetres are those of a foot that lands some ms before its time.
            assert fall.max() < 0.07

    def test_the_robot_knows_where_it_is(self, name: str) -> None:
        _, rows = walk(name)
        assert rows.base[-1, 0] > 3.0
        assert rows.estimate_error.max() < 1e-3

    def test_it_comes_to_rest_with_the_feet_abreast(self, name: str) -> None:
        walker, rows = walk(name)
        assert walker.controller._gait.phase == "stand"
        # 2 s after the weight is between the feet.
        stopped = rows.t[np.flatnonzero(rows.flying >= 0)[-1]]
        assert stopped + 2.6 < rows.t[-1]
        assert rows.speed[rows.t > stopped + 2.6].max() < 1e-3
        apart = rows.foot[-1, 0] - rows.foot[-1, 1]
        assert apart[0] == pytest.approx(0.0, abs=2e-3)
        nominal = rows.foot[0, 0] - rows.foot[0, 1]
        assert apart[1] == pytest.approx(nominal[1], abs=2e-3)


@pytest.mark.long
@pytest.mark.parametrize(("name", "speed"), sampled([("biped14", 1.2), ("talos", 0.9), ("g1", 0.8)]))
def test_the_foot_that_stands_does_not_slide_at_full_speed(name: str, speed: float) -> None:
    """A leg that swings too fast turns the sole under the other one by its torsion."""
    rows = Walker(name).go(BEGIN).go(6.0, (speed, 0.0, 0.0)).rows
    lifted = np.flatnonzero((rows.flying[1:] >= 0) & (rows.flying[:-1] < 0)) + 1
    landed = np.flatnonzero((rows.flying[1:] < 0) & (rows.flying[:-1] >= 0)) + 1
    assert len(landed) > 3
    for begin, end in zip(lifted, landed, strict=False):
        stance = rows.foot[begin:end, 1 - rows.flying[begin], :2]
        assert np.ptp(stance, axis=0).max() < 2e-4
    assert rows.estimate_error.max() < 2e-4


@pytest.mark.slow
@pytest.mark.parametrize(("name", "speed", "seconds"), [("biped14", 1.2, 30.0), ("talos", 0.9, 34.0), ("g1", 0.8, 31)])
def test_fifty_steps_at_full_speed(name: str, speed: float, seconds: float) -> None:
    walker = Walker(name).go(BEGIN).go(seconds, (speed, 0.0, 0.0)).go(4.0 + 4.0 * speed, (0.0, 0.0, 0.0))
    rows = walker.rows
    assert walker.fell is None
    assert rows.steps[-1] >= 50
    cruise = (rows.t > 8.0) & (rows.t < BEGIN + seconds)
    assert np.polyfit(rows.t[cruise], rows.base[cruise, 0], 1)[0] >= 0.99 * speed
    assert rows.effort.max() < 1.0
    assert rows.knee.min() > 0.5
    assert rows.dcm_error.max() < 0.02
    # At rest again, arms and waist too.
    assert rows.speed[-1] < 0.05


@pytest.mark.long
@pytest.mark.parametrize(("name", "speed"), sampled([("g1", 0.8), ("talos", 0.9)]))
def test_who_does_not_swing_arms_and_waist_against_the_legs_comes_off_the_plan(name: str, speed: float) -> None:
    """At full speed: quick steps may catch it, but it falls or needs them."""
    swings, stiff = (
        Walker(name, **params).go(BEGIN).go(6.5, (speed, 0.0, 0.0)) for params in ({}, {"momentum_weight": 0.0})
    )
    assert swings.fell is None
    assert stiff.fell is not None or stiff.rows.dcm_error.max() > 2.0 * swings.rows.dcm_error.max()


@pytest.mark.slow
@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("seed", range(3))
def test_a_joystick_in_any_hands_brings_no_robot_down(name: str, seed: int) -> None:
    """Commands of all sizes, also all at once, at any time."""
    generator = np.random.default_rng(seed)
    walker = Walker(name).go(BEGIN)
    most = walker.controller._params.max_forward
    for _ in range(12):
        command = generator.uniform([-0.6 * most, -0.25, -0.7], [1.2 * most, 0.25, 0.7]) * (generator.random(3) < 0.6)
        walker.go(float(generator.uniform(0.2, 2.5)), tuple(command.tolist()))
    walker.go(8.0, (0.0, 0.0, 0.0))
    assert walker.fell is None
    assert walker.controller._gait.phase == "stand"


def sagittal(rows: Rows) -> float:
    """Return the rms [m] of (ZMP - command) ahead, in the single supports of the walk."""
    single = (rows.flying >= 0) & (rows.t > 3.0)
    return float(np.sqrt(np.mean((rows.cop - rows.zmp_goal)[single, 0] ** 2)))


@pytest.mark.long
@pytest.mark.parametrize("name", sampled(["biped14", "talos"]))
def test_the_inertia_of_the_swinging_leg_explains_a_third_of_the_error_of_the_zmp(name: str) -> None:
    assert sagittal(short(name)[1]) < 0.66 * sagittal(short(name, swing_inertia=0.0)[1])


@pytest.mark.slow
def test_g1_comes_off_its_plan_in_quick_steps_if_its_swinging_leg_had_no_inertia() -> None:
    errors = []
    for params in ({}, {"swing_inertia": 0.0}):
        errors.append(Walker("g1", **params).go(BEGIN).go(8.0, (0.8, 0.0, 0.0)).rows.dcm_error.max())
    assert errors[0] < 0.015
    assert errors[1] > 2.0 * errors[0]


@pytest.mark.long
@pytest.mark.parametrize("gain", [0.0, 1.5, 4.0])
def test_walking_takes_feedback_of_any_reasonable_gain(gain: float) -> None:
    walker, rows = short("biped14", dcm_gain=gain)
    assert walker.fell is None
    assert rows.steps[-1] == 5
    # The stiffer, the closer.
    assert rows.dcm_error.max() < {0.0: 0.05, 1.5: 0.012, 4.0: 0.006}[gain]


@pytest.mark.long
def test_slow_steps_are_no_longer_than_legs_reach() -> None:
    """A step of 2.6 s at the commanded velocity would be 1.3 m long. The robot walks more slowly with bent knees."""
    walker = Walker("biped14", double_support=2.0).go(1.0).go(8.0, (0.5, 0.0, 0.0))
    assert walker.fell is None
    assert walker.rows.knee.min() > 0.05
    assert walker.rows.base[-1, 0] > 0.4


def test_without_feedback_on_the_dcm_it_falls_at_the_first_step_and_says_so() -> None:
    # Steps that catch it would be feedback of another kind.
    walker, rows = short("biped14", dcm_gain=-1.0, catch_most=0.0)
    assert walker.fell is not None
    assert rows.steps[-1] <= 1
    assert walker.controller.readouts["dcm_error"] > walker.controller._params.fall_error


@pytest.mark.long
def test_noise_of_the_forces_moves_no_touch_down() -> None:
    rows, noisy = short("biped14")[1], short("biped14", "noise")[1]
    changes = [np.flatnonzero(np.diff(run.flying)) for run in (rows, noisy)]
    assert len(changes[0]) == len(changes[1])
    assert np.abs(changes[0] - changes[1]).max() <= 5


def test_the_same_walk_twice_has_the_same_bits() -> None:
    walker, rows = short("biped14")
    first = rows.tau.copy()
    walker.controller.set_velocity(0.1, 0.1, 0.1)
    walker.reset()
    again = walker.go(BEGIN).go(1.5, (SPEED["biped14"], 0.0, 0.0)).rows.tau
    assert (again == first[: len(again)]).all()
    short.cache_clear()


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "schedule", "most"),
    sampled(
        [
            ("biped14", [(3.0, (0.7, 0.0, 0.0))], 1),  # the command is there before the CoM is between the feet
            (
                "talos",
                [(1.5, (0.5, 0.0, 0.0)), (0.3, (0.0, 0.2, 0.4)), (0.3, (0.0, -0.2, -0.4)), (2.0, (-0.3, 0.0, 0.0))],
                1,
            ),
            (
                "g1",
                [(1.0, (0.0, 0.1, 0.0)), (2.0, (0.0, -0.1, 0.4)), (1.5, (0.4, 0.0, 0.0)), (4.0, (0.0, 0.0, 0.0))],
                0,
            ),
            ("biped14", [(0.5, (0.0, 0.0, 0.0)), (2.0, (0.0, 0.2, 0.0)), (2.0, (0.0, -0.2, 0.0))], 1),
            ("g1", [(1.2, (0.0, 0.0, 0.0)), (0.2, (0.4, 0.0, 0.0)), (2.5, (0.0, 0.0, 0.0))], 0),  # taken back at once
            ("biped14", [(1.2, (0.0, 0.0, 0.0)), (2.0, (0.002, 0.0, 0.0)), (1.8, (0.0, 0.0, 0.0))], 0),  # hardly any
        ],
        keep=3,
    ),
)
def test_commands_may_come_at_any_time_and_change_their_mind(
    name: str, schedule: list[tuple[float, tuple[float, float, float]]], most: int
) -> None:
    walker = Walker(name)
    for duration, command in schedule:
        walker.go(duration, command)
    rows = walker.rows
    assert walker.fell is None
    assert rows.steps[-1] >= 1
    assert rows.dcm_error.max() < 0.015
    assert rows.effort.max() < 1.0
    if not most:
        assert walker.controller._gait.phase == "stand"


def test_footsteps_are_taken_as_planned_in_the_world() -> None:
    walker = Walker("biped14")

    def feet() -> list[pin.SE3]:
        poses = map(pin.XYZQUATToSE3, walker.sim.ground_truth().pose_world_sole)
        soles = walker.robot.soles
        return [pose * pin.SE3(np.eye(3), np.append(s.centre, 0.0)) for pose, s in zip(poses, soles, strict=True)]

    start = np.mean([foot.translation[:2] for foot in feet()], axis=0)
    plan = np.array([[0.2, 0.1, 0.1], [0.4, -0.08, 0.2], [0.38, 0.1, 0.2]])
    walker.controller.set_footsteps(plan)
    plan[:] = np.nan
    rows = walker.go(5.3).rows
    assert walker.fell is None
    assert rows.steps[-1] == 3
    left, right = feet()
    assert left.translation[:2] - start == pytest.approx([0.38, 0.1], abs=2e-3)
    assert right.translation[:2] - start == pytest.approx([0.4, -0.08], abs=2e-3)
    yaw = [pin.rpy.matrixToRpy(foot.rotation)[2] for foot in (left, right)]
    assert yaw == pytest.approx([0.2, 0.2], abs=5e-3)
    with refusal(place="footsteps[0]"):
        walker.controller.set_footsteps(np.array([[2.0, 0.1, 0.0]]))


def test_a_reset_forgets_the_command_and_may_come_in_the_air_or_twice() -> None:
    walker = Walker("g1").go(1.9, (0.4, 0.0, 0.0))
    walker.controller.set_footsteps(np.array([[0.1, 0.12, 0.0]]))
    q = loaded("g1").q_nominal.copy()
    q[2] += 0.02
    walker.reset(q)
    walker.reset(q)
    rows = walker.go(2.5).rows
    assert walker.fell is None
    assert rows.steps[-1] == 0
    assert rows.force[0].max() == 0.0
    assert rows.speed[-1] < 1e-3


def test_each_excursion_beyond_the_limits_is_reported_once() -> None:
    robot = load_robot("biped14")
    zmp = make_controller("zmp", robot, None, 1e-3)
    largest = robot.controllers["zmp"]["max_forward"]
    allowed = [(largest, 0.0, 0.0), (0.0, 0.0, 0.0), (-0.5 * largest, 0.0, 0.0)]
    beyond = [(1.1 * largest, 0.0, 0.0), (-0.6 * largest, 0.0, 0.0), (largest, 0.1, 0.3), (0.1, 0.0, np.nan)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for velocity in allowed:
            zmp.set_velocity(*velocity)
        assert not caught
        for n, velocity in enumerate(beyond, start=1):
            zmp.set_velocity(*velocity)
            zmp.set_velocity(*velocity)
            assert [each.category for each in caught] == n * [ControllerWarning]
            zmp.set_velocity(0.1, 0.0, 0.0)


@pytest.mark.parametrize("bad", [(np.nan, 0.0, 0.0), (0.3, np.nan, 0.0), (0.0, np.inf, 0.0)])
def test_a_command_that_is_no_number_brings_no_robot_down(bad: tuple[float, float, float]) -> None:
    walker = Walker("biped14", ramp=0.1).go(1.6, bad)
    assert walker.fell is None
    assert np.isfinite(walker.rows.tau).all()


@pytest.mark.parametrize("name", ["compass", str(BODIES / "chair"), str(BODIES / "kicker")])
def test_only_robots_with_two_flat_feet_walk(name: str) -> None:
    with refusal(place="controller 'zmp'"):
        make_controller("zmp", loaded(name))


@pytest.mark.parametrize(
    "params",
    [{"dcm_gain": -2.0}, {"single_support": 0.05}, {"touch_force": 2.0}, {"swing_inertia": 0.5}, {"edge": -0.1}],
)
def test_parameters_out_of_range_are_named(params: dict[str, float]) -> None:
    with refusal(place=next(iter(params)), value=next(iter(params.values()))):
        make_controller("zmp", loaded("biped14"), params)
