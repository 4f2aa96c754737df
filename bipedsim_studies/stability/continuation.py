"""Fixed points over a parameter, such as the slope, and where they double their period (hurmuzlu2001 eq. 52)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import brentq
from tqdm import tqdm

from bipedsim.numerics import Array
from bipedsim_studies.stability.maps import Iterated, NoReturnError, PoincareMap
from bipedsim_studies.stability.newton import Stability, fixed_point, stability

STEP = 1e-4
"""Of central differences [rad, rad/s]."""
TOLERANCE = 1e-9
"""Of fixed points [rad, rad/s]."""
APART = 1e-4
"""States of an orbit of twice the period are at least this far apart [rad, rad/s]."""
BRANCHING = (0.02, 0.04, 0.08, 0.01, 0.005)
"""How far along the eigenvector of -1 an orbit of twice the period is looked for [rad, rad/s]."""
GROWTHS = (1.0, 1.4, 2.0, 3.0, 1.2, 0.8)
"""How much an orbit of several strides is stretched for the next guess, one after the other."""

Family = Callable[[float, "Array | None"], PoincareMap]
"""Returns the map for a value of the parameter; the second argument is a state near its orbit, None at first."""


@dataclass(frozen=True, eq=False)
class Orbit:
    """A periodic orbit at one value of the parameter.

    Attributes:
        value: Of the parameter.
        states: (period, n) coordinates, stride by stride.
        durations: (period,) of the strides [s].
        stability: Of the map taken ``period`` times.
    """

    value: float
    states: Array
    durations: Array
    stability: Stability


@dataclass(eq=False)
class Branch:
    """Orbits of one period over the parameter.

    Attributes:
        period: In strides.
        orbits: In the order they were found.
        doublings: Values of the parameter at which a multiplier is -1.
        ended: Why it goes no further; empty if it came to the end.
    """

    period: int
    orbits: list[Orbit] = field(default_factory=list)
    doublings: list[float] = field(default_factory=list)
    ended: str = ""


def lowest(found: Stability) -> float:
    """Return the least real multiplier, or 0: it passes -1 where an orbit doubles its period."""
    values = found.multipliers
    real = values.real[np.abs(values.imag) < 1e-9]
    return float(min(real.min(), 0.0)) if len(real) else 0.0


def orbit(family: Family, value: float, guess: Array, period: int, like: Orbit | None = None) -> Orbit:
    """Return the orbit of ``period`` strides near ``guess`` (n,) at a value of the parameter.

    Args:
        family: Makes the map.
        value: Of the parameter.
        guess: One of its states.
        period: In strides.
        like: An orbit that begins with the same stride: of the states the nearest one to its first is the first.

    Raises:
        NoReturnError: There is none near.
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
    """Follow an orbit over the values of a parameter, with a secant as predictor, as far as there is one.

    Args:
        family: Makes the maps, all in the same coordinates.
        values: Of the parameter, in steps that Newton can follow.
        guess: (n,) near the orbit at the first of them.
        period: In strides.
        first: An orbit before the first value, for the secant.
        label: Show a bar on stderr with this name; none if empty.
    """
    branch = Branch(period, [] if first is None else [first])
    guess = np.asarray(guess, dtype=np.float64)
    for value in tqdm(values, desc=label, unit="slope", disable=not label, leave=False):
        known = branch.orbits
        if known:
            guess = known[-1].states[0]
        if len(known) > 1:
            share = (value - known[-1].value) / (known[-1].value - known[-2].value)
            guess = guess + share * (known[-1].states[0] - known[-2].states[0])
        # Just after a doubling an orbit grows as a root does, faster than any secant.
        centre = known[-1].states.mean(axis=0) if period > 1 and known else guess
        found, ended = None, ""
        for growth in GROWTHS if period > 1 else GROWTHS[:1]:
            try:
                found = orbit(family, value, centre + growth * (guess - centre), period, known[-1] if known else None)
            except NoReturnError as error:
                ended = ended or str(error)
                continue
            if prime(found):
                break
            found, ended = None, ended or "its states fall together"
        if found is None:
            branch.ended = f"at {value:.6g}: {ended}"
            break
        if known and (lowest(known[-1].stability) + 1.0) * (lowest(found.stability) + 1.0) < 0.0:
            branch.doublings.append(_where(family, known[-1], found))
        known.append(found)
    return branch


def prime(found: Orbit) -> bool:
    """Return whether an orbit is not one of half its period, taken twice."""
    half = len(found.states) // 2
    return len(found.states) % 2 == 1 or bool(np.abs(found.states[half:] - found.states[:half]).max() > APART)


def _where(family: Family, before: Orbit, after: Orbit) -> float:
    """Return the value between two orbits at which the least real multiplier is -1."""
    period = len(before.states)

    def beyond(value: float) -> float:
        share = (value - before.value) / (after.value - before.value)
        guess = before.states[0] + share * (after.states[0] - before.states[0])
        return lowest(orbit(family, value, guess, period).stability) + 1.0

    return float(brentq(beyond, before.value, after.value, xtol=1e-3 * abs(after.value - before.value)))


def doubled(family: Family, branch: Branch, values: Sequence[float], label: str = "") -> Branch | None:
    """Return the branch of twice the period that begins at the first doubling of ``branch``; None if none is found.

    Args:
        family: Makes the maps.
        branch: With a doubling.
        values: Of the parameter, of which those beyond the doubling count.
        label: As for :func:`follow`.
    """
    if not branch.doublings:
        return None
    where = branch.doublings[0]
    onward = branch.orbits[-1].value - branch.orbits[0].value
    beyond = [value for value in values if (value - where) * onward > 0.0]
    for value in beyond:
        near = min(branch.orbits, key=lambda one: abs(one.value - value))
        eigenvalues, vectors = np.linalg.eig(near.stability.jacobian)
        way = np.real(vectors[:, int(np.argmin(eigenvalues.real))])
        for size in BRANCHING:
            try:
                first = orbit(family, value, near.states[0] + size * way, 2 * branch.period)
            except NoReturnError:
                continue
            if prime(first):
                rest = [further for further in beyond if (further - value) * onward > 0.0]
                return follow(family, rest, first.states[0], 2 * branch.period, first, label)
    return None
