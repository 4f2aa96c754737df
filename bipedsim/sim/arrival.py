"""Compiled functions of a step with an impact: they pass the results of each part to the next one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

from numpy.typing import NDArray

from bipedsim.contact import ContactModel, Sums, add_part, begin_parts, end_parts
from bipedsim.dynamics import SPEED_LIMIT, Dynamics, Flight, Landing, Loops, Outcome, Stops, Tree, keep_within
from bipedsim.numerics import Array, Box, Flags, Kept, entry, keep, kept, kernel, put_back, ready, zeros_of


class Arrival(NamedTuple):
    """Store a step that is divided at an impact, with S joint limits and M rows of the loops.

    Attributes:
        sums: Sums of the ground reactions over the parts.
        memory: State after the first part, on which the next part depends.
        begun, change: (nv,) velocity before the step, and its change in the first part.
        way: (nv,) displacement from the beginning of the step to the impact.
        after: (nv,) velocity before the impact, then the velocity after it.
        stop_impulse, stops_begun: (S,) impulses of the joint limits over the step so far, and over the first part taken
            as a whole step [N.m.s]. loop_impulse, loops_begun: (M,) the same for the loops [N.s, N.m.s].
        until: (1,) fraction of the step during which forces act before the impact.
        flies: (2,) whether the momentum was conserved in the first part, and also in the impact.
        stopped: (1,) whether joint limits may have been active.
    """

    tree: Tree
    landing: Landing
    flight: Flight
    stops: Stops
    loops: Loops
    sums: Sums
    memory: Kept
    begun: Annotated[Array, "v"]
    change: Annotated[Array, "v"]
    way: Annotated[Array, "v"]
    after: Annotated[Array, "v"]
    stop_impulse: Annotated[Array, "S"]
    stops_begun: Annotated[Array, "S"]
    loop_impulse: Annotated[Array, "M"]
    loops_begun: Annotated[Array, "M"]
    until: Annotated[Array, 1]
    flies: Annotated[Flags, 2]
    stopped: Annotated[Flags, 1]

    @classmethod
    def of_robot(cls, dynamics: Dynamics, contact: ContactModel, sums: Sums) -> Arrival:
        """Allocate the arrays for a robot; they exclude the state of a contact model in Python."""
        compiled = getattr(contact, "compiled", None)
        own: list[NDArray[Any]] = dynamics.memory()
        d = dynamics
        return zeros_of(
            cls,
            {"v": len(d.change), "S": len(d.stops.held), "M": len(d.loops.impulse)},
            tree=d.tree,
            landing=d.landing,
            flight=d.flight,
            stops=d.stops,
            loops=d.loops,
            sums=sums,
            memory=kept(own, *([] if compiled is None else [compiled.memory])),
        )


@entry
def _store_first_part(boxed: Any, v: Array, stopped: bool) -> None:
    """Store the result of the first part, a whole step without the impact.

    Args:
        boxed: See :class:`Arrival`.
        v: (nv,) velocity before the step.
        stopped: Whether joint limits were active.
    """
    a = boxed.arrays
    keep(a.memory)
    for i in range(v.shape[0]):
        a.begun[i] = v[i]
        a.change[i] = a.tree.x[i]
        a.tree.acceleration[i] = a.tree.x[i] / a.tree.h
    for j in range(a.stop_impulse.shape[0]):
        a.stops_begun[j] = a.stop_impulse[j] if stopped else 0.0
    for m in range(a.loop_impulse.shape[0]):
        a.loops_begun[m] = a.loop_impulse[m]
    # An impact at a joint limit is internal, so the momentum of the whole robot is conserved.
    a.flies[0] = a.flight.aloft[0] and a.stops.arrivals[0] > 0
    a.stopped[0] = stopped


@entry
def _advance_to_impact(boxed: Any, behind: float) -> None:
    """Advance to the impact: fill ``way`` and ``after``; ``behind`` is the lag of velocities in steps."""
    a = boxed.arrays
    share = a.landing.share[0]
    until = behind + share
    a.until[0] = until
    begin_parts(a.sums)
    add_part(a.sums, until, False)
    for j in range(a.stop_impulse.shape[0]):
        a.stop_impulse[j] = a.stops_begun[j] * until
    for m in range(a.loop_impulse.shape[0]):
        a.loop_impulse[m] = a.loops_begun[m] * until
    for i in range(a.way.shape[0]):
        a.way[i] = share * a.tree.h * (a.begun[i] + (behind + 0.5 * share) * a.change[i])
        a.after[i] = a.begun[i] + until * a.change[i]


@entry
def _add_impact(boxed: Any) -> None:
    """Apply the impact: replace ``after`` by the velocity after it."""
    a = boxed.arrays
    _add(a, 1.0, True)
    a.flies[1] = a.flies[0] and a.flight.aloft[0]
    for i in range(a.after.shape[0]):
        a.after[i] += a.tree.x[i]
        a.tree.acceleration[i] = a.tree.x[i] / a.tree.h


@entry
def _finish(boxed: Any, q: Array, v: Array) -> int:
    """Add the rest of the step: set ``v`` (nv,) to its end, and fill the displacement from the impact at ``q``.

    Returns:
        TAKEN, or NO_ANSWER or DIVERGED with ``v`` unchanged.
    """
    a = boxed.arrays
    t, s = a.tree, a.stops
    remaining = 1.0 - a.landing.share[0]
    forces_share = 1.0 - a.until[0]
    _add(a, forces_share, False)
    # The rest of the step subtracts a fraction of its impulses. That is not allowed for an impact at a joint limit.
    if not end_parts(a.sums) or s.closing[0]:
        return Outcome.NO_ANSWER.value
    # In flight the displacement follows the parabola, so nothing is left to correct. Otherwise it follows the velocity
    # after the step, with which the contacts were solved.
    aloft = a.flight.aloft[0]
    ahead = 0.5 * remaining if aloft else 1.0
    a.flight.aloft[0] = a.flies[1] and aloft
    largest = 0.0
    for i in range(v.shape[0]):
        t.step[i] = remaining * t.h * (a.after[i] + ahead * t.x[i])
        a.after[i] += forces_share * t.x[i]
        t.acceleration[i] = (a.after[i] - v[i]) / t.h
        largest = max(largest, abs(a.after[i]))
    if not largest < SPEED_LIMIT:
        return Outcome.DIVERGED.value
    for i in range(v.shape[0]):
        v[i] = a.after[i]
    if s.near[0]:
        # In flight, slow joints end at their limits. Otherwise the clipping only removes rounding errors.
        keep_within(s, t, q)
    return Outcome.TAKEN.value


@entry
def _take_back(boxed: Any) -> None:
    """Restore the state after the first part."""
    put_back(boxed.arrays.memory)


@kernel
def _add(a: Any, share: float, at_once: bool) -> None:
    """Add the impulses of ground, joint limits and loops in the part that was solved last."""
    add_part(a.sums, share, at_once)
    for m in range(a.loop_impulse.shape[0]):
        a.loop_impulse[m] += share * a.loops.impulse[m]
    if a.stops.near[0]:
        a.stopped[0] = True
        for j in range(a.stop_impulse.shape[0]):
            a.stop_impulse[j] += share * a.stops.impulse[j]


class Calls(NamedTuple):
    """Store the bound functions of this module for one simulation; see :func:`bipedsim.numerics.ready`."""

    note: Callable[[Box, Array, bool], None]
    depart: Callable[[Box, float], None]
    strike: Callable[[Box], None]
    finish: Callable[[Box, Array, Array], int]
    take_back: Callable[[Box], None]

    @classmethod
    def of(cls, boxed: Box, a: Arrival) -> Calls:
        """Bind the functions to ``a`` in its packed argument struct; compile them if needed."""
        return cls(
            ready(_store_first_part, boxed, a.after, True),
            ready(_advance_to_impact, boxed, 1.0),
            ready(_add_impact, boxed),
            ready(_finish, boxed, a.after, a.after),
            ready(_take_back, boxed),
        )
