"""Theoretical limits of steps after a push, compared with closed forms, other steps, and a walking robot."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from refusals import refusal

from bipedsim.config.run import RunConfig
from bipedsim.model import load_robot
from bipedsim_studies.push_map.capture import leg_of
from bipedsim_studies.push_map.command import lines_of
from bipedsim_studies.push_map.push_map import Direction, PushMap
from bipedsim_studies.push_map.steps import PrePushState, StepLimits, capture_bound
from bipedsim_studies.push_map.trial import PushKind, Situation, situations
from bipedsim_studies.study.search import Threshold

OMEGA = 3.4
SOLE = np.array([[0.12, 0.06], [-0.12, 0.06], [-0.12, -0.06], [0.12, -0.06]])


def stride(dcm: tuple[float, float] = (0.02, -0.05), away: float = 10.0) -> PrePushState:
    """Return a robot on its left foot at the origin, the right one in the air abreast of it."""
    feet = np.array([[0.0, 0.0], [0.0, -0.2]])
    return PrePushState((SOLE, SOLE), feet, (True, False), np.array([0.0, -0.04]), np.array(dcm), 0.15, away)


def spread(duration: float) -> float:
    """Return the effect of a constant force on the DCM, relative to an immediate impulse: the mean of e^(-omega t)
    while it acts.
    """
    t = np.linspace(0.0, duration, 20001)
    return float(np.trapezoid(np.exp(-OMEGA * t), t) / duration)


def test_without_steps_it_is_the_way_to_the_edge_of_the_sole() -> None:
    found = capture_bound(stride(), OMEGA, 0.0, 0.1, StepLimits(most=0), SOLE)
    assert found == pytest.approx((0.12 - 0.02) / spread(0.1), rel=1e-6)


def test_one_quick_step_is_worth_how_far_the_foot_gets_in_its_time() -> None:
    """Inward: with the ZMP at the edge of the standing sole, the DCM ends at the edge of the one that lands."""
    limits = StepLimits(quickest=0.2, speed=1.5, most=1)
    best = 0.0
    for time in np.linspace(0.2, 0.2 * 3.4, 5):
        lands = -0.2 - 1.5 * time - 0.06
        best = max(best, 0.06 + (-0.06 - lands) * math.exp(-OMEGA * time) - 0.05)
    found = capture_bound(stride(), OMEGA, -0.5 * math.pi, 0.1, limits, SOLE)
    assert found == pytest.approx(best / spread(0.1), rel=1e-6)


def test_outward_the_other_foot_is_in_the_way_and_two_steps_do_more_than_one() -> None:
    one, two = (capture_bound(stride(), OMEGA, 0.5 * math.pi, 0.1, StepLimits(most=n), SOLE) for n in (1, 2))
    # The foot in the air cannot land beyond the one that stands, so that one step is worth no more than none.
    assert one == pytest.approx((0.06 + 0.05) / spread(0.1), rel=1e-6)
    assert two > 1.1 * one


def test_what_friction_or_legs_do_not_reach_is_worth_less() -> None:
    free, short = (capture_bound(stride(away=r), OMEGA, 0.0, 0.1, StepLimits(), SOLE) for r in (10.0, 0.25))
    assert 0.1 / spread(0.1) < short < free


@given(st.floats(0.0, 2.0 * math.pi), st.integers(0, 2**32 - 1))
def test_nobody_who_steps_as_he_likes_catches_more(angle: float, seed: int) -> None:
    """Steps and ZMPs are random. The pendulum gives the pushes that they would catch, if any."""
    rng = np.random.default_rng(seed)
    limits = StepLimits(quickest=0.2, speed=1.5, most=1)
    bound = capture_bound(stride(), OMEGA, angle, 0.1, limits, SOLE)
    way = np.array([math.cos(angle), math.sin(angle)])
    sole = SOLE.min(axis=0), SOLE.max(axis=0)
    for _ in range(200):
        time, zmp, size = rng.choice(np.linspace(0.2, 0.68, 5)), rng.uniform(*sole), rng.uniform(0.0, 1.5 * bound)
        # Where the DCM is when the foot lands, less where in the sole it shall be then.
        land = zmp + (stride().dcm + size * way - zmp) * math.exp(OMEGA * time) - rng.uniform(*sole)
        if np.linalg.norm(land - [0.0, -0.2]) <= 1.5 * time and land[1] <= -0.15:
            assert size <= bound * spread(0.1) + 1e-9


def test_a_walk_is_pushed_at_equal_shares_of_its_step_and_its_dcm_runs_away_from_the_foot() -> None:
    found = situations(RunConfig(scenario="walk"), 2.0, 4)
    assert [where.phase for where in found] == [0.125, 0.375, 0.625, 0.875]
    # The step of biped14 takes 0.7 s.
    np.testing.assert_allclose(np.diff([where.at for where in found]), 0.7 / 4.0, atol=3e-3)
    strides = [where.stride for where in found]
    for before, after in pairwise(strides[:3]):
        assert before is not None
        assert after is not None
        assert before.carries == after.carries
        (k,) = np.flatnonzero(before.carries)
        # To the side, where no leg swings. Origins are between the feet, which move; the foot that stands does not.
        first, last = (at.dcm[1] - at.feet[k, 1] for at in (before, after))
        growth = math.exp(found[0].stance.omega * 0.7 / 4.0)
        # From the ZMP, which is within 6 mm of the middle of the sole.
        assert last == pytest.approx(first * growth, abs=6e-3 * (growth - 1.0))


@pytest.mark.parametrize(("name", "length"), [("biped14", 0.84), ("talos", 0.748), ("g1", 0.651)])
def test_legs_are_as_long_as_the_robot_is_high_at_its_hips(name: str, length: float) -> None:
    leg = leg_of(load_robot(name), 0)
    assert leg.hip_height == pytest.approx(length, abs=1e-3)
    assert leg.hip_height < leg.straight < 1.15 * leg.hip_height


def test_the_least_share_of_a_map_is_told() -> None:
    (where,) = situations(RunConfig(controller="posture"), 0.5)
    where = Situation(where.settings, 0.5, True, where.stance, 0.25, where.stride)
    entries = [Direction(n, a, Threshold(j, 60.0, 3), None, 50.0) for n, a, j in (("x", 0.0, 30.0), ("y", 1.6, 20.0))]
    found = PushMap(PushKind(), (where,), {0: entries}, (0.84,))
    share = 20.0 / (where.stance.mass * where.stance.omega * 0.84)
    lines = list(lines_of(found))
    assert f"J / (m omega L) = {share:.3f} of {2.5 * share:.3f} that steps can catch" in lines[3]
    assert lines[-1] == f"stand: least J / (m omega L) = {share:.3f}, y, at 25% of the step"
    assert found.as_json()["situations"][0]["directions"][1]["capture_bound_Ns"] == 50.0


def test_a_robot_that_takes_no_two_steps_has_no_phases(tmp_path: Path) -> None:
    scenario = tmp_path / "one_step.yaml"
    scenario.write_text(
        "description: a step or two\ncontroller: zmp\nduration: 6.0\nvelocity:\n  - {at: 1.0, vx: 0.1}\n  - {at: 1.5}\n"
    )
    with refusal(place="biped14"):
        situations(RunConfig(scenario=str(scenario), controller="zmp"), 1.2, 4)
