"""Commands as they reach the drives: sound or dropped, clipped, and replaced when they stay away."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bipedsim.control import joint_damping
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.sim import Observation
from bipedsim_ros.loop.drops import Drops
from bipedsim_ros.loop.sim_params import SimParams
from bipedsim_ros.wire import CommandReader, topics


class Commands:
    """The last sound command, and what the joints do once it is older than ``command_timeout``.

    * ``hold``: the last command, for ever; * ``zero``: no torque; * ``damping``: torque against the joint velocity;
    * ``stiff``: a spring and a damper to where the joints were when the timeout began.

    Gains are shares of each joint's effort limit, so that they fit a robot of any size: damping reaches the limit at
    the velocity limit, stiffness at 1 / ``timeout_stiffness`` radian.

    Attributes:
        received: Sound messages so far.
        drops: The others, by kind.
        timeouts: How often the timeout began.
        timed_out: Whether the joints run on the timeout mode now.
    """

    def __init__(self, robot: Robot, params: SimParams, warn: Callable[[str], None]) -> None:
        self._robot = robot
        self.drops = Drops(lambda text: warn(f"command on {topics.COMMANDS.name} dropped: {text}"))
        self._reader = CommandReader(robot.joint_names)
        self._tau = np.zeros(robot.nu)
        self._out = np.zeros(robot.nu)
        self._held = np.zeros(robot.nu)
        self._t_last: float | None = None
        self.received = self.timeouts = 0
        self.timed_out = False
        self.configure(params)

    def configure(self, params: SimParams) -> None:
        """Take timeout, mode and gains from ``params``; they may change at any time."""
        self._timeout = params.command_timeout
        self._mode = params.timeout_mode
        self._kd = params.timeout_damping * joint_damping(self._robot)
        self._kp = params.timeout_stiffness * self._robot.effort_limit

    @property
    def started(self) -> bool:
        """Whether a sound command has come since :meth:`clear`."""
        return self._t_last is not None

    def clear(self) -> None:
        """Forget the last command, as after a reset; the counts stay."""
        self._tau[:] = 0.0
        self._t_last = None
        self.timed_out = False

    def accept(self, data: bytes, t: float) -> bool:
        """Take a serialised message that came at simulated time ``t`` [s], or drop it, count it and say why."""
        fault = self._reader.read(data, self._tau)
        if fault is not None:
            self.drops.add(*fault)
            return False
        self.received += 1
        self._t_last = t
        return True

    def torque(self, observation: Observation, t: float) -> Array:
        """Return the torques (nu,) [N.m] for the tick that begins at ``t``, within the effort limits.

        The array is overwritten by the next call.
        """
        # Time is a sum of rounded steps: without the slack a timeout of n ticks would begin at n or n + 1 as rounding
        # has it.
        late = self._t_last is not None and t - self._t_last > self._timeout + 1e-9
        if late and not self.timed_out:
            self.timeouts += 1
            self._held[:] = observation.joint_position
        self.timed_out = late
        if late and self._mode == "zero":
            self._out[:] = 0.0
        elif late and self._mode == "damping":
            np.multiply(-self._kd, observation.joint_velocity, out=self._out)
        elif late and self._mode == "stiff":
            spring = self._kp * (self._held - observation.joint_position)
            np.subtract(spring, self._kd * observation.joint_velocity, out=self._out)
        else:
            self._out[:] = self._tau
        limit = self._robot.effort_limit
        np.minimum(self._out, limit, out=self._out)
        return np.maximum(self._out, -limit, out=self._out)
