"""A gantry: a rope from above to the trunk, which holds a robot until its controller does.

Programs made for a machine begin while that hangs: joints are free, then go to a posture, and only when the robot was
lowered and stands does a controller begin. The rope is a spring and a damper that pull only.
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
"""The text for a gantry that waits until somebody lowers it."""
LOWERED = "lowered"
"""What it does once the feet carry: it keeps the robot from falling."""
LOWER, RELEASE, LIFT = GANTRY_ACTIONS = ("lower", "release", "lift")
"""What it does: pays out rope until the feet carry, lets go, and takes the robot up again from where it is."""
SAG = 0.01
"""How far the rope stretches under the weight of the robot [m]."""
CARRIED = 0.1
"""Share of the weight in the rope at which the feet carry, and no more of it is paid out."""
FADING = 0.5
"""How long letting go takes [s]."""
_FELT = 0.1  # time constant [s] of the force by which it is judged whether the feet carry
_ABOVE, _ROPE = 0.4, 1.0  # over the height of the CoM: where the rope is fixed above it, and how long it is
_UP = np.array([0.0, 0.0, 1.0])
_LEAST_HEIGHT = 0.1  # of a CoM [m], where nothing says where the ground is
_RATIO, _SWAY, _TURN = 0.3, 0.2, 0.3  # damping ratios of stretching, swaying and turning


@dataclass(frozen=True)
class GantryConfig:
    """A gantry; its fields are the keys of ``gantry`` in a scenario file (docs/scenarios.md)."""

    clearance: float = param(0.1, "height of the soles above the ground at the start", unit="m", low=0.0, high=10.0)
    lower_at: float | None = param(
        None, "when rope begins to be paid out, until the feet carry", unit="s", low=0.0, high=1e9
    )
    release_at: float | None = param(None, "when it lets go, within half a second", unit="s", low=0.0, high=1e9)
    speed: float = param(0.05, "at which rope is paid out and taken in", unit="m/s", low=1e-3, high=1.0)

    def problems(self) -> Iterator[str]:
        """Yield what is wrong between the keys."""
        if self.lower_at is not None and self.release_at is not None and self.release_at < self.lower_at:
            yield f"release_at = {self.release_at:g} s must not be before lower_at = {self.lower_at:g} s"

    def text(self) -> str:
        """Return what :func:`read_gantry` reads."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        return str(yaml.safe_dump(given, default_flow_style=True, width=math.inf, sort_keys=False)).strip()


def read_gantry(given: str | Mapping[str, Any], where: str = "gantry") -> GantryConfig | None:
    """Read a gantry: ``hang``, ``{lower_at: 3, release_at: 6}`` or the same as a mapping; None for an empty text.

    Raises:
        ConfigError: It is none of them, or a value is wrong.
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
        raise ConfigError(f"{where} = {given!r} must be {HANG!r} or a mapping such as '{{lower_at: 3, release_at: 6}}'")
    return from_mapping(GantryConfig, value, where)


class Gantry(Participant):
    """The rope of one robot, fixed on the heaviest body beside the legs, straight above the CoM as the robot stands.

    Pulled from L to l, it gives T = max(0, k (l - L) + c l'), and as long as it does, damps swaying and turning in
    proportion to T / (m g). It stretches by 1 cm under the weight.

    Args:
        config: What it is to do.
        robot: Who hangs in it.
        dt: Of a physics step [s].
        substeps: Physics steps of a control tick.

    Attributes:
        config: As it was given.
        force: (3,) mean force on the robot in the world over the control tick [N]; NaN once it is let go.
        doing: ``hang``, what it was asked for last, or ``lowered``.

    Raises:
        ConfigError: The root of the robot is fixed to the world.
    """

    name = "gantry"
    adds_force = True

    def __init__(self, config: GantryConfig, robot: Robot, dt: float, substeps: int) -> None:
        if not robot.free_flyer:
            raise ConfigError(f"gantry: the root of {robot.name} is fixed to the world already; leave it out")
        self.config = config
        self._dt, self._substeps = dt, substeps
        self._model, self._data = robot.model, robot.model.createData()
        self._joint = _trunk(robot)
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
        """Hold the robot where it is, at rest, with all of its weight."""
        self.doing, self._steps, self._fading = HANG, 0, -1
        self._anchor = self._above(sim.q) + self._rope * _UP
        self._length, self._felt = self._rope - SAG, self._weight
        self.force[:] = 0.0, 0.0, self._weight

    def act(self, action: str, q: Array) -> None:
        """Begin to do one of ``GANTRY_ACTIONS``, with the robot in the configuration ``q`` (nq,).

        Raises:
            UnknownNameError: It is none of them.
            ConfigError: There is nothing to lower: it was let go.
        """
        if action not in GANTRY_ACTIONS:
            raise UnknownNameError("action", action, GANTRY_ACTIONS, "gantry")
        if self.doing == RELEASE and action == LOWER:
            raise ConfigError("the gantry has let go: lift the robot first")
        if self.doing == RELEASE and action == LIFT:
            above = self._above(q)
            self._anchor[:2] = above[:2]
            self._length = float(np.linalg.norm(self._anchor - above))
        self._begin(action)
        if self.on_action is not None:
            self.on_action(self._steps * self._dt, action)

    def _above(self, q: Array) -> Array:
        """Return where the rope is fixed (3,) in the world."""
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
        """Whether it has not let go."""
        return self._left() > 0.0

    def begin_tick(self, sim: Simulation) -> None:
        """Start the mean force of a control tick."""
        self.force[:] = 0.0 if self.holds else np.nan

    def _left(self) -> float:
        """Return the share of its force that is left."""
        if self._fading < 0:
            return 1.0
        return max(0.0, 1.0 - (self._steps - self._fading) * self._dt / FADING)

    def before_step(self, sim: Simulation) -> None:
        """Add the force of the rope in the coming physics step to ``sim.dynamics.push``."""
        q = sim.q
        config, now = self.config, self._steps * self._dt
        # Times are those of the scenario, in which nobody has asked for anything else.
        for at, action, after in ((config.lower_at, LOWER, HANG), (config.release_at, RELEASE, LOWERED)):
            due = at is not None and -1e-9 <= now - at < self._dt - 1e-9
            if due and self.doing in (HANG, LOWER, after):
                self._begin(action)
        self._steps += 1
        left = self._left()
        if left == 0.0:
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
        share = left * min(1.0, tension / self._weight)
        force = (left * tension) * along - (share * self._sway) * (velocity + stretching * along)
        local = place.rotation.T @ force
        torque = np.cross(self._point, local) - (share * self._turn) * twist.angular
        jacobian = pin.computeJointJacobian(self._model, self._data, q, self._joint)
        sim.dynamics.push[:] += jacobian.T @ np.concatenate([local, torque])
        self.force += force / self._substeps
        self._felt += min(1.0, self._dt / _FELT) * (tension - self._felt)
        if self.doing == LOWER and self._felt > CARRIED * self._weight:
            self._length += config.speed * self._dt
        elif self.doing == LOWER:
            # What leans on the rope from then on is held by it.
            self.doing = LOWERED
        elif self.doing == LIFT:
            self._length = max(self._rope - SAG, self._length - config.speed * self._dt)

    def state(self) -> dict[str, Any]:
        """Return all that its future depends on."""
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
        """Restore what :meth:`state` returned."""
        self.doing, self._steps, self._fading = state["doing"], state["steps"], state["fading"]
        self._anchor = state["anchor"].copy()
        self._length, self._felt = state["length"], state["felt"]
        self.force[:] = state["force"]


def _trunk(robot: Robot) -> int:
    """Return the joint that moves the heaviest body which is in no leg."""
    legs = {int(joint) for sole in robot.soles for joint in robot.model.supports[sole.joint_id]} - {0, 1}
    masses = {joint: robot.model.inertias[joint].mass for joint in range(1, robot.model.njoints) if joint not in legs}
    return max(masses, key=lambda joint: (masses[joint], -joint))
