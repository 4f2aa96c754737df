"""Section 3 of Hurmuzlu et al. 2001: closed forms, on the states of its figures and on random ones beyond."""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np
import pinocchio as pin
import pytest
import reproduce_support
from hypothesis import assume, given, settings, strategies as st
from numpy.testing import assert_allclose

from bipedsim.model import Robot, load_robot
from bipedsim_studies.complementarity.coulomb import pyramid_radius
from bipedsim_studies.complementarity.lcp import ComplementarityError
from bipedsim_studies.impacts.laws import IMPACT_LAWS, NoImpactOutcomeError
from bipedsim_studies.reproduce.common import body
from bipedsim_studies.reproduce.hurmuzlu2001 import chair, coulomb, energy, kane, pyramid, three_balls, three_links
from bipedsim_studies.reproduce.hurmuzlu2001.mechanics import X, Z, mechanics, of_frames, of_soles

measured = partial(reproduce_support.measured, "hurmuzlu2001")


# Mechanics


def moving(robot: Robot, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a random state."""
    rng = np.random.default_rng(seed)
    q = pin.integrate(robot.model, robot.q_nominal, rng.normal(size=robot.model.nv))
    return q, rng.normal(size=robot.model.nv)


@settings(deadline=None, max_examples=30)
@given(name=st.sampled_from(["rod", "chair", "double_pendulum", "three_balls"]), seed=st.integers(0, 2**32 - 1))
def test_rows_and_drift_are_derivatives_of_the_points(name: str, seed: int) -> None:
    robot = body(name)
    points = of_soles(robot) or of_frames(robot, [f.name for f in robot.model.frames if f.type == pin.BODY][-1:])
    q, v = moving(robot, seed)
    h = 1e-4
    before, now, after = (mechanics(robot, pin.integrate(robot.model, q, s * h * v), v, points) for s in (-1, 0, 1))
    # Along q(t) with constant v, pinocchio's a is zero.
    size = 1.0 + np.abs(v).max() ** 3
    assert_allclose(now.rows @ v, (after.position - before.position) / (2.0 * h), atol=1e-6 * size)
    assert_allclose(now.drift, (after.rows @ v - before.rows @ v) / (2.0 * h), atol=1e-6 * size)
    assert_allclose(now.M, now.M.T, atol=0.0)
    assert np.linalg.eigvalsh(now.M)[0] > 0.0


def test_the_mechanisms_are_what_their_descriptions_say() -> None:
    assert [ball.mass for ball in body("three_balls").model.inertias[1:]] == [1.0, 1.0, 1.0]
    assert_allclose(three_balls.cradle().M, np.eye(3))
    assert_allclose(three_balls.cradle().J, [[-1.0, 1.0, 0.0], [0.0, -1.0, 1.0]])
    seat = chair.chair()
    assert seat.weight == pytest.approx(5.0 * 9.81)
    assert_allclose(seat.state.position[:, 2], 0.0, atol=1e-12)
    assert coulomb.rod().kappa == pytest.approx(3.0)
    pendulum = body("double_pendulum")
    tip = mechanics(pendulum, [0.0, 0.0], [0.0, 0.0], of_frames(pendulum, ["tip"]))
    assert_allclose(tip.position, [[0.0, 0.0, -2.0]], atol=1e-15)
    # Two rods of length 1 and mass 1 that hang down.
    assert_allclose(tip.M, [[8.0 / 3.0, 5.0 / 6.0], [5.0 / 6.0, 1.0 / 3.0]], atol=1e-12)


# Three balls


@settings(deadline=None, max_examples=40)
@given(ratio=st.floats(0.05, 20.0), e=st.floats(0.0, 1.0))
def test_laws_that_strike_together_take_the_row_behind_for_one_body(ratio: float, e: float) -> None:
    balls = three_balls.cradle(ratio)
    for law in ("haug", "moreau", "pfeiffer_glocker"):
        assert_allclose(balls.hit(law, e).v_after, balls.together(e), atol=1e-12)
    for law in ("lotstedt", "van_der_schaft_schumacher"):
        assert_allclose(balls.hit(law).v_after, balls.together(0.0), atol=1e-12)


@settings(deadline=None, max_examples=40)
@given(ratio=st.floats(0.05, 20.0))
def test_han_gilmore_finds_the_impacts_in_turn_too(ratio: float) -> None:
    balls = three_balls.cradle(ratio)
    found = three_balls.outcomes(balls, "han_gilmore", 1.0)
    assert three_balls.apart(found, np.array([balls.together(1.0), balls.in_turn()])) < 1e-9
    assert_allclose(found @ balls.masses, 1.0, atol=1e-12)
    assert_allclose([balls.energy(v) for v in found], 1.0, atol=1e-12)


def test_the_table_of_fig_10_has_every_law() -> None:
    assert {law for law, _, _ in three_balls.FIG_10} == set(IMPACT_LAWS)
    for law, e, expected in three_balls.FIG_10:
        changes = sorted(each.energy_change for each in three_balls.cradle().hit(law, e).outcomes)
        assert_allclose(changes, sorted(0.5 * (np.square(v).sum() - 1.0) for v in expected), atol=1e-12)


# The chair


@settings(deadline=None, max_examples=40)
@given(x=st.floats(-0.3, 0.3), y=st.floats(-0.3, 0.3))
def test_a_sitter_tips_the_chair_outside_its_feet_and_leaves_its_forces_open_inside(x: float, y: float) -> None:
    seat = chair.chair()
    loaded = seat.under(chair.sitting(x, y))
    # Where the weight of chair and sitter acts together.
    own = np.linalg.solve([[0.0, 1.0], [-1.0, 0.0]], seat.state.nle[3:5])
    cop = (own + 9.81 * chair.SITTER * np.array([x, y])) / (seat.weight + 9.81 * chair.SITTER)
    margin = 0.18 - float(np.abs(cop).max())
    assume(abs(margin) > 1e-6)
    assert loaded.disagreement < 1e-9
    assert loaded.continuum == (margin > 0.0)
    assert (np.abs(loaded.lcp.acceleration).max() < 1e-9) == (margin > 0.0)
    if margin > 0.0:
        low, high = loaded.ranges.T
        assert (low >= 0.0).all()
        for force in (loaded.lcp.force, loaded.gauss.force):
            assert (force >= low - 1e-7).all()
            assert (force <= high + 1e-7).all()
            assert_allclose(seat.J.T @ force, seat.state.nle - chair.sitting(x, y), atol=1e-7)


def test_the_range_of_a_leg_is_what_the_others_can_take() -> None:
    """A square chair without back, loaded in its middle: the load of each leg is between zero and half the weight."""
    corners = 0.2 * np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    J = np.column_stack([np.ones(4), corners[:, 1], -corners[:, 0]])
    assert_allclose(chair.closed_ranges(J, np.full(4, 2.5)), [[0.0, 5.0]] * 4, atol=1e-12)


# The rod


@settings(deadline=None, max_examples=150)
@given(
    angle=st.floats(0.02, 1.55),
    mu=st.floats(0.0, 8.0),
    spin=st.floats(-8.0, 8.0),
)
def test_the_verdict_is_never_false(angle: float, mu: float, spin: float) -> None:
    thin = coulomb.rod()
    stiffness, free = float(thin.stiffness(angle, mu)), float(thin.free(angle, spin))
    assume(min(abs(stiffness), abs(free)) > 1e-6)
    sliding = coulomb.SlidingRod(angle, spin)
    found = sliding.solve(mu)
    assert coulomb.region_of(found) == thin.region(angle, mu, spin)
    if stiffness > 0.0:
        assert found.answer.normal[0] == pytest.approx(max(0.0, -free / stiffness), rel=1e-9, abs=1e-9)
    else:
        with pytest.raises(ComplementarityError):
            _ = found.answer


@pytest.mark.parametrize("angle", [0.3, 1.0, 1.4])
def test_the_rod_of_the_model_is_that_of_the_closed_form(angle: float) -> None:
    robot, thin = body("rod"), coulomb.rod()
    spin = 3.0
    q, v = coulomb.rod_state(angle, coulomb.SLIP, spin)
    state = mechanics(robot, q, v, of_soles(robot))
    assert_allclose(state.position[0], 0.0, atol=1e-12)
    assert_allclose(state.rows[0] @ v, [coulomb.SLIP, 0.0, 0.0], atol=1e-12)
    lift = np.linalg.solve(state.M, state.rows[0, Z])
    push = np.linalg.solve(state.M, state.rows[0, X])
    mu = 0.7
    assert thin.stiffness(angle, mu) == pytest.approx(state.rows[0, Z] @ (lift - np.sign(coulomb.SLIP) * mu * push))
    free = state.rows[0, Z] @ np.linalg.solve(state.M, -state.nle) + state.drift[0, Z]
    assert thin.free(angle, spin) == pytest.approx(free)


def test_a_rod_that_slides_the_other_way_has_no_paradox() -> None:
    for angle in np.linspace(0.05, 1.5, 12):
        sliding = coulomb.SlidingRod(float(angle), 0.0, slip=1.0)
        assert {sliding.solve(mu).verdict for mu in (0.5, 2.0, 10.0)} == {"unique"}


# Pyramids


@settings(deadline=None, max_examples=25)
@given(angle=st.floats(-7.0, 7.0), sides=st.integers(4, 16))
def test_a_pyramid_of_any_number_of_sides_holds_its_polygon(angle: float, sides: int) -> None:
    # Friction opposes a pull. Opposite a corner, a pyramid with an uneven number of sides has no corner.
    assert pyramid.PointFoot().most_held(angle, sides) == pytest.approx(
        float(pyramid_radius(angle + np.pi, sides)), abs=1e-9
    )


def test_the_deficit_of_a_pyramid_falls_with_the_square_of_its_sides() -> None:
    deficits = [measured("pyramid", f"k = {k}: |pull held - polygon|") for k in pyramid.SIDES]
    assert max(deficits) < 1e-9
    worst = [1.0 - np.cos(np.pi / k) for k in pyramid.SIDES]
    checks = reproduce_support.outcome("hurmuzlu2001", "pyramid").checks
    held = [check.measured for check in checks if check.quantity.startswith("... largest deficit of the pull")]
    assert_allclose(held, worst, atol=1e-9)
    assert 3.0 < held[0] / held[1] < held[1] / held[2] < 4.0


# Energy


def test_whole_soles_with_dependent_rows_are_among_the_impacts() -> None:
    ranks = [np.linalg.matrix_rank(each.J) - len(each.J) for each in energy.problems()]
    assert min(ranks) < 0
    assert max(ranks) == 0


@settings(deadline=None, max_examples=40)
@given(law=st.sampled_from(list(IMPACT_LAWS)), e=st.floats(0.0, 1.0), which=st.integers(0, energy.PROBLEMS - 1))
def test_no_law_raises_the_energy_without_friction(law: str, e: float, which: int) -> None:
    problem = random_impacts()[which]
    e = e if IMPACT_LAWS[law].restitution != "none" else 0.0
    assert all(ratio <= 1.0 + 1e-9 for ratio in problem.after(law, e))


@lru_cache
def random_impacts() -> list[energy.ImpactSample]:
    return energy.problems()


def test_newton_with_unequal_coefficients_gains_energy_and_poisson_does_not() -> None:
    assert measured("energy", "haug, an e for each contact") > 0
    assert measured("energy", "pfeiffer_glocker, an e for each contact") <= 1e-9


@settings(deadline=None, max_examples=100)
@given(
    state=st.tuples(*[st.floats(-70.0, 70.0)] * 2, *[st.floats(-2.0, 2.0)] * 2),
    e=st.floats(0.0, 1.0),
    mu=st.floats(0.0, 1.5),
)
def test_friction_gains_energy_by_newtons_law_alone(
    state: tuple[float, float, float, float], e: float, mu: float
) -> None:
    # Stretched out, the pendulum moves its end across alone.
    assume(abs(state[0] - state[1]) > 5.0)
    pendulum = kane.Pendulum(state)
    assume(pendulum.w < -1e-3)
    for law, restitution in ((kane.POISSON, e), (kane.GAUSS, 0.0)):
        try:
            blow = pendulum.strike(law, restitution, mu)
        except NoImpactOutcomeError:
            assert law == kane.POISSON
            continue
        assert blow.rise <= 1e-9
        assert blow.rise == pytest.approx(blow.work.sum(), abs=1e-9)
    by_hand = pendulum.newton(e, mu)
    try:
        newton = pendulum.strike(kane.NEWTON, e, mu)
    except NoImpactOutcomeError:
        assert by_hand == []
        return
    size = 1.0 + np.abs(newton.impulse).max()
    assert min(np.abs(newton.impulse - each).max() for each in by_hand) <= 1e-8 * size
    if newton.rise > 1e-9:
        assert newton.work[1] > 0.0
        assert not kane.keeps_on(newton)


# The command


def test_the_mechanisms_are_not_in_the_table_of_walkers() -> None:
    for name in ("three_balls", "chair", "rod", "double_pendulum"):
        assert load_robot(body(name).source).name == name


@pytest.mark.ci
def test_the_mass_on_its_spring_swings_in_its_period_and_keeps_its_energy() -> None:
    spring = three_links.PENDULUM_SPRING
    portrait = three_links.pendulum_portrait(spring)
    for kind in three_links.kinds(portrait, True):
        motion = three_links.swing(kind, spring)
        levels = [portrait.level(*state) for state in zip(motion.angle, motion.rate, strict=True)]
        assert motion.period == pytest.approx(kind.period, rel=1e-3)
        assert np.ptp(levels) < 1e-4 * (levels[0] + float(portrait.work(portrait.equilibria).max())), kind.name
