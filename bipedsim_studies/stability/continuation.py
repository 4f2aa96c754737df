"""Follow fixed points over a parameter such as the slope, and find period doublings (hurmuzlu2001 eq. 52)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import brentq

from bipedsim.config import ProgressBar
from bipedsim.numerics import Array
from bipedsim_studies.stability.maps import Iterated, NoReturnError, PoincareMap
from bipedsim_studies.stability.newton import Stability, fixed_point, stability

STEP = 1e-4
"""Step of the central differences [rad, rad/s]."""
TOLERANCE = 1e-9
"""Largest |P(xi) - xi| of a fixed point [rad, rad/s]."""
APART = 1e-4
"""Minimum distance between the two halves of an orbit of twice the period [rad, rad/s]."""
BRANCHING = (0.02, 0.04, 0.08, 0.01, 0.005)
"""Distances along the eigenvector of -1 at which an orbit of twice the period is searched [rad, rad/s]."""
GROWTHS = (1.0, 1.4, 2.0, 3.0, 1.2, 0.8)
"""Factors that scale the predicted orbit of several strides about its mean, tried one after the other."""

Family = Callable[[float, "Array | None"], PoincareMap]
"""Makes the map for a value of the parameter. The second argument is a state near its orbit, or None at first."""


@dataclass(frozen=True, eq=False)
class Orbit:
    """A periodic orbit at one value of the parameter.

    Attributes:
        value: Value of the parameter.
        states: (period, n) coordinates, one row per stride.
        durations: (period,) durations of the strides [s].
        stability: Stability of the map applied ``period`` times.
    """

    value: float
    states: Array
    durations: Array
    stability: Stability


@dataclass(eq=False)
class Branch:
    """Orbits of one period over the parameter.

    Attributes:
        period: Period in strides.
        orbits: Orbits in the order in which they were computed.
        doublings: Values of the parameter at which a multiplier is -1.
        ended: Reason for an early end; empty if all values were reached.
    """

    period: int
    orbits: list[Orbit] = field(default_factory=list)
    doublings: list[float] = field(default_factory=list)
    ended: str = ""


def lowest(found: Stability) -> float:
    """Return the smallest real multiplier, but at most 0. It crosses -1 where an orbit doubles its period."""
    values = found.multipliers
    real = values.real[np.abs(values.imag) < 1e-9]
    return float(min(real.min(), 0.0)) if len(real) else 0.0


def orbit(family: Family, value: float, guess: Array, period: int, like: Orbit | None = None) -> Orbit:
    """Return the orbit of ``period`` strides near ``guess`` (n,) at a value of the parameter.

    Args:
        family: Makes the map.
        value: Value of the parameter.
        guess: (n,) approximate state of the orbit.
        period: Period in strides.
        like: A similar orbit. The states are rotated so that the first one is nearest to the first state of ``like``.

    Raises:
        NoReturnError: No orbit is near.
    """
    map = family(value, guess)
    again = Iterated(map, period)
    point = fixed_point(again, guess, TOLERANCE, STEP)
    states, durations, xi = [], [], point.xi
    for _ in range(period):
        states.append(xi)
        xi, duration = map(xi)
        durations.append(duration)
    first = 0 if like is None else int(np.argmin([np.abs(xi - like.states[0]).max() for xi in states]))
    point = point._replace(xi=states[first])
    states, durations = [*states[first:], *states[:first]], [*durations[first:], *durations[:first]]
    return Orbit(value, np.array(states), np.array(durations), stability(again, point, (STEP,)))


def follow(
    family: Family, values: Sequence[float], guess: Array, period: int = 1, first: Orbit | None = None, label: str = ""
) -> Branch:
    """Follow an orbit over the values of a parameter with a secant predictor, as far as it exists.

    Args:
        family: Makes the maps, all in the same coordinates.
        values: Values of the parameter, close enough for Newton's method.
        guess: (n,) state near the orbit at the first value.
        period: Period in strides.
        first: An orbit before the first value, for the secant.
        label: Label of the progress bar on stderr; no bar if empty.
    """
    branch = Branch(period, [] if first is None else [first])
    guess = np.asarray(guess, dtype=np.float64)
    for value in ProgressBar(values, desc=label, unit="slope", disable=not label):
        known = branch.orbits
        if known:
            guess = known[-1].states[0]
        if len(known) > 1:
            fraction = (value - known[-1].value) / (known[-1].value - known[-2].value)
            guess = guess + fraction * (known[-1].states[0] - known[-2].states[0])
        # Just after a doubling, the amplitude grows like a square root, which a secant underestimates.
        centre = known[-1].states.mean(axis=0) if period > 1 and known else guess
        candidate, ended = None, ""
        for growth in GROWTHS if period > 1 else GROWTHS[:1]:
            try:
                candidate = orbit(
                    family, value, centre + growth * (guess - centre), period, known[-1] if known else None
                )
            except NoReturnError as error:
                ended = ended or str(error)
                continue
            if prime(candidate):
                break
            candidate, ended = None, ended or "its states fall together"
        if candidate is None:
            branch.ended = f"at {value:.6g}: {ended}"
            break
        if known and (lowest(known[-1].stability) + 1.0) * (lowest(candidate.stability) + 1.0) < 0.0:
            branch.doublings.append(_doubling_between(family, known[-1], candidate))
        known.append(candidate)
    return branch


def prime(candidate: Orbit) -> bool:
    """Return whether the orbit is not just an orbit of half its period, repeated twice."""
    states = candidate.states
    half = len(states) // 2
    return len(states) % 2 == 1 or bool(np.abs(states[half:] - states[:half]).max() > APART)


def _doubling_between(family: Family, before: Orbit, after: Orbit) -> float:
    """Return the parameter value between two orbits at which the smallest real multiplier is -1."""
    period = len(before.states)

    def beyond(value: float) -> float:
        fraction = (value - before.value) / (after.value - before.value)
        guess = before.states[0] + fraction * (after.states[0] - before.states[0])
        return lowest(orbit(family, value, guess, period).stability) + 1.0

    return float(brentq(beyond, before.value, after.value, xtol=1e-3 * abs(after.value - before.value)))


def doubled(family: Family, branch: Branch, values: Sequence[float], label: str = "") -> Branch | None:
    """Return the branch of twice the period that starts at the first doubling of ``branch``, or None.

    Args:
        family: Makes the maps.
        branch: Branch with a doubling.
        values: Values of the parameter. Only those beyond the doubling are used.
        label: Label of the progress bar, as in :func:`follow`.
    """
    if not branch.doublings:
        return None
    doubling = branch.doublings[0]
    orientation = branch.orbits[-1].value - branch.orbits[0].value
    beyond = [value for value in values if (value - doubling) * orientation > 0.0]
    for value in beyond:
        near = min(branch.orbits, key=lambda orbit: abs(orbit.value - value))
        eigenvalues, vectors = np.linalg.eig(near.stability.jacobian)
        direction = np.real(vectors[:, int(np.argmin(eigenvalues.real))])
        for size in BRANCHING:
            try:
                first = orbit(family, value, near.states[0] + size * direction, 2 * branch.period)
            except NoReturnError:
                continue
            if prime(first):
                rest = [later_value for later_value in beyond if (later_value - value) * orientation > 0.0]
                return follow(family, rest, first.states[0], 2 * branch.period, first, label)
    return None
