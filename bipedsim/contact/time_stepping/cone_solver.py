"""Solvers of point contacts that help each other: Newton ends quickly near a solution, the others get near from afar.

From the impulses of the last step two or three Newton steps do in nearly all steps. Where they do not, sweeps over the
contacts move on, which takes few iterations, and then ADMM, which gets there from more places; Newton tries again after
each of their blocks. None converges for every such problem; the residual judges.
"""

from __future__ import annotations

import numpy as np

from bipedsim.contact.time_stepping.cone_admm import admm, matrix_cost, onto_cone, start_admm
from bipedsim.contact.time_stepping.cone_newton import newton
from bipedsim.contact.time_stepping.cone_problem import (
    ConeProblem,
    copy_points,
    fill_velocities,
    let_go,
    measure,
    set_aside,
)
from bipedsim.contact.time_stepping.cone_sweeps import sweep
from bipedsim.numerics import kernel

PROXIMAL = 1e-7
"""Weight of the proximal term of a Newton step, beside the mobility of a point, at the beginning."""
SWEPT, SOFTER = 8, 1e-4
"""Blocks of sweeps before ADMM is asked, and what Newton begins with after every other one, or ``MILDER`` times it."""
PATIENT = (1e-9, 1e-8, 1e-7, 1e-6)
"""Weights of the patient Newton steps after the others, from the best impulses so far."""
MILDER = 100.0
"""After a block of ADMM Newton begins with PROXIMAL times this to the power 0, 1, 2, 3 in turn."""
PENALTY = 0.3
"""Penalty of ADMM beside the mobility of a point; restarts take 0.1, 1 and 10 times as much in turn."""
PATIENCE, LEAST_DAMPING = 3, 0.01
"""De Saxcé's correction can go round in circles: after so many blocks, only half of its change is taken, to this."""
RESTART = 24
"""Blocks after which ADMM begins anew, in turn from nothing and from the best impulses so far."""


@kernel
def solve_cones(G, q: ConeProblem) -> bool:
    """Solve the problem from the impulses in ``q.f``; return whether the residual reached the tolerance.

    ``q.f`` and ``q.u`` are the best that was found, ``q.residual`` says how good. Never NaN for finite input. It
    takes half of what is left of the budget of the step at most, and makes some sweeps where nothing is left.

    Args:
        G: (6K, 6K) Delassus matrix of the feet.
        q: The problem: points, foot, arm, mu, mobility, g, scale and f are given.
    """
    q.used[0] = 0
    q.residual[0] = np.inf
    q.best[:, :] = 0.0
    aside = set_aside(q)
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
    q.budget[0] = max(q.budget[0], 0) + aside
    return q.residual[0] <= q.tolerance


@kernel
def _sweep_and_try(G, q: ConeProblem):
    """Sweep over the contacts until Newton's method ends what that began, ``SWEPT`` times at most."""
    copy_points(q.best, q.z)
    for block in range(SWEPT):
        # The first sweeps are made in any case: they take little, and near a solution they get.
        if q.residual[0] <= q.tolerance or q.used[0] >= q.iterations or (block > 0 and q.budget[0] <= 0):
            return
        # From where the sweeps were, whatever Newton made of it.
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
    """Take the best impulses, what the residual leaves outside a cone put back into it if that is no worse.

    Points that leave carry nothing, to the last bit.
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
    let_go(q)
