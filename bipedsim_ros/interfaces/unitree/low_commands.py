"""Convert rt/lowcmd to joint impedances, or refuse it as the machine would."""

from __future__ import annotations

import numpy as np

from bipedsim.numerics import Array
from bipedsim.sim import Command
from bipedsim_ros.interfaces.unitree.layout import Cdr
from bipedsim_ros.interfaces.unitree.machine import Machine
from bipedsim_ros.wire import CommandFault

_OFF = 0
_PR = 0
_NUMBERS = ("q", "dq", "tau", "kp", "kd")


class LowCommands:
    """Reads motor commands and refuses invalid ones.

    Args:
        machine: Assignment of motors to joints.

    Attributes:
        command: Torque, position, velocity, stiffness and damping of each joint (nu,) from the last valid message.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        family = machine.family
        self._message = Cdr(family.low_cmd)
        self._is_on = np.isin(np.arange(256), family.on)
        self._none = family.no_position, family.no_velocity
        self._has_build = "mode_pr" in (family.low_cmd.names or ())
        nu = len(machine.motor)
        self._tau, self._q, self._dq, self._kp, self._kd = np.zeros((5, nu))
        self.command = Command(self._tau, self._q, self._dq, self._kp, self._kd)

    @property
    def drives(self) -> bool:
        """Whether the last valid message contains a nonzero stiffness, damping or torque."""
        return bool(self._kp.any() or self._kd.any() or self._tau.any())

    def read(self, data: bytes) -> CommandFault | None:
        """Read a serialised message into ``command`` if it is valid.

        Motors that the robot lacks are ignored. A motor with mode 0 is off and turns freely. Positions and velocities
        that mean "no target" set stiffness and damping to zero.

        Returns:
            None, or the fault of the message; in this case ``command`` is unchanged.
        """
        problem = self._message.read(data)
        if problem is not None:
            return CommandFault(*problem)
        values, machine = self._message.values, self._machine
        if self._has_build and values["mode_machine"] != machine.mode_machine:
            return CommandFault(
                "mode_machine",
                f"its mode_machine is {values['mode_machine']}, that of this {machine.name} {machine.mode_machine}: "
                "copy it from rt/lowstate",
            )
        if self._has_build and values["mode_pr"] != _PR:
            return CommandFault(
                "mode_pr",
                f"its mode_pr is {values['mode_pr']}: only 0 is simulated, pitch and roll of ankles and waist, not the "
                "rods A and B that move them",
            )
        motors = values["motor_cmd"][machine.motor]
        mode = motors["mode"]
        on = self._is_on[mode]
        known_modes = on | (mode == _OFF)
        if not known_modes.all():
            j = int(np.argmin(known_modes))
            known = " or ".join(map(str, machine.family.on))
            return CommandFault(
                "mode", f"mode of motor {machine.motor[j]} is {mode[j]}, expected {known} (on) or 0 (off)"
            )
        for name in _NUMBERS:
            bad = np.flatnonzero(~np.isfinite(motors[name]))
            if len(bad):
                return CommandFault("not_finite", f"{name} of motor {machine.motor[bad[0]]} is {motors[name][bad[0]]}")
        for name in ("kp", "kd"):
            if (motors[name] < 0.0).any():
                j = int(motors[name].argmin())
                return CommandFault(
                    "negative", f"{name} of motor {machine.motor[j]} is {motors[name][j]:g}, must be at least 0"
                )
        for target, name in zip((self._q, self._dq, self._tau, self._kp, self._kd), _NUMBERS, strict=True):
            np.multiply(motors[name], on, out=target)
        for gain, target, none in zip((self._kp, self._kd), (self._q, self._dq), self._none, strict=True):
            gain[np.abs(target) >= none] = target[np.abs(target) >= none] = 0.0
        return None

    def copy_position(self) -> Array:
        """Return a copy of the positions (nu,) [rad] of the last valid message."""
        return self._q.copy()
