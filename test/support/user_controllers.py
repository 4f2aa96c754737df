"""Example controllers of a user, for tests of controller_node and of the launch."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from bipedsim.config.fields import param
from bipedsim.errors import ConfigError, MeasurementError
from bipedsim.model import Robot, joint_gains
from bipedsim.sim.io import Command, Observation
from bipedsim.sim.scan_frame import scan_points


@dataclass(frozen=True)
class EchoParams:
    """Parameters of :class:`Echo`."""

    gain: float = param(1.0, "what the torques are multiplied by", low=-10.0, high=10.0)


class Echo:
    """Returns its observations as torques: joint positions, number of resets, vertical forces of IMU and left ankle."""

    Params = EchoParams

    def __init__(self, robot: Robot, params: EchoParams, dt: float) -> None:
        self._gain = params.gain
        self._resets = 0
        self._command = Command(np.zeros(robot.nu))

    def reset(self, observation: Observation) -> None:
        """Count."""
        self._resets += 1

    def update(self, observation: Observation) -> Command:
        """Echo."""
        tau = self._command.tau_joint
        tau[:] = observation.joint_position
        tau[0] = self._resets
        tau[1] = observation.imu_linear_acceleration[2]
        tau[2] = observation.foot_wrench[0, 2]
        tau *= self._gain
        return self._command


class Restless(Echo):
    """Echo in a node that reports twice a second the inputs that it still waits for."""

    def __init__(self, robot: Robot, params: EchoParams, dt: float) -> None:
        from bipedsim_ros.nodes import controller_node

        controller_node._PATIENCE_S = 0.5
        super().__init__(robot, params, dt)


class Feedback(Echo):
    """Torques that depend on every measurement, so that a difference in any bit becomes visible."""

    def update(self, observation: Observation) -> Command:
        """Mix all measurements."""
        tau = self._command.tau_joint
        tau[:] = -50.0 * observation.joint_position - 2.0 * observation.joint_velocity
        tau += 0.01 * observation.joint_effort
        tau += 0.1 * observation.imu_linear_acceleration.sum() + observation.imu_angular_velocity.sum()
        tau += 1e-3 * observation.foot_wrench.sum() + observation.imu_orientation[0]
        return self._command


class EchoSensors(Echo):
    """Returns the second of the additional IMUs and the contact switches as torques."""

    def update(self, observation: Observation) -> Command:
        """Echo."""
        self._command.tau_joint[:12] = [*observation.imus[1], *observation.contact_switches]
        return self._command


class EchoScan(Echo):
    """Returns the points of a height scan in the frame of the base as torques."""

    height_points = np.array([[0.1, 0.0], [0.0, 0.2], [0.3, 0.1]])

    def update(self, observation: Observation) -> Command:
        """Echo."""
        points = scan_points(self.height_points, observation.height_scan, observation.scan_up)
        self._command.tau_joint[:9] = points.ravel()
        return self._command


class FeelsAll(Feedback):
    """Feedback that depends on the additional sensors, too, and lifts the feet."""

    def update(self, observation: Observation) -> Command:
        """Mix all measurements."""
        tau = super().update(observation).tau_joint
        tau += 80.0 * np.sin(40.0 * observation.t)
        tau += 1e-2 * observation.imus.sum()
        tau[::2] += 3.0 * observation.contact_switches.sum()
        return self._command


class Stiff(Echo):
    """Has the drives keep a slow squat, and is asked every 20 ticks."""

    decimation = 20

    def __init__(self, robot: Robot, params: EchoParams, dt: float) -> None:
        super().__init__(robot, params, dt)
        kp, kd = joint_gains(robot, 1e-3)
        self._stiff = Command(np.zeros(robot.nu), robot.posture.copy(), None, 2.0 * kp, kd)
        self._posture = robot.posture

    def update(self, observation: Observation) -> Command:
        assert self._stiff.position is not None
        self._stiff.position[:] = self._posture * (1.0 + 0.1 * np.sin(3.0 * observation.t))
        return self._stiff


class Mixed(Stiff):
    """Has the drives keep it for 20 ticks, and sends no torque for 20."""

    def __init__(self, robot: Robot, params: EchoParams, dt: float) -> None:
        super().__init__(robot, params, dt)
        self._turn = 0

    def reset(self, observation: Observation) -> None:
        """Begin with an impedance."""
        self._turn = 0

    def update(self, observation: Observation) -> Command:
        """Take turns."""
        self._turn += 1
        self._command.tau_joint[:] = 0.1 * self._turn
        return super().update(observation) if self._turn % 2 else self._command


class Rest(Echo):
    """Does nothing, with any number of joints."""

    def update(self, observation: Observation) -> Command:
        """Return no torque."""
        return self._command


class Picky(Rest):
    """Starts with a good IMU alone, as estimators do, and warns as libraries do."""

    def reset(self, observation: Observation) -> None:
        """Look at the IMU."""
        warnings.warn(f"picky: reset at t = {observation.t:g} s", stacklevel=1)
        if not np.isfinite(observation.imu_orientation).all():
            raise MeasurementError("picky: cannot start from imu_orientation")


class NotFinite(Echo):
    """A controller with a bug."""

    def update(self, observation: Observation) -> Command:
        """Divide zero by zero."""
        self._command.tau_joint.fill(np.nan)
        return self._command


class Crash(Echo):
    """A controller with a worse bug, at its 52nd update; a reset does not make it count anew."""

    updates = 0

    def update(self, observation: Observation) -> Command:
        """Count, then raise."""
        self.updates += 1
        if self.updates == 52:
            raise RuntimeError("this controller crashes")
        self._command.tau_joint.fill(0.0)
        return self._command


class WrongShape(Feedback):
    """Returns three torques for any robot."""

    def update(self, observation: Observation) -> Command:
        """Return too few."""
        return Command(np.zeros(3))


class NoCommand(Feedback):
    """Returns the torques without a Command around them."""

    def update(self, observation: Observation) -> Any:
        """Return an array."""
        return super().update(observation).tau_joint


class Steered(Rest):
    """Has every optional member, and reports its inputs through them."""

    def __init__(self, robot: Robot, params: EchoParams, dt: float) -> None:
        super().__init__(robot, params, dt)
        self.readouts = dict.fromkeys(("vx", "vy", "wz", "steps", "yaw"), 0.0)
        self.fallen = False
        self.estimate = SimpleNamespace(q=robot.q_nominal.copy(), v=np.zeros(robot.model.nv))

    def reset(self, observation: Observation) -> None:
        """Stand up, and stand."""
        super().reset(observation)
        self.fallen = False
        self.set_velocity(0.0, 0.0, 0.0)

    def set_velocity(self, vx: float, vy: float, wz: float) -> None:
        """Take a velocity; a turn of more than 9 rad/s is where it gives up."""
        self.readouts.update(vx=vx, vy=vy, wz=wz)

    def set_footsteps(self, steps: Any) -> None:
        """Take footsteps of up to 3 m and show how many there are and where the last one looks."""
        if steps[0, 0] > 3.0:
            raise ConfigError(f"{steps[0, 0]:g} m are too far")
        self.readouts.update(steps=float(len(steps)), yaw=float(steps[-1, 2]))

    def update(self, observation: Observation) -> Command:
        """Simulate a walk along x; push back on moving joints."""
        self.estimate.q[0] = observation.t
        self.estimate.v[0] = self.readouts["vx"]
        self.fallen = self.readouts["wz"] > 9.0
        np.multiply(self.readouts["vx"], observation.joint_position, out=self._command.tau_joint)
        return self._command
