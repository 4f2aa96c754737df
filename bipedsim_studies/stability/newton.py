"""Fixed points of return maps, and whether they are stable (hurmuzlu2001 eq. 50, 51)."""

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
"""Of the central differences that Newton takes [rad, rad/s]: it need not be the best one."""
STEPS = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
"""Steps of the study, of which the multipliers take the quietest [rad, rad/s]."""
TOLERANCE = 1e-10
"""Of a fixed point: largest |P(xi) - xi| [rad, rad/s]."""
ITERATIONS = 25
SLOW = 0.3
"""Newton's matrix is computed anew when a step leaves more than this share of the error."""
NEUTRAL = 1e-3
"""Between 1 - this and 1 + this the modulus of a multiplier decides nothing."""


class FixedPoint(NamedTuple):
    """A state that comes back to itself.

    Attributes:
        xi: (n,) coordinates. duration: Of its stride [s].
        residual: Largest |P(xi) - xi|. strides: How many were simulated for it.
    """

    xi: Array
    duration: float
    residual: float
    strides: int


@dataclass(frozen=True, eq=False)
class Stability:
    """What becomes of small disturbances of a fixed point.

    Attributes:
        point: The fixed point.
        step: Of the central differences taken.
        jacobian: (n, n) of the map.
        multipliers: (n,) its eigenvalues, the largest modulus first.
        study: For every step of the study, the largest change of a multiplier from the next larger step.
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
        """``stable``, ``unstable``, or ``undecided`` where the largest modulus is 1 as near as can be said."""
        if abs(self.radius - 1.0) <= NEUTRAL:
            return "undecided"
        return "stable" if self.radius < 1.0 else "unstable"


def jacobian(map: PoincareMap, xi: Array, step: float = STEP) -> Array:
    """Return the matrix (n, n) of a map at ``xi`` by central differences.

    Raises:
        NoReturnError: A disturbed state does not come back.
    """
    columns = [(map(xi + step * e).xi - map(xi - step * e).xi) / (2.0 * step) for e in np.eye(len(xi))]
    return np.array(columns).T


def fixed_point(map: PoincareMap, guess: Array, tolerance: float = TOLERANCE, step: float = STEP) -> FixedPoint:
    """Return the fixed point near ``guess`` (n,) by Newton's method, with the same matrix as long as that is quick.

    Args:
        map: The map.
        guess: Where to start.
        tolerance: Largest |P(xi) - xi| wanted.
        step: Of the central differences.

    Raises:
        NoReturnError: There is none near, or no way back to the section from where Newton went.
    """
    xi = np.array(guess, dtype=np.float64)
    back, strides = map(xi), 1
    error = back.xi - xi
    matrix = None
    for _ in range(ITERATIONS):
        if np.abs(error).max() <= tolerance:
            return FixedPoint(xi, back.duration, float(np.abs(error).max()), strides)
        if matrix is None:
            matrix = np.eye(len(xi)) - jacobian(map, xi, step)
            strides += 2 * len(xi)
        way, share = np.linalg.lstsq(matrix, error, rcond=None)[0], 1.0
        while True:
            try:
                back, strides = map(xi + share * way), strides + 1
                break
            except NoReturnError:
                share *= 0.5
                if share < 0.05:
                    raise
        xi = xi + share * way
        now = back.xi - xi
        if np.abs(now).max() > SLOW * np.abs(error).max():
            matrix = None
        error = now
    raise NoReturnError(f"no fixed point near {list(guess)}: after {strides} strides P(xi) - xi is {error.tolist()}")


def multipliers_of(matrix: Array) -> Complex:
    """Return the eigenvalues (n,) of a map's matrix, the largest modulus first, of a pair the one above."""
    values = np.linalg.eigvals(matrix).astype(np.complex128)
    return values[np.lexsort((-values.imag, -values.real.round(12), -np.abs(values).round(12)))]


def difference(a: Complex, b: Complex) -> float:
    """Return how far two sets of multipliers are apart: each from the nearest one that is left."""
    rest, worst = list(b), 0.0
    for value in a:
        nearest = int(np.argmin(np.abs(np.array(rest) - value)))
        worst = max(worst, float(abs(rest.pop(nearest) - value)))
    return worst


def stability(map: PoincareMap, point: FixedPoint, steps: Sequence[float] = STEPS) -> Stability:
    """Return the multipliers of a fixed point, with the best step of the differences.

    Too long a step bends, too short a one shows the noise of the map: from step to step the multipliers change less and
    less, until noise makes them change more. The step before that is taken.

    Args:
        map: The map.
        point: Its fixed point.
        steps: Falling; a single one is taken as it is.

    Raises:
        NoReturnError: All steps are too long to come back.
    """
    found: list[tuple[float, Array]] = []
    lost: NoReturnError | None = None
    for step in steps:
        try:
            found.append((step, jacobian(map, point.xi, step)))
        except NoReturnError as error:
            lost = error
    if not found:
        raise NoReturnError(f"every disturbance of the fixed point is lost, also one of {min(steps):g}: {lost}")
    sets = [multipliers_of(matrix) for _, matrix in found]
    changes = [difference(a, b) for a, b in zip(sets[1:], sets[:-1], strict=True)]
    rises = [i for i in range(len(changes) - 1) if changes[i + 1] > changes[i]]
    best = (rises[0] + 1 if rises else len(changes)) if changes else 0
    study = tuple((found[i + 1][0], change) for i, change in enumerate(changes))
    return Stability(point, found[best][0], found[best][1], sets[best], study)


@dataclass(frozen=True, eq=False)
class Limit:
    """A fixed point and its multipliers for several steps h of the simulator, and for h -> 0.

    Attributes:
        steps: h [s], falling.
        found: For each of them.
        xi, duration, multipliers: Extrapolated.
        errors: What the extrapolation from one step less changes in xi, duration and multipliers: what to expect of
            these figures.
    """

    steps: tuple[float, ...]
    found: tuple[Stability, ...]
    xi: Array
    duration: float
    multipliers: Complex
    errors: tuple[float, float, float]


def extrapolated(values: Sequence[Array], steps: Sequence[float]) -> Array:
    """Return the value at h = 0 of the polynomial through ``values`` at ``steps``: Richardson's extrapolation."""
    h = np.asarray(steps)
    weights = [np.prod([h[j] / (h[j] - h[i]) for j in range(len(h)) if j != i]) for i in range(len(h))]
    return np.asarray(sum(w * np.asarray(value) for w, value in zip(weights, values, strict=True)))


def limit(maps: Callable[[float], PoincareMap], steps: Sequence[float], guess: Array) -> Limit:
    """Return the fixed point near ``guess`` and its multipliers, for each step h and in the limit.

    Args:
        maps: Returns the map for a step h; all in the same coordinates.
        steps: At least two [s], falling; the error of the k-th extrapolation is of the order h^k.
        guess: Coordinates (n,).

    Raises:
        NoReturnError: There is no fixed point, or no way back from a disturbed one.
    """
    found: list[Stability] = []
    for h in steps:
        map = maps(h)
        point = fixed_point(map, guess)
        # The quietest step of the first map is good for all of them.
        found.append(stability(map, point, STEPS if not found else (found[0].step,)))
        guess = point.xi

    def at_zero(first: int) -> tuple[Array, float, Complex]:
        chosen, h = found[first:], steps[first:]
        return (
            extrapolated([one.point.xi for one in chosen], h),
            float(extrapolated([np.array(one.point.duration) for one in chosen], h)),
            multipliers_of(extrapolated([one.jacobian for one in chosen], h)),
        )

    xi, duration, values = at_zero(0)
    rougher = at_zero(1)
    errors = (
        float(np.abs(rougher[0] - xi).max()),
        abs(rougher[1] - duration),
        difference(rougher[2], values),
    )
    return Limit(tuple(steps), tuple(found), xi, duration, values, errors)
