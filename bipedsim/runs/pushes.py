"""Scheduled pushes: in scenario files, as texts in parameters, and as a participant of the simulation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bipedsim.config import Vector, from_mapping, param, together
from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.numerics import Array
from bipedsim.sim import LARGEST_PUSH, Participant, Simulation

if TYPE_CHECKING:
    from bipedsim.model import Robot
    from bipedsim.objects import ObjectConfig


WORLD, HEADING = "world", "heading"
FRAMES = (WORLD, HEADING)
ROOT = "root"
"""Name of the root link in a text that must name a body."""
_FORCES = ("force", "force_over_weight", "impulse_over_mass")
_FORM = "'start duration fx fy fz [body [frame]]' in s, s and N"


@dataclass(frozen=True)
class Push:
    """Describe a force on a body for a limited time: an entry of ``pushes`` in a scenario file."""

    at: float = param(0.0, "when it begins", unit="s", low=0.0, high=1e9)
    duration: float = param(0.1, "duration", unit="s", low=1e-6, high=1e9)
    force: Vector | None = param(None, "[x, y, z]", unit="N", low=-LARGEST_PUSH, high=LARGEST_PUSH)
    force_over_weight: Vector | None = param(
        None, "[x, y, z] as a fraction of the weight of the pushed body, instead of the force"
    )
    impulse_over_mass: Vector | None = param(
        None,
        "[x, y, z] change of velocity: force times duration over the mass of the pushed body, instead of the force",
        unit="m/s",
    )
    body: str = param("", "frame at whose origin the force acts, or an object; default: the root link")
    frame: str = param(
        WORLD, "axes of the force; heading: x points ahead of the robot at the start of the push", choices=FRAMES
    )

    def problems(self) -> Iterator[ConfigError]:
        """Yield a message for each inconsistency between the keys."""
        if sum(getattr(self, name) is not None for name in _FORCES) != 1:
            yield ConfigError("give one of them, [x, y, z]", ", ".join(_FORCES))

    def for_robot(self, robot: Robot, objects: Sequence[ObjectConfig] = ()) -> Push:
        """Return the push with its force in N for ``robot``, or for the object in ``objects`` that it names.

        Raises:
            UnknownNameError: The robot has no such body.
            ConfigError: The force is beyond ``LARGEST_PUSH``.
        """
        mass, weight = robot.mass, robot.weight
        pushed = next((config for config in objects if config.name == self.body), None)
        if pushed is not None:
            mass = pushed.make().mass
            weight = mass * robot.weight / robot.mass
        elif self.body and not robot.model.existFrame(self.body):
            names = sorted({*(config.name for config in objects), *(frame.name for frame in robot.model.frames)})
            raise UnknownNameError("body", self.body, names, f"push at {self.at:g} s of {robot.name}")
        if self.impulse_over_mass is not None:
            force = mass / self.duration * np.array(self.impulse_over_mass)
        elif self.force_over_weight is not None:
            force = weight * np.array(self.force_over_weight)
        else:
            return self
        x, y, z = force.tolist()
        if not abs(force).max() <= LARGEST_PUSH:
            raise ConfigError(
                f"N is beyond {LARGEST_PUSH:g} N, the maximum", f"push at {self.at:g} s: force", [x, y, z]
            )
        return replace(self, force=(x, y, z), force_over_weight=None, impulse_over_mass=None)

    def world_wrench(self, robot: Robot, q: Array) -> Array:
        """Return force [N] and torque (6,) in world axes, if the push begins in the configuration ``q`` (nq,)."""
        force = np.array(self.for_robot(robot).force if self.force is None else self.force)
        if self.frame == HEADING and robot.free_flyer:
            yaw = heading_of(q)
            c, s = math.cos(yaw), math.sin(yaw)
            force = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]) @ force
        return np.concatenate([force, np.zeros(3)])

    def text(self) -> str:
        """Return the push as a text for :func:`parse_pushes`, without loss of precision; its force must be in N."""
        numbers = " ".join(repr(float(value)) for value in (self.at, self.duration, *(self.force or ())))
        tail = [self.body or ROOT, self.frame] if self.frame != WORLD else [self.body] * bool(self.body)
        return " ".join([numbers, *tail])


def heading_of(q: Array) -> float:
    """Return the heading [rad] of a free-flying root in the configuration ``q`` (nq,): its x axis seen from above."""
    x, y, z, w = q[3:7].tolist()
    return math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


def parse_pushes(texts: Sequence[str], frames: Sequence[str]) -> tuple[Push, ...]:
    """Read pushes from ``'start duration fx fy fz [body [frame]]'``, sorted by start.

    Args:
        texts: Times in s, forces in N.
        frames: Frames of the robot that a text may name as body.

    Raises:
        ConfigError: Texts have the wrong form, or name no frame of the robot.
    """
    pushes: list[Push] = []
    faults: list[ConfigError] = []
    for i, text in enumerate(texts):
        try:
            pushes.append(_parse_push(text, f"pushes[{i}]", frames))
        except ConfigError as error:
            faults.append(error)
    together(faults)
    return tuple(sorted(pushes, key=lambda push: push.at))


def _parse_push(text: str, place: str, frames: Sequence[str]) -> Push:
    words = text.split()
    form = f"must be {_FORM}, the frame one of {', '.join(FRAMES)}"
    if not 5 <= len(words) <= 7:
        raise ConfigError(form, place, text)
    try:
        start, duration, *force = map(float, words[:5])
    except ValueError as error:
        raise ConfigError(form, place, text) from error
    body, frame = [*words[5:], *["", WORLD][len(words) - 5 :]]
    values = {"at": start, "duration": duration, "force": force, "body": "" if body == ROOT else body}
    try:
        push = from_mapping(Push, {**values, "frame": frame}, "it says")
    except ConfigError as error:
        raise ConfigError(f"{form}; {error}", place, text) from error
    if push.body and push.body not in frames:
        raise ConfigError(f"names no frame of the robot; it has {', '.join(frames)}", place, text)
    return push


class PushSchedule(Participant):
    """Apply the scheduled pushes of a run; each push ends the one before.

    Args:
        pushes: Pushes in any order.
    """

    name = "push_schedule"

    def __init__(self, pushes: Iterable[Push]) -> None:
        self._pushes = tuple(sorted(pushes, key=lambda push: push.at))
        self._started = 0

    def reset(self, sim: Simulation) -> None:
        """Start again at t = 0."""
        self._started = 0

    def begin_tick(self, sim: Simulation) -> None:
        """Start the pushes that begin before the end of this tick, each at its time within it."""
        end = sim.t + sim.control_dt - 1e-6 * sim.physics_dt
        while self._started < len(self._pushes) and self._pushes[self._started].at < end:
            push = self._pushes[self._started]
            self._started += 1
            after = max(push.at - sim.t, 0.0)
            sim.push(push.world_wrench(sim.robot, sim.q), push.body or None, push.duration, after)

    def set_state(self, state: None, sim: Simulation) -> None:
        """Continue with the pushes that begin after the time of ``sim``."""
        end = sim.t - 1e-6 * sim.physics_dt
        self._started = sum(push.at < end for push in self._pushes)
