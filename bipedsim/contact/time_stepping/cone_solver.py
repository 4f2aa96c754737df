"""Combined solver of point contacts: Newton's method near a solution, sweeps and ADMM far from it.

In nearly all steps, two or three Newton steps from the impulses of the last step are enough. Otherwise, sweeps over the
contacts continue, which take few iterations. Then ADMM continues, which converges from more initial values. Newton's
method tries again after each block of these. None of the methods converges for every problem; the residual decides.
"""

from __future__ import annotations

import numpy as np

from bipedsim.contact.time_stepping.cone_admm import admm, matrix_cost, onto_cone, start_admm
from bipedsim.contact.time_stepping.cone_newton import newton
from bipedsim.contact.time_stepping.cone_problem import (
    ConeProblem,
    clear_open_points,
    copy_points,
    fill_velocities,
    measure,
    reserve_budget,
)
from bipedsim.contact.time_stepping.cone_sweeps import sweep
from bipedsim.numerics import kernel

PROXIMAL = 1e-7
"""Initial weight of the proximal term of a Newton step, relative to the mobility of a point."""
SWEPT, SOFTER = 8, 1e-4
"""Maximum number of sweep blocks before ADMM, and initial Newton weight after every second one.

That weight is alternately multiplied by ``MILDER``.
"""
PATIENT = (1e-9, 1e-8, 1e-7, 1e-6)
"""Weights of the patient Newton steps, which start from the best impulses so far, after every second sweep block."""
MILDER = 100.0
"""After a block of ADMM, Newton's method starts with PROXIMAL times this to the power of 0, 1, 2, 3 in turn."""
PENALTY = 0.3
"""Penalty of ADMM relative to the mobility of a point; restarts use 0.1, 1 and 10 times this in turn."""
PATIENCE, LEAST_DAMPING = 3, 0.01
"""De Saxcé's correction can oscillate. The damping factor halves after this many blocks, down to the second value."""
RESTART = 24
"""Number of blocks after which ADMM restarts, alternately from zero and from the best impulses so far."""


@kernel
def solve_cones(G, q: ConeProblem) -> bool:
    """Solve the problem from the impulses in ``q.f``; return whether the residual reached the tolerance.

    ``q.f`` and ``q.u`` are the best values found; ``q.residual`` is their residual. They are never NaN for finite
    input. The solver takes at most half of the remaining budget of the step. It makes some sweeps even without budget.

    Args:
        G: (6K, 6K) Delassus matrix of the feet.
        q: The problem: points, foot, arm, mu, mobility, g, scale and f are inputs.
    """
    q.used[0] = 0
    q.residual[0] = np.inf
    q.best[:, :] = 0.0
    reserved = reserve_budget(q)
    newton(G, q, PROXIMAL, False)
    _sweep_and_try(G, q)
    block = 0
    damping = 1.0
    while q.residual[0] > q.tolerance and q.used[0] < q.iterations and q.budget[0] > matrix_cost(q):
        if block % RESTART == 0:
            attempt = block // RESTART
            damping = 1.0
            copy_points(q.best, q.f)
            if attempt % 2 == 1:
                q.f[:, :] = 0.0
            start_admm(G, q, PENALTY * 10.0 ** ((attempt + 1) % 3 - 1))
        elif block % PATIENCE == 0:
            damping = max(0.5 * damping, LEAST_DAMPING)
        admm(G, q, damping)
        newton(G, q, PROXIMAL * MILDER ** (block % 4), False)
        block += 1
    _end_in_cones(G, q)
    q.budget[0] = max(q.budget[0], 0) + reserved
    return q.residual[0] <= q.tolerance


@kernel
def _sweep_and_try(G, q: ConeProblem):
    """Alternate sweeps and Newton's method until the problem is solved, for at most ``SWEPT`` blocks."""
    copy_points(q.best, q.z)
    for block in range(SWEPT):
        # The first block always runs: it is cheap, and near a solution it gives a usable result.
        if q.residual[0] <= q.tolerance or q.used[0] >= q.iterations or (block > 0 and q.budget[0] <= 0):
            return
        # The sweeps continue from their own impulses, regardless of the result of Newton's method.
        copy_points(q.z, q.f)
        sweep(G, q)
        copy_points(q.f, q.z)
        patient = block % 2 == 1
        again = block // 2
        if patient:
            copy_points(q.best, q.f)
        newton(G, q, PATIENT[again % 4] if patient else SOFTER * MILDER ** (again % 2), patient)


@kernel
def _end_in_cones(G, q: ConeProblem):
    """Store the best impulses, projected on the cones if the residual does not increase.

    The impulse of an open point becomes exactly zero.
    """
    copy_points(q.best, q.f)
    for m in range(q.points[0]):
        onto_cone(q.f[m], q.mu[m])
    fill_velocities(G, q)
    now = measure(q)
    if now <= max(q.residual[0], q.tolerance):
        q.residual[0] = now
    else:
        copy_points(q.best, q.f)
        fill_velocities(G, q)
    clear_open_points(q)
