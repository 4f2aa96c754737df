"""The interface of a controller: it sees measurements and returns torques, and knows no simulator."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bipedsim.errors import ConfigError
from bipedsim.robot_io import Command, Observation


class Controller(Protocol):
    """Anything with these two methods drives the simulator and a robot alike.

    The table entry is a class whose constructor takes ``(robot: Robot, params: Params, dt: float)``, with the dataclass
    of its parameters as the class attribute ``Params``.
    """

    def reset(self, observation: Observation) -> None:
        """Start from this observation; called once before the first :meth:`update` and after every reset."""
        ...

    def update(self, observation: Observation) -> Command:
        """Return the command for one tick. The controller owns and may reuse the returned arrays."""
        ...


def checked_torque(command: Any, observation: Observation) -> NDArray[np.float64]:
    """Return the torques (nu,) [N.m] of what a controller's ``update`` has returned.

    Raises:
        ConfigError: It is no :class:`Command`, or holds another number of torques than the robot has joints.
    """
    tau_joint = getattr(command, "tau_joint", None)
    shape = observation.joint_position.shape
    if not isinstance(tau_joint, np.ndarray) or tau_joint.shape != shape:
        found = f"tau_joint of shape {np.shape(tau_joint)}" if tau_joint is not None else type(command).__name__
        raise ConfigError(f"the controller's update returned {found}; it must return Command(tau_joint), shape {shape}")
    return tau_joint
