"""Stops of joints: which of them carry in a step, and what they make of the velocities of their joints.

A stop that carries fixes one velocity, as a row that is eliminated before the contact acts (:mod:`.rows`): the contact
model sees a robot whose joint is at its stop, and the coupling of stops and ground is exact under every one of them.
Which stops carry is found by trying: from those of the last step, one of them is changed at a time, that of the lowest
number, until every stop that carries pushes and no other joint passes its limit (Murty, "Note on a Bard-type scheme for
solving the complementarity problem", Opsearch 11, 1974). After each change the contact model solves anew.

A joint that arrives with a speed does so within the step, which is solved in parts there (:mod:`.landing`): the impact
is Newton's, v+ = -e v. One that arrives slowly, or where an impact has no answer, ends the step at its limit: v+ = gap
/ h, and stops in the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.dynamics.landing import LAST, NEVER, TOGETHER
from bipedsim.dynamics.projection import Projection
from bipedsim.dynamics.protocol import Part
from bipedsim.dynamics.tree import Tree
from bipedsim.model import Robot
from bipedsim.numerics import Array, Flags, Integers, kernel, zeros_of

APART = 1e-9
"""A joint this far from its limit [rad] may arrive there; one that is nearer is at its stop."""
BEYOND = 1e-12
"""A joint passes its limit where it gets this far beyond [rad], or so fast in an impact [rad/s]."""
SLOW = 0.5
"""A joint that arrives with less than what gravity gives the end of a lever of one metre in so many steps is slow."""
FASTEST = 2e3
"""Acceleration [rad/s^2] with which a joint at rest may get to its limit in a step: nearer ones are looked after."""
PULLS = 1e-10
"""A stop pulls where its impulse is such a share of the largest one, in the wrong direction."""
GIVES = 1e-9
"""Stops give energy where they give this share of what their impulses could."""
SHORT = 1e-3
"""Share of a step that is too short for a joint to come back in: by rounding it may be all that is left of one."""
STANDS, AGAIN = 0, 1


class Stops(NamedTuple):
    """The stops of S joints.

    Attributes:
        idx_q, idx_v: (S,) indices in q and v. lower, upper: (S,) limits [rad].
        restitution: Newton's e. slow: [rad/s] below which a joint arrives slowly, without it.
        reach: A joint that is farther from its limit [rad], and does not go there, is left alone.
        held: (S,) 1 where a joint is at its upper stop, which carries, -1 where it is the lower one, else 0.
        impulse: (S,) of the stops on their joints in the last part of a step [N.m.s].
        near: (1,) whether any joint is near a limit in this part of the step. span: (1,) the time for which the
            velocity after the step is the one of the way [s], 0 in an impact.
        arrivals: (1,) how many joints arrive within the step. arrival: (S,) share of the step at which each does, else
            ``NEVER``. side: (S,) at which stop, of these and of those that are ``asked``: (S,) solved for with all that
            touches. together: (1,) share up to which those arrive that take part in an
            impact.
        bounced, plastic: (1,) whether any stop has restitution in this try, and whether none must have any.
        closing: (1,) whether a joint that was fast got to its limit in this part of the step by the velocity after it.
    """

    idx_q: Integers
    idx_v: Integers
    lower: Array
    upper: Array
    restitution: float
    slow: float
    reach: float
    held: Annotated[Integers, "S"]
    impulse: Annotated[Array, "S"]
    near: Annotated[Flags, 1]
    span: Annotated[Array, 1]
    arrivals: Annotated[Integers, 1]
    arrival: Annotated[Array, "S"]
    side: Annotated[Integers, "S"]
    asked: Annotated[Flags, "S"]
    together: Annotated[Array, 1]
    bounced: Annotated[Flags, 1]
    plastic: Annotated[Flags, 1]
    closing: Annotated[Flags, 1]

    @classmethod
    def of_joints(cls, robot: Robot, joints: Sequence[int], restitution: float, physics_dt: float) -> Stops:
        """Return the stops of the ``joints`` of the model, by number."""
        model = robot.model
        idx_q = np.array([model.joints[i].idx_q for i in joints], dtype=np.int64)
        gravity = float(np.linalg.norm(model.gravity.linear))
        return zeros_of(
            cls,
            {"S": len(joints)},
            idx_q=idx_q,
            idx_v=np.array([model.joints[i].idx_v for i in joints], dtype=np.int64),
            lower=model.lowerPositionLimit[idx_q],
            upper=model.upperPositionLimit[idx_q],
            restitution=restitution,
            slow=SLOW * physics_dt * gravity,
            reach=FASTEST * physics_dt**2,
        )


def stopped_joints(robot: Robot) -> list[int]:
    """Return the joints of the model, by number, that have a lower or an upper limit."""
    model, found = robot.model, []
    for i in range(1, model.njoints):
        joint = model.joints[i]
        limits = model.lowerPositionLimit[joint.idx_q], model.upperPositionLimit[joint.idx_q]
        if joint.nq == 1 and limits[0] < limits[1] and np.isfinite(limits).any():
            found.append(i)
    return found


@kernel
def _gap(s: Stops, j: int, side: int, angle: float) -> float:
    """Return how far joint ``j`` at ``angle`` is from its limit on a side [rad]."""
    return s.upper[j] - angle if side > 0 else angle - s.lower[j]


@kernel
def look_around(s: Stops, q: Array, v: Array, span: float, part: int) -> bool:
    """Note which stops a part of a step begins with; return whether any joint is near a limit.

    Args:
        s: See :class:`Stops`.
        q, v: (nq,), (nv,) where the part begins.
        span: The time for which the velocity after it is that of the way [s], 0 for an impact.
        part: Of the step.
    """
    near = False
    # At its stop with a speed, a joint arrives there, at the beginning of the step.
    most = s.slow if part == Part.WHOLE else np.inf
    for j in range(s.idx_q.shape[0]):
        angle = q[s.idx_q[j]]
        ahead = 2.0 * span * v[s.idx_v[j]]
        above, below = s.upper[j] - angle, angle - s.lower[j]
        if above <= s.reach or below <= s.reach or above - ahead <= s.reach or below + ahead <= s.reach:
            near = True
    s.span[0] = span
    if near or s.near[0]:
        for j in range(s.idx_q.shape[0]):
            s.impulse[j] = 0.0
            side, speed = s.held[j], s.held[j] * v[s.idx_v[j]]
            if side != 0 and not (_gap(s, j, side, q[s.idx_q[j]]) <= APART and -s.slow <= speed <= most):
                s.held[j] = 0
            if span == 0.0 and s.arrivals[0] > 0 and s.arrival[j] <= s.together[0]:
                s.held[j] = s.side[j]
    s.near[0] = near
    s.plastic[0] = s.bounced[0] = s.closing[0] = False
    return near


@kernel
def _goal(s: Stops, j: int, side: int, q: Array, v: Array, part: int, h: float) -> tuple[float, float]:
    """Return the velocity that joint ``j`` has after the step where a stop carries, and its mean on the way there.

    What a joint is beyond its limit, it comes back in this part of a step of ``h`` [s], or where that is hardly any, in
    the time of a step.
    """
    gap, out, span = _gap(s, j, side, q[s.idx_q[j]]), side * v[s.idx_v[j]], s.span[0]
    bounces = s.restitution > 0.0 and out > s.slow and not s.plastic[0]
    after = -s.restitution * out if bounces else 0.0
    if part == Part.IMPACT:
        return side * after, 0.0
    mean = gap / (span if gap > 0.0 or span > SHORT * h else h)
    if part != Part.WITHIN:
        return side * (after if bounces else mean), 0.0
    return side * after, side * (mean + min(after + s.restitution * mean, 0.0) if bounces else mean)


@kernel
def fill_rows(s: Stops, t: Tree, q: Array, v: Array, part: int, first: int) -> None:
    """Make a row of every stop that is thought to carry, from row ``first`` on."""
    r, n = t.rows, first
    s.bounced[0] = False
    for j in range(s.idx_q.shape[0]):
        side = s.held[j]
        if side == 0:
            continue
        for i in range(v.shape[0]):
            r.Q[n, i] = 0.0
        r.Q[n, s.idx_v[j]] = 1.0
        r.goal[n], r.goal_late[n] = _goal(s, j, side, q, v, part, t.h)
        s.bounced[0] = s.bounced[0] or (s.restitution > 0.0 and side * r.goal[n] < 0.0)
        fast = side * v[s.idx_v[j]] > s.slow
        s.closing[0] = s.closing[0] or (fast and _gap(s, j, side, q[s.idx_q[j]]) > APART)
        n += 1
    r.used[0] = n


@kernel
def read_stops(s: Stops, t: Tree, first: int) -> float:
    """Read what every stop did from the rows, which begin at ``first``; return the largest impulse."""
    largest, n = 0.0, first
    for j in range(s.idx_q.shape[0]):
        s.impulse[j] = 0.0
        if s.held[j] != 0:
            s.impulse[j] = t.rows.impulse[n]
            largest = max(largest, abs(s.impulse[j]))
            n += 1
    return largest


@kernel
def _gives(s: Stops, t: Tree, p: Projection, impulse: Array, v: Array, part: int) -> bool:
    """Whether impacts with restitution give energy, with what the contact takes: as Newton's law may with friction."""
    given, most = t.rows.given[0], 0.0
    for j in range(s.idx_q.shape[0]):
        most += abs(s.impulse[j] * v[s.idx_v[j]])
    if part != Part.WITHIN:
        # The energy of springs is not that of the impact.
        for row in range(p.w_free.shape[0]):
            after = p.w_free[row]
            for k in range(impulse.shape[0]):
                for a in range(6):
                    after += p.G[row, 6 * k + a] * impulse[k, a]
            given += 0.5 * impulse[row // 6, row % 6] * (p.w_free[row] + after)
    return given > GIVES * most


@kernel
def judge(
    s: Stops, t: Tree, p: Projection, impulse: Array, q: Array, v: Array, part: int, aloft: bool, firm: bool, first: int
) -> int:
    """Say whether the stops that were thought to carry do, and no others; else change one of them.

    Args:
        s, t, p: See :class:`Stops`, :class:`Tree` (the change of v in ``x``, and the way of forces that act within the
            step in ``step``) and :class:`Projection`.
        impulse: (K, 6) of the contact.
        q, v: (nq,), (nv,) before the step.
        part: Of the step. aloft: Whether no foot carries in it.
        firm: Whether the tries have to end: stops that pull are kept, and only what passes its limit is changed; of
            forces within the step, whose feet give way, joints are left at their limits with the velocity that they
            have.
        first: Row of the first stop that carries.

    Returns:
        ``STANDS`` or ``AGAIN``. Which joints arrive within the whole step, ``arrivals`` says.
    """
    pulls = PULLS * read_stops(s, t, first) if s.near[0] else np.inf
    if part == Part.WHOLE:
        s.arrivals[0] = 0
    way = 0.5 * s.span[0] / t.h if aloft else 1.0
    for j in range(s.idx_q.shape[0]):
        side, i, angle = s.held[j], s.idx_v[j], q[s.idx_q[j]]
        after = v[i] + t.x[i]
        if side != 0:
            if side * s.impulse[j] > pulls and (part == Part.WITHIN or not firm):
                s.held[j] = 0
                s.impulse[j] = 0.0
                return AGAIN
            continue
        if part == Part.IMPACT:
            side = 1 if s.upper[j] - angle <= APART else -1 if angle - s.lower[j] <= APART else 0
            if side == 0 and s.arrivals[0] > 0 and s.arrival[j] <= s.together[0]:
                side = s.side[j]
            if side != 0 and side * (after - _goal(s, j, side, q, v, part, t.h)[0]) > BEYOND:
                s.held[j] = side
                return AGAIN
            continue
        end = angle + (t.step[i] if part == Part.WITHIN else s.span[0] * (v[i] + way * t.x[i]))
        side = 1 if end > s.upper[j] + BEYOND else -1 if end < s.lower[j] - BEYOND else 0
        if side == 0:
            continue
        gap = _gap(s, j, side, angle)
        if part == Part.WITHIN and (side * after < 0.0 or firm):
            # On its way back by the end of the step: it turned at the limit.
            t.step[i] = side * gap
        elif part == Part.WHOLE and side * v[i] > s.slow:
            _arrive(s, j, side, gap, side * v[i], side * t.x[i], aloft)
        elif aloft and side * v[i] <= s.slow and side * (after - _goal(s, j, side, q, v, part, t.h)[0]) <= 0.0:
            # As there: the stop would pull. In flight the way of slow joints ends at their limits.
            continue
        else:
            s.held[j] = side
            return AGAIN
    if s.bounced[0] and t.rows.used[0] > first and _gives(s, t, p, impulse, v, part):
        s.plastic[0] = True
        return AGAIN
    return STANDS


@kernel
def passes_others(s: Stops, t: Tree, q: Array, v: Array) -> bool:
    """Whether joints pass their limits whose stops were not solved for with all that touches; note these as held.

    A blow elsewhere may turn a light joint through its whole range within a step.
    """
    found = False
    for j in range(s.idx_q.shape[0]):
        i = s.idx_v[j]
        end = q[s.idx_q[j]] + t.h * (v[i] + t.x[i])
        side = 1 if end > s.upper[j] else -1 if end < s.lower[j] else 0
        if side != 0 and not s.asked[j]:
            s.held[j] = side
            found = True
    return found


@kernel
def keep_within(s: Stops, t: Tree, q: Array) -> None:
    """End the way of a step at the limits of the joints at most."""
    for j in range(s.idx_q.shape[0]):
        i, angle = s.idx_v[j], q[s.idx_q[j]]
        t.step[i] = min(max(t.step[i], s.lower[j] - angle), s.upper[j] - angle)


@kernel
def end_at_limits(s: Stops, t: Tree, q: Array, v: Array) -> None:
    """End the way of a step in flight from (q, v) at limits that stops hold, and elsewhere within all limits."""
    for j in range(s.idx_q.shape[0]):
        if s.held[j] != 0:
            t.step[s.idx_v[j]] = t.h * _goal(s, j, s.held[j], q, v, Part.WITHIN.value, t.h)[1]
    keep_within(s, t, q)


@kernel
def _arrive(s: Stops, j: int, side: int, gap: float, speed: float, change: float, aloft: bool) -> None:
    """Note when a joint arrives: its velocity is that of half a step ago, and in flight that of the moment."""
    if s.arrivals[0] == 0:
        for other in range(s.arrival.shape[0]):
            s.arrival[other] = NEVER
    h = s.span[0]
    # gap = h s (speed + (1 + s) / 2 change), in flight h s (speed + s / 2 change)
    slope = h * (speed if aloft else speed + 0.5 * change)
    square = slope * slope + 2.0 * h * change * gap
    root = np.sqrt(max(square, 0.0)) + slope
    s.side[j] = side
    s.arrival[j] = max(min(2.0 * gap / root, LAST), 0.0) if root > 0.0 else LAST
    s.arrivals[0] += 1


@kernel
def first_arrival(s: Stops) -> float:
    """Return the share of the step at which the first joint arrives, ``NEVER`` if none does."""
    first = NEVER
    if s.arrivals[0] > 0:
        for j in range(s.arrival.shape[0]):
            if s.arrival[j] < first:
                first = s.arrival[j]
    return first


@kernel
def gather(s: Stops, share: float) -> None:
    """Let those take part in an impact at ``share`` of the step that arrive up to then, or hardly later."""
    s.together[0] = share + TOGETHER
