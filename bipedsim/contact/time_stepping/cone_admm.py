"""ADMM for point contacts, after Carpentier, Le Lidec and Montaut (RSS 2024), with damped De Saxcé correction.

An iteration costs two matrix products of 6K rows. The inverse of rho + D reduces to one of 6K rows by Woodbury's
identity.
"""

from __future__ import annotations

import numpy as np

from bipedsim.contact.time_stepping.cone_problem import (
    ConeProblem,
    add_quadratic,
    fill_velocities,
    gather,
    multiply,
    multiply_blocks,
)
from bipedsim.numerics import assign, eliminate, kernel, point_velocity, solve_eliminated

ADMM_BLOCK = 50
"""Iterations of ADMM between two attempts of Newton's method."""
RELAXATION = 1.6
"""Over-relaxation of ADMM."""
PER_POINT = 100
"""Operations of an iteration per point, in addition to two products of 6K rows."""
BALANCE_EVERY, UNBALANCED, BALANCE = 10, 5.0, 3.0
"""Interval of the penalty updates [iterations], ratio of primal and dual residual that triggers one, and its factor."""


@kernel
def matrix_cost(q: ConeProblem) -> int:
    """Return the number of operations that the matrix of ADMM takes."""
    size = q.rhs.shape[0]
    return 2 * size * size * (size + 3)


@kernel
def _fill_admm_matrix(G, q: ConeProblem):
    """Fill W = (rho + G S)^-1 G, with which Woodbury's identity inverts rho + D; S = J^T J in scaled units."""
    size = q.rhs.shape[0]
    q.budget[0] -= matrix_cost(q)
    multiply_blocks(G, q.S, 1.0 / q.rho[0], q.A)
    rank = eliminate(q.A, size, q.rows, q.columns)
    for j in range(size):
        for i in range(size):
            q.rhs[i] = G[i, j] / q.rho[0]
        solve_eliminated(q.A, q.rhs, size, rank, q.twist, q.rows, q.columns)
        for i in range(size):
            q.W[i, j] = q.twist[i]


@kernel
def start_admm(G, q: ConeProblem, penalty):
    """Start ADMM from ``q.f``: z is the scaled impulse, y the scaled velocity after De Saxcé's correction.

    Points are scaled to a mobility of one, which leaves the cones unchanged.
    """
    q.S[:, :, :] = 0.0
    for m in range(q.points[0]):
        for a in range(3):
            for b in range(3):
                q.C[m, a, b] = 1.0 if a == b else 0.0
        add_quadratic(q.arm[m], q.C[m], 1.0 / q.mobility[m], q.S[q.foot[m]])
    q.rho[0] = penalty
    _fill_admm_matrix(G, q)
    fill_velocities(G, q)
    for m in range(q.points[0]):
        root = np.sqrt(q.mobility[m])
        for a in range(3):
            q.z[m, a] = root * q.f[m, a]
            q.y[m, a] = -q.u[m, a] / (root * q.rho[0])
        q.shift[m] = q.mu[m] * np.hypot(q.u[m, 0], q.u[m, 1])
        q.y[m, 2] -= q.shift[m] / (root * q.rho[0])


@kernel
def onto_cone(f, mu):
    """Project ``f`` (3,) on the nearest point of the cone |f_t| <= mu f_n."""
    t = np.sqrt(f[0] * f[0] + f[1] * f[1])
    # Pulls are tested first: without friction the cone is a line, and t <= mu f_n also holds for a pull along it.
    if mu * t <= -f[2]:
        f[:] = 0.0
        return
    if t <= mu * f[2]:
        return
    f[2] = (mu * t + f[2]) / (1.0 + mu * mu)
    share = mu * f[2] / t
    f[0] *= share
    f[1] *= share


@kernel
def admm(G, q: ConeProblem, damping):
    """Make a block of ADMM iterations and write the impulses to ``q.f``; a ``damping`` of 1 does not damp."""
    for iteration in range(ADMM_BLOCK):
        rho = q.rho[0]
        # De Saxcé's correction at z, then x = (rho + D)^-1 (rho (z - y) - g - correction).
        gather(q, q.z, True)
        multiply(G, q.wrench, q.twist)
        for m in range(q.points[0]):
            assign(q.u[m], point_velocity(q.twist[6 * q.foot[m] :], q.arm[m]))
            by = 1.0 / np.sqrt(q.mobility[m])
            for a in range(3):
                q.x[m, a] = rho * (q.z[m, a] - q.y[m, a]) - by * q.g[m, a]
            wanted = q.mu[m] * np.hypot(q.u[m, 0] + q.g[m, 0], q.u[m, 1] + q.g[m, 1])
            q.shift[m] += damping * (wanted - q.shift[m])
            q.x[m, 2] -= by * q.shift[m]
        gather(q, q.x, True)
        multiply(q.W, q.wrench, q.twist)
        primal = 0.0
        dual = 0.0
        for m in range(q.points[0]):
            assign(q.u[m], point_velocity(q.twist[6 * q.foot[m] :], q.arm[m]))
            by = 1.0 / np.sqrt(q.mobility[m])
            for a in range(3):
                q.x[m, a] = (q.x[m, a] - by * q.u[m, a]) / rho
                q.c[m, a] = q.z[m, a]
                q.y[m, a] += RELAXATION * q.x[m, a] + (1.0 - RELAXATION) * q.z[m, a]
                q.z[m, a] = q.y[m, a]
            onto_cone(q.z[m], q.mu[m])
            for a in range(3):
                q.y[m, a] -= q.z[m, a]
                primal = max(primal, abs(q.x[m, a] - q.z[m, a]))
                dual = max(dual, abs(q.z[m, a] - q.c[m, a]))
        if iteration % BALANCE_EVERY == BALANCE_EVERY - 1:
            factor = 1.0
            if primal > UNBALANCED * dual:
                factor = BALANCE
            elif dual > UNBALANCED * primal:
                factor = 1.0 / BALANCE
            if factor != 1.0 and q.budget[0] > matrix_cost(q):
                q.rho[0] *= factor
                _fill_admm_matrix(G, q)
                for m in range(q.points[0]):
                    for a in range(3):
                        q.y[m, a] /= factor
    q.used[0] += ADMM_BLOCK
    q.budget[0] -= ADMM_BLOCK * (2 * q.rhs.shape[0] ** 2 + PER_POINT * q.points[0])
    for m in range(q.points[0]):
        by = 1.0 / np.sqrt(q.mobility[m])
        for a in range(3):
            q.f[m, a] = by * q.z[m, a]
