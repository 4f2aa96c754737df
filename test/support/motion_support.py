"""Robots in motion, step by step, for tests that look into every step."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pinocchio as pin

from bipedsim.contact.base import ContactResult
from bipedsim.control.controllers import make_controller
from bipedsim.ground.ground import Ground
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.runs.pushes import PushSchedule
from bipedsim.runs.scenario import Scenario
from bipedsim.sim import Participant, Simulation, Simulator


class Motion:
    """A scenario under the posture controller; the caller takes the steps.

    Attributes:
        sim: The simulator, at the start of the scenario.
    """

    def __init__(
        self,
        robot: Robot,
        scenario: Scenario,
        contact: str,
        tilt: float = 0.0,
        physics_dt: float = 1e-3,
        contact_params: Mapping[str, float] | None = None,
    ) -> None:
        self.sim = Simulator(robot, contact=contact, physics_dt=physics_dt, contact_params=contact_params)
        self.robot = robot
        self.sim.add(PushSchedule(push.for_robot(robot) for push in scenario.pushes))
        self._controller = make_controller("posture", robot, scenario.controller_params, self.sim.control_dt)
        q = robot.q_nominal.copy()
        q[2] += scenario.drop_height
        if tilt:
            turn = np.zeros(robot.model.nv)
            turn[3:5] = tilt, 0.7 * tilt
            q = pin.integrate(robot.model, q, turn)
        self._observation = self.sim.reset(q)
        self._controller.reset(self._observation)

    def torque(self) -> Array:
        """Return the joint torques (nu,) of the coming step."""
        limit = self.robot.effort_limit
        return np.asarray(np.clip(self._controller.update(self._observation).tau_joint, -limit, limit))

    def step(self, tau_joint: Array | None = None) -> ContactResult:
        """Take one step, by default under :meth:`torque`."""
        self._observation = self.sim.step(self.torque() if tau_joint is None else tau_joint)
        return self.sim.contact

    @property
    def fallen(self) -> bool:
        """Return whether the base is far below its standing height. After that, it is no motion on feet."""
        return bool(self.sim.q[2] < 0.6 * self.robot.q_nominal[2])


class Bookkeeper:
    """Independent figures of a step, by pinocchio: momentum and kinetic energy.

    Args:
        robot: The robot. ground: A single plane.
        h: Step [s].
    """

    def __init__(self, robot: Robot, ground: Ground | None = None, h: float = 1e-3) -> None:
        self.robot, self.h = robot, h
        self._data = robot.model.createData()
        # Summed over all links at every call.
        self._mass = robot.mass
        self._gravity = robot.model.gravity.linear.copy()
        self._lower = np.tril_indices(robot.model.nv, -1)
        self._axes = np.eye(3) if ground is None else ground.patches[0].rotation_world_patch

    def force_error(
        self, q: Array, v: Array, v_next: Array, contact: ContactResult, push: Array | None = None, share: float = 1.0
    ) -> float:
        """Return |sum f - m (a_com - share g)| [N] of the step that took ``v`` to ``v_next`` at ``q``."""
        pin.centerOfMass(self.robot.model, self._data, q, share * v, (v_next - v) / self.h)
        ground = self._axes @ contact.impulse[:, :3].sum(axis=0) / self.h
        inertial = self._mass * (self._data.acom[0] - share * self._gravity)
        return float(np.linalg.norm(ground + (0.0 if push is None else push) - inertial))

    def kinetic(self, q: Array, v: Array, v_next: Array, tau_joint: Array, share: float = 1.0) -> tuple[float, float]:
        """Return the kinetic energy [J] after the step, and without contact impulses.

        ``share`` is the fraction of the step in which the other forces act.
        """
        model, data, robot = self.robot.model, self._data, self.robot
        M = pin.crba(model, data, q)
        M[self._lower] = M.T[self._lower]
        force = -pin.nonLinearEffects(model, data, q, v) - robot.joint_damping * v
        force[robot.idx_v] += tau_joint
        h = share * self.h
        free = v + h * np.linalg.solve(M + h * np.diag(robot.joint_damping), force)
        return 0.5 * float(v_next @ M @ v_next), 0.5 * float(free @ M @ free)


class Judge(Participant):
    """Checks every step of a simulator, and every sub-step of a landing.

    Args:
        sim: The simulator; an earlier judge is replaced. book: Of its robot.

    Attributes:
        tau: Torques of the next step.
        gains: What contact added to the kinetic energy in every part [J], over that without contact.
        balance: Largest error of the forces' sum [N].
    """

    name = "judge"

    def __init__(self, sim: Simulator, book: Bookkeeper) -> None:
        self._book = book
        self.tau: Array = np.zeros(sim.robot.nu)
        self.gains: list[float] = []
        self.balance = 0.0
        if self.name in sim.participants:
            sim.remove(sim.participants[self.name])
        sim.add(self)

    def judge(self, sim: Simulation, q: Array, v: Array, share: float) -> None:
        """Take in a part from ``q``, which ends with ``v``."""
        before = v - self._book.h * sim.dynamics.acceleration
        after, free = self._book.kinetic(q, before, v, self.tau, share)
        self.gains.append(after - free)
        self.balance = max(self.balance, self._book.force_error(q, before, v, sim.contact, share=share))
