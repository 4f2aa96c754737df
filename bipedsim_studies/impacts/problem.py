"""Check the arguments of impact laws, enumerate Coulomb friction states, and define the result."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular
from scipy.optimize import lsq_linear, nnls

from bipedsim.errors import BipedSimError, ConfigError
from bipedsim.numerics import Array, Flags

RESTING = 1e-9
"""A contact is at rest below this fraction of the speed that the whole kinetic energy could give it."""
GOOD_ENOUGH = 1e-12
"""Relative Kuhn-Tucker residual of a projection at which no other solver is tried."""
ENUMERATED = 12
"""Maximum number of contacts for which all sets are tried if the solvers fail."""
FRICTION_CONTACTS = 5
"""Maximum number of contacts whose sticking and sliding states are enumerated; each contact has up to six."""


class NoImpactOutcomeError(BipedSimError):
    """A law yields no outcome: none exists, none is reached, or the contacts are almost dependent."""


@dataclass(frozen=True, eq=False)
class Friction:
    """Coulomb friction of planar contacts, with one tangential direction per contact (eq. 30).

    Attributes:
        rows: (m, nv) tangential rows; ``rows @ v`` is the slip velocity of each contact [m/s]. This is G^T of eq. 39.
        coefficient: mu, a number or (m,), at least 0.
        restitution: Restitution of the slip, a number or (m,), 0 to 1, for the law that supports it.
    """

    rows: ArrayLike
    coefficient: ArrayLike
    restitution: ArrayLike = 0.0


@dataclass(frozen=True, eq=False)
class ImpactResult:
    """Outcome of an impact: M (v_after - v_before) = J^T impulse + G^T tangential_impulse.

    Attributes:
        v_after: (nv,) generalised velocity after the impact [m/s, rad/s].
        impulse: (m,) normal impulses [N.s]; positive impulses separate the bodies. If rows of J are dependent, only
            ``J.T @ impulse`` is determined, and these values are one of many solutions.
        tangential_impulse: (m,) friction impulses [N.s], zeros without friction.
        contacts: Active contacts, one tuple for each phase or each impact of a sequence.
        energy_change: Kinetic energy after minus before [J], T_L of Fig. 10.
        alternatives: Further outcomes, if a law admits several without a preference.
        open_sequences: Number of sequences of impacts that were cut off, so that outcomes may be missing.
    """

    v_after: Array
    impulse: Array
    tangential_impulse: Array
    contacts: tuple[tuple[int, ...], ...]
    energy_change: float
    alternatives: tuple[ImpactResult, ...] = ()
    open_sequences: int = 0

    @property
    def outcomes(self) -> tuple[ImpactResult, ...]:
        """This outcome and its alternatives."""
        return (self, *self.alternatives)


def indices(mask: Flags) -> tuple[int, ...]:
    """Return the indices at which ``mask`` is true."""
    return tuple(int(i) for i in np.flatnonzero(mask))


def _array(name: str, value: Any, shape: tuple[int | str, ...]) -> Array:
    """Return ``value`` as a finite float array of ``shape``; names in ``shape`` allow any length above 0."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"must be numbers of shape {shape}", name, value) from error
    fits = array.ndim == len(shape) and all(
        have == want if isinstance(want, int) else have > 0 for have, want in zip(array.shape, shape, strict=False)
    )
    if not fits:
        raise ConfigError(f"shape {array.shape} must be {shape}".replace("'", ""), name)
    if not np.isfinite(array).all():
        raise ConfigError("must be finite", name, array)
    return array


def _per_contact(name: str, value: ArrayLike, m: int, highest: float) -> Array:
    """Return one number per contact within [0, highest]."""
    array_like = np.asarray(value)
    array = _array(name, np.broadcast_to(array_like, (m,)) if array_like.ndim == 0 else array_like, (m,))
    if (array < 0.0).any() or (array > highest).any():
        raise ConfigError(f"must be between 0 and {highest:g}", name, np.asarray(value))
    return array


def _nothing(columns: Array, y: Array) -> Array:
    return np.zeros(columns.shape[1])


def _by_nnls(columns: Array, y: Array) -> Array:
    try:
        x: Array = nnls(columns, -y, maxiter=100 * (columns.shape[1] + 1))[0]
    except RuntimeError:
        # The solver raises this error when it reaches the maximum number of iterations.
        return _nothing(columns, y)
    return x


def _by_bvls(columns: Array, y: Array) -> Array:
    return np.maximum(lsq_linear(columns, -y, (0.0, np.inf), method="bvls", tol=1e-15, max_iter=200).x, 0.0)


def _by_sets(columns: Array, y: Array) -> Iterator[Array]:
    """Yield the least-squares solution for each set of up to ENUMERATED columns, with the smallest sets first."""
    k = columns.shape[1] if columns.shape[1] <= ENUMERATED else 0
    for count in range(1, min(k, len(y)) + 1):
        for chosen in itertools.combinations(range(k), count):
            x = np.zeros(k)
            x[list(chosen)] = np.linalg.lstsq(columns[:, chosen], -y, rcond=None)[0]
            if x.min() >= 0.0:
                yield x


def _nearest(columns: Array, y: Array) -> Array:
    """Return x >= 0 that minimises |columns x + y|, for columns and y of length one.

    Each answer is validated by the Kuhn-Tucker conditions. With dependent columns and gradients near rounding, scipy's
    solvers sometimes return a point far from the solution. In this case all sets of columns are tried.

    Raises:
        NoImpactOutcomeError: No answer is within 1e-9; there are more than ENUMERATED columns, or almost dependent
            ones.
    """
    best, smallest = np.zeros(columns.shape[1]), np.inf
    answers = itertools.chain((solve(columns, y) for solve in (_nothing, _by_nnls, _by_bvls)), _by_sets(columns, y))
    for x in answers:
        slope = columns.T @ (columns @ x + y)
        # The violations are penetrating velocities, and velocities at pushing contacts. Large impulses must not scale
        # rounding.
        violation = max(-float(slope.min()), float(np.abs(x * slope).max() / max(1.0, x.max())))
        if violation < smallest:
            best, smallest = x, violation
        if smallest <= GOOD_ENOUGH:
            return best
    if smallest <= RESTING:
        return best
    raise NoImpactOutcomeError(
        f"the projection on {len(best)} contacts failed, Kuhn-Tucker residual {smallest:.2g}; "
        "leave out contacts that repeat others, as the inner vertices of a sole do"
    )


class ImpactProblem:
    """Problem of an impact in the coordinates y = L^T v with M = L L^T, in which kinetic energy is |y|^2 / 2.

    Projections in the kinetic metric are Euclidean in y. J v = A y with A = J L^-T, and an impulse changes y by
    A^T impulse.

    Attributes:
        A: (m, nv) normal rows.
        H: (2m, nv) normal rows, then tangential rows (zeros without friction).
        y: (nv,) before the impact [J^0.5].
        w: (m,) normal velocities before the impact, negative for closing contacts [m/s].
        restitution, slip_restitution: (m,) coefficients of restitution.
        mu: (m,) friction coefficients, or None without friction.

    Raises:
        ConfigError: An argument has a wrong shape, is not finite, or is out of range; M is not symmetric positive
            definite; or a row of J is zero.
    """

    def __init__(
        self, M: ArrayLike, J: ArrayLike, v_before: ArrayLike, restitution: ArrayLike, friction: Friction | None
    ) -> None:
        self.v = _array("v_before", v_before, ("nv",))
        nv = len(self.v)
        mass = _array("M", M, (nv, nv))
        rows = _array("J", J, ("m", nv))
        self.m = len(rows)
        if np.abs(mass - mass.T).max() > 1e-9 * np.abs(mass).max():
            raise ConfigError("not symmetric; pinocchio's crba fills the upper triangle only", "M")
        try:
            self._lower: Array = np.asarray(np.linalg.cholesky(mass), dtype=np.float64)
        except np.linalg.LinAlgError as error:
            raise ConfigError("not positive definite; check masses, inertias and armatures", "M") from error
        self.A: Array = solve_triangular(self._lower, rows.T, lower=True).T
        self._reach: Array = np.linalg.norm(self.A, axis=1)
        if (self._reach == 0.0).any():
            raise ConfigError(
                f"row {int(np.argmin(self._reach))} is zero: no impulse of this contact does anything", "J"
            )
        self.y: Array = self._lower.T @ self.v
        self.w: Array = self.A @ self.y
        self.restitution = _per_contact("restitution", restitution, self.m, 1.0)
        self.mu: Array | None = None
        tangential = np.zeros_like(rows)
        if friction is not None:
            tangential = _array("friction.rows", friction.rows, (self.m, nv))
            self.mu = _per_contact("friction.coefficient", friction.coefficient, self.m, np.inf)
        of_slip = 0.0 if friction is None else friction.restitution
        self.slip_restitution = _per_contact("friction.restitution", of_slip, self.m, 1.0)
        self.H: Array = np.vstack([self.A, solve_triangular(self._lower, tangential.T, lower=True).T])

    def one_restitution(self, law: str) -> float:
        """Return the coefficient of a law that supports only one for all contacts."""
        if np.ptp(self.restitution) > 0.0:
            raise ConfigError(
                f"{law} has one coefficient for all contacts, got {list(self.restitution)}", "restitution"
            )
        return float(self.restitution[0])

    def signs(self, w: Array) -> NDArray[np.int8]:
        """Return -1 for closing, 0 for resting and 1 for separating contacts, given normal velocities w (m,)."""
        still = np.abs(w) <= RESTING * self._reach * np.linalg.norm(self.y)
        return np.where(still, 0, np.sign(w)).astype(np.int8)

    def on_cone(self, y: Array, generators: Array) -> Array:
        """Return x >= 0 (k,) that minimises |y + generators^T x|: the impulse of a Gauss projection.

        Then generators (y + generators^T x) >= 0 is complementary to x. Rows may be dependent.

        Args:
            y: (nv,) vector to project.
            generators: (k, nv) nonzero rows of any length.
        """
        size = float(np.linalg.norm(y))
        if size == 0.0 or not len(generators):
            return np.zeros(len(generators))
        lengths = np.linalg.norm(generators, axis=1)
        # Rows and right-hand side are scaled to length one, because the solvers have absolute tolerances.
        x = _nearest((generators / lengths[:, None]).T, y / size)
        return size * x / lengths

    def to_velocities(self, rows: Array, change: Array) -> Array:
        """Return the impulse (k,) along ``rows`` (k, nv) that changes their velocities by ``change`` (k,) [m/s].

        With dependent rows, it is the smallest such impulse. If there is none, its change is the nearest one.
        """
        dy = np.linalg.lstsq(rows, change, rcond=None)[0]
        return np.linalg.lstsq(rows.T, dy, rcond=None)[0]

    def pushing(self, impulse: Array) -> tuple[tuple[int, ...], ...]:
        """Return the contacts whose normal impulse (m,) exceeds rounding, as one phase, or no phase."""
        contacts = indices(impulse > RESTING * np.linalg.norm(self.y) / self._reach)
        return (contacts,) if contacts else ()

    def result(
        self, impulse: Array, contacts: tuple[tuple[int, ...], ...], tangential: Array | None = None
    ) -> ImpactResult:
        """Return the outcome for normal impulses (m,) and tangential impulses (m,)."""
        if tangential is None:
            tangential = np.zeros(self.m)
        dy = self.H.T @ np.concatenate([impulse, tangential])
        dv: Array = solve_triangular(self._lower.T, dy, lower=False)
        return ImpactResult(self.v + dv, impulse, tangential, contacts, float(dy @ (self.y + 0.5 * dy)))

    def states(self, y: Array, touching: Sequence[int], target: Array, floor: Array, closed: bool) -> Iterator[Array]:
        """Yield each impulse (2m,) [normal; tangential] that is consistent with Coulomb's law and unilateral contact.

        A contact in ``touching`` has one of two normal states. It holds its target normal velocity with an impulse of
        at least ``floor``, or its impulse equals ``floor`` and it separates faster than the target. Tangentially, it
        sticks (no slip after, |tangential| <= mu normal) or slides (tangential = -mu normal in the direction of the
        slip after). Sticking states come first.

        Args:
            y: (nv,) velocity before.
            touching: Indices of contacts that may transmit an impulse.
            target: (m,) normal velocities after [m/s]; or (2m,) including the slip velocities of sticking contacts,
                which are zero otherwise.
            floor: (m,) minimum normal impulses [N.s].
            closed: Whether all of ``touching`` must hold their target, with an impulse above the floor.

        Raises:
            ConfigError: There are more than FRICTION_CONTACTS contacts.
        """
        if len(touching) > FRICTION_CONTACTS:
            raise ConfigError(
                f"{len(touching)} contacts impact at once and every state of sticking and sliding is tried; at most "
                f"{FRICTION_CONTACTS}: leave out contacts that cannot take part, or use lotstedt",
                "friction",
            )
        every = [(hold, slip) for hold in (True, False) for slip in (0, 1, -1)]
        choices = [[c for c in every if c[0] or (not closed and (floor[i] > 0.0 or c[1] == 0))] for i in touching]
        for combination in itertools.product(*choices):
            impulse = self._in_state(y, dict(zip(touching, combination, strict=True)), target, floor, closed)
            if impulse is not None:
                yield impulse

    def _in_state(
        self, y: Array, state: dict[int, tuple[bool, int]], target: Array, floor: Array, closed: bool
    ) -> Array | None:
        """Return the impulse (2m,) of one state of all contacts, or None if the state is inconsistent."""
        assert self.mu is not None
        m, mu = self.m, self.mu
        fixed = np.zeros(2 * m)
        columns: list[Array] = []
        rows: list[int] = []
        for i, (hold, slip) in state.items():
            direction = np.zeros(2 * m)
            direction[i] = 1.0
            direction[m + i] = -mu[i] * slip
            fixed += floor[i] * direction
            if hold:
                columns.append(direction)
                rows.append(i)
            if slip == 0 and (hold or floor[i] > 0.0):
                columns.append(np.eye(2 * m)[m + i])
                rows.append(m + i)
        after = np.concatenate([target, np.zeros(2 * m - len(target))])
        impulse = fixed
        if columns:
            basis = np.array(columns).T
            response = self.H[rows] @ self.H.T @ basis
            missing = after[rows] - self.H[rows] @ (y + self.H.T @ fixed)
            impulse = fixed + basis @ np.linalg.lstsq(response, missing, rcond=1e-12)[0]
        velocity = self.H @ (y + self.H.T @ impulse) - after
        size = float(np.linalg.norm(self.y))
        reach = np.linalg.norm(self.H, axis=1)
        slow = RESTING * reach * size
        if (np.abs(velocity[rows]) > slow[rows]).any():
            return None
        tolerance = RESTING * size / self._reach
        for i, (hold, slip) in state.items():
            push, side = impulse[i] - floor[i], impulse[m + i]
            if hold and (push <= tolerance[i] if closed else push < -tolerance[i]):
                return None
            if not hold and velocity[i] < -slow[i]:
                return None
            if slip == 0 and abs(side) > mu[i] * (impulse[i] + tolerance[i]) + tolerance[i]:
                return None
            if slip != 0 and slip * velocity[m + i] < -slow[m + i]:
                return None
        untouched = [i for i in range(m) if i not in state]
        if not closed and (velocity[untouched] < -slow[untouched]).any():
            return None
        return impulse
