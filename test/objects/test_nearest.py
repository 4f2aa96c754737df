"""Nearest points of convex shapes, compared with coal."""

from __future__ import annotations

from typing import Any

import coal
import numpy as np
import pytest
from object_support import world

from bipedsim.numerics import call, zeros_of
from bipedsim.objects.nearest import CORE, Nearest, find_nearest
from bipedsim.objects.shapes import ObjectShapes, carry


def shape(rng: np.random.Generator) -> tuple[dict[str, Any], Any]:
    """Return a random shape as an object has it, and the smaller one of coal."""
    if rng.random() < 0.5:
        size = rng.uniform(0.05, 0.5, 3)
        return {"shape": "box", "size": tuple(size)}, coal.Box(*(size - CORE * size.min()).tolist())
    radius, length = rng.uniform(0.02, 0.3), rng.uniform(0.05, 0.6)
    less = CORE * min(radius, 0.5 * length)
    return {"shape": "cylinder", "radius": radius, "length": length}, coal.Cylinder(radius - less, length - 2.0 * less)


@pytest.mark.parametrize("seed", range(60))
def test_the_distance_is_that_of_coal(seed: int) -> None:
    """Also of parallel faces, every other time: distance to coal's own accuracy, and the direction."""
    rng = np.random.default_rng(seed)
    (one, first), (two, second) = shape(rng), shape(rng)
    turn = seed % 2
    w = world(
        one | {"position": (0.0, 0.0, 5.0), "rpy": tuple(turn * rng.uniform(-3.0, 3.0, 3))},
        two
        | {
            "position": tuple(np.array([0.0, 0.0, 5.6]) + rng.uniform(-0.5, 0.5, 3)),
            "rpy": tuple(turn * rng.uniform(-3.0, 3.0, 3)),
        },
    )
    sh = ObjectShapes.of([(i, shape) for i, body in enumerate(w.free) for shape in body.shapes], w.bodies.com)
    call(carry, w.bodies, sh, 0.0)
    o = zeros_of(Nearest, {})
    request, result = coal.DistanceRequest(), coal.DistanceResult()
    places = [coal.Transform3s(sh.R[i], sh.p[i]) for i in range(2)]
    distance = coal.distance(first, places[0], second, places[1], request, result)
    bound = call(find_nearest, o, sh, 0, 1)
    if distance <= 0.0:
        assert bound < 0.0
        return
    assert np.linalg.norm(o.at[0] - o.at[1]) == pytest.approx(distance, abs=3e-6)
    assert bound <= distance
    np.testing.assert_allclose(o.normal, -result.normal, atol=1e-2)


def test_bricks_that_overlap_by_half_are_in_contact_whatever_the_rounding() -> None:
    """The corner that the search finds next is nearer only by rounding, and belongs to another edge."""
    w = world(*[{"shape": "box", "size": (0.2, 0.1, 0.1)}] * 2)
    sh = ObjectShapes.of([(i, shape) for i, body in enumerate(w.free) for shape in body.shapes], w.bodies.com)
    o, rng = zeros_of(Nearest, {}), np.random.default_rng(0)
    for _ in range(1000):
        at = np.array([0.1005 * rng.integers(-9, 9), 0.0, 0.05 + 0.1 * rng.integers(0, 8)])
        w.bodies.position[:] = at, at + np.array([rng.choice([-0.1005, 0.1005]), 0.0, 0.1])
        w.bodies.position[:] += 10.0 ** rng.uniform(-20.0, -14.0) * rng.normal(size=(2, 3))
        for i in range(2):
            turn = 10.0 ** rng.uniform(-20.0, -14.0) * rng.normal(size=3)
            w.bodies.R[i] = np.eye(3) + np.cross(np.eye(3), turn)
        call(carry, w.bodies, sh, 0.0)
        assert call(find_nearest, o, sh, 0, 1) < 1e-9
        assert abs(o.normal[2]) == pytest.approx(1.0, abs=1e-6)
