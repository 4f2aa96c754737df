"""Simulate bodies with complementarity from event to event: smooth motion, impacts, resting and opening contacts.

Unlike time stepping, this method locates each impact in time. Between events, resting contacts are held; their forces
are those of the LCP of eq. 13 as long as they push. An integrator of order eight advances to the time at which another
gap closes or a force vanishes. There an impact law of :mod:`bipedsim_studies.impacts` acts. A sequence of rebounds that
converges to a point in time ends when the rebounds are slower than ``rest_speed``.

Source: Hurmuzlu, Génot and Brogliato 2001, eq. 1 to 3, 8 to 10, without friction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from bipedsim.errors import ConfigError
from bipedsim.numerics import Array, Flags
from bipedsim_studies.complementarity.lcp import ComplementarityError
from bipedsim_studies.complementarity.normal_force_problem import normal_forces
from bipedsim_studies.impacts import IMPACT_LAWS

RELATIVE, ABSOLUTE = 1e-11, 1e-13
"""Tolerances of the integration."""
TOUCH, STILL = 1e-8, 1e-8
"""A gap below this is closed [m]; its contact rests if its normal speed is below this [m/s]."""
DECAY = 100.0
"""Decay rate of rounding errors in the held gaps [1/s]."""
DEEP, LITTLE_PULL = 1e-12, 1e-9
"""A gap closes at minus this [m], and a force ends at minus this [N], so that constant zeros are no events."""
MOMENT = 1e-8
"""Time after an event at which resting contacts are evaluated [s]."""
MAX_EVENTS = 10_000


@dataclass(frozen=True, eq=False)
class Terms:
    """System at one instant: M a = h + J^T lam, gap >= 0, and J a + bias is the acceleration of the gaps.

    Attributes:
        M: (nv, nv) mass matrix.
        h: (nv,) all forces except contact forces [N, N.m].
        J: (m, nv) gradients of the gaps.
        bias: (m,) Jdot v [m/s^2].
        gap: (m,) distances [m].
    """

    M: Array
    h: Array
    J: Array
    bias: Array
    gap: Array


System = Callable[[float, Array, Array], Terms]
"""Terms of a system as a function of time [s], q (nv,) and v = q' (nv,)."""


@dataclass(frozen=True, eq=False)
class Impact:
    """Impact: time [s], configuration q (nv,), velocities before and after (nv,), and normal impulses (m,) [N.s]."""

    t: float
    q: Array
    before: Array
    after: Array
    impulse: Array


@dataclass(frozen=True, eq=False)
class Motion:
    """Sampled motion.

    Attributes:
        t: (n,) times [s]; an event has two samples, before and after it.
        q, v: (n, nv) configurations and velocities.
        force: (n, m) forces of the resting contacts [N].
        impacts: Impacts in order of time.
    """

    t: Array
    q: Array
    v: Array
    force: Array
    impacts: tuple[Impact, ...]

    @property
    def times(self) -> Array:
        """(k,) times of the impacts [s]."""
        return np.array([impact.t for impact in self.impacts])


@dataclass(frozen=True)
class Rebound:
    """Law of the impacts of a system, without friction.

    Attributes:
        restitution: Restitution e of all contacts.
        rest_speed: Speed [m/s] below which contacts do not rebound, so that they come to rest.
        law: One of ``IMPACT_LAWS``.
    """

    restitution: float = 0.0
    rest_speed: float = 1e-6
    law: str = "moreau"


PLASTIC = Rebound()


def motion(
    system: System,
    q_start: ArrayLike,
    v_start: ArrayLike,
    duration: float,
    *,
    start: float = 0.0,
    rebound: Rebound = PLASTIC,
    every: float = 5e-3,
    most_impacts: int | None = None,
) -> Motion:
    """Simulate a system for ``duration`` [s].

    Args:
        system: Terms of the system.
        q_start, v_start: (nv,) state at the ``start``, without negative gaps.
        duration: Duration [s].
        start: Initial time [s].
        rebound: Law of all impacts; by default contacts do not rebound.
        every: Maximum time between samples [s].
        most_impacts: Number of impacts; the motion stops just before the next one.

    Raises:
        ConfigError: The duration is not positive.
        ComplementarityError: A gap is negative at the start, or there are too many events.
    """
    if not duration > 0.0:
        raise ConfigError("s must be positive", "duration", duration)
    t, end = start, start + duration
    q: Array = np.array(q_start, dtype=np.float64)
    v: Array = np.array(v_start, dtype=np.float64)
    nv, terms = len(q), system(t, q, v)
    if terms.gap.min() < -TOUCH:
        raise ComplementarityError("m at the start is below zero", f"gap {int(terms.gap.argmin())}", terms.gap.min())
    impacts: list[Impact] = []
    pieces: list[tuple[Array, Array, Array]] = []
    for _ in range(MAX_EVENTS):
        terms = system(t, q, v)
        touching = terms.gap <= TOUCH
        w = terms.J @ v
        if (touching & (w < 0.0)).any():
            soft = -rebound.restitution * w[touching].min() <= rebound.rest_speed
            restitution = 0.0 if soft else rebound.restitution
            impact = IMPACT_LAWS[rebound.law](terms.M, terms.J[touching], v, restitution)
            if w[touching].min() < -STILL:
                impulse = np.zeros(len(w))
                impulse[touching] = impact.impulse
                if len(impacts) == most_impacts:
                    break
                impacts.append(Impact(t, q.copy(), v.copy(), impact.v_after, impulse))
            v = impact.v_after
            w = terms.J @ v
        resting = touching & (np.abs(w) <= STILL)
        # The terms are evaluated a moment later, because a force that ends or begins is zero now.
        resting, approach = _pressed(system(t + MOMENT, q + MOMENT * v, v), resting)
        if t >= end:
            break
        y = np.concatenate([q, v])
        solution = solve_ivp(
            lambda time, y, held=resting: _rate(system, time, y, held),
            (t, end),
            y,
            "DOP853",
            events=_events(system, resting),
            rtol=RELATIVE,
            atol=ABSOLUTE,
            dense_output=True,
            max_step=0.05 * max(duration, 1e-9),
            first_step=_first_step(w, approach, touching & ~resting, end - t),
        )
        times = np.linspace(t, solution.t[-1], max(2, 1 + int(np.ceil((solution.t[-1] - t) / every))))
        states = solution.sol(times).T
        forces = np.array([_forces(system, time, y, resting) for time, y in zip(times, states, strict=True)])
        pieces.append((times, states, forces))
        t, q, v = float(solution.t[-1]), solution.y[:nv, -1].copy(), solution.y[nv:, -1].copy()
    else:
        raise ComplementarityError(f"{MAX_EVENTS} events before {t:.6g} s: a larger rest_speed ends rebounds earlier")
    times, states, forces = (np.concatenate(part) for part in zip(*pieces, strict=True))
    return Motion(times, states[:, :nv], states[:, nv:], forces, tuple(impacts))


def _pressed(terms: Terms, resting: Flags) -> tuple[Flags, Array]:
    """Return which resting contacts continue to rest, and the accelerations (m,) of all gaps."""
    pressed = resting.copy()
    if not resting.any():
        return pressed, terms.J @ np.linalg.solve(terms.M, terms.h) + terms.bias
    forces = normal_forces(terms.M, terms.h, terms.J[resting], terms.bias[resting])
    pressed[resting] = forces.force > 0.0
    return pressed, terms.J @ forces.acceleration + terms.bias


def _first_step(w: Array, approach: Array, leaving: Flags, remaining: float) -> float:
    """Return a step that ends before a gap that has just opened can close again."""
    closing_again = leaving & (approach < 0.0) & (w > 0.0)
    return float(min([remaining, *(0.5 * w[closing_again] / -approach[closing_again])]))


def _forces(system: System, t: float, y: Array, held: Flags) -> Array:
    """Return the forces (m,) that keep the gaps ``held`` constant [N]."""
    nv = len(y) // 2
    return _held(system(t, y[:nv], y[nv:]), y[nv:], held)


def _held(terms: Terms, v: Array, held: Flags) -> Array:
    force = np.zeros(len(terms.gap))
    if held.any():
        J = terms.J[held]
        correction = 2.0 * DECAY * (J @ v) + DECAY**2 * terms.gap[held]
        needed = -(J @ np.linalg.solve(terms.M, terms.h) + terms.bias[held] + correction)
        force[held] = np.linalg.lstsq(J @ np.linalg.solve(terms.M, J.T), needed, rcond=1e-12)[0]
    return force


def _rate(system: System, t: float, y: Array, held: Flags) -> Array:
    nv = len(y) // 2
    terms = system(t, y[:nv], y[nv:])
    a = np.linalg.solve(terms.M, terms.h + terms.J.T @ _held(terms, y[nv:], held))
    return np.concatenate([y[nv:], a])


def _events(system: System, held: Flags) -> list[Callable[[float, Array], float]]:
    """Return functions that cross zero downwards when an open gap closes or the force of a held gap ends."""

    def event(i: int) -> Callable[[float, Array], float]:
        def value(t: float, y: Array) -> float:
            nv = len(y) // 2
            if held[i]:
                return float(_forces(system, t, y, held)[i]) + LITTLE_PULL
            return float(system(t, y[:nv], y[nv:]).gap[i]) + DEEP

        value.terminal, value.direction = True, -1.0  # type: ignore[attr-defined]
        return value

    return [event(i) for i in range(len(held))]
