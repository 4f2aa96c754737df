"""Motions from event to event: rebounds, rest, and leaving, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from refusals import refusal

from bipedsim.numerics import Array
from bipedsim_studies.complementarity import ComplementarityError, Rebound, Terms, motion
from bipedsim_studies.complementarity.events import DEEP

G = 9.81
NOTHING = np.zeros(1)


def ball(t: float, q: Array, v: Array) -> Terms:
    """A mass of 2 kg over a floor."""
    return Terms(np.array([[2.0]]), np.array([-2.0 * G]), np.eye(1), NOTHING, q)


def test_a_ball_rebounds_until_it_rests_where_the_series_ends() -> None:
    e, rest = 0.6, 1e-5
    found = motion(ball, [0.5], [0.0], 2.5, rebound=Rebound(e, rest))
    first = np.sqrt(2.0 * 0.5 / G)
    speeds = G * first * e ** np.arange(len(found.impacts))
    assert_allclose([-impact.before[0] for impact in found.impacts], speeds, rtol=1e-8)
    assert_allclose(found.times, first + np.concatenate([[0.0], np.cumsum(2.0 * e * speeds[:-1] / G)]), atol=1e-9)
    assert speeds[-2] * e > rest >= speeds[-1] * e
    assert found.impacts[-1].after[0] == 0.0
    resting = found.t > found.times[-1]
    assert_allclose(found.force[resting], 2.0 * G, rtol=1e-8)
    assert_allclose(found.q[resting], 0.0, atol=1e-9)
    assert found.t[-1] == 2.5


def test_a_contact_leaves_when_its_force_ends() -> None:
    def pulled(t: float, q: Array, v: Array) -> Terms:
        return Terms(np.eye(1), np.array([t - 1.0]), np.eye(1), NOTHING, q)

    found = motion(pulled, [0.0], [0.0], 3.0)
    assert found.impacts == ()
    flying = found.t > 1.0
    assert_allclose(found.q[flying, 0], (found.t[flying] - 1.0) ** 3 / 6.0, atol=1e-9)
    held = found.t < 1.0
    assert_allclose(found.force[held, 0], 1.0 - found.t[held], atol=1e-12)
    assert_allclose(found.q[held], 0.0, atol=1e-12)


def test_a_row_of_balls_meets_a_wall_by_the_law_that_is_named() -> None:
    J = np.array([[-1.0, 1.0, 0.0], [0.0, -1.0, 1.0]])

    def row(t: float, q: Array, v: Array) -> Terms:
        return Terms(np.eye(3), np.zeros(3), J, np.zeros(2), J @ q)

    after = {
        law: motion(row, [-1.0, 0.0, 0.0], [1.0, 0.0, 0.0], 2.0, rebound=Rebound(1.0, law=law)).v[-1]
        for law in ("moreau", "han_gilmore")
    }
    assert_allclose(after["moreau"], [-1 / 3, 2 / 3, 2 / 3], atol=1e-12)
    assert_allclose(after["han_gilmore"], [-1 / 3, 2 / 3, 2 / 3], atol=1e-12)
    stopped = motion(row, [-1.0, 0.0, 0.0], [1.0, 0.0, 0.0], 2.0, rebound=Rebound(1.0), most_impacts=0)
    assert stopped.impacts == ()
    assert stopped.t[-1] == pytest.approx(1.0, abs=1.001 * DEEP), "at 1 m/s: the gap is as deep as it may be"
    assert_allclose(stopped.v[-1], [1.0, 0.0, 0.0])


def test_what_cannot_be_followed_is_named() -> None:
    with refusal(ComplementarityError, place="gap 0", value=-0.1):
        motion(ball, [-0.1], [0.0], 1.0)
    with refusal(place="duration", value=0.0):
        motion(ball, [0.1], [0.0], 0.0)
