"""Dynamics of one robot: project a step on the feet, call the contact model, and convert back to joint space."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from bipedsim.dynamics.bodies import BodyPoints
from bipedsim.dynamics.equations import Equations
from bipedsim.dynamics.flight import Airborne
from bipedsim.dynamics.joints import place_joints
from bipedsim.dynamics.landing import SLOW, Landing
from bipedsim.dynamics.loops import Closing, Loops
from bipedsim.dynamics.pairs import Pairs
from bipedsim.dynamics.projection import Projection, edge_lines
from bipedsim.dynamics.protocol import Attempt, CompiledContact, Contact, Coupling, MemoryUse, Outcome, Part, Progress
from bipedsim.dynamics.rows import Rows
from bipedsim.dynamics.step_kernels import (
    StepArrays,
    StepWithContact,
    attempt_compiled,
    finish,
    prepare,
    restore_contact,
    solve_contact,
)
from bipedsim.dynamics.stops import Stops, stopped_joints
from bipedsim.dynamics.support import Foothold
from bipedsim.dynamics.tree import SPEED_LIMIT, Tree
from bipedsim.errors import ConfigError
from bipedsim.ground import Ground
from bipedsim.model import Robot, Shape, StopParams
from bipedsim.numerics import (
    Array,
    Integers,
    NativeCall,
    announced,
    box,
    native_call,
    ready,
    zeros_of,
)

TRIES, MANY = 20, 5
"""Attempts before the search enumerates sets of joint limits, and largest number of limits that it enumerates.

The sets consist of limits that were active in an earlier attempt."""
# Compiled functions take plain integers: for members of an IntEnum they would be compiled once more.
_WHOLE, _WITHIN, _UNSPLIT, _CLOSED = (int(part) for part in (Part.WHOLE, Part.WITHIN, Part.UNSPLIT, Part.CLOSED))
_BAD_TORQUE, _PROJECT, _COUPLED = int(Outcome.BAD_TORQUE), int(Attempt.PROJECT), int(Attempt.COUPLED)
_TRY_LIMITS, _ALL_LIMITS = int(Attempt.OTHER_LIMITS), int(Attempt.ALL_LIMITS)
_CONTACT, _CONTACT_AGAIN = int(Attempt.CONTACT), int(Attempt.CONTACT_AGAIN)
_FIRST, _OTHER_LIMITS, _FIRST_LIMITS = int(Attempt.FIRST), int(Outcome.OTHER_LIMITS), int(Outcome.FIRST_LIMITS)
TURN_ON = StopParams(joint_stops=False)
"""Joints move freely beyond their limits."""


class Dynamics:
    """Project the dynamics of one robot on its feet, and convert contact impulses back to joint space.

    Args:
        robot: The robot; its model includes the reflected inertia.
        ground: Ground under the feet.
        physics_dt: Step h [s].
        stops: Behaviour at the position limits of joints; by default joints move freely beyond them.
        shapes: Collision shapes of the robot's bodies. A step that would move them into the ground is not taken; see
            :meth:`step`.

    Attributes:
        equations: Equations of motion at the beginning of the step.
        tree, foothold: Joint side of a step, and the ground under the feet; refilled in every step.
        projection: Input of the contact model; refilled in every step.
        push: (nv,) generalised force in addition to the joint torques; the caller writes it.
        acceleration: (nv,) mean acceleration over the last step, (v+ - v) / h.
        change: (nv,) change of v in the last part of a step.
        landing: Time of a touchdown, or of an impact at a joint limit, in the last step.
        loops: Closed kinematic chains, and their impulses in the last part of a step.
        stops: Joint limits, and their impulses in the last part of a step. stopped_joints: names of these joints.
        bodies, pairs: Bodies that are near the ground, and pairs of bodies that are near each other.
        repeated: Whether the last part first called the contact model without active joint limits, and then again.
        unresolved: Whether the last part found no set of joint limits that all push.
        misplaced: Whether the last :meth:`move` or :meth:`closed` left a loop open, or found no attitude in flight.
        displacement: (nv,) displacement in the last step: h v+, or the integral of the velocity for forces that act
            within the step.
        end: (nq,) configuration at the end of the last step that returned TAKEN, before loops are closed.
        com: (3,) centre of mass in the world at the beginning of the last step [m].
        sole_origins: (K, 3) sole origins in the world at the beginning of the last step [m].
        ground_axes: (K, 3, 3) axes (t1, t2, n) of the ground under each foot in the last step, as columns.

    Raises:
        ConfigError: The robot has no feet, or a foot is fixed to the world.
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
            raise ConfigError("the robot has no feet. Define at least one under `feet`", robot.source)
        for sole in soles:
            if sole.joint_id == 0:
                raise ConfigError(
                    "is fixed to the world; give a frame that a joint moves, or `root: free_flyer`",
                    f"{robot.source}: feet.{sole.name}.frame",
                    sole.frame,
                )
        self.equations = Equations.of_model(self._model)
        self.foothold = Foothold.of_soles(soles, ground.arrays())
        self.projection = Projection.of_soles(soles, len(self.foothold.spare))
        joints = stopped_joints(robot) if stops.joint_stops else []
        self.loops = Loops.of_robot(robot.loops, robot.model)
        self.tree = _tree(robot, self.equations, physics_dt, len(joints) + len(self.loops.error))
        self.stopped_joints = tuple(robot.model.names[i] for i in joints)
        self.stops = Stops.of_joints(robot, joints, stops.stop_restitution, physics_dt)
        self.bodies = BodyPoints.of_robot(robot, shapes, self.foothold.ground, physics_dt)
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
        self._joints = box(self.equations.joints)
        self.progress = zeros_of(Progress, {"q": self._model.nq})
        self.end = self.progress.end
        self._boxed = box(self._arrays)
        self._contact: Contact | None = None
        self._runner: CompiledStep | _InPython | None = None
        # Caching the struct and the function of the runner saves a look-up in every step.
        self._step: Any = None
        self._run: Callable[..., int] = attempt_compiled
        self._q: Array = np.zeros(self._model.nq)
        # Every step reads this flag; reading a memoryview takes half the time of an array.
        self._aloft = self.flight.aloft.data

    @property
    def _arrays(self) -> StepArrays:
        parts = self.tree, self.foothold, self.projection, self.landing, self.flight, self.stops
        return StepArrays(self.equations, *parts, self.loops, self.bodies, self.pairs, self.progress)

    def project(self, q: Array, v: Array, tau_joint: Array) -> Projection:
        """Return the projection of the step from (q, v) under the torques ``tau_joint`` (nu,); the next call reuses it.

        Raises:
            ValueError: A size is wrong; the kernels do not check sizes.
        """
        sizes = len(q), len(v), len(tau_joint)
        needed = self._model.nq, self._model.nv, len(self.tree.actuated)
        if sizes != needed:
            raise ValueError(f"q, v and tau_joint have {sizes} entries instead of {needed}")
        prepare(self._boxed, q, v, tau_joint, _WITHIN, 1.0, _PROJECT)
        self._q = q
        return self.projection

    def advance(self, v: Array, impulse: Array, late: Array | None = None) -> Outcome:
        """Move ``v`` (nv,) in place to v+ under the contact ``impulse`` (K, 6) [N.s].

        Args:
            v: (nv,).
            impulse: (K, 6) [N.s, N.m.s].
            late: As in :class:`Contact`; the displacement then follows the velocity within the step.

        Returns:
            TAKEN or DIVERGED; ``progress.fastest`` is the largest entry of v+.
        """
        part, late = (_UNSPLIT, impulse) if late is None else (_WITHIN, late)
        return Outcome(finish(self._boxed, self._q, v, impulse, late, part, Attempt.GIVEN.value))

    def step(
        self, q: Array, v: Array, tau_joint: Array, contact: Contact, split: bool = True, flies: bool = True
    ) -> int:
        """Project, call the contact model, and :meth:`advance`; in one compiled call if the model is compiled.

        Args:
            q, v, tau_joint, contact: (nq,), (nv,), (nu,) [N.m], and the model.
            split: Whether impacts within the step are detected.
            flies: Whether flight is detected.

        Returns:
            An :class:`Outcome`: TAKEN, BAD_TORQUE, DIVERGED, IMPACT, FLIGHT or BODY_CONTACT. For IMPACT, ``change`` is
            the change of v in the step without the impact.
        """
        if contact is not self._contact:
            self._take(contact)
        part = _WITHIN if contact.late is not None else _WHOLE if split else _CLOSED if flies else _UNSPLIT
        # As _part, which would be one more call in every step.
        self.repeated = self.unresolved = False
        outcome = self._run(self._step, q, v, tau_joint, part, 1.0, _FIRST)
        if outcome >= _OTHER_LIMITS:
            outcome = self._search_limits(q, v, tau_joint, part, 1.0, outcome)
        if not flies:
            self.flight.aloft[0] = False
        return outcome

    def fly(self, q: Array, v: Array, tau_joint: Array) -> int:
        """Take a step in flight, after :meth:`step` returned FLIGHT.

        Args:
            q, v, tau_joint: As in :meth:`step`.

        Returns:
            TAKEN or DIVERGED.
        """
        fastest = self._airborne.fly(q, v, tau_joint)
        self.progress.fastest[0] = fastest
        return Outcome.TAKEN if fastest < SPEED_LIMIT else Outcome.DIVERGED

    def move(self, q: Array, v: Array) -> Array:
        """Return the configuration at the end of the last step: ``q`` (nq,) moved by ``displacement``.

        If no foot was in contact, the method corrects the configuration, and ``v`` (nv,) in place, so that the momentum
        is conserved.
        """
        after = pin.integrate(self._model, q, self.displacement)
        if self._closing is None:
            self.misplaced = False
        else:
            after = self.closed(after)
        if self._aloft[0] and not self._airborne.correct(after, v):
            self.misplaced = True
        return after

    def closed(self, q: Array) -> Array:
        """Return ``q`` (nq,), the configuration at the end of the last part of a step, with its loops closed."""
        if self._closing is None:
            self.misplaced = False
            return q
        q = self._closing.closed(q)
        self.misplaced = self._closing.failed
        return q

    def impact(self, q: Array, v: Array, tau_joint: Array) -> int:
        """Solve only the impact at ``q``, after :meth:`step` returned IMPACT; fill ``change`` and leave ``v``.

        Returns:
            An outcome, as :meth:`step`.
        """
        return self._part(q, v, tau_joint, Part.IMPACT.value)

    def rest(self, q: Array, v: Array, tau_joint: Array, left: float) -> int:
        """Solve the rest of a step, the fraction ``left``, after an :meth:`impact`; fill ``change`` and leave ``v``.

        Returns:
            An outcome, as :meth:`step`.
        """
        return self._part(q, v, tau_joint, Part.REST.value, left)

    def touch(self, q: Array, v: Array, tau_joint: Array, contact: Contact, coupling: Coupling) -> int:
        """Take an unsplit step with contacts other than those of the feet; joint limits are solved with them.

        Args:
            q, v, tau_joint, contact: As in :meth:`step`.
            coupling: Finds the other contacts, and solves them with the contact model.

        Returns:
            TAKEN, BAD_TORQUE or DIVERGED.
        """
        if contact is not self._contact:
            self._take(contact)
        part = _UNSPLIT if contact.late is None else _WITHIN
        runner = self._runner
        assert runner is not None
        if self._run(self._step, q, v, tau_joint, part, 1.0, _PROJECT) == _BAD_TORQUE:
            return _BAD_TORQUE
        self.bodies.near[0] = False
        self.repeated = self.unresolved = False
        coupling.find(q, v)
        attempt = _CONTACT

        def ask() -> Array:
            nonlocal attempt
            self._run(self._step, q, v, tau_joint, part, 1.0, attempt)
            attempt = _CONTACT_AGAIN
            return runner.impulse

        outcome = _OTHER_LIMITS
        while outcome == _OTHER_LIMITS:
            runner.impulse[:] = coupling.solve(ask)
            outcome = self._run(self._step, q, v, tau_joint, part, 1.0, _COUPLED)
            if outcome == _OTHER_LIMITS:
                coupling.add_stops(q)
        self.flight.aloft[0] = False
        return outcome

    def _part(self, q: Array, v: Array, tau_joint: Array, part: int, left: float = 1.0) -> int:
        """Solve a part of a step; return an :class:`Outcome`."""
        self.repeated = self.unresolved = False
        outcome = self._run(self._step, q, v, tau_joint, part, left, _FIRST)
        if outcome >= _OTHER_LIMITS:
            outcome = self._search_limits(q, v, tau_joint, part, left, outcome)
        return outcome

    def _search_limits(self, q: Array, v: Array, tau_joint: Array, part: int, left: float, outcome: int) -> int:
        """Repeat the first attempt at a part with other active joint limits, until one is consistent."""
        # If vertices may touch down, the state of the contact model was stored before it was called.
        self.repeated = outcome == _FIRST_LIMITS and not (part == _WHOLE and self.landing.lifted[0] > 0)
        held, run, step = self.stops.held, self._run, self._step
        # The keys are in the order of the attempts.
        tried: dict[bytes, None] = {}
        others: Iterator[Integers] | None = None
        while outcome in (_OTHER_LIMITS, _FIRST_LIMITS):
            limits = held.tobytes()
            # The same limits give the same solution. The search may cycle, because the contact changes in between.
            if others is None and (limits in tried or len(tried) >= TRIES):
                others = _sets_of(_last_sides(tried or (limits,), held.dtype))
            if others is not None and not self.unresolved:
                untried = next((stops for stops in others if stops.tobytes() not in tried), None)
                self.unresolved = untried is None
                if untried is not None:
                    held[:] = untried
                    limits = held.tobytes()
            tried[limits] = None
            outcome = run(step, q, v, tau_joint, part, left, _ALL_LIMITS if self.unresolved else _TRY_LIMITS)
        return outcome

    def take_back(self) -> None:
        """Restore the contact model's state before the last :meth:`step`, which returned IMPACT."""
        assert self._runner is not None
        self._runner.restore()

    def _take(self, contact: Contact, in_python: bool = False) -> None:
        """Use ``contact`` from now on, and compile or load its step; ``in_python`` forces a call from Python."""
        compiled: CompiledContact | None = None if in_python else getattr(contact, "compiled", None)
        self._contact = contact
        runner = _InPython(contact, self) if compiled is None else CompiledStep(compiled, self._arrays, self.change)
        self._runner, self._step, self._run = runner, runner.boxed, runner.run

    def compiled_step(self, contact: Contact) -> CompiledStep | None:
        """Return the compiled step with ``contact``, for other compiled code; None if the model is not compiled."""
        if contact is not self._contact:
            self._take(contact)
        return self._runner if isinstance(self._runner, CompiledStep) else None

    def compile_contact(self, contact: Contact) -> None:
        """Compile the kernel of ``contact`` alone, without the step."""
        compiled: CompiledContact | None = getattr(contact, "compiled", None)
        if compiled is not None:
            ready(solve_contact, box(compiled))

    def warm_up(self) -> None:
        """Load or compile the kernels of steps that :meth:`step` does not use: body contacts, limits and impacts."""
        self._airborne.ready()
        if self._runner is not None:
            self._runner.warm_up(self.change)

    def reset(self) -> None:
        """Reset the ground under the feet, the flag of flight, and the active joint limits."""
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
        """Return the arrays of :meth:`state` themselves, without a copy; they stay the same objects."""
        return list(self._kept().values())

    def state(self) -> dict[str, NDArray[Any]]:
        """Return a copy of everything that the next step depends on except q, v and the contact model."""
        return {name: array.copy() for name, array in self._kept().items()}

    def set_state(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore a state that :meth:`state` returned."""
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
        """Fill the poses of the bodies at ``q`` (nq,), ``tree.poses``."""
        place_joints(self._joints, q)


class CompiledStep:
    """Make attempts with a compiled contact model, in one call.

    Keep it as long as ``arrays`` are used: they contain the address of its contact model.

    Attributes:
        run: ``run(boxed, q, v, tau_joint, part, left, attempt)`` makes an attempt and returns its :class:`Outcome`.
        arrays, boxed: All arrays of a step, and their box, the first argument of ``run``.
        impulse: (K, 6) of the last attempt [N.s].
    """

    def __init__(self, contact: CompiledContact, arrays: StepArrays, vector: Array) -> None:
        self.impulse = contact.impulse
        # A model may have been made with another projection.
        self._contact = box(contact._replace(projection=arrays.projection))
        memory = contact.impulse, contact.late, contact.memory
        with announced(f"contact model {contact.solve.__name__}", 10, at_first=60):
            # The step comes first: another process may compile the contact model meanwhile.
            self.run: Callable[..., int] = ready(
                attempt_compiled,
                box(StepWithContact(arrays, NativeCall(0, 0), *memory)),
                vector,
                vector,
                vector,
                _WHOLE,
                1.0,
                _FIRST,
            )
            self.arrays = StepWithContact(arrays, native_call(solve_contact, self._contact), *memory)
            self.boxed = box(self.arrays)

    def restore(self) -> None:
        restore_contact(self.boxed)

    def warm_up(self, vector: Array) -> None:
        ready(restore_contact, self.boxed)


class _InPython:
    """Make attempts with a contact model in Python; the compiled code decides when to store and restore its state.

    Attributes:
        boxed, impulse: As in :class:`CompiledStep`.
    """

    def __init__(self, contact: Contact, dynamics: Dynamics) -> None:
        self._contact = contact
        self._projection, self._memory = dynamics.projection, dynamics.progress.memory.data
        self._state: dict[str, Any] = {}
        self.boxed = dynamics._boxed
        self.impulse: Array = np.zeros((len(dynamics.sole_origins), 6))

    def run(self, boxed: Any, q: Array, v: Array, tau_joint: Array, part: int, left: float, attempt: int) -> int:
        if attempt != Attempt.COUPLED:
            outcome = int(prepare(boxed, q, v, tau_joint, part, left, attempt))
            if outcome != Outcome.TAKEN or attempt == Attempt.PROJECT:
                return outcome
            self._use_memory()
            self.impulse = self._contact.solve(self._projection).impulse
            if attempt in (Attempt.CONTACT, Attempt.CONTACT_AGAIN):
                return outcome
        late = self._contact.late
        outcome = int(finish(boxed, q, v, self.impulse, self.impulse if late is None else late, part, attempt))
        self._use_memory()
        return outcome

    def _use_memory(self) -> None:
        if self._memory[0] == MemoryUse.STORE:
            self._state = self._contact.state()
        elif self._memory[0] == MemoryUse.RESTORE:
            self.restore()

    def restore(self) -> None:
        self._contact.set_state(self._state)

    def warm_up(self, vector: Array) -> None:
        ready(prepare, self.boxed, vector, vector, vector, _WITHIN, 1.0, _FIRST)
        ready(finish, self.boxed, vector, vector, self.impulse, self.impulse, _WITHIN, _FIRST)


def _last_sides(tried: Iterable[bytes], dtype: Any) -> Integers:
    """Return the side of each joint limit in the last of the ``tried`` sets in which it was active; 0 if in none."""
    sets = np.array([np.frombuffer(limits, dtype) for limits in tried])
    sides = np.zeros_like(sets[0])
    for limits in sets:
        sides[limits != 0] = limits[limits != 0]
    return sides


def _sets_of(sides: Integers) -> Iterator[Integers]:
    """Yield all sets of the joint limits that are not 0 in ``sides``, made of at most the first ``MANY`` of them."""
    limited = np.flatnonzero(sides)[:MANY]
    for chosen in itertools.product([True, False], repeat=len(limited)):
        stops = sides.copy()
        stops[limited] *= chosen
        yield stops


def _tree(robot: Robot, equations: Equations, physics_dt: float, n_rows: int) -> Tree:
    """Allocate the joint side of a step, for at most ``n_rows`` velocity constraints."""
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
