"""The DCM plan against its differential equation and scipy's integration of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from scipy.integrate import solve_ivp

from bipedsim.control.walking.dcm import DcmPlan, add_line, add_swing, begin_at, evaluate, lean_first, solve_backwards
from bipedsim.control.walking.swing import EVEN, FORWARD, PEAK, TOP, bending, forward, height
from bipedsim.numerics import Array

places = st.tuples(st.floats(-1.0, 1.0), st.floats(-1.0, 1.0)).map(np.array)


@dataclass
class Case:
    """A plan and its inputs."""

    plan: DcmPlan
    omega: float
    end: Array
    begin: Array

    @property
    def knots(self) -> Array:
        return self.plan.knots[: self.plan.n[0] + 1]

    def at(self, t: float) -> tuple[Array, Array]:
        """Return ZMP and DCM."""
        zmp, xi = np.zeros(2), np.zeros(2)
        evaluate(self.plan, self.omega, t, zmp, xi)
        return zmp, xi


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Plans of one to eight pieces."""
    plan = DcmPlan.empty(8)
    plan.knots[0] = draw(st.floats(-1.0, 100.0))
    for _ in range(draw(st.integers(1, 8))):
        if draw(st.booleans()):
            add_line(plan, draw(st.floats(0.02, 1.0)), draw(places), draw(places))
        else:
            takes, knee = draw(st.floats(-0.01, 0.01)) * draw(places), 0.1 * draw(places)
            duration, even = draw(st.floats(0.3, 1.0)), draw(st.floats(0.0, 1.0))
            add_swing(plan, duration, draw(places), draw(places), takes, knee, even)
    omega, end, begin = draw(st.floats(2.0, 6.0)), draw(places), np.zeros(2)
    solve_backwards(plan, omega, end, begin)
    return Case(plan, omega, end, begin)


@given(cases())
def test_the_dcm_flows_from_beginning_to_end_without_a_step(case: Case) -> None:
    assert np.abs(case.at(case.knots[0])[1] - case.begin).max() < 1e-9
    for t in (case.knots[-1], case.knots[-1] + 7.0):
        assert np.abs(case.at(t)[1] - case.end).max() < 1e-9
    for t in case.knots[1:-1]:
        assert np.abs(case.at(np.nextafter(t, -np.inf))[1] - case.at(t)[1]).max() < 1e-9


@given(cases(), st.floats(0.001, 0.999))
def test_the_dcm_runs_away_from_the_zmp(case: Case, share: float) -> None:
    """xi' = omega (xi - p) within every piece, by differences of fourth order."""
    for start, end in zip(case.knots[:-1], case.knots[1:], strict=True):
        h = 2e-3 * (end - start)
        t = start + 2.0 * h + share * (end - start - 4.0 * h)
        zmp, xi = case.at(t)
        rate = sum(w * case.at(t + k * h)[1] for k, w in ((-2, 1.0), (-1, -8.0), (1, 8.0), (2, -1.0))) / (12.0 * h)
        # Rounding of positions of a few metres over 12 h.
        scale = 1.0 + np.abs(case.plan.zmp).max()
        assert np.abs(rate - case.omega * (xi - zmp)).max() < 1e-9 * scale + 1e-13 * scale / h


@settings(max_examples=20)
@given(cases())
def test_the_closed_form_is_what_scipy_integrates(case: Case) -> None:
    """Backwards, where the equation is stable."""
    xi = case.end
    for start, end in zip(case.knots[:0:-1], case.knots[-2::-1], strict=True):
        middle = 0.5 * (start + end)

        def rate(t: float, x: Array, middle: float = middle, span: float = 0.4999999 * (start - end)) -> Array:
            inside = min(max(t, middle - span), middle + span)
            return case.omega * (x - case.at(inside)[0])

        solution = solve_ivp(rate, (start, end), xi, rtol=1e-8, atol=1e-10)
        xi = solution.y[:, -1]
        assert np.abs(xi - case.at(end)[1]).max() < 1e-5
    assert np.abs(xi - case.begin).max() < 1e-5


@given(cases(), places, st.data())
def test_a_new_beginning_moves_the_first_pieces_alone(case: Case, wanted: Array, data: st.DataObject) -> None:
    n = int(case.plan.n[0])
    pieces = data.draw(st.integers(1, n))
    before = DcmPlan(*(array.copy() for array in case.plan))
    begin_at(case.plan, case.omega, pieces, case.begin, wanted, np.inf)
    shift = case.plan.zmp - before.zmp
    # xi(T) - p grows by exp(omega T), so the shift that corrects an initial step is the same on all pieces.
    share = 1.0 - np.exp(-case.omega * (case.knots[pieces] - case.knots[0]))
    expected = np.zeros_like(shift)
    expected[:pieces, :, 0] = (wanted - case.begin) / share
    assert np.abs(shift - expected).max() < 1e-9
    assert np.abs(case.at(case.knots[0])[1] - wanted).max() < 1e-9
    assert case.plan.end[pieces - 1 : n] == pytest.approx(before.end[pieces - 1 : n], abs=1e-12)
    for t in case.knots[1:-1]:
        assert np.abs(case.at(np.nextafter(t, -np.inf))[1] - case.at(t)[1]).max() < 1e-9


@settings(max_examples=20)
@given(cases(), places)
def test_a_new_beginning_in_standing_moves_no_zmp_at_once(case: Case, wanted: Array) -> None:
    """At both ends of the first piece and after it all is as it was; within it, xi' = omega (xi - p), backwards."""
    begin, end = case.knots[:2].tolist()
    before = [case.at(t) for t in (begin, *case.knots[1:])]
    lean_first(case.plan, case.omega, case.begin, wanted)
    assert case.at(begin)[0] == pytest.approx(before[0][0], abs=1e-8)
    bend = case.plan.zmp[0]

    def rate(t: float, x: Array) -> Array:
        return case.omega * (x - bend @ (t - begin) ** np.arange(4))

    solution = solve_ivp(rate, (end, begin), case.plan.end[0], rtol=1e-8, atol=1e-10)
    assert solution.y[:, -1] == pytest.approx(wanted, abs=1e-5)
    assert case.at(begin)[1] == pytest.approx(wanted, abs=1e-8)
    for t, (zmp, xi) in zip(case.knots[1:], before[1:], strict=True):
        assert case.at(t)[0] == pytest.approx(zmp, abs=1e-8)
        assert case.at(t)[1] == pytest.approx(xi, abs=1e-8)


@given(cases(), places, st.floats(0.0, 0.1))
def test_the_shift_of_a_new_beginning_is_limited(case: Case, wanted: Array, most: float) -> None:
    before = case.plan.zmp.copy()
    begin_at(case.plan, case.omega, 1, case.begin, wanted, most)
    shift = (case.plan.zmp - before)[0, :, 0]
    share = 1.0 - np.exp(-case.omega * (case.knots[1] - case.knots[0]))
    assert shift == pytest.approx(np.clip((wanted - case.begin) / share, -most, most), abs=1e-12)


@given(places, places, places, st.floats(0.1, 2.0), st.floats(0.0, 0.01), st.floats(0.001, 0.999), places)
def test_the_zmp_of_a_swing_gives_way_to_the_inertia_of_the_leg(
    start: Array, end: Array, way: Array, duration: float, kappa: float, share: float, knee: Array
) -> None:
    """From start to end, minus kappa a of the path of the foot, and minus the effect of the bending leg."""
    plan = DcmPlan.empty(1)
    add_swing(plan, duration, start, end, kappa * way, knee, EVEN)
    solve_backwards(plan, 3.5, end, np.zeros(2))
    zmp = Case(plan, 3.5, end, end).at(share * duration)[0]
    # The foot moves over the ground between 2 % and 98 % of single support.
    single = duration / 0.96
    t = 0.02 * single + share * duration
    taken = kappa * forward(t, single, *FORWARD)[2] * way + bending(t, single, *FORWARD) * knee
    assert zmp == pytest.approx(start + share * (end - start) - taken, abs=1e-9)


def test_the_bending_of_a_leg_leaves_mean_and_place() -> None:
    """It has zero mean, and so has its integral. Half-way it is half of the peak, backwards."""
    t = np.linspace(0.0, 0.7, 7001)
    moved = np.array([bending(now, 0.7, 0.1, 0.9) for now in t])
    integral = np.concatenate([[0.0], np.cumsum(0.5 * (moved[1:] + moved[:-1]) * np.diff(t))])
    assert abs(integral[-1]) < 1e-4
    assert abs(np.mean(integral)) < 1e-4
    assert bending(0.35, 0.7, 0.1, 0.9) == pytest.approx(-0.5)
    assert moved.max() == pytest.approx(1.0, abs=1e-2)
    assert not moved[(t < 0.07) | (t > 0.63)].any()


def test_a_step_asks_for_less_at_its_peaks_than_a_quintic_does() -> None:
    """Peak speed and acceleration of a path of 1 m in 1 s. A quintic has 1.875 m/s and 5.77 m/s^2."""
    shares = np.linspace(0.0, 1.0, 2001)
    _, speed, acceleration = np.array([forward(s, 1.0, 0.0, 1.0) for s in shares]).T
    assert speed.max() == pytest.approx(PEAK, abs=1e-6)
    assert PEAK < 1.7
    assert np.abs(acceleration).max() < 4.8


@given(st.floats(0.2, 2.0), st.floats(-0.05, 1.05), st.floats(-0.1, 0.1), st.floats(0.0, 0.1), st.floats(-0.1, 0.1))
def test_rates_of_the_swing_are_derivatives(
    duration: float, share: float, start: float, rise: float, end: float
) -> None:
    t, h = share * duration, 1e-5 * duration
    # There the acceleration over the ground steps.
    assume(min(abs(share - end) for end in FORWARD) > 1e-4)
    top = max(start, end) + rise
    for curve in (
        lambda t, duration: forward(t, duration, *FORWARD),
        lambda t, duration: height(t, duration, start, top, end, TOP, TOP),
        lambda t, duration: height(t, duration, start, top, end, 0.25, TOP),
    ):
        before, now, after = (curve(t + k * h, duration) for k in (-1, 0, 1))
        for order in (0, 1):
            slope = (after[order] - before[order]) / (2.0 * h)
            scale = 10.0 / duration ** (order + 1)
            # The third derivative steps where a quintic begins and ends.
            assert now[order + 1] == pytest.approx(slope, abs=1e-3 * scale)


@given(st.floats(0.2, 2.0), st.floats(-0.1, 0.1), st.floats(0.0, 0.1), st.floats(-0.1, 0.1))
def test_a_swing_leaves_and_lands_at_rest_and_is_highest_at_45_percent(
    duration: float, start: float, rise: float, end: float
) -> None:
    top = max(start, end) + rise
    assert forward(0.02 * duration, duration, *FORWARD)[:2] == pytest.approx((0.0, 0.0), abs=1e-9)
    assert forward(0.98 * duration, duration, *FORWARD)[:2] == pytest.approx((1.0, 0.0), abs=1e-9)
    for t, z in ((0.0, start), (0.45 * duration, top), (duration, end), (2.0 * duration, end)):
        assert height(t, duration, start, top, end, TOP, TOP) == pytest.approx((z, 0.0, 0.0), abs=1e-9)
    heights = [height(t, duration, start, top, end, TOP, TOP)[0] for t in np.linspace(0.0, duration, 40)]
    assert max(heights) <= top + 1e-12
