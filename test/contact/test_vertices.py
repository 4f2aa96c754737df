"""Code that all vertex models share: impulses become wrenches and CoP, and each vertex gets its friction."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin
import pytest
from physics_support import rectangle

from bipedsim.contact.base import ContactResult
from bipedsim.contact.vertices import VertexContacts, friction, write_vertices
from bipedsim.dynamics.projection import Projection
from bipedsim.model import load_robot
from bipedsim.numerics import call

H = 1e-3
SOLE = np.array(rectangle(0.3, 0.2)) + np.array([0.05, -0.02])


def two_feet() -> tuple[Projection, VertexContacts]:
    """Return two soles turned any way."""
    sole = dataclasses.replace(load_robot("biped14").soles[0], vertices=SOLE)
    p = Projection.of_soles((sole, sole))
    for k, turn in enumerate(([0.3, -0.2, 1.0], [-0.1, 0.4, -2.0])):
        p.rotation[k] = pin.exp3(np.array(turn))
        p.offsets[k] = SOLE @ p.rotation[k, :, :2].T
    p.mu_static[:], p.mu_dynamic[:] = 0.6, 0.4
    return p, VertexContacts.of_feet(2, 4, ContactResult.empty(2, 4), H)


def test_impulses_of_vertices_become_wrenches_and_centres_of_pressure() -> None:
    p, s = two_feet()
    rng = np.random.default_rng(5)
    s.impulses[:] = rng.uniform(0.1, 1.0, size=s.impulses.shape)
    s.impacts[:] = rng.normal(size=s.impacts.shape)
    s.touching[:] = s.sticking[:] = True
    s.sticking[1] = False
    call(write_vertices, p, s, 1, False)
    for k in range(2):
        f, R = s.impulses[k], p.rotation[k]
        total = np.concatenate([f.sum(axis=0), np.cross(p.offsets[k], f).sum(axis=0)])
        hit = np.concatenate([s.impacts[k].sum(axis=0), np.cross(p.offsets[k], s.impacts[k]).sum(axis=0)])
        np.testing.assert_allclose(s.result.impulse[k], total, rtol=1e-12)
        np.testing.assert_allclose(s.result.wrench[k].reshape(2, 3), total.reshape(2, 3) @ R / H, rtol=1e-9)
        np.testing.assert_allclose(s.result.impact[k].reshape(2, 3), hit.reshape(2, 3) @ R, rtol=1e-9)
        np.testing.assert_allclose(s.result.cop[k], f[:, 2] @ SOLE / f[:, 2].sum(), rtol=1e-12)
        np.testing.assert_allclose(s.result.vertex_forces[k], f / H, rtol=1e-12)
        mu = 0.4 if k else 0.6
        assert s.result.friction_used[k] == pytest.approx(np.hypot(*total[:2]) / (mu * total[2]), rel=1e-12)
    assert s.result.sliding.tolist() == [False, True]
    assert s.result.mode.tolist() == [9, 9]


@pytest.mark.parametrize(
    ("touching", "sticking", "expected"),
    [(False, False, 0.6), (False, True, 0.6), (True, True, 0.6), (True, False, 0.4)],
)
def test_only_what_slid_at_the_end_of_the_last_step_meets_dynamic_friction(
    touching: bool, sticking: bool, expected: float
) -> None:
    p, s = two_feet()
    s.touching[1, 2], s.sticking[1, 2] = touching, sticking
    assert friction(p, s, 1, 2) == expected
