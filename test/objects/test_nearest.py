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
