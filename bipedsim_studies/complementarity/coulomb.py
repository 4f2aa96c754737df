"""Formulate Coulomb friction at acceleration level as an LCP, in the plane and in space with a pyramid of k sides.

A sliding contact has a known friction direction, lam_t = -mu lam_n v_t/|v_t|, which is exact in any direction. A
contact that may stick or start to slide has a force in the polygon of the directions, the inscribed k-gon of the
circle mu_0 lam_n. Such an LCP may have no solution (Painlevé) or several. :class:`CoulombOutcome` reports this, and
provides an answer only if it is unique.

Source: Hurmuzlu, Génot and Brogliato 2001, eq. 30 to 37; pyramids: Trinkle, Pang, Sudarsky and Lo 1997.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from bipedsim.errors import ConfigError
from bipedsim.numerics import Array
from bipedsim.numerics.lcp import TOLERANCE, pyramid as pyramid
from bipedsim_studies.complementarity.enumeration import LARGEST, all_solutions
from bipedsim_studies.complementarity.lcp import ComplementarityError, scaled_residual, solve_lcp
from bipedsim_studies.complementarity.normal_force_problem import factor

Verdict = Literal["unique", "several", "none", "unchecked", "unresolved"]


def pyramid_radius(angle: ArrayLike, sides: int) -> Array:
    """Return the largest friction of a k-sided pyramid over the friction of the cone, (...,), along ``angle`` [rad].

    It is cos(pi/k) / cos(phi - pi/k), with phi from the nearest corner: 1 at the corners, cos(pi/k) between them.
    """
    half = np.pi / sides
    return np.asarray(np.cos(half) / np.cos(np.mod(np.asarray(angle, dtype=np.float64), 2.0 * half) - half))


@dataclass(frozen=True)
class CoulombContacts:
    """Closed contacts, by rows of their Jacobians; contact axes are (t1, t2, n), or (t, n) in the plane.

    Args:
            normal: (m, nv) gradients of the gaps.
            tangent: (m, 2, nv) in space, (m, 1, nv) in the plane.
            friction_static: Static coefficient mu_0, (m,) or one number.
            friction_dynamic: Dynamic coefficient mu, (m,) or one number; ``friction_static`` by default.

        Raises:
            ConfigError: Shapes do not match, friction is negative, or numbers are not finite.
    """

    normal: Array
    tangent: Array
    friction_static: Array
    friction_dynamic: Array = field(default_factory=lambda: np.array(np.nan))

    def __post_init__(self) -> None:
        normal, tangent = np.asarray(self.normal, np.float64), np.asarray(self.tangent, np.float64)
        if (
            normal.ndim != 2
            or tangent.ndim != 3
            or tangent.shape[::2] != normal.shape
            or tangent.shape[1] not in (1, 2)
        ):
            shapes = f"{normal.shape} and {tangent.shape} must be (m, nv) and (m, 1 or 2, nv)"
            raise ConfigError(shapes, "shapes of normal and tangent")
        static = np.asarray(self.friction_static, np.float64)
        dynamic = np.asarray(self.friction_dynamic, np.float64)
        dynamic = static if dynamic.ndim == 0 and np.isnan(dynamic) else dynamic
        for name, array in (("normal", normal), ("tangent", tangent), ("friction", static), ("friction", dynamic)):
            if not np.isfinite(array).all():
                raise ConfigError("a number is not finite", f"{name} of contacts")
        for name, mu in (("friction_static", static), ("friction_dynamic", dynamic)):
            if mu.shape not in ((), (len(normal),)) or (mu < 0.0).any():
                raise ConfigError(f"must be one number or ({len(normal)},), none of them negative", name, mu)
            object.__setattr__(self, name, np.broadcast_to(mu, len(normal)).copy())
        object.__setattr__(self, "normal", normal)
        object.__setattr__(self, "tangent", tangent)

    @property
    def count(self) -> int:
        """Number of contacts."""
        return len(self.normal)

    def directions(self, sides: int) -> Array:
        """Return the corners (k, 1 or 2) of the pyramid: ``sides`` directions in space, two in the plane."""
        return pyramid(sides) if self.tangent.shape[1] == 2 else np.array([[1.0], [-1.0]])


@dataclass(frozen=True)
class CoulombLcp:
    """LCP A x + b, with the meaning of its unknowns x (n,).

    Attributes:
        A: (n, n) matrix.
        b: (n,) vector.
        free: (nv,) acceleration without contacts.
        response: (nv, n) acceleration per unit of x.
        tangential: (m, t, n) friction [N] per unit of x; the normal forces are x[:m].
    """

    A: Array
    b: Array
    free: Array
    response: Array
    tangential: Array


@dataclass(frozen=True)
class Candidate:
    """Solution of a Coulomb LCP.

    Attributes:
        normal: (m,) normal forces [N].
        tangential: (m, t) friction [N].
        acceleration: (nv,) generalised acceleration.
    """

    normal: Array
    tangential: Array
    acceleration: Array


@dataclass(frozen=True)
class CoulombOutcome:
    """Outcome of a Coulomb LCP.

    Attributes:
        verdict: "unique": one acceleration, although the forces may differ. "several": the accelerations differ.
            "none": no solution (Painlevé's paradox: only an impact without collision continues the motion).
            "unchecked": one solution is known, and the LCP is too large to enumerate. "unresolved": the LCP is too
            large to enumerate and Lemke's method finds no solution, which proves nothing.
        candidates: Solutions; with "several", all solutions with different accelerations (extreme points of a
            continuum).
        indeterminate_forces: Whether forces differ between solutions; False also for "unchecked".
    """

    verdict: Verdict
    candidates: tuple[Candidate, ...]
    indeterminate_forces: bool

    @property
    def answer(self) -> Candidate:
        """The unique solution.

        Raises:
            ComplementarityError: There is no solution, or there are several accelerations.
        """
        if self.verdict == "unique" or (self.verdict == "unchecked" and self.candidates):
            return self.candidates[0]
        raise ComplementarityError(
            {
                "none": "the Coulomb LCP has no solution: no finite forces satisfy contact and friction (Painlevé)",
                "several": f"the Coulomb LCP has {len(self.candidates)} accelerations and no rule to choose one",
            }.get(self.verdict, "Lemke's method found no solution, and the LCP is too large to enumerate")
        )


def coulomb_lcp(
    M: ArrayLike,
    h: ArrayLike,
    contacts: CoulombContacts,
    slip: ArrayLike,
    bias_normal: ArrayLike,
    bias_tangent: ArrayLike,
    *,
    sides: int = 4,
    slip_threshold: float = 1e-9,
) -> CoulombLcp:
    """Assemble the LCP of friction at acceleration level.

    The unknowns are the normal forces (m,). Each contact that may stick also has k forces >= 0 along the corners of
    its pyramid, and the acceleration zeta at which it starts to slide. Complementary to them are the gap accelerations,
    d_j . a_t + zeta, and mu_0 lam_n minus the sum of the k forces.

    Args:
        M: (nv, nv) mass matrix.
        h: (nv,) tau - nle [N, N.m].
        contacts: Closed contacts that neither separate nor approach.
        slip: (m, t) tangential velocities [m/s]; t = 1 in the plane, 2 in space.
        bias_normal: (m,) Jdot v of the gaps [m/s^2].
        bias_tangent: (m, t) Jdot v of the tangents [m/s^2].
        sides: Number k of sides of the pyramid in space.
        slip_threshold: Speed below which a contact is at rest [m/s].
    """
    velocity, drift_n, drift_t, free, inverse = _prepare(M, contacts, h, slip, bias_normal, bias_tangent)
    m, t = velocity.shape
    corners = contacts.directions(sides)
    k = len(corners)
    speed = np.linalg.norm(velocity, axis=1)
    slides = speed > slip_threshold
    resting = np.flatnonzero(~slides)
    size = m + len(resting) * (k + 1)
    tangential = np.zeros((m, t, size))
    for i in np.flatnonzero(slides):
        tangential[i, :, i] = -contacts.friction_dynamic[i] * velocity[i] / speed[i]
    for number, i in enumerate(resting):
        tangential[i, :, m + number * k : m + (number + 1) * k] = corners.T
    response = _response(inverse, contacts, tangential)
    A, b = np.zeros((size, size)), np.zeros(size)
    A[:m], b[:m] = contacts.normal @ response, contacts.normal @ free + drift_n
    for number, i in enumerate(resting):
        rows = slice(m + number * k, m + (number + 1) * k)
        last = m + len(resting) * k + number
        directions = corners @ contacts.tangent[i]
        A[rows], b[rows] = directions @ response, directions @ free + corners @ drift_t[i]
        A[rows, last] += 1.0
        A[last, i], A[last, rows] = contacts.friction_static[i], -1.0
    return CoulombLcp(A, b, free, response, tangential)


def planar_coulomb_lcp(
    M: ArrayLike,
    h: ArrayLike,
    contacts: CoulombContacts,
    slip: ArrayLike,
    bias_normal: ArrayLike,
    bias_tangent: ArrayLike,
    *,
    slip_threshold: float = 1e-9,
) -> CoulombLcp:
    """Assemble the LCP of the plane as in eq. 31 to 37; arguments as in :func:`coulomb_lcp` with t = 1.

    The unknowns are lam_n (m,), and for contacts that may stick lam_t+ = mu_0 lam_n + lam_t and the acceleration a_t-.
    Complementary to them are the gap accelerations, a_t+ = a_t + a_t-, and lam_t- = mu_0 lam_n - lam_t.
    """
    if contacts.tangent.shape[1] != 1:
        raise ConfigError("the planar LCP takes contacts with one; in space use coulomb_lcp", "tangents")
    velocity, drift_n, drift_t, free, inverse = _prepare(M, contacts, h, slip, bias_normal, bias_tangent)
    m = contacts.count
    slides = np.abs(velocity[:, 0]) > slip_threshold
    resting = np.flatnonzero(~slides)
    s = len(resting)
    size = m + 2 * s
    plus, minus = slice(m, m + s), slice(m + s, size)
    sign = np.sign(velocity[:, 0])
    tangential = np.zeros((m, 1, size))
    coefficient = np.where(slides, -contacts.friction_dynamic * sign, -contacts.friction_static)
    tangential[np.arange(m), 0, np.arange(m)] = coefficient
    tangential[resting, 0, m + np.arange(s)] = 1.0
    response = _response(inverse, contacts, tangential)
    A, b = np.zeros((size, size)), np.zeros(size)
    tangents = contacts.tangent[resting, 0]
    A[:m], b[:m] = contacts.normal @ response, contacts.normal @ free + drift_n
    A[plus], b[plus] = tangents @ response, tangents @ free + drift_t[resting, 0]
    A[plus, minus] += np.eye(s)
    A[minus, :m][np.arange(s), resting] = 2.0 * contacts.friction_static[resting]
    A[minus, plus] = -np.eye(s)
    return CoulombLcp(A, b, free, response, tangential)


def _prepare(M: ArrayLike, contacts: CoulombContacts, *vectors: ArrayLike) -> tuple[Array, Array, Array, Array, Array]:
    """Return slip, both biases, the free acceleration and M^-1; raise ConfigError if arguments do not match.

    Args:
        M: Mass matrix.
        contacts: Closed contacts.
        vectors: ``h``, ``slip``, ``bias_normal`` and ``bias_tangent`` of :func:`coulomb_lcp`.
    """
    L = factor(M)
    nv, m, t = len(L), contacts.count, contacts.tangent.shape[1]
    shapes = {"h": (nv,), "slip": (m, t), "bias_normal": (m,), "bias_tangent": (m, t)}
    arrays = [np.asarray(array, dtype=np.float64) for array in vectors]
    for (name, shape), array in zip(shapes.items(), arrays, strict=True):
        if array.shape != shape or not np.isfinite(array).all():
            raise ConfigError(f"{array.shape} must be {shape}, of finite numbers", f"shape of {name}")
    if contacts.normal.shape[1] != nv:
        raise ConfigError(f"{nv} of the mass matrix, {contacts.normal.shape[1]} of the contacts", "nv")
    half = np.linalg.solve(L, np.eye(nv))
    inverse = half.T @ half
    return arrays[1], arrays[2], arrays[3], inverse @ arrays[0], inverse


def _response(inverse: Array, contacts: CoulombContacts, tangential: Array) -> Array:
    """Return M^-1 (J_n^T lam_n + J_t^T lam_t) per unit of x (nv, n)."""
    generalised = np.einsum("itv,itn->vn", contacts.tangent, tangential)
    generalised[:, : contacts.count] += contacts.normal.T
    return inverse @ generalised


def solve_coulomb(lcp: CoulombLcp, *, largest: int = LARGEST) -> CoulombOutcome:
    """Return all accelerations of a Coulomb LCP, or one of them if it has more than ``largest`` unknowns.

    Enumeration takes seconds if a pyramid of many sides has many singular bases; Lemke's method takes a millisecond.
    """
    m = len(lcp.tangential)
    if lcp.b.size > largest:
        result = solve_lcp(lcp.A, lcp.b)
        if result.status != "solved":
            return CoulombOutcome("unresolved", (), False)
        return CoulombOutcome("unchecked", (_candidate(lcp, result.z),), False)
    forces = np.vstack([np.eye(lcp.b.size)[:m], lcp.tangential.reshape(-1, lcp.b.size)])
    solutions = all_solutions(lcp.A, lcp.b, probes=np.vstack([lcp.response, forces]))
    valid = [z for z in solutions.z if scaled_residual(lcp.A, lcp.b, z) <= TOLERANCE]
    if not valid:
        return CoulombOutcome("unresolved" if solutions.count else "none", (), False)
    candidates = [_candidate(lcp, z) for z in valid]
    distinct: list[Candidate] = []
    scale = 1.0 + np.abs(lcp.free).max() + max(float(np.abs(candidate.acceleration).max()) for candidate in candidates)
    for candidate in candidates:
        if all(np.abs(candidate.acceleration - known.acceleration).max() > 1e-7 * scale for known in distinct):
            distinct.append(candidate)
    load = np.array([np.concatenate([candidate.normal, candidate.tangential.ravel()]) for candidate in candidates])
    spread = float(np.ptp(load, axis=0).max(initial=0.0))
    return CoulombOutcome(
        "unique" if len(distinct) == 1 else "several",
        tuple(distinct),
        spread > 1e-7 * float(np.abs(load).max(initial=0.0)),
    )


def _candidate(lcp: CoulombLcp, x: Array) -> Candidate:
    """Return forces and acceleration of a solution x."""
    m = len(lcp.tangential)
    return Candidate(x[:m].copy(), lcp.tangential @ x, lcp.free + lcp.response @ x)
