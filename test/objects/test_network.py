"""The solver of coupled bodies, compared with weights and with positions at rest."""

from __future__ import annotations

import numpy as np
import pytest
from object_support import run, world

G = 9.81
BRICK = {"shape": "box", "size": (0.2, 0.2, 0.2)}


@pytest.mark.parametrize("wide", [2, 4])
def test_many_bodies_at_rest_stay_there_and_carry_their_weight(wide: int) -> None:
    """Separate towers: the ground carries the sum of the weights, and nothing moves."""
    bricks = [BRICK | {"position": (0.5 * (i % wide), 0.0, 0.1 + 0.2 * (i // wide))} for i in range(4 * wide)]
    w = world(*bricks)
    run(w, 0.1)
    c = w.contacts
    ground = c.second[c.pair[: int(c.points[0])]] < 0
    assert c.force[: len(ground)][ground, 2].sum() == pytest.approx(4 * wide * G, abs=1e-6)
    assert np.abs(w.bodies.v).max() < 1e-9
    assert w.unresolved == 0


def test_a_light_brick_under_a_heavy_one_is_solved_to_the_tolerance() -> None:
    """The masses differ by a factor of 1e4; a solver that forms inverses loses the light one."""
    w = world(
        BRICK | {"mass": 0.01, "position": (0.0, 0.0, 0.1)},
        BRICK | {"mass": 100.0, "position": (0.0, 0.0, 0.3)},
        BRICK | {"mass": 0.01, "position": (0.0, 0.0, 0.5)},
    )
    run(w, 0.1)
    assert w.unresolved == 0
    np.testing.assert_allclose(w.bodies.position[:, 2], [0.1, 0.3, 0.5], atol=1e-9)


def test_a_body_far_away_does_not_change_another_one() -> None:
    """Bodies that share no contact are solved apart; only the times of their events are in common."""
    leaning = BRICK | {"position": (0.0, 0.0, 0.13), "rpy": (0.3, 0.1, 0.0)}
    alone, both = world(leaning), world(leaning, BRICK | {"position": (3.0, 0.0, 0.11), "velocity": (2.0, 0.0, 0.0)})
    for _ in range(100):
        assert not alone.step()
        assert not both.step()
    moved = alone.bodies.position[0] - leaning["position"]
    assert np.abs(moved).max() > 1e-3
    np.testing.assert_allclose(both.bodies.position[0], alone.bodies.position[0], atol=1e-6)


@pytest.mark.parametrize(("rows", "gap"), [(5, 0.0), (6, 1e-3)])
def test_a_wall_stays_and_its_problems_are_solved(rows: int, gap: float) -> None:
    """Bricks in running bond, whose sides touch or not: the forces between them are not unique."""
    brick, places = {"shape": "box", "size": (0.2, 0.1, 0.1)}, []
    for row in range(rows):
        places += [((i + 0.5 * (row % 2)) * (0.2 + gap), 0.0, 0.05 + 0.1 * row) for i in range(5 - row % 2)]
    w = world(*(brick | {"position": place} for place in places))
    run(w, 0.1)
    assert w.unresolved == 0
    assert np.abs(w.bodies.v).max() < 1e-9
    np.testing.assert_allclose(w.bodies.position, places, atol=1e-8)
