"""Provide bipedsim's contact models as engines of the benchmark."""

from __future__ import annotations

import numpy as np

from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.sim import Simulator
from bipedsim_studies.bench.engines.base import Engine
from bipedsim_studies.bench.engines.scene import Scene


class BipedSimEngine(Engine):
    """:class:`Simulator` with one contact model.

    Args:
        robot, dt: See :class:`Engine`.
        contact: Name of the contact model.
        scene: Objects. The bodies of the robot and its joint limits make contact in any case.
        sensors: Whether a step also fills an :class:`Observation`: encoders, IMU and ankle force-torque sensors.
            Wrenches and centres of pressure are available in both cases.
    """

    simulator: Simulator

    def __init__(
        self, robot: Robot, dt: float, contact: str, scene: Scene | None = None, sensors: bool = False
    ) -> None:
        super().__init__(robot, dt)
        self.simulator = simulator = Simulator(
            robot, contact=contact, physics_dt=dt, objects=scene.objects if scene else ()
        )
        simulator.warm_up()
        self.step = simulator.step if sensors else simulator.advance

    def reset(self, q: Array, v: Array) -> None:
        self.simulator.reset(q, v)

    def push(self, force_world: Array) -> None:
        root = self.robot.model.names[1]
        # A push of zero ends, so that later steps do not add its force.
        duration = np.inf if np.any(force_world) else self.dt
        self.simulator.push(np.concatenate([force_world, np.zeros(3)]), body=root, duration=duration)

    def state(self) -> tuple[Array, Array]:
        return self.simulator.q.copy(), self.simulator.v.copy()

    def load(self) -> Array:
        forces = self.wrenches()[:, :3].sum(axis=0) + self.simulator.body_impulse.sum(axis=0) / self.dt
        return np.asarray(forces)

    def wrenches(self) -> Array:
        return self.simulator.contact.impulse / self.dt
