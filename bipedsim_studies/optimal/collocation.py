"""Solve an optimal control problem by the direct method: Hermite-Simpson collocation and a nonlinear programme.

C. R. Hargraves, S. W. Paris: Direct trajectory optimization using nonlinear programming and collocation. Journal of
Guidance, Control, and Dynamics 10(4), 1987.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from bipedsim.errors import BipedSimError
from bipedsim.numerics import Array
from bipedsim_studies.optimal.problem import OptimalTrajectory, Problem

ITERATIONS = 400
CLOSED = 1e-8
"""Largest accepted violation of a constraint at a solution."""


class NoOptimumError(BipedSimError):
    """No optimal motion was found."""


class _Programme:
    """Cost and constraints with derivatives, of z: x and u at the nodes, and u at the interval midpoints."""

    def __init__(self, problem: Problem, intervals: int) -> None:
        self._problem, self._n = problem, intervals
        self._h = problem.duration / intervals
        n, m = problem.states, problem.controls
        self._sizes = n * (intervals + 1), m * (intervals + 1), m * intervals
        self.t = np.linspace(0.0, problem.duration, intervals + 1)
        # The weights are those of Simpson's rule for u^T u.
        ends = np.full(intervals + 1, self._h / 3.0)
        ends[[0, -1]] = self._h / 6.0
        middles = np.full(m * intervals, self._h / 1.5)
        self._weights = np.concatenate([np.zeros(self._sizes[0]), np.tile(ends, m), middles])

    def parts(self, z: Array) -> tuple[Array, Array, Array]:
        """Return x (n, k), u (m, k) at the nodes, and u (m, k - 1) at the midpoints."""
        x, u, between = np.split(z, np.cumsum(self._sizes)[:-1])
        n, m = self._problem.states, self._problem.controls
        return x.reshape(n, -1), u.reshape(m, -1), between.reshape(m, -1)

    def cost(self, z: Array) -> float:
        return float(0.5 * self._weights @ z**2)

    def slope(self, z: Array) -> Array:
        return self._weights * z

    def _middle(self, x: Array, f: Array) -> Array:
        middle: Array = 0.5 * (x[:, :-1] + x[:, 1:]) + self._h / 8.0 * (f[:, :-1] - f[:, 1:])
        return middle

    def constraints(self, z: Array) -> Array:
        """Return the defects of the dynamics in the intervals, and the boundary conditions."""
        problem, h = self._problem, self._h
        x, u, between = self.parts(z)
        f = np.asarray(problem.flow(x, u), dtype=np.float64)
        halfway = problem.flow(self._middle(x, f), between)
        defects = x[:, 1:] - x[:, :-1] - h / 6.0 * (f[:, :-1] + 4.0 * halfway + f[:, 1:])
        return np.concatenate([defects.ravel(), problem.ends(x[:, 0], x[:, -1])])

    def constraint_slopes(self, z: Array) -> Array:
        """Return the Jacobian of :meth:`constraints`."""
        problem, h, count = self._problem, self._h, self._n
        n, m = problem.states, problem.controls
        x, u, between = self.parts(z)
        f = np.asarray(problem.flow(x, u), dtype=np.float64)
        A, B = problem.slopes(x, u)
        Am, Bm = problem.slopes(self._middle(x, f), between)
        matrix = np.zeros((n * count + problem.ties, len(z)))
        states = np.arange(self._sizes[0]).reshape(n, -1)
        controls = self._sizes[0] + np.arange(self._sizes[1]).reshape(m, -1)
        middles = self._sizes[0] + self._sizes[1] + np.arange(self._sizes[2]).reshape(m, -1)
        rows = np.arange(n * count).reshape(n, -1)
        unit = np.eye(n)
        for k in range(count):
            for end, sign in ((k, 1.0), (k + 1, -1.0)):
                middle = 0.5 * unit + sign * h / 8.0 * A[:, :, end]
                by_x = -sign * unit - h / 6.0 * (A[:, :, end] + 4.0 * Am[:, :, k] @ middle)
                by_u = -h / 6.0 * (B[:, :, end] + 4.0 * Am[:, :, k] @ (sign * h / 8.0 * B[:, :, end]))
                matrix[np.ix_(rows[:, k], states[:, end])] = by_x
                matrix[np.ix_(rows[:, k], controls[:, end])] = by_u
            matrix[np.ix_(rows[:, k], middles[:, k])] = -h / 1.5 * Bm[:, :, k]
        first, last = problem.end_slopes(x[:, 0], x[:, -1])
        ties = np.arange(n * count, len(matrix))
        matrix[np.ix_(ties, states[:, 0])] = first
        matrix[np.ix_(ties, states[:, -1])] = last
        return matrix


def collocated(problem: Problem, guess: OptimalTrajectory, intervals: int = 20) -> OptimalTrajectory:
    """Return the optimal motion at ``intervals`` + 1 nodes, starting from a ``guess``.

    Raises:
        NoOptimumError: No optimal motion is found.
    """
    programme = _Programme(problem, intervals)
    between = 0.5 * (programme.t[1:] + programme.t[:-1])
    start = [
        np.array([np.interp(times, guess.t, row) for row in rows]).ravel()
        for times, rows in ((programme.t, guess.x), (programme.t, guess.u), (between, guess.u))
    ]
    solution = minimize(
        programme.cost,
        np.concatenate(start),
        jac=programme.slope,
        method="SLSQP",
        constraints={"type": "eq", "fun": programme.constraints, "jac": programme.constraint_slopes},
        options={"maxiter": ITERATIONS, "ftol": 1e-10},
    )
    worst = float(np.abs(programme.constraints(solution.x)).max())
    if not solution.success or worst > CLOSED:
        reason = f"{solution.message}, constraints off by {worst:.3g}"
        raise NoOptimumError(f"no optimal step of {problem.duration:g} s: {reason}")
    x, u, _ = programme.parts(solution.x)
    return OptimalTrajectory(programme.t, x, u, float(solution.fun))
