"""rt/lowcmd to impedances of joints: what the machine would do, or why it is refused."""

from __future__ import annotations

import numpy as np

from bipedsim.numerics import Array
from bipedsim.sim import Command
from bipedsim_ros.interfaces.unitree.layout import Cdr
from bipedsim_ros.interfaces.unitree.machine import Machine
from bipedsim_ros.wire import Fault

_OFF = 0
_PR = 0
_NUMBERS = ("q", "dq", "tau", "kp", "kd")


class LowCommands:
    """Reads commands of motors, and refuses what no machine should get.

    Args:
        machine: Which motor turns which joint.

    Attributes:
        command: Torque, position, velocity, stiffness and damping of each joint (nu,) by the last sound message.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        family = machine.family
        self._message = Cdr(family.low_cmd)
        self._is_on = np.isin(np.arange(256), family.on)
        self._none = family.no_position, family.no_velocity
        self._builds = "mode_pr" in (family.low_cmd.names or ())
        nu = len(machine.motor)
        self._tau, self._q, self._dq, self._kp, self._kd = np.zeros((5, nu))
        self.command = Command(self._tau, self._q, self._dq, self._kp, self._kd)

    @property
    def drives(self) -> bool:
        """Whether the last sound message asks any joint for anything: a stiffness, a damping or a torque."""
        return bool(self._kp.any() or self._kd.any() or self._tau.any())

    def read(self, data: bytes) -> Fault | None:
        """Take a serialised message into ``command`` if it is sound.

        Motors that the robot lacks are not looked at. One whose mode is 0 is off: it turns freely. Positions and
        velocities that stand for none have no stiffness and no damping.

        Returns:
            None, or what is wrong with the message; then ``command`` is left as it was.
        """
        wrong = self._message.read(data)
        if wrong is not None:
            return Fault(*wrong)
        values, machine = self._message.values, self._machine
        if self._builds and values["mode_machine"] != machine.mode_machine:
            return Fault(
                "mode_machine",
                f"its mode_machine is {values['mode_machine']}, that of this {machine.name} {machine.mode_machine}: "
                "copy it from rt/lowstate",
            )
        if self._builds and values["mode_pr"] != _PR:
            return Fault(
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
            return Fault("mode", f"mode of motor {machine.motor[j]} is {mode[j]}, expected {known} (on) or 0 (off)")
        for name in _NUMBERS:
            bad = np.flatnonzero(~np.isfinite(motors[name]))
            if len(bad):
                return Fault("not_finite", f"{name} of motor {machine.motor[bad[0]]} is {motors[name][bad[0]]}")
        for name in ("kp", "kd"):
            if (motors[name] < 0.0).any():
                j = int(motors[name].argmin())
                return Fault(
                    "negative", f"{name} of motor {machine.motor[j]} is {motors[name][j]:g}, must be at least 0"
                )
        for target, name in zip((self._q, self._dq, self._tau, self._kp, self._kd), _NUMBERS, strict=True):
            np.multiply(motors[name], on, out=target)
        for gain, target, none in zip((self._kp, self._kd), (self._q, self._dq), self._none, strict=True):
            gain[np.abs(target) >= none] = target[np.abs(target) >= none] = 0.0
        return None

    def copy_position(self) -> Array:
        """Return the positions of the last sound message (nu,) [rad], as an array of their own."""
        return self._q.copy()
