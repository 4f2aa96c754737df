"""Where the swing foot goes: quintics from rest to rest, forwards at once, up and then down."""

from __future__ import annotations

from bipedsim.compiled import control_kernel
from bipedsim.quintic import quintic

FORWARD = (0.02, 0.98)
"""Shares of single support between which the foot moves over the ground."""
TOP = 0.45
"""Share of single support at which the foot is highest."""


@control_kernel
def forward(t: float, duration: float) -> tuple[float, float, float]:
    """Return the share of the way over the ground at ``t`` of ``duration`` [s], and its derivatives [1/s], [1/s^2]."""
    return quintic(t - FORWARD[0] * duration, (FORWARD[1] - FORWARD[0]) * duration)


@control_kernel
def height(t: float, duration: float, start: float, top: float, end: float) -> tuple[float, float, float]:
    """Return height [m], velocity and acceleration of a foot that rises from ``start`` to ``top`` and ends at ``end``.

    At rest at all three; after ``duration`` [s] it stays at ``end``.
    """
    up = TOP * duration
    if t < up:
        x, v, a = quintic(t, up)
        return start + x * (top - start), v * (top - start), a * (top - start)
    x, v, a = quintic(t - up, duration - up)
    return top + x * (end - top), v * (end - top), a * (end - top)
