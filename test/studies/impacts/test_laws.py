"""Impact laws compared with the table of Hurmuzlu et al. 2001, with each other, and with the properties of each law."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from impact_support import ELASTIC, LAWS, Array, Case, cases, outcomes_of
from numpy.testing import assert_allclose
from refusals import refusal

from bipedsim.model import load_robot
from bipedsim_studies.impacts.laws import IMPACT_LAWS, Friction, NoImpactOutcomeError

UNILATERAL = ["lotstedt", "van_der_schaft_schumacher", "pfeiffer_glocker", "han_gilmore"]

CRADLE = (np.eye(3), np.array([[-1.0, 1.0, 0.0], [0.0, -1.0, 1.0]]), np.array([1.0, 0.0, 0.0]))
"""Fig. 9: ball 1 hits balls 2 and 3, which are in contact."""
THIRDS = (1 / 3, 1 / 3, 1 / 3)
REBOUND = (-1 / 3, 2 / 3, 2 / 3)
TEXTBOOK = (0.0, 0.0, 1.0)


# Fig. 10


@pytest.mark.parametrize(
    ("name", "e", "outcomes"),
    [
        ("han_gilmore", 1.0, [REBOUND, TEXTBOOK]),
        ("pfeiffer_glocker", 1.0, [REBOUND]),
        ("pfeiffer_glocker", 0.0, [THIRDS]),
        ("van_der_schaft_schumacher", 0.0, [THIRDS]),
        ("moreau", 0.0, [THIRDS]),
        ("moreau", 1.0, [REBOUND]),
        ("lotstedt", 0.0, [THIRDS]),
        ("haug", 1.0, [REBOUND]),
        ("haug", 0.0, [THIRDS]),
    ],
)
def test_three_balls_of_fig_10(name: str, e: float, outcomes: list[tuple[float, ...]]) -> None:
    result = IMPACT_LAWS[name](*CRADLE, restitution=e)
    assert len(result.outcomes) == len(outcomes)
    for outcome, expected in zip(result.outcomes, outcomes, strict=True):
        assert_allclose(outcome.v_after, expected, atol=1e-12)
        lost = 0.5 * (np.dot(expected, expected) - 1.0)
        assert outcome.energy_change == pytest.approx(lost, abs=1e-12)
    assert result.open_sequences == 0


@pytest.mark.parametrize("e", np.linspace(0.0, 1.0, 6))
def test_three_balls_between_plastic_and_elastic(e: float) -> None:
    """Moreau's outcomes join the two rows of the table on a straight line, and so do Haug's and Poisson's."""
    line = np.array(THIRDS) + e * (np.array(REBOUND) - np.array(THIRDS))
    for name in ("moreau", "haug", "pfeiffer_glocker"):
        assert_allclose(IMPACT_LAWS[name](*CRADLE, restitution=e).v_after, line, atol=1e-12)


def test_sequences_of_the_cradle() -> None:
    together, textbook = IMPACT_LAWS["han_gilmore"](*CRADLE, restitution=1.0).outcomes
    assert together.contacts == ((0, 1),)
    assert textbook.contacts == ((0,), (1,))


def test_endless_sequences_are_followed_to_their_limit() -> None:
    """Plastic balls exchange momentum infinitely often. The limit equals the simultaneous impact."""
    result = IMPACT_LAWS["han_gilmore"](*CRADLE, restitution=0.0)
    assert len(result.outcomes) == 1
    assert result.open_sequences == 0


def test_sequences_too_long_to_follow_are_reported() -> None:
    """Two contacts that nearly oppose each other, a ball in a narrow gap: thousands of impacts in alternation."""
    nearly = (np.linalg.inv([[1.0, -0.999], [-0.999, 1.0]]), np.eye(2), [0.16, -0.17], 0.7)
    with pytest.raises(NoImpactOutcomeError):
        IMPACT_LAWS["han_gilmore"](*nearly)
    assert (IMPACT_LAWS["pfeiffer_glocker"](*nearly).v_after >= -1e-12).all()


@pytest.mark.parametrize("d", [0.0, 0.3, 1.0])
def test_the_papers_delta_is_an_index_of_dissipation(d: float) -> None:
    """(1 + d)/2 v+ + (1 - d)/2 v- in place of v+ in eq. 24: d = 0 is elastic, e = (1 - d)/(1 + d)."""
    nearest = IMPACT_LAWS["moreau"](*CRADLE).v_after
    after = IMPACT_LAWS["moreau"](*CRADLE, restitution=(1.0 - d) / (1.0 + d)).v_after
    assert_allclose(0.5 * (1.0 + d) * after + 0.5 * (1.0 - d) * CRADLE[2], nearest, atol=1e-12)


# Every law


@settings(deadline=None, max_examples=60)
@given(case=cases(1))
def test_one_contact_is_newtons(case: Case) -> None:
    row, before = case.J[0], float(case.J[0] @ case.v)
    lift = np.linalg.solve(case.M, row)
    for name in LAWS:
        e = case.e if name in ELASTIC else 0.0
        push = max(-(1.0 + e) * before, 0.0) / float(row @ lift)
        result = case.solve(name)
        assert len(result.outcomes) == 1
        scale = np.linalg.norm(case.v) + np.linalg.norm(lift) * push
        assert_allclose(result.v_after, case.v + lift * push, atol=1e-10 * scale, err_msg=name)


@pytest.mark.ci
@pytest.mark.parametrize("name", LAWS)
@settings(deadline=None, max_examples=60)
@given(case=cases(4))
def test_energy_never_rises_and_momentum_balances(name: str, case: Case) -> None:
    for outcome in outcomes_of(case, name):
        assert outcome.energy_change <= 1e-9 * case.energy
        after = 0.5 * outcome.v_after @ case.M @ outcome.v_after
        assert outcome.energy_change == pytest.approx(after - case.energy, abs=1e-9 * case.energy)
        momentum = case.M @ (outcome.v_after - case.v)
        size = np.abs(case.M) @ np.abs(case.v) + np.abs(case.J.T) @ np.abs(outcome.impulse)
        assert (np.abs(momentum - case.J.T @ outcome.impulse) <= 1e-9 * size.max()).all()


@pytest.mark.parametrize("name", UNILATERAL)
@settings(deadline=None, max_examples=60)
@given(case=cases(4))
def test_no_contact_is_driven_together(name: str, case: Case) -> None:
    for outcome in outcomes_of(case, name):
        assert (case.J @ outcome.v_after >= -1e-8 * case.reach).all()


@settings(deadline=None, max_examples=100)
@given(case=cases(6))
def test_moreau_is_complementary(case: Case) -> None:
    result = case.solve("moreau")
    mean = case.J @ (result.v_after + case.e * case.v)
    assert (result.impulse >= 0.0).all()
    assert (mean >= -1e-9 * case.reach).all()
    assert abs(result.impulse @ mean) <= 1e-9 * (result.impulse @ case.reach)


@settings(deadline=None, max_examples=100)
@given(case=cases(6))
def test_lotstedt_is_the_lcp_and_moreaus_plastic_law(case: Case) -> None:
    """Eq. 27, and its equivalence to eq. 24 through eq. 28, here against all active sets."""
    result = case.solve("lotstedt")
    w = case.J @ result.v_after
    assert (result.impulse >= 0.0).all()
    assert (w >= -1e-9 * case.reach).all()
    assert abs(result.impulse @ w) <= 1e-9 * (result.impulse @ case.reach)
    assert_allclose(result.v_after, nearest_of_all_sets(case), atol=1e-6 * np.linalg.norm(case.v))


def nearest_of_all_sets(case: Case) -> Array:
    """Return the admissible velocity nearest to v in the kinetic metric, by projecting on every set of contacts."""
    best, distance = case.v, np.inf
    root = np.linalg.cholesky(case.M).T
    for chosen in product((False, True), repeat=len(case.J)):
        rows = case.J[list(chosen)] @ np.linalg.inv(root)
        y = root @ case.v
        y = y - np.linalg.pinv(rows, rcond=1e-10) @ (rows @ y) if any(chosen) else y
        v = np.linalg.solve(root, y)
        away = float(np.linalg.norm(root @ (v - case.v)))
        if away < distance and (case.J @ v >= -1e-8 * case.reach).all():
            best, distance = v, away
    return best


@settings(deadline=None, max_examples=60)
@given(case=cases(4))
def test_moreau_keeps_every_contact_above_its_own_rebound(case: Case) -> None:
    after = case.J @ case.solve("moreau").v_after
    assert (after >= -case.e * (case.J @ case.v) - 1e-9 * case.reach).all()


@settings(deadline=None, max_examples=60)
@given(case=cases(4))
def test_haug_is_newtons_law_on_every_closing_contact(case: Case) -> None:
    before = case.J @ case.v
    closing = before < -1e-8 * case.reach
    after = case.J @ case.solve("haug").v_after
    assert_allclose(after[closing], -case.e * before[closing], atol=1e-8 * case.reach.max())


@settings(deadline=None, max_examples=60)
@given(case=cases(4))
def test_van_der_schaft_schumacher_stops_what_closes(case: Case) -> None:
    closing = case.J @ case.v < -1e-8 * case.reach
    after = case.J @ case.solve("van_der_schaft_schumacher").v_after
    assert_allclose(after[closing], 0.0, atol=1e-8 * case.reach.max())


@settings(deadline=None, max_examples=60)
@given(case=cases(4))
def test_poissons_law_with_a_coefficient_for_each_contact(case: Case) -> None:
    """Energy never rises for any e_i; each contact gets back at least e_i times its impulse of compression."""
    each = np.random.default_rng(0).uniform(size=len(case.J))
    result = IMPACT_LAWS["pfeiffer_glocker"](case.M, case.J, case.v, each)
    compression = IMPACT_LAWS["lotstedt"](case.M, case.J, case.v).impulse
    assert result.energy_change <= 1e-9 * case.energy
    assert (result.impulse >= (1.0 + each) * compression - 1e-12 * np.abs(compression).max()).all()


# How they differ


def test_newtons_law_with_unequal_coefficients_can_raise_the_energy() -> None:
    """Two coupled contacts, one elastic and one plastic: Newton's law creates energy, Poisson's does not."""
    D = np.array([[1.0, 0.9], [0.9, 1.0]])
    problem = (np.linalg.inv(D), np.eye(2), [-1.0, -1.0], [1.0, 0.0])
    assert IMPACT_LAWS["haug"](*problem).energy_change > 1.0
    assert IMPACT_LAWS["pfeiffer_glocker"](*problem).energy_change <= 1e-12


def test_haug_pulls_and_van_der_schaft_schumacher_pulls_where_moreau_lets_go() -> None:
    """Two closing contacts: the impulse of one would separate the other."""
    D = np.array([[1.0, 0.8], [0.8, 1.0]])
    problem = (np.linalg.inv(D), np.eye(2), [-1.0, -0.1])
    for name in ("haug", "van_der_schaft_schumacher"):
        held = IMPACT_LAWS[name](*problem)
        assert_allclose(held.v_after, 0.0, atol=1e-12)
        assert held.impulse[1] < 0.0
    for name in ("moreau", "lotstedt", "pfeiffer_glocker"):
        assert_allclose(IMPACT_LAWS[name](*problem).v_after, [0.0, 0.7], atol=1e-12)


def test_a_resting_contact_is_held_by_haug_alone() -> None:
    """A rod lands on one end while the other rests: rigid-body laws let the resting end lift, Haug's glues it."""
    D = np.array([[1.0, 0.5], [0.5, 1.0]])
    problem = (np.linalg.inv(D), np.eye(2), [-1.0, 0.0])
    glued = IMPACT_LAWS["haug"](*problem)
    assert_allclose(glued.v_after, 0.0, atol=1e-12)
    assert glued.impulse[1] < 0.0
    for name in set(LAWS) - {"haug"}:
        assert_allclose(IMPACT_LAWS[name](*problem).v_after, [0.0, 0.5], atol=1e-12, err_msg=name)


def test_moreau_may_close_a_contact_that_separates() -> None:
    """Outside the domain -V of eq. 23 the mirrored velocity need not be admissible; Poisson's law always is."""
    coupled = (np.linalg.inv([[1.0, -0.9], [-0.9, 1.0]]), np.eye(2), [-1.0, 0.1], 1.0)
    assert IMPACT_LAWS["moreau"](*coupled).v_after[1] < 0.0
    assert (IMPACT_LAWS["pfeiffer_glocker"](*coupled).v_after >= -1e-12).all()


# A robot


@pytest.mark.parametrize("name", ["haug", "moreau", "van_der_schaft_schumacher", "lotstedt", "pfeiffer_glocker"])
def test_a_biped_drops_flat_on_dependent_contacts(name: str) -> None:
    """Eight vertices, six independent rows: the velocity after is unique, at rest on the ground where e = 0."""
    robot = load_robot("biped14")
    data = robot.model.createData()
    inertia = pin.crba(robot.model, data, robot.q_nominal)
    inertia = np.triu(inertia) + np.triu(inertia, 1).T
    pin.computeJointJacobians(robot.model, data, robot.q_nominal)
    rows = []
    for sole in robot.soles:
        jacobian = pin.getJointJacobian(robot.model, data, sole.joint_id, pin.LOCAL_WORLD_ALIGNED)
        for point in sole.vertices_joint @ data.oMi[sole.joint_id].rotation.T:
            rows.append((jacobian[:3] - pin.skew(point) @ jacobian[3:])[2])
    v = np.zeros(robot.model.nv)
    v[2] = -1.0
    result = IMPACT_LAWS[name](inertia, rows, v)
    assert np.linalg.matrix_rank(np.array(rows)) == 6
    assert_allclose(np.array(rows) @ result.v_after, 0.0, atol=1e-9)
    assert result.impulse.sum() == pytest.approx((inertia @ (result.v_after - v))[2])
    assert result.energy_change < 0.0
    left, right = np.reshape(result.impulse, (2, -1)).sum(axis=1)
    assert left == pytest.approx(right)


# Arguments


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"M": np.ones((2, 2))}, "M"),
        ({"M": -np.eye(3)}, "M"),
        ({"M": np.triu(np.ones((3, 3)))}, "M"),
        ({"J": [[1.0, 0.0]]}, "J"),
        ({"J": np.zeros((0, 3))}, "J"),
        ({"J": [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]}, "J"),
        ({"v_before": [np.nan, 0.0, 0.0]}, "v_before"),
        ({"v_before": "fast"}, "v_before"),
        ({"restitution": 1.5}, "restitution"),
        ({"restitution": [0.1, 0.2, 0.3]}, "restitution"),
        ({"restitution": [0.1, 0.2]}, "restitution"),
    ],
)
def test_a_wrong_argument_is_named(change: dict[str, Any], place: str) -> None:
    arguments: dict[str, Any] = dict(zip(("M", "J", "v_before"), CRADLE, strict=True))
    with refusal(place=place):
        IMPACT_LAWS["moreau"](**{**arguments, **change})


def test_friction_of_a_law_without_it_is_refused() -> None:
    with refusal(place="friction"):
        IMPACT_LAWS["haug"](*CRADLE, friction=Friction(np.ones((2, 3)), 0.5))
    with refusal(place="friction.restitution"):
        IMPACT_LAWS["lotstedt"](*CRADLE, friction=Friction(np.ones((2, 3)), 0.5, 0.5))


def test_restitution_of_a_plastic_law_is_refused() -> None:
    with refusal(place="restitution"):
        IMPACT_LAWS["lotstedt"](*CRADLE, restitution=0.5)


def test_unequal_restitution_on_dependent_rows_is_refused_by_haug() -> None:
    with refusal(place="restitution"):
        IMPACT_LAWS["haug"](np.eye(1), [[1.0], [1.0]], [-1.0], [0.0, 1.0])


@pytest.mark.parametrize("name", LAWS)
def test_arguments_stay_as_they_are_and_rest_stays_rest(name: str) -> None:
    M, J, v = (array.copy() for array in CRADLE)
    IMPACT_LAWS[name](M, J, v)
    for now, then in zip((M, J, v), CRADLE, strict=True):
        assert_allclose(now, then, rtol=0.0)
    for still in (np.zeros(3), np.array([-1.0, 0.0, 1.0])):
        result = IMPACT_LAWS[name](M, J, still)
        assert_allclose(result.v_after, still, atol=1e-15)
        assert result.contacts == ()
