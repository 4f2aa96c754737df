"""Ground reaction of a step that was divided into sub-steps by a touchdown or a joint limit."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from bipedsim.contact.base import STATE_CHANGES, STEPS, UNRESOLVED, ContactResult
from bipedsim.contact.write_result import for_kernels, to_sole, write_pressure
from bipedsim.dynamics import Projection
from bipedsim.numerics import Array, Flags, Integers, kernel, zeros_of

ROUNDING = 1e-9
"""Tolerance on the used fraction of friction, and on the CoP margin [m]."""


class Sums(NamedTuple):
    """Sums over the sub-steps of one step.

    Attributes:
        projection: Projection of the current sub-step.
        result: Result that the contact model fills.
        impulse, wrench, impact, vertex_forces: Sums with the meaning of the same names in :class:`ContactResult`.
        moment: (K, 2) sum of CoP times normal impulse [N.s.m].
        counted: (4,) counters of the result after the first sub-step.
        mode, sliding: (K,) modes and friction states after the first sub-step.
    """

    projection: Projection
    result: ContactResult
    impulse: Annotated[Array, "K", 6]
    wrench: Annotated[Array, "K", 6]
    impact: Annotated[Array, "K", 6]
    vertex_forces: Annotated[Array, "K", "N", 3]
    moment: Annotated[Array, "K", 2]
    counted: Annotated[Integers, 4]
    mode: Annotated[Integers, "K"]
    sliding: Annotated[Flags, "K"]


# The kernels copy entry by entry: whole-array operations on unknown shapes take seconds to compile.
@kernel
def begin_parts(s: Sums) -> None:
    """Clear the sums and store the modes and counters of the sub-step that was solved last."""
    r = s.result
    for k in range(r.impulse.shape[0]):
        for a in range(6):
            s.impulse[k, a] = s.wrench[k, a] = s.impact[k, a] = 0.0
        s.moment[k, 0] = s.moment[k, 1] = 0.0
        for i in range(r.vertex_forces.shape[1]):
            for a in range(3):
                s.vertex_forces[k, i, a] = 0.0
        s.mode[k] = r.mode[k]
        s.sliding[k] = r.sliding[k]
    for a in range(4):
        s.counted[a] = r.counters[a]


@kernel
def add_part(s: Sums, share: float, at_once: bool) -> None:
    """Add the sub-step that was solved last.

    Args:
        s: See :class:`Sums`.
        share: Fraction of the step for which its forces act.
        at_once: Whether its impulse is an impact.
    """
    r = s.result
    for k in range(r.impulse.shape[0]):
        for a in range(6):
            s.impulse[k, a] += share * r.impulse[k, a]
            s.wrench[k, a] += share * r.wrench[k, a]
        if at_once:
            to_sole(s.projection.rotation[k], r.impulse[k], s.impact[k])
        if r.impulse[k, 2] != 0.0:
            for a in range(2):
                s.moment[k, a] += share * r.impulse[k, 2] * r.cop[k, a]
        for i in range(r.vertex_forces.shape[1]):
            for a in range(3):
                s.vertex_forces[k, i, a] += share * r.vertex_forces[k, i, a]


@kernel
def end_parts(s: Sums) -> bool:
    """Write the sums into the result as the ground reaction of the whole step.

    Returns:
        Whether the result is valid: every sub-step was resolved, normal forces are compressive, and friction and CoP
        are within their limits.
    """
    p, r = s.projection, s.result
    changes = s.counted[STATE_CHANGES]
    valid = r.counters[UNRESOLVED] == s.counted[UNRESOLVED]
    for k in range(r.impulse.shape[0]):
        for a in range(6):
            r.impulse[k, a] = s.impulse[k, a]
            r.wrench[k, a] = s.wrench[k, a]
            r.impact[k, a] = s.impact[k, a]
        for i in range(r.vertex_forces.shape[1]):
            for a in range(3):
                r.vertex_forces[k, i, a] = s.vertex_forces[k, i, a]
            valid = valid and r.vertex_forces[k, i, 2] >= 0.0
        changes += 1 if r.mode[k] != s.mode[k] or r.sliding[k] != s.sliding[k] else 0
        load = r.impulse[k, 2]
        write_pressure(k, p, r, s.moment[k, 0] / load, s.moment[k, 1] / load)
        valid = valid and load >= 0.0
        if load > 0.0:
            valid = valid and r.friction_used[k] <= 1.0 + ROUNDING and r.cop_margin[k] >= -ROUNDING
    r.counters[STATE_CHANGES] = changes
    r.counters[STEPS] = s.counted[STEPS]
    return valid


class Parts:
    """Sum the results of the sub-steps of a step in the result of the contact model.

    Args:
        projection: The projection, which every sub-step refills.
        result: Result that the contact model fills. After :func:`end_parts` it contains the sum. Its modes are those of
            the last sub-step; its CoP is the mean weighted by normal force.

    Attributes:
        sums: Argument of :func:`begin_parts`, :func:`add_part` and :func:`end_parts`.
    """

    def __init__(self, projection: Projection, result: ContactResult) -> None:
        feet, widest = result.vertex_forces.shape[:2]
        self._result = result
        self.sums = zeros_of(Sums, {"K": feet, "N": widest}, projection=projection, result=for_kernels(result))

    def again(self) -> None:
        """Uncount the step, because it will be solved again without sub-steps."""
        self._result.counters[STEPS] -= 1

    def fail(self) -> None:
        """Count the last solve as unresolved, regardless of the report of the contact model."""
        self._result.counters[UNRESOLVED] += 1
