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
    """Store a wrench (6,) in world axes, from ``begin`` to ``end`` in physics steps.

    The frame index -1 - k denotes object k. The force acts at ``point`` (3,) of the frame [m], None for its origin. It
    rises during the first ``ramp`` steps after ``begin`` and falls during the last ones before ``planned_end``.
    """

    frame: int
    wrench: Array
    begin: float
    end: float
    point: Array | None = None
    ramp: float = 0.0
    planned_end: float = 0.0

    def share(self, now: float) -> float:
        """Return the mean of the push over the step from ``now`` on, as a fraction of its wrench."""
        first, last = max(self.begin, now), min(self.end, now + 1)
        if not self.ramp or last <= first:
            return last - first
        return self._integral(last) - self._integral(first)

    def _integral(self, until: float) -> float:
        since, length, ramp = until - self.begin, self.planned_end - self.begin, self.ramp
        rise = min(since, ramp)
        level = min(max(since - ramp, 0.0), length - 2.0 * ramp)
        fall = min(max(since - (length - ramp), 0.0), ramp)
        return rise * rise / (2.0 * ramp) + level + fall - fall * fall / (2.0 * ramp)


class Pushes(Participant):
    """Apply the pushes of a simulation.

    This participant must be the first in the list, because it initialises the external force of a step.

    Args:
        model: Model of the robot.
        objects: Free bodies; None without any.

    Attributes:
        others_add: Whether another participant adds forces as well; the simulator sets it.
        on_push: Called with wrench, body, duration, delay, point and ramp of every push that is accepted. None by
            default.
    """

    name = "pushes"
    changes_form = True

    def __init__(self, model: pin.Model, objects: Objects | None) -> None:
        self._model, self._data = model, model.createData()
        self._objects = objects
        self.others_add = False
        self._pushes: tuple[_Push, ...] = ()
        self.on_push: Callable[[Array, str, float, float, Array | None, float], None] | None = None

    def check(
        self,
        wrench: Array,
        body: str | None,
        duration: float,
        after: float = 0.0,
        point: Array | None = None,
        ramp: float = 0.0,
    ) -> int:
        """Return the index of the frame that a push acts on.

        Args:
            wrench: (6,) force [N], torque [N.m] in world axes.
            body: Frame of the robot, its root body by default, or an object.
            duration: Duration of the push [s].
            after: Delay from now until it begins [s].
            point: (3,) point at which the force acts, in the axes of the frame [m]; its origin by default.
            ramp: Time in which the wrench rises at the beginning, and falls at the end of the duration [s].

        Raises:
            UnknownNameError: The robot has no such frame.
            ConfigError: The wrench has the wrong size, is not finite or beyond ``LARGEST_PUSH``, the duration is not
                positive, ``after`` is negative, or the ramp is longer than half of the duration.
        """
        for name, values, size in (("wrench", wrench, 6), ("point", np.zeros(3) if point is None else point, 3)):
            if np.shape(values) != (size,) or not np.isfinite(values).all():
                raise ConfigError(f"must be {size} finite numbers", f"push: {name}", np.asarray(values).tolist())
        if np.abs(wrench).max() > LARGEST_PUSH:
            raise ConfigError(f"is beyond {LARGEST_PUSH:g} N, N.m, the maximum", "push: wrench", wrench)
        if not duration > 0.0:
            raise ConfigError("s must be positive", "push: duration", duration)
        if not after >= 0.0:
            raise ConfigError("s must be at least 0", "push: after", after)
        if not 0.0 <= ramp <= 0.5 * duration:
            raise ConfigError(f"s must be from 0 to half of the duration, {0.5 * duration:g} s", "push: ramp", ramp)
        return self._frame(body or _root_frame(self._model))

    def add(
        self,
        sim: Simulation,
        wrench: Array,
        body: str | None,
        duration: float,
        after: float,
        point: Array | None = None,
        ramp: float = 0.0,
    ) -> None:
        """Add a push; see :meth:`Simulator.push`."""
        frame = self.check(wrench, body, duration, after, point, ramp)
        begin = sim.step_count + _in_steps(after, sim.physics_dt)
        end = begin + _in_steps(duration, sim.physics_dt)
        # The robot has one push at a time, and so has each object.
        same = [min(push.frame, 0) == min(frame, 0) for push in self._pushes]
        kept = [
            push._replace(end=min(push.end, begin)) if is_same else push
            for push, is_same in zip(self._pushes, same, strict=True)
            if push.begin < begin or not is_same
        ]
        at = None if point is None else np.array(point, dtype=np.float64)
        self._pushes = (*kept, _Push(frame, wrench.copy(), begin, end, at, _in_steps(ramp, sim.physics_dt), end))
        if self.on_push is not None:
            self.on_push(wrench, body or _root_frame(self._model), duration, after, at, ramp)

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
            share = push.share(now)
            if share > 0.0 and push.frame < 0:
                assert self._objects is not None
                world, k = self._objects.world, -1 - push.frame
                world.push(k, share * _at_origin(push, world.bodies.R[k]))
            elif share > 0.0:
                jacobian = pin.computeFrameJacobian(self._model, self._data, sim.q, push.frame, axes)
                torque += jacobian.T @ (share * _at_origin(push, self._data.oMf[push.frame].rotation))
        return torque

    def state(self) -> tuple[_Push, ...]:
        """Return the pushes that act or will act."""
        return self._pushes

    def set_state(self, state: tuple[_Push, ...], sim: Simulation) -> None:
        """Restore a state that :meth:`state` returned."""
        self._pushes = state
        sim.dynamics.push[:] = 0.0


def _at_origin(push: _Push, rotation: Array) -> Array:
    """Return the wrench (6,) of a push at the origin of its frame, which has this rotation in the world."""
    if push.point is None:
        return push.wrench
    moment = np.cross(rotation @ push.point, push.wrench[:3])
    return np.concatenate([push.wrench[:3], push.wrench[3:] + moment])


def _in_steps(seconds: float, physics_dt: float) -> float:
    """Return a time in steps, rounded to a whole number of steps if it differs from one only by rounding."""
    steps = seconds / physics_dt
    whole = round(min(steps, 2**53))
    return whole if abs(steps - whole) < 1e-6 * max(whole, 1) else steps


def _root_frame(model: pin.Model) -> str:
    """Return the name of the body that moves with the first joint."""
    return next(frame.name for frame in model.frames if frame.type == pin.FrameType.BODY and frame.parentJoint == 1)
