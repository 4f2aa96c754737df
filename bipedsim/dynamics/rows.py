"""Elimination of velocity constraints before the contact acts: rows g of G v+ = c.

Let M = L^T L and y = L^-T g^T. A change of velocity x = L^-1 xi satisfies g x = b if and only if y xi = b. The rows
are orthonormalised as y = R^T Q. For any impulses behind xi, the vector xi - Q^T (Q xi - beta) satisfies the
constraints. It is the closest such vector in the metric of the kinetic energy (Gauss's principle). The feet therefore
have the Delassus matrix G - (Q Y^T)^T Q Y^T and the corresponding free velocities. A contact model solves with these
and needs no knowledge of the rows; the result is exact for contact and constraints together. The impulses along the
rows follow from R lambda = beta - Q xi.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from bipedsim.numerics import Array, Integers, kernel

DEPENDENT = 1e-9
"""A row is redundant if its part orthogonal to the earlier rows is at most this fraction of its length."""


class Rows(NamedTuple):
    """Store at most R velocity constraints over nv velocities, for K feet.

    Attributes:
        used: (1,) number of constraints in this part of the step; 0 ignores all of them.
        size: (R,) squared length of y, or a larger reference value for the test of redundancy.
        Q: (R, nv) in: the rows g; out: the orthonormal rows. R: (R, R) upper triangle of the factor.
        goal, goal_late: (R,) in: required g v after the step, and required mean of g v over the displacement, where
            the two differ.
        beta, beta_late: (R,) the required changes of g v to these values, along the orthonormal rows.
        after: (R,) ``goal`` along the orthonormal rows.
        along: (R, 6K) Q Y^T. whole, free: (6K, 6K), (6K,) Delassus matrix and free velocities without the rows.
        impulse: (R,) constraint impulses along g: generalised, so [N.m.s] for a revolute joint.
        shift: (R,) work array.
        given: (1,) kinetic energy that the rows add without contact, relative to the step without rows [J].
    """

    used: Annotated[Integers, 1]
    size: Annotated[Array, "R"]
    Q: Annotated[Array, "R", "v"]
    R: Annotated[Array, "R", "R"]
    goal: Annotated[Array, "R"]
    goal_late: Annotated[Array, "R"]
    beta: Annotated[Array, "R"]
    beta_late: Annotated[Array, "R"]
    after: Annotated[Array, "R"]
    along: Annotated[Array, "R", "6K"]
    whole: Annotated[Array, "6K", "6K"]
    free: Annotated[Array, "6K"]
    impulse: Annotated[Array, "R"]
    shift: Annotated[Array, "R"]
    given: Annotated[Array, 1]


@kernel
def orthonormalise(r: Rows, first: int) -> None:
    """Orthonormalise the rows y = L^-T g^T in Q by a repeated Gram-Schmidt method; fill R, ``after`` and the betas.

    On input, ``beta`` is g v before the step, which is subtracted from the goals. Rows before ``first`` are
    orthonormal already.
    """
    for n in range(first, r.used[0]):
        y = r.Q[n]
        for m in range(n):
            r.R[m, n] = 0.0
        for _ in range(2):
            for m in range(n):
                earlier, share = r.Q[m], 0.0
                for i in range(y.shape[0]):
                    share += earlier[i] * y[i]
                r.R[m, n] += share
                for i in range(y.shape[0]):
                    y[i] -= share * earlier[i]
        remainder = 0.0
        for i in range(y.shape[0]):
            remainder += y[i] * y[i]
        if not remainder > DEPENDENT * DEPENDENT * r.size[n]:
            r.R[n, n] = r.beta[n] = r.beta_late[n] = r.after[n] = 0.0
            for i in range(y.shape[0]):
                y[i] = 0.0
            continue
        r.R[n, n] = remainder**0.5
        before = r.beta[n]
        goal, early, late = r.goal[n], r.goal[n] - before, r.goal_late[n] - before
        for m in range(n):
            goal -= r.R[m, n] * r.after[m]
            early -= r.R[m, n] * r.beta[m]
            late -= r.R[m, n] * r.beta_late[m]
        r.after[n] = goal / r.R[n, n]
        r.beta[n] = early / r.R[n, n]
        r.beta_late[n] = late / r.R[n, n]
        for i in range(y.shape[0]):
            y[i] /= r.R[n, n]


@kernel
def impose(r: Rows, xi: Array, late: bool) -> None:
    """Correct ``xi`` (nv,) in place so that it satisfies the rows; fill the impulses unless ``late`` is set."""
    beta = r.beta_late if late else r.beta
    for n in range(r.used[0]):
        deficit = beta[n]
        for i in range(xi.shape[0]):
            deficit -= r.Q[n, i] * xi[i]
        for i in range(xi.shape[0]):
            xi[i] += r.Q[n, i] * deficit
        if not late:
            r.impulse[n] = deficit
    if not late:
        solve_back(r)


@kernel
def energy_added(r: Rows, first: int, impulse: Array) -> float:
    """Return the kinetic energy that the rows from ``first`` on add in a step with contact [J].

    It is ``given``, and the work of the change of the row impulses due to the contact ``impulse`` (K, 6), at the
    velocities that the rows impose. The work of the contact itself is not included.
    """
    total = r.given[0]
    for n in range(first, r.used[0]):
        share = 0.0
        for a in range(r.along.shape[1]):
            share += r.along[n, a] * impulse[a // 6, a % 6]
        total -= r.after[n] * share
    return total


@kernel
def solve_back(r: Rows) -> None:
    """Convert impulses along the orthonormal rows to impulses along g, in place."""
    for n in range(r.used[0] - 1, -1, -1):
        if r.R[n, n] == 0.0:
            continue
        total = r.impulse[n]
        for m in range(n + 1, r.used[0]):
            total -= r.R[n, m] * r.impulse[m]
        r.impulse[n] = total / r.R[n, n]
