"""Define the settings of a return map as data, so that other processes, slopes and physics steps can rebuild it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bipedsim.config import RunConfig, from_mapping, like, param, read_yaml
from bipedsim.control import Controller, make_controller
from bipedsim.errors import ConfigError
from bipedsim.ground import Ground, get_ground
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array
from bipedsim_studies.stability.loop import ClosedLoop
from bipedsim_studies.stability.return_map import ReturnMap
from bipedsim_studies.stability.section import Clock, Section, TouchDown

FILE = "gait.yaml"
"""File next to robot.yaml with the initial state of a walk without a controller."""


@dataclass(frozen=True)
class Start:
    """Initial state of a walk, as read from a file."""

    slope: float = param(0.0, "of the ground it walks on, falling towards +x", unit="rad", low=-1.0, high=1.0)
    q: tuple[float, ...] = param((), "configuration (nq,)")
    v: tuple[float, ...] = param((), "velocity (nv,)")
    source: str = param("", "where it is from")


@dataclass(frozen=True)
class WalkerGait:
    """Settings of a gait: robot, ground, controller and definition of a stride."""

    robot: str = like(RunConfig, "robot", "compass")
    ground: str | None = like(RunConfig, "ground", doc="path of a ground of one plane")
    slope: float | None = param(None, "slope, falling towards +x (default: that of the start)", unit="rad")
    controller: str | None = like(RunConfig, "controller", doc="package.module:Class of your own (default: no torques)")
    controller_params: Mapping[str, Any] = like(RunConfig, "controller_params", doc="parameters of the controller")
    contact_model: str = like(RunConfig, "contact_model")
    contact_params: Mapping[str, Any] = like(RunConfig, "contact_params")
    physics_dt: float = like(RunConfig, "physics_dt", 1e-3, "physics step")
    control_dt: float | None = param(None, "control period (default: the physics step)", unit="s", low=1e-6)
    foot: str | None = param(None, "foot that ends a stride when it lands (default: either foot, mirrored)")
    period: float | None = param(None, "a stride ends after this time, for clocked gaits", unit="s")
    mirrored: bool = param(True, "take steps left for right; only without foot and period")
    start: str | None = param(None, "file with initial slope, q and v (default: gait.yaml of the robot)", path=True)
    settle: int = param(2, "strides before the first return", low=0)

    def map(self, near: tuple[ReturnMap, Array] | None = None) -> ReturnMap:
        """Return the return map.

        Args:
            near: Another map of the same robot, and coordinates on it. The walk then starts from that state.

        Raises:
            ConfigError: A setting is invalid.
            NoReturnError: The robot does not walk from its initial state.
        """
        robot = load_robot(self.robot)
        state = self._state(robot)
        loop = ClosedLoop(
            robot,
            self._ground(state),
            None if self.controller is None else self._controller,
            self.physics_dt,
            self.control_dt,
            self.contact_model,
            self.contact_params,
        )
        section = self._section(loop)
        q = v = None
        if near is not None:
            q, v = near[0].state_on(loop, section, near[1])
        elif state.q:
            q, v = np.array(state.q), np.array(state.v)
        mirrored = self.mirrored and self.foot is None and self.period is None
        return ReturnMap(loop, section, q, v, 1 if near is not None else self.settle, mirrored)

    def _state(self, robot: Robot) -> Start:
        path = Path(self.start) if self.start is not None else robot.source.with_name(FILE)
        if self.start is None and (self.controller is not None or not path.is_file()):
            return Start()
        start = from_mapping(Start, read_yaml(path), str(path))
        for name, size in (("q", robot.model.nq), ("v", robot.model.nv)):
            if len(getattr(start, name)) != size:
                raise ConfigError(f"{name} = {list(getattr(start, name))} must be {size} numbers", path)
        return start

    def _ground(self, start: Start) -> Ground:
        if self.ground is not None:
            if self.slope is not None:
                raise ConfigError(f"and slope = {self.slope} rad: give one of them", "ground", self.ground)
            return get_ground(self.ground)
        slope = start.slope if self.slope is None else self.slope
        if not abs(slope) < 0.5 * math.pi:
            raise ConfigError("rad must be between -pi/2 and pi/2", "slope", slope)
        return Ground.slope(-slope)

    def _controller(self, robot: Robot, dt: float) -> Controller:
        assert self.controller is not None
        return make_controller(self.controller, robot, self.controller_params, dt)

    def _section(self, loop: ClosedLoop) -> Section:
        if self.period is None:
            return TouchDown(loop.robot, loop.feet, self.foot)
        if self.foot is not None:
            raise ConfigError(f"and period = {self.period} s: a stride ends by one of them", "foot", self.foot)
        ratio = self.period / loop.sim.control_dt
        if not (self.period > 0.0 and abs(ratio - round(ratio)) < 1e-6 * ratio):
            raise ConfigError(f"s must be whole control ticks of {loop.sim.control_dt} s", "period", self.period)
        return Clock(self.period)
