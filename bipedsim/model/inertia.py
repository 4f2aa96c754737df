"""Inertia: whether a rigid body can have it, and the nearest one that a body can have."""

from __future__ import annotations

import numpy as np

from bipedsim.numerics import Array

SMALLEST_RADIUS = 1e-5
"""Radius of gyration [m] below which a link counts as a point mass, whose exported inertia is rounding noise."""
LARGEST_BODY = 1e12
"""Mass [kg] and inertia [kg.m^2] beyond which a body is a slip of the hand, and arithmetic ends."""
TOLERANCE = 1e-3
"""Slack of the triangle inequality, relative to the trace: CAD exports round to three or four digits."""
FLATTEST = 1e-3
"""Of a mended body: its least second moment of mass over the sum of the three."""


def inertia_problem(mass: float, inertia: Array) -> str:
    """Return why ``inertia`` (3, 3) about the CoM is not that of a rigid body of ``mass`` [kg], or an empty string."""
    if not (mass <= LARGEST_BODY and np.abs(inertia).max() <= LARGEST_BODY):
        return f"mass {mass:.4g} kg or inertia up to {np.abs(inertia).max():.4g} kg.m^2 is beyond {LARGEST_BODY:g}"
    moments = np.linalg.eigvalsh(inertia)
    slack = TOLERANCE * abs(moments).sum() + SMALLEST_RADIUS**2 * mass
    if moments[0] >= -slack and moments[0] + moments[1] >= moments[2] - slack:
        return ""
    return (
        f"inertia is not that of a rigid body: principal moments {moments[0]:.4g}, {moments[1]:.4g}, "
        f"{moments[2]:.4g} kg.m^2; each must be positive and at most the sum of the other two. Mend it in the URDF, "
        "or in robot.yaml let it be mended (`inertia_check: mend`), give another (`inertia`), or make one body of it "
        "and the one that carries it (`locked`)"
    )


def nearest_inertia(inertia: Array) -> Array:
    """Return the inertia (3, 3) [kg.m^2] nearest to ``inertia`` that a rigid body can have.

    A body can have I if and only if S = tr(I)/2 - I, its second moments of mass, is positive semidefinite (Wensing,
    Kim and Slotine, IEEE RA-L 2018). The nearest one in the Frobenius norm has the principal axes of I. Its second
    moments s minimise |s - s0|^2 + (sum of s - s0)^2, which is |I - I0|^2 as I = tr(S) - S. Each is at least
    ``FLATTEST`` of the sum, so that the body has an extent.

    Args:
        inertia: (3, 3) symmetric, about the CoM.
    """
    from scipy.optimize import nnls

    moments, axes = np.linalg.eigh(inertia)
    second = 0.5 * moments.sum() - moments
    least = FLATTEST * float(np.abs(second).sum())
    rows = np.vstack([np.eye(3), np.ones(3)])
    beyond, _ = nnls(rows, rows @ (second - least))
    second = beyond + least
    return np.asarray((axes * (second.sum() - second)) @ axes.T)
