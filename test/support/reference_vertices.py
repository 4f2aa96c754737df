"""Contact of one step without any sets: every vertex is a point with unilateral normal force and an exact Coulomb cone.

ADMM solves the complementarity problem of Moreau and De Saxcé for many steps at once. The method is that of Carpentier,
Le Lidec, Montaut: "From compliant to rigid contact simulation: a unified and efficient approach" (RSS 2024). It shares
only two inputs with the models: the Delassus matrix and the velocities that position errors require.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from reference_contact import Step

from bipedsim.numerics import Array, Indices


@dataclass
class VertexSolution:
    """Point contacts solved, S steps with n vertices each.

    Attributes:
        wrench: (S, K, 6) impulses at the sole origins, ground axes.
        force: (S, n, 3) impulses at the vertices; one of many if the load is statically indeterminate.
        residual: (S,) error of complementarity, cone and maximum dissipation [m/s].
    """

    wrench: Array
    force: Array
    residual: Array


def onto_cone(x: Array, mu: Array) -> Array:
    """Return the nearest points (..., 3) of the friction cones |f_t| <= mu f_n."""
    t = np.linalg.norm(x[..., :2], axis=-1)
    n = x[..., 2]
    on_rim = (mu * t + n) / (1.0 + mu * mu)
    projected_n = np.where(mu * t <= -n, 0.0, np.where(t <= mu * n, n, on_rim))
    scale = np.where(t <= mu * n, 1.0, mu * projected_n / np.where(t > 0.0, t, 1.0))
    projected: Array = np.concatenate([scale[..., None] * x[..., :2], projected_n[..., None]], axis=-1)
    return projected


class _VertexProblem:
    """Steps as point contacts: velocities beyond the wanted ones are D f + g, forces f in the cones ``mu``.

    Attributes:
        J: (S, 3n, 6K) from foot to vertex velocities. D: (S, 3n, 3n). g: (S, 3n). mu: (S, n).
        length: (S, 1, 1) inverse of the mean mobility [kg], to compare forces with velocities.
    """

    def __init__(self, steps: list[Step], mu: Array) -> None:
        counts = [len(sole.vertices) for sole in steps[0].soles]
        self.n = sum(counts)
        self.mu = np.repeat(mu, counts, axis=1)
        self.J = np.array([_vertex_jacobian(step) for step in steps])
        G = np.array([step.projection.G for step in steps])
        free = np.array([step.projection.w_free for step in steps])
        wanted = np.array([np.concatenate([step.wanted(k).ravel() for k in range(len(counts))]) for step in steps])
        self.D = self.J @ G @ self.J.transpose(0, 2, 1)
        self.g = (self.J @ free[..., None])[..., 0] - wanted
        self.length = 3 * self.n / np.trace(self.D, axis1=1, axis2=2)[:, None, None]

    def velocity(self, which: Indices, f: Array) -> tuple[Array, Array]:
        """Return u and De Saxcé's u + (0, 0, mu |u_t|), each (S, n, 3)."""
        u = ((self.D[which] @ f[..., None])[..., 0] + self.g[which]).reshape(-1, self.n, 3)
        corrected = u.copy()
        corrected[:, :, 2] += self.mu[which] * np.linalg.norm(u[:, :, :2], axis=2)
        return u, corrected

    def gap(self, which: Indices, f: Array) -> Array:
        """Return the natural map (S, 3n) [m/s]: zero at a solution, and only there."""
        _, u = self.velocity(which, f)
        length = self.length[which]
        forces = f.reshape(-1, self.n, 3)
        missed: Array = (forces - onto_cone(forces - length * u, self.mu[which])) / length
        return missed.reshape(len(which), -1)

    def admm(self, iterations: int, tolerance: float) -> Array:
        """Return forces (S, 3n) with a natural map below ``tolerance`` [m/s], or as close as possible."""
        values, vectors = np.linalg.eigh(self.D)
        values = np.maximum(values, 0.0)
        which = np.arange(len(self.D))
        rho = np.sqrt(values[:, -1] * np.median(values[:, -self.J.shape[2] :], axis=1))[:, None]
        z, y = np.zeros_like(self.g), np.zeros_like(self.g)
        for iteration in range(iterations):
            if iteration % 100 == 0:
                which = which[np.abs(self.gap(which, z[which])).max(axis=1) > tolerance]
                V, V_rows, eigen, g = vectors[which], vectors[which].transpose(0, 2, 1), values[which], self.g[which]
                if len(which) == 0:
                    break
            u, corrected = self.velocity(which, z[which])
            r = rho[which]
            rhs = r * (z[which] - y[which]) - g - (corrected - u).reshape(len(which), -1)
            f = (V @ ((V_rows @ rhs[..., None]) / (eigen + r)[..., None]))[..., 0]
            relaxed = 1.6 * f - 0.6 * z[which]
            new = onto_cone((relaxed + y[which]).reshape(-1, self.n, 3), self.mu[which]).reshape(len(which), -1)
            y[which] += relaxed - new
            primal, dual = np.abs(f - new).max(axis=1), np.abs(new - z[which]).max(axis=1)
            z[which] = new
            if iteration % 20 == 19:
                factor = np.where(primal > 10.0 * dual, 2.0, np.where(dual > 10.0 * primal, 0.5, 1.0))[:, None]
                rho[which] *= factor
                y[which] /= factor
        return z


def _vertex_jacobian(step: Step) -> Array:
    feet = len(step.soles)
    blocks = []
    for k in range(feet):
        for arm in step.arms(k):
            block = np.zeros((3, 6 * feet))
            block[:, 6 * k : 6 * k + 3] = np.eye(3)
            block[:, 6 * k + 3 : 6 * k + 6] = np.cross(np.eye(3), arm).T
            blocks.append(block)
    return np.concatenate(blocks)


def solve_vertices(steps: list[Step], mu: Array, iterations: int = 4000, tolerance: float = 1e-10) -> VertexSolution:
    """Solve the per-vertex Coulomb problem of steps with as many vertices each; ``mu`` (S, K)."""
    problem = _VertexProblem(steps, mu)
    f = problem.admm(iterations, tolerance)
    residual = np.abs(problem.gap(np.arange(len(steps)), f)).max(axis=1)
    wrench = (problem.J.transpose(0, 2, 1) @ f[..., None])[..., 0]
    return VertexSolution(wrench.reshape(len(steps), -1, 6), f.reshape(len(steps), -1, 3), residual)
