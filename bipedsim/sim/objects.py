"""Free rigid bodies in the simulation of a robot, and their contacts with it.

While no object can reach the robot within a step, robot and objects take their steps separately. Otherwise the contacts
of robot and objects are solved as one problem (:class:`bipedsim.touch.Touching`) over the whole step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from bipedsim.config import check_all, together
from bipedsim.dynamics import live_motions, live_poses
from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.ground import Ground
from bipedsim.model import Robot
from bipedsim.numerics import Array, Box, Integers, ready
from bipedsim.objects import FreeBody, Link, ObjectConfig, World, check_names, give_contacts, parts_of
from bipedsim.sim.participant import Participant, Simulation
from bipedsim.touch import Contacts, ObjectContacts, Touching

REACH = 0.5
"""Largest approach of robot and object in a step [m], as at 250 m/s and 2 ms."""


class Objects(Participant):
    """Simulate the free objects.

    Args:
        configs: Objects, at least one.
        robot: Robot that they may be in contact with.
        ground, physics_dt: Ground and physics step of the simulation.
        friction: Friction of the robot's bodies; None if objects pass through them.
        budget: (1,) budget of operations of the robot's steps, which precede those of the objects; None without such
            steps.

    Attributes:
        configs: As given.
        names: Names of the objects.
        world: Simulation of the objects.
        sides: State of the objects for the contact solver of the robot.
        robot_v: (nv,) velocity of the robot at the beginning of the step.
        on_move: Called with the states of every :meth:`move`. None by default.
        unresolved: Whether the last step, if the objects took it alone, has no solution within the tolerance.

    Raises:
        ConfigError: A name is given twice or is that of a frame of the robot, or bodies overlap at the start.
    """

    name = "objects"
    changes_form = True

    def __init__(
        self,
        configs: Sequence[ObjectConfig],
        robot: Robot,
        ground: Ground,
        physics_dt: float,
        friction: float | None,
        budget: Integers | None = None,
    ) -> None:
        taken = {frame.name for frame in robot.model.frames}
        rename = "is a frame of the robot, too. Rename the object"
        same = [ConfigError(rename, "objects: name", one.name) for one in configs if one.name in taken]
        together([*check_names(configs), *same])
        self.configs = tuple(configs)
        self.names = tuple(one.name for one in configs)
        links = [] if friction is None else _links(robot, friction)
        gravity = robot.model.gravity.linear
        bodies: list[FreeBody] = []
        check_all([partial(lambda one: bodies.append(one.make()), one) for one in configs])
        self.world = World(bodies, ground, physics_dt, gravity, links, budget)
        together(self.world.overlaps())
        self.sides = ObjectContacts.of_number(len(self.configs))
        self._model, self._data = robot.model, robot.model.createData()
        self._poses = live_poses(self._data, robot.model.njoints)
        self._motions = live_motions(self._data.v, robot.model.njoints)
        self._touching: Touching | None = None
        self._state: tuple[Array, Array] = np.zeros(0), np.zeros(0)
        self.robot_v: Array = np.zeros(robot.model.nv)
        self.unresolved = False
        self.on_move: Callable[[Mapping[str, Array]], None] | None = None
        self._met: bool | None = None
        self._coupled = False
        self._first = 0
        # Bounding spheres of the robot and of the objects; detailed checks run only if two of them overlap.
        self._reach = _span(robot) + REACH if links else float("-inf")

    def join(self, touching: Touching) -> None:
        """Connect the objects to the contact solver of the robot."""
        self._touching = touching
        self.world.meet(touching.contacts, self.sides)
        touching.wanted = self._meet
        touching.finders.append(self._add)

    def warm_up(self) -> None:
        """Load or compile the kernels of the first contact; nothing moves."""
        self.world.warm_up()
        if self._touching is not None:
            ready(give_contacts, self.world.sides)

    def check_start(self, sim: Simulation, q: Array, v: Array) -> None:
        """Raise ConfigError with the names of objects that would start inside the robot at (q, v)."""
        before = self.world.state()
        self.world.reset()
        try:
            self._place_links(sim.closed_at(q), v)
            faults = self.world.overlaps(links=True)
        finally:
            self.world.set_state(before)
        together(faults)

    def check_move(self, states: Mapping[str, Array], q: Array, v: Array, from_start: bool = False) -> None:
        """Check whether objects can move to ``states`` while the robot is at (q, v): (nq,), (nv,); nothing changes.

        Args:
            states: See :meth:`move`.
            q, v: State of the robot.
            from_start: Whether the other objects are in their initial states.

        Raises:
            UnknownNameError, ConfigError: As in :meth:`move`.
        """
        for name, state in states.items():
            if name not in self.names:
                raise UnknownNameError("object", name, self.names)
            if np.shape(state) != (13,) or not np.isfinite(state).all() or abs(np.linalg.norm(state[3:7]) - 1) > 1e-3:
                form = "must be a position, a quaternion of length 1 and two velocities: 13 finite numbers"
                raise ConfigError(form, f"object {name!r}", np.asarray(state).tolist())
        before = self.world.state()
        try:
            if from_start:
                self.world.reset()
            self._place(states)
            self._place_links(q, v)
            faults = self.world.overlaps(links=True)
        finally:
            self.world.set_state(before)
        together(faults)

    def move(self, sim: Simulation, states: Mapping[str, Array]) -> None:
        """Move objects at once, between two steps.

        Args:
            sim: The simulation.
            states: Name to pose and velocities (13,): position [m], quaternion x y z w, then linear [m/s] and angular
                velocity [rad/s] in the axes of the object.

        Raises:
            UnknownNameError: There is no such object.
            ConfigError: A state is not valid, or bodies would overlap; nothing has changed.
        """
        self.check_move(states, sim.q, sim.v)
        self._place(states)
        if self.on_move is not None:
            self.on_move(states)

    def _place(self, states: Mapping[str, Array]) -> None:
        for name, state in states.items():
            self.world.place(self.names.index(name), state[:7], state[7:])
        self.world.forget_contacts()

    def forget_pushes(self) -> None:
        """Clear the pushes of the last step."""
        b = self.world.bodies
        b.force[:] = 0.0
        b.torque[:] = 0.0

    def reset(self, sim: Simulation) -> None:
        """Move the objects to their initial states."""
        self.world.reset()

    def before_step(self, sim: Simulation) -> None:
        """Start a step with the robot at the state of ``sim``."""
        self.begin(sim.q, sim.v)

    def begin(self, q: Array, v: Array) -> None:
        """Start a step with the robot at (q, v): (nq,), (nv,)."""
        self._state = q, v
        self.robot_v[:] = v
        self._met = None
        self._coupled = False

    def after_step(self, sim: Simulation) -> None:
        """Take the step of the objects, or refuse the whole step."""
        refused = self.end()
        if refused:
            sim.q, sim.v[:] = self._state[0], self.robot_v
            sim.refuse(refused)
        if self.unresolved:
            sim.stepper.count_unresolved()

    def end(self) -> str:
        """Take the step completely or not at all; return the reason of a refusal, empty if the step was taken."""
        touching = self._touching
        if not self._coupled or touching is None:
            refused = self.world.step()
            self.unresolved = self.world.failed
            return refused
        self.unresolved = False
        c = touching.contacts
        rows = slice(self._first, int(c.used[0]))
        return self.world.arrive(self.sides.after, c.impulse[rows], c.velocity[rows], c.late[rows])

    def press(self, surfaces: Box) -> None:
        """Add the ground forces on the objects to the force plates' ``surfaces``, if the objects stepped alone."""
        if not self._coupled:
            self.world.press(surfaces)

    def _place_links(self, q: Array, v: Array) -> None:
        pin.forwardKinematics(self._model, self._data, q, v)
        self.world.see(self._poses, self._motions)

    def _meet(self) -> bool:
        """Return whether an object may contact the robot in this step."""
        if self._met is None:
            self._met = False
            if self.world.is_near(self._state[0], self._reach):
                self._place_links(*self._state)
                self._met = self.world.meets()
                if self._met:
                    self._look_ahead()
        return self._met

    def _look_ahead(self) -> None:
        """Detect the contacts at the time of the first impact on an object with restitution, if there is one."""
        ahead = self.world.first_hit()
        if ahead > 0.0:
            q, v = self._state
            self._place_links(pin.integrate(self._model, q, ahead * v), v)
            self._met = self.world.meets(ahead)

    def _add(self, contacts: Contacts) -> None:
        """Add the contacts of the objects if they may contact the robot in this step."""
        self._coupled = self._meet()
        if not self._coupled:
            return
        self._first = give_contacts(self.world.sides)

    def poses(self) -> Array:
        """Return the poses (M, 7) in the world: position [m], quaternion x y z w."""
        return self.world.poses()

    def twists(self) -> Array:
        """Return linear [m/s] and angular [rad/s] velocities (M, 6), each in the axes of its object."""
        return self.world.twists()

    def states(self) -> Array:
        """Return poses and twists side by side (M, 13)."""
        return np.hstack([self.poses(), self.twists()])

    def state(self) -> dict[str, NDArray[Any]]:
        """Return a copy of everything that the next step depends on."""
        return self.world.state()

    def check_state(self, state: dict[str, NDArray[Any]]) -> None:
        """Raise ConfigError if :meth:`set_state` would refuse ``state``; nothing changes."""
        self.world.check_state(state)

    def set_state(self, state: dict[str, NDArray[Any]], sim: Simulation) -> None:
        """Restore a state that :meth:`state` returned."""
        self.forget_pushes()
        self.world.set_state(state)


def _span(robot: Robot) -> float:
    """Return the largest distance of the robot's shapes from its base [m]; infinite with prismatic joints."""
    model = robot.model
    if not robot.free_flyer:
        return float("inf")
    away = [0.0] * model.njoints
    for joint in range(2, model.njoints):
        slides = model.joints[joint].shortname().startswith("JointModelP")
        step = float("inf") if slides else float(np.linalg.norm(model.jointPlacements[joint].translation))
        away[joint] = away[model.parents[joint]] + step
    sizes = [
        away[shape.joint_id] + float(np.linalg.norm(shape.points, axis=1).max()) + shape.radius + shape.ring
        for shape in robot.shapes.shapes
    ]
    return max(sizes)


def _links(robot: Robot, friction: float) -> list[Link]:
    """Return the robot's bodies that have shapes."""
    return [Link(shape.name, shape.joint_id, tuple(parts_of(shape)), friction) for shape in robot.shapes.shapes]
