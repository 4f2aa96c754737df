"""The limit surface of a polygonal foot, compared with the possible forces of its vertices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from physics_support import rectangle, regular_polygon
from scipy.optimize import linprog

from bipedsim.contact.selection.friction import friction_at, gauge, share_out, twist
from bipedsim.numerics import Array

SOLE = np.array(rectangle(0.2, 0.1))
LEVEL = np.eye(3)
SIDES = 96


def shared(vertices: Array, cop: tuple[float, float], first: int = 0, count: int = 0) -> tuple[float, Array]:
    """Return c [m], and the shares (m, 3) of the vertices."""
    count = count or len(vertices)
    shares = np.full((count, 3), np.nan)
    return share_out(first, count, len(vertices), vertices, LEVEL, np.array(cop), shares), shares


def some_foot(rng: np.random.Generator) -> tuple[float, Array]:
    """Return c and shares of a random polygon, or edge, loaded somewhere inside."""
    n = int(rng.integers(2, 9))
    vertices = np.array(regular_polygon(n, 0.1)) * [1.0, rng.uniform(0.3, 1.0)]
    cop = rng.dirichlet(np.ones(n)) @ vertices
    return shared(vertices, (cop[0], cop[1]))


def carried(shares: Array, x: Array) -> float:
    """Return the least share of its friction that every vertex must use to carry x (3,), friction being a polygon."""
    angle = 2.0 * np.pi * (np.arange(SIDES) + 0.5) / SIDES
    n = len(shares)
    balance = np.zeros((3, 2 * n + 1))
    limits, room = np.zeros((SIDES * n, 2 * n + 1)), np.zeros(SIDES * n)
    for i, (w, rx, ry) in enumerate(shares):
        balance[0, 2 * i] = balance[1, 2 * i + 1] = 1.0
        balance[2, 2 * i], balance[2, 2 * i + 1] = -ry, rx
        rows = slice(SIDES * i, SIDES * (i + 1))
        limits[rows, 2 * i], limits[rows, 2 * i + 1], limits[rows, -1] = np.cos(angle), np.sin(angle), -w
    cost = np.append(np.zeros(2 * n), 1.0)
    free = [(None, None)] * (2 * n) + [(0.0, None)]
    return float(linprog(cost, A_ub=limits, b_ub=room, A_eq=balance, b_eq=x, bounds=free).fun)


def motion(rng: np.random.Generator) -> tuple[float, float, float]:
    x, y, w = rng.normal(size=3) * [1.0, 1.0, rng.choice([0.0, 0.1, 1.0])]
    return float(x), float(y), float(w)


@settings(max_examples=100)
@given(n=st.integers(3, 12), radius=st.floats(0.0, 0.999), angle=st.floats(0.0, 6.3))
def test_shares_balance_at_the_cop(n: int, radius: float, angle: float) -> None:
    vertices = np.array(regular_polygon(n, 0.1)) * [1.0, 0.6]
    inner = radius * 0.1 * np.cos(np.pi / n)
    cop = (inner * np.cos(angle), 0.6 * inner * np.sin(angle))
    c, shares = shared(vertices, cop)
    assert (shares[:, 0] >= 0.0).all()
    assert shares[:, 0].sum() == pytest.approx(1.0)
    np.testing.assert_allclose(shares[:, 0] @ vertices, cop, atol=1e-12)
    np.testing.assert_allclose(c * shares[:, 1:], vertices - cop, atol=1e-9)
    assert shares[:, 0] @ np.hypot(*shares[:, 1:].T) == pytest.approx(1.0)


def test_torsion_of_known_shapes() -> None:
    disc = np.array(regular_polygon(64, 0.15))
    assert shared(disc, (0.0, 0.0))[0] == pytest.approx(0.15)
    assert shared(SOLE, (0.0, 0.0))[0] == pytest.approx(np.hypot(0.1, 0.05))
    assert shared(SOLE, (0.0, 0.05), 0, 2)[0] == pytest.approx(0.1)
    assert shared(SOLE, (0.1, 0.05), 0, 2)[0] == 0.0
    assert shared(SOLE, (0.1, 0.05), 2, 1)[0] == 0.0
    assert shared(SOLE, (0.05, 0.05))[0] == pytest.approx(2 * 0.05 * 0.15 / 0.2, abs=1e-6)


def test_the_limit_surface_is_what_the_vertices_can_carry() -> None:
    """The tolerance is the difference between a circle and a polygon of 96 sides."""
    rng = np.random.default_rng(3)
    for _ in range(40):
        _, shares = some_foot(rng)
        x = np.array(motion(rng))
        x /= np.linalg.norm(x)
        out, V = gauge(tuple(x), shares, len(shares), np.inf)
        assert out == pytest.approx(carried(shares, x), rel=1e-3)
        assert out <= np.hypot(x[0], x[1]) + abs(x[2]) * twist(shares, len(shares)) + 1e-9
        rx, ry = shares[:, 1:].T
        dissipated = shares[:, 0] @ np.hypot(V[0] - V[2] * ry, V[1] + V[2] * rx)
        assert x @ V / dissipated == pytest.approx(out, rel=1e-4)
        for enough in (0.9 * out, 0.999 * out, 1.001 * out, 1.1 * out):
            assert (gauge(tuple(x), shares, len(shares), enough)[0] <= enough) == (out <= enough)


def test_friction_of_a_slip_is_the_nearest_point_of_the_limit_surface() -> None:
    """No feasible friction is nearer, in the metric of the mobility. A point inside is its own projection."""
    rng = np.random.default_rng(4)
    inside = 0
    for _ in range(200):
        _, shares = some_foot(rng)
        n = len(shares)
        d = tuple(float(x) for x in rng.uniform(0.1, 3.0, 3) * 10.0 ** rng.uniform(-1, 3))
        x = tuple(float(a) for a in 10.0 ** rng.uniform(-1, 2) * np.array(motion(rng)))
        s, resting = friction_at(x, d, motion(rng), shares, n)
        out = gauge(x, shares, n, np.inf)[0]
        assert resting == (out <= 1.0)
        inside += resting
        if resting:
            assert s == x
            continue
        assert gauge(s, shares, n, np.inf)[0] == pytest.approx(1.0, abs=1e-9)
        V = (np.array(x) - s) / d
        for _ in range(20):
            other = np.array(motion(rng))
            other /= gauge(tuple(other), shares, n, np.inf)[0]
            assert V @ (other - s) <= 1e-9 * np.linalg.norm(V)
    assert 20 < inside < 180


def test_a_slip_without_spin_meets_mu_f_z_and_spin_alone_mu_f_z_c() -> None:
    _, shares = shared(SOLE, (0.03, -0.01))
    np.testing.assert_allclose(
        friction_at((3.0, 4.0, 0.0), (1.0, 1.0, 1.0), (1.0, 0.0, 0.0), shares, 4)[0][:2], [0.6, 0.8]
    )
    _, shares = shared(SOLE, (0.0, 0.0))
    s, _ = friction_at((0.0, 0.0, -2.0), (1.0, 1.0, 1.0), (0.0, 0.0, -1.0), shares, 4)
    np.testing.assert_allclose(s, [0.0, 0.0, -1.0], atol=1e-7)
