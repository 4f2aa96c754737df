"""Contact and friction at velocity level, one LCP a step, against closed forms."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from refusals import refusal

from bipedsim.numerics import Array
from bipedsim_studies.complementarity.coulomb import CoulombContacts, planar_coulomb_lcp, solve_coulomb
from bipedsim_studies.complementarity.time_stepping import TimeSteppingResult, assemble_step, solve_step

GRAVITY = 9.81


def test_thousand_steps_with_dependent_contacts_are_solved() -> None:
    """Without restitution every step has a solution, jammed or not; energy of the contacts never rises."""
    rng = np.random.default_rng(9)
    for case in range(1000):
        nv, m, t = 6, int(rng.integers(1, 5)), int(rng.integers(1, 3))
        root = rng.normal(size=(nv, nv))
        M = (root @ root.T + 0.1 * np.eye(nv)) * 10.0 ** rng.uniform(-2, 2)
        J = rng.normal(size=(m, t + 1, nv))
        if m > 1:
            J[-1] = J[0] if case % 2 else J[0] + J[1 % (m - 1)]
        contacts = CoulombContacts(J[:, t], J[:, :t], rng.uniform(0.0, 1.5, m))
        h, v = M @ rng.normal(size=nv) * 10.0, rng.normal(size=nv)
        gap = rng.uniform(0.0, 1e-3, m) * (rng.random(m) < 0.3)
        result = solve_step(assemble_step(M, h, v, contacts, gap, 1e-3, sides=int(rng.integers(4, 7))))
        assert result.residual < 1e-9
        free = v + 1e-3 * np.linalg.solve(M, h)
        gained = 0.5 * (free + result.v) @ M @ (result.v - free)
        assert gained <= 1e-9 * (free @ M @ free)
        assert (contacts.normal @ result.v >= -gap / 1e-3 - 1e-8 * (1.0 + np.abs(result.v).max())).all()
        held = contacts.friction_dynamic * result.normal
        assert (np.linalg.norm(result.tangential, axis=1) <= held + 1e-9 * (1.0 + held.max())).all()


def slide(velocity: Array, *, mu: float, sides: int, pull: tuple[float, float] = (0.0, 0.0)) -> TimeSteppingResult:
    """Return one step of 1 ms of a point of 2 kg that slides on a plane."""
    contacts = CoulombContacts(np.array([[0.0, 0.0, 1.0]]), np.eye(3)[None, :2], np.array(mu))
    h = 2.0 * np.array([*pull, -GRAVITY])
    return solve_step(assemble_step(2.0 * np.eye(3), h, np.array([*velocity, 0.0]), contacts, [0.0], 1e-3, sides=sides))


def test_a_sliding_point_is_braked_by_the_nearest_corner() -> None:
    """Maximal dissipation over the polygon: full friction, but along a corner, up to pi/k off the velocity."""
    for sides in (4, 8):
        for angle in (0.1, 0.3, 1.2, 2.0, 4.0):
            direction = np.array([np.cos(angle), np.sin(angle)])
            impulse = slide(direction, mu=0.5, sides=sides).tangential[0]
            assert np.linalg.norm(impulse) == pytest.approx(0.5 * 2.0 * GRAVITY * 1e-3)
            off = np.arccos(np.clip(-impulse @ direction / np.linalg.norm(impulse), -1.0, 1.0))
            assert off <= np.pi / sides + 1e-9
            assert off == pytest.approx(abs((angle + np.pi / sides) % (2 * np.pi / sides) - np.pi / sides))


def test_a_point_stops_and_stays() -> None:
    result = slide(np.array([1e-3, 0.0]), mu=0.5, sides=4)
    np.testing.assert_allclose(result.v, 0.0, atol=1e-15)
    np.testing.assert_allclose(slide(np.zeros(2), mu=0.5, sides=4, pull=(0.49 * GRAVITY, 0.0)).v, 0.0, atol=1e-15)
    assert slide(np.zeros(2), mu=0.5, sides=4, pull=(0.6 * GRAVITY, 0.0)).v[0] == pytest.approx(0.1 * GRAVITY * 1e-3)


def test_painleves_rod_has_a_step_where_it_has_no_acceleration() -> None:
    """No finite force stops the sliding rod. One impulse does, in an impact without collision."""
    angle, mu = np.arctan(2.0), 2.0
    c, s = np.cos(angle), np.sin(angle)
    contacts = CoulombContacts(np.array([[0.0, 1.0, -c]]), np.array([[[1.0, 0.0, s]]]), np.array(mu))
    M, h, v = np.diag([1.0, 1.0, 1.0 / 3.0]), [0.0, -GRAVITY, 0.0], np.array([-1.0, 0.0, 0.0])
    assert solve_coulomb(planar_coulomb_lcp(M, h, contacts, [[-1.0]], [0.0], [[0.0]])).verdict == "none"
    impulses = []
    for step in (1e-3, 1e-6):
        result = solve_step(assemble_step(M, h, v, contacts, [0.0], step))
        assert contacts.tangent[0, 0] @ result.v == pytest.approx(0.0, abs=1e-12)
        impulses.append(result.normal[0])
    assert impulses[1] == pytest.approx(impulses[0], rel=0.1)
    assert impulses[1] > 0.01


def bounces(step: float, *, count: int, e: float = 0.5, height: float = 1.0) -> list[float]:
    """Return the heights that a ball dropped from ``height`` reaches between its bounces."""
    contacts = CoulombContacts(np.array([[0.0, 1.0]]), np.array([[[1.0, 0.0]]]), np.array(0.3))
    q, v = np.array([0.0, height]), np.zeros(2)
    peaks = [height]
    highest, landed = 0.0, False
    while len(peaks) <= count:
        result = solve_step(
            assemble_step(0.3 * np.eye(2), [0.0, -0.3 * GRAVITY], v, contacts, q[1:], step, restitution=e)
        )
        if result.normal[0] > 0.0:
            if landed:
                peaks.append(highest)
            highest, landed = 0.0, True
        v = result.v
        q = q + step * v
        highest = max(highest, float(q[1]))
    return peaks


@pytest.mark.ci
def test_a_bouncing_ball_keeps_e_squared_of_its_height_to_first_order() -> None:
    """A landing is noticed up to a step late: off by at most (2 e^2 + e + 1) v h in height."""
    for step in (4e-3, 1e-3, 2.5e-4):
        peaks = bounces(step, count=2)
        for before, after in pairwise(peaks):
            speed = np.sqrt(2.0 * GRAVITY * before)
            assert abs(after - 0.25 * before) <= 2.0 * (speed + GRAVITY * step) * step


def test_a_perfect_landing_closes_the_gap_and_stays() -> None:
    contacts = CoulombContacts(np.array([[0.0, 1.0]]), np.array([[[1.0, 0.0]]]), np.array(0.3))
    gap, v, h = 2e-4, np.array([0.0, -1.0]), [0.0, -GRAVITY]
    first = solve_step(assemble_step(np.eye(2), h, v, contacts, [gap], 1e-3))
    assert gap + 1e-3 * first.v[1] == pytest.approx(0.0, abs=1e-15)
    second = solve_step(assemble_step(np.eye(2), h, first.v, contacts, [0.0], 1e-3))
    np.testing.assert_allclose(second.v, 0.0, atol=1e-15)


def test_a_contact_with_restitution_takes_no_part_while_open() -> None:
    contacts = CoulombContacts(np.array([[0.0, 1.0]]), np.array([[[1.0, 0.0]]]), np.array(0.3))
    lcp = assemble_step(np.eye(2), [0.0, -GRAVITY], [0.0, -1.0], contacts, [1e-4], 1e-3, restitution=0.5)
    assert not lcp.active.any()
    np.testing.assert_array_equal(solve_step(lcp).v, lcp.v_free)


def test_errors_name_what_is_wrong() -> None:
    contacts = CoulombContacts(np.array([[0.0, 1.0]]), np.array([[[1.0, 0.0]]]), np.array(0.5))
    with refusal(place="restitution", value=1.5):
        assemble_step(np.eye(2), np.zeros(2), np.zeros(2), contacts, [0.0], 1e-3, restitution=1.5)
    with refusal(place="step", value=0.0):
        assemble_step(np.eye(2), np.zeros(2), np.zeros(2), contacts, [0.0], 0.0)
