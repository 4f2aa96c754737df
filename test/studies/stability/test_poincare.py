"""Return maps: crossings, charts, mirror images, Newton, multipliers, doublings and basins, in closed form."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings, strategies as st
from paths import BODIES
from poincare_support import Bistable
from refusals import refusal
from scipy.special import ellipk

from bipedsim.control.controllers import make_controller
from bipedsim.errors import UnknownNameError
from bipedsim.ground.ground import Ground
from bipedsim.ground.read import get_ground
from bipedsim.model import Robot, load_robot
from bipedsim_studies.reproduce.adubredu.ideal_walker import WALKER
from bipedsim_studies.reproduce.adubredu.walker import PASSIVE
from bipedsim_studies.stability.basin import HOME, LOST, Basin, probe
from bipedsim_studies.stability.continuation import doubled, follow
from bipedsim_studies.stability.loop import ClosedLoop
from bipedsim_studies.stability.maps import NoReturnError, Return
from bipedsim_studies.stability.mirror import Mirror, partner
from bipedsim_studies.stability.newton import (
    difference,
    extrapolated,
    fixed_point,
    limit,
    multipliers_of,
    stability,
)
from bipedsim_studies.stability.planes import FeetOnPlane, translated
from bipedsim_studies.stability.return_map import ReturnMap
from bipedsim_studies.stability.section import Clock, Passing, SectionCrossing, TouchDown
from bipedsim_studies.study.options import Parallel


@pytest.fixture(scope="module")
def compass() -> Robot:
    return load_robot("compass")


@pytest.fixture(scope="module")
def walking() -> ReturnMap:
    loop = ClosedLoop(load_robot("compass"), get_ground("downhill"), physics_dt=2e-3)
    return ReturnMap(loop, TouchDown(loop.robot, loop.feet), *WALKER.robot_state(PASSIVE), mirrored=True)


def landing(height: float, h: float, after: float = 0.1) -> SectionCrossing:
    """Return where a point mass that falls from ``height`` meets the ground."""
    loop = ClosedLoop(load_robot(BODIES / "mass"), Ground.flat(), physics_dt=h)
    loop.begin(np.array([height]), np.zeros(1))
    return loop.stride(TouchDown(loop.robot, loop.feet, after=after), 2.0)[0]


@pytest.mark.parametrize("h", [1e-2, 1e-3, 3e-4])
def test_a_touch_down_is_found_between_the_steps(h: float) -> None:
    """The steps of a fall lie on the parabola: the crossing is the zero of that, and not a step."""
    crossing = landing(0.3, h)
    exact = math.sqrt(2.0 * 0.3 / 9.81)
    assert crossing.t == pytest.approx(exact, abs=1e-12)
    assert crossing.q[0] == pytest.approx(0.0, abs=1e-12)
    assert crossing.v[0] == pytest.approx(-9.81 * exact, abs=1e-10)
    assert crossing.foot == 0
    assert crossing.carrying == ()


def test_what_lands_too_early_is_no_event() -> None:
    with refusal(NoReturnError, place="mass"):
        landing(0.01, 1e-3, after=0.1)


def test_a_pendulum_returns_after_its_period() -> None:
    """A user's function as section. Energy is conserved, so every swing is an orbit and there is no classification."""
    robot = load_robot(BODIES / "kicker")
    # It goes over the top.
    model = pin.Model(robot.model)
    model.lowerPositionLimit, model.upperPositionLimit = np.full(model.nq, -np.inf), np.full(model.nq, np.inf)
    robot = replace(robot, model=model)
    angle = 1.0

    def map(h: float) -> ReturnMap:
        loop = ClosedLoop(robot, Ground.flat(-5.0), physics_dt=h)
        return ReturnMap(loop, Passing(lambda q, v: q[0]), np.array([angle]), np.zeros(1), settle=0)

    inertia, torque = 0.02 + 0.5 * 0.5**2, 0.5 * 9.81 * 0.5
    period = 4.0 * math.sqrt(inertia / torque) * ellipk(math.sin(0.5 * angle) ** 2)
    rate = 2.0 * math.sqrt(torque / inertia) * math.sin(0.5 * angle)
    steps = (4e-3, 2e-3, 1e-3)
    backs = [map(h)(np.array([rate])) for h in steps]
    assert map(1e-3).names == ("hip'",)
    assert extrapolated([np.array(back.duration) for back in backs], steps) == pytest.approx(period, abs=1e-6)
    assert extrapolated([back.xi for back in backs], steps) == pytest.approx(rate, abs=1e-6)
    with refusal(NoReturnError, place=robot.name):
        map(1e-3)(np.array([100.0 * rate]))


def test_a_section_must_be_met() -> None:
    robot = load_robot(BODIES / "kicker")
    loop = ClosedLoop(robot, Ground.flat(-5.0))
    with refusal(NoReturnError, place="kicker"):
        ReturnMap(loop, Passing(lambda q, v: q[0] - 3.0), first=0.5)
    with refusal(UnknownNameError, name="heel"):
        TouchDown(robot, loop.feet, "heel")


@pytest.mark.ci
def test_a_gait_by_the_clock_forgets_as_its_gains_say() -> None:
    """biped14 stands under computed torque, and each of its 8 degrees of freedom forgets e'' = -2 w e' - w^2 e."""
    frequency, period, dt = 10.0, 0.02, 1e-3
    loop = ClosedLoop(
        load_robot("biped14"),
        Ground.flat(),
        lambda robot, dt: make_controller("computed_torque", robot, {"frequency": frequency, "ramp": 0.0}, dt),
        dt,
    )
    map = ReturnMap(loop, Clock(period), settle=1)
    assert len(map.names) == 2 * (20 - 12)
    assert not any(name.startswith("base") for name in map.names)
    found = stability(map, fixed_point(map, map.centre, 1e-6), (1e-4,))
    assert found.verdict == "stable"
    assert found.point.duration == pytest.approx(period)
    # The same, sampled: v+ = v + h e'', e+ = e + h v+.
    w, h = frequency, dt
    tick = np.array([[1.0 - (w * h) ** 2, h - 2.0 * w * h * h], [-w * w * h, 1.0 - 2.0 * w * h]])
    of_one = multipliers_of(np.linalg.matrix_power(tick, 20))
    np.testing.assert_allclose(found.multipliers, np.repeat(of_one, 8), atol=1e-5)


@given(st.lists(st.floats(-0.05, 0.05), min_size=3, max_size=3))
@settings(max_examples=20)
def test_a_chart_gives_states_on_the_section_and_back(walking: ReturnMap, away: list[float]) -> None:
    xi = walking.centre + np.array(away)
    q, v = walking.chart.state(xi)
    np.testing.assert_allclose(walking.chart.coordinates(q, v), xi, atol=1e-13)
    feet = FeetOnPlane(load_robot("compass"), get_ground("downhill"))
    assert abs(feet.height(q, 1)) < 1e-12
    np.testing.assert_allclose(feet.points(q, 0)[0], walking.chart.place, atol=1e-12)
    np.testing.assert_allclose(feet.velocities(q, v, 0), 0.0, atol=1e-12)


def test_coordinates_are_joints_and_rates_themselves(walking: ReturnMap) -> None:
    assert walking.names == ("hip", "left_pitch'", "hip'")
    q, v = walking.state(walking.centre)
    np.testing.assert_allclose(walking.centre, [q[3], v[2], v[3]], atol=1e-12)


def test_what_no_state_has_is_no_return(walking: ReturnMap) -> None:
    with refusal(NoReturnError, place="compass"):
        walking(np.array([math.pi, 0.0, 0.0]) + walking.centre)


@pytest.mark.parametrize("name", ["compass", "biped14"])
def test_the_mirror_image_of_a_mirror_image_is_the_robot(name: str) -> None:
    robot = load_robot(name)
    mirror = Mirror(robot)
    rng = np.random.default_rng(1)
    q = pin.integrate(robot.model, robot.q_nominal, rng.uniform(-0.3, 0.3, robot.model.nv))
    v = rng.uniform(-1.0, 1.0, robot.model.nv)
    image = mirror(q, v)
    data = robot.model.createData()
    assert pin.computeKineticEnergy(robot.model, data, *image) == pytest.approx(
        pin.computeKineticEnergy(robot.model, data, q, v)
    )
    back = mirror(*image)
    np.testing.assert_allclose(pin.difference(robot.model, q, back[0]), 0.0, atol=1e-8)
    np.testing.assert_allclose(back[1], v, atol=1e-7)


def test_partners_by_name() -> None:
    assert [partner(name) for name in ("left_leg", "r_knee", "pelvis", "rod", "leg_l")] == [
        "right_leg",
        "l_knee",
        "pelvis",
        "rod",
        "leg_r",
    ]


def test_a_robot_with_one_side_has_no_mirror_image() -> None:
    lopsided = load_robot("compass")
    model = pin.Model(lopsided.model)
    model.frames[model.getFrameId("right_leg")].name = "wooden_leg"
    with refusal(place="right_leg"):
        Mirror(replace(lopsided, model=model))


def test_a_robot_moves_along_the_ground(compass: Robot) -> None:
    feet = FeetOnPlane(compass, Ground.flat())
    by = np.array([0.3, 0.0, -0.1])
    there = translated(compass, compass.q_nominal, by)
    np.testing.assert_allclose(feet.points(there, [0, 1]), feet.points(compass.q_nominal, [0, 1]) + by, atol=1e-14)


@pytest.mark.parametrize("name", ["stairs", "tiles"])
def test_a_ground_of_many_patches_is_refused(compass: Robot, name: str) -> None:
    with refusal(place="ground"):
        FeetOnPlane(compass, get_ground(name))


def test_the_height_of_a_foot_is_what_its_velocity_changes(compass: Robot) -> None:
    feet = FeetOnPlane(compass, get_ground("downhill"))
    rng = np.random.default_rng(2)
    q, v = compass.q_nominal, rng.uniform(-1.0, 1.0, 4)
    ahead, behind = (feet.height(pin.integrate(compass.model, q, d * v), 1) for d in (1e-6, -1e-6))
    assert feet.velocities(q, v, 1)[0] @ feet.normal == pytest.approx((ahead - behind) / 2e-6, abs=1e-8)


class Logistic:
    """x -> r x (1 - x): doubles its period at r = 3 and again at 1 + sqrt 6."""

    names = ("x",)

    def __init__(self, r: float) -> None:
        self.r = r

    def __call__(self, xi: np.ndarray) -> Return:
        if not 0.0 <= xi[0] <= 1.0:
            raise NoReturnError(f"x = {xi[0]}")
        return Return(self.r * xi * (1.0 - xi), 1.0)


def test_the_logistic_map_doubles_where_it_is_known_to() -> None:
    def family(r: float, _near: np.ndarray | None) -> Logistic:
        return Logistic(r)

    values = np.linspace(2.8, 3.5, 15).tolist()
    once = follow(family, values, np.array([0.6]))
    assert once.ended == ""
    np.testing.assert_allclose([one.states[0, 0] for one in once.orbits], 1.0 - 1.0 / np.array(values), atol=1e-9)
    np.testing.assert_allclose([one.stability.multipliers[0] for one in once.orbits], 2.0 - np.array(values), atol=1e-6)
    assert once.doublings == pytest.approx([3.0], abs=1e-4)
    twice = doubled(family, once, values)
    assert twice is not None
    assert twice.doublings == pytest.approx([1.0 + math.sqrt(6.0)], abs=1e-4)
    for one in twice.orbits:
        # The two states are the roots of r^2 x^2 - r (r + 1) x + r + 1; their multiplier is 4 + 2 r - r^2.
        r = one.value
        roots = np.sort(np.roots([r * r, -r * (r + 1.0), r + 1.0]))
        np.testing.assert_allclose(np.sort(one.states[:, 0]), roots, atol=1e-9)
        assert one.stability.multipliers[0].real == pytest.approx(4.0 + 2.0 * r - r * r, abs=1e-5)
        assert one.stability.verdict == ("stable" if abs(4.0 + 2.0 * r - r * r) < 1.0 else "unstable")
    four = doubled(family, twice, values)
    assert four is not None
    assert len(four.orbits[0].states) == 4


def test_a_branch_says_where_it_ends() -> None:
    """x -> x + r - x^2 has fixed points for r >= 0 only: a fold."""

    class Fold(Logistic):
        def __call__(self, xi: np.ndarray) -> Return:
            return Return(xi + self.r - xi * xi, 1.0)

    found = follow(lambda r, _: Fold(r), np.linspace(0.5, -0.5, 11).tolist(), np.array([0.7]))
    assert found.ended.startswith("at -0.1: no fixed point")
    assert found.orbits[-1].value == pytest.approx(0.0, abs=0.11)


class Linear:
    """xi -> A (xi - c) + c + bend (xi - c)^3, with noise of the size of rounding errors of a longer computation."""

    names = ("a", "b", "c")
    centre = np.array([0.3, -0.2, 0.1])

    def __init__(self, matrix: np.ndarray, bend: float = 50.0, noise: float = 1e-9) -> None:
        self.matrix, self.bend, self.noise = matrix, bend, noise

    def __call__(self, xi: np.ndarray) -> Return:
        away = xi - self.centre
        noise = self.noise * np.cos(1e9 * xi)
        return Return(self.matrix @ away + self.bend * away**3 + self.centre + noise, 2.0)


@given(st.lists(st.floats(-1.5, 1.5), min_size=9, max_size=9))
@settings(max_examples=30)
def test_multipliers_are_those_of_the_matrix(entries: list[float]) -> None:
    matrix = np.array(entries).reshape(3, 3)
    exact = multipliers_of(matrix)
    if np.abs(exact - 1.0).min() < 0.1 or np.linalg.cond(np.linalg.eig(matrix)[1]) > 50.0:
        return
    map = Linear(matrix)
    found = stability(map, fixed_point(map, map.centre + 0.003, 1e-7))
    assert difference(found.multipliers, exact) < 1e-3
    if abs(found.radius - 1.0) > 2e-3:
        assert found.verdict == ("stable" if np.abs(exact).max() < 1.0 else "unstable")


def test_the_step_is_neither_the_one_that_bends_nor_the_one_that_shakes() -> None:
    map = Linear(np.diag([0.5, -0.4, 0.2]))
    found = stability(map, fixed_point(map, map.centre + 0.003, 1e-7))
    changes = dict(found.study)
    assert found.step in (1e-3, 3e-4, 1e-4)
    assert changes[found.step] < 0.1 * max(changes[3e-3], changes[1e-5])
    np.testing.assert_allclose(found.multipliers, [0.5, -0.4, 0.2], atol=2e-5)


@given(st.integers(1, 4), st.integers(0, 2**31))
def test_extrapolation_is_exact_for_polynomials(order: int, seed: int) -> None:
    coefficients = np.random.default_rng(seed).uniform(-1.0, 1.0, order + 1)
    steps = [0.1 / 2**k for k in range(order + 1)]
    values = [np.array([np.polynomial.polynomial.polyval(h, coefficients)]) for h in steps]
    assert extrapolated(values, steps)[0] == pytest.approx(coefficients[0], abs=1e-12)


def test_the_limit_of_small_steps_says_how_far_it_is_off() -> None:
    exact = np.array([[0.5, 0.2, 0.0], [-0.2, 0.5, 0.1], [0.0, 0.0, -0.3]])

    def at(h: float) -> Linear:
        return Linear(exact * (1.0 + h + h**4), noise=0.0)

    found = limit(at, (0.1, 0.05, 0.025), Linear.centre + 1e-3)
    off = difference(found.multipliers, multipliers_of(exact))
    assert 0.0 < off < found.errors[2] < 1e-2
    assert found.duration == pytest.approx(2.0)


def basin(jobs: int, seed: int = 3) -> Basin:
    return probe(Bistable, np.zeros(2), np.array([2.0, 1.0]), 60, seed, Parallel(jobs))


def test_a_basin_is_the_same_from_one_process_and_from_two() -> None:
    one, two = basin(1), basin(2)
    for name in ("starts", "outcome", "strides"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    np.testing.assert_array_equal(one.outcome == HOME, np.abs(one.starts[:, 0]) < 1.0)
    np.testing.assert_array_equal(one.outcome == LOST, np.abs(one.starts[:, 0]) > 1.0)
    assert one.ratio > 0.0
    assert not np.array_equal(basin(1, seed=4).starts, one.starts)


def test_an_empty_box_is_refused() -> None:
    with refusal(place="widths", value=[1.0]):
        probe(Bistable, np.zeros(2), np.array([1.0]), 5)
    with refusal(place="count", value=0):
        probe(Bistable, np.zeros(2), np.ones(2), 0)
