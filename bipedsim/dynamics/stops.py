"""Joint limits: find the active ones in a step, and the velocities of their joints.

An active limit fixes one velocity, as a row that is eliminated before the contact acts (:mod:`.rows`). For the contact
model, the joint is fixed. The coupling of limits and ground is therefore exact for every model.

Pivoting finds the active set. It starts with the set of the last step, and changes one violated limit at a time, that
with the lowest index. After each change the contact model solves again. The search ends when every active limit pushes
and no other joint exceeds its limit (Murty, "Note on a Bard-type scheme for solving the complementarity problem",
Opsearch 11, 1974).

A step in which a joint reaches its limit at speed is divided at that time (:mod:`.landing`). The impact follows
Newton's law, v+ = -e v. A joint that reaches its limit slowly ends the step there, v+ = gap / h. It comes to rest in
the next step. A joint without a solution of its impact does the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.dynamics.landing import LAST, NEVER, TOGETHER
from bipedsim.dynamics.projection import Projection
from bipedsim.dynamics.protocol import Part
from bipedsim.dynamics.rows import energy_added
from bipedsim.dynamics.tree import Tree
from bipedsim.model import Robot
from bipedsim.numerics import Array, Flags, Integers, kernel, zeros_of

APART = 1e-9
"""Minimum distance from the limit [rad] for an impact there; a nearer joint is at its limit already."""
BEYOND = 1e-12
"""Tolerance above which a joint exceeds its limit [rad], or its velocity in an impact [rad/s]."""
SLOW = 0.5
"""Speed below which a joint reaches its limit slowly, as a number of steps.

In that time, gravity accelerates the end of a lever of one metre to this speed."""
FASTEST = 2e3
"""Acceleration [rad/s^2] that defines ``reach``: a joint at rest that could reach its limit in a step is near it."""
PULLS = 1e-10
"""A limit pulls if its impulse in the wrong direction exceeds this fraction of the largest impulse."""
GIVES = 1e-9
"""Limits add energy if they add more than this fraction of the largest possible work of their impulses."""
SHORT = 1e-3
"""Fraction of a step that is too short to move a joint back to its limit; rounding may leave such a rest of a step."""
STANDS, AGAIN = 0, 1


class Stops(NamedTuple):
    """Store the limits of S joints.

    Attributes:
        idx_q, idx_v: (S,) indices in q and v. lower, upper: (S,) limits [rad].
        restitution: Newton's e. slow: speed [rad/s] below which a joint reaches its limit without restitution.
        reach: A joint that is farther from its limit [rad], and does not approach it, is not near it.
        held: (S,) 1 if the upper limit of a joint is active, -1 if the lower one is, else 0.
        impulse: (S,) of the limits on their joints in the last part of a step [N.m.s].
        near: (1,) whether any joint is near a limit in this part of the step. span: (1,) time during which the
            displacement follows the velocity after the step [s], 0 in an impact.
        arrivals: (1,) number of joints that reach their limit within the step. arrival: (S,) fraction of the step at
            which each does, else ``NEVER``. side: (S,) limit that they reach, 1 or -1, also of the joints in ``asked``.
            asked: (S,) whether the limit was solved together with all contacts. together: (1,) joints that reach their
            limit up to this fraction of the step take part in the impact.
        bounced, plastic: (1,) whether any limit has restitution in this attempt, and whether restitution is disabled.
        closing: (1,) whether a fast joint reached its limit in this part of the step by the velocity after it.
        freed: (S,) whether the limit of a joint stays inactive in this part, because it pulled and no set of active
            limits is consistent.
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
    freed: Annotated[Flags, "S"]

    @classmethod
    def of_joints(cls, robot: Robot, joints: Sequence[int], restitution: float, physics_dt: float) -> Stops:
        """Make the limits of the ``joints``, given by their indices in the model."""
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
    """Return the indices of the model's joints that have a lower or an upper limit."""
    model, limited = robot.model, []
    for i in range(1, model.njoints):
        joint = model.joints[i]
        limits = model.lowerPositionLimit[joint.idx_q], model.upperPositionLimit[joint.idx_q]
        if joint.nq == 1 and limits[0] < limits[1] and np.isfinite(limits).any():
            limited.append(i)
    return limited


@kernel
def _gap(s: Stops, j: int, side: int, angle: float) -> float:
    """Return the distance of joint ``j`` at ``angle`` from its limit on ``side`` [rad]."""
    return s.upper[j] - angle if side > 0 else angle - s.lower[j]


@kernel
def look_around(s: Stops, q: Array, v: Array, span: float, part: int) -> bool:
    """Set the limits that are active at the start of a part; return whether any joint is near a limit.

    Args:
        s: See :class:`Stops`.
        q, v: (nq,), (nv,) at the beginning of the part.
        span: Time during which the displacement follows the velocity after the part [s], 0 for an impact.
        part: Part of the step.
    """
    near = False
    # A fast joint at its limit has an impact at the beginning of the step, so its limit is not active yet.
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
            s.freed[j] = False
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
    """Return the velocity of joint ``j`` with an active limit after this part, and its mean within the part.

    A joint beyond its limit moves back within this part of the step. If the part is very short, it moves back with the
    velocity for a whole step ``h`` [s].
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
    """Make a row of every joint limit that is assumed active, from row ``first`` on."""
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
    """Read the impulses of the joint limits from the rows, which begin at ``first``; return the largest impulse."""
    largest, n = 0.0, first
    for j in range(s.idx_q.shape[0]):
        s.impulse[j] = 0.0
        if s.held[j] != 0:
            s.impulse[j] = t.rows.impulse[n]
            largest = max(largest, abs(s.impulse[j]))
            n += 1
    return largest


@kernel
def must_be_plastic(s: Stops, t: Tree, p: Projection, impulse: Array, v: Array, part: int, first: int) -> bool:
    """Return whether impacts with restitution and the contact together add energy; then disable restitution.

    Newton's law may add energy with friction.

    Args:
        s, t, p: See :class:`Stops`, :class:`Tree` and :class:`Projection`.
        impulse: (K, 6) of the contact.
        v: (nv,) before the step.
        part: Part of the step.
        first: Row of the first active joint limit.
    """
    if not s.bounced[0] or t.rows.used[0] <= first:
        return False
    given, most = energy_added(t.rows, first, impulse), 0.0
    for j in range(s.idx_q.shape[0]):
        most += abs(s.impulse[j] * v[s.idx_v[j]])
    if part != Part.WITHIN:
        # With forces within the step, the contact impulse includes energy of springs, which is not due to the impact.
        for row in range(p.w_free.shape[0]):
            after = p.w_free[row]
            for k in range(impulse.shape[0]):
                for a in range(6):
                    after += p.G[row, 6 * k + a] * impulse[k, a]
            given += 0.5 * impulse[row // 6, row % 6] * (p.w_free[row] + after)
    s.plastic[0] = given > GIVES * most
    return s.plastic[0]


@kernel
def judge(s: Stops, t: Tree, q: Array, v: Array, part: int, aloft: bool, firm: bool, first: int) -> int:
    """Check whether the assumed joint limits are exactly the active ones; otherwise change one of them.

    Args:
        s, t: See :class:`Stops` and :class:`Tree`, with the change of v in ``x``, and for forces within the step the
            displacement in ``step``.
        q, v: (nq,), (nv,) before the step.
        part: Part of the step. aloft: whether no foot is in contact in it.
        firm: Whether the search must end. A limit that pulls is then inactive for the rest of the part, and its joint
            ends at most at the limit, with the velocity that it has. With forces within the step, all joints do so.
        first: Row of the first active joint limit.

    Returns:
        ``STANDS`` or ``AGAIN``. For a whole step, ``arrivals`` counts the joints that reach their limit within it.
    """
    pulls = PULLS * read_stops(s, t, first) if s.near[0] else np.inf
    if part == Part.WHOLE:
        s.arrivals[0] = 0
    way = 0.5 * s.span[0] / t.h if aloft else 1.0
    for j in range(s.idx_q.shape[0]):
        side, i, angle = s.held[j], s.idx_v[j], q[s.idx_q[j]]
        after = v[i] + t.x[i]
        if side != 0:
            if side * s.impulse[j] > pulls:
                s.held[j] = 0
                s.impulse[j] = 0.0
                s.freed[j] = firm
                return AGAIN
            continue
        if s.freed[j]:
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
            # The joint moves away from the limit at the end of the step, so it turned back at the limit.
            t.step[i] = side * gap
        elif part == Part.WHOLE and side * v[i] > s.slow:
            _arrive(s, j, side, gap, side * v[i], side * t.x[i], aloft)
        elif aloft and side * v[i] <= s.slow and side * (after - _goal(s, j, side, q, v, part, t.h)[0]) <= 0.0:
            # The limit would pull here, too. In flight the displacement of slow joints ends at their limits.
            continue
        else:
            s.held[j] = side
            return AGAIN
    return STANDS


@kernel
def passes_others(s: Stops, t: Tree, q: Array, v: Array) -> bool:
    """Return whether joints exceed limits that were not solved with the contacts; mark these limits as active.

    An impact elsewhere may rotate a light joint through its whole range within a step.
    """
    exceeded = False
    for j in range(s.idx_q.shape[0]):
        i = s.idx_v[j]
        end = q[s.idx_q[j]] + t.h * (v[i] + t.x[i])
        side = 1 if end > s.upper[j] else -1 if end < s.lower[j] else 0
        if side != 0 and not s.asked[j]:
            s.held[j] = side
            exceeded = True
    return exceeded


@kernel
def keep_within(s: Stops, t: Tree, q: Array) -> None:
    """Clip the displacement of a step at the joint limits."""
    for j in range(s.idx_q.shape[0]):
        i, angle = s.idx_v[j], q[s.idx_q[j]]
        t.step[i] = min(max(t.step[i], s.lower[j] - angle), s.upper[j] - angle)


@kernel
def end_at_limits(s: Stops, t: Tree, q: Array, v: Array) -> None:
    """End a step in flight from (q, v) at the active joint limits; clip its displacement at all others."""
    for j in range(s.idx_q.shape[0]):
        if s.held[j] != 0:
            t.step[s.idx_v[j]] = t.h * _goal(s, j, s.held[j], q, v, Part.WITHIN.value, t.h)[1]
    keep_within(s, t, q)


@kernel
def _arrive(s: Stops, j: int, side: int, gap: float, speed: float, change: float, aloft: bool) -> None:
    """Store when a joint reaches its limit; its velocity has a lag of half a step, and none in flight."""
    if s.arrivals[0] == 0:
        for i in range(s.arrival.shape[0]):
            s.arrival[i] = NEVER
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
    """Return the fraction of the step at which the first joint reaches its limit, ``NEVER`` if none does."""
    first = NEVER
    if s.arrivals[0] > 0:
        for j in range(s.arrival.shape[0]):
            if s.arrival[j] < first:
                first = s.arrival[j]
    return first


@kernel
def gather(s: Stops, share: float) -> None:
    """Include joints in an impact at ``share`` of the step if they reach their limits until shortly after it."""
    s.together[0] = share + TOGETHER
