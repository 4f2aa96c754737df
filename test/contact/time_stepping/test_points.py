"""Point contacts on arbitrary bodies: residuals if the solver stops at its tolerance or its budget."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from bipedsim.contact.time_stepping.cone_problem import ConeProblem
from bipedsim.contact.time_stepping.point_rows import PointRows, prepare_points
from bipedsim.contact.time_stepping.points import PENALTY, _linearise_projection, solve_points
from bipedsim.numerics import Array, box, entry

POINTS, VELOCITIES = 8, 12


class Room(NamedTuple):
    """A problem and the rows of its points."""

    problem: ConeProblem
    rows: PointRows


@entry
def _solve(boxed: Any) -> bool:
    a = boxed.arrays
    return solve_points(a.rows, a.problem)


@entry
def _linearise(boxed: Any, m: int) -> bool:
    return _linearise_projection(boxed.arrays.problem, m)


@entry
def _prepare(boxed: Any) -> None:
    prepare_points(boxed.arrays.rows, boxed.arrays.problem)


def problem(rng: np.random.Generator, tolerance: float) -> tuple[ConeProblem, Array]:
    """Return points of two bodies, some of them separating, and their rows, which are dependent."""
    J = rng.normal(size=(3 * POINTS, VELOCITIES))
    q = ConeProblem.of_feet(0, POINTS, tolerance, 1000)
    q.points[0] = POINTS
    q.mu[:] = rng.uniform(0.2, 1.5, POINTS)
    q.g[:] = (J @ rng.normal(size=VELOCITIES)).reshape(POINTS, 3)
    q.scale[0] = np.abs(q.g).max()
    return q, J


def solve(q: ConeProblem, J: Array) -> bool:
    """Solve it; the entries of each row are in an order of its own."""
    rows = PointRows.of_size(POINTS, VELOCITIES, 0)
    rows.width[:] = VELOCITIES
    for m in range(POINTS):
        rows.column[m] = np.random.default_rng(m).permutation(VELOCITIES)
        rows.Y[m] = J[3 * m : 3 * m + 3, rows.column[m]]
    boxed = box(Room(q, rows))
    _prepare(boxed)
    np.testing.assert_allclose(q.mobility, np.einsum("ij,ij->i", J, J).reshape(POINTS, 3).mean(axis=1), rtol=1e-13)
    return bool(_solve(boxed))


@pytest.mark.long
@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-8])
def test_a_point_that_leaves_carries_nothing(tolerance: float) -> None:
    """However far from rounding the solver has ended."""
    rng = np.random.default_rng(0)
    left = 0
    for _ in range(200):
        q, J = problem(rng, tolerance)
        if not solve(q, J):
            continue
        np.testing.assert_allclose(q.u, (J @ (J.T @ q.f.ravel())).reshape(-1, 3) + q.g, atol=1e-12 * q.scale[0])
        leaves = q.u[:, 2] > 2.0 * tolerance * q.scale[0]
        assert (q.f[leaves] == 0.0).all()
        left += int(leaves.sum())
    assert left > 200


def test_a_budget_cuts_short_and_leaves_half() -> None:
    rng = np.random.default_rng(0)
    cut = 0
    for _ in range(100):
        q, J = problem(rng, 1e-8)
        before = int(q.budget[0])
        solve(q, J)
        took, alone = before - int(q.budget[0]), q.f.copy()
        for given in (0, took // 20, 2 * took + 2):
            q.f[:] = 0.0
            q.budget[0] = given
            solved = solve(q, J)
            assert solved == (q.residual[0] <= q.tolerance)
            assert np.isfinite(q.f).all()
            assert (np.hypot(q.f[:, 0], q.f[:, 1]) <= q.mu * q.f[:, 2] * (1.0 + 1e-9) + 1e-12).all()
            assert int(q.budget[0]) >= given // 2
            cut += not solved
        np.testing.assert_array_equal(q.f, alone)
    assert cut > 50


@pytest.mark.parametrize("tolerance", [1e-1, 1e-2, 1e-3, 1e-4])
def test_no_impulse_is_outside_its_cone(tolerance: float) -> None:
    """This holds even if the bodies cannot reach the required speeds, so that there is no solution."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        q, J = problem(rng, tolerance)
        q.g[:] = 3.0 * rng.normal(size=q.g.shape)
        q.scale[0] = np.abs(q.g).max()
        q.budget[0] = rng.choice([0, 500, 2000, 10_000_000])
        solve(q, J)
        assert (np.hypot(q.f[:, 0], q.f[:, 1]) <= q.mu * q.f[:, 2] + 1e-12 * np.abs(q.f).max()).all()
        assert (q.f[q.mobility * q.f[:, 2] <= 1e-14 * q.scale[0]] == 0.0).all()


def nearest_in_cone(x: Array, mu: float) -> Array:
    """Return the point of the cone |x_t| <= mu x_n nearest to x, from the three cases of its faces."""
    t = float(np.hypot(x[0], x[1]))
    if t <= mu * x[2]:
        return x
    if mu * t <= -x[2]:
        return np.zeros(3)
    normal = (x[2] + mu * t) / (1.0 + mu * mu)
    return np.array([mu * normal * x[0] / t, mu * normal * x[1] / t, normal])


def test_the_method_of_multipliers_has_the_derivative_of_its_projection() -> None:
    """Compared with central differences; a wrong one would only cost steps, so no other test sees it."""
    rng = np.random.default_rng(1)
    q, _ = problem(rng, 1e-8)
    rows = PointRows.of_size(POINTS, VELOCITIES, 0)
    seen = set()
    for _ in range(30):
        q.mobility[:] = rng.uniform(0.5, 2.0, POINTS)
        q.f[:], q.u[:] = rng.normal(size=(2, POINTS, 3))
        q.u[:] *= PENALTY
        q.shift[:] = PENALTY * rng.uniform(0.0, 1.0, POINTS)
        boxed = box(Room(q, rows))
        for m in range(POINTS):
            rho = 1.0 / (PENALTY * q.mobility[m])

            def impulse(u: Array, m: int = m, rho: float = rho) -> Array:
                return nearest_in_cone(q.f[m] - rho * (u + np.array([0.0, 0.0, q.shift[m]])), q.mu[m])

            acts = bool(_linearise(boxed, m))
            at = impulse(q.u[m])
            assert acts == bool(at.any())
            if not acts:
                continue
            np.testing.assert_allclose(q.c[m], at, atol=1e-12)
            steps = 1e-6 * PENALTY * np.eye(3)
            change = [(impulse(q.u[m] - step) - impulse(q.u[m] + step)) / (2e-6 * PENALTY) for step in steps]
            np.testing.assert_allclose(q.C[m], np.transpose(change), atol=1e-4 * rho)
            seen.add(bool(np.hypot(at[0], at[1]) < (1.0 - 1e-9) * q.mu[m] * at[2]))
    assert seen == {False, True}, "inside the cone and on it"
