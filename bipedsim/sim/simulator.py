"""The simulator: joint torques in, observations out. No clock, no threads, no ROS."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from bipedsim.config import checked_seed
from bipedsim.contact import ContactModel, ContactResult, make_contact_model
from bipedsim.dynamics import SPEED_LIMIT, Dynamics
from bipedsim.errors import ConfigError, DivergenceError, UnknownNameError, shown
from bipedsim.ground import Ground
from bipedsim.model import IDEAL, ActuatorParams, NoiseParams, Robot, differs, drivers, perturbed, read_hardware
from bipedsim.numerics import STEP_BUDGET, Array, announced, ready
from bipedsim.objects import ObjectConfig
from bipedsim.plates import PlateConfig
from bipedsim.sim.actuators import Actuators, take_finite
from bipedsim.sim.gantry import Gantry, GantryConfig
from bipedsim.sim.io import LARGEST_PUSH, LIMIT, SETPOINT, Asked, Command, Observation
from bipedsim.sim.monitors import Monitors
from bipedsim.sim.noise import Noise
from bipedsim.sim.sensors import Sensors
from bipedsim.sim.steps import Steps
from bipedsim.sim.tick import Tick
from bipedsim.touch import Touching

if TYPE_CHECKING:
    from bipedsim.sim.force_plates import ForcePlates
    from bipedsim.sim.objects import Objects

BEYOND_STOP = 1e-6
"""How far beyond its limit [rad] a joint may begin that has a stop: postures are rounded."""


BODY_IN_GROUND = 0.01
"""How deep [m] a body may begin in the ground, or in another one: it is taken out of it, slowly."""


class _Push(NamedTuple):
    """A wrench (6,) in world axes at the origin of a frame, from ``begin`` to ``end``, counted in physics steps.

    The frame -1 - k is that of object k.
    """

    frame: int
    wrench: Array
    begin: float
    end: float


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Everything that the future of a simulation depends on; see :meth:`Simulator.snapshot`."""

    steps: int
    drawn: tuple[int, int]
    q: Array
    v: Array
    observation: Observation
    effort: Array
    pushes: tuple[_Push, ...]
    contact: dict[str, Any]
    footing: dict[str, NDArray[Any]]
    tick: ContactResult | None
    actuators: dict[str, NDArray[Any]] | None = None
    noise: dict[str, Any] | None = None
    stop_impulse: Array | None = None
    loop_impulse: Array | None = None
    touching: dict[str, Any] | None = None
    body_impulse: Array | None = None
    objects: dict[str, NDArray[Any]] | None = None
    gantry: dict[str, Any] | None = None
    force_plates: dict[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class GroundTruth:
    """What no robot measures, for plots and tests.

    Attributes:
        pose_world_base: (7,) position [m] and quaternion x y z w of the base in the world; that of the world where the
            root is fixed.
        twist_base: (6,) linear [m/s] and angular [rad/s] velocity, in the base frame.
        cop_world: (3,) centre of pressure of all feet [m], NaN in the air.
        pose_world_sole: (K, 7) the same as for the base, per sole.
        base_contact: (3,) force on the body of the root in the world, and on what no drive moves against it, soles
            aside [N]; NaN while nothing touches any body.
        link_contact: (nu, 3) the same on the body that each actuated joint moves.
        stop_torque: (nu,) torque of the stop of each actuated joint on it [N.m]; NaN while none of them is at its stop.
        gantry_force: (3,) force of the gantry on the trunk in the world [N], NaN once it has let go; None without.
    """

    pose_world_base: Array
    twist_base: Array
    cop_world: Array
    pose_world_sole: Array
    base_contact: Array
    link_contact: Array
    stop_torque: Array
    gantry_force: Array | None = None


def whole_ratio(control_dt: float, physics_dt: float) -> int:
    """Return control_dt / physics_dt as an integer.

    Raises:
        ConfigError: A period is not positive and finite, or the ratio is no integer; the message holds both.
    """
    for name, value in (("physics_dt", physics_dt), ("control_dt", control_dt)):
        if not (np.isfinite(value) and value > 0.0):
            raise ConfigError(f"{name} = {value} s must be positive and finite")
    ratio = round(control_dt / physics_dt)
    if ratio < 1 or abs(ratio * physics_dt - control_dt) > 1e-9 * control_dt:
        raise ConfigError(
            f"control_dt = {control_dt} s must be a whole multiple of physics_dt = {physics_dt} s (the ratio is "
            f"{control_dt / physics_dt:.6g}); choose for example physics_dt = {control_dt / max(ratio, 1):.12g}"
        )
    return ratio


class Simulator:
    """Steps one robot on the ground under joint torques.

    It may be copied and pickled: the copy goes on from this moment with the same bits, without monitors and callbacks.

    One step is semi-implicit on the Lie group: v+ from the projected dynamics and the contact impulses, then q+ = q
    integrated by h v+, or by the course of the velocity where contact forces act within the step. In flight it is the
    midpoint rule. Same inputs give the same bits.

    Args:
        robot: What is simulated.
        ground: What it stands on; flat at z = 0 by default.
        contact: Name in ``CONTACT_MODELS``.
        physics_dt: Step h [s].
        control_dt: Time that one :meth:`step` advances [s], a whole multiple of ``physics_dt``; one physics step by
            default.
        contact_params: Parameters of the contact model that differ from its defaults.
        hardware: What drives, stops, sensors and masses are like, see :func:`bipedsim.model.hardware.read_hardware`;
            ideal by default, which adds nothing to the simulation and costs nothing.
        seed: Of all noise; see :class:`bipedsim.sim.noise.Noise`.
        events: Whether landings happen within a step, and flight keeps its momentum (docs/contact_models.md); without,
            it is plain time stepping, as papers have it.
        objects: Free rigid bodies beside the robot (docs/objects.md).
        gantry: What holds the robot at first, where :meth:`reset` puts it; nothing by default.
        force_plates: Of a laboratory, beside those of the ground (docs/force_plates.md).

    Attributes:
        robot: What a controller knows.
        plant: What is simulated: the robot, or one whose masses differ from it.
        contact_model, contact_params: As they were given.
        hardware: Parameters of the hardware.
        q: (nq,) configuration, base position and quaternion x y z w first.
        v: (nv,) velocity, base linear and angular in the base frame first.
        effort: (nu,) torque of the drives in the last physics step [N.m]; always the same array.
        stop_impulse: (nv,) impulses of the stops on their joints over the last control tick, of passive joints too
            [N.m.s]; always the same array.
        loop_impulse: (L, 6) impulses of the loops on the bodies of their second frames over the last control tick: of
            force [N.s] and torque [N.m.s] at that frame, along the axes of the first one; always the same array.
        body_impulse: (joints, 3) impulse on the body that each joint of the model moves, over the last control tick, of
            all that touches it but the ground under its soles, in the world [N.s]; always the same array.
        touching: All contacts but those of the soles; None where these alone touch.
        contact: What the ground did over the last control tick; of several physics steps, see
            :class:`bipedsim.sim.tick.Tick`.
        on_physics_step: Called after every physics step, of which a control tick may hold several, with its contact
            result and the generalised force (nv,) of the push; both are overwritten by the next step. None by default.
        command: What the drives were asked for in the last control tick; overwritten by the next one.
        on_push: Called with what :meth:`push` is given, when it is accepted. None by default.
        events: As it was given.
        seed, draw: What all noise since the last reset follows from: the seed, and how many resets it was set before.
        start: Configuration (nq,) and velocity (nv,) that the last reset was given: with the same, it begins with the
            same bits.
        monitors: What judges every step, once :meth:`watch` was called.
        objects: The free rigid bodies; None without any.
        gantry: The gantry; None without.
        force_plates: What they measure; None without any.

    Raises:
        ConfigError: The periods do not fit, the seed is no integer of at least 0, or a parameter of contact or hardware
            is wrong.
        UnknownNameError: No such contact model, or no such preset of the hardware.
    """

    def __init__(
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
    ) -> None:
        contact_params = dict(contact_params or {})
        self._made_of = (
            *(robot, ground, contact, physics_dt, control_dt, contact_params, hardware, seed, events),
            *(tuple(objects), gantry, tuple(force_plates)),
        )
        self.robot = robot
        self.ground = ground or Ground.flat()
        self.contact_model = contact
        self.contact_params = contact_params
        self.physics_dt = float(physics_dt)
        self.control_dt = self.physics_dt if control_dt is None else float(control_dt)
        self._substeps = whole_ratio(self.control_dt, self.physics_dt)
        self.events = events
        self.seed, self.draw = checked_seed(seed), -1
        self.hardware = read_hardware(hardware, robot)
        self.plant = plant = perturbed(robot, self.hardware)
        self._model = plant.model
        # Ideal drives give what they are asked for: until one closes its loop there is nothing to do.
        self._imperfect = differs(self.hardware, ActuatorParams)
        self._actuators = Actuators(plant, self.hardware, self.physics_dt, ideal=not self._imperfect)
        # The dynamics keep the array itself, which the actuators rewrite at every step.
        plant = replace(plant, joint_damping=self._actuators.damping)
        self._damping = plant.joint_damping
        shapes = plant.shapes.shapes if self.hardware.body_contact else ()
        self._dynamics = Dynamics(plant, self.ground, self.physics_dt, self.hardware, shapes)
        self._contact: ContactModel = make_contact_model(
            contact, self._dynamics.projection, self.physics_dt, contact_params
        )
        self.objects: Objects | None = None
        if objects:
            # What finds their contacts takes a while to load.
            from bipedsim.sim.objects import Objects

            friction = self.hardware.body_friction if shapes else None
            budget = self._dynamics.projection.budget
            self.objects = Objects(objects, robot, self.ground, self.physics_dt, friction, budget)
        self.gantry = None if gantry is None else Gantry(gantry, robot, self.physics_dt, self._substeps)
        self.touching: Touching | None = None
        if shapes:
            body = self.hardware.body_friction, self.hardware.body_restitution
            sides = None if self.objects is None else self.objects.sides
            self.touching = Touching(plant, self._dynamics, self._contact, self.ground, *body, sides)
            if self.objects is not None:
                self.objects.join(self.touching)
        self._stepping = Steps(self._model, self._dynamics, self._contact, self.physics_dt, events, self.touching)
        self.force_plates: ForcePlates | None = None
        plates = (*self.ground.force_plates, *force_plates)
        if plates:
            from bipedsim.sim.force_plates import ForcePlates

            who = self._dynamics, self._contact.result, self.touching, self.objects
            self.force_plates = ForcePlates(plates, self.ground, *who, self.physics_dt, self.control_dt)
        self._tick = Tick(self._contact.result, self._substeps) if self._substeps > 1 else None
        self._sensors = Sensors(plant)
        self._noise: Noise | None = None
        if differs(self.hardware, NoiseParams):
            self._noise = Noise(self.hardware, self._sensors.observation, self.control_dt, seed)
        nv = self._model.nv
        self.q: Array = robot.q_nominal.copy()
        self.v: Array = np.zeros(nv)
        self.effort, self._torque = self._actuators.effort, self._actuators.torque
        self.command = Asked(self._actuators.command)
        self._closed = False
        self.stop_impulse: Array = np.zeros(nv)
        self.loop_impulse: Array = np.zeros((len(robot.loops), 6))
        # Of a weld the turn comes first in the dynamics.
        entries = [6 * k + (i + loop.size - 3) % 6 for k, loop in enumerate(robot.loops) for i in range(loop.size)]
        self._loop_entries = np.array(entries, dtype=np.intp)
        self._chained = len(entries) > 0
        self.body_impulse: Array = np.zeros((self._model.njoints, 3))
        self._floats = robot.free_flyer
        self._driven = drivers(robot.model, robot.joint_names)
        self._contact_forces = forces = np.zeros((robot.nu + 1, 3))
        self._contacts_told = forces[0], forces[1:]
        self._stop_torques = np.zeros(robot.nu)
        self._touched = False
        self._stopped = False
        self._acceleration = np.zeros(nv)
        self._asked, self._shape = self._actuators.command, self._torque.shape
        self._take = ready(take_finite, self._asked, self._asked)
        self._form: dict[str, Any] = {}
        self._steps = 0
        self._pushes: tuple[_Push, ...] = ()
        self._diverged = ""
        self._moved = False
        self._push_data = self._model.createData()
        self.on_physics_step: Callable[[ContactResult, Array], None] | None = None
        self.on_push: Callable[[Array, str, float, float], None] | None = None
        self.monitors: Monitors | None = None
        self._report: Callable[[str, str, dict[str, NDArray[Any]]], None] | None = None
        self.reset()

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_again, (type(self), self._made_of, self.start, self.snapshot())

    @property
    def t(self) -> float:
        """Time since reset [s], that of a stamp in whole nanoseconds: the same with and without ROS."""
        return round(self._steps * self.physics_dt * 1e9) / 1e9

    @property
    def contact(self) -> ContactResult:
        """What the ground did over the last control tick; overwritten by the next one."""
        return self._contact.result if self._tick is None else self._tick.result

    @property
    def operations(self) -> int:
        """What the solvers of the last physics step took of its budget, ``STEP_BUDGET`` of :mod:`bipedsim.numerics`."""
        return STEP_BUDGET - int(self._dynamics.projection.budget[0])

    @property
    def arrived(self) -> float:
        """After which share of the last physics step a vertex landed or a joint met its stop in it; 0 without."""
        return self._stepping.landed

    def check_start(self, q: Array | None = None, v: Array | None = None) -> tuple[Array, Array]:
        """Return the state (nq,), (nv,) that :meth:`reset` would be given by (q, v); nothing changes.

        Raises:
            ConfigError: ``q`` or ``v`` has the wrong size or is not finite, the quaternion is none, a joint is beyond
                its stop, a loop is open, something begins in something else, or there is no ground at the origin to
                stand on.
        """
        if q is None:
            nominal = self.robot.q_nominal
            q = self.ground.place(nominal) if self.robot.free_flyer else nominal
        q, v = self._checked_state(q, np.zeros(self._model.nv) if v is None else v)
        if self.touching is not None:
            self._check_bodies(q)
        if self.objects is not None:
            self.objects.check(self._closed_at(q), v)
        return q.copy(), v.copy()

    def _checked_state(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Return (q, v) as arrays; raise ConfigError where the robot cannot be in this state by itself."""
        q = self._checked("q", q, self._model.nq)
        v = self._checked("v", v, self._model.nv)
        if self.robot.free_flyer and not np.linalg.norm(q[3:7]) > 0.5:
            raise ConfigError(f"q[3:7] = {q[3:7].tolist()} is no rotation: a quaternion x y z w of length 1 is needed")
        self._check_limits(q)
        self.robot.check_closed(q)
        return q, v

    def _closed_at(self, q: Array) -> Array:
        """Return ``q`` (nq,) with rotations of length 1 and loops closed."""
        return self.robot.closed(pin.normalize(self._model, q))

    def reset(self, q: Array | None = None, v: Array | None = None, seed: int | None = None) -> Observation:
        """Go back to t = 0, standing on the ground at the origin or at (q, v), and return the first observation.

        Every reset draws new biases and new noise, all from the seed; with ``seed`` as a new simulator of this seed.

        Raises:
            ConfigError: The seed is no integer of at least 0, or :meth:`check_start` refuses (q, v); nothing has
                changed.
        """
        drawn = (self.seed, self.draw + 1) if seed is None else (checked_seed(seed), 0)
        self.start = self.check_start(q, v)
        self.seed, self.draw = drawn
        self.q, self.v = self._closed_at(self.start[0]), self.start[1].copy()
        self._steps = 0
        self.stop_impulse[:] = self.body_impulse[:] = 0.0
        self.loop_impulse[:] = 0.0
        self._pushes = ()
        self._dynamics.push[:] = 0.0
        self._diverged = ""
        if self.objects is not None:
            self.objects.world.reset()
        self._contact.reset()
        self._dynamics.reset()
        if self.touching is not None:
            self.touching.reset()
        if self._tick is not None:
            self._tick.reset()
        self._actuators.reset(self.v)
        self._loops_closed()
        if self._noise is not None:
            self._noise.reset(seed)
        if self.gantry is not None:
            self.gantry.reset(self.q)
        if self.force_plates is not None:
            self.force_plates.amplifiers.reset(self.seed, self.draw)
        self._moved = False
        if self.monitors is not None:
            self.monitors.restart(self.v)
        return self._measure(np.zeros_like(self.v), first=True)

    def step(self, command: Array | Command) -> Observation:
        """Advance by ``control_dt`` under a constant command and return the observation after it.

        Args:
            command: Joint torques (nu,) [N.m] in the order of ``robot.joint_names``, which the caller clips to what the
                drives can give; or an impedance, which the drives keep within the effort limits at every physics step:
                a :class:`Command`, or packed (6, nu) as :meth:`Command.packed` does.

        Returns:
            The observation; it is overwritten by the next step.

        Raises:
            ConfigError: Wrong size, or something of the command is not finite, or a limit is negative; nothing has
                changed.
            DivergenceError: The state would leave the finite numbers or any sane speed; q, v and t stay at the last
                good state, and every further step raises until :meth:`reset` or :meth:`restore`.
        """
        self.advance(command)
        self._moved = False
        acceleration = self._dynamics.acceleration if self._tick is None else self._acceleration
        return self._measure(acceleration)

    def _measure(self, acceleration: Array, first: bool = False) -> Observation:
        ideal = self._sensors.measure(self.t, self.q, self.v, acceleration, self.effort, self.contact)
        return ideal if self._noise is None else self._noise.measure(first)

    def advance(self, command: Array | Command) -> ContactResult:
        """Advance as :meth:`step` does, but measure nothing: for those who look at q, v and the contact alone.

        Returns:
            What the ground did over this tick; it is overwritten by the next one.
        """
        if self._diverged:
            raise DivergenceError(self._diverged, self.t, self.q, self.v)
        # Nearly all that comes is an array of numbers.
        if type(command) is not np.ndarray or command.dtype is not _REAL:
            if isinstance(command, Command):
                command = command.packed(self.plant.effort_limit) if command.closes_loop else command.tau_joint
            command = _numbers("command", command)
        if self._closed or command.shape != self._shape:
            self._follow(command)
        elif not self._take(command if command.flags.c_contiguous else command.copy(), self._asked):
            self._checked("tau_joint", command, self.robot.nu)
        # From here on nothing of the command is refused.
        self._moved = True
        if self._stopped or self._touched:
            self._forget_others()
        if self.gantry is not None:
            self.gantry.begin_tick()
        if self.force_plates is not None:
            self.force_plates.amplifiers.begin()
        if self._tick is not None:
            return self._advance_tick(self._tick)
        self._physics_step()
        return self._contact.result

    def _follow(self, asked: Array) -> None:
        """Hand the drives an impedance (6, nu), or torques (nu,) once there was one."""
        if asked.shape != (len(SETPOINT), self.robot.nu):
            self._actuators.follow_torque(self._checked("tau_joint", asked, self.robot.nu))
        elif not self._actuators.follow(asked):
            for name, row in zip(SETPOINT[:LIMIT], asked, strict=False):
                self._checked(f"command: {name}", row, self.robot.nu)
            raise ConfigError(f"command: limit = {asked[LIMIT].tolist()} must be at least 0 for every joint")
        if not self._closed:
            self._loops_closed()

    def _loops_closed(self) -> None:
        """Take note of whether the drives close their loops."""
        self._closed = self._actuators.closed
        self.command.setpoint = self._actuators.newest.T if self._closed else None

    def _advance_tick(self, tick: Tick) -> ContactResult:
        tick.begin()
        self._acceleration[:] = 0.0
        for _ in range(self._substeps):
            self._physics_step()
            tick.add()
            self._acceleration += self._dynamics.acceleration
        self._acceleration /= self._substeps
        tick.end()
        return tick.result

    def _physics_step(self) -> None:
        dynamics = self._dynamics
        if self._pushes:
            dynamics.push[:] = self._push_torque()
        elif self.gantry is not None:
            dynamics.push[:] = 0.0
        if self.gantry is not None:
            self.gantry.pull(self.q, self.v, dynamics.push)
        if self._imperfect or self._closed:
            self._actuators.drive(self.q, self.v)
        objects, stepping = self.objects, self._stepping
        if objects is not None:
            objects.begin(self.q, self.v)
        fastest = stepping.take(self.q, self.v, self._torque, self._judge if self.monitors else None)
        if not 0.0 <= fastest < SPEED_LIMIT:
            self._refuse(fastest)
        q = stepping.move(self.q, self.v)
        if objects is not None:
            refused = objects.end()
            if refused:
                self.v[:] = objects.robot_v
                self._diverge(refused)
            if objects.unresolved:
                stepping.count_unresolved()
        self.q = q
        if stepping.stopped:
            self._add_stops()
        if stepping.touched:
            assert self.touching is not None
            self._touched = True
            self.touching.add_forces(self.body_impulse)
        if self.monitors is not None and self._stepping.unseen:
            self.monitors.go_on(self.v)
        if self.force_plates is not None:
            self.force_plates.step(stepping.landed, stepping.touched)
        self._steps += 1
        if self.on_physics_step is not None:
            self.on_physics_step(self._contact.result, dynamics.push)

    def _forget_others(self) -> None:
        """Forget what stops, loops and bodies did in the last control tick."""
        self._stopped = self._touched = False
        self.stop_impulse[:] = 0.0
        self.loop_impulse[:] = 0.0
        self.body_impulse[:] = 0.0

    def _add_stops(self) -> None:
        """Take in what stops and loops did in a physics step."""
        self._stopped = True
        self.stop_impulse[self._dynamics.stops.idx_v] += self._stepping.stop_impulse
        if self._chained:
            self.loop_impulse.flat[self._loop_entries] += self._stepping.loop_impulse

    def watch(self, report: Callable[[str, str, dict[str, NDArray[Any]]], None]) -> Monitors:
        """Have every step judged from now on, see :mod:`bipedsim.sim.monitors`; costs one to two microseconds a step.

        Args:
            report: Called once for each kind of violation since the last reset, with the name of the monitor, what is
                to be said, and what the step began with: ``q``, ``v``, ``torque``, ``push``, ``damping``, and ``held``,
                which stops carried before it.
        """
        self._report = report
        self.monitors = Monitors(self.plant, self._dynamics, self._contact, self._torque, self.touching)
        self.monitors.restart(self.v)
        return self.monitors

    def _judge(self, q: Array, v: Array, share: float) -> None:
        """Have the monitors look at a step, or a part of one, from ``q`` to ``v``."""
        assert self.monitors is not None
        new = self.monitors.look(self._steps + 1, q, v, share, q is self.q)
        if new:
            self._tell(self.monitors, new)

    def _tell(self, monitors: Monitors, new: int) -> None:
        """Report what the step that ends with ``v`` was the first to violate."""
        begun: dict[str, NDArray[Any]] = {
            "q": self.q.copy(),
            "v": monitors.before.copy(),
            "torque": self._torque.copy(),
            "push": self._dynamics.push.copy(),
            "damping": self._damping.copy(),
            "held": monitors.held.copy(),
        }
        monitors.go_on(self.v)
        assert self._report is not None
        for name, said in monitors.described(new):
            self._report(name, said, begun)

    def _refuse(self, fastest: float) -> NoReturn:
        """Raise what the dynamics found wrong with a step that it did not take."""
        if fastest < 0.0:
            self._diverge("the torque that the drives make of the command is not finite")
        self._diverge("a velocity is not finite" if np.isnan(fastest) else f"a velocity reached {fastest:.3g}")

    def _diverge(self, reason: str) -> NoReturn:
        """Raise that the state would diverge; it stays as it was before the step."""
        self._diverged = reason
        raise DivergenceError(self._diverged, self.t, self.q, self.v)

    def push(self, wrench_world: Array, body: str | None = None, duration: float = np.inf, after: float = 0.0) -> None:
        """Apply an external wrench at the origin of a body's frame; the push before ends where this one begins.

        Pushes of the robot end those of the robot, and pushes of an object those of that object.

        In a step that it begins or ends within, it acts with that share of the step: its impulse is the right one.

        Args:
            wrench_world: (6,) force [N], torque [N.m].
            body: Frame of the robot, its root body by default, or an object.
            duration: How long it acts [s].
            after: When it begins, counted from now [s].

        Raises:
            UnknownNameError: The robot has no such frame.
            ConfigError: The wrench has the wrong size, is not finite or beyond ``LARGEST_PUSH``, the duration is not
                positive, or ``after`` is negative; nothing has changed.
        """
        wrench = self._checked("push wrench", wrench_world, 6)
        if np.abs(wrench).max() > LARGEST_PUSH:
            raise ConfigError(f"push wrench = {wrench.tolist()} is beyond {LARGEST_PUSH:g} N, N.m, the most there is")
        name = body or _root_frame(self._model)
        names = self.objects.names if self.objects is not None else ()
        if name not in names and not self._model.existFrame(name):
            raise UnknownNameError("frame", name, sorted({*names, *(frame.name for frame in self._model.frames)}))
        if not duration > 0.0:
            raise ConfigError(f"push: duration = {duration} s must be positive")
        if not after >= 0.0:
            raise ConfigError(f"push: after = {after} s must be at least 0")
        if name in names:
            frame = -1 - names.index(name)
        else:
            # A link and a joint may share a name: the body is meant.
            body_too = self._model.existFrame(name, pin.FrameType.BODY)
            frame = self._model.getFrameId(name, pin.FrameType.BODY) if body_too else self._model.getFrameId(name)
        begin = self._steps + _in_steps(after, self.physics_dt)
        end = begin + _in_steps(duration, self.physics_dt)
        # Of the robot there is one push at a time, and of each object.
        same = [min(push.frame, 0) == min(frame, 0) for push in self._pushes]
        kept = [
            push._replace(end=min(push.end, begin)) if its else push
            for push, its in zip(self._pushes, same, strict=True)
            if push.begin < begin or not its
        ]
        self._pushes = (*kept, _Push(int(frame), wrench.copy(), begin, end))
        if self.on_push is not None:
            self.on_push(wrench, name, duration, after)

    def hang(self, action: str) -> None:
        """Have the gantry do one of :data:`bipedsim.sim.GANTRY_ACTIONS` from the next step on.

        Raises:
            UnknownNameError: It is none of them.
            ConfigError: There is no gantry, or it cannot do that now.
        """
        if self.gantry is None:
            raise ConfigError("there is no gantry; begin with one: --gantry hang")
        self.gantry.act(action, self.q)

    def _push_torque(self) -> Array:
        """Return the mean over the coming step of what pushes (nv,)."""
        now = self._steps
        self._pushes = tuple(push for push in self._pushes if push.end > now)
        if self.objects is not None:
            self.objects.forget_pushes()
        torque = np.zeros(self._model.nv)
        axes = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        for push in self._pushes:
            share = min(push.end, now + 1) - max(push.begin, now)
            if share > 0.0 and push.frame < 0:
                assert self.objects is not None
                self.objects.world.push(-1 - push.frame, share * push.wrench)
            elif share > 0.0:
                jacobian = pin.computeFrameJacobian(self._model, self._push_data, self.q, push.frame, axes)
                torque += jacobian.T @ (share * push.wrench)
        return torque

    def snapshot(self) -> Snapshot:
        """Return everything that the future depends on; :meth:`restore` repeats it bit by bit.

        Raises:
            DivergenceError: The last step was refused: half of it is in the contact's memory.
        """
        if self._diverged:
            raise DivergenceError(self._diverged, self.t, self.q, self.v)
        return self._snapshot()

    def _snapshot(self) -> Snapshot:
        return Snapshot(
            self._steps,
            (self.seed, self.draw),
            self.q.copy(),
            self.v.copy(),
            self._sensors.observation.copy(),
            self.effort.copy(),
            self._pushes,
            self._contact.state(),
            self._dynamics.state(),
            None if self._tick is None else self._tick.state(),
            self._actuators.state() if self._imperfect or self._closed else None,
            None if self._noise is None else self._noise.state(),
            self.stop_impulse.copy(),
            self.loop_impulse.copy(),
            None if self.touching is None else self.touching.state(),
            self.body_impulse.copy(),
            None if self.objects is None else self.objects.state(),
            None if self.gantry is None else self.gantry.state(),
            None if self.force_plates is None else self.force_plates.amplifiers.state(),
        )

    def restore(self, snapshot: Snapshot) -> Observation:
        """Go back to a snapshot of this simulator and return the observation of that moment.

        Raises:
            ConfigError: It is of another simulation, the state is not finite, a joint is beyond its stop, or a loop is
                open; nothing has changed.
        """
        self._checked_state(snapshot.q, snapshot.v)
        self._check_form(snapshot)
        self._steps = snapshot.steps
        self.seed, self.draw = snapshot.drawn
        self.q = snapshot.q.copy()
        self.v = snapshot.v.copy()
        self._pushes = snapshot.pushes
        self._dynamics.push[:] = 0.0
        self._diverged = ""
        self._contact.set_state(snapshot.contact)
        self._dynamics.set_state(snapshot.footing)
        if self._tick is not None and snapshot.tick is not None:
            self._tick.set_state(snapshot.tick)
        if snapshot.actuators is not None:
            self._actuators.set_state(snapshot.actuators)
        elif self._closed:
            self._actuators.reset(self.v)
        self.effort[:] = snapshot.effort
        self._loops_closed()
        self.stop_impulse[:] = 0.0 if snapshot.stop_impulse is None else snapshot.stop_impulse
        self.loop_impulse[:] = 0.0 if snapshot.loop_impulse is None else snapshot.loop_impulse
        self.body_impulse[:] = 0.0 if snapshot.body_impulse is None else snapshot.body_impulse
        if self.touching is not None and snapshot.touching is not None:
            self.touching.set_state(snapshot.touching)
            self._stepping.touched = True
        self._stopped = self._touched = True
        self._moved = False
        if self.objects is not None and snapshot.objects is not None:
            self.objects.forget_pushes()
            self.objects.set_state(snapshot.objects)
        if self.gantry is not None and snapshot.gantry is not None:
            self.gantry.set_state(snapshot.gantry)
        if self.force_plates is not None and snapshot.force_plates is not None:
            self.force_plates.amplifiers.set_state(snapshot.force_plates)
        if self.monitors is not None:
            self.monitors.go_on(self.v)
        ideal = self._sensors.restore(self.q, snapshot.observation)
        if self._noise is not None and snapshot.noise is not None:
            return self._noise.set_state(snapshot.noise)
        return ideal

    def _check_form(self, snapshot: Snapshot) -> None:
        """Raise ConfigError for a snapshot that does not have all that those of this simulator have."""
        if not self._form:
            # Drives that do what they are asked for have no state until one closes its loop.
            own = replace(self._snapshot(), actuators=self._actuators.state())
            self._form = {field.name: getattr(own, field.name) for field in fields(own)}
            # A third-party contact model may have arrays of any size.
            self._form["contact"] = dict.fromkeys(own.contact)
            if own.objects is not None:
                # It has as many contacts as there are; the objects check their sizes themselves.
                self._form["objects"] = dict.fromkeys(own.objects)
        optional = {"pushes", *(() if self._imperfect or snapshot.actuators is not None else ("actuators",))}
        for name, own in self._form.items():
            other = next(_unlike(own, getattr(snapshot, name), name), "") if name not in optional else ""
            if other:
                raise ConfigError(f"the snapshot is of another simulation: {other}")
        if self.objects is not None and snapshot.objects is not None:
            self.objects.check_state(snapshot.objects)

    def ground_truth(self) -> GroundTruth:
        """Return base and sole poses and the overall CoP, as no robot can measure them."""
        if self._moved:
            self._sensors.place(self.q)
            self._moved = False
        poses, cop = self._sensors.force_plates(self.contact, self._dynamics.ground_axes)
        loads = *self._contacts(), self._stops(), None if self.gantry is None else self.gantry.force
        if not self._floats:
            return GroundTruth(pin.SE3ToXYZQUAT(pin.SE3.Identity()), np.zeros(6), cop, poses, *loads)
        return GroundTruth(self.q[:7].copy(), self.v[:6].copy(), cop, poses, *loads)

    def _contacts(self) -> tuple[Array, Array]:
        """Return the mean forces on the bodies over the last control tick: (3,), (nu, 3) [N]; live."""
        forces = self._contact_forces
        if self._touched and self.body_impulse.any():
            forces[:] = 0.0
            np.add.at(forces, self._driven, self.body_impulse / self.control_dt)
        else:
            forces[:] = np.nan
        return self._contacts_told

    def _stops(self) -> Array:
        """Return the mean torques of the stops over the last control tick (nu,) [N.m]; live."""
        torques = self._stop_torques
        torques[:] = np.nan
        if self._stopped:
            impulse = self.stop_impulse[self.robot.idx_v]
            if impulse.any():
                np.divide(impulse, self.control_dt, out=torques)
        return torques

    def places(self) -> tuple[Array, Array]:
        """Return the CoM (3,) and the sole origins (K, 3) in the world [m] where the last physics step began; live."""
        return self._dynamics.com, self._dynamics.sole_origins

    def joint_loads(self) -> tuple[Array, Array]:
        """Return the torque of the drives (nu,) in the last physics step, and what friction took of it (nv,) [N.m]."""
        taken = self._damping * self.v
        taken[self.robot.idx_v] += self.effort - self._torque
        return self.effort.copy(), taken

    def warm_up(self, loops: bool = False) -> None:
        """Load or compile all kernels, so that the first real step costs what the others do; the state is unchanged.

        Args:
            loops: Those of drives that close their loops, too.
        """
        before, listener = self.snapshot(), self.on_physics_step
        self.on_physics_step = None
        try:
            self.step(np.zeros((len(SETPOINT), self.robot.nu)) if loops else np.zeros(self.robot.nu))
            with announced("landings, falls and objects", 5, at_first=30):
                # Not in compile_contact: the process beside would have to wait for the kernels of the step.
                self._dynamics.warm_up()
                self._stepping.warm_up(self.q, self.v)
                for part in (self.objects, self.force_plates):
                    if part is not None:
                        part.warm_up()
                self.ground_truth()
        finally:
            self.restore(before)
            self.on_physics_step = listener

    def compile_contact(self) -> None:
        """Compile the contact model's part of a step, and landings, while another process compiles the rest."""
        self._dynamics.compile_contact(self._contact)
        self._stepping.warm_up(self.q, self.v)

    def _check_limits(self, q: Array) -> None:
        """Raise ConfigError where a joint of ``q`` (nq,) is beyond its stop: nothing says how it came there."""
        stops = self._dynamics.stops
        angle = q[stops.idx_q]
        beyond = np.maximum(stops.lower - angle, angle - stops.upper)
        if len(beyond) and beyond.max() > BEYOND_STOP:
            worst = int(np.argmax(beyond))
            limits = f"[{stops.lower[worst]:.6g}, {stops.upper[worst]:.6g}]"
            raise ConfigError(
                f"joint {self._dynamics.stopped_joints[worst]!r} is at {angle[worst]:.6g}, beyond its limits {limits}; "
                "begin within them, or take hardware whose joint_stops are false"
            )

    def _check_bodies(self, q: Array) -> None:
        """Raise ConfigError where a body begins in ground or another one at ``q`` (nq,): it would be thrown out."""
        assert self.touching is not None
        for where, depths in (("the ground", self.touching.depths(q)), ("each other", self.touching.overlaps(q))):
            deep = [name for name, depth in depths.items() if depth > BODY_IN_GROUND]
            if deep:
                said = ", ".join(f"{name} {1e3 * depths[name]:.3g} mm" for name in deep)
                soled = {sole.joint_id for sole in self.plant.soles}
                of_feet = any(shape.joint_id in soled for shape in self.plant.shapes.shapes if shape.name in deep)
                feet = "put the soles where these feet end (`placement`), " if of_feet else ""
                raise ConfigError(
                    f"{self.robot.name} begins with bodies in {where}: {said}; begin elsewhere, {feet}give these "
                    "links other shapes under `bodies` in robot.yaml, or take hardware whose body_contact is false"
                )

    def _checked(self, name: str, values: Array, size: int) -> Array:
        array = _numbers(name, values)
        if array.shape != (size,):
            raise ConfigError(f"{name} has shape {array.shape}; {self.robot.name} needs ({size},)")
        if not np.isfinite(array).all():
            bad = int(np.flatnonzero(~np.isfinite(array))[0])
            raise ConfigError(f"{name}[{bad}] = {array[bad]} is not finite")
        return array


def _made_again(cls: type[Simulator], made_of: tuple[Any, ...], start: tuple[Array, Array], now: Snapshot) -> Simulator:
    """Return a simulator as another one was made, in the state ``now``."""
    sim = cls(*made_of)
    sim.restore(now)
    sim.start = start
    return sim


_REAL = np.dtype(np.float64)


def _numbers(name: str, values: Any) -> Array:
    """Return ``values`` as an array of numbers.

    Raises:
        ConfigError: They are none.
    """
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{name} = {shown(values)} is no array of numbers") from error


def _unlike(own: Any, other: Any, where: str) -> Iterator[str]:
    """Yield where ``other`` has another form than ``own``: other keys of mappings, or other sizes of arrays."""
    if is_dataclass(own) and type(own) is type(other):
        for field in fields(own):
            yield from _unlike(getattr(own, field.name), getattr(other, field.name), f"{where}.{field.name}")
    elif isinstance(own, Mapping) and isinstance(other, Mapping):
        for key in (*own, *(other.keys() - own.keys())):
            if key not in own or key not in other:
                yield f"{where}[{key!r}] is {'missing' if key in own else 'unknown'}"
            elif own[key] is not None:
                yield from _unlike(own[key], other[key], f"{where}[{key!r}]")
    elif isinstance(own, np.ndarray):
        if not isinstance(other, np.ndarray) or (own.shape, own.dtype) != (other.shape, other.dtype):
            yield f"{where} is {shown(other)}, expected an array {own.shape} of type {own.dtype}"
    elif isinstance(own, Mapping) or (own is None) != (other is None):
        yield f"{where} is {shown(other)}, expected {'nothing' if own is None else type(own).__name__}"


def _in_steps(seconds: float, physics_dt: float) -> float:
    """Return a time in steps: what is a whole number but for rounding is one."""
    steps = seconds / physics_dt
    whole = round(min(steps, 2**53))
    return whole if abs(steps - whole) < 1e-6 * max(whole, 1) else steps


def _root_frame(model: pin.Model) -> str:
    """Return the name of the body that moves with the first joint."""
    return next(frame.name for frame in model.frames if frame.type == pin.FrameType.BODY and frame.parentJoint == 1)
