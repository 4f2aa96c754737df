"""The motion of the feet within a step compared with closed forms: rotation, flight, and time of the impulse."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin
import pytest
from physics_support import rectangle

from bipedsim.contact.base import ContactResult
from bipedsim.contact.compliant.feedback_linearised import FeedbackLinearised
from bipedsim.contact.compliant.nonlinear_damping import NonlinearDamping
from bipedsim.contact.compliant.substeps import MOST_EVENTS, Substeps, begin_substep, next_stage, place, start
from bipedsim.contact.vertices import VertexContacts
from bipedsim.dynamics.projection import Projection
from bipedsim.model import load_robot
from bipedsim.numerics import call

H = 1e-3
OFFSETS = np.array(rectangle(0.3, 0.2))


def one_foot(radius: float = 0.0) -> tuple[Projection, Substeps]:
    """Return a foot of four vertices 0.05 m above level ground, and its substeps."""
    sole = dataclasses.replace(load_robot("biped14").soles[0], vertices=OFFSETS)
    p = Projection.of_soles((sole,))
    p.offsets[0, :, :2] = OFFSETS
    p.offsets[0, :, 2] = -radius
    p.position[0] = 0.4, -0.3, 0.05
    p.radius[0] = radius
    return p, Substeps.of_feet(VertexContacts.of_feet(1, 4, ContactResult.empty(1, 4), H))


@pytest.mark.parametrize("radius", [0.0, 0.07])
def test_a_foot_turns_by_its_turn_up_to_third_order(radius: float) -> None:
    """The lever arms are about the sole origin.

    Those of a ball foot are about its centre, one radius above the contact point.
    """
    p, c = one_foot(radius)
    call(start, p, c)
    c.twist[:] = 0.3, -0.2, 0.1, 2.0, -1.0, 3.0
    down = np.array([0.0, 0.0, radius])
    errors = []
    for size in (0.08, 0.04):
        turn = size * np.array([0.6, -0.64, 0.48])
        c.shift[:3], c.shift[3:] = (0.01, 0.02, -0.03), turn
        call(place, p, c)
        expected = (p.offsets[0] + down) @ pin.exp3(turn).T - down
        arm, velocity = c.arm[0].T, c.velocity[0].T
        errors.append(np.abs(arm - expected).max())
        np.testing.assert_allclose(c.height[0], 0.05 - 0.03 + arm[:, 2], atol=1e-15)
        np.testing.assert_allclose(velocity, c.twist[:3] + np.cross(c.twist[3:], arm), atol=1e-15)
    assert errors[0] < size**3
    assert errors[0] / errors[1] == pytest.approx(8.0, rel=0.1)


def test_a_foot_flies_on_a_parabola() -> None:
    p, c = one_foot()
    p.w_before[:] = 0.3, -0.2, 0.5, 0.0, 0.0, 0.1
    p.bias[:] = 0.7, 0.1, -0.2, 0.3, 0.2, -0.1
    acceleration = np.array([1.0, 2.0, -9.81, 3.0, -4.0, 5.0])
    p.w_free[:] = p.w_before + H * (acceleration - p.bias)
    call(start, p, c)
    for _ in range(2):
        call(begin_substep, c)
        for stage in range(4):
            call(next_stage, p, c, stage, 0.5 * H)
    np.testing.assert_allclose(c.shift, H * p.w_before + 0.5 * H**2 * acceleration, atol=1e-17)
    np.testing.assert_allclose(c.twist, p.w_before + H * acceleration, atol=1e-15)
    assert not c.impulse.any()
    assert not c.late.any()


def test_forces_move_the_foot_and_are_booked_by_when_they_acted() -> None:
    """A force on one vertex that grows with time, f = t: impulse h^2 / 2, and h^2 / 6 weighted by the share left."""
    p, c = one_foot()
    root = np.random.default_rng(3).normal(size=(6, 6))
    p.G[:] = root @ root.T
    call(start, p, c)
    direction = np.array([0.2, -0.3, 1.0])
    steps = (0.2, 0.5, 0.3)
    t = 0.0
    for share in steps:
        dt = share * H
        call(begin_substep, c)
        for stage in range(4):
            c.force[0, 2] = direction * (t + dt * (0.0, 0.5, 0.5, 1.0)[stage])
            call(next_stage, p, c, stage, dt)
        t += dt
    wrench = np.concatenate([direction, np.cross(p.offsets[0, 2], direction)])
    np.testing.assert_allclose(c.impulse[0], 0.5 * H**2 * wrench, rtol=1e-12)
    np.testing.assert_allclose(c.late[0], H**2 / 6.0 * wrench, rtol=1e-12)
    np.testing.assert_allclose(c.impulses[0], np.outer([0.0, 0.0, 1.0, 0.0], 0.5 * H**2 * direction), rtol=1e-12)
    np.testing.assert_allclose(c.twist, 0.5 * H**2 * p.G @ wrench, rtol=1e-12)
    np.testing.assert_allclose(c.shift, H**3 / 6.0 * p.G @ wrench, rtol=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("kind", [FeedbackLinearised, NonlinearDamping])
def test_vertices_that_come_and_go_without_an_end_end_the_step_as_unresolved(kind: type) -> None:
    """Velocities of other contacts may be wrong by 26 powers of ten during the solve. A step used to take minutes."""
    rng = np.random.default_rng(1)
    most = unresolved = 0
    for _ in range(40):
        p, _ = one_foot()
        model = kind(p, kind.Params(), H)
        p.n_vertices[0] = 4
        p.vertices[0, :4] = OFFSETS
        p.mu_static[0], p.mu_dynamic[0] = 0.05, 0.04
        p.position[0, 2] = 0.0
        p.rotation[0] = np.eye(3)
        root = rng.normal(size=(6, 6))
        p.G[:] = root @ root.T
        p.w_before[:] = 1e-6 * rng.normal(size=6)
        p.w_free[:] = 10.0 ** rng.uniform(0.0, 26.0) * rng.normal(size=6)
        result = model.solve(p)
        events = int(model.arrays.substeps.events[0])
        most = max(most, events)
        assert result.unresolved >= (events >= MOST_EVENTS)
        unresolved += result.unresolved
    assert most <= MOST_EVENTS + 1
    assert unresolved
