"""The rocking block after Housner, "The behavior of inverted pendulum structures during earthquakes" (Bulletin of the
Seismological Society of America 53, 1963). Between impacts it is a pendulum about an edge, integrated to 1e-12. An
impact conserves the angular momentum about the edge that lands.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from physics_support import G
from scipy.integrate import solve_ivp

WIDTH, HEIGHT = 0.1, 0.4
"""Half of the dimensions of the block [m]; it is thin along its edges."""
REACH = np.hypot(WIDTH, HEIGHT)
CRITICAL = np.arctan2(WIDTH, HEIGHT)


@cache
def housner(impacts: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the times of the impacts [s] of a block let go at half its critical angle, and the peaks between them."""
    rate = 0.75 * G / REACH

    def pendulum(_t: float, x: np.ndarray) -> list[float]:
        return [x[1], -rate * np.sin(CRITICAL - x[0])]

    def down(_t: float, x: np.ndarray) -> float:
        return float(x[0])

    down.terminal, down.direction = True, -1  # type: ignore[attr-defined]
    t, state, times, peaks = 0.0, [0.5 * CRITICAL, 0.0], [], []
    kept = 1.0 - 1.5 * np.sin(CRITICAL) ** 2
    for _ in range(impacts):
        way = solve_ivp(pendulum, (t, t + 5.0), state, events=down, rtol=1e-12, atol=1e-14)
        t = float(way.t_events[0][0])
        speed = -kept * float(way.y_events[0][0][1])
        times.append(t)
        peaks.append(CRITICAL - np.arccos(min(np.cos(CRITICAL) + 0.5 * speed**2 / rate, 1.0)))
        state = [0.0, speed]
    return np.array(times), np.array(peaks[:-1])
