"""Filter the torques of any controller: return the nearest torques under which the feet keep their contact state.

The filter has the same sensor data as the controller. The load determines which feet are active, as in
:mod:`bipedsim.control.output.supported`. An active foot is assumed to be flat on its ground, whose normal is then the
normal of the sole, on any slope. Point feet and line feet are assumed to stand on level ground.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bipedsim.config import param
from bipedsim.control import RELIEVED, Controller, checked_torque, make_controller
from bipedsim.control.output import LoadedFeet, SupportedDynamics
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.sim import Command, Observation
from bipedsim_studies.feasibility.conditions import Conditions, Reserve
from bipedsim_studies.feasibility.sticking import sticking_conditions
from bipedsim_studies.feasibility.support import BodyReader, SupportFoot
from bipedsim_studies.feasibility.torques import TorqueSet, weakest

_OF_HOSTS = ("set_velocity", "set_footsteps", "fallen", "estimate", "height_points", "true_velocity")
"""Optional members of a controller, see :class:`bipedsim.control.base.Controller`."""


@dataclass(frozen=True)
class StickingParams:
    """Parameters of :class:`Sticking`."""

    friction: float = param(0.0, "coefficient that is relied on; 0: that of the robot's soles", low=0.0, high=10.0)
    friction_reserve: float = param(0.1, "share of it that is kept back", low=0.0, high=0.99)
    edge: float = param(0.005, "distance that the CoP keeps from the edge of a sole", unit="m", low=0.0, high=1.0)
    load: float = param(0.05, "least normal force of a foot that carries, of the weight", low=0.0, high=1.0)
    may_lift: bool = param(
        False, "a foot that the controller's own torques unload is let go; else every foot that carries stays"
    )


class Sticking:
    """Host a controller, and prevent active feet from slipping and tipping.

    The state is that of :class:`SupportedDynamics`: encoders, IMU, and feet at rest if they are active. If no torques
    keep the feet in contact, the controller's own torques are used within the effort limits. This occurs at touchdowns,
    and if a failure can no longer be avoided.

    Args:
        controller: Any controller; the filter has the same optional members.
        robot: The robot.
        params: See :class:`StickingParams`.

    Attributes:
        readouts: Readouts of the controller, ``sticking_change`` and ``sticking_margin``. The change is the distance
            between filtered and original torques [N.m]. The margin [N.m] is the linearised torque error at which the
            first condition fails. It is negative if the controller's own torques are used and violate a condition. Both
            are NaN while no foot is active.
    """

    def __init__(self, controller: Controller, robot: Robot, params: StickingParams | None = None) -> None:
        self._controller: Any = controller
        self._robot = robot
        self._params = params = params or StickingParams()
        self._dynamics = SupportedDynamics(robot)
        self._load = LoadedFeet(robot)
        self._body = BodyReader(robot)
        self._reserve = Reserve(params.load * robot.weight, params.edge, params.friction_reserve)
        self._begun = False
        self._command = Command(np.zeros(robot.nu))
        self.readouts: dict[str, float] = {**self._shown(), "sticking_change": np.nan, "sticking_margin": np.nan}
        for name in _OF_HOSTS[:2]:
            if hasattr(controller, name):
                setattr(self, name, getattr(controller, name))

    def __getattr__(self, name: str) -> Any:
        # These members can change in each tick, so they are read on access. Missing members of the controller stay
        # missing.
        if name in _OF_HOSTS:
            return getattr(self._controller, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _shown(self) -> dict[str, float]:
        return dict(getattr(self._controller, "readouts", {}))

    def reset(self, observation: Observation) -> None:
        """Start from this observation; the lowest feet are active, because no load is measured yet."""
        self._begun = False
        self._controller.reset(observation)

    def update(self, observation: Observation) -> Command:
        """Return the torques of one tick; the next tick reuses the arrays."""
        torque = checked_torque(self._controller.update(observation), observation)
        limit = self._robot.effort_limit
        u = self._command.tau_joint
        np.clip(torque, -limit, limit, out=u)
        self.readouts.update(self._shown())
        change = margin = np.nan
        if np.isfinite(u).all():
            conditions = self._conditions(observation, u)
            if conditions is not None:
                original = u.copy()
                nearest = TorqueSet(conditions, limit).nearest(original)
                if nearest is not None:
                    u[:] = nearest
                change = float(np.linalg.norm(u - original))
                margin, _ = weakest(conditions, u)
        self.readouts["sticking_change"], self.readouts["sticking_margin"] = change, margin
        return self._command

    def _conditions(self, observation: Observation, u: Array) -> Conditions | None:
        """Return the conditions on the torques of this tick, or None while no foot is active."""
        self._dynamics.place(observation)
        if self._begun:
            self._load.update(observation)
        else:
            self._load.loaded[:] = self._dynamics.lowest_feet()
            self._begun = True
        loaded = self._load.loaded
        if not loaded.any():
            return None
        self._dynamics.find_velocity(observation, loaded)
        q, v = self._dynamics.q, self._dynamics.v
        soles = self._body.rotations(q)
        axes = np.array(
            [
                rotation if sole.n_vertices > 2 else np.eye(3)
                for rotation, sole in zip(soles, self._robot.soles, strict=True)
            ]
        )
        feet = tuple(self._foot(k, bool(loaded[k]), axes[k].T @ soles[k]) for k in range(len(axes)))
        support = self._body.support(q, v, axes, feet)
        conditions = sticking_conditions(support, reserve=self._reserve)
        if not self._params.may_lift:
            return conditions
        forces = conditions.wrench(u)[:, 2]
        enough = RELIEVED * self._robot.weight
        loaded_names = [name for name, force in zip(conditions.held, forces, strict=True) if force > enough]
        if len(loaded_names) == len(conditions.held) or not loaded_names:
            return conditions
        return sticking_conditions(
            support,
            {foot.name: range(foot.n_vertices) for foot in support.feet if foot.name in loaded_names},
            reserve=self._reserve,
        )

    def _foot(self, k: int, carries: bool, rotation: Array) -> SupportFoot:
        sole = self._robot.soles[k]
        offsets = sole.vertices @ rotation[:, :2].T
        return SupportFoot(
            name=sole.name,
            polygon=sole.vertices,
            offsets=offsets,
            heights=np.full(sole.n_vertices, 0.0 if carries else np.inf),
            rotation=rotation,
            mu_static=self._params.friction or sole.friction_static,
            mu_dynamic=self._params.friction or sole.friction_dynamic,
        )


@dataclass(frozen=True)
class StickingControllerParams(StickingParams):
    """Parameters of :class:`StickingController`."""

    controller: str = param("posture", "the controller that is hosted: of the table, or package.module:Class")
    controller_params: dict[str, Any] = param({}, "its parameters that differ")


class StickingController(Sticking):
    """Make :class:`Sticking` available as a controller.

    Run it with ``bipedsim run --controller bipedsim_studies.feasibility.filter:StickingController``.

    Args:
        robot: The robot.
        params: See :class:`StickingControllerParams`.
        dt: Control period [s].
    """

    Params = StickingControllerParams

    def __init__(self, robot: Robot, params: StickingControllerParams, dt: float) -> None:
        super().__init__(make_controller(params.controller, robot, params.controller_params, dt), robot, params)
