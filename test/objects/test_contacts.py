"""Contact points: their state from the previous step, and the surface properties of both bodies."""

from __future__ import annotations

import numpy as np
import pytest
from object_support import run, world

from bipedsim.numerics import call
from bipedsim.objects.contacts import restore_points

G, H = 9.81, 1e-3
BRICK = {"shape": "box", "size": (0.3, 0.2, 0.1)}


def test_what_slides_slowly_has_dynamic_friction_all_the_same() -> None:
    """The brick is pushed so that it decelerates by 0.5 m/s^2.

    Static friction could stop it within a step, but must not act.
    """
    static, dynamic, slows = 0.9, 0.3, 0.5
    brick = BRICK | {"position": (0.0, 0.0, 0.05), "velocity": (0.02, 0.0, 0.0)}
    w = world(brick | {"friction_static": static, "friction_dynamic": dynamic})
    # The push is level with the ground, so that the brick does not tip; it stays until it is taken back.
    force = dynamic * G - slows
    w.push(0, np.array([force, 0.0, 0.0, 0.0, -0.05 * force, 0.0]))
    run(w, 0.036)
    assert w.bodies.v[0, 0] == pytest.approx(0.02 - slows * 0.036, abs=1e-6)
    assert w.bodies.v[0, 0] < 0.5 * (static - dynamic) * G * H


@pytest.mark.parametrize(
    ("under", "over", "expected"),
    [((0.8, 0.1), (0.8, 0.5), 0.1), ((0.8, 0.5), (0.8, 0.1), 0.1), ((0.9, 0.4), (0.9, 0.4), 0.4)],
)
def test_of_two_bodies_that_slide_the_smaller_dynamic_friction_counts(
    under: tuple[float, float], over: tuple[float, float], expected: float
) -> None:
    """A light brick on a slab on the ground decelerates by mu g."""
    slab = {"shape": "box", "size": (2.0, 1.0, 0.1), "mass": 50.0, "position": (0.0, 0.0, 0.05)}
    brick = BRICK | {"mass": 0.01, "position": (-0.5, 0.0, 0.15), "velocity": (1.5, 0.0, 0.0)}
    names = ("friction_static", "friction_dynamic")
    w = world(slab | dict(zip(names, under, strict=True)), brick | dict(zip(names, over, strict=True)))
    run(w, 0.2)
    assert w.bodies.v[1, 0] == pytest.approx(1.5 - expected * G * 0.2, abs=1e-3)


@pytest.mark.parametrize("yaw", [0.0, 1e-12, -1e-12, 3e-10])
def test_faces_with_common_edges_have_one_point_per_corner(yaw: float) -> None:
    """Also if the edges differ by rounding, so that they cross."""
    cube = {"shape": "box", "size": (0.2, 0.2, 0.2)}
    w = world(*(cube | {"position": (0.0, 0.0, 0.1 + 0.2 * i), "rpy": (0.0, 0.0, i * yaw)} for i in (0, 1)))
    run(w, 0.01)
    c = w.contacts
    assert [(c.second[c.pair[: c.points[0]]] == i).sum() for i in (-1, 1)] == [4, 4]


def test_the_force_of_a_point_that_has_disappeared_goes_to_the_nearest_one_of_the_pair() -> None:
    """Its friction state does not, because the point is another one."""
    w = world(BRICK | {"position": (0.0, 0.0, 0.05)}, BRICK | {"position": (2.0, 0.0, 0.05)})
    run(w, 0.01)
    c, memory = w.contacts, w._memory
    points = int(memory.points[0])
    assert points == 8
    force, which = memory.force[0].copy(), int(np.abs(c.where[:8] - memory.where[0]).sum(axis=1).argmin())
    memory.who[0, 4] = 99
    memory.where[0] += 0.01
    c.force[:8] = c.loaded[:8] = 0.0
    call(restore_points, c, memory)
    np.testing.assert_allclose(c.force[which] @ c.axes[c.pair[which]], force, atol=1e-12)
    assert (c.loaded[:8] == (np.arange(8) != which)).all()
