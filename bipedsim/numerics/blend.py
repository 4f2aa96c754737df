"""Smooth rest-to-rest step, used by postures, plans and swing feet."""

from __future__ import annotations

from bipedsim.numerics.jit import kernel


@kernel
def quintic(t: float, duration: float) -> tuple[float, float, float]:
    """Return a rest-to-rest step from 0 to 1 over ``duration`` at time ``t`` [s], with its first two derivatives."""
    x = min(max(t / duration, 0.0), 1.0)
    value = x * x * x * (10.0 + x * (-15.0 + 6.0 * x))
    rate = 30.0 * x * x * (1.0 - x) ** 2 / duration
    return value, rate, 60.0 * x * (1.0 - x) * (1.0 - 2.0 * x) / (duration * duration)
