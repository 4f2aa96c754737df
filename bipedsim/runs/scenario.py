"""Scenario: what a run is besides robot and contact model, with quantities that scale with the robot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bipedsim.errors import UnknownNameError
from bipedsim.model import IDEAL, Robot
from bipedsim.runs.pushes import WORLD, ScheduledPush
from bipedsim.runs.velocities import VelocityStep


@dataclass(frozen=True)
class Push:
    """A force on a body.

    Attributes:
        at, duration: When it acts [s].
        force_over_weight: (x, y, z), as a share of the robot's weight.
        impulse_over_mass: (x, y, z), force times duration over the robot's mass [m/s], instead of the force.
        body: Frame at whose origin it acts; empty for the root link.
        frame: ``world``, or ``heading``: x ahead of the robot as it stands when the push begins.
    """

    at: float
    duration: float
    force_over_weight: tuple[float, float, float] | None = None
    impulse_over_mass: tuple[float, float, float] | None = None
    body: str = ""
    frame: str = WORLD

    def scheduled(self, robot: Robot) -> ScheduledPush:
        """Return the push that it is for ``robot``.

        Raises:
            UnknownNameError: The robot has no such body.
        """
        if self.body and not robot.model.existFrame(self.body):
            names = sorted({frame.name for frame in robot.model.frames})
            raise UnknownNameError("body", self.body, names, f"push at {self.at:g} s of {robot.name}")
        if self.impulse_over_mass is not None:
            force = robot.mass / self.duration * np.array(self.impulse_over_mass)
        else:
            force = robot.weight * np.array(self.force_over_weight or (0.0, 0.0, 0.0))
        return ScheduledPush(self.at, self.duration, np.concatenate([force, np.zeros(3)]), self.body, self.frame)


@dataclass(frozen=True)
class Scenario:
    """One situation (docs/scenarios.md).

    Attributes:
        name: Its name, or that of its file.
        description: One line.
        controller: Controller that it is made for, used where none is asked for.
        controller_params: What the controllers that know these words are told.
        duration: How long a headless run takes where nothing else is asked for [s].
        ground: Name of a ground, or path of a ground YAML, used where none is asked for.
        hardware: Drives, sensors and masses, used where none are asked for; see
            :func:`bipedsim.model.hardware.read_hardware`.
        drop_height: Height of the soles above the ground at the start [m].
        pushes: Who pushes.
        velocity: Velocity commands on a schedule.
    """

    name: str
    description: str
    controller: str = "posture"
    controller_params: Mapping[str, Any] = field(default_factory=dict)
    duration: float = 10.0
    ground: str = "flat"
    hardware: str = IDEAL
    drop_height: float = 0.0
    pushes: tuple[Push, ...] = ()
    velocity: tuple[VelocityStep, ...] = ()

    @property
    def push_times(self) -> tuple[tuple[float, float], ...]:
        """Begin and end of every push [s]."""
        return tuple((push.at, push.at + push.duration) for push in self.pushes)
