"""External wrenches of limited duration on bodies of the robot and on objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pinocchio as pin

from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.numerics import Array
from bipedsim.sim.io import LARGEST_PUSH
from bipedsim.sim.participant import Participant, Simulation

if TYPE_CHECKING:
    from bipedsim.sim.objects import Objects


class _Push(NamedTuple):
    """Store a wrench (6,) in world axes at the origin of a frame, from ``begin`` to ``end`` in physics steps.

    The frame index -1 - k denotes object k.
    """

    frame: int
    wrench: Array
    begin: float
    end: float


class Pushes(Participant):
    """Apply the pushes of a simulation.

    This participant must be the first in the list, because it initialises the external force of a step.

    Args:
        model: Model of the robot.
        objects: Free bodies; None without any.

    Attributes:
        others_add: Whether another participant adds forces as well; the simulator sets it.
        on_push: Called with wrench, body, duration and delay of every push that is accepted. None by default.
    """

    name = "pushes"
    changes_form = True

    def __init__(self, model: pin.Model, objects: Objects | None) -> None:
        self._model, self._data = model, model.createData()
        self._objects = objects
        self.others_add = False
        self._pushes: tuple[_Push, ...] = ()
        self.on_push: Callable[[Array, str, float, float], None] | None = None

    def add(self, sim: Simulation, wrench: Array, body: str | None, duration: float, after: float) -> None:
        """Add a push; see :meth:`Simulator.push`."""
        if np.abs(wrench).max() > LARGEST_PUSH:
            raise ConfigError(f"is beyond {LARGEST_PUSH:g} N, N.m, the maximum", "push: wrench", wrench)
        name = body or _root_frame(self._model)
        frame = self._frame(name)
        if not duration > 0.0:
            raise ConfigError("s must be positive", "push: duration", duration)
        if not after >= 0.0:
            raise ConfigError("s must be at least 0", "push: after", after)
        begin = sim.step_count + _in_steps(after, sim.physics_dt)
        end = begin + _in_steps(duration, sim.physics_dt)
        # The robot has one push at a time, and so has each object.
        same = [min(push.frame, 0) == min(frame, 0) for push in self._pushes]
        kept = [
            push._replace(end=min(push.end, begin)) if is_same else push
            for push, is_same in zip(self._pushes, same, strict=True)
            if push.begin < begin or not is_same
        ]
        self._pushes = (*kept, _Push(frame, wrench.copy(), begin, end))
        if self.on_push is not None:
            self.on_push(wrench, name, duration, after)

    def _frame(self, name: str) -> int:
        names = self._objects.names if self._objects is not None else ()
        if name in names:
            return -1 - names.index(name)
        if not self._model.existFrame(name):
            raise UnknownNameError("frame", name, sorted({*names, *(frame.name for frame in self._model.frames)}))
        # A link and a joint may share a name; the push then acts on the link.
        body_too = self._model.existFrame(name, pin.FrameType.BODY)
        return int(self._model.getFrameId(name, pin.FrameType.BODY) if body_too else self._model.getFrameId(name))

    def reset(self, sim: Simulation) -> None:
        """Remove all pushes."""
        self._pushes = ()
        sim.dynamics.push[:] = 0.0

    def before_step(self, sim: Simulation) -> None:
        """Set ``sim.dynamics.push`` to the mean generalised force (nv,) of the pushes over the coming step."""
        if self._pushes:
            sim.dynamics.push[:] = self._torque(sim)
        elif self.others_add:
            sim.dynamics.push[:] = 0.0

    def _torque(self, sim: Simulation) -> Array:
        now = sim.step_count
        self._pushes = tuple(push for push in self._pushes if push.end > now)
        if self._objects is not None:
            self._objects.forget_pushes()
        torque = np.zeros(self._model.nv)
        axes = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        for push in self._pushes:
            share = min(push.end, now + 1) - max(push.begin, now)
            if share > 0.0 and push.frame < 0:
                assert self._objects is not None
                self._objects.world.push(-1 - push.frame, share * push.wrench)
            elif share > 0.0:
                jacobian = pin.computeFrameJacobian(self._model, self._data, sim.q, push.frame, axes)
                torque += jacobian.T @ (share * push.wrench)
        return torque

    def state(self) -> tuple[_Push, ...]:
        """Return the pushes that act or will act."""
        return self._pushes

    def set_state(self, state: tuple[_Push, ...], sim: Simulation) -> None:
        """Restore a state that :meth:`state` returned."""
        self._pushes = state
        sim.dynamics.push[:] = 0.0


def _in_steps(seconds: float, physics_dt: float) -> float:
    """Return a time in steps, rounded to a whole number of steps if it differs from one only by rounding."""
    steps = seconds / physics_dt
    whole = round(min(steps, 2**53))
    return whole if abs(steps - whole) < 1e-6 * max(whole, 1) else steps


def _root_frame(model: pin.Model) -> str:
    """Return the name of the body that moves with the first joint."""
    return next(frame.name for frame in model.frames if frame.type == pin.FrameType.BODY and frame.parentJoint == 1)
