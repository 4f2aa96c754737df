"""Steps of the simulator with contacts other than those of the feet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from bipedsim.contact import UNRESOLVED, ConeProblem, ContactModel, for_kernels
from bipedsim.dynamics import SUNK, BodyPoints, Dynamics, Pairs, Stops, Tree, closest
from bipedsim.ground import Ground, GroundArrays
from bipedsim.model import Robot, lowest_point
from bipedsim.numerics import Array, box, call, zeros_of
from bipedsim.touch.contacts import Contacts, ObjectContacts, clear, clear_history
from bipedsim.touch.coupling import (
    TouchCoupling,
    add_forces,
    apply_impulses,
    condense_contacts,
    fill_delassus,
    fill_rows,
    finish,
    hide_contacts,
    rebound,
    solve,
    store_drive,
)
from bipedsim.touch.feet import add_vertices, feet_as_points, take_vertices
from bipedsim.touch.find import add_passed, find_on_ground, find_pairs, find_stops

CAPACITY, PER_OBJECT, MOST_OF_OBJECTS = 96, 8, 256
"""Maximum number of contacts in a step: without objects, additional ones per object, and limit of the latter.

With further contacts, the step counts as unresolved.
"""
ROUNDS, PATIENCE = 40, 5
"""Maximum number of rounds between feet and other contacts, and of rounds without halving the error.

After these, the feet become point contacts. They become so at once if their model has no solution.
"""
FITS = 1e-7
"""Convergence criterion: change of the foot velocities in a round, relative to the speeds that contact changes."""
BEYOND = 1e-7
"""Excess of friction over the cone of a foot, as a fraction, above which its model counts as not converged."""
WAITS = 10
"""Number of steps after such a failure in which feet become point contacts after the first round."""
TOLERANCE, ITERATIONS = 1e-7, 1000
"""Residual that counts as solved, relative to the speed that contact has to remove, and iterations of one solve."""
GAMMA = 0.2
"""Fraction of an overlap that a step removes."""
SLOW = 0.5
"""A contact does not rebound below the speed that gravity adds in this many steps."""


class _RobotContacts(NamedTuple):
    bodies: BodyPoints
    pairs: Pairs
    stops: Stops
    tree: Tree
    ground: GroundArrays
    contacts: Contacts
    mu: float
    restitution: float
    nothing: Array
    axes: Array


class Touching:
    """All contacts of a robot except those of its soles.

    Args:
        robot: The robot whose bodies may be in contact.
        dynamics: Dynamics of the robot, made with its shapes.
        contact: Contact model of the feet.
        ground: The ground.
        friction, restitution: Coefficients of the bodies.
        objects: Free bodies in addition to the robot.

    Attributes:
        contacts: Possible contacts, and their impulses in the last step that was solved here.
        objects: Free bodies in addition to the robot.
        force: (nv,) generalised impulse of the contacts on the robot in the last step [N.s, N.m.s].
        gained: (1,) energy that they added, see :class:`~bipedsim.touch.coupling.Coupling` [J].
        finders: Functions that add contacts. They are called once in every such step, when ``dynamics.tree`` has the
            poses of the bodies.
        wanted: Function that reports before a step whether it must be solved here; None if only the robot's bodies
            decide.
        carries: Whether any contact was loaded in the last step.
        rounds: Number of rounds in the last step.
        as_points: Number of steps since reset in which the feet were point contacts, because their model did not agree
            with the other contacts.
        unresolved: Whether the last step has no solution within the tolerance.
    """

    def __init__(
        self,
        robot: Robot,
        dynamics: Dynamics,
        contact: ContactModel,
        ground: Ground,
        friction: float,
        restitution: float,
        objects: ObjectContacts | None = None,
    ) -> None:
        self._dynamics = dynamics
        self._model, self._surface = robot.model, ground
        self._links = [shape.name for shape in robot.shapes.shapes]
        tree, projection = dynamics.tree, dynamics.projection
        nv = len(tree.z)
        self.objects = ObjectContacts.of_number(0) if objects is None else objects
        capacity = CAPACITY + min(PER_OBJECT * len(self.objects.position), MOST_OF_OBJECTS)
        self.contacts = Contacts.of_size(capacity)
        limits = TOLERANCE, ITERATIONS
        self._problem = ConeProblem.of_feet(0, capacity, *limits, budget=projection.budget)
        gravity = float(np.linalg.norm(tree.gravity))
        self._coupling = zeros_of(
            TouchCoupling,
            {"C": capacity, "v": nv, "n": nv + 6 * len(self.objects.position), "K": len(tree.leaf)},
            tree=tree,
            projection=projection,
            bodies=dynamics.bodies,
            stops=dynamics.stops,
            contacts=self.contacts,
            objects=self.objects,
            problem=self._problem,
            gamma=GAMMA,
            slow=SLOW * tree.h * gravity,
        )
        self._boxed = box(self._coupling)
        arrays = ground.arrays()
        self._still = np.zeros(nv)
        self._ground = box(
            _RobotContacts(
                dynamics.bodies,
                dynamics.pairs,
                dynamics.stops,
                tree,
                arrays,
                self.contacts,
                friction,
                restitution,
                self._still,
                np.eye(3),
            )
        )
        self.force, self.gained = self._coupling.force, self._coupling.gained
        self._impulse, self._nothing = (np.zeros((len(tree.leaf), 6)) for _ in range(2))
        self.finders: list[Callable[[Contacts], None]] = []
        self.wanted: Callable[[], bool] | None = None
        self.carries = self.unresolved = False
        self.rounds = self.as_points = 0
        self._contact, self._result = contact, contact.result
        self._unresolved = self._waits = 0
        self._points = feet_as_points(
            dynamics.foothold, projection, self.contacts, for_kernels(contact.result), tree.foot_joint, tree.h
        )
        self._boxed_feet = box(self._points)
        self._v = self._still
        self._bounces = False

    def find(self, q: Array, v: Array) -> None:
        """Detect the contacts of a step from (q, v), joint limits included."""
        call(clear, self.contacts)
        find_on_ground(self._ground, v)
        find_pairs(self._ground, v)
        find_stops(self._ground, q, v)
        for finder in self.finders:
            finder(self.contacts)
        store_drive(self._boxed)
        self._bounces = fill_rows(self._boxed, v)
        self._v = v
        self._unresolved = self._result.unresolved

    def add_stops(self, q: Array) -> None:
        """Add the joint limits that the solved step has exceeded, before it is solved again."""
        hide_contacts(self._boxed)
        add_passed(self._ground, q)
        fill_rows(self._boxed, self._v)

    def solve(self, ask: Callable[[], Array]) -> Array:
        """Solve all contacts together with the contact model; see :class:`bipedsim.dynamics.step.Coupling`."""
        boxed, scale, guess = self._boxed, self._problem.scale, self._impulse
        unresolved, budget = self._unresolved, self._problem.budget
        # Half of the budget is reserved for a solve with the feet as points.
        reserved = int(budget[0]) // 2
        budget[0] -= reserved
        fill_delassus(boxed)
        if self._bounces:
            hide_contacts(boxed)
            impulse = ask()
            rebound(boxed, impulse, 0.0 if self._dynamics.flight.aloft[0] else 0.5)
            self._result.counters[UNRESOLVED] = unresolved
        solve(boxed, guess)
        condense_contacts(boxed, guess)
        max_rounds = 1 if self._waits > 0 else ROUNDS
        self.rounds, stalled, best, fits, answered = 0, 0, np.inf, False, True
        # A model without a solution uses its maximum time, and would do so again in the next round.
        while not fits and answered and self.rounds < max_rounds and stalled < PATIENCE and budget[0] > 0:
            impulse = ask()
            answered = self._result.unresolved == unresolved
            solved = solve(boxed, impulse)
            off = condense_contacts(boxed, impulse)
            fits = off <= FITS * scale[0]
            stalled = 0 if off < 0.5 * best else stalled + 1
            best = min(off, best)
            self.rounds += 1
        budget[0] = max(int(budget[0]), 0) + reserved
        self._waits = max(self._waits - 1, 0)
        beyond = bool((self._result.friction_used > 1.0 + BEYOND).any())
        if not fits or beyond or not answered:
            if max_rounds == ROUNDS:
                self._waits = WAITS
            solved = self._solve_as_points()
            self._result.counters[UNRESOLVED] = unresolved
            impulse = self._points.impulse
            self.as_points += 1
        apply_impulses(boxed)
        guess[:] = impulse
        self.unresolved = not solved or self.contacts.dropped[0] > 0
        self.carries = finish(boxed, impulse)
        return impulse

    def _solve_as_points(self) -> bool:
        """Solve feet and contacts as one problem of points; return whether the residual is within tolerance."""
        boxed = self._boxed
        hide_contacts(boxed)
        room = add_vertices(self._boxed_feet)
        fill_rows(boxed, self._v)
        fill_delassus(boxed)
        solved = solve(boxed, self._nothing)
        take_vertices(self._boxed_feet, self._problem.f, self._coupling.slips)
        self._problem.points[0] = self.contacts.used[0]
        condense_contacts(boxed, self._points.impulse)
        if self._contact.late is not None:
            np.multiply(0.5, self._points.impulse, out=self._contact.late)
        return bool(solved and room)

    def solve_free(self, find: Callable[[Contacts], None]) -> bool:
        """Solve the contacts between free objects and the world only; ``find`` adds them.

        Returns:
            Whether the residual is within tolerance.
        """
        call(clear, self.contacts)
        find(self.contacts)
        store_drive(self._boxed)
        bounces = fill_rows(self._boxed, self._still)
        fill_delassus(self._boxed)
        if bounces:
            rebound(self._boxed, self._nothing, 0.5)
        solved = solve(self._boxed, self._nothing)
        finish(self._boxed, self._nothing)
        return bool(solved)

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
        for p in np.flatnonzero(depths > 0.0):
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

    def add_forces(self, out: Array) -> None:
        """Add the impulses of the last step on the bodies of the robot to ``out`` (joints, 3), in the world [N.s]."""
        add_forces(self._boxed, out)

    def rest(self) -> None:
        """Record that the last step was solved without these contacts."""
        self.force[:] = self.gained[:] = 0.0
        self.carries = False

    def warm_up(self) -> None:
        """Load or compile the kernels."""
        room = add_vertices(self._boxed_feet)
        take_vertices(self._boxed_feet, self._problem.f, self._coupling.slips)
        hide_contacts(self._boxed)
        condense_contacts(self._boxed, self._nothing)
        rebound(self._boxed, self._nothing, 0.5)
        apply_impulses(self._boxed)
        find_on_ground(self._ground, self._still)
        find_pairs(self._ground, self._still)
        nothing = np.zeros(int(self._dynamics.stops.idx_q.max(initial=-1)) + 1)
        find_stops(self._ground, nothing, self._still)
        add_passed(self._ground, nothing)
        self.solve_free(lambda contacts: None)
        self.add_forces(np.zeros((len(self._dynamics.bodies.leaf), 3)))
        assert room

    def reset(self) -> None:
        """Clear the state of the last step."""
        self.rest()
        clear_history(self.contacts)
        self._impulse[:] = self._points.last[:] = 0.0
        self.as_points = self._waits = 0
        self.carries = self.unresolved = False

    def state(self) -> dict[str, Any]:
        """Return a copy of the state on which the next step depends."""
        c = self.contacts
        arrays = {"used": c.used, "key": c.key, "impulse": c.impulse, "feet": self._impulse, "last": self._points.last}
        copies: dict[str, Any] = {name: array.copy() for name, array in arrays.items()}
        return copies | {"carries": self.carries, "waits": self._waits}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the output of :meth:`state`."""
        for name in ("used", "key", "impulse"):
            getattr(self.contacts, name)[...] = state[name]
        self._impulse[:], self._points.last[:] = state["feet"], state["last"]
        self.carries, self._waits = state["carries"], state["waits"]
