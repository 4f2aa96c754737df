"""Steps of free rigid bodies in compiled code.

A step is divided into sub-steps (:mod:`bipedsim.objects.parts`). Finite forces act between two events. Where bodies
meet, there is a separate impact at that moment. A step without such an event is a single sub-step.

Impacts with restitution occur one pair after another, the fastest first. So as many balls leave a row as have hit it
(Newton's cradle). Newton's law for all contacts at once would instead let the first ball bounce back (Hurmuzlu et al.
2001, section 3). Pairs with equal speeds, to rounding, are solved together, so that symmetric cases stay symmetric.
Pairs that still approach, slowly or without restitution, are then stopped all at once, as in Moreau's law.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from bipedsim.numerics import (
    STEP_BUDGET,
    Array,
    Integers,
    assign,
    dot,
    entry,
    exp3,
    kernel,
    minus,
    mul,
    mul_t,
    product,
    turn,
)
from bipedsim.objects.bodies import (
    Bodies,
    accumulate_impulses,
    apply_impulses,
    fastest,
    finish,
    fly,
    kinetic_energy,
    move,
    place,
)
from bipedsim.objects.contacts import Memory, copy_memory, restore_points, store_points
from bipedsim.objects.hulls import add_hulls, spare_between
from bipedsim.objects.narrow import DEEPER, Near, find_contacts, mark_pairs, spare_room
from bipedsim.objects.parts import (
    TOUCHING,
    begin_part,
    collect_pairs,
    label_islands,
    mark_touching,
    select_impacts,
    speed,
    time_to_contact,
)
from bipedsim.objects.solve import FEW, PairSolve, solve_impact, solve_part

TOLERANCE, ITERATIONS = 1e-7, 150
"""Residual of the cone problems that counts as solved, and maximum number of iterations of one problem."""
MOST_EVENTS = 10
"""Maximum number of collision events in a step; later collisions are closed within the step."""
CUT, MOST_CUTS = 5e-7, 10
"""Tolerance on the depth at which a sub-step ends early [m], and maximum number of iterations to find it."""
MOST_EARLY = 4
"""Maximum number of sub-steps of a step that end early."""
SHORTEST = 1e-3
"""Minimum duration of a sub-step that ends early, as a fraction of the sub-step."""
MOST_IMPACTS = 200
"""Maximum number of impacts with restitution at one moment; the remaining ones are plastic."""
CROWDED, FINDING = 300_000, 1000
"""Operations for heaps after which their gaps are closed within the step, and operations of a search per pair.

Many bodies in a heap collide all the time. To resolve every collision would take longer than the step lasts.
"""
LOOKING = 20_000
"""Operations of an impact that are charged to the budget of a step, in addition to its solution."""
SLOW = 0.5
"""A contact does not rebound below the speed that gravity adds in this many steps."""
HARDEST = 100.0
"""Acceleration of a link [m/s^2] that the detection of possible contacts allows for."""
STICKS = 1e-6
"""Slip speed [m/s] below which a point on a link sticks."""
FASTEST = 1e4
"""Speed limit [m/s] of the fastest point of a body, from its velocity and spin; a faster step is refused."""
LEFT_OVER = 1e-12
"""Remaining fraction of a step that counts as rounding."""


TAKEN, UNRESOLVED, REFUSED, FULL = range(4)
"""Outcomes of a step.

It is made, made with the best approximation of a problem without solution, not made because a body is too fast, or not
made because the arrays are too small.
"""


class SavedState(NamedTuple):
    """State at the beginning of a step, for restoring it; see :class:`Bodies`."""

    memory: Memory
    position: Annotated[Array, "N", 3]
    quaternion: Annotated[Array, "N", 4]
    v: Annotated[Array, "N", 3]
    w: Annotated[Array, "N", 3]
    contact: Annotated[Array, "N", 6]


@kernel
def _copy_state(source: Any, target: Any, count: int) -> None:
    """Copy the state of ``count`` bodies between objects of type :class:`Bodies` or :class:`SavedState`."""
    for i in range(count):
        assign(target.position[i], source.position[i])
        assign(target.v[i], source.v[i])
        assign(target.w[i], source.w[i])
        for x in range(4):
            target.quaternion[i, x] = source.quaternion[i, x]
        for x in range(6):
            target.contact[i, x] = source.contact[i, x]


class Stepping(NamedTuple):
    """Arrays of a step.

    Attributes:
        near: Bodies and collision detection.
        memory: Points of the last sub-step.
        before: State at the beginning of the step.
        solve: Pairs that are solved together.
        h: Step [s].
        slow: Speed below which a contact does not rebound [m/s].
        shared: Whether the owner of the budget sets it.
        taken: (P,) pairs that are solved, or not in the current problem.
        impact: (P,) pairs of an impact.
        island: (N,) number that coupled bodies have in common.
        worst: (2,) body with the fastest point at the end of a sub-step, and its speed [m/s].
        early: (1,) number of sub-steps of the step that ended early.
        crowd: (1,) operations of the step for heaps, and for searches after them.
        closing: (N,) whether the gaps of a body are closed within the step, without an event.
    """

    near: Near
    memory: Memory
    before: SavedState
    solve: PairSolve
    h: float
    slow: float
    shared: bool
    taken: Annotated[Integers, "P"]
    impact: Annotated[Integers, "P"]
    island: Annotated[Integers, "N"]
    worst: Annotated[Array, 2]
    early: Annotated[Integers, 1]
    crowd: Annotated[Integers, 1]
    closing: Annotated[Integers, "N"]


@entry
def take_step(boxed: Any) -> int:
    """Make a complete step or none; return one of the outcomes."""
    a = boxed.arrays
    b = a.near.bodies
    _save_state(a)
    budget = a.solve.cone.budget
    counted = b.rough[0], a.solve.unresolved[0], budget[0]
    a.solve.given[0] = 0.0
    a.early[0] = 0
    if not a.shared:
        budget[0] = STEP_BUDGET
    outcome = _take_parts(a)
    if outcome != TAKEN:
        _restore_state(a)
        b.rough[0], a.solve.unresolved[0], budget[0] = counted
    elif b.rough[0] + a.solve.unresolved[0] > counted[0] + counted[1]:
        outcome = UNRESOLVED
    return outcome


@kernel
def _take_parts(a: Stepping) -> int:
    """Make the sub-steps of a step."""
    c = a.near.contacts
    left = a.h
    a.crowd[0] = 0
    for i in range(a.closing.shape[0]):
        a.closing[i] = 0
    for event in range(MOST_EVENTS + 1):
        last = event == MOST_EVENTS
        a.near.whole[0] = last
        if not _find(a, left):
            return FULL
        if c.points[0] > 0 and _impacts(a) and not _find(a, left):
            return FULL
        duration = _part(a, a.near.span[0], last)
        if duration < 0.0:
            return REFUSED
        left -= duration
        if left <= LEFT_OVER * a.h:
            break
    return TAKEN


@entry
def detect(boxed: Any, s: float) -> bool:
    """Detect the contacts for the next ``s`` seconds; return False if the arrays are too small."""
    return _find(boxed.arrays, s)


@kernel
def _find(a: Stepping, s: float) -> bool:
    find_contacts(a.near, s)
    add_hulls(a.near)
    if a.near.contacts.lost[0] > 0:
        return False
    restore_points(a.near.contacts, a.memory)
    if a.crowd[0] > 0:
        a.crowd[0] += FINDING * a.near.contacts.pairs[0]
    return True


@kernel
def _impacts(a: Stepping) -> bool:
    """Solve the impacts of all contacts that approach; return whether there were any."""
    b, c = a.near.bodies, a.near.contacts
    for number in range(MOST_IMPACTS + 1):
        exhausted = a.solve.cone.budget[0] <= 0
        crowded = a.crowd[0] > CROWDED
        plastic = number == MOST_IMPACTS or exhausted or crowded
        mark_touching(b, c, a.slow)
        count = select_impacts(b, c, np.inf if plastic else a.slow, a.impact)
        if count == 0:
            return number > 0
        a.solve.unresolved[0] += exhausted
        together = crowded and number < MOST_IMPACTS and not exhausted
        _collide(a, abs(count), a.slow if count > 0 or together else np.inf, together)
        if count < 0:
            return True
    return True


@kernel
def _collide(a: Stepping, count: int, slow: float, crowded: bool) -> None:
    """Solve an impact of the first ``count`` pairs in ``impact``; coupled pairs are solved together.

    In a ``crowded`` step, heaps do not rebound.
    """
    c = a.near.contacts
    a.solve.cone.budget[0] -= LOOKING
    for p in range(c.pairs[0]):
        a.taken[p] = 1
    for k in range(count):
        a.taken[a.impact[k]] = 0
    label_islands(c, a.taken, a.island)
    while True:
        a.solve.number[0] = collect_pairs(c, a.taken, a.island, a.solve.chosen)
        if a.solve.number[0] == 0:
            return
        begun = a.solve.cone.budget[0]
        _impact(a, np.inf if crowded and _is_heap(a) else slow)
        _count_heap(a, begun)


@kernel
def _is_heap(a: Stepping) -> bool:
    """Return whether the chosen pairs are those of a heap, of more than ``FEW`` bodies."""
    label, count = a.island[a.near.contacts.first[a.solve.chosen[0]]], 0
    for i in range(a.near.bodies.mass.shape[0]):
        count += a.island[i] == label
    return count > FEW


@kernel
def _count_heap(a: Stepping, begun: int) -> None:
    """Count the operations of the last problem if it is that of a heap; the budget was ``begun`` before it.

    In a crowded step, the bodies of the heap are closing from now on.
    """
    if not _is_heap(a):
        return
    a.crowd[0] += begun - a.solve.cone.budget[0]
    if a.crowd[0] > CROWDED:
        label = a.island[a.near.contacts.first[a.solve.chosen[0]]]
        for i in range(a.near.bodies.mass.shape[0]):
            if a.island[i] == label:
                a.closing[i] = 1


@kernel
def _impact(a: Stepping, slow: float) -> None:
    """Make an impact of the chosen pairs; if restitution and friction would add energy, make it plastic."""
    b = a.near.bodies
    before = kinetic_energy(b)
    b.impulse[:, :] = 0.0
    solve_impact(a.solve, slow)
    apply_impulses(b)
    if slow < np.inf and kinetic_energy(b) > before * (1.0 + 1e-12):
        for i in range(b.mass.shape[0]):
            for x in range(6):
                b.impulse[i, x] = -b.impulse[i, x]
        apply_impulses(b)
        b.impulse[:, :] = 0.0
        solve_impact(a.solve, np.inf)
        apply_impulses(b)
    accumulate_impulses(b, 1.0)


@kernel
def _part(a: Stepping, left: float, last: bool) -> float:
    """Make a sub-step of at most ``left`` seconds, up to the next event; return its duration, or -1 if refused."""
    b, c = a.near.bodies, a.near.contacts
    if begin_part(b, c, left, a.slow, last, a.closing) > 0:
        for p in range(c.pairs[0]):
            a.taken[p] = 0
        label_islands(c, a.taken, a.island)
        while True:
            a.solve.number[0] = collect_pairs(c, a.taken, a.island, a.solve.chosen)
            if a.solve.number[0] == 0:
                break
            begun = a.solve.cone.budget[0]
            solve_part(a.solve, left)
            _count_heap(a, begun)
    finish(b, 1.0, left)
    # The last sub-step takes all of the remaining time, also if the forces in it cause another collision.
    until = left if last else time_to_contact(b, c, left, a.closing)
    if until < left:
        _finish_early(b, left, until)
    if not last and a.early[0] < MOST_EARLY and a.crowd[0] <= CROWDED:
        until = _cut(a, left, until)
    return until if _end(a, left, until) else -1.0


@kernel
def _finish_early(b: Bodies, s: float, until: float) -> None:
    """Fill the end state of a sub-step of ``s`` seconds that ends early, after ``until`` seconds."""
    for i in range(b.mass.shape[0]):
        fly(b, i, until)
    finish(b, until / s, until)


@kernel
def _cut(a: Stepping, s: float, until: float) -> float:
    """Return ``until`` [s], or the earlier time at which shapes are deeper than their contacts allow.

    Contacts are detected at the beginning of the sub-step of ``s`` seconds. An early end is needed for contacts at
    other points. It is the time at which shapes are ``CUT`` less deep than ``DEEPER``, by false position (Illinois).
    """
    spare = spare_room(a.near, until)
    mark_pairs(a.near, until)
    spare = spare_between(a.near, spare, True)
    if spare >= 0.0:
        return until
    a.early[0] += 1
    aim = DEEPER - CUT
    early, late, above, below, side, shortest = 0.0, until, CUT, spare - aim, 0, SHORTEST * until
    for _ in range(MOST_CUTS):
        until = max((early * below - late * above) / (below - above), shortest)
        _finish_early(a.near.bodies, s, until)
        over = spare_between(a.near, spare_room(a.near, until), False) - aim
        if abs(over) <= 0.5 * CUT or (until == shortest and over < 0.0):
            break
        if over < 0.0:
            late, below, above, side = until, over, above * (0.5 if side < 0 else 1.0), -1
        else:
            early, above, below, side = until, over, below * (0.5 if side > 0 else 1.0), 1
    return until


@kernel
def _end(a: Stepping, s: float, until: float) -> bool:
    """Move the bodies to the end of a sub-step of ``s`` seconds that ends after ``until`` seconds.

    Returns:
        Whether they were moved; they are not if one becomes too fast, see ``worst``.
    """
    b = a.near.bodies
    a.worst[0], a.worst[1] = fastest(b)
    if not a.worst[1] < FASTEST:
        return False
    accumulate_impulses(b, until / s)
    move(b, until)
    store_points(a.near.contacts, a.memory)
    return True


@entry
def place_bodies(boxed: Any) -> None:
    """Fill attitudes and mobilities of all bodies from their quaternions."""
    place(boxed.arrays.near.bodies)


@entry
def is_near(boxed: Any, q: Array, distance: float) -> bool:
    """Return whether a point of a body may be closer than ``distance`` [m] to the point q[:3]."""
    b = boxed.arrays.near.bodies
    for i in range(b.mass.shape[0]):
        away = minus(b.position[i], q)
        bound = distance + b.reach[i]
        if bound > 0.0 and dot(away, away) < bound * bound:
            return True
    return False


@entry
def place_links(boxed: Any, joints: Integers, poses: Array, motions: Array) -> None:
    """Place the links on their ``joints`` (L,), whose ``poses`` (n, 12) and ``motions`` (n, 6) pinocchio has filled."""
    b = boxed.arrays.near.bodies
    free = b.mass.shape[0]
    for k in range(joints.shape[0]):
        pose, motion = poses[joints[k]], motions[joints[k]]
        assign(b.position[free + k], pose[9:])
        for x in range(3):
            for y in range(3):
                b.R[free + k, x, y] = pose[3 * y + x]
        assign(b.v[free + k], turn(pose, motion))
        assign(b.w[free + k], turn(pose, motion[3:]))


@entry
def meet_links(boxed: Any, ahead: float) -> int:
    """Return 1 if a body may touch a link in the next step, otherwise 0; ``FULL`` if the arrays are too small.

    The contacts that may be loaded become active. They are detected ``ahead`` seconds after the beginning of the step.
    """
    a = boxed.arrays
    if ahead > 0.0:
        _put_ahead(a, ahead)
    a.near.links[0] = a.near.whole[0] = 1
    fits = _find(a, a.h)
    a.near.links[0] = 0
    if ahead > 0.0:
        _put_back(a, ahead)
    if not fits:
        return FULL
    return 1 if _look_at_links(a) else 0


@kernel
def _look_at_links(a: Stepping) -> bool:
    """Predict all bodies at the end of the step without contact, and activate the points that may touch until then.

    Returns:
        Whether a point of a link is active.
    """
    b, c, s = a.near.bodies, a.near.contacts, a.h
    meets = False
    for i in range(b.mass.shape[0]):
        fly(b, i, s)
        b.at_end[i] = 0.0
    for m in range(c.points[0]):
        u = min(speed(b, c, m, b.v, b.w), 0.0)
        c.active[m] = 1 if c.gap[m] + s * (u - s * HARDEST) < 0.0 or c.gap[m] <= TOUCHING else 0
        p = c.pair[m]
        meets = meets or (c.active[m] != 0 and max(c.first[p], c.second[p]) >= b.mass.shape[0])
    return meets


@entry
def first_hit(boxed: Any) -> float:
    """Return the time in the step [s] at which the first link and body collide and rebound; 0 if none do."""
    a = boxed.arrays
    b, c, s = a.near.bodies, a.near.contacts, a.h
    first = 1.0
    for m in range(c.points[0]):
        p = c.pair[m]
        if max(c.first[p], c.second[p]) < b.mass.shape[0] or not c.restitution[p] > 0.0:
            continue
        u = speed(b, c, m, b.v, b.w)
        if u < -a.slow and c.gap[m] > TOUCHING and c.gap[m] < -u * s * first:
            first = c.gap[m] / (-u * s)
    return s * first if first < 1.0 else 0.0


@kernel
def _put_ahead(a: Stepping, s: float) -> None:
    """Move all bodies ahead by ``s`` seconds with their present velocities."""
    b = a.near.bodies
    for i in range(b.mass.shape[0]):
        assign(a.before.position[i], b.position[i])
        for x in range(3):
            b.position[i, x] += s * b.v[i, x]
        exp3(b.w[i], s, b.A)
        product(b.A, b.R[i], b.B)
        for x in range(3):
            assign(b.R[i, x], b.B[x])


@kernel
def _put_back(a: Stepping, s: float) -> None:
    """Undo :func:`_put_ahead`, and convert the gaps to those at the original positions."""
    b, c = a.near.bodies, a.near.contacts
    for m in range(c.points[0]):
        c.gap[m] -= s * speed(b, c, m, b.v, b.w)
    for i in range(b.mass.shape[0]):
        assign(b.position[i], a.before.position[i])
    place(b)


@entry
def arrive(boxed: Any, after: Array, impulses: Array, velocities: Array, late: Array) -> bool:
    """Move all bodies to the end of a step that ends with the velocities ``after`` (N, 6).

    Returns:
        Whether they were moved; they are not if one becomes too fast, see ``worst``.
    """
    a = boxed.arrays
    b, c, s = a.near.bodies, a.near.contacts, a.h
    n = 0
    for m in range(c.points[0]):
        if c.active[m]:
            for side in range(2):
                i = c.first[c.pair[m]] if side == 0 else c.second[c.pair[m]]
                if 0 <= i < b.mass.shape[0]:
                    b.at_end[i] = late[n] if b.at_end[i] == 0.0 else min(b.at_end[i], late[n])
            n += 1
    for i in range(b.mass.shape[0]):
        turned = (after[i, 3] - b.w_free[i, 0], after[i, 4] - b.w_free[i, 1], after[i, 5] - b.w_free[i, 2])
        assign(b.impulse[i, 3:], mul(b.R_free[i], mul(b.inertia[i], mul_t(b.R_free[i], turned))))
        for x in range(3):
            b.impulse[i, x] = b.mass[i] * (after[i, x] - b.v_free[i, x])
    finish(b, 1.0, s)
    a.worst[0], a.worst[1] = fastest(b)
    if not a.worst[1] < FASTEST:
        return False
    n = 0
    for m in range(c.points[0]):
        assign(c.force[m], (0.0, 0.0, 0.0))
        if c.active[m]:
            for x in range(3):
                c.force[m, x] = impulses[n, x] / s
            c.sticking[m] = 1 if np.hypot(velocities[n, 0], velocities[n, 1]) < STICKS else 0
            n += 1
    b.contact[:, :] = 0.0
    accumulate_impulses(b, 1.0)
    move(b, s)
    store_points(c, a.memory)
    return True


@kernel
def _save_state(a: Stepping) -> None:
    """Save the state at the beginning of a step."""
    b = a.near.bodies
    copy_memory(a.memory, a.before.memory)
    _copy_state(b, a.before, b.mass.shape[0])
    b.contact[:, :] = 0.0


@kernel
def _restore_state(a: Stepping) -> None:
    """Restore the state at the beginning of a step."""
    b = a.near.bodies
    copy_memory(a.before.memory, a.memory)
    _copy_state(a.before, b, b.mass.shape[0])
    place(b)
