"""Anchors of sticking vertices: correction after any small motion, and anchors on another polygon."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from physics_support import rectangle

from bipedsim.contact.anchors import Anchors, carry_anchors, drift_correction
from bipedsim.contact.base import ContactResult
from bipedsim.contact.vertices import VertexContacts
from bipedsim.dynamics.projection import Projection
from bipedsim.dynamics.support import NEW_PLANE, NEW_POLYGON
from bipedsim.model import load_robot
from bipedsim.numerics import call

RATE = 200.0
# The middle of the sole is not its origin.
SOLE = np.array(rectangle(0.3, 0.2)) + np.array([0.05, -0.02])


def anchored() -> tuple[Projection, VertexContacts, Anchors]:
    """Return a foot of four vertices that stick and have just been anchored."""
    sole = dataclasses.replace(load_robot("biped14").soles[0], vertices=SOLE)
    p = Projection.of_soles((sole,))
    p.position[0] = 0.4, -0.3, 0.0
    p.offsets[0, :, :2] = SOLE
    s = VertexContacts.of_feet(1, 4, ContactResult.empty(1, 4), 1e-3)
    s.touching[:] = s.sticking[:] = True
    a = Anchors.of_feet(1, 4)
    assert call(drift_correction, 0, p, s, a, RATE) == (0.0, 0.0, 0.0)
    np.testing.assert_array_equal(a.place[0], p.position[0, :2] + SOLE)
    return p, s, a


@pytest.mark.parametrize("sticking", [[True] * 4, [True, False, True, True], [False, True, False, False]])
def test_the_way_back_ends_at_the_anchors(sticking: list[bool]) -> None:
    """A rigid motion by (x, y, yaw) is undone to first order in the yaw. A single vertex cannot observe yaw."""
    p, s, a = anchored()
    yaw = 1e-5 if sum(sticking) > 1 else 0.0
    p.position[0, :2] += 3e-5, -2e-5
    p.offsets[0, :, :2] = SOLE + yaw * np.column_stack([-SOLE[:, 1], SOLE[:, 0]])
    s.sticking[0] = sticking
    vx, vy, turn = call(drift_correction, 0, p, s, a, RATE)
    assert turn == pytest.approx(-RATE * yaw, rel=1e-6)
    r = p.offsets[0, :, :2]
    moved = p.position[0, :2] + r + (np.array([vx, vy]) + turn * np.column_stack([-r[:, 1], r[:, 0]])) / RATE
    np.testing.assert_allclose(moved[sticking], a.place[0, sticking], atol=1e-10)
    assert a.held[0].tolist() == sticking


def test_a_ball_has_no_anchor() -> None:
    p, s, a = anchored()
    p.radius[0] = 0.1
    p.position[0, 0] += 1e-3
    assert call(drift_correction, 0, p, s, a, RATE) == (0.0, 0.0, 0.0)
    assert not a.held.any()


@pytest.mark.parametrize(("changed", "held"), [(NEW_POLYGON, [True, True, False, False]), (NEW_PLANE, [False] * 4)])
def test_anchors_go_with_the_vertices_that_continue(changed: int, held: list[bool]) -> None:
    p, s, a = anchored()
    before = a.place[0].copy()
    p.changed[0] = changed
    p.n_vertices[0] = 3
    s.origin[0] = 3, 1, -1, 2
    call(carry_anchors, 0, p, s, a)
    assert a.held[0].tolist() == held
    np.testing.assert_array_equal(a.place[0, :2], before[[3, 1]])
