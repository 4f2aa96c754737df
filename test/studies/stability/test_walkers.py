"""Gaits of walkers on the engine, compared with event-based models and published results."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from refusals import refusal

from bipedsim.cli.main import main
from bipedsim.model import load_robot
from bipedsim_studies.reproduce.adubredu.ideal_walker import WALKER
from bipedsim_studies.reproduce.adubredu.walker import PASSIVE, PASSIVE_PERIOD
from bipedsim_studies.stability.basin import HOME, probe
from bipedsim_studies.stability.continuation import follow
from bipedsim_studies.stability.families import SlopeFamily, StepFamily
from bipedsim_studies.stability.gait import WalkerGait
from bipedsim_studies.stability.newton import FixedPoint, Limit, difference, fixed_point, limit, stability
from bipedsim_studies.stability.return_map import ReturnMap
from bipedsim_studies.stability.straight_legs import EventMap, StraightLegs
from bipedsim_studies.study.options import Parallel

pytestmark = pytest.mark.slow

KNOWN = np.array([0.26070 + 0.30404j, 0.26070 - 0.30404j, 0.31014])
GOSWAMI = np.array([0.2187, -0.3234, -1.0918, -0.3772])
"""Of the three masses on 3 degrees: angles of the stance and the swinging leg from the vertical, and their rates."""


@lru_cache
def gait(robot: str) -> tuple[ReturnMap, FixedPoint, Limit]:
    """Return the map of a passive walker, its fixed point, and the limit of small steps."""
    settings = WalkerGait(robot, physics_dt=2e-3 if robot == "compass" else 1e-3)
    map = settings.map()
    point = fixed_point(map, map.centre)
    steps = [settings.physics_dt / 2**k for k in range(3)]
    return map, point, limit(StepFamily(settings, (map, point.xi)), steps, point.xi)


@lru_cache
def by_events(robot: str, slope: float) -> tuple[StraightLegs, FixedPoint]:
    walker = StraightLegs.of_robot(load_robot(robot), slope)
    guess = PASSIVE if robot == "compass" else np.array([0.2710, -1.0918, -0.5421, 0.7146])
    return walker, fixed_point(EventMap(walker), guess, 1e-11, 1e-4)


def test_the_compass_by_events_to_eight_digits() -> None:
    walker, point = by_events("compass", 0.01)
    assert walker == replace(WALKER, apart=walker.apart)
    np.testing.assert_allclose(point.xi, PASSIVE, atol=1e-8)
    assert point.duration == pytest.approx(PASSIVE_PERIOD, abs=5e-7), "known to six decimals"
    found = stability(EventMap(walker), point)
    assert difference(found.multipliers, np.append(KNOWN, 0.0)) < 1e-5
    assert found.verdict == "stable"


def test_the_three_masses_by_events_as_published() -> None:
    slope = math.radians(3.0)
    walker, point = by_events("three_masses", slope)
    stance, rate, relative, relative_rate = point.xi
    angles = [stance - slope, stance + relative - slope, rate, rate + relative_rate]
    np.testing.assert_allclose(angles, GOSWAMI, atol=6e-5)
    assert point.duration == pytest.approx(0.7347, abs=1e-4)
    assert stability(EventMap(walker), point, (1e-4,)).verdict == "stable"


@pytest.mark.parametrize(("robot", "slope"), [("compass", 0.01), ("three_masses", math.radians(3.0))])
def test_the_engine_has_the_gait_of_events(robot: str, slope: float) -> None:
    """Fixed point and period to 1e-5, multipliers to 1e-3: the first order in h, extrapolated twice."""
    map, _, found = gait(robot)
    walker, exact = by_events(robot, slope)
    before = walker.stride(exact.xi).path[-1]
    q, v = map.state(found.xi)
    np.testing.assert_allclose(walker.before_strike(q, v, left=True), before, atol=2e-6)
    assert found.duration == pytest.approx(exact.duration, abs=2e-6)
    multipliers = stability(EventMap(walker), exact, (1e-5,)).multipliers[:3]
    assert difference(found.multipliers, multipliers) < 1e-4
    assert found.errors[0] < 1e-5
    assert found.errors[1] < 1e-5
    assert found.errors[2] < 1e-3


@pytest.mark.parametrize("robot", ["compass", "three_masses"])
def test_the_engine_converges_with_the_first_order(robot: str) -> None:
    _, _, found = gait(robot)
    of_h = [
        [np.abs(one.point.xi - found.xi).max() for one in found.found],
        [abs(one.point.duration - found.duration) for one in found.found],
        [difference(one.multipliers, found.multipliers) for one in found.found],
    ]
    for errors in of_h:
        orders = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
        np.testing.assert_allclose(orders, 1.0, atol=0.1)


def test_the_map_is_smooth_between_steps_of_the_simulator() -> None:
    """A touch-down that falls anywhere within a step leaves no teeth: second differences vanish as their square."""
    map, point, _ = gait("compass")
    steps = (4e-4, 2e-4, 1e-4)
    way = np.array([1.0, 0.0, 0.0])
    bends = [map(point.xi + s * way).xi + map(point.xi - s * way).xi - 2.0 * map(point.xi).xi for s in steps]
    sizes = [float(np.abs(bend).max()) for bend in bends]
    assert sizes[0] / sizes[1] == pytest.approx(4.0, rel=0.05)
    assert sizes[1] / sizes[2] == pytest.approx(4.0, rel=0.1)


def test_a_map_forgets_what_was_asked_before() -> None:
    map, point, _ = gait("three_masses")
    first = map(point.xi + 1e-3)
    map(point.xi - 2e-3)
    again = map(point.xi + 1e-3)
    np.testing.assert_array_equal(first.xi, again.xi)
    assert first.duration == again.duration


def test_strides_of_one_foot_are_two_steps() -> None:
    """Without the mirror: the same gait over both feet, and the multipliers are the squares."""
    _, _, steps = gait("three_masses")
    map = WalkerGait("three_masses", foot="right").map()
    point = fixed_point(map, map.centre)
    assert point.duration == pytest.approx(2.0 * steps.found[0].point.duration, abs=1e-4)
    squares = steps.found[0].multipliers ** 2
    assert difference(stability(map, point, (1e-4,)).multipliers, squares) < 2e-3


def test_the_slope_at_which_the_period_doubles() -> None:
    """The engine at h = 1 ms against events: the same branch, and a multiplier that passes -1 at the same slope."""
    map, point, _ = gait("three_masses")
    slopes = [0.06, 0.07, 0.0755, 0.0785]
    engine = follow(SlopeFamily(WalkerGait("three_masses"), (map, point.xi)), slopes, point.xi)
    robot = load_robot("three_masses")
    events = follow(
        lambda slope, _: EventMap(StraightLegs.of_robot(robot, slope)), slopes, by_events("three_masses", 0.0524)[1].xi
    )
    assert engine.ended == events.ended == ""
    assert engine.doublings == pytest.approx(events.doublings, abs=5e-4)
    assert math.degrees(events.doublings[0]) == pytest.approx(4.4, abs=0.05)
    assert [one.stability.verdict for one in engine.orbits] == ["stable"] * 3 + ["unstable"]
    hip = [one.states[0, 0] for one in engine.orbits]
    np.testing.assert_allclose(hip, [-one.states[0, 2] for one in events.orbits], atol=5e-3)


def test_the_basin_of_the_engine_is_the_same_twice() -> None:
    _, point, _ = gait("three_masses")
    widths = np.array([0.004, 0.02, 0.02])
    one, two = (probe(WalkerGait("three_masses").map, point.xi, widths, 4, 5, Parallel(jobs)) for jobs in (1, 2))
    np.testing.assert_array_equal(one.outcome, two.outcome)
    np.testing.assert_array_equal(one.strides, two.strides)
    assert (one.outcome == HOME).all(), "so near to it all come home"


def test_the_command_says_it_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "gait.png"
    settings = tmp_path / "gait.yaml"
    settings.write_text("{slopes: [0.05, 0.06, 2], basin: 3, width: [0.01], refine: 1}")
    options = ["--robot", "three_masses", "--jobs", "1", "--json", "--plot", str(picture)]
    assert main(["poincare", str(settings), *options]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["coordinates"] == ["hip", "left_pitch'", "hip'"]
    assert said["verdict"] == "stable"
    assert said["limit"]["physics_dt_s"] == [1e-3, 5e-4]
    assert said["basin"]["share_home"] == 1.0
    assert said["branches"][0]["slopes_rad"] == [0.05, 0.06]
    assert picture.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["{ground: flat, slope: 0.1}"], "slope = 0.1"),
        (["{slope: 0.3}", "--robot", "three_masses"], "no gait: "),
        (["{slopes: [0.1, 0.1, 3]}"], "slopes = [0.1, 0.1, 3.0]"),
        (["{period: 0.00033}"], "period = 0.00033"),
        (["{foot: heel}"], "'heel'"),
        (["{start: nowhere.yaml}"], "nowhere.yaml"),
        (["{basin: 3, width: [1, 2]}"], "width: 2 numbers"),
    ],
)
def test_what_cannot_be_is_refused(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["poincare", *options]) != 0
    assert message in capsys.readouterr().err


def test_a_robot_with_knees_is_no_straight_legs() -> None:
    with refusal(place="biped14"):
        StraightLegs.of_robot(load_robot("biped14"), 0.0)
