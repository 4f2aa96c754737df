"""Point contacts between any bodies: the cone problem in the space of the bodies' velocities.

The velocities y have unit mass: an impulse f at the points changes them by Y^T f. So D = Y Y^T, which is never formed.
Newton's steps linearise the same map as :mod:`.cone_newton`. A step is one solve for as many velocities as the bodies
have, for any number of points. If the steps do not converge, sweeps over the contacts alternate with them. A sweep
solves each contact alone against the others (block Gauss-Seidel), which works from any initial value.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.contact.time_stepping.cone_admm import onto_cone
from bipedsim.contact.time_stepping.cone_newton import STALLED_SOLVED, linearise
from bipedsim.contact.time_stepping.cone_problem import NOTHING, ConeProblem, copy_points, measure, reserve_budget
from bipedsim.contact.time_stepping.cone_sweeps import SWEEPS, solve_point
from bipedsim.numerics import Array, Integers, factor_from_end, kernel, solve_from_end, zeros_of

WEIGHTS = (1e-6, 1e-3, 1e-5, 1e-2)
"""Weights of the proximal term, in turn; they are relative to the mobility of a point.

The weight stays constant during Newton's steps. A robot at rest on the ground has many contacts that stick with
nearly all their friction. Their impulses are not unique, and a weight that changes makes the steps cycle between them.
"""
FIRST_STEPS, STEPS = 10, 30
"""Maximum number of Newton steps from the last impulses, and after sweeps.

Far from a solution, the residual rises for many of them.
"""
PER_POINT = 60
"""Operations of a step or a sweep per point, in addition to those per entry of its rows."""


class PointRows(NamedTuple):
    """Rows of at most C points over n velocities with unit mass.

    The elimination begins with the last velocity. If the velocities of a kinematic tree are in the order from base to
    leaves, as in pinocchio, contacts of single bodies with the ground cause no fill-in.

    Attributes:
        Y: (C, 3, n) rows, with entries only for the velocities that move the point.
        column: (C, n) index of the velocity of each entry. width: (C,) number of entries.
        own: (C, 3, 3) diagonal blocks of D [1/kg].
        y: (n,) Y^T f.
        A, rhs, step, order: (n, n), (n,), (n,), (n,) work arrays.
    """

    Y: Annotated[Array, "C", 3, "n"]
    column: Annotated[Integers, "C", "n"]
    width: Annotated[Integers, "C"]
    own: Annotated[Array, "C", 3, 3]
    y: Annotated[Array, "n"]
    A: Annotated[Array, "n", "n"]
    rhs: Annotated[Array, "n"]
    step: Annotated[Array, "n"]
    order: Annotated[Integers, "n"]

    @classmethod
    def of_size(cls, capacity: int, velocities: int) -> PointRows:
        """Return the arrays for at most ``capacity`` points."""
        return zeros_of(cls, {"C": capacity, "n": velocities})


@kernel
def fill_own(r: PointRows, q: ConeProblem) -> None:
    """Fill the diagonal blocks of D, and the mobilities of the points."""
    for m in range(q.points[0]):
        for a in range(3):
            for b in range(a + 1):
                total = 0.0
                for j in range(r.width[m]):
                    total += r.Y[m, a, j] * r.Y[m, b, j]
                r.own[m, a, b] = r.own[m, b, a] = total
        q.mobility[m] = (r.own[m, 0, 0] + r.own[m, 1, 1] + r.own[m, 2, 2]) / 3.0


@kernel
def velocity_at(r: PointRows, m: int, y: Array) -> tuple[float, float, float]:
    """Return the velocity of point ``m`` for the velocities ``y`` (n,)."""
    ux = uy = uz = 0.0
    rows, column = r.Y[m], r.column[m]
    for j in range(r.width[m]):
        by = y[column[j]]
        ux += rows[0, j] * by
        uy += rows[1, j] * by
        uz += rows[2, j] * by
    return ux, uy, uz


@kernel
def add_impulse(r: PointRows, m: int, f: tuple[float, float, float], y: Array) -> None:
    """Add the effect of the impulse ``f`` at point ``m`` to ``y`` (n,)."""
    rows, column = r.Y[m], r.column[m]
    for j in range(r.width[m]):
        y[column[j]] += rows[0, j] * f[0] + rows[1, j] * f[1] + rows[2, j] * f[2]


@kernel
def solve_points(r: PointRows, q: ConeProblem) -> bool:
    """Solve the problem from the impulses in ``q.f``; return whether the residual reached the tolerance.

    ``q.f`` and ``q.u`` are the best values found, projected on the cones; ``q.residual`` is their residual, at most
    twice as large after the projection. They are never NaN for finite input. The solver takes at most half of the
    remaining budget of the step. It makes some sweeps even without budget.

    Args:
        r: Rows of the points, with their diagonal blocks.
        q: The problem: points, mu, mobility, g, scale, enough and f are inputs. Feet and arms are not used.
    """
    reserved = reserve_budget(q)
    q.used[0] = 0
    q.residual[0] = np.inf
    for m in range(q.points[0]):
        for a in range(3):
            q.best[m, a] = 0.0
    _newton(r, q, WEIGHTS[0], FIRST_STEPS)
    block = 0
    copy_points(q.best, q.z)
    # The first sweeps always run: they are cheap, and near a solution they give a usable result.
    while q.residual[0] > q.tolerance and q.used[0] < q.iterations and (block == 0 or q.budget[0] > 0):
        # The sweeps continue from their own impulses, regardless of the result of Newton's method.
        copy_points(q.z, q.f)
        _sweep(r, q)
        copy_points(q.f, q.z)
        _newton(r, q, WEIGHTS[(block + 1) % len(WEIGHTS)], STEPS)
        block += 1
    copy_points(q.best, q.f)
    _fill_speeds(r, q)
    tolerated = q.residual[0] * q.scale[0]
    for m in range(q.points[0]):
        load = q.mobility[m] * q.f[m, 2]
        if load <= tolerated and q.u[m, 2] > load:
            # An open point has exactly no impulse; the residual would allow a small one.
            for a in range(3):
                q.f[m, a] = 0.0
        onto_cone(q.f[m], q.mu[m])
    _fill_speeds(r, q)
    now = measure(q)
    if now <= max(q.residual[0], q.tolerance):
        q.residual[0] = now
    else:
        for m in range(q.points[0]):
            load = q.mobility[m] * q.best[m, 2]
            for a in range(3):
                q.f[m, a] = q.best[m, a] if load > NOTHING * q.scale[0] else 0.0
            # Friction beyond its cone or a pull is never a result, even if it has the smaller residual.
            onto_cone(q.f[m], q.mu[m])
        _fill_speeds(r, q)
    q.budget[0] = max(q.budget[0], 0) + reserved
    return q.residual[0] <= q.tolerance


@kernel
def _fill_speeds(r: PointRows, q: ConeProblem) -> None:
    """Fill ``r.y`` with Y^T f and ``q.u`` with Y y + g."""
    for i in range(r.y.shape[0]):
        r.y[i] = 0.0
    for m in range(q.points[0]):
        if q.f[m, 0] != 0.0 or q.f[m, 1] != 0.0 or q.f[m, 2] != 0.0:
            add_impulse(r, m, (q.f[m, 0], q.f[m, 1], q.f[m, 2]), r.y)
    for m in range(q.points[0]):
        ux, uy, uz = velocity_at(r, m, r.y)
        q.u[m, 0] = q.g[m, 0] + ux
        q.u[m, 1] = q.g[m, 1] + uy
        q.u[m, 2] = q.g[m, 2] + uz


@kernel
def _newton(r: PointRows, q: ConeProblem, proximal: float, steps: int) -> None:
    """Make Newton steps from ``q.f`` with a constant weight of the proximal term, and store the best impulses."""
    smallest, stalled = np.inf, 0
    q.proximal[0] = proximal
    for _ in range(steps):
        _fill_speeds(r, q)
        now = measure(q)
        q.used[0] += 1
        if now < q.residual[0]:
            q.residual[0] = now
            copy_points(q.f, q.best)
        stalled = 0 if now < 0.5 * smallest else stalled + 1
        smallest = min(now, smallest)
        polished = smallest <= q.tolerance and stalled >= STALLED_SOLVED
        if polished or now <= q.enough[0] or q.used[0] >= q.iterations or q.budget[0] <= 0:
            return
        _step(r, q)


@kernel
def _step(r: PointRows, q: ConeProblem) -> None:
    """Make one Newton step: (1 + Y^T C Y) y = -Y^T c, then f of each point from its own velocity.

    Open points are not in the system, because their impulses vanish for any y.
    """
    size = r.y.shape[0]
    for i in range(size):
        r.rhs[i] = 0.0
        row = r.A[i]
        for j in range(size):
            row[j] = 0.0
        row[i] = 1.0
    entries = 0
    for m in range(q.points[0]):
        linearise(q, m)
        by = 1.0 / q.mobility[m]
        for a in range(3):
            q.c[m, a] *= by
            q.f[m, a] -= q.c[m, a]
            for b in range(3):
                q.C[m, a, b] *= by
        add_impulse(r, m, (-q.c[m, 0], -q.c[m, 1], -q.c[m, 2]), r.rhs)
        if q.C[m, 2, 2] != 0.0:
            _add_point(r, q, m)
            entries += r.width[m] * r.width[m]
    operations = factor_from_end(r.A, r.order)
    q.budget[0] -= 6 * entries + 2 * size * size + operations + PER_POINT * q.points[0]
    if operations == 0:
        return
    solve_from_end(r.A, r.order, r.rhs, r.step)
    for m in range(q.points[0]):
        if q.C[m, 2, 2] != 0.0:
            ux, uy, uz = velocity_at(r, m, r.step)
            for a in range(3):
                q.f[m, a] -= q.C[m, a, 0] * ux + q.C[m, a, 1] * uy + q.C[m, a, 2] * uz


@kernel
def _add_point(r: PointRows, q: ConeProblem, m: int) -> None:
    """Add Y^T C Y of point ``m`` to the system of a Newton step."""
    rows, column, width = r.Y[m], r.column[m], r.width[m]
    C = q.C[m]
    for i in range(width):
        x, y, z = rows[0, i], rows[1, i], rows[2, i]
        b0 = x * C[0, 0] + y * C[1, 0] + z * C[2, 0]
        b1 = x * C[0, 1] + y * C[1, 1] + z * C[2, 1]
        b2 = x * C[0, 2] + y * C[1, 2] + z * C[2, 2]
        row = r.A[column[i]]
        for j in range(width):
            row[column[j]] += b0 * rows[0, j] + b1 * rows[1, j] + b2 * rows[2, j]


@kernel
def _sweep(r: PointRows, q: ConeProblem) -> None:
    """Sweep over the contacts: reduce the speed of each one and project its impulse on the cone."""
    _fill_speeds(r, q)
    entries = 0
    for _ in range(SWEEPS):
        for m in range(q.points[0]):
            ux, uy, uz = velocity_at(r, m, r.y)
            x, y, z = solve_point(r.own[m], q.f[m], q.mu[m], q.g[m, 0] + ux, q.g[m, 1] + uy, q.g[m, 2] + uz)
            add_impulse(r, m, (x - q.f[m, 0], y - q.f[m, 1], z - q.f[m, 2]), r.y)
            q.f[m, 0], q.f[m, 1], q.f[m, 2] = x, y, z
            entries += r.width[m]
    q.used[0] += SWEEPS
    q.budget[0] -= 6 * entries + SWEEPS * PER_POINT * q.points[0]
