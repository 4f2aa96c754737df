"""Steps of the simulator with contacts other than those of the feet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from bipedsim.contact import UNRESOLVED, Anchors, ConeProblem, ContactModel, PointRows, VertexContacts
from bipedsim.dynamics import SUNK, CompiledStep, Dynamics, Outcome, Part, closest
from bipedsim.ground import Ground
from bipedsim.model import Robot, Shape, lowest_point
from bipedsim.numerics import Array, box, call, ready, zeros_of
from bipedsim.touch.contacts import Contacts, ObjectContacts, clear_history
from bipedsim.touch.coupling import (
    TouchCoupling,
    begin_points,
    fill_problem,
    rebound,
    solve_beside_feet,
    solve_with_feet,
    store_beside_feet,
)
from bipedsim.touch.feet import FeetAsPoints
from bipedsim.touch.find import RobotContacts, add_passed, find_contacts
from bipedsim.touch.whole_step import WholeStep, take_step

CAPACITY, PER_OBJECT, MOST_OF_OBJECTS = 96, 8, 256
"""Maximum number of contacts in a step: without objects, additional ones per object, and limit of the latter.

With further contacts, the step counts as unresolved.
"""
ROUNDS, PATIENCE = 40, 5
"""Maximum number of rounds between feet that are not rigid and other contacts, and of rounds without halving the error.

After these, the feet become points. They become so at once if their model has no solution.
"""
FITS = 1e-7
"""Convergence criterion: change of the foot velocities in a round, relative to the speeds that contact changes."""
WAITS = 10
"""Number of steps after such a failure in which feet become points after the first round."""
TOLERANCE, ITERATIONS = 1e-7, 250
"""Residual that counts as solved, relative to the speed that contact has to remove, and maximum of the iterations."""
GAMMA = 0.2
"""Fraction of an overlap that a step removes."""
UNSPLIT, BAD_TORQUE = int(Part.UNSPLIT), int(Outcome.BAD_TORQUE)
"""Part of the step that is solved, all of it, and an outcome. Compiled functions take plain integers."""
SLOW = 0.5
"""A contact does not rebound below the speed that gravity adds in this many steps."""


class Touching:
    """All contacts of a robot except those of its soles with faces of the ground.

    Risers of a height field are in contact with soles as with other bodies.

    Args:
        robot: The robot whose bodies may be in contact.
        shapes: Shapes with which ``dynamics`` was made.
        dynamics: Dynamics of the robot.
        contact: Contact model of the feet.
        ground: The ground.
        friction, restitution: Coefficients of the bodies.
        objects: Free bodies in addition to the robot.

    Attributes:
        contacts: Possible contacts, and their impulses in the last step that was solved here.
        objects: Free bodies in addition to the robot.
        force: (nv,) generalised impulse of the contacts on the robot in the last step [N.s, N.m.s].
        gained: (1,) energy that they added, see :class:`~bipedsim.touch.coupling.TouchCoupling` [J].
        finders: Functions that add contacts. They are called once in every such step, when ``dynamics.tree`` has the
            poses of the bodies.
        wanted: Function that reports before a step whether it must be solved here; None if only the robot's bodies
            decide.
        carries: Whether any contact was loaded in the last step.
        rounds: Number of rounds in the last step between other contacts and feet that are not rigid.
        unresolved: Whether the last step has no solution within the tolerance.
    """

    def __init__(
        self,
        robot: Robot,
        shapes: Sequence[Shape],
        dynamics: Dynamics,
        contact: ContactModel,
        ground: Ground,
        friction: float,
        restitution: float,
        objects: ObjectContacts | None = None,
    ) -> None:
        self._dynamics = dynamics
        self._model, self._surface = robot.model, ground
        self._links = [shape.name for shape in shapes]
        tree, projection = dynamics.tree, dynamics.projection
        nv, (feet, widest) = len(tree.z), projection.vertices.shape[:2]
        self.objects = ObjectContacts.of_number(0) if objects is None else objects
        n_objects, n_joints = len(self.objects.position), len(dynamics.bodies.leaf)
        capacity = CAPACITY + min(PER_OBJECT * n_objects, MOST_OF_OBJECTS) + feet * widest
        self.contacts = Contacts.of_size(capacity)
        self._problem = ConeProblem.of_feet(0, capacity, TOLERANCE, ITERATIONS, budget=projection.budget)
        gravity = float(np.linalg.norm(tree.gravity))
        self._feet = zeros_of(
            FeetAsPoints,
            {"K": feet, "N": widest},
            feet=dynamics.foothold,
            projection=projection,
            vertices=VertexContacts.of_feet(feet, widest, contact.result, tree.h),
            anchors=Anchors.of_feet(feet, widest),
            joint=tree.foot_joint,
            rate=GAMMA / tree.h,
        )
        # Models of other packages need not declare it.
        self._rigid = bool(getattr(contact, "rigid", False))
        self._coupling = zeros_of(
            TouchCoupling,
            {"C": capacity, "v": nv, "n": nv + 6 * n_objects, "K": feet, "B": n_joints + len(dynamics.stops.idx_v)},
            tree=tree,
            projection=projection,
            bodies=dynamics.bodies,
            stops=dynamics.stops,
            contacts=self.contacts,
            objects=self.objects,
            feet=self._feet,
            problem=self._problem,
            rows=PointRows.of_size(capacity, nv, n_objects),
            gamma=GAMMA,
            slow=SLOW * tree.h * gravity,
        )
        self._boxed = box(self._coupling)
        self._still = np.zeros(nv)
        self._inputs = RobotContacts(
            dynamics.bodies,
            dynamics.pairs,
            dynamics.stops,
            tree,
            ground.arrays(),
            self.contacts,
            self._coupling,
            friction,
            restitution,
            self._still,
            np.eye(3),
        )
        self._robot = box(self._inputs)
        # The kernels are compiled at the first contact.
        self._take_step: Callable[..., int] | None = None
        self._whole: Any = None
        self._compiled_step: CompiledStep | None = None
        self._solved = np.zeros(1, dtype=np.bool_)
        # Every step reads these; a memoryview takes half the time of an array.
        self._loaded, self._found = self._coupling.loaded.data, self._solved.data
        self._dropped = self.contacts.dropped.data
        self.force, self.gained = self._coupling.force, self._coupling.gained
        self._impulse, self._nothing = (np.zeros((feet, 6)) for _ in range(2))
        self.finders: list[Callable[[Contacts], None]] = []
        self.wanted: Callable[[], bool] | None = None
        self.carries = self.unresolved = False
        self.rounds = self._waits = 0
        self._coupling.points[0] = self._rigid
        self._contact, self._result = contact, contact.result
        self._counted = self._result.counters.copy()
        self._v = self._still
        self._bounces = False

    def take(self, q: Array, v: Array, torque: Array) -> int:
        """Take an unsplit step with all contacts, see :meth:`bipedsim.dynamics.Dynamics.touch`; return its outcome.

        Without objects, and with a compiled and rigid contact model, this is one compiled call.
        """
        dynamics = self._dynamics
        if self.finders or (self._take_step is None and not self._prepare()):
            return dynamics.touch(q, v, torque, self._contact, self)
        assert self._take_step is not None
        dynamics.repeated = dynamics.unresolved = False
        outcome = self._take_step(self._whole, q, v, torque, UNSPLIT)
        if outcome == BAD_TORQUE:
            return outcome
        self.unresolved = not self._found[0] or self._dropped[0] > 0
        self.carries = bool(self._loaded[0])
        return outcome

    def _prepare(self) -> bool:
        """Compile or load the step in one call; return False if it must be taken in several."""
        step = self._dynamics.compiled_step(self._contact) if self._rigid and not self.finders else None
        if step is None:
            return False
        counters = self._result.counters
        whole = WholeStep(step.arrays, self._inputs, counters, counters.copy(), self._nothing, self._solved)
        self._compiled_step, self._whole = step, box(whole)
        q, v, torque = np.zeros(self._model.nq), self._still, np.zeros(len(self._inputs.tree.actuated))
        self._take_step = ready(take_step, self._whole, q, v, torque, UNSPLIT)
        return True

    def find(self, q: Array, v: Array) -> None:
        """Detect the contacts of a step from (q, v), joint limits included."""
        self._bounces = find_contacts(self._robot, q, v, not self.finders)
        self._v = v
        self._counted[:] = self._result.counters
        if self.finders:
            for finder in self.finders:
                finder(self.contacts)
            self._bounces = fill_problem(self._boxed, v)

    def add_stops(self, q: Array) -> None:
        """Add the joint limits that the solved step has exceeded, before it is solved again."""
        add_passed(self._robot, q)
        self._bounces = fill_problem(self._boxed, self._v) and self._bounces

    def solve(self, ask: Callable[[], Array]) -> Array:
        """Solve all contacts together with the contact model; see :class:`bipedsim.dynamics.step.Coupling`."""
        boxed, counters = self._boxed, self._result.counters
        if self._bounces:
            rebound(boxed, ask(), 0.0 if self._dynamics.flight.aloft[0] else 0.5)
        if self._rigid:
            # A step that is solved twice, with other joint limits or for a rebound, counts once.
            counters[:] = self._counted
            solved = bool(solve_with_feet(boxed, self._nothing))
            impulse = self._result.impulse
        else:
            counters[UNRESOLVED] = self._counted[UNRESOLVED]
            solved, impulse = self._solve_in_turn(ask)
        self.unresolved = not solved or self.contacts.dropped[0] > 0
        self.carries = bool(self._loaded[0])
        return impulse

    def _solve_in_turn(self, ask: Callable[[], Array]) -> tuple[bool, Array]:
        """Call the contact model and the solver of the other contacts in turn, until both agree on the feet."""
        boxed, budget, unresolved = self._boxed, self._problem.budget, self._counted[UNRESOLVED]
        # Half of the budget is reserved for a solve with the feet as points.
        reserved = int(budget[0]) // 2
        budget[0] -= reserved
        solve_beside_feet(boxed, self._impulse)
        max_rounds = 1 if self._waits > 0 else ROUNDS
        self._waits = max(self._waits - 1, 0)
        self.rounds, stalled, best, off, answered = 0, 0, np.inf, np.inf, True
        # A model without a solution uses its maximum time, and would do so again in the next round.
        while not off <= FITS and answered and self.rounds < max_rounds and stalled < PATIENCE and budget[0] > 0:
            impulse = ask()
            answered = self._result.counters[UNRESOLVED] == unresolved
            off = solve_beside_feet(boxed, impulse)
            stalled = 0 if off < 0.5 * best else stalled + 1
            best = min(off, best)
            self.rounds += 1
        budget[0] = max(int(budget[0]), 0) + reserved
        if off <= FITS and answered:
            store_beside_feet(boxed, impulse)
            self._impulse[:] = impulse
            return True, impulse
        if max_rounds == ROUNDS:
            self._waits = WAITS
        return self._solve_as_points()

    def _solve_as_points(self) -> tuple[bool, Array]:
        """Solve a step with the feet of a model that is not rigid as points."""
        self._result.counters[:] = self._counted
        points, impulse = self._coupling.points, self._result.impulse
        points[0] = True
        begin_points(self._boxed, self._v)
        solved = bool(solve_with_feet(self._boxed, self._nothing))
        points[0] = self._feet.begun[0] = False
        if self._contact.late is not None:
            np.multiply(0.5, impulse, out=self._contact.late)
        self._impulse[:] = impulse
        return solved, impulse

    def release(self) -> None:
        """Return the feet to their contact model, for a step without other contacts."""
        if self._feet.begun[0]:
            self._feet.begun[0] = False
            self._contact.resume()

    def depths(self, q: Array) -> dict[str, float]:
        """Return the penetration depth of each link whose shapes are in the ground at ``q`` (nq,) [m]."""
        model, data = self._model, self._model.createData()
        pin.forwardKinematics(model, data, q)
        bodies = self._dynamics.bodies
        lowest = np.empty_like(bodies.point)
        for joint, begin, end in zip(bodies.joint, bodies.begin, bodies.end, strict=True):
            points = slice(begin, end)
            shape = bodies.point[points], bodies.ball[points], bodies.ring[points], bodies.axis[points]
            lowest[points] = lowest_point(data.oMi[int(joint)], *shape)
        depths = self._surface.depth(lowest, SUNK)
        deepest: dict[str, float] = {}
        for p in np.flatnonzero((depths > 0.0) & (bodies.shape >= 0)):
            name = self._links[bodies.shape[p]]
            deepest[name] = max(deepest.get(name, 0.0), float(depths[p]))
        return deepest

    def overlaps(self, q: Array) -> dict[str, float]:
        """Return the penetration depth of each pair of links that overlap at ``q`` (nq,) [m]."""
        pairs, deepest = self._dynamics.pairs, dict[str, float]()
        if len(pairs.near):
            self._dynamics.place(q)
        for p in range(len(pairs.near)):
            depth = -float(call(closest, pairs, self._dynamics.tree, p)[2])
            name = " and ".join(self._links[int(i)] for i in pairs.shape[p])
            if depth > deepest.get(name, 0.0):
                deepest[name] = depth
        return deepest

    def rest(self) -> None:
        """Record that the last step was solved without these contacts."""
        self.force[:] = self.gained[:] = 0.0
        self.carries = False

    def warm_up(self) -> None:
        """Load or compile the kernels."""
        if not self._prepare():
            nothing = np.zeros(self._model.nq)
            fill_problem(self._boxed, self._still)
            rebound(self._boxed, self._nothing, 0.5)
            solve_with_feet(self._boxed, self._nothing)
            if not self._rigid:
                begin_points(self._boxed, self._still)
                solve_beside_feet(self._boxed, self._nothing)
                store_beside_feet(self._boxed, self._nothing)
            find_contacts(self._robot, nothing, self._still, True)
            add_passed(self._robot, nothing)
        self.reset()

    def reset(self) -> None:
        """Clear the state of the last step."""
        self.rest()
        clear_history(self.contacts)
        for array in self._memory().values():
            array[...] = 0
        self._waits = 0
        self.carries = self.unresolved = False

    def _memory(self) -> dict[str, NDArray[Any]]:
        """Return the arrays on which the next step depends."""
        c, feet = self.contacts, self._feet
        of_contacts = {"used": c.used, "key": c.key, "impulse": c.impulse, "feet": self._impulse}
        of_feet = {"begun": feet.begun, "last": feet.last, "place": feet.anchors.place, "held": feet.anchors.held}
        flags = {"touching": feet.vertices.touching, "sticking": feet.vertices.sticking}
        return of_contacts | of_feet | flags

    def state(self) -> dict[str, Any]:
        """Return a copy of the state on which the next step depends."""
        return {name: array.copy() for name, array in self._memory().items()} | {
            "carries": self.carries,
            "waits": self._waits,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the output of :meth:`state`."""
        for name, array in self._memory().items():
            array[...] = state[name]
        self.carries, self._waits = state["carries"], state["waits"]
