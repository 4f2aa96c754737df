"""Impact laws with Coulomb friction: cone, rebound and energy of each (Hurmuzlu et al. 2001, section 3.3.2)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from impact_support import Case, cases, outcomes_of
from numpy.testing import assert_allclose
from refusals import refusal

from bipedsim_studies.impacts.laws import IMPACT_LAWS, Friction
from bipedsim_studies.impacts.problem import NoImpactOutcomeError

FRICTIONAL = [name for name, law in IMPACT_LAWS.items() if law.friction]

COUPLED = (np.linalg.inv([[1.0, -0.9], [-0.9, 1.0]]), [[1.0, 0.0]])
SLIP = Friction([[0.0, 1.0]], 0.2)
"""One contact, v = (normal velocity, slip), each impulse moving the other velocity too."""


def test_lotstedts_friction_rebounds_and_drives_where_slip_reverses() -> None:
    """Section 3.3.2 on eq. 39: eq. 40 is no complementarity, and friction may do positive work."""
    before = np.array([-1.0, 0.6])
    result = IMPACT_LAWS["lotstedt"](*COUPLED, before, friction=SLIP)
    normal, slip = result.v_after
    assert slip < 0.0
    assert normal == pytest.approx(-0.2 * slip)
    assert normal > 0.05
    assert 0.5 * result.tangential_impulse[0] * (before[1] + slip) > 0.01
    assert result.energy_change < 0.0


@settings(deadline=None, max_examples=60)
@given(case=cases(6))
def test_lotstedts_friction_satisfies_eq_40_and_never_raises_the_energy(case: Case) -> None:
    result = case.solve("lotstedt", friction=True)
    normal, slip = case.J @ result.v_after, case.G @ result.v_after
    assert abs(result.impulse @ normal + result.tangential_impulse @ slip) <= 1e-9 * (result.impulse @ case.reach)
    assert (np.abs(result.tangential_impulse) <= case.mu * result.impulse * (1.0 + 1e-12)).all()
    step = result.v_after - case.v
    assert result.energy_change == pytest.approx(-0.5 * step @ case.M @ step, abs=1e-9 * case.energy)


def test_newtons_law_with_friction_can_raise_the_energy() -> None:
    """Kane's paradox in two lines: slip reverses, so that friction drives; Poisson's law and eq. 39 stay below."""
    before = [-1.0, 1.2]
    assert IMPACT_LAWS["han_gilmore"](*COUPLED, before, 1.0, SLIP).energy_change > 0.1
    assert IMPACT_LAWS["pfeiffer_glocker"](*COUPLED, before, 1.0, SLIP).energy_change <= 1e-12
    assert IMPACT_LAWS["lotstedt"](*COUPLED, before, 0.0, SLIP).energy_change <= 0.0


def test_moreaus_friction_throws_a_superball_back_the_way_it_came() -> None:
    """A solid ball of 1 kg and 1 m spins and flies obliquely.

    With e = r = 1 and large friction, it returns from its contact.
    """
    M, G = np.diag([1.0, 1.0, 0.4]), np.array([[1.0, 0.0, 1.0]])
    before = np.array([0.7, -1.0, 0.3])
    result = IMPACT_LAWS["moreau"](M, [[0.0, 1.0, 0.0]], before, 1.0, Friction(G, 5.0, 1.0))
    assert result.energy_change == pytest.approx(0.0, abs=1e-12)
    assert (G @ result.v_after)[0] == pytest.approx(-1.0)
    assert result.v_after[1] == pytest.approx(1.0)
    # Slip 1, effective mass 2/7 of the ball's, twice.
    assert result.tangential_impulse[0] == pytest.approx(-4.0 / 7.0)
    slides = IMPACT_LAWS["moreau"](M, [[0.0, 1.0, 0.0]], before, 1.0, Friction(G, 0.1, 1.0))
    assert slides.tangential_impulse[0] == pytest.approx(-0.1 * 2.0)


@settings(deadline=None, max_examples=40)
@given(case=cases(2), e=st.floats(0.0, 1.0), r=st.floats(0.0, 1.0))
def test_moreaus_friction_binds_mean_velocities(case: Case, e: float, r: float) -> None:
    try:
        result = IMPACT_LAWS["moreau"](case.M, case.J, case.v, e, Friction(case.G, case.mu, r))
    except NoImpactOutcomeError:
        return
    mean = (case.J @ (result.v_after + e * case.v)) / (1.0 + e)
    slip = (case.G @ (result.v_after + r * case.v)) / (1.0 + r)
    normal, tangential = result.impulse, result.tangential_impulse
    if not normal.any():
        return
    little = 1e-7 * case.reach * (1.0 + np.abs(normal).max())
    assert (mean >= -little).all()
    assert (normal >= -1e-9).all()
    assert (np.abs(normal * mean) <= little * (1.0 + normal)).all()
    assert (np.abs(tangential) <= case.mu * normal * (1.0 + 1e-7) + 1e-9).all()
    assert (tangential * slip <= little * (1.0 + normal)).all()
    slides = np.abs(slip) > little
    assert_allclose(np.abs(tangential[slides]), (case.mu * normal)[slides], rtol=1e-6, atol=1e-9)
    H, both = np.vstack([case.J, case.G]), np.concatenate([normal, tangential])
    keeps = np.repeat([(1.0 - e) / (1.0 + e), (1.0 - r) / (1.0 + r)], len(normal))
    lost = 0.5 * both @ (keeps * (H @ np.linalg.solve(case.M, H.T @ both)))
    assert result.energy_change == pytest.approx(tangential @ slip + normal @ mean - lost, abs=1e-7 * case.energy)


@settings(deadline=None, max_examples=25)
@given(case=cases(2), e=st.floats(0.0, 1.0))
def test_moreaus_friction_with_one_restitution_never_raises_the_energy(case: Case, e: float) -> None:
    try:
        result = IMPACT_LAWS["moreau"](case.M, case.J, case.v, e, Friction(case.G, case.mu, e))
    except NoImpactOutcomeError:
        return
    assert result.energy_change <= 1e-9 * case.energy


@pytest.mark.parametrize("name", ["pfeiffer_glocker", "han_gilmore"])
@settings(deadline=None, max_examples=40)
@given(case=cases(2))
def test_friction_of_the_enumerated_laws(name: str, case: Case) -> None:
    """Momentum, cone and unilaterality; and Poisson's law with equal e never raises the energy."""
    for outcome in outcomes_of(case, name, friction=True):
        push = case.J.T @ outcome.impulse + case.G.T @ outcome.tangential_impulse
        size = np.abs(case.M) @ np.abs(case.v) + np.abs(push)
        assert_allclose(case.M @ (outcome.v_after - case.v), push, atol=1e-8 * size.max())
        little = 1e-7 * np.sqrt(case.energy) * (1.0 + np.abs(outcome.impulse))
        assert (outcome.impulse >= -little).all()
        assert (np.abs(outcome.tangential_impulse) <= case.mu * outcome.impulse + little).all()
        if name == "pfeiffer_glocker":
            assert (case.J @ outcome.v_after >= -1e-8 * case.reach).all()
            assert outcome.energy_change <= 1e-8 * case.energy


@pytest.mark.parametrize("name", FRICTIONAL)
def test_friction_sticks_at_high_mu_and_slides_at_low(name: str) -> None:
    """A puck, 1 kg: with mu = 2 it stops dead, with mu = 0.1 it loses 0.1 m/s for each m/s of fall."""
    puck = (np.eye(2), [[0.0, 1.0]], [0.5, -1.0])
    rough = IMPACT_LAWS[name](*puck, friction=Friction([[1.0, 0.0]], 2.0))
    assert_allclose(rough.v_after, [0.0, 0.0], atol=1e-12)
    smooth = IMPACT_LAWS[name](*puck, friction=Friction([[1.0, 0.0]], 0.1))
    rebound = 0.1 * 0.4 / 1.01 if name == "lotstedt" else 0.0
    assert smooth.v_after[1] == pytest.approx(rebound, abs=1e-12)
    assert smooth.v_after[0] == pytest.approx(0.5 - 0.1 * smooth.impulse[0])


def test_friction_is_checked_too() -> None:
    balls = (np.eye(3), [[-1.0, 1.0, 0.0], [0.0, -1.0, 1.0]], [1.0, 0.0, 0.0])
    with refusal(place="friction.rows"):
        IMPACT_LAWS["lotstedt"](*balls, friction=Friction([[1.0, 0.0, 0.0]], 0.5))
    with refusal(place="friction.coefficient", value=-0.5):
        IMPACT_LAWS["lotstedt"](*balls, friction=Friction(np.ones((2, 3)), -0.5))
    many = (np.eye(7), np.eye(7), -np.ones(7))
    with refusal(place="friction"):
        IMPACT_LAWS["pfeiffer_glocker"](*many, friction=Friction(np.ones((7, 7)), 0.5))
