"""The interface of a controller: it sees measurements and returns torques, and knows no simulator."""

from __future__ import annotations

from typing import Protocol

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
