"""Pushes that begin by themselves, in headless runs and in sim_node."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bipedsim.errors import ConfigError

if TYPE_CHECKING:
    from bipedsim.model import Robot
    from bipedsim.sim import Simulator

Array = NDArray[np.float64]

WORLD, HEADING = "world", "heading"
FRAMES = (WORLD, HEADING)


@dataclass(frozen=True, eq=False)
class ScheduledPush:
    """A push that begins by itself.

    Attributes:
        start, duration: When it acts [s].
        wrench: (6,) force [N] and torque [N.m].
        body: Frame at whose origin it acts; empty for the root link.
        frame: Axes of the wrench: those of the world, or turned about the vertical by the heading that the root link
            has when the push begins.
    """

    start: float
    duration: float
    wrench: Array
    body: str = ""
    frame: str = WORLD

    def world_wrench(self, robot: Robot, q: Array) -> Array:
        """Return the wrench (6,) in world axes, if it begins in the configuration ``q`` (nq,)."""
        if self.frame == WORLD or not robot.free_flyer:
            return self.wrench
        yaw = heading_of(q)
        c, s = math.cos(yaw), math.sin(yaw)
        turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        return np.concatenate([turn @ self.wrench[:3], turn @ self.wrench[3:]])

    def text(self) -> str:
        """Return what :func:`parse_pushes` reads, to the bit; a torque is not part of it."""
        numbers = " ".join(repr(float(value)) for value in (self.start, self.duration, *self.wrench[:3]))
        tail = [self.body or ROOT, self.frame] if self.frame != WORLD else [self.body] * bool(self.body)
        return " ".join([numbers, *tail])


def heading_of(q: Array) -> float:
    """Return the heading [rad] of a free-flying root in the configuration ``q`` (nq,): its x axis seen from above."""
    x, y, z, w = q[3:7].tolist()
    return math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


ROOT = "root"
"""Stands for the root link where a text must name a body."""


def parse_pushes(texts: Sequence[str], frames: Sequence[str]) -> tuple[ScheduledPush, ...]:
    """Read pushes from ``'start duration fx fy fz [body [frame]]'``, sorted by start.

    Args:
        texts: Times in s, forces in N.
        frames: The frames of the robot that a body may be.

    Raises:
        ConfigError: A text has the wrong form, or names no frame of the robot.
    """
    result = []
    for text in texts:
        words = text.split()
        form = (
            f"pushes: {text!r} must be 'start duration fx fy fz [body [frame]]' in s, s and N, the times not negative, "
            f"the frame one of {', '.join(FRAMES)}"
        )
        if not 5 <= len(words) <= 7:
            raise ConfigError(form)
        try:
            start, duration, *force = (float(word) for word in words[:5])
        except ValueError as error:
            raise ConfigError(form) from error
        body, frame = [*words[5:], *["", WORLD][len(words) - 5 :]]
        if not (np.isfinite([start, duration, *force]).all() and start >= 0.0 and duration >= 0.0 and frame in FRAMES):
            raise ConfigError(form)
        if body and body != ROOT and body not in frames:
            raise ConfigError(f"pushes: {text!r}: the robot has no frame {body!r}; it has {', '.join(frames)}")
        wrench = np.array([*force, 0.0, 0.0, 0.0])
        result.append(ScheduledPush(start, duration, wrench, "" if body == ROOT else body, frame))
    return tuple(sorted(result, key=lambda push: push.start))


class PushSchedule:
    """The pushes of a run, each given to the simulator when it is due; one that begins ends the one before.

    Args:
        pushes: In any order.
    """

    def __init__(self, pushes: Iterable[ScheduledPush]) -> None:
        self._all = tuple(sorted(pushes, key=lambda push: push.start))
        self.restart()

    def restart(self) -> None:
        """Begin again at t = 0."""
        self._left = deque(self._all)

    def apply(self, sim: Simulator) -> None:
        """Begin what is due before the next step of ``sim``."""
        while self._left and sim.t >= self._left[0].start - 0.5 * sim.physics_dt:
            push = self._left.popleft()
            sim.push(push.world_wrench(sim.robot, sim.q), push.body or None, push.duration)
