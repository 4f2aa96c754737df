"""The compiled side of a step in which something arrives: what each of its parts leaves for the next one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

from numpy.typing import NDArray

from bipedsim.contact import ContactModel, Sums, add_part, begin_parts, end_parts
from bipedsim.dynamics import SPEED_LIMIT, Dynamics, Flight, Landing, Loops, Outcome, Stops, Tree, keep_within
from bipedsim.numerics import Array, Box, Flags, Kept, entry, keep, kept, kernel, put_back, ready, zeros_of


class Arrival(NamedTuple):
    """A step that is taken in parts, with S stops and M numbers of the loops.

    Attributes:
        sums: Of what the ground does in the parts.
        memory: What the next part depends on, as the first part left it.
        begun, change: (nv,) velocity before the step, and by how much the first part changes it.
        way: (nv,) from where the step begins to where something arrives.
        after: (nv,) velocity with which it arrives, then that after the impact.
        stop_impulse, stops_begun: (S,) of the stops over the step so far, and over the first part as a whole step
            [N.m.s]. loop_impulse, loops_begun: (M,) the same of the loops [N.s, N.m.s].
        until: (1,) share of the step in which forces act up to the arrival.
        flies: (2,) whether the robot kept its momentum in the first part, and in the impact too.
        stopped: (1,) whether stops may have acted.
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
        """Return the arrays for a robot; what a contact model remembers that is not compiled is not among them."""
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
def _note(boxed: Any, v: Array, stopped: bool) -> None:
    """Note what the first part, a step as if nothing arrived, left: from ``v`` (nv,), with stops that acted or not."""
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
    # The robot as a whole keeps its momentum where a stop is all that it meets.
    a.flies[0] = a.flight.aloft[0] and a.stops.arrivals[0] > 0
    a.stopped[0] = stopped


@entry
def _depart(boxed: Any, behind: float) -> None:
    """Go to the arrival: fill ``way`` and ``after``; velocities are ``behind`` by this share of the step."""
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
def _strike(boxed: Any) -> None:
    """Take in the impact: ``after`` becomes the velocity after it."""
    a = boxed.arrays
    _add(a, 1.0, True)
    a.flies[1] = a.flies[0] and a.flight.aloft[0]
    for i in range(a.after.shape[0]):
        a.after[i] += a.tree.x[i]
        a.tree.acceleration[i] = a.tree.x[i] / a.tree.h


@entry
def _finish(boxed: Any, q: Array, v: Array) -> int:
    """Add the rest of the step: move ``v`` (nv,) to its end, and fill the displacement from the impact at ``q``.

    Returns:
        TAKEN, or NO_ANSWER or DIVERGED with ``v`` unchanged.
    """
    a = boxed.arrays
    t, s = a.tree, a.stops
    left = 1.0 - a.landing.share[0]
    more = 1.0 - a.until[0]
    _add(a, more, False)
    # A stop that is reached in the rest of the step has an impulse, of which no share may be taken back.
    if not end_parts(a.sums) or s.closing[0]:
        return Outcome.NO_ANSWER.value
    # As ever: in flight along the parabola, which leaves nothing to correct, else to where contacts want to be.
    aloft = a.flight.aloft[0]
    ahead = 0.5 * left if aloft else 1.0
    a.flight.aloft[0] = a.flies[1] and aloft
    largest = 0.0
    for i in range(v.shape[0]):
        t.step[i] = left * t.h * (a.after[i] + ahead * t.x[i])
        a.after[i] += more * t.x[i]
        t.acceleration[i] = (a.after[i] - v[i]) / t.h
        largest = max(largest, abs(a.after[i]))
    if not largest < SPEED_LIMIT:
        return Outcome.DIVERGED.value
    for i in range(v.shape[0]):
        v[i] = a.after[i]
    if s.near[0]:
        # In flight joints that are slow end at their limits; else it is rounding that is taken off.
        keep_within(s, t, q)
    return Outcome.TAKEN.value


@entry
def _take_back(boxed: Any) -> None:
    """Go back to what the first part left."""
    put_back(boxed.arrays.memory)


@kernel
def _add(a: Any, share: float, at_once: bool) -> None:
    """Take in what ground, stops and loops did in the part that was solved last."""
    add_part(a.sums, share, at_once)
    for m in range(a.loop_impulse.shape[0]):
        a.loop_impulse[m] += share * a.loops.impulse[m]
    if a.stops.near[0]:
        a.stopped[0] = True
        for j in range(a.stop_impulse.shape[0]):
            a.stop_impulse[j] += share * a.stops.impulse[j]


class Calls(NamedTuple):
    """The functions of this module as they are called in a landing; see :func:`bipedsim.numerics.ready`."""

    note: Callable[[Box, Array, bool], None]
    depart: Callable[[Box, float], None]
    strike: Callable[[Box], None]
    finish: Callable[[Box, Array, Array], int]
    take_back: Callable[[Box], None]

    @classmethod
    def of(cls, boxed: Box, a: Arrival) -> Calls:
        """Return the calls for ``a`` in its box, compiled if that was never done."""
        return cls(
            ready(_note, boxed, a.after, True),
            ready(_depart, boxed, 1.0),
            ready(_strike, boxed),
            ready(_finish, boxed, a.after, a.after),
            ready(_take_back, boxed),
        )
