"""The experiments of Adu-Bredu: a second engine agrees, and closed forms beyond the figures."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import islice

import numpy as np
import pytest

from bipedsim_studies.complementarity.coulomb import CoulombContacts
from bipedsim_studies.complementarity.time_stepping import assemble_step, solve_step
from bipedsim_studies.reproduce.adubredu import ball, block, foot_on_ball, kick, walk_and_kick
from bipedsim_studies.reproduce.adubredu.planar import GRAVITY, REST_SPEED, Throw, throw
from bipedsim_studies.reproduce.common import body


@lru_cache
def measured(name: str) -> Throw:
    return {"ball": ball.measure, "block": block.measure}[name]()


def second_run(run: Throw) -> tuple[np.ndarray, np.ndarray]:
    """Return states (n + 1, 3) and velocities of the same throw by the dense time stepping of ``complementarity``.

    Rows, gaps and active contacts are written explicitly for the plane, without feet, projections or warm starts.
    """
    points, h = run.points, run.step
    q, v = run.q[0].copy(), run.v[0].copy()
    forces = np.array([0.0, -points.mass * GRAVITY, 0.0])
    states, speeds = [q.copy()], [v.copy()]
    for _ in range(len(run.t) - 1):
        arms, heights = points.arms(q), points.heights(q)
        ones, zeros = np.ones(len(arms)), np.zeros(len(arms))
        normal = np.column_stack([zeros, ones, -arms[:, 0]])
        tangent = np.column_stack([ones, zeros, arms[:, 1]])[:, None]
        arrives = heights + h * normal @ (v + h * forces / points.masses) <= 0.0
        bounces = arrives & (normal @ v < -REST_SPEED)
        contacts = CoulombContacts(normal, tangent, points.friction)
        lcp = assemble_step(
            np.diag(points.masses), forces, v, contacts, np.where(bounces, 0.0, heights), h,
            restitution=np.where(bounces, run.restitution, 0.0),
        )  # fmt: skip
        v = solve_step(lcp).v
        q = q + h * v
        states.append(q)
        speeds.append(v)
    return np.array(states), np.array(speeds)


@pytest.mark.parametrize("name", ["ball", "block"])
def test_the_engine_agrees_with_a_second_run(name: str) -> None:
    run = measured(name)
    q, v = second_run(run)
    np.testing.assert_allclose(run.q, q, atol=1e-8)
    np.testing.assert_allclose(run.v, v, atol=1e-8)


def test_the_judges_see_what_is_wrong() -> None:
    run = measured("block")
    assert run.residual() < 1e-9
    assert run.newton() < 1e-9
    weaker = replace(run, impulses=0.99 * run.impulses)
    assert weaker.newton() > 1e-3
    sideways = run.impulses.copy()
    sideways[..., 0] *= -1.0
    assert replace(run, impulses=sideways).residual() > 1e-3
    assert replace(run, restitution=0.6).residual() > 1e-3
    assert replace(run, points=replace(run.points, friction=0.25)).residual() > 1e-3
    assert run.rise() < 1e-3
    rising = run.v.copy()
    rising[50:] *= 1.01
    assert replace(run, v=rising).gain() > 1e-3


@pytest.mark.parametrize("restitution", [0.0, 0.3, 1.0])
def test_a_ball_bounces_by_any_restitution(restitution: float) -> None:
    run = throw(body("ball"), np.array([0.0, 0.8, 0.0]), np.zeros(3), 1.0, restitution)
    i = int(np.flatnonzero(run.impulses[:, 0, 1])[0])
    if restitution > 0.0:
        assert run.v[i + 1, 1] == pytest.approx(-restitution * run.v[i, 1], rel=1e-12)
    else:
        assert run.q[i + 1 :, 1] == pytest.approx(run.points.radius, abs=1e-12)
    assert run.residual() < 1e-9


@pytest.mark.parametrize("step", [0.01, 0.005, 0.0025])
def test_rebounds_come_nearer_to_the_closed_form_as_steps_get_shorter(step: float) -> None:
    """The error is at most twice the velocity change by gravity in a step. The paper's step of 10 ms is coarse."""
    run = throw(body("ball"), ball.START, np.array([ball.SPEED, 0.0, 0.0]), 2.0, step=step)
    struck = np.flatnonzero(run.bounces)[: ball.EARLY]
    closed = np.sqrt(2.0 * GRAVITY * (ball.START[1] - 0.2)) * 0.5 ** np.arange(1, ball.EARLY + 1)
    assert np.abs(run.v[struck + 1, 1] - closed).max() < 2.0 * GRAVITY * step


def test_parabolas_end_where_the_series_says() -> None:
    """A ball with restitution e comes to rest after 2 v / (g (1 - e)), its tops shrink by e^2."""
    points = measured("ball").points
    bounces = [*islice(kick.parabolas(np.array([3.0, 5.0]), points), 40)]
    assert bounces[-1].t == pytest.approx(2.0 * 5.0 / (GRAVITY * 0.5), rel=1e-11)
    tops = np.array([bounce.top for bounce in bounces[:8]]) - points.radius
    np.testing.assert_allclose(tops[1:] / tops[:-1], 0.25, rtol=1e-12)
    late = bounces[10].x - bounces[9].x
    assert late / (bounces[10].t - bounces[9].t) == pytest.approx(5.0 / 7.0 * 3.0, rel=1e-9)


def test_all_bounces_of_a_kick_follow_the_parabolas() -> None:
    """Not only the first flight: place and time of four, each off by some steps of 10 ms at most."""
    run = kick.kick(100.0)
    struck = np.flatnonzero(run.bounces)[:4]
    expected = [*islice(kick.parabolas(run.v[0, :2], run.points), 4)]
    for i, bounce, late in zip(struck, expected, range(1, 5), strict=True):
        assert abs(run.t[i] + run.step - bounce.t) < 2.0 * late * run.step
        assert abs(run.q[i, 0] - bounce.x) < 2.0 * late * run.step * run.v[0, 0]


@pytest.mark.parametrize("restitution", [0.0, 1.0])
def test_leg_and_ball_at_both_ends_of_restitution(restitution: float) -> None:
    """Plastic bodies continue together; elastic ones lose no energy. A heavier leg is slowed less."""
    found = foot_on_ball.hit(50.0, restitution)
    opening = found.normal @ found.J @ found.after
    closing = found.normal @ found.J @ found.before
    assert opening == pytest.approx(-restitution * closing, abs=1e-10)
    if restitution == 1.0:
        assert found.energy_lost() == pytest.approx(0.0, abs=1e-10)
    inertia = found.M[0, 0]
    assert found.speed == pytest.approx((1.0 + restitution) * inertia / (inertia + kick.MASS) * -closing, rel=1e-6)
    assert found.after[0] == pytest.approx(found.before[0] - found.impulse / inertia, rel=1e-6)


@pytest.mark.parametrize("contact", ["exact", "lcp", "ncp"])
def test_the_walker_kicks_alike_under_every_model(contact: str) -> None:
    """Steps at the same times, and the same ball, as under ``one_step``; both kinds of feet."""
    for feet in walk_and_kick.FEET:
        usual, found = (walk_and_kick.kick(60.0, feet, model, after=0.05) for model in ("one_step", contact))
        np.testing.assert_allclose(found.touch_downs, usual.touch_downs, atol=0.005)
        np.testing.assert_allclose(found.velocity, usual.velocity, rtol=0.01)
        assert found.unbalanced < 1e-6
