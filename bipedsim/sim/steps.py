"""Physics steps with impacts: a step with a touchdown or a joint limit is divided into three parts.

The parts are the motion until the impact, the impact, and the rest of the step. Plain time stepping is of first order
in h at every impact (docs/contact_models.md). Here the impact has the correct time, position and velocity. The contact
model solves it without finite forces.

The velocities of a semi-implicit step have a lag of half a step, because positions follow the velocity at the end of
the step. The missing change of velocity is added before the impact and subtracted in the rest of the step. Over the
whole step, all forces therefore act for exactly its length.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pinocchio as pin

from bipedsim.contact import UNRESOLVED, ContactModel, Parts
from bipedsim.dynamics import Dynamics, Outcome
from bipedsim.errors import ConfigError
from bipedsim.numerics import STEP_BUDGET, Array, box
from bipedsim.sim.arrival import Arrival, Calls
from bipedsim.touch import Touching

Judge = Callable[[Array, Array, float], None]
# Every step compares these; plain integers are faster than members of an IntEnum.
_BODY_CONTACT, _FLIGHT, _IMPACT = int(Outcome.BODY_CONTACT), int(Outcome.FLIGHT), int(Outcome.IMPACT)


class Steps:
    """Take the physics steps of a simulation, and divide those with an impact.

    Args:
        model: Model of the robot.
        dynamics, contact: Dynamics and contact model of the simulation.
        physics_dt: Step h [s].
        events: Whether impacts are resolved within a step, and flight conserves momentum.
        touching: All contacts except those of the soles; None if only the soles can be in contact.

    Attributes:
        stop_impulse: (S,) impulses of the joint limits on their joints over the last step [N.m.s].
        loop_impulse: (M,) impulses of the loops on their second bodies over the last step [N.s, N.m.s], in the order of
            the dynamics.
        stopped: Whether any joint limit may have been active.
        touched: Whether contacts other than those of the soles were solved in the last step. It is also set after a
            restore, where this is unknown.
    """

    def __init__(
        self,
        model: pin.Model,
        dynamics: Dynamics,
        contact: ContactModel,
        physics_dt: float,
        events: bool = True,
        touching: Touching | None = None,
    ) -> None:
        self._events = events
        self._touching = touching
        self.touched = False
        self._model = model
        self._dynamics = dynamics
        self._contact = contact
        self._h = physics_dt
        self._parts = Parts(dynamics.projection, contact.result)
        self._landed = self._ended = False
        self._stops, self._loops = dynamics.stops, dynamics.loops
        self._arrival = arrival = Arrival.of_robot(dynamics, contact, self._parts.sums)
        self._boxed = box(arrival)
        # The kernels are compiled at the first impact.
        self._compiled: Calls | None = None
        self._remembers = getattr(contact, "compiled", None) is None
        self.stopped = False
        self.stop_impulse, self.loop_impulse = arrival.stop_impulse, arrival.loop_impulse
        self._chained = len(self.loop_impulse) > 0
        self._meets = touching is not None and touching.wanted is not None
        self._place = self._q = np.zeros(model.nq)
        self._v: Array = np.zeros(model.nv)
        # Every step or impact reads these; a memoryview takes half the time of an array.
        self._counters, self._fixed = contact.result.counters.data, dynamics.tree.rows.used.data
        self._near, self._acted = dynamics.stops.near.data, arrival.stopped.data
        self._share, self._lag = dynamics.landing.share.data, dynamics.landing.lag.data
        self._budget = dynamics.projection.budget.data

    def take(self, q: Array, v: Array, torque: Array, judge: Judge | None = None) -> int:
        """Advance ``v`` over a step from (q, v) in place; :meth:`move` then returns the configuration at its end.

        Args:
            q, v: (nq,), (nv,).
            torque: (nu,) joint torques [N.m].
            judge: Called as ``judge(q, v+, share)`` for the step, or for each part of it, with the configuration at its
                beginning, the velocity at its end, and the fraction of h during which other forces than contact act.

        Returns:
            An :class:`Outcome`: TAKEN, BAD_TORQUE or DIVERGED.
        """
        self._budget[0] = STEP_BUDGET
        if q is not self._q or v is not self._v:
            self._check_arrays(q, v)
        if (self.touched or self._meets) and self._needs_all_contacts():
            return self._touch(q, v, torque, judge)
        d = self._dynamics
        unresolved = self._counters[UNRESOLVED]
        outcome: int = d.step(q, v, torque, self._contact, self._events, self._events)
        self.stopped = False
        self._ended = not outcome and not self._near[0] and not self._chained
        if self._ended:
            # Nearly all steps end here.
            self._landed = False
            if judge is not None:
                judge(q, v, 1.0)
            return outcome
        if outcome == _BODY_CONTACT:
            return self._touch(q, v, torque, judge)
        if outcome == _FLIGHT:
            return self._fly(q, v, torque, judge)
        if self._near[0] or self._chained:
            self._record_limits(self._fixed[0] > 0)
        self._landed = outcome == _IMPACT
        if self._landed and self._counters[UNRESOLVED] > unresolved and self._stops.arrivals[0] == 0:
            # Without the vertices that may touch down, the others may have no solution. For example, three of four
            # vertices may not support the foot.
            d.take_back()
            return self._unsplit(q, v, torque, False, judge)
        if self._landed:
            return self._land(q, v, torque, judge)
        if judge is not None and not outcome:
            judge(q, v, 1.0)
        return outcome

    def _fly(self, q: Array, v: Array, torque: Array, judge: Judge | None) -> int:
        """Take a step in flight; ``judge`` gets the semi-implicit solution, before the midpoint rule replaces it."""
        d = self._dynamics
        self._landed = False
        if judge is not None:
            d.acceleration[:] = d.change / self._h
            judge(q, v + d.change, 1.0)
        outcome = d.fly(q, v, torque)
        self.stopped = False
        if self._near[0] or self._chained:
            self._record_limits(self._fixed[0] > 0)
        return outcome

    def _needs_all_contacts(self) -> bool:
        """Return whether a step has to be solved together with contacts other than those of the feet."""
        touching = self._touching
        assert touching is not None
        if self.touched:
            self.touched = False
            if not touching.carries:
                touching.rest()
        needed = touching.carries or (touching.wanted is not None and touching.wanted())
        if not needed:
            touching.release()
        return needed

    def _touch(self, q: Array, v: Array, torque: Array, judge: Judge | None) -> int:
        """Take an undivided step with all contacts solved together."""
        touching = self._touching
        assert touching is not None
        self._landed = self.stopped = False
        self.touched = True
        outcome = touching.take(q, v, torque)
        self._ended = not outcome and not self._chained
        if self._near[0] or self._chained:
            self._record_limits(True)
        if touching.unresolved:
            self._parts.fail()
        if judge is not None and not outcome:
            judge(q, v, 1.0)
        return outcome

    def _unsplit(self, q: Array, v: Array, torque: Array, flies: bool, judge: Judge | None) -> int:
        """Take a step undivided after dividing it failed; ``flies`` enables flight with constant momentum."""
        self._landed = self.stopped = False
        outcome = self._dynamics.step(q, v, torque, self._contact, split=False, flies=flies)
        if outcome == Outcome.BODY_CONTACT:
            return self._touch(q, v, torque, judge)
        if outcome == Outcome.FLIGHT:
            return self._fly(q, v, torque, judge)
        if self._near[0] or self._chained:
            self._record_limits(self._fixed[0] > 0)
        if judge is not None and not outcome:
            judge(q, v, 1.0)
        return outcome

    def _record_limits(self, acted: bool) -> None:
        """Record the impulses of joint limits and loops in an undivided step, and whether limits ``acted``."""
        d = self._dynamics
        if d.repeated:
            self._parts.again()
        if d.unresolved:
            self._parts.fail()
        self.stopped = acted
        if acted:
            self.stop_impulse[:] = self._stops.impulse
        if self._chained:
            self.loop_impulse[:] = self._loops.impulse

    def move(self, q: Array, v: Array) -> Array:
        """Return the configuration (nq,) at the end of the step from ``q``; see :meth:`Dynamics.move`."""
        if self._ended:
            self._q = after = self._dynamics.end.copy()
            return after
        self._q = after = self._dynamics.move(self._place if self._landed else q, v)
        if self._dynamics.misplaced:
            self._parts.fail()
        return after

    def _check_arrays(self, q: Array, v: Array) -> None:
        """Check the arrays of a step that does not continue from the last one.

        Raises:
            ConfigError: An array has the wrong type or size; the compiled code does not check this.
        """
        for name, array, size in (("q", q, self._model.nq), ("v", v, self._model.nv)):
            if array.dtype != np.float64 or array.shape != (size,) or not array.flags.c_contiguous:
                raise ConfigError(f"it must be a contiguous array of {size} float64 numbers", name)
        self._q, self._v = q, v

    def count_unresolved(self) -> None:
        """Count the last step as unresolved, because the objects have no solution."""
        self._parts.fail()

    def warm_up(self, q: Array, v: Array) -> None:
        """Load or compile the kernels of the first impact, with (q, v) as an example."""
        boxed, calls, end = self._boxed, self._calls(), v.copy()
        calls.note(boxed, v, False)
        calls.depart(boxed, 0.0)
        calls.strike(boxed)
        calls.finish(boxed, q, end)
        calls.take_back(boxed)

    @property
    def unseen(self) -> bool:
        """Whether the last step ended with a velocity that ``judge`` has not seen."""
        return self._landed or bool(self._dynamics.flight.aloft[0])

    @property
    def landed(self) -> float:
        """Time of the impact in the last step as a fraction of the step; 0 if the step was not divided."""
        return self._share[0] if self._landed else 0.0

    def _calls(self) -> Calls:
        # A cached property would create the object's dictionary, which makes every attribute access slower.
        if self._compiled is None:
            self._compiled = Calls.of(self._boxed, self._arrival)
        return self._compiled

    def _land(self, q: Array, v: Array, torque: Array, judge: Judge | None) -> int:
        """Divide the step in which :meth:`Dynamics.step` has detected an impact."""
        d, boxed, calls = self._dynamics, self._boxed, self._calls()
        stops = self._stops.arrivals[0] > 0
        calls.note(boxed, v, self.stopped)
        memory = self._contact.state() if self._remembers else None
        if judge is not None:
            judge(q, v + d.change, 1.0)
        share, lag = self._share[0], self._lag[0]
        # After a late impact, the rest of the step may subtract more impulse than a lightly loaded foot received. The
        # second attempt therefore uses a smaller lag, except for joint limits: the joint would miss its limit.
        for behind in (lag,) if lag + share <= 1.0 or stops else (lag, 1.0 - share):
            outcome = self._from_landing(q, v, torque, behind, judge)
            if outcome not in (Outcome.NO_ANSWER, Outcome.BODY_CONTACT):
                return outcome
            calls.take_back(boxed)
            if memory is not None:
                self._contact.set_state(memory)
            if outcome == Outcome.BODY_CONTACT:
                self._parts.again()
                return self._touch(q, v, torque, judge)
        # The impact has no solution, so an undivided step closes the gap, as for a slow touchdown.
        self._parts.again()
        return self._unsplit(q, v, torque, stops, judge)

    def _from_landing(self, q: Array, v: Array, torque: Array, behind: float, judge: Judge | None) -> int:
        """Solve the impact and the rest of the step; ``behind`` is the lag of velocities before it, in steps."""
        d, boxed, calls, a = self._dynamics, self._boxed, self._calls(), self._arrival
        calls.depart(boxed, behind)
        self._place = place = d.closed(pin.integrate(self._model, q, a.way))
        if d.misplaced:
            self._parts.fail()
        outcome = d.impact(place, a.after, torque)
        if outcome:
            return outcome
        if d.unresolved:
            self._parts.fail()
        calls.strike(boxed)
        if judge is not None:
            judge(place, a.after, 0.0)
        outcome = d.rest(place, a.after, torque, 1.0 - self._share[0])
        if outcome:
            return outcome
        if d.unresolved:
            self._parts.fail()
        if judge is not None:
            d.acceleration[:] = d.change / self._h
            judge(place, a.after + d.change, 1.0)
        outcome = calls.finish(boxed, place, v)
        self.stopped = bool(self._acted[0])
        return outcome
