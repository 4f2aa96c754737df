"""Which foot of a walker carries: the one that landed last; and outputs of walkers that fall from foot to foot."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bipedsim.control.output.output_tracking import OutputTracking, linear_sums
from bipedsim.control.output.supported import Task
from bipedsim.errors import UnknownNameError
from bipedsim.model import Robot
from bipedsim.numerics import Array, Flags
from bipedsim.sim import Observation


class StanceFoot:
    """The foot that carries a walker of two feet, which changes at touch-downs of the other.

    Args:
        early: Time after a touch-down before which another one is what the ground does just after it [s], unless the
            foot that carried is off the ground.

    Attributes:
        index: Of the foot.
        began: When it began to carry [s].
        known: Whether one carries at all.
    """

    def __init__(self, early: float) -> None:
        self._early = early
        self.index = 0
        self.began = 0.0
        self.known = False

    def reset(self) -> None:
        """Forget which foot carries."""
        self.known = False

    def lands(self, t: float, loaded: Flags) -> bool:
        """Return whether the other foot has landed, ``loaded`` (2,) at ``t`` [s]."""
        late = t - self.began > self._early
        return self.known and bool(loaded[1 - self.index] and (late or not loaded[self.index]))

    def take(self, t: float, index: int) -> None:
        """Let the foot ``index`` carry from ``t`` [s] on."""
        self.index, self.began, self.known = index, t, True


class StepTracking(OutputTracking):
    """Base of the controllers that let walkers of two feet step, if the parameters say what swings.

    The foot that carries is then the only one at rest, and every touch-down of the other makes it the one. A walker of
    one drive tracks its swing and nothing else.

    Args:
        robot, params, dt: As :class:`OutputTracking`.

    Attributes:
        readouts: Of such a walker with ``steps``, the touch-downs that changed feet.

    Raises:
        ConfigError: A parameter does not fit the robot.
        UnknownNameError: A joint, output or foot that there is not.
    """

    def _walk(self, swing: Array, early: float) -> None:
        """Take what swings, a sum (2, n) for each foot that carries, or none; ``early`` as of :class:`StanceFoot`."""
        self._swing = swing
        self._stance = StanceFoot(early)
        if len(swing):
            self.readouts["steps"] = 0.0

    def _per_foot(self, robot: Robot, sums: Mapping[str, str], names: tuple[str, ...], what: str) -> Array:
        """Return the coefficients of the sum of each foot over ``names``, in the order of the feet."""
        feet = [sole.name for sole in robot.soles]
        for foot in sums:
            if foot not in feet:
                raise UnknownNameError("foot", foot, feet, f"{self.who}: {what}")
        return linear_sums({name: sums[name] for name in feet if name in sums}, names, f"{self.who}: {what}")

    def _begin(self, observation: Observation, stance: int) -> None:
        """Let the foot ``stance`` carry."""
        self._stance.take(observation.t, stance)

    def _swinging(self, observation: Observation) -> None:
        """Go on with a swing that has begun."""

    def _swing_task(self, observation: Observation) -> tuple[Task, float]:
        """Return what the swing wants, and its error [rad]."""
        raise NotImplementedError

    def reset(self, observation: Observation) -> None:
        """Start from the measured state."""
        super().reset(observation)
        self._stance.reset()

    def _resting(self, observation: Observation) -> Flags:
        loaded, stance = self._feet.loaded, self._stance
        if not len(self._swing):
            return loaded
        if not stance.known:
            self._begin(observation, int(np.argmax(loaded)))
            self.readouts["steps"] = 0.0
        elif stance.lands(observation.t, loaded):
            self._begin(observation, 1 - stance.index)
            self.readouts["steps"] += 1.0
        else:
            self._swinging(observation)
        return np.arange(len(loaded)) == stance.index

    def _tasks(self, observation: Observation, t: float) -> list[Task]:
        if not len(self._swing):
            return super()._tasks(observation, t)
        task, error = self._swing_task(observation)
        others = super()._tasks(observation, t) if self._robot.nu > 1 else []
        self.readouts["tracking_error"] = abs(error)
        return [task, *others]
