"""Provide bipedsim's contact models as engines of the benchmark."""

from __future__ import annotations

import numpy as np

from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.sim import Simulator
from bipedsim_studies.bench.engines.base import Engine


class BipedSimEngine(Engine):
    """:class:`Simulator` with one contact model.

    Args:
        robot, dt: See :class:`Engine`.
        contact: Name of the contact model.
        sensors: Whether a step also fills an :class:`Observation`: encoders, IMU and ankle force-torque sensors.
            Wrenches and centres of pressure are available in both cases.
    """

    def __init__(self, robot: Robot, dt: float, contact: str, sensors: bool = False) -> None:
        super().__init__(robot, dt)
        self._sim = Simulator(robot, contact=contact, physics_dt=dt)
        self._sim.warm_up()
        self.step = self._sim.step if sensors else self._sim.advance

    def reset(self, q: Array, v: Array) -> None:
        self._sim.reset(q, v)

    def push(self, force_world: Array) -> None:
        root = self.robot.model.names[1]
        self._sim.push(np.concatenate([force_world, np.zeros(3)]), body=root)

    def state(self) -> tuple[Array, Array]:
        return self._sim.q.copy(), self._sim.v.copy()

    def wrenches(self) -> Array:
        return self._sim.contact.impulse / self.dt
