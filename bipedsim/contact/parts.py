"""What the ground did over a step that was solved in parts, as a vertex landed in it or a joint met its stop."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from bipedsim.contact.base import STATE_CHANGES, STEPS, UNRESOLVED, ContactResult
from bipedsim.contact.write_result import for_kernels, to_sole, write_pressure
from bipedsim.dynamics import Projection
from bipedsim.numerics import Array, Flags, Integers, kernel, zeros_of

ROUNDING = 1e-9
"""Of the share of friction that is used, and of the CoP [m]."""


class Sums(NamedTuple):
    """What the model fills, the sums over the parts, and counters and modes after the first.

    ``moment`` is the CoP times the normal impulse [N.s.m].
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


# Entry by entry: what numba brings along for whole arrays of unknown shapes takes seconds to compile.
@kernel
def begin_parts(s: Sums) -> None:
    """Start with the part that was solved last."""
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
    """Take in the part that was solved last, which acts for ``share`` of the step, or ``at_once``."""
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
    """Write the sums as what the ground did over the step.

    Returns:
        Whether every part has an answer, and the sums push and keep to their cones, as each of the parts does.
    """
    p, r = s.projection, s.result
    changes = s.counted[STATE_CHANGES]
    sound = r.counters[UNRESOLVED] == s.counted[UNRESOLVED]
    for k in range(r.impulse.shape[0]):
        for a in range(6):
            r.impulse[k, a] = s.impulse[k, a]
            r.wrench[k, a] = s.wrench[k, a]
            r.impact[k, a] = s.impact[k, a]
        for i in range(r.vertex_forces.shape[1]):
            for a in range(3):
                r.vertex_forces[k, i, a] = s.vertex_forces[k, i, a]
            sound = sound and r.vertex_forces[k, i, 2] >= 0.0
        changes += 1 if r.mode[k] != s.mode[k] or r.sliding[k] != s.sliding[k] else 0
        load = r.impulse[k, 2]
        write_pressure(k, p, r, s.moment[k, 0] / load, s.moment[k, 1] / load)
        sound = sound and load >= 0.0
        if load > 0.0:
            sound = sound and r.friction_used[k] <= 1.0 + ROUNDING and r.cop_margin[k] >= -ROUNDING
    r.counters[STATE_CHANGES] = changes
    r.counters[STEPS] = s.counted[STEPS]
    return sound


class Parts:
    """Sums the results of the parts of a step in that of the contact model.

    Args:
        projection: Refilled by every part.
        result: What the contact model fills, and what holds the sum in the end: modes are the last ones, the CoP is the
            mean weighted by normal force.

    Attributes:
        sums: For :func:`begin_parts`, :func:`add_part` and :func:`end_parts`.
    """

    def __init__(self, projection: Projection, result: ContactResult) -> None:
        feet, widest = result.vertex_forces.shape[:2]
        self._result = result
        self.sums = zeros_of(Sums, {"K": feet, "N": widest}, projection=projection, result=for_kernels(result))

    def again(self) -> None:
        """Take back what was counted for the step: it will be solved as a whole."""
        self._result.counters[STEPS] -= 1

    def fail(self) -> None:
        """Count that no answer was found for what was solved last, whatever the model found of the contact."""
        self._result.counters[UNRESOLVED] += 1
