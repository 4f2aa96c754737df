"""Robot, controller and ground as one system that starts again from any of its states."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bipedsim.control import Controller
from bipedsim.errors import DivergenceError
from bipedsim.ground import Ground
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.sim import Observation, Simulator, Snapshot
from bipedsim_studies.stability.maps import NoReturnError
from bipedsim_studies.stability.planes import FeetOnPlane
from bipedsim_studies.stability.section import Crossing, Section, Watch

LOOK = 16
"""Ticks between two looks at whether the robot has fallen: its CoM is then below the ground, which only soles meet."""


@dataclass(frozen=True, eq=False)
class Moment:
    """A state of the whole loop, at a control tick.

    Attributes:
        snapshot: Of the simulator.
        observation: What the robot measured last.
        seen: All that the controller has seen until then, from its reset on: that is its memory.
        controller: A copy of it, where :meth:`ClosedLoop.copy_controllers` found that copies do.
    """

    snapshot: Snapshot
    observation: Observation
    seen: tuple[Observation, ...]
    controller: Controller | None = None


class ClosedLoop:
    """A robot on its ground, under a controller or without one.

    Drives and sensors are ideal. The memory of a controller is what it has seen: to go back to a moment is to reset the
    controller and to show it that again, which any deterministic controller stands. That takes as long as the walk did;
    a controller whose copy does the same to the last bit is copied instead.

    Args:
        robot: The robot.
        ground: One endless plane.
        controller: Makes a controller, for the robot and with the control period; None for a robot without torques.
        physics_dt: Step of the simulator [s].
        control_dt: Period of the controller [s]; a physics step by default, and without a controller.
        contact: Name of the contact model. contact_params: What differs from its defaults.

    Attributes:
        sim: The simulator. feet: The feet above the ground.

    Raises:
        ConfigError: The periods, the ground or a parameter are wrong.
    """

    def __init__(
        self,
        robot: Robot,
        ground: Ground,
        controller: Callable[[Robot, float], Controller] | None = None,
        physics_dt: float = 1e-3,
        control_dt: float | None = None,
        contact: str = "one_step",
        contact_params: Mapping[str, Any] | None = None,
    ) -> None:
        self.robot = robot
        self.feet = FeetOnPlane(robot, ground)
        period = None if controller is None else control_dt
        self.sim = Simulator(robot, ground, contact, physics_dt, period, contact_params)
        self._original = self._controller = None if controller is None else controller(robot, self.sim.control_dt)
        self._limit = robot.effort_limit
        self._tau = np.zeros(robot.nu)
        self._observation = self.sim.reset()
        self._seen: list[Observation] = []
        self._copies = False

    def begin(self, q: Array | None = None, v: Array | None = None) -> Moment:
        """Start from (q, v), or from the posture of the robot, with a controller that knows nothing."""
        self._observation = self.sim.reset(q, v)
        self._seen = []
        self._controller = self._original
        if self._controller is not None:
            self._controller.reset(self._observation)
        return self.moment()

    def moment(self) -> Moment:
        """Return the present state of the loop."""
        copied = self._copied(self._controller) if self._copies and self._controller is not None else None
        return Moment(self.sim.snapshot(), self._observation.copy(), tuple(self._seen), copied)

    def copy_controllers(self, moment: Moment, section: Section, longest: float) -> Moment:
        """Find out by one stride whether copies of the controller do as it does, and return the moment with one.

        Raises:
            NoReturnError: The stride does not come back.
        """
        if self._controller is None or moment.controller is not None:
            return moment
        self.go(moment)
        expected, _ = self.stride(section, longest)
        self.go(moment)
        try:
            copied = replace(moment, controller=self._copied(self._controller))
            self.go(copied)
            found, _ = self.stride(section, longest)
        except Exception:  # whatever a controller that is not made for it does
            return moment
        same = np.array_equal(expected.q, found.q) and np.array_equal(expected.v, found.v)
        self._copies = same and expected.t == found.t
        return copied if self._copies else moment

    def _copied(self, controller: Controller) -> Controller:
        """Return a copy with the same robot, which nobody changes."""
        return copy.deepcopy(controller, {id(self.robot): self.robot, id(self.robot.model): self.robot.model})

    def go(self, moment: Moment, q: Array | None = None, v: Array | None = None) -> None:
        """Go to a moment of this loop, and there to the state (q, v) if one is given.

        The controller then knows what it knew at the moment, and measures joints and attitude of (q, v); forces and
        accelerations are those of the moment until the next tick.
        """
        self._seen = list(moment.seen)
        if moment.controller is not None:
            self._controller = self._copied(moment.controller)
        elif self._original is not None:
            self._controller = self._original
            self._controller.reset(moment.seen[0] if moment.seen else moment.observation)
            for seen in moment.seen:
                self._controller.update(seen)
        observation = moment.observation
        if q is None or v is None:
            self.sim.restore(moment.snapshot)
        else:
            here = self.sim.reset(q, v).copy()
            observation = replace(
                here,
                t=observation.t,
                joint_effort=observation.joint_effort,
                imu_linear_acceleration=observation.imu_linear_acceleration,
                foot_wrench=observation.foot_wrench,
            )
            self.sim.restore(replace(moment.snapshot, q=q, v=v))
        self._observation = observation

    def stride(self, section: Section, longest: float) -> tuple[Crossing, int]:
        """Walk until the section, and return where it is met and how many whole ticks lie before that.

        Raises:
            NoReturnError: It is not met within ``longest`` [s], the robot falls, or the simulation diverges.
        """
        sim = self.sim
        watch = Watch(sim, section)
        began = sim.t
        sim.on_physics_step = watch
        ticks = 0
        try:
            while sim.t - began < longest:
                self._tick()
                if watch.found is not None:
                    return watch.found, ticks
                ticks += 1
                if ticks % LOOK == 0 and self.feet.com_height(sim.q) < 0.0:
                    raise NoReturnError(f"{self.robot.name} has fallen {sim.t - began:.3f} s after the section")
        except DivergenceError as error:
            raise NoReturnError(str(error)) from error
        finally:
            sim.on_physics_step = None
        raise NoReturnError(f"{self.robot.name} does not come back to the section within {longest:g} s")

    def advance(self, ticks: int) -> None:
        """Walk for some control ticks."""
        for _ in range(ticks):
            self._tick()

    def _tick(self) -> None:
        if self._controller is None:
            self.sim.advance(self._tau)
            return
        # The simulator owns the observation and overwrites it.
        self._seen.append(self._observation.copy())
        np.clip(self._controller.update(self._seen[-1]).tau_joint, -self._limit, self._limit, out=self._tau)
        self._observation = self.sim.step(self._tau)
