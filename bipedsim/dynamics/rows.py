"""Velocities that a step fixes before the contact acts: rows g of G v+ = c, eliminated from the dynamics.

With M = L^T L and y = L^-T g^T, a change of velocity x = L^-1 xi fulfils g x = b where y xi = b. Orthonormalised, the
rows y = R^T Q say what of every xi is decided: xi - Q^T (Q xi - beta) has it right, whatever impulses made xi, and
differs from it as little as the kinetic energy can tell (Gauss's principle). So the feet are left with the Delassus
matrix G - (Q Y^T)^T Q Y^T and the free velocities that go with it: what a contact model makes of them, one that knows
nothing of the rows as well, is exact for both together. The impulses along the rows follow from R lambda = beta - Q xi.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from bipedsim.numerics import Array, Integers, kernel

DEPENDENT = 1e-9
"""A row of which no larger share than this is new says nothing that the rows before it do not say."""


class Rows(NamedTuple):
    """Rows of fixed velocities, R at most, over nv velocities, for K feet.

    Attributes:
        used: (1,) how many there are in this part of the step; 0 for a step as if there were none.
        size: (R,) square of the length of y, or of a longer one beside which a row is judged to be new.
        Q: (R, nv) in: the rows g; out: the orthonormal rows. R: (R, R) upper triangle of the factor.
        goal, goal_late: (R,) in: g v after the step, and the mean of g v over its way, where that is another one.
        beta, beta_late: (R,) the changes to these from what g v is before, along the orthonormal rows.
        after: (R,) ``goal`` along the orthonormal rows.
        along: (R, 6K) Q Y^T. whole, free: (6K, 6K), (6K,) Delassus matrix and free velocities without the rows.
        impulse: (R,) along g, that the rows needed: generalised, so [N.m.s] of a revolute joint.
        shift: (R,) work.
        given: (1,) kinetic energy that the rows gave, without contact, beside the step without them [J].
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
    """Make Q of rows y = L^-T g^T orthonormal, by Gram and Schmidt twice over, and fill R, ``after`` and betas.

    ``beta`` comes as g v before the step, which is taken off the goals. Rows before the ``first`` are done already.
    """
    for n in range(first, r.used[0]):
        y = r.Q[n]
        for m in range(n):
            r.R[m, n] = 0.0
        for _ in range(2):
            for m in range(n):
                other, share = r.Q[m], 0.0
                for i in range(y.shape[0]):
                    share += other[i] * y[i]
                r.R[m, n] += share
                for i in range(y.shape[0]):
                    y[i] -= share * other[i]
        left = 0.0
        for i in range(y.shape[0]):
            left += y[i] * y[i]
        if not left > DEPENDENT * DEPENDENT * r.size[n]:
            r.R[n, n] = r.beta[n] = r.beta_late[n] = r.after[n] = 0.0
            for i in range(y.shape[0]):
                y[i] = 0.0
            continue
        r.R[n, n] = left**0.5
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
    """Correct ``xi`` (nv,) in place to what the rows want; where it is not the ``late`` one, fill the impulses."""
    beta = r.beta_late if late else r.beta
    for n in range(r.used[0]):
        lacks = beta[n]
        for i in range(xi.shape[0]):
            lacks -= r.Q[n, i] * xi[i]
        for i in range(xi.shape[0]):
            xi[i] += r.Q[n, i] * lacks
        if not late:
            r.impulse[n] = lacks
    if not late:
        solve_back(r)


@kernel
def solve_back(r: Rows) -> None:
    """Turn impulses along the orthonormal rows into those along g, in place."""
    for n in range(r.used[0] - 1, -1, -1):
        if r.R[n, n] == 0.0:
            continue
        total = r.impulse[n]
        for m in range(n + 1, r.used[0]):
            total -= r.R[n, m] * r.impulse[m]
        r.impulse[n] = total / r.R[n, n]
