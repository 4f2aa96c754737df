"""Check whether a body or a robot can have an inertia, and find the nearest one that a body can have."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from bipedsim.numerics import Array

SMALLEST_RADIUS = 1e-5
"""Radius of gyration below which a link is a point mass, whose exported inertia is rounding noise [m]."""
LARGEST_BODY = 1e12
"""Mass [kg] and inertia [kg.m^2] above which a body is an input error."""
TOLERANCE = 1e-3
"""Tolerance of the triangle inequality relative to the trace; CAD exports round to three or four digits."""
FLATTEST = 1e-3
"""Smallest second moment of mass of a corrected body, as a fraction of the sum of all three."""


REMEDY = (
    ". Fix it in the URDF. Or, in robot.yaml, replace it by the nearest possible one (`inertia_check: mend`), define "
    "another one (`inertia`), or weld the link to its parent (`locked`)"
)
"""Advice for the author of a robot.yaml."""


def inertia_problem(mass: float, inertia: Array, remedy: str = REMEDY) -> str:
    """Return why ``inertia`` (3, 3) about the CoM is impossible for a body of ``mass`` [kg], or an empty string.

    Args:
        mass: Mass [kg].
        inertia: (3, 3) inertia about the CoM [kg.m^2].
        remedy: Advice at the end of the message.
    """
    if not (mass <= LARGEST_BODY and np.abs(inertia).max() <= LARGEST_BODY):
        return f"mass {mass:.4g} kg or inertia up to {np.abs(inertia).max():.4g} kg.m^2 is beyond {LARGEST_BODY:g}"
    moments = np.linalg.eigvalsh(inertia)
    slack = TOLERANCE * abs(moments).sum() + SMALLEST_RADIUS**2 * mass
    if moments[0] >= -slack and moments[0] + moments[1] >= moments[2] - slack:
        return ""
    return (
        f"inertia is impossible for a rigid body: principal moments {moments[0]:.4g}, {moments[1]:.4g}, "
        f"{moments[2]:.4g} kg.m^2; each must be positive and at most the sum of the other two{remedy}"
    )


def mass_matrix_problem(model: pin.Model, q: Array) -> str:
    """Return why the mass matrix of ``model`` at ``q`` (nq,) is impossible, or an empty string."""
    data = model.createData()
    pin.crba(model, data, q)
    if not model.nv or np.linalg.eigvalsh(data.M, UPLO="U")[0] > 0.0:
        return ""
    worst = int(np.argmin(np.diag(data.M)))
    return (
        f"not positive definite (least inertia {data.M[worst, worst]:.3g} at velocity index {worst}); give the links "
        "inertia, or the joint an armature"
    )


def nearest_inertia(inertia: Array) -> Array:
    """Return the inertia (3, 3) [kg.m^2] of a rigid body that is nearest to ``inertia``.

    Let S = tr(I)/2 - I be the second moments of mass. A body can have I if and only if S is positive semidefinite
    (Wensing, Kim and Slotine, IEEE RA-L 2018). "Nearest" refers to the Frobenius norm. The nearest inertia has the
    principal axes of I. Its second moments s minimise |s - s0|^2 + (sum of s - s0)^2. This equals |I - I0|^2, because
    I = tr(S) - S. Each s is at least ``FLATTEST`` of the sum. The body then has an extent in all directions.

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
