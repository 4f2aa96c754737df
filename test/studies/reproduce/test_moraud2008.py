"""The experiments of Moraud et al. 2008: their metrics, step by step, and the underlying motions."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import reproduce_support

from bipedsim.model import load_robot
from bipedsim.model.sole import checked_polygon
from bipedsim_studies.reproduce.common import CaseOutcome
from bipedsim_studies.reproduce.moraud2008 import bend_and_jump, friction, plates, squats, toe_fall

measured = partial(reproduce_support.measured, "moraud2008")


def test_the_fall_turns_in_the_step_in_which_the_cop_reaches_the_edge() -> None:
    """Fig. 6, top: with the rule no step passes; bottom: without it the mode lags and the CoP leaves the sole."""
    assert measured("fig6", "revised: steps from the CoP") == 0
    assert measured("fig6", "revised: |CoP to the edge| in that step") < 1e-6
    assert measured("fig6", "revised: state changes") == 2
    assert measured("fig6", "thresholds: steps from the CoP") >= 2
    assert measured("fig6", "thresholds: CoP in front") > 1e-3


def test_the_sway_ends_on_one_foot_and_one_edge() -> None:
    """Fig. 9: forces are those of the CoM's acceleration in every step, and at rest equal and opposite sideways."""
    assert measured("fig9", "|sum f_z") < 0.1
    assert measured("fig9", "|sum f_y") < 0.1
    assert measured("fig9", "|f_y left + f_y right|") < 0.02
    assert measured("fig9", "share of the left foot at rest") > 0.95
    assert measured("fig9", "right foot rests on an edge") == 1


def test_squats_press_on_the_ground_as_their_mass_accelerates() -> None:
    """Fig. 11, filtered as in the paper."""
    assert measured("fig11", "filtered |f_z - m (g + a_com)|") < 0.1
    assert measured("fig11", "the same over the span") < 0.05


def test_planned_squats_last_as_long_as_the_papers() -> None:
    t = np.arange(0.0, squats.DURATION, 1e-3)
    s, ds, dds = np.array([squats.lowering(x) for x in t]).T
    assert s.max() == pytest.approx(squats.DEPTH, rel=1e-4)
    start = squats.BEGIN
    for period in (1.25, 1.0):
        inside = (t > start) & (t < start + period)
        assert s[inside].max() == pytest.approx(squats.DEPTH, rel=1e-4)
        start += period
    assert s[t > start].max() == 0.0
    assert (s[2:] - s[:-2]) / 2e-3 == pytest.approx(ds[1:-1], abs=1e-4)
    assert (ds[2:] - ds[:-2]) / 2e-3 == pytest.approx(dds[1:-1], abs=0.02)


def test_a_plate_rounds_and_its_filter_enlarges_that_by_no_more_than_its_gain() -> None:
    """Section V: a plate of 1 N. The worst error has the signs of the impulse response."""
    from bipedsim.analysis import low_pass

    rate = 1000.0
    bound = plates.gain(rate)
    assert 1.0 < bound < 2.0
    rng = np.random.default_rng(3)
    for error in (rng.uniform(-0.5, 0.5, 3000), 0.5 * np.sign(rng.normal(size=3000)), np.full(3000, 0.5)):
        assert np.abs(low_pass(error, rate, plates.CUTOFF, plates.ORDER)).max() <= 0.5 * bound
    impulse = np.zeros(3001)
    impulse[1500] = 1.0
    response = low_pass(impulse, rate, plates.CUTOFF, plates.ORDER)
    worst = low_pass(0.5 * np.sign(response), rate, plates.CUTOFF, plates.ORDER)
    assert worst[1500] == pytest.approx(0.5 * bound, rel=1e-6)


def test_the_overload_of_a_squat_is_that_of_its_plan() -> None:
    start = squats.BEGIN
    for period in squats.PERIODS:
        bottom, h = start + 0.5 * period, 1e-4
        before, at, after = (squats.lowering(bottom + side)[0] for side in (-h, 0.0, h))
        assert -(before - 2.0 * at + after) / h**2 == pytest.approx(24.0 * squats.DEPTH / period**2, rel=1e-5)
        start += period
    assert measured("plates", "squats: ratio of both overloads") == pytest.approx(1.25**2, abs=0.05)


@pytest.mark.parametrize("mu", [0.13, 0.45])
def test_the_foot_slips_at_mu_f_z(mu: float) -> None:
    """Section V.C: 0.1 % of the force, and the coefficient by a regression over the loads."""
    pulls = friction.measure()[mu]
    for pull in pulls:
        slip = friction.slip(pull)
        assert pull.pull[slip] == pytest.approx(mu * pull.normal[slip], rel=1e-3)
        assert (pull.tangential[slip:] < 0.9 * mu * pull.normal[slip:]).all()
    line = friction.fit(pulls)
    assert line.slope == pytest.approx(mu, rel=1e-3)
    assert line.r_squared == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("n", bend_and_jump.VERTICES)
def test_soles_of_more_vertices_lie_in_the_robots_own(n: int) -> None:
    sole = load_robot(bend_and_jump.ROBOT).soles[0]
    vertices = bend_and_jump.rounded_rectangle(sole.vertices, n)
    assert len(vertices) == n
    assert np.array_equal(checked_polygon(vertices, "sole"), vertices)
    assert all(sole.contains(vertices))
    assert vertices.max(axis=0) == pytest.approx(sole.vertices.max(axis=0))


def test_one_step_costs_few_candidates_and_exact_searches(tmp_path: Path) -> None:
    """Fig. 8 on the smallest and on a larger sole: candidates are counted; times are plotted and not tested."""
    from bipedsim_studies.reproduce.common import save_picture

    costs = bend_and_jump.measure_all(vertices=(4, 32))
    assert [check for check in bend_and_jump.checks(costs) if not check.ok] == []
    for cost in costs.values():
        assert (cost.candidates >= 1).all()
        assert cost.air.any()
    assert costs["exact", 32].candidates.max() > 5
    drawn = CaseOutcome((), lambda figure: bend_and_jump.draw(figure, costs), (13.0, 7.5))
    assert save_picture(drawn, "fig8", tmp_path / "fig8.png")
    assert (tmp_path / "fig8.png").stat().st_size > 20_000


def test_the_window_of_the_fall_ends_before_the_feet_slip() -> None:
    assert not toe_fall.trace("revised").recording.sliding.any()
