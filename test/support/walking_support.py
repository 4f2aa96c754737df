"""Walks under the controller ``zmp``, tick by tick, with the true state and the controller's estimate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np

from bipedsim.control.controllers import make_controller
from bipedsim.control.walking.zmp import ZmpController
from bipedsim.model import load_robot
from bipedsim.numerics import Array
from bipedsim.sim.io import Observation
from bipedsim.sim.simulator import Simulator

Command = tuple[float, float, float]

loaded = lru_cache(load_robot)
SPEED = {"biped14": 0.7, "talos": 0.6, "g1": 0.4}
"""At which the robots walk on drives without limits to spare."""
KNEES = {
    "biped14": ("l_knee", "r_knee"),
    "talos": ("leg_left_4_joint", "leg_right_4_joint"),
    "g1": ("left_knee_joint", "right_knee_joint"),
}


@dataclass
class Rows:
    """One row per tick.

    Attributes:
        t: Time [s]. base: (n, 3) position of the base. speed: Largest joint velocity [rad/s].
        foot: (n, 2, 3) soles' origins. force: (n, 2) normal force of the ground [N].
        cop: (n, 2) true centre of pressure. zmp_now: (n, 2) measured. zmp_goal: (n, 2) commanded. All [m].
        dcm_error, zmp_margin: Readouts [m].
        effort: Largest torque over its limit. knee: Minimum angle of the knees [rad].
        estimate_error: Of the position of the base [m]. steps: Begun. flying: Swing foot of the controller.
        tau: (n, nu) torques [N.m].
    """

    t: Array
    base: Array
    speed: Array
    foot: Array
    force: Array
    cop: Array
    zmp_now: Array
    zmp_goal: Array
    dcm_error: Array
    zmp_margin: Array
    effort: Array
    knee: Array
    estimate_error: Array
    steps: Array
    flying: Array
    tau: Array


class Walker:
    """A robot in the simulator and its controller.

    Args:
        name: Of the robot.
        spoil: Changes the observation of the controller, in place.
        **params: Of the controller.

    Attributes:
        sim, controller: As they are after the last tick.
        fell: Time at which the controller gave up [s], or None.
    """

    def __init__(self, name: str, spoil: Callable[[Observation], None] | None = None, **params: Any) -> None:
        self.robot = loaded(name)
        self.sim = Simulator(self.robot)
        made = make_controller("zmp", self.robot, params, self.sim.control_dt)
        assert isinstance(made, ZmpController)
        self.controller = made
        self.fell: float | None = None
        self._spoil = spoil
        self._rows: list[tuple[Any, ...]] = []
        self._knees = [int(self.robot.idx_q[self.robot.joint_names.index(knee)]) for knee in KNEES[name]]
        self.reset()

    def reset(self, q: Array | None = None) -> None:
        """Begin anew, standing or at ``q`` (nq,)."""
        self._observation = self.sim.reset(q)
        self.controller.reset(self._seen())
        self._rows.clear()
        self.fell = None

    def _seen(self) -> Observation:
        if self._spoil is None:
            return self._observation
        seen = self._observation.copy()
        self._spoil(seen)
        return seen

    def go(self, duration: float, command: Command | None = None) -> Walker:
        """Go on for ``duration`` [s], under a new velocity command or the last one."""
        controller, robot, sim = self.controller, self.robot, self.sim
        if command is not None:
            controller.set_velocity(*command)
        for _ in range(round(duration / sim.control_dt)):
            tau = controller.update(self._seen()).tau_joint
            if controller.fallen:
                self.fell = sim.t
                break
            self._observation = sim.step(tau)
            truth, ref = sim.ground_truth(), controller._ref
            self._rows.append(
                (
                    sim.t,
                    sim.q[:3].copy(),
                    np.abs(sim.v[6:]).max(),
                    truth.pose_world_sole[:, :3].copy(),
                    sim.contact.wrench[:, 2].copy(),
                    truth.cop_world[:2].copy(),
                    ref.zmp_now.copy(),
                    ref.zmp_goal.copy(),
                    controller.readouts["dcm_error"],
                    controller.readouts["zmp_margin"],
                    np.abs(tau / robot.effort_limit).max(),
                    sim.q[self._knees].min(),
                    0.0,
                    controller.steps,
                    controller._flying,
                    tau.copy(),
                )
            )
            # The estimate is of the moment before the step.
            if len(self._rows) > 1:
                error = np.linalg.norm(controller.estimate.q[:3] - self._rows[-2][1])
                self._rows[-1] = (*self._rows[-1][:12], error, *self._rows[-1][13:])
        return self

    @property
    def rows(self) -> Rows:
        """All rows since the last reset."""
        columns = zip(*self._rows, strict=True)
        return Rows(**{f.name: np.array(column) for f, column in zip(fields(Rows), columns, strict=True)})


def loads(rows: Rows, foot: int, least: float) -> list[tuple[int, int]]:
    """Return first and last row of every segment in which a foot has a load of ``least`` [N] and no gap above 20 ms."""
    down = np.flatnonzero(rows.force[:, foot] > least)
    breaks = np.flatnonzero(np.diff(down) > 20)
    starts, ends = np.append(0, breaks + 1), np.append(breaks, len(down) - 1)
    return [(int(down[a]), int(down[b])) for a, b in zip(starts, ends, strict=True)]


def params_of(name: str) -> Mapping[str, Any]:
    """Return the parameters of the robot's own file."""
    found: Mapping[str, Any] = loaded(name).controllers["zmp"]
    return found
