"""One projection of the dynamics per step, the contact model on it, and the way back to joint space."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from bipedsim.dynamics import tree as kernels
from bipedsim.dynamics.bodies import Bodies, anything_near, touches_ground
from bipedsim.dynamics.equations import Equations, fill_equations
from bipedsim.dynamics.flight import Airborne, Flight, look_ahead
from bipedsim.dynamics.joints import place_joints
from bipedsim.dynamics.landing import (
    CLOSED,
    IMPACT,
    REST,
    RESTING,
    SLOW,
    UNSPLIT,
    WHOLE,
    WITHIN,
    Landing,
    arrives,
    lift,
    touch,
)
from bipedsim.dynamics.loops import Closing, Loops, hold_loops, read_loops
from bipedsim.dynamics.pairs import Pairs, any_pair_near, any_pair_touches
from bipedsim.dynamics.projection import Projection, edge_lines
from bipedsim.dynamics.rows import Rows
from bipedsim.dynamics.stops import (
    STANDS,
    Stops,
    fill_rows,
    first_arrival,
    gather,
    judge,
    keep_within,
    look_around,
    passes_others,
    stopped_joints,
)
from bipedsim.dynamics.support import Foothold
from bipedsim.dynamics.tree import Tree
from bipedsim.errors import ConfigError
from bipedsim.ground import Ground
from bipedsim.model import Robot, Shape, StopParams
from bipedsim.numerics import (
    Array,
    Integers,
    Kept,
    announced,
    box,
    entry,
    keep,
    kernel,
    put_back,
    ready,
    zeros_of,
)


class Contact(Protocol):
    """What a step asks of a contact model.

    A model whose solve is compiled also has an attribute ``compiled``, a :class:`CompiledContact`: it is then one call
    together with the dynamics, 1.3 times as fast.

    Attributes:
        late: None, or (K, 6) for forces that act within the step: their impulse weighted by the share of the step that
            was left when it acted.
    """

    @property
    def late(self) -> Array | None: ...

    def solve(self, projection: Projection) -> Any:
        """Return what has an attribute ``impulse``, (K, 6) on the feet at the sole origins in ground axes [N.s]."""
        ...

    def state(self) -> dict[str, Any]:
        """Return a copy of everything that the next step depends on; asked for where a joint is near its stop."""
        ...

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned."""
        ...


class Coupling(Protocol):
    """What a step asks of contacts beside the feet's; :class:`bipedsim.touch.Touching`."""

    def find(self, q: Array, v: Array) -> None:
        """Find what touches in a step from (q, v), stops of joints included."""
        ...

    def add_stops(self, q: Array) -> None:
        """Add the stops that the solved step has found to be passed, before it is solved again."""
        ...

    def solve(self, ask: Callable[[], Array]) -> Array:
        """Solve what touches together with the contact model, which ``ask()`` calls: (K, 6) on the feet [N.s].

        Impulses on the robot have to be among what acts on it, ``tree.z``, in the end.
        """
        ...


class CompiledContact(NamedTuple):
    """A contact model on the compiled side.

    Attributes:
        solve: Kernel ``solve(projection, arrays)``, a function of a module; it fills ``impulse`` and ``late``.
        arrays: What it reads and writes beside the projection, a named tuple.
        impulse, late: (K, 6) as in :class:`Contact`; ``late`` is used only where the model has one.
        memory: All that the next step depends on, and the last result: kept where a joint is near its stop.
    """

    solve: Any
    arrays: Any
    impulse: Array
    late: Array
    memory: Kept


class _Projected(NamedTuple):
    tree: Tree
    foothold: Foothold
    projection: Projection
    landing: Landing
    flight: Flight
    stops: Stops
    loops: Loops
    bodies: Bodies
    pairs: Pairs


class _Step(NamedTuple):
    tree: Tree
    foothold: Foothold
    projection: Projection
    landing: Landing
    flight: Flight
    stops: Stops
    loops: Loops
    bodies: Bodies
    pairs: Pairs
    contact: CompiledContact


REFUSED, LANDS, NEAR, OTHERS, LATE, TOUCHES, CLOSE, FLIES = -1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0, -9.0
"""What a step returns that was not taken: torques are not finite; a vertex lands in it, or a joint arrives at its stop;
a joint is near its stop, before a contact model that is not compiled was asked; other stops carry than were tried, and
the same, where no joint was near and nothing of the contact's memory was kept; a body other than a sole would get into
the ground; one is close to it, before the contact model was asked; and no foot carries: :meth:`Dynamics.fly` takes the
step."""
FIRST, MORE, FIRM, ASK, ASK_AGAIN, SOLVED, GIVEN = range(7)
"""Tries of a step: the first, further ones with other stops, those in which what carries goes on to; to ask the contact
model alone, for the first time or once more; where the stops were solved with all that touches; and where impulses are
given from outside."""
TRIES, MANY = 20, 5
"""Tries before all sets of so many of those stops are tried that carried in one of them, and before they are firm."""


@kernel
def _begin(a: Any, q: Array, v: Array, tau_joint: Array, part: int, left: float) -> float:
    """Fill the projection of ``a`` for a part of the step; ``REFUSED`` for bad torques, ``NEAR``, ``CLOSE``, or 0."""
    if not kernels.project(a.tree, a.foothold, a.projection, v, tau_joint, 0.0 if part == IMPACT else 1.0):
        return REFUSED
    a.projection.parted[0] = part in (IMPACT, REST)
    if a.loops.size.shape[0] > 0:
        hold_loops(a.loops, a.tree, a.projection, v, part, a.flight.aloft[0])
    if part == WITHIN:
        kernels.fill_bias(a.tree, a.foothold, a.projection)
    elif part == WHOLE:
        lift(a.projection, a.landing, a.tree.h)
    elif part == IMPACT:
        touch(a.projection, a.landing)
    else:
        a.projection.lifted[:, :] = 0.0
    close = anything_near(a.bodies, a.tree, a.foothold.ground)
    if a.pairs.near.shape[0] > 0:
        close = any_pair_near(a.pairs, a.tree) or close
        a.bodies.near[0] = close
    if look_around(a.stops, q, v, 0.0 if part == IMPACT else left * a.tree.h, part):
        kernels.keep_whole(a.tree, a.projection)
        return NEAR
    return CLOSE if close else 0.0


@kernel
def _hold(a: Any, q: Array, v: Array, part: int, attempt: int) -> None:
    """Eliminate the stops that are thought to carry from what the contact sees."""
    a.stops.plastic[0] = a.stops.plastic[0] or attempt == FIRM
    first = a.loops.error.shape[0]
    fill_rows(a.stops, a.tree, q, v, part, first)
    if attempt == FIRST and a.tree.rows.used[0] == first:
        # None carries: the contact sees what was projected.
        return
    kernels.eliminate(a.tree, a.projection, v, first)
    if part == WHOLE:
        lift(a.projection, a.landing, a.tree.h)


@kernel
def _end(a: Any, q: Array, v: Array, impulse: Array, late: Array, part: int, attempt: int) -> float:
    """Bring the impulses of a part of the step back to joint space."""
    aloft = part != UNSPLIT and attempt < SOLVED
    for k in range(impulse.shape[0]):
        aloft = aloft and impulse[k, 2] == 0.0
    a.flight.aloft[0] = aloft
    if part == WITHIN:
        halfway = kernels.find_way(a.tree, late, v)
        if not halfway < kernels.SPEED_LIMIT:
            return halfway
    fastest = kernels.change(a.tree, impulse, False, v)
    if not fastest < kernels.SPEED_LIMIT:
        return fastest
    first = a.loops.error.shape[0]
    if first > 0:
        read_loops(a.loops, a.tree)
    if attempt == SOLVED:
        if part != WITHIN and passes_others(a.stops, a.tree, q, v):
            return OTHERS
    elif judge(a.stops, a.tree, a.projection, impulse, q, v, part, aloft, attempt == FIRM, first) != STANDS:
        if a.stops.near[0]:
            return OTHERS
        a.stops.near[0] = True
        kernels.keep_whole(a.tree, a.projection)
        return LATE
    if part == IMPACT:
        return fastest
    if part == WHOLE and _events(a, impulse, aloft):
        if aloft:
            look_ahead(a.flight, a.tree, v)
        return LANDS
    if a.bodies.near[0]:
        span = a.stops.span[0]
        if touches_ground(a.bodies, a.tree, a.foothold.ground, v, span):
            return TOUCHES
        if any_pair_touches(a.pairs, a.tree, a.bodies.leaf, v, span):
            return TOUCHES
    if part == REST:
        return fastest
    if aloft:
        look_ahead(a.flight, a.tree, v)
        return FLIES
    if part == WITHIN:
        kernels.take_within(a.tree, v)
    else:
        kernels.take(a.tree, v)
    if a.stops.near[0] or attempt == SOLVED:
        # What is solved to a tolerance, or to rounding of large impulses, may end beyond a limit by that.
        keep_within(a.stops, a.tree, q)
    return fastest


@kernel
def _events(a: Any, impulse: Array, aloft: bool) -> bool:
    """Whether a vertex lands or a joint arrives at its stop within the step; if so, fill when the first one does."""
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
    """Whether the first solve of a step leaves vertices out."""
    return part == WHOLE and a.landing.lifted[0] > 0


@entry
def _project(step: Any, q: Array, v: Array, tau_joint: Array, part: int, left: float) -> float:
    return _begin(step.arrays, q, v, tau_joint, part, left)


@entry
def _hold_again(step: Any, q: Array, v: Array, part: int, attempt: int) -> None:
    _hold(step.arrays, q, v, part, attempt)


@entry
def _advance(step: Any, q: Array, v: Array, impulse: Array, late: Array, part: int, attempt: int) -> float:
    return _end(step.arrays, q, v, impulse, late, part, attempt)


# A step is compiled for the type of its box, which holds the kernel of the contact model.
@entry
def _step(step: Any, q: Array, v: Array, tau_joint: Array, part: int, left: float, attempt: int) -> float:
    """Take a step from (M, nle, J, state) to v+, wrenches and modes in one compiled call."""
    a = step.arrays
    c = a.contact
    if attempt >= ASK:
        if attempt == ASK:
            keep(c.memory)
        else:
            put_back(c.memory)
        c.solve(a.projection, c.arrays)
        return 0.0
    if attempt == FIRST:
        begun = _begin(a, q, v, tau_joint, part, left)
        if begun == REFUSED:
            return begun
        if begun == NEAR or _may_land(a, part):
            keep(c.memory)
        if begun == NEAR:
            _hold(a, q, v, part, FIRST)
        elif begun == CLOSE:
            keep(c.memory)
    else:
        put_back(c.memory)
        _hold(a, q, v, part, attempt)
    c.solve(a.projection, c.arrays)
    fastest = _end(a, q, v, c.impulse, c.late, part, attempt)
    if fastest == LATE and not _may_land(a, part):
        keep(c.memory)
    elif fastest == TOUCHES:
        put_back(c.memory)
    return fastest


@entry
def _put_back(step: Any) -> None:
    put_back(step.arrays.contact.memory)


TURN_ON = StopParams(joint_stops=False)
"""Joints turn on beyond their limits."""


class Dynamics:
    """Projects the dynamics of one robot on its feet, and brings contact impulses back to joint space.

    Args:
        robot: The robot; its model carries the reflected inertia.
        ground: What the feet meet.
        physics_dt: Step h [s].
        stops: What happens at the position limits of joints; by default they turn on beyond them.
        shapes: Of the robot's bodies, which a step is not taken through the ground with; see :meth:`step`.

    Attributes:
        equations: Of motion, where the step begins.
        tree, foothold: The joint side of a step, and where the feet stand; refilled by every step.
        projection: What the contact model sees; refilled by every step.
        push: (nv,) generalised force besides the joint torques; written by whoever pushes.
        acceleration: (nv,) mean acceleration over the last step, (v+ - v) / h.
        change: (nv,) by which the last part of a step changes v.
        landing: When a vertex lands in the last step, or a joint arrives at its stop.
        loops: What closes chains, and what it did in the last part of a step.
        stops: The stops of the joints, and what they did in the last part of a step. stopped_joints: These joints.
        bodies, pairs: Which of the robot's bodies are near the ground, and which near each other.
        repeated: Whether the contact model was asked for the last part without a stop that carried.
        unresolved: Whether no set of stops was found for it of which all push.
        misplaced: Whether the last :meth:`move` or :meth:`closed` left a loop open, or found no attitude in flight.
        displacement: (nv,) way of the last step: h v+, or the course of the velocity for forces that act within it.
        com: (3,) centre of mass in the world at the beginning of the last step [m].
        sole_origins: (K, 3) the same of the soles [m].
        ground_axes: (K, 3, 3) axes (t1, t2, n) of the ground under each foot in the last step, as columns.

    Raises:
        ConfigError: The robot has no feet, or one that nothing moves.
    """

    def __init__(
        self,
        robot: Robot,
        ground: Ground,
        physics_dt: float,
        stops: StopParams = TURN_ON,
        shapes: Sequence[Shape] = (),
    ) -> None:
        self._model = robot.model
        soles = robot.soles
        if not soles:
            raise ConfigError(f"{robot.source}: the robot has no feet; give at least one under `feet`")
        for sole in soles:
            if sole.joint_id == 0:
                raise ConfigError(
                    f"{robot.source}: foot {sole.name!r} is on frame {sole.frame!r}, which is fixed to the world; "
                    "give a frame that a joint moves, or `root: free_flyer`"
                )
        self.equations = Equations.of_model(self._model)
        self.foothold = Foothold.of_soles(soles, ground.arrays())
        self.projection = Projection.of_soles(soles, len(self.foothold.spare))
        joints = stopped_joints(robot) if stops.joint_stops else []
        self.loops = Loops.of_robot(robot.loops, robot.model)
        self.tree = _tree(robot, self.equations, physics_dt, len(joints) + len(self.loops.error))
        self.stopped_joints = tuple(robot.model.names[i] for i in joints)
        self.stops = Stops.of_joints(robot, joints, stops.stop_restitution, physics_dt)
        self.bodies = Bodies.of_robot(robot, shapes, self.foothold.ground, physics_dt)
        self.pairs = Pairs.of_robot(robot, shapes, self.bodies.reach)
        self.repeated = self.unresolved = self.misplaced = False
        self.push = self.tree.push
        self.acceleration = self.tree.acceleration
        self.displacement = self.tree.step
        self.change = self.tree.x
        slow = SLOW * physics_dt * float(np.linalg.norm(self.tree.gravity))
        feet, widest = self.projection.lifted.shape
        self.landing = zeros_of(Landing, {"K": feet, "N": widest}, slow=slow)
        self.com = self.equations.com
        self.sole_origins = self.foothold.sole_origin
        self.ground_axes = self.foothold.axes
        self._airborne = Airborne(robot, self.tree, self.stops, self.loops, self.com)
        self.flight = self._airborne.flight
        self._closing = Closing(robot.model, self.loops, self.tree) if robot.loops else None
        self._filled, self._joints = box(self.equations), box(self.equations.joints)
        nothing = np.zeros(self._model.nq), np.zeros(self._model.nv)
        with announced("rigid-body dynamics", 5):
            self._fill_equations = ready(fill_equations, self._filled, *nothing)
        # For steps that are not fused.
        self._projected = box(self._sides)
        self._contact: Contact | None = None
        self._step: Any = None
        self._run: Callable[..., float] = _step
        self._q: Array = np.zeros(self._model.nq)
        self._memory: Any = None
        self._before: Any = None
        # Read in every step, which a memoryview does in half the time.
        self._aloft = self.flight.aloft.data

    @property
    def _sides(self) -> _Projected:
        more = self.loops, self.bodies, self.pairs
        return _Projected(self.tree, self.foothold, self.projection, self.landing, self.flight, self.stops, *more)

    def project(self, q: Array, v: Array, tau_joint: Array) -> Projection:
        """Return the projection of the step from (q, v) under the torques ``tau_joint`` (nu,); reused by the next.

        Raises:
            ValueError: A size is wrong; the kernels do not look.
        """
        sizes = len(q), len(v), len(tau_joint)
        needed = self._model.nq, self._model.nv, len(self.tree.actuated)
        if sizes != needed:
            raise ValueError(f"q, v and tau_joint have {sizes} entries instead of {needed}")
        self._fill(q, v)
        _project(self._projected, q, v, tau_joint, WITHIN, 1.0)
        self._q = q
        return self.projection

    def advance(self, v: Array, impulse: Array, late: Array | None = None) -> float:
        """Move ``v`` (nv,) in place to v+ under the contact ``impulse`` (K, 6) [N.s], and return the largest magnitude.

        Where an entry would not be finite (NaN is returned) or reaches ``SPEED_LIMIT``, ``v`` stays as it is.

        Args:
            v: (nv,).
            impulse: (K, 6) [N.s, N.m.s].
            late: As :class:`Contact` has it; the displacement then follows the course of the
                velocity within the step.
        """
        part, late = (UNSPLIT, impulse) if late is None else (WITHIN, late)
        return float(_advance(self._projected, self._q, v, impulse, late, part, GIVEN))

    def step(
        self, q: Array, v: Array, tau_joint: Array, contact: Contact, split: bool = True, flies: bool = True
    ) -> float:
        """Project, let the contact model act, and :meth:`advance`; in one compiled call where the model is compiled.

        Args:
            q, v, tau_joint, contact: (nq,), (nv,), (nu,) [N.m], and the model.
            split: Whether to look for what arrives within the step.
            flies: Whether to keep the momentum in flight.

        Returns:
            As :meth:`advance`, and ``REFUSED`` for torques that are not finite, ``LANDS`` or ``FLIES``; ``v`` then
            stays as it is, too. What arrives, ``landing`` says, and ``change`` how the step changes v but for that.
        """
        self._fill_equations(self._filled, q, v)
        if contact is not self._contact:
            self._take(contact)
        part = WITHIN if contact.late is not None else WHOLE if split else CLOSED if flies else UNSPLIT
        fastest = self._part(q, v, tau_joint, contact, part)
        if not flies:
            self.flight.aloft[0] = False
        return fastest

    def fly(self, q: Array, v: Array, tau_joint: Array) -> float:
        """Take the step that :meth:`step` found to be one in flight.

        Args:
            q, v, tau_joint: As of :meth:`step`.

        Returns:
            As :meth:`advance`.
        """
        return self._airborne.fly(q, v, tau_joint)

    def move(self, q: Array, v: Array) -> Array:
        """Return the configuration at the end of the last step, which takes the way ``displacement`` from ``q`` (nq,).

        Where no foot carried, it is such that momentum is kept, and ``v`` (nv,) is changed in place to that effect.
        """
        after = self.closed(pin.integrate(self._model, q, self.displacement))
        if self._aloft[0] and not self._airborne.correct(after, v):
            self.misplaced = True
        return after

    def closed(self, q: Array) -> Array:
        """Return ``q`` (nq,), which the last part of a step leads to, with its loops closed."""
        if self._closing is None:
            self.misplaced = False
            return q
        q = self._closing.closed(q)
        self.misplaced = self._closing.failed
        return q

    def impact(self, q: Array, v: Array, tau_joint: Array, contact: Contact) -> float:
        """Let the contact model stop at once what arrives at ``q``; fill ``change``, and leave ``v``.

        Returns:
            As :meth:`step`.
        """
        self._fill(q, v)
        return self._part(q, v, tau_joint, contact, IMPACT)

    def rest(self, q: Array, v: Array, tau_joint: Array, contact: Contact, left: float) -> float:
        """Take a step from where an :meth:`impact` was, with ``left`` of the way; fill ``change``, and leave ``v``.

        Returns:
            As :meth:`step`.
        """
        self._fill(q, v)
        return self._part(q, v, tau_joint, contact, REST, left)

    def touch(self, q: Array, v: Array, tau_joint: Array, contact: Contact, coupling: Coupling) -> float:
        """Take a step as :meth:`step` does, unsplit, in which more than the feet touches; stops are solved with it.

        Args:
            q, v, tau_joint, contact: As of :meth:`step`.
            coupling: Finds what touches, and asks the contact model and solves in turn.
        """
        self._fill(q, v)
        if contact is not self._contact:
            self._take(contact)
        part = UNSPLIT if contact.late is None else WITHIN
        if _project(self._projected, q, v, tau_joint, part, 1.0) == REFUSED:
            return REFUSED
        self.bodies.near[0] = False
        self.repeated = self.unresolved = False
        coupling.find(q, v)
        compiled: CompiledContact | None = getattr(contact, "compiled", None)
        memory = contact.state() if compiled is None else {}
        asked = ASK

        def ask() -> Array:
            nonlocal asked
            if compiled is not None:
                self._run(self._step, q, v, tau_joint, part, 1.0, asked)
                asked = ASK_AGAIN
                return compiled.impulse
            contact.set_state(memory)
            impulse: Array = contact.solve(self.projection).impulse
            return impulse

        fastest = OTHERS
        while fastest == OTHERS:
            impulse = coupling.solve(ask)
            late = impulse if contact.late is None else contact.late
            fastest = float(_advance(self._projected, q, v, impulse, late, part, SOLVED))
            if fastest == OTHERS:
                coupling.add_stops(q)
        self.flight.aloft[0] = False
        return fastest

    def _part(self, q: Array, v: Array, tau_joint: Array, contact: Contact, part: int, left: float = 1.0) -> float:
        if self._step is not None:
            fastest = self._run(self._step, q, v, tau_joint, part, left, FIRST)
        else:
            fastest = self._try(q, v, tau_joint, contact, part, left, FIRST)
        # Where vertices may land, what the contact model remembers was kept before it was asked.
        self.repeated = fastest == LATE and not (part == WHOLE and self.landing.lifted[0] > 0)
        self.unresolved = False
        if fastest > OTHERS or fastest not in (OTHERS, LATE):
            return fastest
        held = self.stops.held
        tried, sides, others = set[bytes](), held.copy(), None
        while fastest in (OTHERS, LATE):
            # From the same stops the same follows: they go round in circles, as the contact answers in between.
            if others is None and (held.tobytes() in tried or len(tried) >= TRIES):
                others = _sets_of(sides)
            if others is not None and not self.unresolved:
                other = next((stops for stops in others if stops.tobytes() not in tried), None)
                self.unresolved = other is None
                if other is not None:
                    held[:] = other
            tried.add(held.tobytes())
            sides[held != 0] = held[held != 0]
            fastest = self._try(q, v, tau_joint, contact, part, left, FIRM if self.unresolved else MORE)
        return fastest

    def _try(
        self, q: Array, v: Array, tau_joint: Array, contact: Contact, part: int, left: float, attempt: int
    ) -> float:
        if self._step is not None:
            return self._run(self._step, q, v, tau_joint, part, left, attempt)
        near = attempt != FIRST
        if attempt == FIRST:
            begun = _project(self._projected, q, v, tau_joint, part, left)
            if begun == REFUSED:
                return begun
            near = begun == NEAR
            lands = part == WHOLE and self.landing.lifted[0] > 0
            self._memory = contact.state() if near or lands else None
            self._before = contact.state() if begun == CLOSE else self._memory
        elif self._memory is None:
            self._memory = contact.state()
        else:
            contact.set_state(self._memory)
        if near:
            _hold_again(self._projected, q, v, part, attempt)
        impulse, late = contact.solve(self.projection).impulse, contact.late
        fastest = _advance(self._projected, q, v, impulse, impulse if late is None else late, part, attempt)
        if fastest == TOUCHES:
            contact.set_state(self._before)
        return float(fastest)

    def take_back(self, contact: Contact) -> None:
        """Have the contact model forget the last :meth:`step`, which said ``LANDS`` where vertices were left out."""
        if self._step is not None:
            _put_back(self._step)
        else:
            contact.set_state(self._memory)

    def _take(self, contact: Contact) -> None:
        """Load the step of ``contact``, compiled if that was never done."""
        compiled: CompiledContact | None = getattr(contact, "compiled", None)
        self._contact, self._step = contact, None
        if compiled is not None:
            self._step = box(_Step(*self._sides, compiled))
            with announced(f"contact model {compiled.solve.__name__}", 10, at_first=60):
                vector = self.change
                self._run = ready(_step, self._step, vector, vector, vector, WHOLE, 1.0, FIRST)

    def compile_contact(self, contact: Contact) -> None:
        """Compile what the kernel of ``contact`` brings into a step, and not the step."""
        compiled: CompiledContact | None = getattr(contact, "compiled", None)
        if compiled is not None:
            compiled.solve.compile((box(self.projection).type.arrays, box(compiled.arrays).type.arrays))

    def warm_up(self) -> None:
        """Load or compile what steps need that :meth:`step` does not: of bodies that touch, stops, and landings."""
        vector, impulse = self.change, np.zeros((len(self.sole_origins), 6))
        self._airborne.ready()
        ready(_project, self._projected, vector, vector, vector, WITHIN, 1.0)
        ready(_advance, self._projected, vector, vector, impulse, impulse, WITHIN, FIRST)
        if self._step is not None:
            ready(_put_back, self._step)
        else:
            ready(_hold_again, self._projected, vector, vector, WITHIN, FIRST)

    def reset(self) -> None:
        """Forget what the feet stand on, whether they do, and which stops carry."""
        self.stops.held[:] = 0
        self.flight.aloft[0] = False
        feet = self.foothold
        feet.patch[:] = -1
        feet.second[:] = -1
        feet.passing[:] = False
        p = self.projection
        p.n_vertices[:] = feet.n_soles
        p.vertices[:, : feet.soles.shape[1]] = feet.soles
        p.changed[:] = 0
        for k, n in enumerate(feet.n_soles):
            p.edges[k, :n] = edge_lines(feet.soles[k, :n])

    def memory(self) -> list[NDArray[Any]]:
        """Return the arrays of :meth:`state` themselves: always the same."""
        return list(self._kept().values())

    def state(self) -> dict[str, NDArray[Any]]:
        """Return a copy of what the next step depends on besides q, v and the contact model."""
        return {name: array.copy() for name, array in self._kept().items()}

    def set_state(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore what :meth:`state` returned."""
        for name, array in self._kept().items():
            array[...] = state[name]

    def _kept(self) -> dict[str, NDArray[Any]]:
        f, p = self.foothold, self.projection
        return {
            "stops": self.stops.held,
            "aloft": self.flight.aloft,
            "patch": f.patch,
            "second": f.second,
            "passing": f.passing,
            "axes": f.axes,
            "origin": f.origin,
            "vertices": p.vertices,
            "n_vertices": p.n_vertices,
            "edges": p.edges,
            "mu_static": p.mu_static,
            "mu_dynamic": p.mu_dynamic,
        }

    def place(self, q: Array) -> None:
        """Put the bodies where they are at ``q`` (nq,): ``tree.poses``."""
        place_joints(self._joints, q)

    def _fill(self, q: Array, v: Array) -> None:
        self._fill_equations(self._filled, q, v)


def _sets_of(sides: Integers) -> Iterator[Integers]:
    """Yield all sets of the stops that are not 0 in ``sides``, of the first of them where there are many."""
    those = np.flatnonzero(sides)[:MANY]
    for chosen in itertools.product([True, False], repeat=len(those)):
        stops = sides.copy()
        stops[those] *= chosen
        yield stops


def _tree(robot: Robot, equations: Equations, physics_dt: float, n_rows: int) -> Tree:
    """Return the joint side of a step, with room for some rows."""
    model, soles = robot.model, robot.soles
    nv, feet = model.nv, len(soles)
    ancestors, depth = equations.ancestors, equations.depth
    joints = [model.joints[sole.joint_id] for sole in soles]
    leaf = np.array([joint.idx_v + joint.nv - 1 for joint in joints], dtype=np.int64)
    chains = [set(ancestors[i, : depth[i]].tolist()) for i in leaf]
    common = np.array([[len(a & b) for b in chains] for a in chains], dtype=np.int64)
    return zeros_of(
        Tree,
        {"v": nv, "D": ancestors.shape[1], "K": feet},
        M_rows=equations.M,
        nle=equations.nle,
        J_rows=equations.J,
        poses=equations.joints.poses,
        twists=equations.joints.twists,
        accelerations=equations.joints.accelerations,
        origin=equations.joints.origin,
        gravity=equations.joints.gravity,
        ancestors=ancestors,
        depth=depth,
        damping=np.ascontiguousarray(robot.joint_damping),
        actuated=np.ascontiguousarray(robot.idx_v, dtype=np.int64),
        h=physics_dt,
        foot_joint=np.array([sole.joint_id for sole in soles], dtype=np.int64),
        leaf=leaf,
        common=common,
        placement_R=np.array([sole.placement_joint_sole.rotation for sole in soles]),
        placement_p=np.array([sole.placement_joint_sole.translation for sole in soles]),
        rows=zeros_of(Rows, {"v": nv, "K": feet, "R": n_rows}),
    )
