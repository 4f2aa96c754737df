"""The experiments of Marhefka and Orin 1996: the closed forms are right themselves, and the runs come near them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from bipedsim_studies.reproduce.marhefka1996 import closed_form, foot, loops, phase, restitution
from bipedsim_studies.reproduce.marhefka1996.impact import PointContact, impact


def integrated(contact: PointContact, v_start: float) -> tuple[float, float]:
    """Return the deepest penetration [m] and the coefficient of restitution by another integrator, without events."""

    def rates(_t: float, y: np.ndarray) -> list[float]:
        return [y[1], -float(contact.law(y[:1], y[1:])[0]) / contact.mass]

    turns, leaves = lambda _t, y: y[1], lambda _t, y: y[0] + 1e-15
    turns.terminal, leaves.terminal = True, True  # type: ignore[attr-defined]
    accurate = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-15}
    way_in = solve_ivp(rates, (0.0, 10.0), [0.0, v_start], events=turns, **accurate)
    deepest = float(way_in.y[0, -1])
    way_out = solve_ivp(rates, (0.0, 10.0), [deepest, -1e-12], events=leaves, **accurate)
    return deepest, -float(way_out.y[1, -1]) / v_start


@pytest.mark.parametrize("exponent", [1.0, 1.5, 2.0])
@pytest.mark.parametrize(("alpha", "ratio"), [(0.1, 1.0), (0.4, 1.0), (0.4, 0.0), (0.4, 0.3), (0.3, 3.0)])
def test_closed_forms_are_those_of_the_equation(exponent: float, alpha: float, ratio: float) -> None:
    """Eq. 19, and its two branches that meet at v = 0, against scipy."""
    contact = PointContact(7.0, 30e3, alpha, exponent, ratio)
    deepest, e = integrated(contact, 1.3)
    assert closed_form.deepest(contact, 1.3) == pytest.approx(deepest, rel=1e-8)
    assert closed_form.restitution(alpha * 1.3, ratio) == pytest.approx(e, rel=1e-7)


def test_restitution_is_that_of_the_table_and_one_minus_alpha_v_at_low_speed() -> None:
    for alpha_v, expected in restitution.EXPECTED.items():
        assert closed_form.restitution(alpha_v) == pytest.approx(expected, abs=5e-7)
    for alpha_v in (1e-4, 1e-3):
        assert closed_form.restitution(alpha_v) == pytest.approx(1.0 - alpha_v, abs=1.1 * alpha_v**2)


@pytest.mark.parametrize("ratio", [0.5, 1.0, 4.0])
def test_fast_impacts_leave_at_the_limit(ratio: float) -> None:
    """2 / (3 alpha), with the alpha of the way out."""
    e = [closed_form.restitution(alpha_v, ratio) * 1.5 * alpha_v * ratio for alpha_v in (2.0, 10.0, 100.0)]
    assert e[0] < e[1] < e[2] + 1e-12
    assert e[2] == pytest.approx(1.0, abs=1e-12)


def test_an_alpha_that_is_off_by_a_hundred_thousandth_is_noticed() -> None:
    """So that 1e-6 means something."""
    contact = PointContact(10.0, 40e3, 0.3)
    off = impact(replace(contact, alpha=contact.alpha * (1.0 + 1e-5)), 4.0)
    assert min(phase.distance(contact, 4.0, off)) > 1e-6
    assert max(phase.distance(contact, 4.0, impact(contact, 4.0))) < 1e-6


def test_the_published_force_is_that_of_the_law() -> None:
    """Mean over a step against the law at its middle: apart by the square of the step."""
    contact = PointContact(50.0, 30e3, 0.5)
    errors = []
    for h in (4e-3, 2e-3, 1e-3):
        found = impact(contact, 1.0, h)
        middle = 0.5 * (found.speed[:-1] + found.speed[1:])
        inside = found.depth[1:] > 0.0
        errors.append(np.abs(contact.law(found.midway, middle) - found.force)[inside].max())
    ratios = np.array(errors[:-1]) / errors[1:]
    assert ratios == pytest.approx([4.0, 4.0], rel=0.15)


def test_the_loop_of_a_spring_has_no_area() -> None:
    one = loops.loop(PointContact(1.0, 10e3, 0.0), 1.0)
    assert abs(one.area) < 1e-9
    assert one.restitution == pytest.approx(1.0, abs=1e-10)


def test_the_target_of_the_foot_is_the_integral_of_the_desired_velocity() -> None:
    t = np.arange(0.0, foot.END, 1e-4)
    x = np.array([foot.target(s) for s in t])
    rate = np.gradient(x, t)
    assert rate[0] == pytest.approx(2.0, abs=2e-3)
    during = (t > foot.PLACED + 1e-3) & (t < foot.LIFTED - 1e-3)
    assert x[during] == pytest.approx(0.1, abs=1e-12)
    assert rate[t > foot.LIFTED + 1e-3] == pytest.approx(-2.0, abs=1e-9)
