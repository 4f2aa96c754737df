"""Put springs between the three balls (comment 3 of section 3.2.2, Fig. 6) and compare with the rigid limits.

Contacts with a flexible interface are complementary too (Fig. 6): a spring pushes while its ends overlap and never
pulls. The outcome depends only on the ratio of the two stiffnesses. The limits of this ratio are the two rigid outcomes
that conserve energy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp
from scipy.linalg import eigh
from scipy.optimize import brentq

from bipedsim.numerics import Array
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR
from bipedsim_studies.reproduce.common import Check, Figure, label, study
from bipedsim_studies.reproduce.hurmuzlu2001.three_balls import BEFORE, REBOUND, TEXTBOOK, Cradle, cradle

DECADE = 8
RATIOS = np.geomspace(1e-4, 1e4, 8 * DECADE + 1)
"""k_1 between the first two balls over k_2 between the last two, with ``DECADE`` values per decade."""
RELATIVE = 1e-10


def overlaps(balls: Cradle, q: Array) -> Array:
    """Return the compression (2,) of both springs [m]; it is zero while the balls are apart."""
    return np.maximum(-balls.J @ q, 0.0)


def through_springs(balls: Cradle, ratio: float) -> Array:
    """Return the velocities (3,) after an impact through springs of ``ratio`` and 1 N/m."""
    stiffness = np.array([ratio, 1.0])
    heavy = np.concatenate([np.ones(3), balls.masses])

    def rate(_t: float, y: Array) -> Array:
        return np.concatenate([y[3:], balls.J.T @ (stiffness * overlaps(balls, y[:3])) / balls.masses])

    def apart(_t: float, y: Array) -> float:
        # All gaps are open and opening, so no contact follows.
        return float(min((balls.J @ y[:3]).min(), (balls.J @ y[3:]).min()))

    apart.terminal, apart.direction = True, 1.0  # type: ignore[attr-defined]
    slow = 1.0 / math.sqrt(min(1.0, ratio))
    start = np.concatenate([np.zeros(3), BEFORE])
    solution = solve_ivp(
        rate,
        (0.0, 100.0 * slow),
        start,
        "DOP853",
        events=apart,
        rtol=RELATIVE,
        atol=1e-12 / heavy,
        first_step=1e-3 / math.sqrt(max(1.0, ratio)),
    )
    return np.asarray(solution.y[3:, -1])


def first_release(balls: Cradle, ratio: float) -> tuple[float, Array]:
    """Return the time [s] at which the first two balls separate, and the velocities (3,) then, by modal analysis.

    This is valid as long as the other spring stays compressed until then, as it does for equal springs.
    """
    K = balls.J.T @ np.diag([ratio, 1.0]) @ balls.J
    squares, modes = eigh(K, balls.M)
    b = modes.T @ balls.M @ np.array(BEFORE)
    w = np.sqrt(np.maximum(squares[1:], 0.0))

    def position(t: float) -> Array:
        return np.asarray(modes @ (b * np.array([t, *(np.sin(w * t) / w)])))

    end = brentq(lambda t: float(balls.J[0] @ position(t)), 1.0, 4.0, xtol=1e-14)
    return float(end), np.asarray(modes @ (b * np.array([1.0, *np.cos(w * end)])))


def equal_springs(balls: Cradle) -> Array:
    """Return the velocities (3,) after an impact through equal springs, by modal analysis alone.

    After the first two balls separate, the last two stay in contact for the rest of their own half period.
    """
    end, v = first_release(balls, 1.0)
    K = balls.J.T @ balls.J
    squares, modes = eigh(K, balls.M)
    b = modes.T @ balls.M @ np.array(BEFORE)
    w = np.sqrt(squares[1:])
    q = modes @ (b * np.array([end, *(np.sin(w * end) / w)]))
    # The overlap x of the last two balls obeys x'' = -2 x. It ends where its cosine and sine terms cancel.
    pressed, closing = -float(balls.J[1] @ q), -float(balls.J[1] @ v)
    loose = math.hypot(closing, math.sqrt(2.0) * pressed)
    middle = 0.5 * (v[1] + v[2])
    return np.array([v[0], middle - 0.5 * loose, middle + 0.5 * loose])


@dataclass(frozen=True, eq=False)
class SpringsResult:
    """Velocities (n, 3) after the impact for each of ``RATIOS``, and for equal springs by integration and by modes."""

    after: Array
    equal: Array
    modes: Array


def measure(_progress: bool = False) -> SpringsResult:
    """Compute the impacts through springs of all ratios."""
    balls = cradle()
    after = np.array([through_springs(balls, float(ratio)) for ratio in RATIOS])
    return SpringsResult(after, through_springs(balls, 1.0), equal_springs(balls))


def checks(result: SpringsResult) -> Iterator[Check]:
    """Yield the checks of momentum, energy and the rigid limits."""
    yield Check.at_most("|sum of momenta - 1|", float(np.abs(result.after.sum(axis=1) - 1.0).max()), 1e-9, "N.s")
    energies = np.square(result.after).sum(axis=1)
    yield Check.at_most("|energy after / before - 1|", float(np.abs(energies - 1.0).max()), 1e-7)
    yield Check.at_most(
        "equal springs: |v after - modes|", float(np.abs(result.equal - result.modes).max()), 1e-7, "m/s"
    )
    for k, v in enumerate(result.modes):
        yield Check.shown(f"... v of ball {k + 1}", float(v), "m/s")
    ends = (
        (0, REBOUND, "k1/k2 = 1e-4: |v after - (-1/3, 2/3, 2/3)|"),
        (-1, TEXTBOOK, "k1/k2 = 1e4: |v after - (0, 0, 1)|"),
    )
    for row, limit, name in ends:
        yield Check.at_most(name, float(np.abs(result.after[row] - limit).max()), 1e-4, "m/s")
    errors = [
        np.abs(result.after[[DECADE, 0]] - REBOUND).max(axis=1),
        np.abs(result.after[[-1 - DECADE, -1]] - TEXTBOOK).max(axis=1),
    ]
    yield Check.at_least(
        "... the error falls over the last decade, least factor", min(float(a / b) for a, b in errors), 9.0
    )


def draw(figure: Figure, result: SpringsResult) -> None:
    """Draw the outcome over the ratio of the stiffnesses."""
    ax = figure.subplots()
    for k in range(3):
        ax.semilogx(RATIOS, result.after[:, k], color=FOOT_COLOURS[k], label=f"ball {k + 1}")
        ax.plot([RATIOS[0], RATIOS[-1]], [REBOUND[k], TEXTBOOK[k]], "o", color=LIMIT_COLOUR, markersize=5)
    label(ax, "dots: the rigid outcomes of Fig. 10", x="k$_1$ / k$_2$", y="velocity after [m/s]", legend="best")


case = study(measure, checks, draw, (8.0, 5.0))
