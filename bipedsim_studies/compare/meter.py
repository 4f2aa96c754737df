"""What a recording does not hold: the energy that goes through a run, and how long its steps take.

One physics step of h changes the velocity from v- to v+ by actuator torques tau, the push p, joint friction r (viscous
friction D v+, and dry friction where the hardware has it) and the contact wrenches f. Whatever acts is an impulse P
over the step and adds P . (v- + v+) / 2 to the kinetic energy, impacts not excepted (Thomson and Tait's theorem on
impulses), so that each is booked with the mean velocity v,

    actuators h tau . v,   push h p . v,   friction h r . v,   contact sum_feet h f . w,

with f the wrench that the simulator reports of a foot and w the mean velocity of the sole, both in the sole frame. What
is left of the change of kinetic and potential energy is the residual: what the integrator adds, of first order in h,
if the wrenches are those that acted.
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
    """Measures a run as its :class:`bipedsim.runs.runner.Observer`.

    Attributes:
        step_seconds: Time of each control tick's :meth:`Simulator.step` [s], without what the meter takes in it.
        substeps: Physics steps of a control tick.
    """

    def __init__(self) -> None:
        self.step_seconds: list[float] = []
        self.substeps = 1
        self._rows: list[Array] = []

    def __getstate__(self) -> dict[str, Any]:
        """Return what it has measured: the simulator stays in the process where it ran."""
        return {name: vars(self)[name] for name in ("step_seconds", "substeps", "_rows")}

    def start(self, sim: Simulator, readouts: Mapping[str, float]) -> None:
        """Begin at the simulator's state."""
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
        """Copy a physics step; what it means is worked out after the tick, when no clock runs."""
        started = time.perf_counter()
        i = self._step
        self._wrench[i] = contact.wrench
        self._push[i] = push
        self._effort[i], self._friction[i] = self._sim.joint_loads()
        self._q[i + 1] = self._sim.q
        self._v[i + 1] = self._sim.v
        self._step = i + 1
        self._spent += time.perf_counter() - started

    def tick(self, tau_joint: Array, seconds: float) -> None:
        """Add a control tick."""
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
        """Since the start, after each tick (n, 6) [J]: work of actuators and push, lost in joints, work of contact, the
        part of it that was positive, change of kinetic and potential energy."""
        return np.array(self._rows).reshape(len(self._rows), len(ENERGIES))

    @property
    def residual(self) -> Array:
        """What the balance lacks after each tick (n,) [J]: change - actuators - push + damping - contact."""
        actuators, push, damping, contact, _, change = self.energies.T
        return np.asarray(change - actuators - push + damping - contact)
