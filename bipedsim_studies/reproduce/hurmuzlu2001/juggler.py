"""Juggle an object to commanded heights with a driven racket (Fig. 1d, eq. 7).

Between impacts the object is not controllable (eq. 7, first line). Only the velocity of the racket at an impact
determines the next height. After each impact, the controller computes the time of the next one from the object's
velocity. It moves the racket so that it arrives then, with the velocity required by Newton's law.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import Polynomial

from bipedsim.numerics import Array
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR
from bipedsim_studies.complementarity import Motion, Rebound, motion
from bipedsim_studies.impacts import IMPACT_LAWS
from bipedsim_studies.reproduce.common import Check, Figure, body, label, study
from bipedsim_studies.reproduce.hurmuzlu2001.mechanics import between_stops

HEIGHTS = (0.3, 0.3, 0.6, 0.6, 0.2, 0.45, 0.45)
"""Height of the first fall, then the commanded heights [m]."""
RESTITUTION = 0.8
WRONG = 0.7
"""Restitution assumed by a controller with a wrong model."""
GRAVITY = 9.81
OBJECT, RACKET = 0.1, 1.0
"""Masses of the object and the racket of the robot ``juggler`` [kg]."""


def returned(racket: float, arrival: float, e: float = RESTITUTION) -> float:
    """Return the velocity of the object after an impact [m/s], by Newton's law and the conservation of momentum.

    Args:
        racket, arrival: Velocities of racket and object before the impact [m/s].
        e: Restitution.
    """
    return arrival + RACKET / (OBJECT + RACKET) * (1.0 + e) * (racket - arrival)


def racket_for(departure: float, arrival: float, e: float) -> float:
    """Return the racket's velocity [m/s] that changes the object's velocity from ``arrival`` to ``wanted``."""
    return arrival + (departure - arrival) * (OBJECT + RACKET) / (RACKET * (1.0 + e))


@dataclass(frozen=True, eq=False)
class Game:
    """A game: its flights as one ``Motion`` each, and the assumed restitution."""

    flights: list[Motion]
    believed: float

    @property
    def peaks(self) -> Array:
        """(n,) apex heights of the flights above the impact height [m], from the velocities."""
        starts = np.array([flight.v[0, 0] for flight in self.flights[1:]])
        return np.array([HEIGHTS[0], *(starts**2 / (2.0 * GRAVITY))])

    @property
    def hits(self) -> Array:
        """(n,) times of the impacts [s]."""
        return np.array([flight.t[-1] for flight in self.flights])


def play(believed: float) -> Game:
    """Return the game of a controller that assumes the restitution ``believed``."""
    robot = body("juggler")
    q, v, t = np.array([HEIGHTS[0], 0.0]), np.zeros(2), 0.0
    departures = [math.sqrt(2.0 * GRAVITY * height) for height in HEIGHTS]
    flights = []
    for k in range(len(HEIGHTS)):
        # Time of flight until the object is back at zero height, from its own state.
        duration = (v[0] + math.sqrt(v[0] ** 2 + 2.0 * GRAVITY * max(q[0], 0.0))) / GRAVITY
        arrival = v[0] - GRAVITY * duration
        last = racket_for(departures[(k + 1) % len(HEIGHTS)], arrival, believed)
        rise = -q[1]
        cubic = [q[1], v[1], 3 * rise / duration**2 - (2 * v[1] + last) / duration]
        plan = Polynomial([*cubic, (v[1] + last) / duration**2 - 2 * rise / duration**3])
        speeding, begun = plan.deriv(2), t

        def forces(time: float, _q: Array, _v: Array, u: Polynomial = speeding, begun: float = begun) -> Array:
            return np.array([0.0, RACKET * (float(u(time - begun)) + GRAVITY)])

        system = between_stops(robot, [[1.0, -1.0]], [0.0], forces)
        flight = motion(system, q, v, 2.0 * duration, start=t, rebound=Rebound(RESTITUTION), every=2e-3, most_impacts=0)
        flights.append(flight)
        t, q, v = float(flight.t[-1]), flight.q[-1], flight.v[-1]
        terms = system(t, q, v)
        v = IMPACT_LAWS["haug"](terms.M, terms.J, v, RESTITUTION).v_after
    return Game(flights, believed)


@dataclass(frozen=True, eq=False)
class JugglerResult:
    """A game with the true restitution, and one with a wrong value."""

    right: Game
    wrong: Game


def measure(_progress: bool = False) -> JugglerResult:
    """Compute both games."""
    return JugglerResult(play(RESTITUTION), play(WRONG))


def with_wrong() -> Array:
    """Return the heights [m] from one impact to the next, for a controller with the wrong restitution."""
    speed, peaks = math.sqrt(2.0 * GRAVITY * HEIGHTS[0]), [HEIGHTS[0]]
    for height in HEIGHTS[1:]:
        racket = racket_for(math.sqrt(2.0 * GRAVITY * height), -speed, WRONG)
        speed = returned(racket, -speed)
        peaks.append(speed**2 / (2.0 * GRAVITY))
    return np.array(peaks)


def checks(result: JugglerResult) -> Iterator[Check]:
    """Yield the checks of heights, times and gaps."""
    speeds = np.sqrt(2.0 * GRAVITY * np.array(HEIGHTS))
    times = np.cumsum([speeds[0], *(2.0 * speeds[1:])]) / GRAVITY
    yield Check.at_most("|heights - those ordered|", float(np.abs(result.right.peaks - HEIGHTS).max()), 1e-9, "m")
    yield Check.at_most("|impacts - closed form|", float(np.abs(result.right.hits - times).max()), 1e-9, "s")
    yield Check.at_most(
        "|height of the racket at an impact|",
        max(abs(float(flight.q[-1, 1])) for flight in result.right.flights),
        1e-9,
        "m",
    )
    yield Check.at_most(
        "|object between impacts - parabola|", max(map(parabola_error, result.right.flights)), 1e-9, "m"
    )
    yield Check.at_least(
        "least distance of object and racket, except 10 ms around an impact", least_gap(result.right), 1e-3, "m"
    )
    yield Check.at_most(
        f"e taken for {WRONG:g}: |heights - from one impact to the next by hand|",
        float(np.abs(result.wrong.peaks - with_wrong()).max()),
        1e-8,
        "m",
    )
    yield Check.shown("... its largest error of a height", float(np.abs(result.wrong.peaks - HEIGHTS).max()), "m")


def parabola_error(flight: Motion) -> float:
    """Return the largest distance of the object from its free-flight parabola [m]."""
    elapsed = flight.t - flight.t[0]
    expected = flight.q[0, 0] + flight.v[0, 0] * elapsed - 0.5 * GRAVITY * elapsed**2
    return float(np.abs(flight.q[:, 0] - expected).max())


def least_gap(game: Game) -> float:
    """Return the smallest distance of object and racket [m], at least 10 ms away from impacts."""
    gaps = []
    for flight in game.flights:
        away = (flight.t > flight.t[0] + 0.01) & (flight.t < flight.t[-1] - 0.01)
        gaps.append((flight.q[away, 0] - flight.q[away, 1]).min())
    return float(min(gaps))


def draw(figure: Figure, result: JugglerResult) -> None:
    """Draw both games over time."""
    for ax, game in zip(figure.subplots(2, 1, sharex=True), (result.right, result.wrong), strict=True):
        for k, flight in enumerate(game.flights):
            named = k == 0
            ax.plot(flight.t, flight.q[:, 0], color=FOOT_COLOURS[0], label="object" if named else None)
            ax.plot(flight.t, flight.q[:, 1], color=FOOT_COLOURS[1], label="racket" if named else None)
            middle = 0.5 * (flight.t[0] + flight.t[-1]) if k else flight.t[0]
            ax.plot(middle, HEIGHTS[k], "_", color=LIMIT_COLOUR, markersize=22, label="ordered" if named else None)
        ax.plot(game.hits, np.zeros_like(game.hits), ".", color="#222222", markersize=4)
        assumption = "known" if game is result.right else f"taken for {WRONG:g}"
        label(ax, f"restitution {RESTITUTION:g}, {assumption}", time="time [s]", y="z [m]", legend="above")


case = study(measure, checks, draw, (11.0, 6.5))
