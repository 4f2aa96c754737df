"""Solve an optimal control problem by the indirect method: the conditions of optimality as a boundary value problem.

With H = u^T u / 2 + p^T f, the conditions are p' = -dH/dx and 0 = dH/du. At the ends, p(0) = -(dg/dx(0))^T lambda and
p(T) = (dg/dx(T))^T lambda. H is constant, because f does not depend on time. It is the additional cost per second of
duration.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_bvp
from scipy.interpolate import CubicSpline

from bipedsim.numerics import Array
from bipedsim_studies.optimal.collocation import NoOptimumError
from bipedsim_studies.optimal.problem import OptimalTrajectory, Problem

TOLERANCE = 1e-7
MOST_NODES = 5000
FINE = 400


@dataclass(frozen=True, eq=False)
class Extremal(OptimalTrajectory):
    """Motion that satisfies the first-order conditions of optimality.

    Attributes:
        p: (n, k) multipliers of the dynamics.
        hamiltonian: (k,) H.
        multipliers: (r,) multipliers lambda of the boundary conditions.
    """

    p: Array
    hamiltonian: Array
    multipliers: Array


def _control(problem: Problem, x: Array, p: Array) -> Array:
    """Return u = -(df/du)^T p, where f is linear in u."""
    _, by_u = problem.slopes(x, np.zeros((problem.controls, x.shape[1])))
    return -np.einsum("imk,ik->mk", by_u, p)


def _costates(problem: Problem, guess: OptimalTrajectory) -> tuple[Array, Array]:
    """Return p (n, k) and lambda (r,) that best fit a motion; p' = -(df/dx)^T p is linear, and u is linear in p."""
    n, steps = problem.states, FINE
    t = np.linspace(0.0, problem.duration, steps + 1)
    x, u = CubicSpline(guess.t, guess.x, axis=1)(t), CubicSpline(guess.t, guess.u, axis=1)(t)
    A, B = problem.slopes(x, u)
    transition = np.zeros((steps + 1, n, n))
    transition[-1] = np.eye(n)
    h = t[1]
    for k in range(steps, 0, -1):
        here, before = A[:, :, k].T, A[:, :, k - 1].T
        transition[k - 1] = np.linalg.solve(np.eye(n) - 0.5 * h * before, (np.eye(n) + 0.5 * h * here) @ transition[k])
    rows = np.concatenate([-B[:, :, k].T @ transition[k] for k in range(steps + 1)])
    last = np.linalg.lstsq(rows, u.T.ravel(), rcond=None)[0]
    p = np.einsum("kij,j->ik", transition, last)
    first_slopes, last_slopes = problem.end_slopes(x[:, 0], x[:, -1])
    multipliers = np.linalg.lstsq(
        np.vstack([-first_slopes.T, last_slopes.T]), np.concatenate([p[:, 0], last]), rcond=None
    )[0]
    return np.array([np.interp(guess.t, t, row) for row in p]), multipliers


def extremal(problem: Problem, guess: OptimalTrajectory) -> Extremal:
    """Return the motion near another one that satisfies the necessary conditions.

    Raises:
        NoOptimumError: No such motion is found.
    """
    n = problem.states
    p, multipliers = _costates(problem, guess)

    def rate(_t: Array, y: Array, _ties: Array) -> Array:
        x, p = y[:n], y[n:]
        u = _control(problem, x, p)
        A, _ = problem.slopes(x, u)
        return np.vstack([problem.flow(x, u), -np.einsum("ijk,ik->jk", A, p)])

    def boundary(first: Array, last: Array, ties: Array) -> Array:
        by_first, by_last = problem.end_slopes(first[:n], last[:n])
        ends = np.asarray(problem.ends(first[:n], last[:n]))
        return np.concatenate([ends, first[n:] + by_first.T @ ties, last[n:] - by_last.T @ ties])

    solution = solve_bvp(
        rate, boundary, guess.t, np.vstack([guess.x, p]), multipliers, tol=TOLERANCE, max_nodes=MOST_NODES
    )
    if solution.status != 0:
        raise NoOptimumError(f"no extremal step of {problem.duration:g} s: {solution.message}")
    t = np.linspace(0.0, problem.duration, FINE + 1)
    y = solution.sol(t)
    x, p = y[:n], y[n:]
    u = _control(problem, x, p)
    half = 0.5 * np.square(u).sum(axis=0)
    H = half + np.einsum("ik,ik->k", p, problem.flow(x, u))
    return Extremal(t, x, u, float(CubicSpline(t, half).integrate(0.0, problem.duration)), p, H, solution.p)
