"""Run robot, controller and ground as one closed loop that can restart from any of its states."""

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
from bipedsim_studies.stability.section import Section, SectionCrossing, SectionMonitor

LOOK = 16
"""Ticks between two checks for a fall. Only soles collide with the ground, so the CoM of a fallen robot is below it."""


@dataclass(frozen=True, eq=False)
class LoopState:
    """State of the whole loop at a control tick.

    Attributes:
        snapshot: Snapshot of the simulator.
        observation: Last observation of the robot.
        seen: All observations since the controller's reset. They determine the state of the controller.
        controller: Copy of the controller, if :meth:`ClosedLoop.copy_controllers` found copies to be equivalent.
    """

    snapshot: Snapshot
    observation: Observation
    seen: tuple[Observation, ...]
    controller: Controller | None = None


class ClosedLoop:
    """A robot on its ground, with or without a controller.

    Drives and sensors are ideal. To return to an earlier state, the loop resets the controller and replays all its
    observations, which works for any deterministic controller. A replay takes as long as the original walk. The loop
    therefore copies a controller instead if its copy gives results that are identical to the last bit.

    Args:
        robot: The robot.
        ground: One unbounded plane.
        controller: Makes a controller from the robot and the control period. None for a robot without torques.
        physics_dt: Physics step of the simulator [s].
        control_dt: Control period [s]. It is one physics step by default and without a controller.
        contact: Name of the contact model. contact_params: Parameters that differ from the defaults.

    Attributes:
        sim: The simulator. feet: Position of the feet relative to the ground.

    Raises:
        ConfigError: The periods, the ground or a parameter are invalid.
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

    def begin(self, q: Array | None = None, v: Array | None = None) -> LoopState:
        """Start from (q, v), or from the robot's initial posture, and reset the controller."""
        self._observation = self.sim.reset(q, v)
        self._seen = []
        self._controller = self._original
        if self._controller is not None:
            self._controller.reset(self._observation)
        return self.moment()

    def moment(self) -> LoopState:
        """Return the current state of the loop."""
        controller_copy = self._copied(self._controller) if self._copies and self._controller is not None else None
        return LoopState(self.sim.snapshot(), self._observation.copy(), tuple(self._seen), controller_copy)

    def copy_controllers(self, moment: LoopState, section: Section, longest: float) -> LoopState:
        """Return the state with a copy of the controller if one simulated stride shows that copies are equivalent.

        Otherwise return the state unchanged.

        Raises:
            NoReturnError: The trajectory does not return to the section.
        """
        if self._controller is None or moment.controller is not None:
            return moment
        self.go(moment)
        expected, _ = self.stride(section, longest)
        self.go(moment)
        try:
            with_copy = replace(moment, controller=self._copied(self._controller))
            self.go(with_copy)
            repeated, _ = self.stride(section, longest)
        except Exception:  # A third-party controller can fail in any way when it is copied.
            return moment
        same = np.array_equal(expected.q, repeated.q) and np.array_equal(expected.v, repeated.v)
        self._copies = same and expected.t == repeated.t
        return with_copy if self._copies else moment

    def _copied(self, controller: Controller) -> Controller:
        """Return a copy of the controller that shares the robot, which is never modified."""
        return copy.deepcopy(controller, {id(self.robot): self.robot, id(self.robot.model): self.robot.model})

    def go(self, moment: LoopState, q: Array | None = None, v: Array | None = None) -> None:
        """Restore a state of this loop, and then set (q, v) if given.

        The controller keeps its memory, and measures joints and attitude of (q, v). Measured forces and accelerations
        remain those of the restored state until the next tick.
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
            measured = self.sim.reset(q, v).copy()
            observation = replace(
                measured,
                t=observation.t,
                joint_effort=observation.joint_effort,
                imu_linear_acceleration=observation.imu_linear_acceleration,
                foot_wrench=observation.foot_wrench,
            )
            self.sim.restore(replace(moment.snapshot, q=q, v=v))
        self._observation = observation

    def stride(self, section: Section, longest: float) -> tuple[SectionCrossing, int]:
        """Walk until the section. Return the crossing and the number of complete ticks before it.

        Raises:
            NoReturnError: ``longest`` [s] elapses before the section, the robot falls, or the simulation diverges.
        """
        sim = self.sim
        monitor = SectionMonitor(sim, section)
        start_time = sim.t
        sim.on_physics_step = monitor
        ticks = 0
        try:
            while sim.t - start_time < longest:
                self._tick()
                if monitor.crossing is not None:
                    return monitor.crossing, ticks
                ticks += 1
                if ticks % LOOK == 0 and self.feet.com_height(sim.q) < 0.0:
                    raise NoReturnError(f"has fallen {sim.t - start_time:.3f} s after the section", self.robot.name)
        except DivergenceError as error:
            raise NoReturnError(str(error)) from error
        finally:
            sim.on_physics_step = None
        raise NoReturnError(f"does not come back to the section within {longest:g} s", self.robot.name)

    def advance(self, ticks: int) -> None:
        """Walk for ``ticks`` control ticks."""
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
