"""Drives between command and joint: delay, effort limit, torque-speed limit, friction.

Dry friction is an elastoplastic element in every joint: a spring that holds the joint, and slips when its torque
reaches that of the friction (Dupont, Hayward, Armstrong and Altpeter, "Single state elastoplastic friction models",
IEEE TAC 47, 2002, without their transition). A joint at rest stays there under any load below friction, without creep.

It is stepped so that it never gives energy, whatever the rest of the robot does. Its torque is e + d v+, with the
velocity v+ *after* the step: d is a damper that the dynamics solve together with the contacts, and e comes from what
the spring holds, of which slip only ever takes. Coulomb's limit is met for the v+ that the last two steps let expect,
and missed by d times the error of that.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bipedsim.config import numbers_per_joint
from bipedsim.model import ActuatorParams, Robot, inverse_inertia
from bipedsim.numerics import Array, Integers, box, entry, kernel, zeros_of

# Damping of the spring about rest, as a share of the critical one.
_DAMPING = 0.5


class _Drives(NamedTuple):
    """Drives of nu joints.

    Attributes:
        idx_v: (nu,) velocity index of each joint.
        h: Step [s].
        mobility: (nu,) h / I [rad/s / N.m], I the least inertia that the joint shows.
        limit: (nu,) effort limit, infinite if commands are not clipped [N.m].
        no_load: (nu,) speed at which no torque is left [rad/s]. slope: (nu,) of its fall, 0 for none [N.m.s/rad].
        coulomb: (nu,) dry friction [N.m]. most: (nu,) deflection at which it slips [rad]. stiffness, inner: (nu,) of
            the springs [N.m/rad], and of the dampers beside them [N.m.s/rad]. viscous: (nu,) friction [N.m.s/rad].
        line: (n + 1, nu) commands on their way, n the delay in steps. head: (1,) row that is written next.
        command, effort, torque: (nu,) newest command, torque of the drives in this step, and less the part e of dry
            friction [N.m].
        before: (nu,) velocity before the last step [rad/s].
        deflection: (nu,) of the springs [rad]. reach: (nu,) time of the last step for which they take part in v+ [s].
        damping: (nv,) all dampers on the velocity after the step, which the dynamics read.
    """

    idx_v: Integers
    h: float
    mobility: Array
    limit: Array
    no_load: Array
    slope: Array
    coulomb: Array
    most: Array
    stiffness: Array
    inner: Array
    viscous: Array
    line: Annotated[Array, "n", "nu"]
    head: Annotated[Integers, 1]
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
    # The line is met at the velocity after the step, if all else acts on as in the last step: a steep one would chatter
    # if it were read before the step.
    sign = 1.0 if v > 0.0 else -1.0
    coasting = sign * (2.0 * v - d.before[j] - d.mobility[j] * d.effort[j])
    most = d.slope[j] * (d.no_load[j] - coasting) / (1.0 + d.slope[j] * d.mobility[j])
    return sign * min(sign * tau, max(most, 0.0))


@kernel
def _friction(d: _Drives, j, v) -> float:
    """Return the part e of the dry friction of joint ``j`` at velocity ``v``, and set its damper for the step."""
    k = d.stiffness[j]
    z = min(max(d.deflection[j] + d.reach[j] * v, -d.most[j]), d.most[j])
    firm = d.h * k + d.inner[j]
    damper = firm
    reach = d.h
    # What the velocity after the step is, if all acts on as in the last step.
    ahead = 2.0 * v - d.before[j]
    held = k * z + firm * ahead
    speed = abs(ahead)
    if abs(held) > d.coulomb[j] and held * ahead > 0.0:
        # It slips: the spring lets go of as much as makes friction that of Coulomb.
        sign = 1.0 if ahead > 0.0 else -1.0
        if sign * z + d.h * speed > d.most[j]:
            z = sign * max(d.most[j] - d.h * speed, 0.0)
            reach = min(d.h, d.most[j] / speed)
        damper = min(max((d.coulomb[j] - k * sign * z) / speed, 0.0), firm)
    d.deflection[j] = z
    d.reach[j] = reach
    d.damping[d.idx_v[j]] = d.viscous[j] + damper
    return k * z


@entry
def _drive(boxed, v):
    """Fill torques and dampers of the step from ``v`` (nv,); return False, nothing done, if a command is not finite."""
    d = boxed.arrays
    nu = d.idx_v.shape[0]
    for j in range(nu):
        if not np.isfinite(d.command[j]):
            return False
    head = d.head[0]
    for j in range(nu):
        d.line[head, j] = d.command[j]
    head = (head + 1) % d.line.shape[0]
    d.head[0] = head
    for j in range(nu):
        now = v[d.idx_v[j]]
        d.effort[j] = _effort(d, j, d.line[head, j], now)
        d.torque[j] = d.effort[j]
        if d.coulomb[j] > 0.0:
            d.torque[j] -= _friction(d, j, now)
        d.before[j] = now
    return True


class Actuators:
    """The drives of one robot.

    Args:
        robot: The plant.
        params: See :class:`ActuatorParams`.
        physics_dt: Step h [s].

    Attributes:
        command: (nu,) newest command [N.m]; written by the simulator.
        effort: (nu,) torque of the drives in the last step, before friction [N.m].
        torque: (nu,) what the dynamics take as the joints' torques; the rest of friction is in ``damping`` [N.m].
        damping: (nv,) dampers on the velocity after the step [N.m.s/rad]; rewritten by every :meth:`drive`.
        delay: Time from a command to its torque [s], a whole number of steps.
    """

    def __init__(self, robot: Robot, params: ActuatorParams, physics_dt: float) -> None:
        nu = robot.nu

        def friction(values: Any) -> Array:
            given = numbers_per_joint(values, robot.joint_names, "friction", low=0.0)
            return np.array([given.get(joint, 0.0) for joint in robot.joint_names])

        steps = round(params.command_delay / physics_dt)
        self.delay = steps * physics_dt
        self.damping = robot.joint_damping.copy()
        band = (params.no_load_speed - params.corner_speed) * robot.velocity_limit
        limited = params.no_load_speed > 0.0
        mobility = physics_dt * np.diag(inverse_inertia(robot))
        coulomb = friction(params.coulomb_friction)
        stiffness = coulomb / params.presliding
        self.damping[robot.idx_v] += friction(params.viscous_friction)
        self._viscous = self.damping.copy()
        self._drives = zeros_of(
            _Drives,
            {"nu": nu, "n": steps + 1},
            idx_v=np.ascontiguousarray(robot.idx_v, dtype=np.int64),
            h=physics_dt,
            mobility=mobility,
            limit=robot.effort_limit.copy() if params.clip_effort else np.full(nu, np.inf),
            no_load=params.no_load_speed * robot.velocity_limit,
            slope=robot.effort_limit / band if limited else np.zeros(nu),
            coulomb=coulomb,
            most=np.full(nu, params.presliding),
            stiffness=stiffness,
            inner=2.0 * _DAMPING * np.sqrt(stiffness * physics_dt / mobility),
            viscous=self._viscous[robot.idx_v],
            damping=self.damping,
        )
        self.command = self._drives.command
        self.effort = self._drives.effort
        self.torque = self._drives.torque
        self._box = box(self._drives)

    def reset(self, v: Array) -> None:
        """Forget all commands: the drives are idle, the robot moves with ``v`` (nv,)."""
        d = self._drives
        for array in (d.line, d.head, d.command, d.effort, d.torque, d.deflection, d.reach):
            array[:] = 0
        d.before[:] = v[d.idx_v]
        d.damping[:] = self._viscous

    def drive(self, v: Array) -> bool:
        """Fill :attr:`effort`, :attr:`torque` and :attr:`damping` for the step from ``v`` (nv,).

        Returns:
            False, with nothing done, if the command is not finite.
        """
        return bool(_drive(self._box, v))

    def state(self) -> dict[str, NDArray[Any]]:
        """Return a copy of what the next step depends on."""
        return {name: getattr(self._drives, name).copy() for name in _STATE}

    def set_state(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore what :meth:`state` returned."""
        for name in _STATE:
            getattr(self._drives, name)[...] = state[name]


_STATE = ("line", "head", "command", "effort", "torque", "before", "deflection", "reach", "damping")
