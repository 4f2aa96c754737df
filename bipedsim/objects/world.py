"""Simulation of free rigid bodies on the ground, step by step.

A step is divided into sub-steps (:mod:`bipedsim.objects.parts`). Finite forces act between two events. Where bodies
meet, there is a separate impact at that moment. A step without such an event is a single sub-step.

Impacts with restitution occur one pair after another, the fastest first. So as many balls leave a row as have hit it
(Newton's cradle). Newton's law for all contacts at once would instead let the first ball bounce back (Hurmuzlu et al.
2001, section 3). Pairs with equal speeds, to rounding, are solved together, so that symmetric cases stay symmetric.
Pairs that still approach, slowly or without restitution, are then stopped all at once, as in Moreau's law.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from bipedsim.objects.contacts import (
    PAIRS,
    POINTS,
    WORLD,
    Memory,
    PairContacts,
    copy_memory,
    restore_points,
    store_points,
)
from bipedsim.objects.free_body import FreeBody, Link, bodies_of, frame_poses, frame_twists
from bipedsim.objects.hulls import Hulls
from bipedsim.objects.narrow import DEEPER, Near, Surface, find_contacts, mark_pairs, spare_room
from bipedsim.objects.parts import (
    TOUCHING,
    begin_part,
    collect_pairs,
    mark_touching,
    select_impacts,
    speed,
    time_to_contact,
)
from bipedsim.objects.pressing import press
from bipedsim.objects.sides import Sides
from bipedsim.objects.solve import PairRows, PairSolve, solve_impact, solve_part
from bipedsim.touch import Contacts as Touches, ObjectContacts

TOLERANCE, ITERATIONS = 1e-8, 5000
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
OVERLAP = 1e-6
"""Initial overlap of bodies [m] that is accepted, because postures are rounded."""
LEFT_OVER = 1e-12
"""Remaining fraction of a step that counts as rounding."""


@entry
def _detect(boxed: Any, s: float) -> int:
    a = boxed.arrays
    find_contacts(a, s)
    return a.asked[0]


@entry
def _restore_points(boxed: Any, memory: Any) -> None:
    restore_points(boxed.arrays.contacts, memory.arrays)


@entry
def _begin(boxed: Any, s: float, slow: float, last: bool) -> int:
    a = boxed.arrays
    return begin_part(a.bodies, a.contacts, s, slow, last)


@entry
def _collect_pairs(boxed: Any, taken: Integers, chosen: Integers) -> int:
    return collect_pairs(boxed.arrays.contacts, taken, chosen)


@entry
def _solve_part(boxed: Any, s: float) -> None:
    solve_part(boxed.arrays, s)


@entry
def _end_time(boxed: Any, s: float) -> float:
    """Fill the end of a sub-step of ``s`` seconds, or of the next collision if that is earlier; return its time [s]."""
    b = boxed.arrays.bodies
    finish(b, 1.0, s)
    until = time_to_contact(b, boxed.arrays.contacts, s)
    if until < s:
        _finish_early(b, s, until)
    return until


@kernel
def _finish_early(b: Bodies, s: float, until: float) -> None:
    """Fill the end state of a sub-step of ``s`` seconds that ends early, after ``until`` seconds."""
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
def _end(boxed: Any, memory: Any, s: float, until: float, worst: Array) -> bool:
    """Move the bodies to the end of a sub-step of ``s`` seconds that ends after ``until`` seconds.

    Returns:
        Whether they were moved; they are not if one becomes too fast. ``worst`` (2,) is its number and speed [m/s].
    """
    a = boxed.arrays
    b = a.bodies
    worst[0], worst[1] = fastest(b)
    if not worst[1] < FASTEST:
        return False
    accumulate_impulses(b, until / s)
    move(b, until)
    store_points(a.contacts, memory.arrays)
    return True


@entry
def _select_impacts(boxed: Any, slow: float, slow_kept: float, chosen: Integers) -> int:
    a = boxed.arrays
    mark_touching(a.bodies, a.contacts, slow_kept)
    return select_impacts(a.bodies, a.contacts, slow, chosen)


@entry
def _impact(boxed: Any, slow: float) -> None:
    """Make an impact of the chosen pairs; if restitution and friction would add energy, make it plastic."""
    a = boxed.arrays
    b = a.bodies
    before = kinetic_energy(b)
    b.impulse[:, :] = 0.0
    solve_impact(a, slow)
    apply_impulses(b)
    if slow < np.inf and kinetic_energy(b) > before * (1.0 + 1e-12):
        for i in range(b.mass.shape[0]):
            for x in range(6):
                b.impulse[i, x] = -b.impulse[i, x]
        apply_impulses(b)
        b.impulse[:, :] = 0.0
        solve_impact(a, np.inf)
        apply_impulses(b)
    accumulate_impulses(b, 1.0)


@entry
def _place(boxed: Any) -> None:
    place(boxed.arrays.bodies)


@entry
def _look_at_links(boxed: Any, s: float) -> None:
    """Predict all bodies in ``s`` seconds without contact, and activate the points that may touch until then."""
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
    """Return the fraction of ``s`` seconds after which the first link and body collide and rebound; 0 if none do."""
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
    """Move all bodies ahead by ``s`` seconds with their present velocities."""
    b = boxed.arrays.bodies
    for i in range(b.mass.shape[0]):
        for x in range(3):
            b.position[i, x] += s * b.v[i, x]
        exp3(b.w[i], s, b.A)
        product(b.A, b.R[i], b.B)
        b.R[i] = b.B


@entry
def _put_back(boxed: Any, s: float) -> None:
    """Undo :func:`_put_ahead`, and convert the gaps to those at the original positions."""
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
    worst: Array,
) -> bool:
    """Move all bodies to the end of a step of ``s`` seconds that ends with the velocities ``after`` (N, 6).

    Returns:
        Whether they were moved; they are not if one becomes too fast. ``worst`` (2,) is its number and speed [m/s].
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
    worst[0], worst[1] = fastest(b)
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
    accumulate_impulses(b, 1.0)
    move(b, s)
    store_points(c, memory.arrays)
    return True


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


@entry
def _save_state(boxed: Any, memory: Any, kept: Any) -> None:
    """Save the state at the beginning of a step."""
    b = boxed.arrays.bodies
    copy_memory(memory.arrays, kept.arrays.memory)
    _copy_state(b, kept.arrays, b.mass.shape[0])
    b.contact[:, :] = 0.0


@entry
def _restore_state(boxed: Any, memory: Any, kept: Any) -> None:
    """Restore the state at the beginning of a step."""
    b = boxed.arrays.bodies
    copy_memory(kept.arrays.memory, memory.arrays)
    _copy_state(kept.arrays, b, b.mass.shape[0])
    place(b)


def _time_of_cut(spare_at: Callable[[float], float], until: float, spare: float) -> float:
    """Return the time [s] at which shapes are ``CUT`` less deep than ``DEEPER``, by false position (Illinois).

    Args:
        spare_at: Remaining room [m] at a time [s].
        until: End of the sub-step [s].
        spare: Room at ``until``, which is negative.
    """
    aim = DEEPER - CUT
    early, late, above, below, side, shortest = 0.0, until, CUT, spare - aim, 0, SHORTEST * until
    for _ in range(MOST_CUTS):
        until = max((early * below - late * above) / (below - above), shortest)
        over = spare_at(until) - aim
        if abs(over) <= 0.5 * CUT or (until == shortest and over < 0.0):
            break
        if over < 0.0:
            late, below, above, side = until, over, above * (0.5 if side < 0 else 1.0), -1
        else:
            early, above, below, side = until, over, below * (0.5 if side > 0 else 1.0), 1
    return until


class World:
    """Simulation of free bodies on a ground.

    Args:
        free: The bodies.
        ground: The ground.
        physics_dt: Step h [s].
        gravity: (3,) [m/s^2].
        links: Bodies of a robot, which :meth:`see` places.
        budget: (1,) budget of a step that includes other problems; its owner sets it at the beginning of the step (see
            :mod:`bipedsim.numerics.budget`). If None, each step has its own.

    Attributes:
        names: Names of the bodies.
        links: Bodies of the robot.
        bodies: State of the bodies.
        sides: Argument of :func:`give_contacts`, available after :meth:`meet`.
        given: (1,) bound of the energy that the correction of overlaps added in the last step [J].
        ahead: (1,) time after the beginning of the step at which contacts were detected [s].
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
        bodies: list[FreeBody | Link] = [*free, *links]
        shapes = [(i, shape) for i, body in enumerate(bodies) for shape in body.shapes]
        self.bodies = bodies_of(free, len(links), gravity)
        self._near = Near.of(self.bodies, shapes, Surface.of(free, links), ground.arrays())
        self._slow = SLOW * physics_dt * float(np.linalg.norm(gravity))
        self._hulls = Hulls([shape for _, shape in shapes])
        self._count: Integers = np.zeros(1, dtype=np.int64)
        self._worst: Array = np.zeros(2)
        self._failed: Integers = np.zeros(1, dtype=np.int64)
        self.given: Array = np.zeros(1)
        self.ahead: Array = np.zeros(1)
        self._early = 0
        self._meeting: tuple[Touches, ObjectContacts] | None = None
        self._memory = zeros_of(Memory, {"M": POINTS})
        self._make_room(PAIRS, POINTS)
        self.reset()

    def _make_room(self, pairs: int, points: int) -> None:
        """Allocate arrays for more pairs and points, and keep the points of the last sub-step."""
        count, memory = len(self.free), self._memory
        self._near = near = self._near._replace(contacts=zeros_of(PairContacts, {"P": pairs, "M": points}))
        self._memory = zeros_of(Memory, {"M": points})
        copy_memory.py_func(memory, self._memory)
        self._boxed, self._kept = box(near), box(self._memory)
        self._before = box(zeros_of(SavedState, {"N": count}, memory=zeros_of(Memory, {"M": points})))
        self._chosen: Integers = np.zeros(pairs, dtype=np.int64)
        self._taken: Integers = np.zeros(pairs, dtype=np.int64)
        self._solves: dict[tuple[int, int], Box] = {}
        self._rows = zeros_of(PairRows, {"P": pairs, "M": points}, chosen=self._chosen, number=self._count)
        self.sides: Box | None = None
        if self._meeting is not None:
            self.meet(*self._meeting)

    @property
    def contacts(self) -> PairContacts:
        """Contacts of the last sub-step of the last step."""
        return self._near.contacts

    @property
    def unresolved(self) -> int:
        """Number of problems and rotations without a solution; the best approximation was used."""
        return int(self._failed[0] + self.bodies.rough[0])

    @property
    def operations(self) -> int:
        """Operations that the last step used of its budget ``STEP_BUDGET``, if the step was solved here."""
        return STEP_BUDGET - int(self._budget[0])

    def reset(self) -> None:
        """Restore the initial state."""
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
        """Make a complete step or none; return the reason if none was made, otherwise an empty string."""
        left = h = self._h
        _save_state(self._boxed, self._kept, self._before)
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
            duration = self._part(float(self._near.span[0]), last)
            if duration < 0.0:
                _restore_state(self._boxed, self._kept, self._before)
                self.bodies.rough[0], self._failed[0] = counted
                return self._refusal()
            left -= duration
            if left <= LEFT_OVER * h:
                break
        return ""

    def _refusal(self) -> str:
        """Return the reason why no step was made."""
        which, speed = self._worst.tolist()
        name = self.names[int(which)]
        if not np.isfinite(speed):
            return f"the velocity of object {name!r} is not finite"
        return f"a point of object {name!r} reached {speed:.3g} m/s, more than {FASTEST:g}"

    def warm_up(self) -> None:
        """Load or compile the kernels of a contact; no body moves."""
        boxed, kept, h, slow = self._boxed, self._kept, self._h, self._slow
        solve = self._solve_of(1)
        calls: list[tuple[Any, ...]] = [
            (_detect, boxed, h),
            (_restore_points, boxed, kept),
            (_select_impacts, boxed, slow, slow, self._chosen),
            (_impact, solve, slow),
            (_begin, boxed, h, slow, False),
            (_collect_pairs, boxed, self._taken, self._chosen),
            (_solve_part, solve, h),
            (_end_time, boxed, h),
            (_spare, boxed, h),
            (_spare_early, boxed, h, h),
            (_end, boxed, kept, h, h, self._worst),
            (_save_state, boxed, kept, self._before),
            (_restore_state, boxed, kept, self._before),
        ]
        if self.links:
            rows = np.zeros((1, 3))
            calls += [
                (_look_at_links, boxed, h),
                (_first_hit, boxed, slow, h),
                (_put_ahead, boxed, h),
                (_put_back, boxed, h),
                (_arrive, boxed, kept, np.zeros((1, 6)), rows, rows, np.zeros(1), h, self._worst),
            ]
        for function, *arguments in calls:
            ready(function, *arguments)
        self._hulls.warm_up(boxed)

    def see(self, link: int, position: Array, R: Array, v: Array, w: Array) -> None:
        """Set origin (3,) [m] and attitude (3, 3) of the joint of a link in the world, and its velocities (3,)."""
        b, i = self.bodies, len(self.free) + link
        b.position[i], b.R[i], b.v[i], b.w[i] = position, R, v, w

    def first_hit(self) -> float:
        """Return the time in the step [s] at which a link first hits a body that rebounds; 0 if none does.

        Call it after :meth:`meets`.
        """
        return float(_first_hit(self._boxed, self._slow, self._h)) * self._h

    def meets(self, ahead: float = 0.0) -> bool:
        """Return whether a body may touch a link in the next step, and activate the contacts that may be loaded.

        Args:
            ahead: Time after the beginning of the step [s] at which contacts are detected. The links must be placed at
                that time, and the bodies are predicted to it.
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

    def meet(self, contacts: Touches, objects: ObjectContacts) -> None:
        """Connect these bodies to the contacts of a robot and its ``objects`` for all further steps."""
        self._meeting = contacts, objects
        joints = np.array([link.joint for link in self.links], dtype=np.int64)
        fields = {"near": self._near, "contacts": contacts, "objects": objects, "joints": joints, "ahead": self.ahead}
        self.sides = box(zeros_of(Sides, {"M": self.contacts.pair.shape[0]}, **fields))

    def arrive(self, after: Array, impulses: Array, velocities: Array, late: Array) -> str:
        """Advance one step with contact impulses that were computed elsewhere, completely or not at all.

        Args:
            after: (N, 6) velocities of the centres of mass and angular velocities at the end, in the world.
            impulses, velocities: (M, 3) of the active contacts, in the axes of their pairs [N.s], [m/s].
            late: (M,) fraction of the step that remains when each of them acts.

        Returns:
            Reason if no step was made, otherwise an empty string, as :meth:`step`.
        """
        solved = after, impulses, velocities, late
        return "" if _arrive(self._boxed, self._kept, *solved, self._h, self._worst) else self._refusal()

    def press(self, plates: Box) -> None:
        """Add the ground reaction of the last step to the surfaces of force plates."""
        press(self._boxed, plates, self._h)

    def _find(self, left: float) -> None:
        """Detect contacts for the next ``left`` seconds, and increase the capacity as needed."""
        self._look(left)
        while self.contacts.lost[0]:
            pairs, points = len(self.contacts.first), len(self.contacts.pair)
            self._make_room(2 * pairs, 2 * points)
            self._look(left)
        if self.contacts.points[0]:
            _restore_points(self._boxed, self._kept)

    def _look(self, left: float) -> None:
        if _detect(self._boxed, left):
            self._hulls.add(self._near, self._boxed)

    def _impacts(self) -> bool:
        """Solve the impacts of all contacts that approach; return whether there were any."""
        chosen, slow = self._chosen, self._slow
        if not self.contacts.points[0]:
            return False
        for number in range(MOST_IMPACTS + 1):
            exhausted = self._budget[0] <= 0
            plastic = number == MOST_IMPACTS or exhausted
            count = _select_impacts(self._boxed, np.inf if plastic else slow, slow, chosen)
            if count == 0:
                return number > 0
            self._failed[0] += exhausted
            self._collide(chosen[: abs(count)].copy(), slow if count > 0 else np.inf)
            if count < 0:
                return True
        return True

    def _collide(self, pairs: Integers, slow: float) -> None:
        """Solve an impact of the ``pairs`` (n,); coupled pairs are solved together."""
        taken, chosen = self._taken, self._chosen
        self._budget[0] -= LOOKING
        taken[:] = 1
        taken[pairs] = 0
        while count := _collect_pairs(self._boxed, taken, chosen):
            self._count[0] = count
            _impact(self._solve_of(count), slow)

    def _part(self, left: float, last: bool) -> float:
        """Make a sub-step of at most ``left`` seconds, up to the next event; return its duration, or -1 if refused."""
        if _begin(self._boxed, left, self._slow, last):
            taken, chosen = self._taken, self._chosen
            taken[:] = 0
            while count := _collect_pairs(self._boxed, taken, chosen):
                self._count[0] = count
                _solve_part(self._solve_of(count), left)
        until = float(_end_time(self._boxed, left))
        if not last and self._early < MOST_EARLY:
            until = self._cut(left, until)
        return until if _end(self._boxed, self._kept, left, until, self._worst) else -1.0

    def _cut(self, left: float, until: float) -> float:
        """Return ``until`` [s], or the earlier time at which shapes are deeper than their contacts allow.

        Contacts are detected at the beginning of the sub-step. An early end is needed for contacts at other points.
        """
        near, boxed = self._near, self._boxed
        spare = self._hulls.spare(near, boxed, float(_spare(boxed, until)), True)
        if spare >= 0.0:
            return until
        self._early += 1
        return _time_of_cut(
            lambda t: self._hulls.spare(near, boxed, float(_spare_early(boxed, left, t)), False), until, spare
        )

    def _solve_of(self, pairs: int) -> Box:
        """Return the arrays for the solution of ``pairs`` pairs; they are allocated on first use."""
        points = 1 << max(int(self.contacts.points[0]) - 1, 3).bit_length()
        key = pairs, points
        if key not in self._solves:
            cone = ConeProblem.of_feet(pairs, points, TOLERANCE, ITERATIONS, budget=self._budget)
            G = np.zeros((6 * pairs, 6 * pairs))
            self._solves[key] = box(
                PairSolve(self.bodies, self.contacts, cone, self._rows, self._h, G, self._failed, self.given)
            )
        return self._solves[key]

    def poses(self) -> Array:
        """Return the poses (N, 7) of the bodies' frames in the world: position [m], quaternion x y z w."""
        return frame_poses(self.bodies)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return a copy of the state on which the next step depends."""
        return {name: array.copy() for name, array in self._saved_arrays().items()}

    def set_state(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore the output of :meth:`state`.

        Raises:
            KeyError: An array is missing; nothing has changed.
            ValueError: An array has another size; nothing has changed.
        """
        own, kept = self._matching_arrays(state)
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
        """Raise ConfigError if :meth:`set_state` would refuse ``state``; nothing changes."""
        try:
            self._matching_arrays(state)
        except (KeyError, ValueError) as error:
            raise ConfigError(f"the state is not one of these objects: {error}") from error

    def _matching_arrays(
        self, state: dict[str, NDArray[Any]]
    ) -> tuple[list[tuple[NDArray[Any], NDArray[Any]]], dict[str, NDArray[Any]]]:
        """Return the state arrays, each with its new values, and the new values of the memory by name."""
        points = len(state["who"])
        own = [(array, np.broadcast_to(state[name], array.shape)) for name, array in self._state_arrays().items()]
        kept = {
            name: np.broadcast_to(state[name], (points, *array.shape[1:]))
            for name, array in self._memory._asdict().items()
            if name != "points"
        }
        return own, kept

    def _saved_arrays(self) -> dict[str, NDArray[Any]]:
        points = int(self._memory.points[0])
        kept = {name: array[:points] for name, array in self._memory._asdict().items() if name != "points"}
        return self._state_arrays() | kept

    def _state_arrays(self) -> dict[str, NDArray[Any]]:
        # Links are not part of the state, because they are placed before each use.
        b, free = self.bodies, slice(len(self.free))
        own = {name: getattr(b, name)[free] for name in ("position", "quaternion", "v", "w", "contact")}
        return own | {"failed": self._failed, "rough": b.rough}

    def twists(self) -> Array:
        """Return the velocities (N, 6) of the bodies' frames, linear and angular, in their own axes."""
        return frame_twists(self.bodies)

    def push(self, i: int, wrench: Array) -> None:
        """Add a mean wrench (6,) over the next step, in world axes at the origin of the frame of body ``i``."""
        b = self.bodies
        b.force[i] += wrench[:3]
        b.torque[i] += wrench[3:] - np.cross(b.R[i] @ b.com[i], wrench[:3])

    def overlaps(self, links: bool = False) -> list[ConfigError]:
        """Return an error for each overlap deeper than rounding; with ``links``, also those with links."""
        self._near.links[0] = links
        self._find(0.0)
        self._near.links[0] = 0
        c = self.contacts
        overlaps = []
        for p in range(int(c.pairs[0])):
            depth = -float(c.gap[: c.points[0]][c.pair[: c.points[0]] == p].min())
            if depth > OVERLAP:
                name, other_name = self._display_name(int(c.first[p])), self._display_name(int(c.second[p]))
                overlaps.append(ConfigError(f"begins {1e3 * depth:.3g} mm deep in {other_name}", name))
        return overlaps

    def _display_name(self, body: int) -> str:
        if body == WORLD:
            return "the ground"
        free = len(self.free)
        return f"object {self.names[body]!r}" if body < free else f"the robot's {self.links[body - free].name!r}"
