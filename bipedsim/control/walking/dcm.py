"""The divergent component of motion (DCM) of a linear inverted pendulum whose ZMP is a piecewise cubic of time.

With omega = sqrt(g / z), x'' = omega^2 (x - p) splits into two parts. The DCM xi = x + x' / omega diverges from the ZMP
p: xi' = omega (xi - p). The position x converges to xi. The DCM is therefore computed backwards from its final value
(Englsberger et al., "Three-dimensional bipedal walking control based on divergent component of motion", 2015). A
polynomial p has the particular solution p + p' / omega + p'' / omega^2 + ..., so every piece has a closed form.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bipedsim.numerics import Array, Integers, kernel


class DcmPlan(NamedTuple):
    """A ZMP over time and the DCM that belongs to it; the first ``n`` pieces are valid.

    Attributes:
        n: (1,) number of pieces.
        knots: (S + 1,) times between the pieces [s].
        zmp: (S, 2, 4) coefficients of each piece along x and y: sum c_i (t - knot)^i [m].
        end: (S, 2) DCM at the end of each piece [m].
    """

    n: Integers
    knots: Array
    zmp: Array
    end: Array

    @classmethod
    def empty(cls, pieces: int) -> DcmPlan:
        """Allocate a plan for up to ``pieces`` pieces."""
        return cls(np.zeros(1, np.int64), np.zeros(pieces + 1), np.zeros((pieces, 2, 4)), np.zeros((pieces, 2)))


@kernel
def _particular(c, t: float, omega: float) -> float:  # type: ignore[no-untyped-def]
    """Return p + p' / omega + p'' / omega^2 + p''' / omega^3 of the cubic ``c`` (4,) at ``t`` [s]."""
    p = c[0] + t * (c[1] + t * (c[2] + t * c[3]))
    first = c[1] + t * (2.0 * c[2] + t * 3.0 * c[3])
    second = 2.0 * c[2] + t * 6.0 * c[3]
    return p + (first + (second + 6.0 * c[3] / omega) / omega) / omega


@kernel
def add_line(plan: DcmPlan, duration: float, start, end) -> None:  # type: ignore[no-untyped-def]
    """Add a piece on which the ZMP moves at constant speed from ``start`` to ``end`` (2,) [m] in ``duration`` [s]."""
    k = plan.n[0]
    plan.knots[k + 1] = plan.knots[k] + duration
    for axis in range(2):
        plan.zmp[k, axis, 0] = start[axis]
        plan.zmp[k, axis, 1] = (end[axis] - start[axis]) / duration
        plan.zmp[k, axis, 2] = 0.0
        plan.zmp[k, axis, 3] = 0.0
    plan.n[0] = k + 1


@kernel
def add_swing(plan: DcmPlan, duration: float, start, end, leg_shift, knee, even: float) -> None:  # type: ignore[no-untyped-def]
    """Add a piece of single support, on which the ZMP of all forces moves from ``start`` to ``end`` (2,) [m].

    Args:
        plan: The plan to extend.
        duration: Duration of the swing [s].
        start, end: (2,) ZMP [m].
        leg_shift: (2,) kappa times the displacement of the foot [m s^2]; the inertia of the leg shifts the pendulum's
            ZMP by -kappa times the foot's acceleration.
        knee: (2,) shift due to the bending of the leg [m], times :func:`bipedsim.control.walking.swing.bending`.
        even: Share of a cubic in the foot's path; the rest is a quintic.
    """
    k = plan.n[0]
    plan.knots[k + 1] = plan.knots[k] + duration
    for axis in range(2):
        scale = leg_shift[axis] / (duration * duration)
        quintic_scale = scale * (1.0 - even)
        cubic_scale = scale * even
        bent = knee[axis]
        plan.zmp[k, axis, 0] = start[axis] - 6.0 * cubic_scale - bent
        plan.zmp[k, axis, 1] = (
            end[axis] - start[axis] + 12.0 * cubic_scale - 60.0 * quintic_scale + 6.0 * bent
        ) / duration
        plan.zmp[k, axis, 2] = (180.0 * quintic_scale - 6.0 * bent) / duration**2
        plan.zmp[k, axis, 3] = -120.0 * quintic_scale / duration**3
    plan.n[0] = k + 1


@kernel
def solve_backwards(plan: DcmPlan, omega: float, end, begin) -> None:  # type: ignore[no-untyped-def]
    """Fill ``plan.end`` so that the DCM ends at ``end`` (2,), and ``begin`` (2,) with the resulting first DCM [m]."""
    last = plan.n[0] - 1
    for axis in range(2):
        xi = end[axis]
        for k in range(last, -1, -1):
            duration = plan.knots[k + 1] - plan.knots[k]
            plan.end[k, axis] = xi
            c = plan.zmp[k, axis]
            xi = _particular(c, 0.0, omega) + (xi - _particular(c, duration, omega)) * math.exp(-omega * duration)
        begin[axis] = xi


@kernel
def begin_at(plan: DcmPlan, omega: float, pieces: int, begin, wanted, most: float) -> None:  # type: ignore[no-untyped-def]
    """Shift the ZMP of the first ``pieces`` so that the DCM begins at ``wanted`` (2,) instead of ``begin`` (2,) [m].

    The later pieces do not change. The shift is limited to ``most`` [m] along each axis.
    """
    share = 1.0 - math.exp(-omega * (plan.knots[pieces] - plan.knots[0]))
    for axis in range(2):
        shift = min(max((wanted[axis] - begin[axis]) / share, -most), most)
        xi = plan.end[pieces - 1, axis]
        for k in range(pieces - 1, -1, -1):
            duration = plan.knots[k + 1] - plan.knots[k]
            plan.zmp[k, axis, 0] += shift
            plan.end[k, axis] = xi
            c = plan.zmp[k, axis]
            xi = _particular(c, 0.0, omega) + (xi - _particular(c, duration, omega)) * math.exp(-omega * duration)


@kernel
def lean_first(plan: DcmPlan, omega: float, begin, wanted) -> None:  # type: ignore[no-untyped-def]
    """Bend the ZMP of the first piece so that the DCM begins at ``wanted`` (2,) instead of ``begin`` (2,) [m].

    The added parabola is zero at both ends of the piece, so neither the ZMP nor the loads of the feet jump.
    """
    duration = plan.knots[1] - plan.knots[0]
    bend = (0.0, 4.0 / duration, -4.0 / (duration * duration), 0.0)
    share = _particular(bend, 0.0, omega) - _particular(bend, duration, omega) * math.exp(-omega * duration)
    for axis in range(2):
        height = (wanted[axis] - begin[axis]) / share
        plan.zmp[0, axis, 1] += height * bend[1]
        plan.zmp[0, axis, 2] += height * bend[2]


@kernel
def evaluate(plan: DcmPlan, omega: float, t: float, zmp, xi) -> None:  # type: ignore[no-untyped-def]
    """Fill ``zmp`` (2,) and ``xi`` (2,) [m] at time ``t`` [s]; after the last piece, their final values."""
    last = plan.n[0] - 1
    k = 0
    while k < last and t >= plan.knots[k + 1]:
        k += 1
    duration = plan.knots[k + 1] - plan.knots[k]
    s = min(max(t - plan.knots[k], 0.0), duration)
    for axis in range(2):
        c = plan.zmp[k, axis]
        zmp[axis] = c[0] + s * (c[1] + s * (c[2] + s * c[3]))
        offset = plan.end[k, axis] - _particular(c, duration, omega)
        xi[axis] = _particular(c, s, omega) + offset * math.exp(-omega * (duration - s))
