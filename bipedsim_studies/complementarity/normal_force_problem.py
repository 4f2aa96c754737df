"""Compute forces of frictionless contacts at acceleration level, by two methods that must agree.

The dynamics are M a = h + J^T lam with h = tau - nle, and a gap opens with the acceleration J a + Jdot v. One method is
the LCP between gap acceleration and force. The other is Gauss' principle: among the accelerations that close no gap, it
selects the nearest to the free acceleration in the metric of M. With dependent constraints (a chair with four legs),
the forces are one of many solutions, but the acceleration is unique.

Source: Hurmuzlu, Génot and Brogliato, *Modeling, stability and control of biped robots: a general framework*, 2001, eq.
13 to 16.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from bipedsim.errors import ConfigError
from bipedsim.numerics import Array
from bipedsim.numerics.lcp import TOLERANCE
from bipedsim_studies.complementarity.lcp import ComplementarityError, LcpResult, solve_lcp


@dataclass(frozen=True)
class NormalForces:
    """Forces and acceleration of frictionless contacts.

    Attributes:
        force: (m,) normal forces [N]; with dependent constraints, one of many solutions.
        acceleration: (nv,) unique acceleration a.
        gap_acceleration: (m,) acceleration of the gaps, J a + Jdot v [m/s^2].
    """

    force: Array
    acceleration: Array
    gap_acceleration: Array


def factor(M: ArrayLike) -> Array:
    """Return the Cholesky factor L (nv, nv) of a mass matrix M = L L^T; raise ConfigError if M is invalid."""
    mass = np.asarray(M, dtype=np.float64)
    if mass.ndim != 2 or mass.shape[0] != mass.shape[1]:
        raise ConfigError(f"not square, but {mass.shape}", "mass matrix")
    if not np.allclose(mass, mass.T, rtol=1e-9, atol=1e-12 * float(np.abs(mass).max(initial=0.0))):
        raise ConfigError("not symmetric: fill the lower triangle of pinocchio's crba first", "mass matrix")
    try:
        lower: Array = np.linalg.cholesky(mass).astype(np.float64)
    except np.linalg.LinAlgError:
        raise ConfigError("not positive definite: a joint moves no mass and no armature", "mass matrix") from None
    return lower


def _contacts(M: ArrayLike, h: ArrayLike, J: ArrayLike, bias: ArrayLike) -> tuple[Array, Array, Array, Array]:
    """Return L, a_free, G = J L^-T and b = J a_free + bias."""
    L = factor(M)
    nv = len(L)
    forces, rows, drift = (np.asarray(array, dtype=np.float64) for array in (h, J, bias))
    if forces.shape != (nv,) or rows.ndim != 2 or rows.shape[1] != nv or drift.shape != (len(rows),):
        shapes = f"{forces.shape}, {rows.shape}, {drift.shape} must be ({nv},), (m, {nv}), (m,)"
        raise ConfigError(shapes, "shapes of h, J, bias")
    for name, array in (("h", forces), ("J", rows), ("bias", drift)):
        if not np.isfinite(array).all():
            raise ConfigError("a number is not finite", name)
    free: Array = np.linalg.solve(L.T, np.linalg.solve(L, forces)).astype(np.float64)
    G: Array = np.linalg.solve(L, rows.T).T.astype(np.float64)
    return L, free, G, rows @ free + drift


def normal_force_lcp(M: ArrayLike, h: ArrayLike, J: ArrayLike, bias: ArrayLike) -> tuple[Array, Array]:
    """Return A = J M^-1 J^T (m, m) and b = J M^-1 h + Jdot v (m,) of eq. 13.

    The LCP is 0 <= A lam + b, complementary to lam >= 0.

    Args:
        M: (nv, nv) mass matrix.
        h: (nv,) tau - nle [N, N.m].
        J: (m, nv) gradients of the gaps of closed contacts.
        bias: (m,) Jdot v [m/s^2].
    """
    _, _, G, b = _contacts(M, h, J, bias)
    return G @ G.T, b


def normal_forces(M: ArrayLike, h: ArrayLike, J: ArrayLike, bias: ArrayLike) -> NormalForces:
    """Solve the LCP of eq. 13; arguments as in :func:`normal_force_lcp`.

    Raises:
        ComplementarityError: No acceleration keeps all gaps closed or opening, for example between two approaching
            walls; or rounding makes the answer inaccurate.
    """
    L, free, G, b = _contacts(M, h, J, bias)
    result = solve_lcp(G @ G.T, b)
    if result.status != "solved":
        raise ComplementarityError(_reason(result), "normal forces")
    acceleration = free + np.linalg.solve(L.T, G.T @ result.z)
    return NormalForces(result.z, acceleration, result.w)


def _reason(result: LcpResult) -> str:
    """Return a message that explains why an LCP without friction is not solved."""
    if result.status == "ray":
        return (
            "no acceleration lets all gaps stay closed or open: the constraints depend on each other and their biases "
            "contradict (Lemke's method ended in a ray, which proves it for A = J M^-1 J^T)"
        )
    return (
        f"the LCP of the normal forces was not solved: {result.status} after {result.pivots} pivots, "
        f"residual {result.residual:.3g}"
    )


def gauss_principle(M: ArrayLike, h: ArrayLike, J: ArrayLike, bias: ArrayLike) -> NormalForces:
    """Solve the QP of Gauss' principle; arguments as in :func:`normal_force_lcp`.

    Eq. 16 is min |x|^2 over G x + b >= 0 with x = L^T (a - a_free). This is the least distance problem of Lawson and
    Hanson (1974, section 23.4), which is one nonnegative least-squares problem. Its multipliers solve eq. 14. Because
    of x = G^T lam, they also solve eq. 15.

    Raises:
        ComplementarityError: As in :func:`normal_forces`.
    """
    L, free, G, b = _contacts(M, h, J, bias)
    # x is scaled so that constraints are met at a distance near one. The last entry of r then keeps its digits.
    norms = np.linalg.norm(G, axis=1)
    movable = norms > 1e-12 * max(float(norms.max(initial=0.0)), 1e-300)
    unit = float(np.max(-b[movable] / norms[movable], initial=0.0))
    if (b[~movable] < 0.0).any():
        closing = int(np.flatnonzero(~movable & (b < 0.0))[0])
        raise ComplementarityError("it closes, and no force changes that", f"gap {closing}")
    if unit <= 0.0:
        return NormalForces(np.zeros_like(b), free, b.copy())
    rows = np.zeros_like(G)
    level = np.zeros_like(b)
    rows[movable], level[movable] = G[movable] / norms[movable, None], -b[movable] / norms[movable] / unit
    columns = np.vstack([rows.T, level])
    target = np.zeros(len(columns))
    target[-1] = 1.0
    weights, _ = nnls(columns, target)
    last = 1.0 - float(level @ weights)
    if last <= TOLERANCE:
        raise ComplementarityError("no acceleration lets all stay closed or open: their biases contradict", "gaps")
    force = np.zeros_like(b)
    force[movable] = unit * weights[movable] / last / norms[movable]
    acceleration = free + np.linalg.solve(L.T, G.T @ force)
    return NormalForces(force, acceleration, G @ (G.T @ force) + b)
