"""Compiled functions of a step: projection, joint limits, contact model, and the conversion back to joint space."""

from __future__ import annotations

from typing import Any, NamedTuple

from bipedsim.dynamics import tree as kernels
from bipedsim.dynamics.bodies import BodyPoints, anything_near, touches_ground
from bipedsim.dynamics.equations import Equations, fill
from bipedsim.dynamics.flight import Flight, look_ahead
from bipedsim.dynamics.joints import integrate
from bipedsim.dynamics.landing import RESTING, Landing, arrives, lift, touch
from bipedsim.dynamics.loops import Loops, hold_loops, read_loops
from bipedsim.dynamics.pairs import Pairs, any_pair_near, any_pair_touches
from bipedsim.dynamics.projection import Projection
from bipedsim.dynamics.protocol import Attempt, MemoryUse, Outcome, Part, Progress
from bipedsim.dynamics.stops import (
    STANDS,
    Stops,
    fill_rows,
    first_arrival,
    gather,
    judge,
    keep_within,
    look_around,
    must_be_plastic,
    passes_others,
)
from bipedsim.dynamics.support import Foothold
from bipedsim.dynamics.tree import Tree
from bipedsim.numerics import Array, Kept, NativeCall, call_native, entry, keep, kernel, put_back


class StepArrays(NamedTuple):
    """Store all arrays of a step except the contact model."""

    equations: Equations
    tree: Tree
    foothold: Foothold
    projection: Projection
    landing: Landing
    flight: Flight
    stops: Stops
    loops: Loops
    bodies: BodyPoints
    pairs: Pairs
    progress: Progress


class StepWithContact(NamedTuple):
    """Store all arrays of a step and a compiled contact model.

    Attributes:
        step: All arrays except those of the contact model.
        solve: Call of :func:`solve_contact`. Its address is data, so the step is compiled once for all models.
        impulse, late, memory: As in :class:`~bipedsim.dynamics.protocol.CompiledContact`.
    """

    step: StepArrays
    solve: NativeCall
    impulse: Array
    late: Array
    memory: Kept


@kernel
def _begin(a: Any, q: Array, v: Array, tau_joint: Array, part: int, left: float) -> int:
    """Fill the equations of motion and the projection for a part of the step; return an outcome.

    The part lasts the fraction ``left`` of h.
    """
    a.progress.memory[0] = MemoryUse.NOTHING.value
    fill(a.equations, q, v)
    if not kernels.project(a.tree, a.foothold, a.projection, v, tau_joint, 0.0 if part == Part.IMPACT else 1.0):
        return Outcome.BAD_TORQUE.value
    a.projection.parted[0] = part == Part.IMPACT or part == Part.REST
    if a.loops.size.shape[0] > 0:
        hold_loops(a.loops, a.tree, a.projection, v, part, a.flight.aloft[0])
    if part == Part.WITHIN:
        kernels.fill_bias(a.tree, a.foothold, a.projection)
    elif part == Part.WHOLE:
        lift(a.projection, a.landing, a.tree.h)
    elif part == Part.IMPACT:
        touch(a.projection, a.landing)
    else:
        a.projection.lifted[:, :] = 0.0
    close = anything_near(a.bodies, a.tree, a.foothold.ground)
    if a.pairs.near.shape[0] > 0:
        close = any_pair_near(a.pairs, a.tree) or close
        a.bodies.near[0] = close
    if look_around(a.stops, q, v, 0.0 if part == Part.IMPACT else left * a.tree.h, part):
        kernels.keep_whole(a.tree, a.projection)
        close = True
    if close or _may_land(a, part):
        # The part may have to be solved again.
        a.progress.memory[0] = MemoryUse.STORE.value
    return Outcome.TAKEN.value


@kernel
def begin_attempt(a: Any, q: Array, v: Array, tau_joint: Array, part: int, left: float, attempt: int) -> int:
    """Prepare the projection of ``a`` for the contact model; return an outcome."""
    if attempt == Attempt.FIRST or attempt == Attempt.PROJECT:
        outcome = _begin(a, q, v, tau_joint, part, left)
        if attempt == Attempt.FIRST and outcome == Outcome.TAKEN and a.stops.near[0]:
            _hold(a, q, v, part, attempt)
        return outcome
    a.progress.memory[0] = MemoryUse.RESTORE.value
    if attempt == Attempt.CONTACT:
        a.progress.memory[0] = MemoryUse.STORE.value
    elif attempt != Attempt.CONTACT_AGAIN:
        _hold(a, q, v, part, attempt)
    return Outcome.TAKEN.value


@kernel
def _hold(a: Any, q: Array, v: Array, part: int, attempt: int) -> None:
    """Eliminate the joint limits that are assumed active from the projection."""
    a.stops.plastic[0] = a.stops.plastic[0] or attempt == Attempt.ALL_LIMITS
    first = a.loops.error.shape[0]
    fill_rows(a.stops, a.tree, q, v, part, first)
    if attempt == Attempt.FIRST and a.tree.rows.used[0] == first:
        # No limit is active: the contact model sees the projection as it is.
        return
    kernels.eliminate(a.tree, a.projection, v, first)
    if part == Part.WHOLE:
        lift(a.projection, a.landing, a.tree.h)


@kernel
def end_attempt(a: Any, q: Array, v: Array, impulse: Array, late: Array, part: int, attempt: int) -> int:
    """Convert the impulses of an attempt to joint space and check the result; return its outcome."""
    outcome = _apply(a, q, v, impulse, late, part, attempt)
    a.progress.memory[0] = MemoryUse.NOTHING.value
    if outcome == Outcome.FIRST_LIMITS and not _may_land(a, part):
        a.progress.memory[0] = MemoryUse.STORE.value
    elif outcome == Outcome.BODY_CONTACT:
        a.progress.memory[0] = MemoryUse.RESTORE.value
    return outcome


@kernel
def _apply(a: Any, q: Array, v: Array, impulse: Array, late: Array, part: int, attempt: int) -> int:
    """Convert the impulses of an attempt to joint space; ``v`` changes if the part is a whole step and is taken."""
    aloft = part != Part.UNSPLIT and attempt < Attempt.COUPLED
    for k in range(impulse.shape[0]):
        aloft = aloft and impulse[k, 2] == 0.0
    a.flight.aloft[0] = aloft
    if not _change(a, v, impulse, late, part):
        return Outcome.DIVERGED.value
    first = a.loops.error.shape[0]
    if first > 0:
        read_loops(a.loops, a.tree)
    limits = _judge_limits(a, q, v, impulse, part, attempt, aloft)
    if limits != Outcome.TAKEN or part == Part.IMPACT:
        return limits
    if part == Part.WHOLE and _events(a, impulse, aloft):
        if aloft:
            look_ahead(a.flight, a.tree, v)
        return Outcome.IMPACT.value
    if a.bodies.near[0]:
        span = a.stops.span[0]
        if touches_ground(a.bodies, a.tree, a.foothold.ground, v, span):
            return Outcome.BODY_CONTACT.value
        if any_pair_touches(a.pairs, a.tree, a.bodies.leaf, v, span):
            return Outcome.BODY_CONTACT.value
    if part == Part.REST:
        return Outcome.TAKEN.value
    if aloft:
        look_ahead(a.flight, a.tree, v)
        return Outcome.FLIGHT.value
    if part == Part.WITHIN:
        kernels.take_within(a.tree, v)
    else:
        kernels.take(a.tree, v)
    if a.stops.near[0] or attempt == Attempt.COUPLED:
        # An iterative solve and the rounding of large impulses may both exceed a limit slightly.
        keep_within(a.stops, a.tree, q)
    integrate(a.equations.joints, q, a.tree.step, a.progress.end)
    return Outcome.TAKEN.value


@kernel
def _change(a: Any, v: Array, impulse: Array, late: Array, part: int) -> bool:
    """Fill the change of ``v``, and of the displacement within a step; return whether v+ is below the speed limit."""
    fastest = 0.0
    if part == Part.WITHIN:
        fastest = kernels.find_way(a.tree, late, v)
    if fastest < kernels.SPEED_LIMIT:
        fastest = kernels.change(a.tree, impulse, False, v)
    a.progress.fastest[0] = fastest
    return fastest < kernels.SPEED_LIMIT


@kernel
def _judge_limits(a: Any, q: Array, v: Array, impulse: Array, part: int, attempt: int, aloft: bool) -> int:
    """Return TAKEN if the assumed joint limits are the active ones, else OTHER_LIMITS or FIRST_LIMITS."""
    if attempt == Attempt.COUPLED:
        if part != Part.WITHIN and passes_others(a.stops, a.tree, q, v):
            return Outcome.OTHER_LIMITS.value
        return Outcome.TAKEN.value
    firm = attempt == Attempt.ALL_LIMITS
    first = a.loops.error.shape[0]
    stands = judge(a.stops, a.tree, q, v, part, aloft, firm, first) == STANDS
    if stands and not must_be_plastic(a.stops, a.tree, a.projection, impulse, v, part, first):
        return Outcome.TAKEN.value
    if a.stops.near[0]:
        return Outcome.OTHER_LIMITS.value
    a.stops.near[0] = True
    kernels.keep_whole(a.tree, a.projection)
    return Outcome.FIRST_LIMITS.value


@kernel
def _events(a: Any, impulse: Array, aloft: bool) -> bool:
    """Return whether a vertex touches down or a joint reaches its limit; if so, fill the time of the first event."""
    landing = a.landing
    lands = landing.lifted[0] > 0 and arrives(a.projection, landing, a.tree.h, impulse)
    first = first_arrival(a.stops)
    if first <= 1.0 and not (lands and landing.share[0] <= first):
        landing.share[0] = landing.together[0] = first
        landing.touching[0] = RESTING
        landing.lag[0] = 0.0 if aloft else 0.5
        lands = True
    gather(a.stops, landing.share[0])
    return lands


@kernel
def _may_land(a: Any, part: int) -> bool:
    """Return whether the first solve of a step excludes vertices."""
    return part == Part.WHOLE and a.landing.lifted[0] > 0


@kernel
def use_memory(memory: Any, use: int) -> None:
    """Store or restore the state of the contact model."""
    if use == MemoryUse.STORE:
        keep(memory)
    elif use == MemoryUse.RESTORE:
        put_back(memory)


@entry
def prepare(step: Any, q: Array, v: Array, tau_joint: Array, part: int, left: float, attempt: int) -> int:
    """Prepare an attempt for a contact model in Python; see :class:`Outcome`."""
    return begin_attempt(step.arrays, q, v, tau_joint, part, left, attempt)


@entry
def finish(step: Any, q: Array, v: Array, impulse: Array, late: Array, part: int, attempt: int) -> int:
    """Finish an attempt with the impulses of a contact model in Python; see :class:`Outcome`."""
    return end_attempt(step.arrays, q, v, impulse, late, part, attempt)


@entry
def solve_contact(contact: Any) -> None:
    """Call the kernel of a :class:`~bipedsim.dynamics.protocol.CompiledContact`."""
    c = contact.arrays
    c.solve(c.projection, c.arrays)


@entry
def attempt_compiled(step: Any, q: Array, v: Array, tau_joint: Array, part: int, left: float, attempt: int) -> int:
    """Make an attempt, from the state to q+, v+, wrenches and modes; see :class:`Outcome`."""
    c = step.arrays
    a = c.step
    if attempt != Attempt.COUPLED:
        outcome = begin_attempt(a, q, v, tau_joint, part, left, attempt)
        if outcome != Outcome.TAKEN or attempt == Attempt.PROJECT:
            return outcome
        use_memory(c.memory, a.progress.memory[0])
        call_native(c.solve.function, c.solve.argument)  # type: ignore[call-arg]
        if attempt == Attempt.CONTACT or attempt == Attempt.CONTACT_AGAIN:
            return outcome
    outcome = end_attempt(a, q, v, c.impulse, c.late, part, attempt)
    use_memory(c.memory, a.progress.memory[0])
    return outcome


@entry
def restore_contact(step: Any) -> None:
    """Restore the stored state of the contact model."""
    put_back(step.arrays.memory)
