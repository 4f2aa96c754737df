"""What is known in closed form of a mass that hits the ground without other forces (eq. 19, and beyond it).

With c = 3/2 alpha v, eq. 10 integrates to x^(n+1) = (n+1) m / k (3/2 alpha)^-2 (B(c_i) - B(c)), B(c) = c - ln |1 + c|.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from bipedsim.numerics import Array
from bipedsim_studies.reproduce.marhefka1996.impact import Contact


def lost(c: Array | float) -> Array | float:
    """Return B(c) = c - ln |1 + c|."""
    return c - np.log(np.abs(1.0 + np.asarray(c)))


def penetration(contact: Contact, v_start: float, v: Array | float, x_start: float = 0.0) -> Array:
    """Return the depth [m] at which a mass of ``v_start`` at depth ``x_start`` has the velocity ``v`` [m/s].

    Eq. 19, and for other depths to start from; one alpha. Velocities are positive into the ground. NaN where the mass
    never has that velocity.
    """
    rate = 1.5 * contact.alpha
    power = contact.exponent + 1.0
    gained = lost(rate * v_start) - np.asarray(lost(rate * np.asarray(v)))
    inside = x_start**power + power * contact.mass / (contact.stiffness * rate**2) * gained
    return np.asarray(np.where(inside < 0.0, np.nan, np.abs(inside) ** (1.0 / power)))


def deepest(contact: Contact, v_start: float) -> float:
    """Return the depth at which a mass of ``v_start`` turns [m]; the damping of the way out has no part in it."""
    return float(penetration(contact, v_start, 0.0))


def restitution(alpha_v: float, ratio: float = 1.0) -> float:
    """Return the coefficient of restitution of an impact; eq. 19 at x = 0 for ``ratio`` 1.

    With another alpha on the way out the two branches meet at v = 0, at one depth: B(c_o) = ratio^2 B(c_i).

    Args:
        alpha_v: alpha of the way in times the velocity of the impact.
        ratio: alpha of the way out over that of the way in.
    """
    inward = 1.5 * alpha_v
    energy = float(lost(inward))
    if ratio == 0.0:  # undamped on the way out: v_o^2 / 2 is the work of the spring
        return float(np.sqrt(2.0 * energy)) / inward
    target = ratio**2 * energy
    # In u = ln(1 + c_o): B = e^u - 1 - u.
    u = brentq(lambda u: np.expm1(u) - u - target, -1.0 - target, 0.0, xtol=1e-300, rtol=1e-15)
    return float(-np.expm1(u)) / (ratio * inward)
