"""Write the measurements of a robot as rt/lowstate."""

from __future__ import annotations

import math

import numpy as np

from bipedsim.sim import Observation
from bipedsim_ros.interfaces.unitree.layout import Cdr
from bipedsim_ros.interfaces.unitree.machine import Machine

_HEAD, _LOW_LEVEL = (0xFE, 0xEF), 0xFF
_INT16 = (-32768, 32767)


class LowStateWriter:
    """Writes the states of motors and IMU.

    Motors that the robot lacks are reported as on and at rest at zero. Temperatures, voltages and internal values of
    the machine are zero. If the message contains foot forces, they are the z components of the ankle wrenches, rounded
    to newtons. The right foot comes first, according to the vendor's numbering of legs.

    Args:
        machine: Assignment of motors to joints.
    """

    def __init__(self, machine: Machine) -> None:
        low_state = machine.family.low_state
        self._message = Cdr(low_state)
        self._values = values = self._message.values
        names = low_state.names or ()
        if "mode_machine" in names:
            values["mode_machine"] = machine.mode_machine
        if "head" in names:
            values["head"], values["level_flag"] = _HEAD, _LOW_LEVEL
        self._has_foot_force = "foot_force" in names
        self._motor = machine.motor
        self._states = values["motor_state"]
        self._states["mode"][list(machine.used)] = 1
        self._dq = np.zeros(len(machine.motor))
        self._t = math.nan

    def serialized(self, observation: Observation, tick: int, remote: bytes) -> bytes:
        """Return the serialised message with its checksum.

        Args:
            observation: Measurements. Joint accelerations are differences of successive joint velocities.
            tick: Time [ms].
            remote: State of the remote control, 40 bytes.
        """
        values, states, motor = self._values, self._states, self._motor
        values["tick"] = tick & 0xFFFFFFFF
        states["q"][motor] = observation.joint_position
        states["dq"][motor] = observation.joint_velocity
        states["tau_est"][motor] = observation.joint_effort
        passed = observation.t - self._t
        if passed > 0.0:
            states["ddq"][motor] = (observation.joint_velocity - self._dq) / passed
        elif passed < 0.0 or passed != passed:
            states["ddq"][motor] = 0.0
        self._t = observation.t
        self._dq[:] = observation.joint_velocity
        imu = values["imu_state"]
        x, y, z, w = observation.imu_orientation.tolist()
        imu["quaternion"] = w, x, y, z
        imu["gyroscope"] = observation.imu_angular_velocity
        imu["accelerometer"] = observation.imu_linear_acceleration
        imu["rpy"] = roll_pitch_yaw(x, y, z, w)
        if self._has_foot_force and len(observation.foot_wrench):
            force = np.clip(np.rint(observation.foot_wrench[::-1, 2]), *_INT16)
            values["foot_force"][: len(force)] = values["foot_force_est"][: len(force)] = force
        values["wireless_remote"] = np.frombuffer(remote, "u1")
        return self._message.serialized()


def roll_pitch_yaw(x: float, y: float, z: float, w: float) -> tuple[float, float, float]:
    """Return the angles [rad] of a unit quaternion about the world axes x, then y, then z."""
    roll = math.atan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    pitch = math.asin(min(1.0, max(-1.0, 2.0 * (w * y - z * x)))) if math.isfinite(w) else math.nan
    yaw = math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    return roll, pitch, yaw
