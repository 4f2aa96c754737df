"""Check whether a rigid body can have an inertia, and find the nearest possible one."""

from __future__ import annotations

import numpy as np

from bipedsim.numerics import Array

SMALLEST_RADIUS = 1e-5
"""Radius of gyration below which a link is a point mass, whose exported inertia is rounding noise [m]."""
LARGEST_BODY = 1e12
"""Mass [kg] and inertia [kg.m^2] above which a body is an input error."""
TOLERANCE = 1e-3
"""Tolerance of the triangle inequality relative to the trace; CAD exports round to three or four digits."""
FLATTEST = 1e-3
"""Smallest second moment of mass of a corrected body, as a fraction of the sum of all three."""


def inertia_problem(mass: float, inertia: Array) -> str:
    """Return why ``inertia`` (3, 3) about the CoM is impossible for a body of ``mass`` [kg], or an empty string."""
    if not (mass <= LARGEST_BODY and np.abs(inertia).max() <= LARGEST_BODY):
        return f"mass {mass:.4g} kg or inertia up to {np.abs(inertia).max():.4g} kg.m^2 is beyond {LARGEST_BODY:g}"
    moments = np.linalg.eigvalsh(inertia)
    slack = TOLERANCE * abs(moments).sum() + SMALLEST_RADIUS**2 * mass
    if moments[0] >= -slack and moments[0] + moments[1] >= moments[2] - slack:
        return ""
    return (
        f"inertia is impossible for a rigid body: principal moments {moments[0]:.4g}, {moments[1]:.4g}, "
        f"{moments[2]:.4g} kg.m^2; each must be positive and at most the sum of the other two. Fix it in the URDF. "
        "Or, in robot.yaml, replace it by the nearest possible one (`inertia_check: mend`), define another one "
        "(`inertia`), or weld the link to its parent (`locked`)"
    )


def nearest_inertia(inertia: Array) -> Array:
    """Return the inertia (3, 3) [kg.m^2] of a rigid body that is nearest to ``inertia``.

    A body can have I if and only if its second moments of mass, S = tr(I)/2 - I, are positive semidefinite (Wensing,
    Kim and Slotine, IEEE RA-L 2018). The nearest inertia in the Frobenius norm has the principal axes of I. Its second
    moments s minimise |s - s0|^2 + (sum of s - s0)^2, which equals |I - I0|^2 because I = tr(S) - S. Each is at least
    ``FLATTEST`` of the sum, so that the body has an extent in all directions.

    Args:
        inertia: (3, 3) symmetric, about the CoM.
    """
    from scipy.optimize import nnls

    moments, axes = np.linalg.eigh(inertia)
    second = 0.5 * moments.sum() - moments
    minimum = FLATTEST * float(np.abs(second).sum())
    rows = np.vstack([np.eye(3), np.ones(3)])
    excess, _ = nnls(rows, rows @ (second - minimum))
    second = excess + minimum
    return np.asarray((axes * (second.sum() - second)) @ axes.T)
