"""Simulator of one robot: joint torques in, observations out, without clock, threads or ROS."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from bipedsim.config import checked_seed
from bipedsim.contact import ContactModel, ContactResult, make_contact_model
from bipedsim.dynamics import Dynamics, Outcome
from bipedsim.errors import ConfigError, DivergenceError
from bipedsim.ground import Ground
from bipedsim.model import IDEAL, Robot, perturbed, read_hardware
from bipedsim.numerics import STEP_BUDGET, Array, announced
from bipedsim.objects import ObjectConfig
from bipedsim.plates import PlateConfig
from bipedsim.sim.actuators import Actuators
from bipedsim.sim.assembly import SimulatorConfig, assemble
from bipedsim.sim.checks import checked_state
from bipedsim.sim.gantry import Gantry, GantryConfig
from bipedsim.sim.height_scan import make_scan
from bipedsim.sim.io import SETPOINT, Asked, Command, Observation
from bipedsim.sim.monitors import Monitors
from bipedsim.sim.participant import Participant, Participants
from bipedsim.sim.pushes import Pushes
from bipedsim.sim.reactions import Reactions
from bipedsim.sim.sensor_suite import SensorSuite
from bipedsim.sim.snapshot import Snapshot, check_form, form_of
from bipedsim.sim.standing import placed
from bipedsim.sim.tick import Tick
from bipedsim.sim.truth import GroundTruth, ground_truth

if TYPE_CHECKING:
    from bipedsim.sim.force_plates import ForcePlates
    from bipedsim.sim.objects import Objects


def whole_ratio(control_dt: float, physics_dt: float) -> int:
    """Return control_dt / physics_dt as an integer.

    Raises:
        ConfigError: A period is not positive and finite, or the ratio is no integer; the message holds both.
    """
    for name, value in (("physics_dt", physics_dt), ("control_dt", control_dt)):
        if not (np.isfinite(value) and value > 0.0):
            raise ConfigError("s must be positive and finite", name, value)
    ratio = round(control_dt / physics_dt)
    if ratio < 1 or abs(ratio * physics_dt - control_dt) > 1e-9 * control_dt:
        raise ConfigError(
            f"s must be a whole multiple of physics_dt = {physics_dt} s (the ratio is "
            f"{control_dt / physics_dt:.6g}); choose for example physics_dt = {control_dt / max(ratio, 1):.12g}",
            "control_dt",
            control_dt,
        )
    return ratio


class Simulator:
    """Step one robot on the ground under joint torques.

    You can copy and pickle it. The copy continues from the same moment with the same bits, without monitors and
    callbacks.

    One step is semi-implicit on the Lie group: v+ follows from the projected dynamics and the contact impulses. Then q
    is integrated by h v+, or along the velocity profile if contact forces act within the step. In flight, the step uses
    the midpoint rule. The same inputs give the same bits.

    Args:
        robot: The robot.
        ground: The ground; flat at z = 0 by default.
        contact: Name in ``CONTACT_MODELS``.
        physics_dt: Step h [s].
        control_dt: Time that one :meth:`step` advances [s], a multiple of ``physics_dt``; one physics step by default.
        contact_params: Parameters of the contact model that differ from its defaults.
        hardware: Drives, joint limits, sensors and masses, see :func:`bipedsim.model.hardware.read_hardware`.
        seed: Seed of all noise; see :class:`bipedsim.sim.noise.Noise`.
        events: Whether impacts happen within a step, and flight conserves momentum (docs/contact_models.md).
        objects, gantry: Free rigid bodies (docs/objects.md), and a gantry that holds the robot at first.
        force_plates: Plates of a laboratory, in addition to those of the ground (docs/force_plates.md).
        height_scan: (S, 2) points of ``Observation.height_scan`` in the heading frame of the base [m]; none by default.

    Attributes:
        config: The arguments.
        robot: The robot that a controller knows.
        plant: The simulated robot, whose masses, reflected inertia and mounting of the IMU may differ.
        ground, physics_dt, control_dt, hardware: The arguments, with defaults filled in.
        q: (nq,) configuration, base position and quaternion x y z w first.
        v: (nv,) velocity, base linear and angular in the base frame first.
        seed, draw: Origin of all noise since the last reset: the seed, and the number of resets with it before.
        start: Configuration (nq,) and velocity (nv,) of the last reset.
        step_count: Physics steps since the last reset.
        dynamics, solver, stepper: Equations of motion, contact model, and the step that combines them.
        drives, sensors, tick: The drives, the sensors, and the sums over a control tick.
        participants: Everything that acts on, watches or records the physics steps, by name, in the order of action.
        on_physics_step: Called after every physics step with its contact result and the generalised force (nv,) of the
            pushes; the next step overwrites both. None by default.

    Raises:
        ConfigError: The periods do not fit, the seed is no integer of at least 0, or a parameter of contact or hardware
            is wrong.
        UnknownNameError: No such contact model, or no such preset of the hardware.
    """

    def __init__(  # noqa: PLR0913 -- independent options of the public constructor, nearly all with a default
        self,
        robot: Robot,
        ground: Ground | None = None,
        contact: str = "one_step",
        physics_dt: float = 1e-3,
        control_dt: float | None = None,
        contact_params: Mapping[str, Any] | None = None,
        hardware: str | Mapping[str, Any] = IDEAL,
        seed: int = 0,
        events: bool = True,
        objects: Sequence[ObjectConfig] = (),
        gantry: GantryConfig | None = None,
        force_plates: Sequence[PlateConfig] = (),
        height_scan: ArrayLike | None = None,
    ) -> None:
        params = dict(contact_params or {})
        additions = tuple(objects), gantry, tuple(force_plates), height_scan
        self.config = SimulatorConfig(
            robot, ground, contact, physics_dt, control_dt, params, hardware, seed, events, *additions
        )
        self.robot = robot
        self.ground = ground or Ground.flat()
        self.physics_dt = float(physics_dt)
        self.control_dt = self.physics_dt if control_dt is None else float(control_dt)
        n_steps = whole_ratio(self.control_dt, self.physics_dt)
        self.seed, self.draw = checked_seed(seed), -1
        self.hardware = read_hardware(hardware, robot)
        self.plant = perturbed(robot, self.hardware)
        self.drives = Actuators(self.plant, self.hardware, self.physics_dt)
        # The dynamics keep the array itself, which the drives rewrite at every step.
        plant = replace(self.plant, joint_damping=self.drives.damping)
        shapes = plant.shapes.shapes if self.hardware.body_contact else ()
        self.dynamics = Dynamics(plant, self.ground, self.physics_dt, self.hardware, shapes)
        self.solver: ContactModel = make_contact_model(contact, self.dynamics.projection, self.physics_dt, params)
        self.tick = Tick(self.solver.result, self.dynamics.acceleration, n_steps)
        placed = self.dynamics.equations.joints
        scan = make_scan(height_scan, robot, self.ground, self.hardware, self.control_dt)
        own = self.drives.effort, self.tick, placed, scan
        self.sensors = SensorSuite(plant, self.hardware, self.control_dt, seed, *own)
        self.stepper, own_participants = assemble(self, plant, events)
        self._set_participants(Participants(own_participants))
        self.on_physics_step: Callable[[ContactResult, Array], None] | None = None
        self.reset()

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = {field.name: getattr(self.config, field.name) for field in fields(self.config)}
        return _copy_of, (type(self), arguments, self.start, self.snapshot())

    def add(self, participant: Participant) -> None:
        """Add a participant at the end of the list, from the next step on; it is reset first.

        Raises:
            ConfigError: It has no name, or a participant has this name already.
        """
        extended = self.participants.including(participant)
        participant.reset(self)
        self._set_participants(extended)

    def remove(self, participant: Participant) -> None:
        """Remove a participant that :meth:`add` added.

        Raises:
            ConfigError: It is part of every simulation like this one.
        """
        self._set_participants(self.participants.without(participant))

    def _set_participants(self, participants: Participants) -> None:
        self.participants = participants
        self._hooks = participants.hooks
        self._form: Snapshot | None = None
        self.pushes.others_add = any(participant.adds_force for participant in participants.values())
        # The next step starts from 0, also if a participant that added forces is gone.
        self.dynamics.push[:] = 0.0

    @property
    def t(self) -> float:
        """Time since reset [s], rounded to whole nanoseconds like a ROS stamp."""
        return round(self.step_count * self.physics_dt * 1e9) / 1e9

    @property
    def contact(self) -> ContactResult:
        """Ground reactions over the last control tick; the next one overwrites them."""
        return self.tick.result

    @property
    def effort(self) -> Array:
        """Torque of the drives (nu,) in the last physics step [N.m]; always the same array."""
        return self.drives.effort

    @property
    def command(self) -> Asked:
        """Command of the last control tick; the next one overwrites it."""
        return self.drives.asked

    @property
    def objects(self) -> Objects | None:
        """The free rigid bodies; None without any."""
        return self.participants.get("objects")

    @property
    def gantry(self) -> Gantry | None:
        """The gantry; None without one."""
        return self.participants.get("gantry")

    @property
    def force_plates(self) -> ForcePlates | None:
        """The force plates; None without any."""
        return self.participants.get("force_plates")

    @property
    def reactions(self) -> Reactions:
        """Impulses of joint limits, closed chains and body contacts over the last control tick."""
        return self.participants["reactions"]

    @property
    def stop_impulse(self) -> Array:
        """Impulses (nv,) of the joint limits over the last control tick; see :class:`Reactions`."""
        return self.reactions.stop_impulse

    @property
    def loop_impulse(self) -> Array:
        """Impulses (L, 6) of the closed chains over the last control tick; see :class:`Reactions`."""
        return self.reactions.loop_impulse

    @property
    def body_impulse(self) -> Array:
        """Impulses (joints, 3) of contacts, of soles only with risers of a field; see :class:`Reactions`."""
        return self.reactions.body_impulse

    @property
    def pushes(self) -> Pushes:
        """The external wrenches."""
        return self.participants["pushes"]

    @property
    def monitors(self) -> Monitors | None:
        """The monitors; None before :meth:`watch`."""
        return self.participants.get("monitors")

    @property
    def operations(self) -> int:
        """Operations of the solvers in the last physics step, of ``STEP_BUDGET`` in :mod:`bipedsim.numerics`."""
        return STEP_BUDGET - int(self.dynamics.projection.budget[0])

    def check_start(self, q: Array | None = None, v: Array | None = None) -> tuple[Array, Array]:
        """Return the state (nq,), (nv,) in which :meth:`reset` with (q, v) would start; nothing changes.

        Raises:
            ConfigError: ``q`` or ``v`` has the wrong size or is not finite, the quaternion is no rotation, a joint is
                beyond its limit, a closed chain is open, bodies overlap, or there is no ground at the origin.
        """
        if q is None:
            nominal = self.robot.q_nominal
            q = placed(self, nominal) if self.robot.free_flyer else nominal
        q, v = checked_state(self.robot, self.dynamics, q, np.zeros(self.robot.model.nv) if v is None else v)
        for participant in self.participants.values():
            participant.check_start(self, q, v)
        return q.copy(), v.copy()

    def closed_at(self, q: Array) -> Array:
        """Return ``q`` (nq,) with rotations of length 1 and closed chains closed."""
        return self.robot.closed(pin.normalize(self.robot.model, q))

    def reset(self, q: Array | None = None, v: Array | None = None, seed: int | None = None) -> Observation:
        """Go back to t = 0, standing on the ground at the origin or at (q, v), and return the first observation.

        Every reset draws new biases and new noise, all from the seed. With ``seed``, the run is that of a new simulator
        with this seed.

        Raises:
            ConfigError: The seed is no integer of at least 0, or :meth:`check_start` refuses (q, v); nothing has
                changed.
        """
        seed, draw = (self.seed, self.draw + 1) if seed is None else (checked_seed(seed), 0)
        self.start = self.check_start(q, v)
        self.seed, self.draw = seed, draw
        self.q, self.v = self.closed_at(self.start[0]), self.start[1].copy()
        self.step_count = 0
        self._diverged = ""
        self.solver.reset()
        self.dynamics.reset()
        for participant in self.participants.values():
            participant.reset(self)
        return self.sensors.first(self)

    def step(self, command: Array | Command) -> Observation:
        """Advance by ``control_dt`` under a constant command and return the observation after it.

        Args:
            command: Joint torques (nu,) [N.m] in the order of ``robot.joint_names``, which the caller clips to the
                limits of the drives; or an impedance, which the drives keep within the effort limits at every physics
                step: a :class:`Command`, or packed (6, nu) as :meth:`Command.packed` does.

        Returns:
            The observation; the next step overwrites it.

        Raises:
            ConfigError: The command has a wrong size, is not finite, or has a negative limit; nothing has changed.
            DivergenceError: The state would leave the finite numbers or any sane speed; q, v and t stay at the last
                good state, and every further step raises until :meth:`reset` or :meth:`restore`.
        """
        self.advance(command)
        return self.sensors.measure(self)

    def advance(self, command: Array | Command) -> ContactResult:
        """Advance as :meth:`step` does, without measuring, for users of q, v and the contact alone.

        Returns:
            Ground reactions over this tick; the next one overwrites them.
        """
        if self._diverged:
            raise DivergenceError(self._diverged, self.t, self.q, self.v)
        self.drives.take(command)
        # The command is valid from here on, so participants may change their state.
        begin_tick, before_step, judge, after_step = self._hooks
        for begin in begin_tick:
            begin(self)
        stepper, tick, torque = self.stepper, self.tick, self.drives.torque
        for _ in range(tick.n_steps):
            for before in before_step:
                before(self)
            outcome = stepper.take(self.q, self.v, torque, self._judge if judge else None)
            if outcome:
                self.refuse(_reason_of(outcome, float(self.dynamics.progress.fastest[0])))
            self.q = stepper.move(self.q, self.v)
            for after in after_step:
                after(self)
            self.step_count += 1
            if self.on_physics_step is not None:
                self.on_physics_step(self.solver.result, self.dynamics.push)
        return tick.result

    def _judge(self, q: Array, v: Array, share: float) -> None:
        for judge in self._hooks.judge:
            judge(self, q, v, share)

    def watch(self, report: Callable[[str, str, dict[str, NDArray[Any]]], None]) -> Monitors:
        """Check every step from now on, see :mod:`bipedsim.sim.monitors`; this takes one to two microseconds a step.

        Args:
            report: Called once for each kind of violation since the last reset, with the name of the monitor, a
                description, and the start of the step: ``q``, ``v``, ``torque``, ``push``, ``damping``, and ``held``,
                the joint limits that were active before it.
        """
        if self.monitors is not None:
            self.remove(self.monitors)
        monitors = Monitors(self.plant, self.dynamics, self.solver, self.drives.torque, self.reactions.touching, report)
        self.add(monitors)
        return monitors

    def refuse(self, reason: str) -> NoReturn:
        """Raise DivergenceError for the step that is being taken; q and v must be those from before it."""
        self._diverged = reason
        raise DivergenceError(self._diverged, self.t, self.q, self.v)

    def push(
        self,
        wrench_world: Array,
        body: str | None = None,
        duration: float = np.inf,
        after: float = 0.0,
        point: Array | None = None,
        ramp: float = 0.0,
    ) -> None:
        """Apply an external wrench on a body for a time; see :meth:`bipedsim.sim.Pushes.check`.

        A push of the robot ends its other pushes when it begins, and so does a push of an object. In a step that it
        covers in part, it acts with that share, so that its impulse is right.

        Raises:
            UnknownNameError: The robot has no such frame.
            ConfigError: A value is not finite, too large, or of the wrong size or sign; nothing has changed.
        """
        self.pushes.add(self, np.asarray(wrench_world, dtype=np.float64), body, duration, after, point, ramp)

    def hang(self, action: str) -> None:
        """Start one of :data:`bipedsim.sim.GANTRY_ACTIONS` with the next step.

        Raises:
            UnknownNameError: No such action.
            ConfigError: There is no gantry, or it cannot do that now.
        """
        if self.gantry is None:
            raise ConfigError("the run has none. Start with one: --scenario hang", "gantry")
        self.gantry.act(action, self.q)

    def snapshot(self) -> Snapshot:
        """Return everything that the future depends on; :meth:`restore` repeats it bit by bit.

        Raises:
            DivergenceError: The last step was refused: half of it is in the state of the contact model.
        """
        if self._diverged:
            raise DivergenceError(self._diverged, self.t, self.q, self.v)
        return self._snapshot()

    def _snapshot(self) -> Snapshot:
        own = self.step_count, self.seed, self.draw, self.q.copy(), self.v.copy()
        return Snapshot(*own, self.solver.state(), self.dynamics.state(), self.participants.states())

    def restore(self, snapshot: Snapshot) -> Observation:
        """Go back to a snapshot of this simulator and return the observation of that moment.

        Raises:
            ConfigError: It is of another simulation, the state is not finite, a joint is beyond its limit, or a closed
                chain is open; nothing has changed.
        """
        checked_state(self.robot, self.dynamics, snapshot.q, snapshot.v)
        if self._form is None:
            self._form = form_of(self._snapshot(), self.participants)
        check_form(self._form, snapshot)
        for name, participant in self.participants.items():
            participant.check_state(snapshot.participants.get(name))
        self.step_count, self.seed, self.draw = snapshot.steps, snapshot.seed, snapshot.draw
        self.q, self.v = snapshot.q.copy(), snapshot.v.copy()
        self._diverged = ""
        self.solver.set_state(snapshot.contact)
        self.dynamics.set_state(snapshot.footing)
        for name, participant in self.participants.items():
            participant.set_state(snapshot.participants.get(name), self)
        return self.sensors.observation

    def ground_truth(self) -> GroundTruth:
        """Return base and sole poses, the overall CoP, and forces that no robot can measure."""
        return ground_truth(self, self.sensors, self.reactions, self.gantry)

    def warm_up(self, loops: bool = False, events: bool = True) -> None:
        """Load or compile all kernels, so that no real step waits for that; the state is unchanged.

        It takes a step without the participants that were added: a scheduled push or a logger must not see that step.

        Args:
            loops: Whether to include the kernels of drives that close their loops.
            events: Whether to include those of landings, falls and objects, which many runs without a clock never need.
        """
        before, listener, hooks = self.snapshot(), self.on_physics_step, self._hooks
        self.on_physics_step, self._hooks = None, self.participants.own_hooks
        try:
            self.step(np.zeros((len(SETPOINT), self.robot.nu)) if loops else np.zeros(self.robot.nu))
            self.ground_truth()
            if events:
                self._warm_up_events()
        finally:
            self.on_physics_step, self._hooks = listener, hooks
            self.restore(before)

    def _warm_up_events(self) -> None:
        with announced_events():
            # A second process that compiles leaves these out: it would have to wait for the kernels of the step.
            self.dynamics.warm_up()
            self.stepper.warm_up(self.q, self.v)
            for participant in self.participants.values():
                participant.warm_up()


def _reason_of(outcome: int, fastest: float) -> str:
    """Return why a step was refused; ``fastest`` is the largest velocity at its end [m/s], [rad/s]."""
    if outcome == Outcome.BAD_TORQUE:
        return "the torque of the actuators is not finite"
    return f"a velocity reached {fastest:.3g}" if np.isfinite(fastest) else "a velocity is not finite"


def announced_events() -> AbstractContextManager[None]:
    """Announce the kernels of landings, falls and objects if one of them must be compiled within the context."""
    return announced("landings, falls and objects", 5, at_first=30)


def _copy_of(
    cls: type[Simulator], arguments: dict[str, Any], start: tuple[Array, Array], snapshot: Snapshot
) -> Simulator:
    """Return a simulator with these arguments, in the state ``snapshot``, without participants that were added."""
    sim = cls(**arguments)
    states = {name: state for name, state in snapshot.participants.items() if name in sim.participants}
    sim.restore(replace(snapshot, participants=states))
    sim.start = start
    return sim
