"""Measure the energy flow of a run and the duration of its steps, which a recording does not contain.

A physics step of h changes the velocity from v- to v+. The causes are actuator torques tau, the push p, joint friction
r and the contact wrenches f. Joint friction is the viscous friction D v+ and, if the hardware has it, dry friction.
Each of these applies an impulse P over the step and adds P . (v- + v+) / 2 to the kinetic energy. This also holds for
impacts (Thomson and Tait's theorem on impulses). With the mean velocity v, the terms are therefore

    actuators h tau . v,   push h p . v,   friction h r . v,   contact sum_feet h f . w,

with f the wrench that the simulator reports for a foot and w the mean velocity of the sole, both in the sole frame. The
residual is the change of kinetic and potential energy minus these terms. If the reported wrenches are correct, it is
the energy added by the integrator, which is of first order in h.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pinocchio as pin

from bipedsim.contact import ContactResult
from bipedsim.numerics import Array
from bipedsim.sim import Simulator, whole_ratio

ENERGIES = ("actuators", "push", "damping", "contact", "rise", "change")
"""Columns of :attr:`Meter.energies`."""


class Meter:
    """Measure energies and step times, as the :class:`bipedsim.runs.runner.Observer` of a run.

    Attributes:
        step_seconds: Duration of :meth:`Simulator.step` at each control tick, without the time for the meter [s].
        substeps: Number of physics steps per control tick.
    """

    def __init__(self) -> None:
        self.step_seconds: list[float] = []
        self.substeps = 1
        self._rows: list[Array] = []

    def __getstate__(self) -> dict[str, Any]:
        """Return the measurements for pickling, without the simulator, which remains in its process."""
        return {name: vars(self)[name] for name in ("step_seconds", "substeps", "_rows")}

    def start(self, sim: Simulator, readouts: Mapping[str, float]) -> None:
        """Start the measurement at the simulator's current state."""
        robot = sim.plant
        self._sim = sim
        self._model = robot.model
        self._data = robot.model.createData()
        self._feet = [(sole.joint_id, sole.placement_joint_sole) for sole in robot.soles]
        self.substeps = whole_ratio(sim.control_dt, sim.physics_dt)
        self._q = np.empty((self.substeps + 1, robot.model.nq))
        self._v = np.empty((self.substeps + 1, robot.model.nv))
        self._push = np.empty((self.substeps, robot.model.nv))
        self._effort = np.empty((self.substeps, robot.nu))
        self._friction = np.empty((self.substeps, robot.model.nv))
        self._wrench = np.empty((self.substeps, len(self._feet), 6))
        self._q[0], self._v[0] = sim.q, sim.v
        self._step = 0
        self._spent = 0.0
        self._sums = np.zeros(len(ENERGIES))
        self._initial = self._mechanical(0)
        sim.on_physics_step = self._look

    def _look(self, contact: ContactResult, push: Array) -> None:
        """Copy the values of a physics step. They are evaluated after the tick, so that step times exclude it."""
        start_time = time.perf_counter()
        i = self._step
        self._wrench[i] = contact.wrench
        self._push[i] = push
        self._effort[i], self._friction[i] = self._sim.drives.loads(self._sim.v)
        self._q[i + 1] = self._sim.q
        self._v[i + 1] = self._sim.v
        self._step = i + 1
        self._spent += time.perf_counter() - start_time

    def tick(self, tau_joint: Array, seconds: float) -> None:
        """Evaluate a control tick."""
        self.step_seconds.append(seconds - self._spent)
        h, robot = self._sim.physics_dt, self._sim.robot
        sums = self._sums
        for i in range(self.substeps):
            v = 0.5 * (self._v[i] + self._v[i + 1])
            contact = self._contact_work(i, v)
            sums[0] += h * (self._effort[i] @ v[robot.idx_v])
            sums[1] += h * (self._push[i] @ v)
            sums[2] += h * (self._friction[i] @ v)
            sums[3] += contact
            sums[4] += max(contact, 0.0)
        sums[5] = self._mechanical(self.substeps) - self._initial
        self._rows.append(sums.copy())
        self._q[0], self._v[0] = self._q[-1], self._v[-1]
        self._step = 0
        self._spent = 0.0

    def _contact_work(self, i: int, v: Array) -> float:
        pin.forwardKinematics(self._model, self._data, self._q[i], v)
        work = 0.0
        for k, (joint, placement) in enumerate(self._feet):
            work += float(self._wrench[i, k] @ placement.actInv(self._data.v[joint]).vector)
        return work * self._sim.physics_dt

    def _mechanical(self, i: int) -> float:
        return float(pin.computeMechanicalEnergy(self._model, self._data, self._q[i], self._v[i]))

    @property
    def energies(self) -> Array:
        """Cumulative energies after each tick (n, 6) [J], in the order of :data:`ENERGIES`.

        They are the work of actuators and push, the loss in the joints, the work of contact and its positive part, and
        the change of kinetic and potential energy.
        """
        return np.array(self._rows).reshape(len(self._rows), len(ENERGIES))

    @property
    def residual(self) -> Array:
        """Residual of the energy balance after each tick (n,) [J]: change - actuators - push + damping - contact."""
        actuators, push, damping, contact, _, change = self.energies.T
        return np.asarray(change - actuators - push + damping - contact)
