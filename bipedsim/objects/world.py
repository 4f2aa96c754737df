"""Free rigid bodies on the ground, step by step.

A step is made in parts (:mod:`bipedsim.objects.parts`): forces of finite size act between two events, and where bodies
meet there is an impact, of its own, at that moment. A step in which nothing meets is one part.

Impacts with restitution happen one pair after another, the fastest first: a row of balls is left by as many as came
(Newton's cradle), where Newton's law for all contacts at once would have the first one bounce back (Hurmuzlu et al.
2001, section 3). Pairs that are equally fast, to rounding, go together, so that what is symmetric stays so. What then
still approaches, slowly or without restitution, is stopped for all pairs at once, as by Moreau's law.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bipedsim.contact.time_stepping import ConeProblem
from bipedsim.errors import ConfigError
from bipedsim.ground import Ground
from bipedsim.numerics import (
    STEP_BUDGET,
    Array,
    Box,
    Integers,
    assign,
    box,
    entry,
    exp3,
    kernel,
    mul,
    mul_t,
    product,
    ready,
    unlimited,
    zeros_of,
)
from bipedsim.objects.bodies import Bodies, fastest, finish, fly, kick, kinetic_energy, move, note, place
from bipedsim.objects.contacts import PAIRS, POINTS, WORLD, Contacts, Memory, copy_memory, recall, remember
from bipedsim.objects.crossing import Crossing
from bipedsim.objects.free_body import FreeBody, Link
from bipedsim.objects.hulls import Hulls
from bipedsim.objects.narrow import CAP, DEEPER, Near, Surface, look, mark_pairs, spare_room
from bipedsim.objects.parts import TOUCHING, arrival, begin_part, gather, pick, speed, touches
from bipedsim.objects.pressing import press
from bipedsim.objects.shapes import Shapes
from bipedsim.objects.sides import Sides
from bipedsim.objects.solve import Rows, Solve, solve_impact, solve_part
from bipedsim.touch import Contacts as Touches, Objects

TOLERANCE, ITERATIONS = 1e-8, 5000
"""Residual of the cone problems that counts as solved, and iterations of one of them at most."""
MOST_EVENTS = 10
"""Moments in a step at which something meets; what meets after these is closed within the step."""
CUT, MOST_CUTS = 5e-7, 10
"""How deep shapes are where a part ends earlier, and how exactly that is found [m]; tries at most."""
MOST_EARLY = 4
"""Parts of a step that end earlier at most."""
SHORTEST = 1e-3
"""Share of a part that is left where it ends earlier, at least."""
MOST_IMPACTS = 200
"""Impacts with restitution at one moment, before all that is left is plastic."""
LOOKING = 20_000
"""Operations of the budget of a step that an impact takes beside its solution."""
SLOW = 0.5
"""What arrives with less than gravity adds in so many steps does not bounce."""
HARDEST = 100.0
"""Acceleration of a link [m/s^2] that is reckoned with in saying what may touch."""
STICKS = 1e-6
"""A point on a link that is slower sticks [m/s]."""
FASTEST = 1e4
"""Speed [m/s] of the fastest point of a body, its centre and its spin taken together, with which no step is taken."""
OVERLAP = 1e-6
"""How deep bodies may begin in each other [m]: postures are rounded."""
LEFT_OVER = 1e-12
"""Shares of a step that are rounding."""


@entry
def _look(boxed: Any, s: float) -> int:
    a = boxed.arrays
    look(a, s)
    return a.asked[0]


@entry
def _recall(boxed: Any, memory: Any) -> None:
    recall(boxed.arrays.contacts, memory.arrays)


@entry
def _begin(boxed: Any, s: float, slow: float, last: bool) -> int:
    a = boxed.arrays
    return begin_part(a.bodies, a.contacts, s, slow, last)


@entry
def _gather(boxed: Any, taken: Integers, chosen: Integers) -> int:
    return gather(boxed.arrays.contacts, taken, chosen)


@entry
def _solve_part(boxed: Any, s: float) -> None:
    solve_part(boxed.arrays, s)


@entry
def _until(boxed: Any, s: float) -> float:
    """Fill how a part of ``s`` seconds ends, or where the next bodies meet if that is earlier; return when [s]."""
    b = boxed.arrays.bodies
    finish(b, 1.0, s)
    until = arrival(b, boxed.arrays.contacts, s)
    if until < s:
        _finish_early(b, s, until)
    return until


@kernel
def _finish_early(b: Bodies, s: float, until: float) -> None:
    """Fill how a part of ``s`` seconds ends after ``until`` of them."""
    for i in range(b.mass.shape[0]):
        fly(b, i, until)
    finish(b, until / s, until)


@entry
def _spare(boxed: Any, until: float) -> float:
    a = boxed.arrays
    spare = spare_room(a, until)
    mark_pairs(a, until)
    return spare


@entry
def _spare_early(boxed: Any, s: float, until: float) -> float:
    a = boxed.arrays
    _finish_early(a.bodies, s, until)
    return spare_room(a, until)


@entry
def _end(boxed: Any, memory: Any, s: float, until: float, reach: Array, worst: Array) -> bool:
    """Take the bodies to the end of a part of ``s`` seconds that ends after ``until`` of them.

    Returns:
        Whether they have got there: they stay where one gets too fast. ``worst`` (2,) is which, and its speed [m/s].
    """
    a = boxed.arrays
    b = a.bodies
    worst[0], worst[1] = fastest(b, reach)
    if not worst[1] < FASTEST:
        return False
    note(b, until / s)
    move(b, until)
    remember(a.contacts, memory.arrays)
    return True


@entry
def _pick(boxed: Any, slow: float, slow_kept: float, chosen: Integers) -> int:
    a = boxed.arrays
    touches(a.bodies, a.contacts, slow_kept)
    return pick(a.bodies, a.contacts, slow, chosen)


@entry
def _impact(boxed: Any, slow: float) -> None:
    """Make an impact of the chosen pairs; where restitution and friction would give energy, a plastic one."""
    a = boxed.arrays
    b = a.bodies
    before = kinetic_energy(b)
    b.impulse[:, :] = 0.0
    solve_impact(a, slow)
    kick(b)
    if slow < np.inf and kinetic_energy(b) > before * (1.0 + 1e-12):
        for i in range(b.mass.shape[0]):
            for x in range(6):
                b.impulse[i, x] = -b.impulse[i, x]
        kick(b)
        b.impulse[:, :] = 0.0
        solve_impact(a, np.inf)
        kick(b)
    note(b, 1.0)


@entry
def _place(boxed: Any) -> None:
    place(boxed.arrays.bodies)


@entry
def _look_at_links(boxed: Any, s: float) -> None:
    """Fill where all bodies would get in ``s`` seconds without contact, and mark what may touch until then."""
    b = boxed.arrays.bodies
    c = boxed.arrays.contacts
    for i in range(b.mass.shape[0]):
        fly(b, i, s)
        b.at_end[i] = 0.0
    for m in range(c.points[0]):
        u = min(speed(b, c, m, b.v, b.w), 0.0)
        c.active[m] = 1 if c.gap[m] + s * (u - s * HARDEST) < 0.0 or c.gap[m] <= TOUCHING else 0


@entry
def _first_hit(boxed: Any, slow: float, s: float) -> float:
    """Return after which share of ``s`` seconds the first link and body meet that rebound; 0 if none do."""
    b = boxed.arrays.bodies
    c = boxed.arrays.contacts
    first = 1.0
    for m in range(c.points[0]):
        p = c.pair[m]
        if max(c.first[p], c.second[p]) < b.mass.shape[0] or not c.restitution[p] > 0.0:
            continue
        u = speed(b, c, m, b.v, b.w)
        if u < -slow and c.gap[m] > TOUCHING and c.gap[m] < -u * s * first:
            first = c.gap[m] / (-u * s)
    return first if first < 1.0 else 0.0


@entry
def _put_ahead(boxed: Any, s: float) -> None:
    """Put all bodies where they get in ``s`` seconds with the velocities that they have."""
    b = boxed.arrays.bodies
    for i in range(b.mass.shape[0]):
        for x in range(3):
            b.position[i, x] += s * b.v[i, x]
        exp3(b.w[i], s, b.A)
        product(b.A, b.R[i], b.B)
        b.R[i] = b.B


@entry
def _put_back(boxed: Any, s: float) -> None:
    """Put all bodies back where they were before they were put ahead, and let gaps be those from there."""
    b = boxed.arrays.bodies
    c = boxed.arrays.contacts
    for m in range(c.points[0]):
        c.gap[m] -= s * speed(b, c, m, b.v, b.w)
    for i in range(b.mass.shape[0]):
        for x in range(3):
            b.position[i, x] -= s * b.v[i, x]
    place(b)


@entry
def _arrive(
    boxed: Any,
    memory: Any,
    after: Array,
    impulses: Array,
    velocities: Array,
    late: Array,
    s: float,
    reach: Array,
    worst: Array,
) -> bool:
    """Take all bodies to the end of a step of ``s`` seconds that ends with the velocities ``after`` (N, 6).

    Returns:
        Whether it was taken: not where a body gets too fast. ``worst`` (2,) is which, and its speed [m/s].
    """
    b = boxed.arrays.bodies
    c = boxed.arrays.contacts
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
    worst[0], worst[1] = fastest(b, reach)
    if not worst[1] < FASTEST:
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
    note(b, 1.0)
    move(b, s)
    remember(c, memory.arrays)
    return True


def _principal(inertia: Array) -> tuple[Array, Array]:
    """Return principal moments (3,), the first two the most alike, and their axes (3, 3) as columns, right-handed."""
    if np.count_nonzero(inertia - np.diag(np.diagonal(inertia))) == 0:
        moments, axes = np.diagonal(inertia).copy(), np.eye(3)
    else:
        moments, axes = np.linalg.eigh(inertia)
    unlike = [abs(moments[(k + 1) % 3] - moments[(k + 2) % 3]) / moments.max() for k in range(3)]
    last = int(np.argmin(unlike))
    order = [(last + 1) % 3, (last + 2) % 3, last]
    axes = axes[:, order]
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    return moments[order], axes


class Kept(NamedTuple):
    """The state where a step began, to go back to; see :class:`Bodies`."""

    memory: Memory
    position: Annotated[Array, "N", 3]
    quaternion: Annotated[Array, "N", 4]
    v: Annotated[Array, "N", 3]
    w: Annotated[Array, "N", 3]
    contact: Annotated[Array, "N", 6]


@kernel
def _copy_state(source: Any, target: Any, count: int) -> None:
    """Copy the state of so many bodies, of which either side may be :class:`Bodies` or :class:`Kept`."""
    for i in range(count):
        assign(target.position[i], source.position[i])
        assign(target.v[i], source.v[i])
        assign(target.w[i], source.w[i])
        for x in range(4):
            target.quaternion[i, x] = source.quaternion[i, x]
        for x in range(6):
            target.contact[i, x] = source.contact[i, x]


@entry
def _keep(boxed: Any, memory: Any, kept: Any) -> None:
    """Keep the state where a step begins."""
    b = boxed.arrays.bodies
    copy_memory(memory.arrays, kept.arrays.memory)
    _copy_state(b, kept.arrays, b.mass.shape[0])
    b.contact[:, :] = 0.0


@entry
def _go_back(boxed: Any, memory: Any, kept: Any) -> None:
    """Go back to where a step began."""
    b = boxed.arrays.bodies
    copy_memory(kept.arrays.memory, memory.arrays)
    _copy_state(kept.arrays, b, b.mass.shape[0])
    place(b)


class World:
    """Moves free bodies over a ground.

    Args:
        free: The bodies.
        ground: What they touch.
        physics_dt: Step h [s].
        gravity: (3,) [m/s^2].
        links: Bodies of a robot, which :meth:`see` places.
        budget: (1,) of a step in which other things are solved as well, which sets it at its beginning; see
            :mod:`bipedsim.numerics.budget`. Without one each step here has its own.

    Attributes:
        names: Of the bodies.
        links: As they were given.
        bodies: Their state.
        sides: What :func:`give_contacts` takes, once :meth:`meet` was called.
        given: (1,) energy that taking overlaps back may have given in the last step [J].
        ahead: (1,) how long after the begin of the step [s] contacts are as they were found.
    """

    def __init__(
        self,
        free: Sequence[FreeBody],
        ground: Ground,
        physics_dt: float,
        gravity: Array,
        links: Sequence[Link] = (),
        budget: Integers | None = None,
    ) -> None:
        self.free = tuple(free)
        self.links = tuple(links)
        self.names = tuple(body.name for body in free)
        self._h = physics_dt
        self._shared = budget is not None
        self._budget = unlimited() if budget is None else budget
        count = len(free)
        patches = ground.arrays()
        all_of_them: list[FreeBody | Link] = [*free, *links]
        shapes = [(i, shape) for i, body in enumerate(all_of_them) for shape in body.shapes]
        coms = np.array([body.com for body in free])
        sizes = {"N": count, "A": count + len(links)}
        self.bodies = b = zeros_of(Bodies, sizes, com=coms, gravity=np.array(gravity))
        self._slow = SLOW * physics_dt * float(np.linalg.norm(gravity))
        for i, body in enumerate(free):
            b.mass[i] = body.mass
            b.inertia[i] = body.inertia
            b.moments[i], b.principal[i] = _principal(body.inertia)
        pairs = len(shapes) * (len(shapes) - 1) // 2
        flat = Shapes.of(shapes, np.vstack([coms, np.zeros((len(links), 3))]))
        corners = max(flat.faces.shape[2], CAP) + patches.region.shape[1] + max(flat.faces.shape[2], CAP)
        surface = Surface(
            np.array([*(body.friction_static for body in free), *(link.friction for link in links)]),
            np.array([*(body.friction_dynamic for body in free), *(link.friction for link in links)]),
            # A link is as elastic as what it meets.
            np.array([*(body.restitution for body in free), *(1.0 for _ in links)]),
            np.array([body.ground_restitution for body in free]),
        )
        self._near = zeros_of(
            Near,
            {"Q": max(pairs, 1), "C": corners},
            bodies=b,
            shapes=flat,
            surface=surface,
            ground=patches,
            contacts=zeros_of(Contacts, {"P": PAIRS, "M": POINTS}),
            crossing=zeros_of(Crossing, {}),
        )
        self._hulls = Hulls([shape for _, shape in shapes])
        self._reach = np.array([body.reach for body in free])
        self._count: Integers = np.zeros(1, dtype=np.int64)
        self._worst: Array = np.zeros(2)
        self._failed: Integers = np.zeros(1, dtype=np.int64)
        self.given: Array = np.zeros(1)
        self.ahead: Array = np.zeros(1)
        self._early = 0
        self._meeting: tuple[Touches, Objects] | None = None
        self._memory = zeros_of(Memory, {"M": POINTS})
        self._make_room(PAIRS, POINTS)
        self.reset()

    def _make_room(self, pairs: int, points: int) -> None:
        """Make arrays for so many pairs and points; what is kept of the last part stays."""
        count, memory = len(self.free), self._memory
        self._near = near = self._near._replace(contacts=zeros_of(Contacts, {"P": pairs, "M": points}))
        self._memory = zeros_of(Memory, {"M": points})
        copy_memory.py_func(memory, self._memory)
        self._boxed, self._kept = box(near), box(self._memory)
        self._before = box(zeros_of(Kept, {"N": count}, memory=zeros_of(Memory, {"M": points})))
        self._chosen: Integers = np.zeros(pairs, dtype=np.int64)
        self._taken: Integers = np.zeros(pairs, dtype=np.int64)
        self._solves: dict[tuple[int, int], Box] = {}
        self._rows = zeros_of(Rows, {"P": pairs, "M": points}, chosen=self._chosen, number=self._count)
        self.sides: Box | None = None
        if self._meeting is not None:
            self.meet(*self._meeting)

    @property
    def contacts(self) -> Contacts:
        """Who was near whom in the last part of the last step."""
        return self._near.contacts

    @property
    def unresolved(self) -> int:
        """Problems and rotations that no solution was found for; the best ones were taken."""
        return int(self._failed[0] + self.bodies.rough[0])

    @property
    def operations(self) -> int:
        """What the solves of the last step took of its budget of ``STEP_BUDGET``, where it was taken here."""
        return STEP_BUDGET - int(self._budget[0])

    def reset(self) -> None:
        """Go back to the start."""
        b = self.bodies
        for i, body in enumerate(self.free):
            b.quaternion[i] = body.pose[3:] / np.linalg.norm(body.pose[3:])
        _place(self._boxed)
        for i, body in enumerate(self.free):
            arm = b.R[i] @ body.com
            b.position[i] = body.pose[:3] + arm
            b.w[i] = body.twist[3:]
            b.v[i] = body.twist[:3] + np.cross(body.twist[3:], arm)
        b.force[:] = b.torque[:] = b.contact[:] = 0.0
        self._memory.points[0] = 0
        self._failed[0] = b.rough[0] = 0

    def step(self) -> str:
        """Make a step, all of it or none; return why none was made, nothing if one was."""
        left = h = self._h
        _keep(self._boxed, self._kept, self._before)
        counted = self.bodies.rough[0], self._failed[0]
        self.given[0] = 0.0
        self._early = 0
        if not self._shared:
            self._budget[0] = STEP_BUDGET
        for event in range(MOST_EVENTS + 1):
            last = event == MOST_EVENTS
            self._near.whole[0] = last
            self._find(left)
            if self._impacts():
                self._find(left)
            went = self._part(float(self._near.span[0]), last)
            if went < 0.0:
                _go_back(self._boxed, self._kept, self._before)
                self.bodies.rough[0], self._failed[0] = counted
                return self._refusal()
            left -= went
            if left <= LEFT_OVER * h:
                break
        return ""

    def _refusal(self) -> str:
        """Return why no step was made."""
        which, speed = self._worst.tolist()
        name = self.names[int(which)]
        if not np.isfinite(speed):
            return f"the velocity of object {name!r} is not finite"
        return f"a point of object {name!r} reached {speed:.3g} m/s, more than {FASTEST:g}"

    def warm_up(self) -> None:
        """Load or compile what the first contact needs; nothing moves."""
        boxed, kept, h, slow = self._boxed, self._kept, self._h, self._slow
        solve = self._solve_of(1)
        calls: list[tuple[Any, ...]] = [
            (_look, boxed, h),
            (_recall, boxed, kept),
            (_pick, boxed, slow, slow, self._chosen),
            (_impact, solve, slow),
            (_begin, boxed, h, slow, False),
            (_gather, boxed, self._taken, self._chosen),
            (_solve_part, solve, h),
            (_until, boxed, h),
            (_spare, boxed, h),
            (_spare_early, boxed, h, h),
            (_end, boxed, kept, h, h, self._reach, self._worst),
            (_keep, boxed, kept, self._before),
            (_go_back, boxed, kept, self._before),
        ]
        if self.links:
            rows = np.zeros((1, 3))
            calls += [
                (_look_at_links, boxed, h),
                (_first_hit, boxed, slow, h),
                (_put_ahead, boxed, h),
                (_put_back, boxed, h),
                (_arrive, boxed, kept, np.zeros((1, 6)), rows, rows, np.zeros(1), h, self._reach, self._worst),
            ]
        for function, *arguments in calls:
            ready(function, *arguments)
        self._hulls.warm_up(boxed)

    def see(self, link: int, position: Array, R: Array, v: Array, w: Array) -> None:
        """Place a link: origin (3,) [m] and attitude (3, 3) of its joint in the world, and both velocities (3,)."""
        b, i = self.bodies, len(self.free) + link
        b.position[i], b.R[i], b.v[i], b.w[i] = position, R, v, w

    def first_hit(self) -> float:
        """Return after which time of the step [s] the first body is hit by a link and rebounds; 0 if none is.

        After :meth:`meets`.
        """
        return float(_first_hit(self._boxed, self._slow, self._h)) * self._h

    def meets(self, ahead: float = 0.0) -> bool:
        """Whether a body may touch a link in the coming step; if so, the contacts that may are active.

        Args:
            ahead: How long after the begin of the step [s] they are looked at: where links have been placed, and where
                bodies get until then.
        """
        c = self.contacts
        self.ahead[0] = ahead
        if ahead > 0.0:
            _put_ahead(self._boxed, ahead)
        self._near.links[0] = self._near.whole[0] = 1
        self._find(self._h)
        self._near.links[0] = 0
        if ahead > 0.0:
            _put_back(self._boxed, ahead)
        points = int(c.points[0])
        if not points:
            return False
        free = len(self.free)
        pairs = c.pair[:points]
        if not (np.maximum(c.first[pairs], c.second[pairs]) >= free).any():
            return False
        _look_at_links(self._boxed, self._h)
        return bool((c.active[:points] & (np.maximum(c.first[pairs], c.second[pairs]) >= free)).any())

    def meet(self, contacts: Touches, objects: Objects) -> None:
        """Have the contacts of a robot, with its ``objects``, take those of these bodies from now on."""
        self._meeting = contacts, objects
        joints = np.array([link.joint for link in self.links], dtype=np.int64)
        given = {"near": self._near, "contacts": contacts, "objects": objects, "joints": joints, "ahead": self.ahead}
        self.sides = box(zeros_of(Sides, {"M": self.contacts.pair.shape[0]}, **given))

    def arrive(self, after: Array, impulses: Array, velocities: Array, late: Array) -> str:
        """Take a step whose contacts somebody else has solved, all of it or none.

        Args:
            after: (N, 6) velocities at the end, of the centres of mass and angular, in the world.
            impulses, velocities: (M, 3) of the active contacts, in the axes of their pairs [N.s], [m/s].
            late: (M,) share of the step that is left when each of them acts.

        Returns:
            As :meth:`step`.
        """
        solved = after, impulses, velocities, late
        return "" if _arrive(self._boxed, self._kept, *solved, self._h, self._reach, self._worst) else self._refusal()

    def press(self, plates: Box) -> None:
        """Add what the ground did in the last step to the surfaces of force plates."""
        press(self._boxed, plates, self._h)

    def _find(self, left: float) -> None:
        """Look for contacts of the coming ``left`` seconds, and make room for them if there is none."""
        self._look(left)
        while self.contacts.lost[0]:
            pairs, points = len(self.contacts.first), len(self.contacts.pair)
            self._make_room(2 * pairs, 2 * points)
            self._look(left)
        if self.contacts.points[0]:
            _recall(self._boxed, self._kept)

    def _look(self, left: float) -> None:
        if _look(self._boxed, left):
            self._hulls.add(self._near, self._boxed)

    def _impacts(self) -> bool:
        """Have all that touches and approaches collide; return whether anything did."""
        chosen, slow = self._chosen, self._slow
        if not self.contacts.points[0]:
            return False
        for number in range(MOST_IMPACTS + 1):
            spent = self._budget[0] <= 0
            plastic = number == MOST_IMPACTS or spent
            count = _pick(self._boxed, np.inf if plastic else slow, slow, chosen)
            if count == 0:
                return number > 0
            self._failed[0] += spent
            self._collide(chosen[: abs(count)].copy(), slow if count > 0 else np.inf)
            if count < 0:
                return True
        return True

    def _collide(self, pairs: Integers, slow: float) -> None:
        """Have the ``pairs`` (n,) collide, those that hang together at once."""
        taken, chosen = self._taken, self._chosen
        self._budget[0] -= LOOKING
        taken[:] = 1
        taken[pairs] = 0
        while count := _gather(self._boxed, taken, chosen):
            self._count[0] = count
            _impact(self._solve_of(count), slow)

    def _part(self, left: float, last: bool) -> float:
        """Make a part of the step of at most ``left`` seconds, to the next event; return how long it was."""
        if _begin(self._boxed, left, self._slow, last):
            taken, chosen = self._taken, self._chosen
            taken[:] = 0
            while count := _gather(self._boxed, taken, chosen):
                self._count[0] = count
                _solve_part(self._solve_of(count), left)
        until = float(_until(self._boxed, left))
        if not last and self._early < MOST_EARLY:
            until = self._cut(left, until)
        return until if _end(self._boxed, self._kept, left, until, self._reach, self._worst) else -1.0

    def _cut(self, left: float, until: float) -> float:
        """Return ``until`` [s], or an earlier end of a part of ``left`` seconds: where shapes get deeper than contacts.

        Contacts are those of the begin of the part: what two shapes have at another point is found in this way.
        """
        near, boxed, aim = self._near, self._boxed, DEEPER - CUT
        spare = self._hulls.spare(near, boxed, float(_spare(boxed, until)), True)
        if spare >= 0.0:
            return until
        self._early += 1
        # By false position (the Illinois algorithm).
        early, late, above, below, side, shortest = 0.0, until, CUT, spare - aim, 0, SHORTEST * until
        for _ in range(MOST_CUTS):
            until = max((early * below - late * above) / (below - above), shortest)
            over = self._hulls.spare(near, boxed, float(_spare_early(boxed, left, until)), False) - aim
            if abs(over) <= 0.5 * CUT or (until == shortest and over < 0.0):
                break
            if over < 0.0:
                late, below, above, side = until, over, above * (0.5 if side < 0 else 1.0), -1
            else:
                early, above, below, side = until, over, below * (0.5 if side > 0 else 1.0), 1
        return until

    def _solve_of(self, pairs: int) -> Box:
        """Return what it takes to solve for so many pairs; made when it is first needed."""
        points = 1 << max(int(self.contacts.points[0]) - 1, 3).bit_length()
        key = pairs, points
        if key not in self._solves:
            cone = ConeProblem.of_feet(pairs, points, TOLERANCE, ITERATIONS, budget=self._budget)
            G = np.zeros((6 * pairs, 6 * pairs))
            self._solves[key] = box(
                Solve(self.bodies, self.contacts, cone, self._rows, self._h, G, self._failed, self.given)
            )
        return self._solves[key]

    def poses(self) -> Array:
        """Return the poses (N, 7) of the bodies' frames in the world: position [m], quaternion x y z w."""
        b, free = self.bodies, slice(len(self.free))
        origins = b.position[free] - np.einsum("nij,nj->ni", b.R[free], b.com)
        return np.hstack([origins, b.quaternion])

    def state(self) -> dict[str, NDArray[Any]]:
        """Return a copy of all that the next step depends on."""
        return {name: array.copy() for name, array in self._lasting().items()}

    def set_state(self, state: dict[str, NDArray[Any]]) -> None:
        """Go back to what :meth:`state` returned.

        Raises:
            KeyError: Something is missing; nothing has changed.
            ValueError: Something has another size; nothing has changed.
        """
        own, kept = self._fitting(state)
        points = len(kept["who"])
        if points > len(self._memory.who):
            self._make_room(points, points)
        for array, values in own:
            array[:] = values
        self._memory.points[0] = points
        for name, values in kept.items():
            getattr(self._memory, name)[:points] = values
        _place(self._boxed)

    def check_state(self, state: dict[str, NDArray[Any]]) -> None:
        """Raise ConfigError where :meth:`set_state` would refuse ``state``; nothing changes."""
        try:
            self._fitting(state)
        except (KeyError, ValueError) as error:
            raise ConfigError(f"the state is not one of these objects: {error}") from error

    def _fitting(
        self, state: dict[str, NDArray[Any]]
    ) -> tuple[list[tuple[NDArray[Any], NDArray[Any]]], dict[str, NDArray[Any]]]:
        """Return the own arrays, each with its new values, and the new values of the memory by name."""
        points = len(state["who"])
        own = [(array, np.broadcast_to(state[name], array.shape)) for name, array in self._own().items()]
        kept = {
            name: np.broadcast_to(state[name], (points, *array.shape[1:]))
            for name, array in self._memory._asdict().items()
            if name != "points"
        }
        return own, kept

    def _lasting(self) -> dict[str, NDArray[Any]]:
        points = int(self._memory.points[0])
        kept = {name: array[:points] for name, array in self._memory._asdict().items() if name != "points"}
        return self._own() | kept

    def _own(self) -> dict[str, NDArray[Any]]:
        # Links are placed anew before anybody looks at them.
        b, free = self.bodies, slice(len(self.free))
        own = {name: getattr(b, name)[free] for name in ("position", "quaternion", "v", "w", "contact")}
        return own | {"failed": self._failed, "rough": b.rough}

    def twists(self) -> Array:
        """Return the velocities (N, 6) of the bodies' frames, linear and angular, in their own axes."""
        b, free = self.bodies, slice(len(self.free))
        R, w = b.R[free], b.w[free]
        linear = b.v[free] - np.cross(w, np.einsum("nij,nj->ni", R, b.com))
        return np.hstack([np.einsum("nji,nj->ni", R, linear), np.einsum("nji,nj->ni", R, w)])

    def push(self, i: int, wrench: Array) -> None:
        """Add a mean wrench (6,) over the coming step, in world axes at the origin of the frame of body ``i``."""
        b = self.bodies
        b.force[i] += wrench[:3]
        b.torque[i] += wrench[3:] - np.cross(b.R[i] @ b.com[i], wrench[:3])

    def overlaps(self, links: bool = False) -> list[str]:
        """Return what lies in what, deeper than rounding, by name; links where they were placed last, if ``links``."""
        self._near.links[0] = links
        self._find(0.0)
        self._near.links[0] = 0
        c = self.contacts
        found = []
        for p in range(int(c.pairs[0])):
            depth = -float(c.gap[: c.points[0]][c.pair[: c.points[0]] == p].min())
            if depth > OVERLAP:
                what, where = self._called(int(c.first[p])), self._called(int(c.second[p]))
                found.append(f"{what} begins {1e3 * depth:.3g} mm deep in {where}")
        return found

    def _called(self, body: int) -> str:
        if body == WORLD:
            return "the ground"
        free = len(self.free)
        return f"object {self.names[body]!r}" if body < free else f"the robot's {self.links[body - free].name!r}"
