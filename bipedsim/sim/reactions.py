"""Impulses of joint limits, closed chains and body contacts over a control tick."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bipedsim.errors import ConfigError
from bipedsim.model import Robot, drivers
from bipedsim.numerics import Array, Integers, box, entry, ready
from bipedsim.sim.participant import Participant, Simulation
from bipedsim.touch import Contacts, Touching, add_impulses


class _Sums(NamedTuple):
    """Sums over a tick, and the impulses of the last step.

    Attributes:
        stop, loop, body: As in :class:`Reactions`, ``loop`` as (6L,).
        contacts: Contacts of the last step, see :class:`~bipedsim.touch.Touching`.
        step_stop, step_loop: (S,), (M,) impulses of joint limits and closed chains in the last step.
        stop_joint, loop_entry: (S,), (M,) their indices in the sums.
    """

    stop: Array
    loop: Array
    body: Array
    contacts: Contacts
    step_stop: Array
    step_loop: Array
    stop_joint: Integers
    loop_entry: Integers


@entry
def _add_step(boxed: Any, first: bool, stopped: bool, touched: bool) -> None:
    """Add the impulses of a step; the ``first`` one of a tick restarts the sums."""
    s = boxed.arrays
    if first:
        s.stop[:] = 0.0
        s.loop[:] = 0.0
        s.body[:, :] = 0.0
    if stopped:
        for j in range(s.stop_joint.shape[0]):
            s.stop[s.stop_joint[j]] += s.step_stop[j]
        for k in range(s.loop_entry.shape[0]):
            s.loop[s.loop_entry[k]] += s.step_loop[k]
    if touched:
        add_impulses(s.contacts, s.body)


BODY_IN_GROUND = 0.01
"""Largest depth [m] at which a body may start in the ground or in another body; the simulation removes it slowly."""


class Reactions(Participant):
    """Sum the impulses of everything that acts on the robot except drives, pushes and the ground under its soles.

    Args:
        robot: The robot.
        plant: The robot with the masses of the simulation.
        touching: All contacts except those of soles with faces of the ground; None if there can be no others.
        control_dt: Length of a tick [s].
        n_steps: Physics steps of a tick.

    Attributes:
        touching: As given.
        stop_impulse: (nv,) impulses of the joint limits on their joints over the tick, of passive joints too [N.m.s].
        loop_impulse: (L, 6) impulses of the closed chains on the bodies of their second frames over the tick: force
            [N.s] and torque [N.m.s] at that frame, along the axes of the first frame.
        body_impulse: (joints, 3) impulse on the body that each joint of the model moves, in the world [N.s]; of soles,
            only that of risers of a height field.
    """

    name = "reactions"

    def __init__(self, robot: Robot, plant: Robot, touching: Touching | None, control_dt: float, n_steps: int) -> None:
        self._robot, self._plant = robot, plant
        self._control_dt, self._n_steps = control_dt, n_steps
        self.touching = touching
        self.stop_impulse: Array = np.zeros(robot.model.nv)
        self.loop_impulse: Array = np.zeros((len(robot.loops), 6))
        self.body_impulse: Array = np.zeros((robot.model.njoints, 3))
        # The dynamics list the torque of a weld before its force.
        entries = [6 * k + (i + loop.size - 3) % 6 for k, loop in enumerate(robot.loops) for i in range(loop.size)]
        self._loop_entries = np.array(entries, dtype=np.int64)
        self._sums: Any = None
        self._driven = drivers(robot.model, robot.joint_names)
        self._forces = np.zeros((robot.nu + 1, 3))
        self._force_views = self._forces[0], self._forces[1:]
        self._torques = np.zeros(robot.nu)
        self._stopped = self._touched = False

    def warm_up(self) -> None:
        """Load or compile the kernels of contacts other than those of the soles, and of the sums."""
        if self.touching is not None:
            self.touching.warm_up()
        ready(_add_step, self._sums, True, True, True)

    def check_start(self, sim: Simulation, q: Array, v: Array) -> None:
        """Raise ConfigError if a body starts in the ground or in another body at ``q``; it would be ejected."""
        touching = self.touching
        if touching is None:
            return
        for where, depths in (("the ground", touching.depths(q)), ("each other", touching.overlaps(q))):
            deep = [name for name, depth in depths.items() if depth > BODY_IN_GROUND]
            if deep:
                bodies = ", ".join(f"{name} {1e3 * depths[name]:.3g} mm" for name in deep)
                soled = {sole.joint_id for sole in self._plant.soles}
                of_feet = any(shape.joint_id in soled for shape in self._plant.shapes.shapes if shape.name in deep)
                feet = "move the soles to the lower end of these feet (`placement`), " if of_feet else ""
                raise ConfigError(
                    f"they start in {where}: {bodies}. Start elsewhere, {feet}define other shapes under `bodies` in "
                    "robot.yaml, or use hardware with body_contact: false",
                    f"{self._robot.name}: {', '.join(deep)}",
                )

    def reset(self, sim: Simulation) -> None:
        """Clear the impulses of the last tick."""
        if self._sums is None:
            contacts = Contacts.of_size(0) if self.touching is None else self.touching.contacts
            sums = self.stop_impulse, self.loop_impulse.reshape(-1), self.body_impulse
            step = sim.stepper.stop_impulse, sim.stepper.loop_impulse
            self._sums = box(_Sums(*sums, contacts, *step, sim.dynamics.stops.idx_v, self._loop_entries))
        self._clear()
        if self.touching is not None:
            self.touching.reset()

    def _clear(self) -> None:
        self._stopped = self._touched = False
        self.stop_impulse[:] = 0.0
        self.loop_impulse[:] = 0.0
        self.body_impulse[:] = 0.0

    def after_step(self, sim: Simulation) -> None:
        """Add the impulses of the last physics step; the first step of a tick restarts the sums."""
        stepper = sim.stepper
        if stepper.stopped or stepper.touched or self._stopped or self._touched:
            self._add(sim)

    def _add(self, sim: Simulation) -> None:
        stepper = sim.stepper
        first = sim.step_count % self._n_steps == 0
        self._stopped = stepper.stopped or (self._stopped and not first)
        self._touched = stepper.touched or (self._touched and not first)
        _add_step(self._sums, first, stepper.stopped, stepper.touched)

    def contact_forces(self) -> tuple[Array, Array]:
        """Return the mean forces on the bodies over the last tick (3,), (nu, 3) [N]; NaN without contact; live."""
        forces = self._forces
        if self._touched and self.body_impulse.any():
            forces[:] = 0.0
            np.add.at(forces, self._driven, self.body_impulse / self._control_dt)
        else:
            forces[:] = np.nan
        return self._force_views

    def stop_torques(self) -> Array:
        """Return the mean torques of the joint limits over the last tick (nu,) [N.m]; NaN if none is active; live."""
        torques = self._torques
        torques[:] = np.nan
        if self._stopped:
            impulse = self.stop_impulse[self._robot.idx_v]
            if impulse.any():
                np.divide(impulse, self._control_dt, out=torques)
        return torques

    def state(self) -> dict[str, Any]:
        """Return a copy of the impulses and of the state of the body contacts."""
        arrays = {"stop": self.stop_impulse, "loop": self.loop_impulse, "body": self.body_impulse}
        touching = None if self.touching is None else self.touching.state()
        return {name: array.copy() for name, array in arrays.items()} | {"touching": touching}

    def set_state(self, state: dict[str, Any], sim: Simulation) -> None:
        """Restore a state that :meth:`state` returned."""
        self.stop_impulse[:], self.loop_impulse[:] = state["stop"], state["loop"]
        self.body_impulse[:] = state["body"]
        self._stopped = self._touched = True
        if self.touching is not None:
            self.touching.set_state(state["touching"])
            sim.stepper.touched = True
