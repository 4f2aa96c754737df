"""Contacts of a ball with a cylinder or a box, compared with a search over the surface of the other body."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from object_support import world

RADIUS, HALF, SIDES, BALL = 0.1, 0.06, np.array([0.2, 0.3, 0.1]), 0.03
BESIDE = 2.5e-3
"""How far a point of a surface is from the nearest one that is searched, at most [m]."""


def surface(shape: str) -> np.ndarray:
    """Return many points of the surface (n, 3), in the axes of the shape."""
    if shape == "cylinder":
        angle, r = np.meshgrid(np.linspace(0.0, 2.0 * np.pi, 361), np.linspace(0.0, RADIUS, 61))
        cap = np.stack([r * np.cos(angle), r * np.sin(angle), np.full_like(r, HALF)], axis=-1).reshape(-1, 3)
        angle, z = np.meshgrid(np.linspace(0.0, 2.0 * np.pi, 361), np.linspace(-HALF, HALF, 61))
        side = np.stack([RADIUS * np.cos(angle), RADIUS * np.sin(angle), z], axis=-1).reshape(-1, 3)
        return np.concatenate([cap, cap * [1.0, 1.0, -1.0], side])
    x, y, z = (np.linspace(-0.5, 0.5, 81) * side for side in SIDES)
    found = []
    for axis, (u, v) in enumerate(((y, z), (x, z), (x, y))):
        grid = np.stack(np.meshgrid(u, v), axis=-1).reshape(-1, 2)
        found += [np.insert(grid, axis, s * 0.5 * SIDES[axis], axis=1) for s in (-1.0, 1.0)]
    return np.concatenate(found)


SHAPES: dict[str, dict[str, Any]] = {
    "cylinder": {"shape": "cylinder", "radius": RADIUS, "length": 2.0 * HALF},
    "box": {"shape": "box", "size": tuple(SIDES)},
}
SURFACES = {shape: surface(shape) for shape in SHAPES}
EDGES = {"cylinder": np.array([RADIUS, RADIUS, HALF]), "box": 0.5 * SIDES}


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=150, deadline=None)
@given(st.tuples(*[st.floats(-1.3, 1.3)] * 3))
def test_a_ball_is_pushed_out_the_nearest_way(shape: str, share: tuple[float, float, float]) -> None:
    """Outside, inside, over an edge, and under a cap: gap and direction of the surface's nearest point."""
    centre = np.array(share) * EDGES[shape]
    turned = {"rpy": (0.4, -0.7, 0.2), "position": (0.0, 0.0, 5.0)}
    w = world(SHAPES[shape] | turned)
    R = w.bodies.R[0].copy()
    w = world(SHAPES[shape] | turned, {"radius": BALL, "position": tuple(np.array([0.0, 0.0, 5.0]) + R @ centre)})
    away = np.linalg.norm(SURFACES[shape] - centre, axis=1)
    if shape == "cylinder":
        inside = np.hypot(centre[0], centre[1]) < RADIUS and abs(centre[2]) < HALF
    else:
        inside = bool((np.abs(centre) < 0.5 * SIDES).all())
    distance = -away.min() if inside else away.min()
    w.overlaps()
    c = w.contacts
    if distance - BALL > 2e-3:
        assert c.points[0] == 0
        return
    if distance - BALL > 0.5e-3:
        return
    assert c.points[0] == 1
    # The nearest point of the search is close to the nearest one of the surface, and not nearer to the ball.
    out = float(c.gap[0]) + BALL
    assert np.sqrt(max(distance**2 - BESIDE**2, 0.0)) - 1e-9 <= abs(out) <= abs(distance) + 1e-9
    assert abs(out) < 1e-9 or (out < 0.0) == inside
    n = R.T @ c.axes[0, 2] * (1.0 if c.first[0] == 1 else -1.0)
    # Along the normal, as far as it is out, is the surface.
    assert np.linalg.norm(SURFACES[shape] - (centre - (c.gap[0] + BALL) * n), axis=1).min() < 3e-3
