"""Find fixed points of return maps and determine their stability (hurmuzlu2001 eq. 50, 51)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bipedsim.numerics import Array
from bipedsim_studies.stability.maps import NoReturnError, PoincareMap

Complex = NDArray[np.complex128]

STEP = 1e-3
"""Step of the central differences in Newton's method [rad, rad/s]. It does not have to be optimal."""
STEPS = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
"""Steps compared by :func:`stability`, which uses the one with the most consistent multipliers [rad, rad/s]."""
TOLERANCE = 1e-10
"""Largest |P(xi) - xi| of a fixed point [rad, rad/s]."""
ITERATIONS = 25
SLOW = 0.3
"""Newton's matrix is recomputed if a step leaves more than this fraction of the error."""
NEUTRAL = 1e-3
"""Half width of the interval of moduli around 1 in which stability is undecided."""


class FixedPoint(NamedTuple):
    """A state that returns to itself after one stride.

    Attributes:
        xi: (n,) coordinates. duration: Duration of the stride [s].
        residual: Largest |P(xi) - xi|. strides: Number of strides simulated to find it.
    """

    xi: Array
    duration: float
    residual: float
    strides: int


@dataclass(frozen=True, eq=False)
class Stability:
    """Behaviour of small disturbances of a fixed point.

    Attributes:
        point: The fixed point.
        step: Step of the central differences.
        jacobian: (n, n) Jacobian of the map.
        multipliers: (n,) eigenvalues of the Jacobian, in descending order of modulus.
        study: Pairs of each step and the largest change of a multiplier from the next larger step.
    """

    point: FixedPoint
    step: float
    jacobian: Array
    multipliers: Complex
    study: tuple[tuple[float, float], ...]

    @property
    def radius(self) -> float:
        """Largest modulus of a multiplier."""
        return float(np.abs(self.multipliers).max())

    @property
    def verdict(self) -> str:
        """``stable``, ``unstable``, or ``undecided`` if the largest modulus equals 1 within ``NEUTRAL``."""
        if abs(self.radius - 1.0) <= NEUTRAL:
            return "undecided"
        return "stable" if self.radius < 1.0 else "unstable"


def jacobian(map: PoincareMap, xi: Array, step: float = STEP) -> Array:
    """Return the Jacobian (n, n) of a map at ``xi``, by central differences.

    Raises:
        NoReturnError: A disturbed state does not return to the section.
    """
    columns = [(map(xi + step * e).xi - map(xi - step * e).xi) / (2.0 * step) for e in np.eye(len(xi))]
    return np.array(columns).T


def fixed_point(map: PoincareMap, guess: Array, tolerance: float = TOLERANCE, step: float = STEP) -> FixedPoint:
    """Return the fixed point near ``guess`` (n,), by Newton's method.

    The Jacobian is reused as long as the error falls quickly.

    Args:
        map: The map.
        guess: Initial coordinates.
        tolerance: Largest |P(xi) - xi| accepted.
        step: Step of the central differences.

    Raises:
        NoReturnError: No fixed point is near, or an iterate does not return to the section.
    """
    xi = np.array(guess, dtype=np.float64)
    returned, strides = map(xi), 1
    error = returned.xi - xi
    matrix = None
    for _ in range(ITERATIONS):
        if np.abs(error).max() <= tolerance:
            return FixedPoint(xi, returned.duration, float(np.abs(error).max()), strides)
        if matrix is None:
            matrix = np.eye(len(xi)) - jacobian(map, xi, step)
            strides += 2 * len(xi)
        step_direction, step_fraction = np.linalg.lstsq(matrix, error, rcond=None)[0], 1.0
        while True:
            try:
                returned, strides = map(xi + step_fraction * step_direction), strides + 1
                break
            except NoReturnError:
                step_fraction *= 0.5
                if step_fraction < 0.05:
                    raise
        xi = xi + step_fraction * step_direction
        new_error = returned.xi - xi
        if np.abs(new_error).max() > SLOW * np.abs(error).max():
            matrix = None
        error = new_error
    raise NoReturnError(f"no fixed point near {list(guess)}: after {strides} strides P(xi) - xi is {error.tolist()}")


def multipliers_of(matrix: Array) -> Complex:
    """Return the eigenvalues (n,) of ``matrix`` in descending order of modulus; of a pair, the upper one first."""
    values = np.linalg.eigvals(matrix).astype(np.complex128)
    return values[np.lexsort((-values.imag, -values.real.round(12), -np.abs(values).round(12)))]


def difference(a: Complex, b: Complex) -> float:
    """Return the largest distance between two sets of multipliers, paired greedily with the nearest one remaining."""
    remaining, worst = list(b), 0.0
    for value in a:
        nearest = int(np.argmin(np.abs(np.array(remaining) - value)))
        worst = max(worst, float(abs(remaining.pop(nearest) - value)))
    return worst


def stability(map: PoincareMap, point: FixedPoint, steps: Sequence[float] = STEPS) -> Stability:
    """Return the multipliers of a fixed point, with the best step of the central differences.

    A large step has a truncation error, and a small one amplifies the noise of the map. From one step to the next
    smaller one, the multipliers change less and less until noise dominates. The last step before that is used.

    Args:
        map: The map.
        point: Its fixed point.
        steps: Steps in descending order. A single step is used as it is.

    Raises:
        NoReturnError: The disturbed states do not return to the section for any step.
    """
    usable: list[tuple[float, Array]] = []
    last_error: NoReturnError | None = None
    for step in steps:
        try:
            usable.append((step, jacobian(map, point.xi, step)))
        except NoReturnError as error:
            last_error = error
    if not usable:
        raise NoReturnError(f"every disturbance of the fixed point is lost, also one of {min(steps):g}: {last_error}")
    sets = [multipliers_of(matrix) for _, matrix in usable]
    changes = [difference(a, b) for a, b in zip(sets[1:], sets[:-1], strict=True)]
    rises = [i for i in range(len(changes) - 1) if changes[i + 1] > changes[i]]
    best = (rises[0] + 1 if rises else len(changes)) if changes else 0
    study = tuple((usable[i + 1][0], change) for i, change in enumerate(changes))
    return Stability(point, usable[best][0], usable[best][1], sets[best], study)


@dataclass(frozen=True, eq=False)
class Limit:
    """A fixed point and its multipliers for several physics steps h, and extrapolated to h -> 0.

    Attributes:
        steps: Physics steps h [s], in descending order.
        found: Result for each step.
        xi, duration, multipliers: Extrapolated values.
        errors: Expected errors of xi, duration and multipliers. They are the changes if the extrapolation uses one
            step less.
    """

    steps: tuple[float, ...]
    found: tuple[Stability, ...]
    xi: Array
    duration: float
    multipliers: Complex
    errors: tuple[float, float, float]


def extrapolated(values: Sequence[Array], steps: Sequence[float]) -> Array:
    """Return the value at h = 0 of the polynomial through ``values`` at ``steps`` (Richardson extrapolation)."""
    h = np.asarray(steps)
    weights = [np.prod([h[j] / (h[j] - h[i]) for j in range(len(h)) if j != i]) for i in range(len(h))]
    return np.asarray(sum(w * np.asarray(value) for w, value in zip(weights, values, strict=True)))


def limit(maps: Callable[[float], PoincareMap], steps: Sequence[float], guess: Array) -> Limit:
    """Return the fixed point near ``guess`` and its multipliers, for each step h and in the limit h -> 0.

    Args:
        maps: Returns the map for a step h. All maps must have the same coordinates.
        steps: At least two [s], in descending order. The error of the k-th extrapolation is of the order h^k.
        guess: Coordinates (n,).

    Raises:
        NoReturnError: No fixed point exists nearby, or a disturbed state does not return to the section.
    """
    results: list[Stability] = []
    for h in steps:
        map = maps(h)
        point = fixed_point(map, guess)
        # The best difference step of the first map suits all of them.
        results.append(stability(map, point, STEPS if not results else (results[0].step,)))
        guess = point.xi

    def at_zero(first: int) -> tuple[Array, float, Complex]:
        chosen, h = results[first:], steps[first:]
        return (
            extrapolated([result.point.xi for result in chosen], h),
            float(extrapolated([np.array(result.point.duration) for result in chosen], h)),
            multipliers_of(extrapolated([result.jacobian for result in chosen], h)),
        )

    xi, duration, values = at_zero(0)
    lower_order = at_zero(1)
    errors = (
        float(np.abs(lower_order[0] - xi).max()),
        abs(lower_order[1] - duration),
        difference(lower_order[2], values),
    )
    return Limit(tuple(steps), tuple(results), xi, duration, values, errors)
