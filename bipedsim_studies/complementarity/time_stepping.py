"""Solve contact and friction at velocity level, by one LCP per step for impulses instead of forces.

Impacts, sticking and sliding are the same problem, and Painlevé's paradox does not occur: without restitution, the LCP
always has a solution with finite impulses. The disadvantages are first order in h, and friction directions of a
pyramid also while sliding.

Source: Stewart and Trinkle 1996; Anitescu and Potra 1997; with restitution as in Adu-Bredu, *Kicking biped*, eq. 4 to
7.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bipedsim.errors import ConfigError
from bipedsim.numerics import Array
from bipedsim_studies.complementarity.coulomb import CoulombContacts
from bipedsim_studies.complementarity.lcp import ComplementarityError, solve_lcp
from bipedsim_studies.complementarity.normal_force_problem import factor


@dataclass(frozen=True)
class StepLcp:
    """LCP of one step, A x + b with x = (lam_n of active contacts, k friction impulses of each, slip speeds).

    Attributes:
        A: (n, n) matrix.
        b: (n,) vector.
        active: (m,) bool, the contacts in the LCP.
        v_free: (nv,) velocity after the step without contacts.
        response: (nv, n) change of velocity per unit of x.
        corners: (k, t) directions of the pyramid.
    """

    A: Array
    b: Array
    active: np.ndarray[tuple[int], np.dtype[np.bool_]]
    v_free: Array
    response: Array
    corners: Array


@dataclass(frozen=True)
class TimeSteppingResult:
    """Velocity and impulses of one step.

    Attributes:
        v: (nv,) velocity after the step.
        normal: (m,) normal impulses [N.s].
        tangential: (m, t) friction impulses [N.s].
        residual: Scaled residual of the LCP.
    """

    v: Array
    normal: Array
    tangential: Array
    residual: float


def assemble_step(
    M: ArrayLike,
    h: ArrayLike,
    v: ArrayLike,
    contacts: CoulombContacts,
    gap: ArrayLike,
    step: float,
    *,
    restitution: ArrayLike = 0.0,
    sides: int = 4,
) -> StepLcp:
    """Assemble the LCP of one step from v to v+ = v + M^-1 (step h + J_n^T lam_n + J_t^T lam_t).

    Without restitution, open contacts have J_n v+ >= -gap/step, so that they can close but not pass (Stewart and
    Trinkle). Closed contacts have J_n v+ >= 0 (Anitescu and Potra). With restitution, only closed contacts are active,
    and approaching ones have J_n v+ >= -e J_n v. An open contact must first close at its own speed to bounce.
    Penetration is not corrected.

    Friction uses ``friction_dynamic``, because a step does not distinguish impulses of an impact and of a sliding foot.

    Args:
        M: (nv, nv) mass matrix.
        h: (nv,) tau - nle [N, N.m].
        v: (nv,) velocity before the step.
        contacts: Contacts that are closed or may close.
        gap: (m,) distances [m].
        step: Duration [s].
        restitution: e in [0, 1], (m,) or one number.
        sides: Number k of sides of the pyramid in space.
    """
    L = factor(M)
    nv, m = len(L), contacts.count
    forces, before, distance = (np.asarray(array, dtype=np.float64) for array in (h, v, gap))
    for name, array, shape in (("h", forces, (nv,)), ("v", before, (nv,)), ("gap", distance, (m,))):
        if array.shape != shape or not np.isfinite(array).all():
            raise ConfigError(f"{array.shape} must be {shape}, of finite numbers", f"shape of {name}")
    if contacts.normal.shape[1] != nv:
        raise ConfigError(f"{nv} of the mass matrix, {contacts.normal.shape[1]} of the contacts", "nv")
    e = np.asarray(restitution, dtype=np.float64)
    if e.shape not in ((), (m,)) or not ((e >= 0.0) & (e <= 1.0)).all():
        raise ConfigError(f"must be one number or ({m},), from 0 to 1", "restitution", e)
    if not step > 0.0:
        raise ConfigError("s must be positive", "step", step)
    e = np.broadcast_to(e, m)
    active = (distance <= 0.0) | (e == 0.0)
    N, D, mu = contacts.normal[active], contacts.tangent[active], contacts.friction_dynamic[active]
    corners = contacts.directions(sides)
    directions = np.einsum("kt,itv->ikv", corners, D)
    a, k = len(N), len(corners)
    directions = directions.reshape(a * k, nv)
    half = np.linalg.solve(L, np.vstack([N, directions]).T)
    size = a * (k + 2)
    ones = np.kron(np.eye(a), np.ones((k, 1)))
    A = np.zeros((size, size))
    A[: a * (k + 1), : a * (k + 1)] = half.T @ half
    A[a : a * (k + 1), a * (k + 1) :] = ones
    A[a * (k + 1) :, :a] = np.diag(mu)
    A[a * (k + 1) :, a : a * (k + 1)] = -ones.T
    v_free = before + step * np.linalg.solve(L.T, np.linalg.solve(L, forces))
    bounce = e[active] * np.minimum(N @ before, 0.0)
    b = np.concatenate(
        [N @ v_free + bounce + np.maximum(distance[active], 0.0) / step, directions @ v_free, np.zeros(a)]
    )
    response = np.zeros((nv, size))
    response[:, : a * (k + 1)] = np.linalg.solve(L.T, half)
    return StepLcp(A, b, active, v_free, response, corners)


def solve_step(lcp: StepLcp) -> TimeSteppingResult:
    """Solve the LCP of a step.

    Without restitution, there is always a solution, and Lemke's method finds it. With restitution, there may be no
    solution if friction cones can balance each other (a jamming wedge). The condition q^T z >= 0 on the solutions of
    the LCP with q = 0 is then not satisfied.

    Raises:
        ComplementarityError: No solution is found.
    """
    result = solve_lcp(lcp.A, lcp.b)
    if result.status != "solved":
        reason = (
            "no solution on Lemke's path: restitution where the friction of contacts can jam them; set it to 0 there"
            if result.status == "ray"
            else "rounding, or a limit, ended the search"
        )
        raise ComplementarityError(
            f"the LCP of the step was not solved ({result.status} after {result.pivots} pivots): {reason}"
        )
    a, (k, t) = int(lcp.active.sum()), lcp.corners.shape
    normal, tangential = np.zeros(lcp.active.size), np.zeros((lcp.active.size, t))
    normal[lcp.active] = result.z[:a]
    tangential[lcp.active] = result.z[a : a * (k + 1)].reshape(a, k) @ lcp.corners
    return TimeSteppingResult(lcp.v_free + lcp.response @ result.z, normal, tangential, result.residual)
