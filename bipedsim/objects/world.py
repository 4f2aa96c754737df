"""Simulation of free rigid bodies on the ground."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from bipedsim.contact import ConeProblem, PointRows
from bipedsim.errors import ConfigError
from bipedsim.ground import Ground
from bipedsim.numerics import STEP_BUDGET, Array, Box, Integers, box, ready, unlimited, zeros_of
from bipedsim.objects.contacts import PAIRS, POINTS, WORLD, Memory, PairContacts, copy_memory
from bipedsim.objects.free_body import FreeBody, Link, bodies_of, frame_poses, frame_twists
from bipedsim.objects.narrow import Near, Surface
from bipedsim.objects.pressing import press
from bipedsim.objects.sides import Sides
from bipedsim.objects.solve import PairSolve
from bipedsim.objects.stepping import (
    FASTEST,
    FULL,
    ITERATIONS,
    REFUSED,
    SLOW,
    TOLERANCE,
    UNRESOLVED,
    SavedState,
    Stepping,
    arrive,
    detect,
    first_hit,
    is_near,
    meet_links,
    place_bodies,
    place_links,
    take_step,
)
from bipedsim.touch import Contacts as Touches, ObjectContacts

OVERLAP = 1e-6
"""Initial overlap of bodies [m] that is accepted, because postures are rounded."""


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
        failed: Whether the last step contains a problem without solution.
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
        self._joints: Integers = np.array([link.joint for link in links], dtype=np.int64)
        self._budget = unlimited() if budget is None else budget
        bodies: list[FreeBody | Link] = [*free, *links]
        shapes = [(i, shape) for i, body in enumerate(bodies) for shape in body.shapes]
        self.bodies = bodies_of(free, len(links), gravity)
        self._near = Near.of(self.bodies, shapes, Surface.of(free, links), ground.arrays())
        self._worst: Array = np.zeros(2)
        self._settings = {
            "h": physics_dt,
            "slow": SLOW * physics_dt * float(np.linalg.norm(gravity)),
            "shared": budget is not None,
            "worst": self._worst,
        }
        self._failed: Integers = np.zeros(1, dtype=np.int64)
        self.given: Array = np.zeros(1)
        self.ahead: Array = np.zeros(1)
        self.failed = False
        self._meeting: tuple[Touches, ObjectContacts] | None = None
        self._take_step: Callable[[Box], int] | None = None
        self._is_near: Callable[[Box, Array, float], bool] | None = None
        self._memory = zeros_of(Memory, {"M": POINTS})
        self._make_room(PAIRS, POINTS)
        self.reset()

    def _make_room(self, pairs: int, points: int) -> None:
        """Allocate arrays for more pairs and points, and keep the points of the last sub-step."""
        h, memory = self._settings["h"], self._memory
        sizes = {"N": len(self.free), "P": pairs, "M": points}
        self._near = near = self._near._replace(contacts=zeros_of(PairContacts, sizes))
        self._memory = zeros_of(Memory, sizes)
        copy_memory.py_func(memory, self._memory)
        cone = ConeProblem.of_feet(0, points, TOLERANCE, ITERATIONS, budget=self._budget)
        rows = PointRows.of_size(points, 0, len(self.free))
        rows.system.used[0] = 0
        found = {"bodies": self.bodies, "contacts": near.contacts, "unresolved": self._failed, "given": self.given}
        solve = zeros_of(PairSolve, sizes, cone=cone, rows=rows, place=np.full(len(self.free), -1), h=h, **found)
        before = zeros_of(SavedState, sizes, memory=zeros_of(Memory, sizes))
        parts = {"near": near, "memory": self._memory, "before": before, "solve": solve}
        self._boxed = box(zeros_of(Stepping, sizes, **parts, **self._settings))
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
            self._place(i, body.pose, body.twist)
        b.force[:] = b.torque[:] = 0.0
        self.forget_contacts()

    def place(self, i: int, pose: Array, twist: Array) -> None:
        """Move body ``i``: pose (7,) of its frame in the world, velocities (6,) in its own axes."""
        rotation = pin.Quaternion(pose[3:] / np.linalg.norm(pose[3:])).matrix()
        self._place(i, pose, np.concatenate([rotation @ twist[:3], rotation @ twist[3:]]))

    def _place(self, i: int, pose: Array, twist_world: Array) -> None:
        b = self.bodies
        b.quaternion[i] = pose[3:] / np.linalg.norm(pose[3:])
        place_bodies(self._boxed)
        arm = b.R[i] @ self.free[i].com
        b.position[i] = pose[:3] + arm
        b.w[i] = twist_world[3:]
        b.v[i] = twist_world[:3] + np.cross(twist_world[3:], arm)

    def forget_contacts(self) -> None:
        """Clear the contacts of the last step, which the next one starts from."""
        self.bodies.contact[:] = 0.0
        self._memory.points[0] = 0
        self._failed[0] = self.bodies.rough[0] = 0

    def step(self) -> str:
        """Make a complete step or none; return the reason if none was made, otherwise an empty string."""
        if self._take_step is None:
            self._take_step = ready(take_step, self._boxed)
        outcome = self._take_step(self._boxed)
        while outcome == FULL:
            self._grow()
            outcome = self._take_step(self._boxed)
        self.failed = outcome == UNRESOLVED
        return self._refusal() if outcome == REFUSED else ""

    def _grow(self) -> None:
        self._make_room(2 * len(self.contacts.first), 2 * len(self.contacts.pair))

    def _refusal(self) -> str:
        """Return the reason why no step was made."""
        which, speed = self._worst.tolist()
        name = self.names[int(which)]
        if not np.isfinite(speed):
            return f"the velocity of object {name!r} is not finite"
        return f"a point of object {name!r} reached {speed:.3g} m/s, more than {FASTEST:g}"

    def warm_up(self) -> None:
        """Load or compile the kernels of a contact; no body moves."""
        ready(take_step, self._boxed)
        if self.links:
            rows = np.zeros((1, 3))
            ready(meet_links, self._boxed, 0.0)
            ready(first_hit, self._boxed)
            ready(is_near, self._boxed, np.zeros(3), 0.0)
            ready(arrive, self._boxed, np.zeros((1, 6)), rows, rows, np.zeros(1))

    def is_near(self, q: Array, distance: float) -> bool:
        """Return whether a point of a body may be closer than ``distance`` [m] to the point q[:3] in the world."""
        if self._is_near is None:
            self._is_near = ready(is_near, self._boxed, q, distance)
        return self._is_near(self._boxed, q, distance)

    def see(self, poses: Array, motions: Array) -> None:
        """Place the links as pinocchio's arrays of all joints say: ``poses`` (n, 12) and ``motions`` (n, 6)."""
        place_links(self._boxed, self._joints, poses, motions)

    def first_hit(self) -> float:
        """Return the time in the step [s] at which a link first hits a body that rebounds; 0 if none does.

        Call it after :meth:`meets`.
        """
        return float(first_hit(self._boxed))

    def meets(self, ahead: float = 0.0) -> bool:
        """Return whether a body may touch a link in the next step, and activate the contacts that may be loaded.

        Args:
            ahead: Time after the beginning of the step [s] at which contacts are detected. The links must be placed at
                that time, and the bodies are predicted to it.
        """
        self.ahead[0] = ahead
        meets = meet_links(self._boxed, ahead)
        while meets == FULL:
            self._grow()
            meets = meet_links(self._boxed, ahead)
        return bool(meets)

    def meet(self, contacts: Touches, objects: ObjectContacts) -> None:
        """Connect these bodies to the contacts of a robot and its ``objects`` for all further steps."""
        self._meeting = contacts, objects
        fields = {
            "near": self._near,
            "contacts": contacts,
            "objects": objects,
            "joints": self._joints,
            "ahead": self.ahead,
        }
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
        return "" if arrive(self._boxed, *solved) else self._refusal()

    def press(self, plates: Box) -> None:
        """Add the ground reaction of the last step to the surfaces of force plates."""
        press(self._boxed, plates)

    def _find(self) -> None:
        """Detect the contacts of the present positions."""
        while not detect(self._boxed, 0.0):
            self._grow()

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
        place_bodies(self._boxed)

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
        self._find()
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
