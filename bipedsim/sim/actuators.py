"""Drives between command and joint: delay, joint-level loop, effort limit, torque-speed limit, and friction.

A drive evaluates an impedance command at every physics step with the present state of its joint. It has its own
encoder, so only the command is delayed. The loop is explicit in time, like the same law in a controller that runs at
every step.

Dry friction is an elastoplastic element in every joint (Dupont, Hayward, Armstrong and Altpeter, "Single state
elastoplastic friction models", IEEE TAC 47, 2002, without their transition). Its spring holds the joint, and slips when
the torque reaches the friction torque. A joint at rest stays at rest, without creep, under any load below the friction
torque.

The element never adds energy, for any motion of the robot. Its torque is e + d v+, with the velocity v+ *after* the
step. The dynamics solve the damper d together with the contacts. The part e comes from the deflection of the spring,
which slip can only reduce. Coulomb's limit holds exactly if v+ is the value that the last two steps predict. Otherwise
the torque is off by d times the error of the prediction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bipedsim.errors import ConfigError
from bipedsim.model import ActuatorParams, HardwareParams, Robot, differs, inverse_inertia, joint_values
from bipedsim.numerics import Array, Flags, Integers, box, entry, kernel, ready, zeros_of
from bipedsim.sim.checks import checked_vector, numbers
from bipedsim.sim.io import DAMPING, EFFORT, LIMIT, POSITION, SETPOINT, STIFFNESS, VELOCITY, Asked, Command
from bipedsim.sim.participant import Participant, Simulation

# Damping ratio of the friction spring about rest.
_DAMPING = 0.5


class _Drives(NamedTuple):
    """Store the drives of nu joints.

    Attributes:
        idx_q, idx_v: (nu,) indices of each joint in the configuration and the velocity.
        h: Step [s].
        mobility: (nu,) h / I [rad/s / N.m], where I is the smallest effective inertia of the joint.
        limit: (nu,) effort limit, infinite if commands are not clipped [N.m].
        no_load: (nu,) no-load speed, at which the available torque is zero [rad/s]. slope: (nu,) slope of the
            torque-speed line, 0 without a torque-speed limit [N.m.s/rad].
        gain: (nu,) torque at the joint divided by that of its drive. offset: (nu,) added to it [N.m].
        encoder: (nu,) error of the position that the drive measures [rad].
        coulomb: (nu,) dry friction [N.m]. most: (nu,) deflection at which it slips [rad]. stiffness, inner: (nu,) of
            the springs [N.m/rad], and of the parallel dampers [N.m.s/rad]. viscous: (nu,) friction [N.m.s/rad].
        line: (n + 1, 6, nu) delayed commands, rows as in ``SETPOINT``, n the delay in steps. head: (1,) entry that is
            written next.
        closed: (1,) whether an impedance was commanded since the last reset; before that, a command is only a torque.
        newest: (6, nu) newest impedance command, valid if ``closed``.
        command: (nu,) newest torque, or if ``closed`` the torque that the joint-level loops request in this step [N.m].
        effort: (nu,) torque of the drives in this step, before gain and offset [N.m].
        torque: (nu,) torque at the joints in this step, without the part e of dry friction [N.m].
        before: (nu,) velocity before the last step [rad/s].
        deflection: (nu,) of the springs [rad]. reach: (nu,) time in the last step during which v+ deflects them [s].
        damping: (nv,) all dampers on the velocity after the step, which the dynamics read.
    """

    idx_q: Integers
    idx_v: Integers
    h: float
    mobility: Array
    limit: Array
    no_load: Array
    slope: Array
    gain: Array
    offset: Array
    encoder: Array
    coulomb: Array
    most: Array
    stiffness: Array
    inner: Array
    viscous: Array
    line: Annotated[Array, "n", len(SETPOINT), "nu"]
    head: Annotated[Integers, 1]
    closed: Annotated[Flags, 1]
    newest: Annotated[Array, len(SETPOINT), "nu"]
    command: Annotated[Array, "nu"]
    effort: Annotated[Array, "nu"]
    torque: Annotated[Array, "nu"]
    before: Annotated[Array, "nu"]
    deflection: Annotated[Array, "nu"]
    reach: Annotated[Array, "nu"]
    damping: Array


@kernel
def _effort(d: _Drives, j, command, v) -> float:
    """Return the torque of drive ``j`` for a command, at the velocity ``v`` of its joint."""
    tau = min(max(command, -d.limit[j]), d.limit[j])
    if not (d.slope[j] > 0.0 and tau * v > 0.0):
        return tau
    # The torque-speed line is evaluated at the velocity after the step, predicted with the other forces of the last
    # step. A steep line would chatter if it were evaluated before the step.
    sign = 1.0 if v > 0.0 else -1.0
    mobility = d.gain[j] * d.mobility[j]
    coasting = sign * (2.0 * v - d.before[j] - mobility * d.effort[j])
    most = d.slope[j] * (d.no_load[j] - coasting) / (1.0 + d.slope[j] * mobility)
    return sign * min(sign * tau, max(most, 0.0))


@kernel
def _friction(d: _Drives, j, v) -> float:
    """Return the part e of the dry friction of joint ``j`` at velocity ``v``, and set its damper for the step."""
    k = d.stiffness[j]
    z = min(max(d.deflection[j] + d.reach[j] * v, -d.most[j]), d.most[j])
    firm = d.h * k + d.inner[j]
    damper = firm
    reach = d.h
    # This is the velocity after the step if all forces stay as in the last step.
    ahead = 2.0 * v - d.before[j]
    held = k * z + firm * ahead
    speed = abs(ahead)
    if abs(held) > d.coulomb[j] and held * ahead > 0.0:
        # The element slips: the deflection is reduced until the friction torque is Coulomb's.
        sign = 1.0 if ahead > 0.0 else -1.0
        if sign * z + d.h * speed > d.most[j]:
            z = sign * max(d.most[j] - d.h * speed, 0.0)
            reach = min(d.h, d.most[j] / speed)
        damper = min(max((d.coulomb[j] - k * sign * z) / speed, 0.0), firm)
    d.deflection[j] = z
    d.reach[j] = reach
    d.damping[d.idx_v[j]] = d.viscous[j] + damper
    return k * z


@kernel
def _closed_loop(d: _Drives, j, x, q, v) -> float:
    """Return the torque that the loop of drive ``j`` requests at (q, v), under the command ``x`` (6, nu)."""
    # The encoder measures q + encoder.
    spring = x[STIFFNESS, j] * (x[POSITION, j] - q - d.encoder[j])
    tau = x[EFFORT, j] + spring + x[DAMPING, j] * (x[VELOCITY, j] - v)
    return min(max(tau, -x[LIMIT, j]), x[LIMIT, j])


@kernel
def _asked(d: _Drives, q, v):
    """Fill ``command`` and advance the delay line."""
    nu = d.idx_v.shape[0]
    closed = d.closed[0]
    head = d.head[0]
    for j in range(nu):
        if closed:
            for i in range(LIMIT + 1):
                d.line[head, i, j] = d.newest[i, j]
        else:
            d.line[head, EFFORT, j] = d.command[j]
    head = (head + 1) % d.line.shape[0]
    d.head[0] = head
    if closed:
        for j in range(nu):
            d.command[j] = _closed_loop(d, j, d.line[head], q[d.idx_q[j]], v[d.idx_v[j]])


@entry
def take_finite(values, out):
    """Copy ``values`` (n,) to ``out``; return False and copy nothing if a value is not finite."""
    for j in range(out.shape[0]):
        if not np.isfinite(values[j]):
            return False
    for j in range(out.shape[0]):
        out[j] = values[j]
    return True


@entry
def _follow(boxed, command):
    """Store an impedance (6, nu); return False and change nothing if a value is not finite or a limit is negative."""
    d = boxed.arrays
    for j in range(d.idx_v.shape[0]):
        for i in range(LIMIT):
            if not np.isfinite(command[i, j]):
                return False
        # An infinite limit is valid and means that there is none.
        if not command[LIMIT, j] >= 0.0:
            return False
    for i in range(command.shape[0]):
        for j in range(command.shape[1]):
            d.newest[i, j] = command[i, j]
    d.closed[0] = True
    return True


@entry
def _drive(boxed, q, v):
    """Fill torques and dampers of the step from (q, v)."""
    d = boxed.arrays
    _asked(d, q, v)
    for j in range(d.idx_v.shape[0]):
        now = v[d.idx_v[j]]
        d.effort[j] = _effort(d, j, d.command[j] if d.closed[0] else d.line[d.head[0], EFFORT, j], now)
        d.torque[j] = d.gain[j] * d.effort[j]
        if d.offset[j] != 0.0:
            d.torque[j] += d.offset[j]
        if d.coulomb[j] > 0.0:
            d.torque[j] -= _friction(d, j, now)
        d.before[j] = now


_REAL = np.dtype(np.float64)


class Actuators(Participant):
    """Simulate the drives of one robot.

    Args:
        robot: The plant.
        params: See :class:`ActuatorParams`.
        physics_dt: Step h [s].

    Attributes:
        asked: The command of the last tick; the next one overwrites it.
        command: (nu,) newest torque [N.m], written by the simulator; under an impedance, the torque that the loops
            requested in the last step.
        effort: (nu,) torque that the drives report for the last step, before gain, offset and friction [N.m].
        torque: (nu,) joint torques that the dynamics use; the rest of the friction is in ``damping`` [N.m].
        damping: (nv,) dampers on the velocity after the step [N.m.s/rad]; rewritten by every :meth:`drive`.
        delay: Time from a command to its torque [s], a whole number of steps.
    """

    name = "drives"

    def __init__(self, robot: Robot, params: HardwareParams, physics_dt: float) -> None:
        nu = robot.nu
        self._robot = robot
        # Ideal drives apply the commanded torque, so they need no computation until one closes its loop.
        self._ideal = ideal = not differs(params, ActuatorParams)
        torque = np.zeros(nu)
        shared = {"command": torque, "effort": torque, "torque": torque} if ideal else {}
        steps = round(params.command_delay / physics_dt)
        self.delay = steps * physics_dt
        self.damping = robot.joint_damping.copy()
        band = (params.no_load_speed - params.corner_speed) * robot.velocity_limit
        limited = params.no_load_speed > 0.0
        mobility = physics_dt * np.diag(inverse_inertia(robot))
        # A joint that closed chains lock has infinite effective inertia and never moves.
        inertia = np.divide(1.0, mobility, out=np.zeros_like(mobility), where=mobility > 0.0)
        coulomb = joint_values(robot, params.coulomb_friction)
        stiffness = coulomb / params.presliding
        self.damping[robot.idx_v] += joint_values(robot, params.viscous_friction)
        self._viscous = self.damping.copy()
        self._drives = zeros_of(
            _Drives,
            {"nu": nu, "n": steps + 1},
            idx_q=np.ascontiguousarray(robot.idx_q, dtype=np.int64),
            idx_v=np.ascontiguousarray(robot.idx_v, dtype=np.int64),
            h=physics_dt,
            mobility=mobility,
            limit=robot.effort_limit.copy() if params.clip_effort else np.full(nu, np.inf),
            no_load=params.no_load_speed * robot.velocity_limit,
            slope=robot.effort_limit / band if limited else np.zeros(nu),
            gain=joint_values(robot, params.torque_gain, 1.0),
            offset=joint_values(robot, params.torque_offset),
            encoder=joint_values(robot, params.encoder_offset),
            coulomb=coulomb,
            most=np.full(nu, params.presliding),
            stiffness=stiffness,
            inner=2.0 * _DAMPING * np.sqrt(stiffness * physics_dt * inertia),
            viscous=self._viscous[robot.idx_v],
            damping=self.damping,
            **shared,
        )
        self.command = self._drives.command
        self.effort = self._drives.effort
        self.torque = self._drives.torque
        self._box = box(self._drives)
        self._follow: Callable[..., bool] | None = None
        self.asked = Asked(self.command)
        self._shape = self.command.shape
        self._closed = False
        # Commands may be rows or columns of a larger array.
        self._take = ready(take_finite, np.zeros((nu, 2))[:, 0], self.command)

    def take(self, command: Array | Command) -> None:
        """Accept the command of a control tick; see :meth:`Simulator.step`.

        Raises:
            ConfigError: It has a wrong size, a value is not finite, or a limit is negative; nothing has changed.
        """
        # Nearly all commands are arrays already, so this test is the fast path.
        if type(command) is not np.ndarray or command.dtype is not _REAL:
            if isinstance(command, Command):
                command = command.packed(self._robot.effort_limit) if command.closes_loop else command.tau_joint
            command = numbers("command", command)
        if self._closed or command.shape != self._shape:
            self._take_setpoint(command)
        elif not self._take(command, self.command):
            checked_vector("tau_joint", command, self._robot.nu, self._robot.name)

    def _take_setpoint(self, asked: Array) -> None:
        """Accept an impedance (6, nu), or torques (nu,) after an impedance."""
        nu, name = self._robot.nu, self._robot.name
        if asked.shape != (len(SETPOINT), nu):
            self.follow_torque(checked_vector("tau_joint", asked, nu, name))
        elif not self.follow(asked):
            for row_name, row in zip(SETPOINT[:LIMIT], asked, strict=False):
                checked_vector(f"command: {row_name}", row, nu, name)
            raise ConfigError("must be at least 0 for every joint", "command: limit", asked[LIMIT].tolist())
        if not self._closed:
            self._note_loops()

    def _note_loops(self) -> None:
        """Update the flag and the setpoint that say whether the drives close their loops."""
        self._closed = self.closed
        self.asked.setpoint = self.newest.T if self._closed else None

    def before_step(self, sim: Simulation) -> None:
        """Compute the torques of the coming step."""
        if self._closed or not self._ideal:
            self.drive(sim.q, sim.v)

    def loads(self, v: Array) -> tuple[Array, Array]:
        """Return the torque at the joints before friction (nu,) in the last step, and the friction (nv,) [N.m]."""
        driven = self._drives.gain * self.effort + self._drives.offset
        lost = self.damping * v
        lost[self._robot.idx_v] += driven - self.torque
        return driven, lost

    def reset(self, sim: Simulation) -> None:
        """Clear all commands, so that the drives are idle while the robot moves with ``sim.v``."""
        self.start(sim.v)

    def start(self, v: Array) -> None:
        """Clear all commands, so that the drives are idle while the robot moves with ``v`` (nv,)."""
        d = self._drives
        for array in (d.line, d.head, d.closed, d.command, d.effort, d.torque, d.deflection, d.reach):
            array[:] = 0
        # The caller has already limited commands that are only torques.
        d.line[:, LIMIT] = np.inf
        d.before[:] = v[d.idx_v]
        d.damping[:] = self._viscous
        self._note_loops()

    @property
    def closed(self) -> bool:
        """Whether an impedance was commanded since the last reset."""
        return bool(self._drives.closed[0])

    @property
    def newest(self) -> Array:
        """The newest command (6, nu), valid if ``closed``, rows as in ``SETPOINT``; live."""
        return self._drives.newest

    def follow(self, command: Array) -> bool:
        """Follow an impedance (6, nu) from now on, rows as in ``SETPOINT``.

        Returns:
            False, with nothing changed, if a value is not finite or a limit is below 0; a limit may be infinite.
        """
        if self._follow is None:
            self._follow = ready(_follow, self._box, self._drives.newest)
        return self._follow(self._box, np.ascontiguousarray(command, dtype=np.float64))

    def follow_torque(self, command: Array) -> bool:
        """Apply a torque (nu,) from now on, after an impedance.

        Returns:
            False, with nothing changed, if a value is not finite.
        """
        d = self._drives
        if not self._take(np.asarray(command, dtype=np.float64), d.newest[EFFORT]):
            return False
        d.newest[:EFFORT] = d.newest[EFFORT + 1 : LIMIT] = 0.0
        d.newest[LIMIT] = np.inf
        return True

    def drive(self, q: Array, v: Array) -> None:
        """Fill :attr:`effort`, :attr:`torque` and :attr:`damping` for the step from ``q`` (nq,) and ``v`` (nv,)."""
        _drive(self._box, q, v)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return a copy of the state of the drives on which the next step depends."""
        return {name: getattr(self._drives, name).copy() for name in _STATE}

    def set_state(self, state: dict[str, NDArray[Any]], sim: Simulation) -> None:
        """Restore a state that :meth:`state` returned."""
        for name in _STATE:
            getattr(self._drives, name)[...] = state[name]
        self._note_loops()


_STATE = ("line", "head", "closed", "newest", "command", "effort", "torque", "before", "deflection", "reach", "damping")
