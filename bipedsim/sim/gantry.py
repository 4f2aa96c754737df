"""Gantry: a rope from above to the trunk, which holds the robot until its controller does.

Programs for a real robot start while it hangs. First the joints are free, then they move to a posture. The controller
starts only after the robot was lowered and stands. The rope is a spring and a damper that can only pull.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pinocchio as pin
import yaml

from bipedsim.config import from_mapping, param, yaml_value
from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.sim.participant import Participant, Simulation

HANG = "hang"
"""Text of a gantry that holds the robot until a ``lower`` action; also the state of such a gantry."""
LOWERED = "lowered"
"""State of the gantry after the feet carry the robot: it only keeps the robot from falling."""
LOWER, RELEASE, LIFT = GANTRY_ACTIONS = ("lower", "release", "lift")
"""Actions: pay out rope until the feet carry the robot, release the robot, and lift it from its present position."""
SAG = 0.01
"""Elongation of the rope under the weight of the robot [m]."""
CARRIED = 0.1
"""Rope tension, as a fraction of the weight, at which the feet carry the robot and lowering ends."""
FADING = 0.5
"""Time in which a release fades out the force [s]."""
_FELT = 0.1  # Time constant [s] of the filtered tension that decides whether the feet carry the robot.
_ABOVE, _ROPE = 0.4, 1.0  # Attachment point above the CoM, and rope length, both as multiples of the CoM height.
_UP = np.array([0.0, 0.0, 1.0])
_LEAST_HEIGHT = 0.1  # Lower bound of the CoM height [m], for robots whose height above the ground is unknown.
_RATIO, _SWAY, _TURN = 0.3, 0.2, 0.3  # Damping ratios of stretching, swaying and turning.


@dataclass(frozen=True)
class GantryConfig:
    """Configure a gantry; the fields are the keys of ``gantry`` in a scenario file (docs/scenarios.md)."""

    clearance: float = param(0.1, "height of the soles above the ground at the start", unit="m", low=0.0, high=10.0)
    lower_at: float | None = param(
        None, "start of the lowering; it ends when the feet bear the weight", unit="s", low=0.0, high=1e9
    )
    release_at: float | None = param(
        None, "start of the release, which takes half a second", unit="s", low=0.0, high=1e9
    )
    speed: float = param(0.05, "speed of the rope", unit="m/s", low=1e-3, high=1.0)

    def problems(self) -> Iterator[ConfigError]:
        """Yield a message for each inconsistency between the keys."""
        if self.lower_at is not None and self.release_at is not None and self.release_at < self.lower_at:
            yield ConfigError(f"s must not be before lower_at = {self.lower_at:g} s", "release_at", self.release_at)

    def text(self) -> str:
        """Return the configuration as a text for :func:`read_gantry`."""
        values = {name: value for name, value in asdict(self).items() if value is not None}
        return str(yaml.safe_dump(values, default_flow_style=True, width=math.inf, sort_keys=False)).strip()


def read_gantry(given: str | Mapping[str, Any], where: str = "gantry") -> GantryConfig | None:
    """Read a gantry: ``hang``, ``{lower_at: 3, release_at: 6}`` or the same as a mapping; None for an empty text.

    Raises:
        ConfigError: The text has another form, or a value is wrong.
    """
    value: Any = given
    if isinstance(given, str):
        if given in ("", HANG):
            return GantryConfig() if given else None
        try:
            value = yaml_value(given)
        except yaml.YAMLError:
            value = None
    if not isinstance(value, Mapping):
        raise ConfigError(f"must be {HANG!r} or a mapping such as '{{lower_at: 3, release_at: 6}}'", where, given)
    return from_mapping(GantryConfig, value, where)


class Gantry(Participant):
    """Simulate the rope of a gantry.

    The rope is attached to the heaviest body outside the legs, straight above the CoM of the nominal posture. At the
    length l and the rest length L, its tension is T = max(0, k (l - L) + c l'). Under tension it also damps swaying and
    turning in proportion to T / (m g). It stretches by 1 cm under the weight.

    Args:
        config: Configuration of the gantry.
        robot: Robot that hangs in it.
        dt: Physics step [s].
        substeps: Physics steps of a control tick.

    Attributes:
        config: As given.
        force: (3,) mean force on the robot in the world over the control tick [N]; NaN after the release.
        doing: ``hang``, the last action, or ``lowered``.

    Raises:
        ConfigError: The root of the robot is fixed to the world.
    """

    name = "gantry"
    adds_force = True

    def __init__(self, config: GantryConfig, robot: Robot, dt: float, substeps: int) -> None:
        if not robot.free_flyer:
            raise ConfigError(f"the root of {robot.name} is fixed to the world already. Omit the gantry", "gantry")
        self.config = config
        self._dt, self._substeps = dt, substeps
        self._model, self._data = robot.model, robot.model.createData()
        self._joint = trunk_joint(robot)
        com = pin.centerOfMass(self._model, self._data, robot.q_nominal)
        height = max(robot.com_height, _LEAST_HEIGHT)
        self._point = self._data.oMi[self._joint].actInv(com + _ABOVE * height * _UP)
        self._weight, mass = robot.weight, robot.mass
        gravity = self._weight / mass
        self._rope = _ROPE * height
        self._stiffness = self._weight / SAG
        self._damping = 2.0 * _RATIO * mass * math.sqrt(gravity / SAG)
        self._sway = 2.0 * _SWAY * mass * math.sqrt(gravity / self._rope)
        self._turn = 2.0 * _TURN * mass * (_ABOVE * height) ** 2 * math.sqrt(gravity / (_ABOVE * height))
        self.force: Array = np.zeros(3)
        self.on_action: Callable[[float, str], None] | None = None
        self._steps = 0
        self.doing = HANG
        self._anchor = np.zeros(3)
        self._length = self._felt = 0.0
        self._fading = -1

    def reset(self, sim: Simulation) -> None:
        """Hold the robot at its present position, at rest, with its full weight."""
        self.doing, self._steps, self._fading = HANG, 0, -1
        self._anchor = self._above(sim.q) + self._rope * _UP
        self._length, self._felt = self._rope - SAG, self._weight
        self.force[:] = 0.0, 0.0, self._weight

    def act(self, action: str, q: Array) -> None:
        """Start one of ``GANTRY_ACTIONS``, with the robot in the configuration ``q`` (nq,).

        Raises:
            UnknownNameError: There is no such action.
            ConfigError: The robot cannot be lowered, because it was released.
        """
        if action not in GANTRY_ACTIONS:
            raise UnknownNameError("action", action, GANTRY_ACTIONS, "gantry")
        if self.doing == RELEASE and action == LOWER:
            raise ConfigError("it has released the robot: lift the robot first", "gantry")
        if self.doing == RELEASE and action == LIFT:
            above = self._above(q)
            self._anchor[:2] = above[:2]
            self._length = float(np.linalg.norm(self._anchor - above))
        self._begin(action)
        if self.on_action is not None:
            self.on_action(self._steps * self._dt, action)

    def _above(self, q: Array) -> Array:
        """Return the attachment point of the rope on the robot (3,) in the world [m]."""
        pin.forwardKinematics(self._model, self._data, q)
        return np.asarray(self._data.oMi[self._joint].act(self._point))

    def _begin(self, action: str) -> None:
        if action != RELEASE:
            self._fading, self._felt = -1, self._weight
        elif self.doing != RELEASE:
            self._fading = self._steps
        self.doing = action

    @property
    def holds(self) -> bool:
        """Whether the gantry holds the robot, also while a release fades out."""
        return self._remaining() > 0.0

    def begin_tick(self, sim: Simulation) -> None:
        """Start the mean force of a control tick."""
        self.force[:] = 0.0 if self.holds else np.nan

    def _remaining(self) -> float:
        """Return the remaining fraction of its force: 1 until the release, then falling to 0."""
        if self._fading < 0:
            return 1.0
        return max(0.0, 1.0 - (self._steps - self._fading) * self._dt / FADING)

    def before_step(self, sim: Simulation) -> None:
        """Add the force of the rope in the coming physics step to ``sim.dynamics.push``."""
        q = sim.q
        config, now = self.config, self._steps * self._dt
        # The times of the scenario apply only if no other action was requested before.
        for at, action, after in ((config.lower_at, LOWER, HANG), (config.release_at, RELEASE, LOWERED)):
            due = at is not None and -1e-9 <= now - at < self._dt - 1e-9
            if due and self.doing in (HANG, LOWER, after):
                self._begin(action)
        self._steps += 1
        remaining = self._remaining()
        if remaining == 0.0:
            return
        pin.forwardKinematics(self._model, self._data, q, sim.v)
        place, twist = self._data.oMi[self._joint], self._data.v[self._joint]
        away = self._anchor - place.act(self._point)
        velocity = place.rotation @ (twist.linear + np.cross(twist.angular, self._point))
        length = math.sqrt(float(away @ away))
        along = away / max(length, 1e-6)
        stretching = -float(along @ velocity)
        pulled = self._stiffness * (length - self._length) + self._damping * stretching
        tension = max(0.0, pulled) if length > self._length else 0.0
        share = remaining * min(1.0, tension / self._weight)
        force = (remaining * tension) * along - (share * self._sway) * (velocity + stretching * along)
        local = place.rotation.T @ force
        torque = np.cross(self._point, local) - (share * self._turn) * twist.angular
        jacobian = pin.computeJointJacobian(self._model, self._data, q, self._joint)
        sim.dynamics.push[:] += jacobian.T @ np.concatenate([local, torque])
        self.force += force / self._substeps
        self._felt += min(1.0, self._dt / _FELT) * (tension - self._felt)
        if self.doing == LOWER and self._felt > CARRIED * self._weight:
            self._length += config.speed * self._dt
        elif self.doing == LOWER:
            # From now on the rope length is constant, and the rope holds a robot that falls into it.
            self.doing = LOWERED
        elif self.doing == LIFT:
            self._length = max(self._rope - SAG, self._length - config.speed * self._dt)

    def state(self) -> dict[str, Any]:
        """Return a copy of everything that the future of the gantry depends on."""
        return {
            "doing": self.doing,
            "steps": self._steps,
            "fading": self._fading,
            "anchor": self._anchor.copy(),
            "length": self._length,
            "felt": self._felt,
            "force": self.force.copy(),
        }

    def set_state(self, state: Mapping[str, Any], sim: Simulation) -> None:
        """Restore a state that :meth:`state` returned."""
        self.doing, self._steps, self._fading = state["doing"], state["steps"], state["fading"]
        self._anchor = state["anchor"].copy()
        self._length, self._felt = state["length"], state["felt"]
        self.force[:] = state["force"]


def trunk_joint(robot: Robot) -> int:
    """Return the joint of the heaviest body outside the legs."""
    legs = {int(joint) for sole in robot.soles for joint in robot.model.supports[sole.joint_id]} - {0, 1}
    masses = {joint: robot.model.inertias[joint].mass for joint in range(1, robot.model.njoints) if joint not in legs}
    return max(masses, key=lambda joint: (masses[joint], -joint))
