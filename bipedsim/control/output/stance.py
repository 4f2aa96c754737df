"""The stance foot of a walker, which touched down last, and outputs of walkers that fall from foot to foot."""

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
    """Track the stance foot of a two-footed walker; it changes at touchdowns of the other foot.

    Args:
        early: Time after a touchdown in which another touchdown is ignored as an after-effect of the impact [s].
            If the stance foot is off the ground, the touchdown always counts.

    Attributes:
        index: Index of the stance foot.
        began: Time of its touchdown [s].
        known: Whether there is a stance foot.
    """

    def __init__(self, early: float) -> None:
        self._early = early
        self.index = 0
        self.began = 0.0
        self.known = False

    def reset(self) -> None:
        """Clear the stance foot."""
        self.known = False

    def lands(self, t: float, loaded: Flags) -> bool:
        """Return whether the other foot has touched down, from the loaded feet ``loaded`` (2,) at ``t`` [s]."""
        late = t - self.began > self._early
        return self.known and bool(loaded[1 - self.index] and (late or not loaded[self.index]))

    def take(self, t: float, index: int) -> None:
        """Make the foot ``index`` the stance foot from ``t`` [s] on."""
        self.index, self.began, self.known = index, t, True


class StepTracking(OutputTracking):
    """Track outputs of two-footed walkers that step, if the parameters define a swing; base class.

    Then only the stance foot rests, and every touchdown of the other foot makes that one the stance foot. A walker with
    one drive tracks its swing and nothing else.

    Args:
        robot, params, dt: As :class:`OutputTracking`.

    Attributes:
        readouts: Of such a walker, also ``steps``: the number of touchdowns that changed the stance foot.

    Raises:
        ConfigError: A parameter does not fit the robot.
        UnknownNameError: There is no such joint, output or foot.
    """

    def _walk(self, swing: Array, early: float) -> None:
        """Set the swing: a sum (2, n) for each stance foot, or none; for ``early`` see :class:`StanceFoot`."""
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
        """Make ``stance`` the stance foot."""
        self._stance.take(observation.t, stance)

    def _swinging(self, observation: Observation) -> None:
        """Continue a swing that has begun."""

    def _swing_task(self, observation: Observation) -> tuple[Task, float]:
        """Return the task of the swing, and its error [rad]."""
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
        joint_tasks = super()._tasks(observation, t) if self._robot.nu > 1 else []
        self.readouts["tracking_error"] = abs(error)
        return [task, *joint_tasks]
