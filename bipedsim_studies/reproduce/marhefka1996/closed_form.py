"""Give closed forms for a mass that hits the ground without other forces (eq. 19 and extensions).

With c = 3/2 alpha v, eq. 10 integrates to x^(n+1) = (n+1) m / k (3/2 alpha)^-2 (B(c_i) - B(c)), B(c) = c - ln |1 + c|.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from bipedsim.numerics import Array
from bipedsim_studies.reproduce.marhefka1996.impact import PointContact


def lost(c: Array | float) -> Array | float:
    """Return B(c) = c - ln |1 + c|."""
    return c - np.log(np.abs(1.0 + np.asarray(c)))


def penetration(contact: PointContact, v_start: float, v: Array | float, x_start: float = 0.0) -> Array:
    """Return the depth [m] at velocity ``v`` [m/s], for a mass that has velocity ``v_start`` at depth ``x_start``.

    This is eq. 19, extended to other initial depths, with a single alpha. Velocities are positive into the ground. The
    depth is NaN if the mass never has that velocity.
    """
    rate = 1.5 * contact.alpha
    power = contact.exponent + 1.0
    gained = lost(rate * v_start) - np.asarray(lost(rate * np.asarray(v)))
    inside = x_start**power + power * contact.mass / (contact.stiffness * rate**2) * gained
    return np.asarray(np.where(inside < 0.0, np.nan, np.abs(inside) ** (1.0 / power)))


def deepest(contact: PointContact, v_start: float) -> float:
    """Return the maximum depth of a mass with ``v_start`` [m]; the damping during restitution does not affect it."""
    return float(penetration(contact, v_start, 0.0))


def restitution(alpha_v: float, ratio: float = 1.0) -> float:
    """Return the coefficient of restitution of an impact; for ``ratio`` 1, this is eq. 19 at x = 0.

    With another alpha during restitution, the two branches meet at v = 0 at one depth: B(c_o) = ratio^2 B(c_i).

    Args:
        alpha_v: alpha during compression times the impact velocity.
        ratio: alpha during restitution over alpha during compression.
    """
    inward = 1.5 * alpha_v
    energy = float(lost(inward))
    if ratio == 0.0:
        # Without damping during restitution, v_o^2 / 2 is the work of the spring per unit of mass.
        return float(np.sqrt(2.0 * energy)) / inward
    target = ratio**2 * energy
    # With u = ln(1 + c_o), B = e^u - 1 - u.
    u = brentq(lambda u: np.expm1(u) - u - target, -1.0 - target, 0.0, xtol=1e-300, rtol=1e-15)
    return float(-np.expm1(u)) / (ratio * inward)
