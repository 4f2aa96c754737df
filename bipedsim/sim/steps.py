"""A step in which a vertex lands, or a joint arrives at its stop: up to then, the impact, and what is left of the step.

Time stepping alone is of first order in h at every arrival (docs/contact_models.md). Here the impact happens where and
when vertex or joint arrives, at the velocity that it has there, and is solved by the contact model as an impact: forces
of finite size have no part in it.

Velocities of a semi-implicit step are those of half a step ago, as positions go with the velocity at the end of the
step; what it lacks until the arrival is added there, and taken back in the rest of the step: over the whole step, all
forces act for its length.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pinocchio as pin

from bipedsim.contact import UNRESOLVED, ContactModel, Parts
from bipedsim.dynamics import Dynamics, Outcome
from bipedsim.numerics import STEP_BUDGET, Array, box
from bipedsim.sim.arrival import Arrival, Calls
from bipedsim.touch import Touching

Judge = Callable[[Array, Array, float], None]
# Plain integers, compared in every step.
_BODY_CONTACT, _FLIGHT, _IMPACT = int(Outcome.BODY_CONTACT), int(Outcome.FLIGHT), int(Outcome.IMPACT)


class Steps:
    """Takes the steps of a simulation, those in which a vertex lands or a joint arrives at its stop in their parts.

    Args:
        model: The robot's.
        dynamics, contact: Of the simulation.
        physics_dt: Step h [s].
        events: Whether such arrivals happen within a step, and flight keeps its momentum.
        touching: All contacts but those of the soles; None where these alone touch.

    Attributes:
        stop_impulse: (S,) impulses of the stops on their joints over the last step [N.m.s].
        loop_impulse: (M,) impulses of the loops on their second bodies over the last step [N.s, N.m.s], as the dynamics
            have them.
        stopped: Whether any of these may not be 0.
        touched: Whether more than the soles had a part in the last step, or may have had, in a simulation that was put
            back.
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
        self._landed = False
        self._stops, self._loops = dynamics.stops, dynamics.loops
        self._arrival = arrival = Arrival.of_robot(dynamics, contact, self._parts.sums)
        self._boxed = box(arrival)
        # Compiled when something arrives for the first time.
        self._compiled: Calls | None = None
        self._remembers = getattr(contact, "compiled", None) is None
        self.stopped = False
        self.stop_impulse, self.loop_impulse = arrival.stop_impulse, arrival.loop_impulse
        self._chained = len(self.loop_impulse) > 0
        self._meets = touching is not None and touching.wanted is not None
        self._place = self._q = np.zeros(model.nq)
        self._v: Array = np.zeros(model.nv)
        # Read in every step, or in every landing, which a memoryview does in half the time.
        self._counters, self._fixed = contact.result.counters.data, dynamics.tree.rows.used.data
        self._near, self._acted = dynamics.stops.near.data, arrival.stopped.data
        self._share, self._lag = dynamics.landing.share.data, dynamics.landing.lag.data
        self._budget = dynamics.projection.budget.data

    def take(self, q: Array, v: Array, torque: Array, judge: Judge | None = None) -> int:
        """Move ``v`` to the end of a step from (q, v); :meth:`move` then says where it ends.

        Args:
            q, v: (nq,), (nv,).
            torque: (nu,) of the joints [N.m].
            judge: Called with what the step, or each part of it, begins and ends with, and for which share of the step
                more than contact acts in it: ``judge(q, v+, share)``.

        Returns:
            An :class:`Outcome`: TAKEN, BAD_TORQUE or DIVERGED.
        """
        self._budget[0] = STEP_BUDGET
        if q is not self._q or v is not self._v:
            self._look_at(q, v)
        if (self.touched or self._meets) and self._goes_on():
            return self._touch(q, v, torque, judge)
        d = self._dynamics
        unresolved = self._counters[UNRESOLVED]
        outcome = d.step(q, v, torque, self._contact, self._events, self._events)
        if outcome == _BODY_CONTACT:
            return self._touch(q, v, torque, judge)
        if outcome == _FLIGHT:
            return self._fly(q, v, torque, judge)
        self.stopped = False
        if self._near[0] or self._chained:
            self._note_stops(self._fixed[0] > 0)
        self._landed = outcome == _IMPACT
        if self._landed and self._counters[UNRESOLVED] > unresolved and self._stops.arrivals[0] == 0:
            # Without the vertices that may land, no set may be left that holds the others: three of four are none.
            d.take_back()
            return self._unsplit(q, v, torque, False, judge)
        if self._landed:
            return self._land(q, v, torque, judge)
        if judge is not None and not outcome:
            judge(q, v, 1.0)
        return outcome

    def _fly(self, q: Array, v: Array, torque: Array, judge: Judge | None) -> int:
        """Take a step in flight; ``judge`` sees it as it was found, without the middle that it then is given."""
        d = self._dynamics
        self._landed = False
        if judge is not None:
            d.acceleration[:] = d.change / self._h
            judge(q, v + d.change, 1.0)
        outcome = d.fly(q, v, torque)
        self.stopped = False
        if self._near[0] or self._chained:
            self._note_stops(self._fixed[0] > 0)
        return outcome

    def _goes_on(self) -> bool:
        """Whether a step has to be taken as one in which more than the feet touches, whatever they do."""
        touching = self._touching
        assert touching is not None
        if self.touched:
            self.touched = False
            if not touching.carries:
                touching.rest()
        return touching.carries or (touching.wanted is not None and touching.wanted())

    def _touch(self, q: Array, v: Array, torque: Array, judge: Judge | None) -> int:
        """Take a step as a whole in which more than the feet touches."""
        touching = self._touching
        assert touching is not None
        self._landed = self.stopped = False
        self.touched = True
        outcome = self._dynamics.touch(q, v, torque, self._contact, touching)
        if self._near[0] or self._chained:
            self._note_stops(True)
        if touching.unresolved:
            self._parts.fail()
        if judge is not None and not outcome:
            judge(q, v, 1.0)
        return outcome

    def _unsplit(self, q: Array, v: Array, torque: Array, flies: bool, judge: Judge | None) -> int:
        """Take a step as a whole in the end that was begun in parts; ``flies`` if it should keep momentum in flight."""
        self._landed = self.stopped = False
        outcome = self._dynamics.step(q, v, torque, self._contact, split=False, flies=flies)
        if outcome == Outcome.BODY_CONTACT:
            return self._touch(q, v, torque, judge)
        if outcome == Outcome.FLIGHT:
            return self._fly(q, v, torque, judge)
        if self._near[0] or self._chained:
            self._note_stops(self._fixed[0] > 0)
        if judge is not None and not outcome:
            judge(q, v, 1.0)
        return outcome

    def _note_stops(self, acted: bool) -> None:
        """Take in what stops and loops did in a step that was made as a whole, or tried to and did not act."""
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
        self._q = after = self._dynamics.move(self._place if self._landed else q, v)
        if self._dynamics.misplaced:
            self._parts.fail()
        return after

    def _look_at(self, q: Array, v: Array) -> None:
        """Take in that a step begins with arrays that the last one did not end with.

        Raises:
            ValueError: One is not what compiled code reads, which does not look.
        """
        for name, array, size in (("q", q, self._model.nq), ("v", v, self._model.nv)):
            if array.dtype != np.float64 or array.shape != (size,) or not array.flags.c_contiguous:
                raise ValueError(f"{name} has to be an array of {size} numbers of type float64 in one piece")
        self._q, self._v = q, v

    def count_unresolved(self) -> None:
        """Count that the last step has no solution, of what is not the robot's."""
        self._parts.fail()

    def warm_up(self, q: Array, v: Array) -> None:
        """Load or compile what the first landing and the first flight need, as of a step from (q, v)."""
        boxed, calls, end = self._boxed, self._calls(), v.copy()
        calls.note(boxed, v, False)
        calls.depart(boxed, 0.0)
        calls.strike(boxed)
        calls.finish(boxed, q, end)
        calls.take_back(boxed)
        if self._touching is not None:
            self._touching.warm_up()

    @property
    def unseen(self) -> bool:
        """Whether the last step ended with another velocity than ``judge`` was shown."""
        return self._landed or bool(self._dynamics.flight.aloft[0])

    @property
    def landed(self) -> float:
        """After which share of the last step something arrived in it; 0 where it was taken as a whole."""
        return self._share[0] if self._landed else 0.0

    def _calls(self) -> Calls:
        # A cached property would ask for the object's dictionary, and every attribute be slower from then on.
        if self._compiled is None:
            self._compiled = Calls.of(self._boxed, self._arrival)
        return self._compiled

    def _land(self, q: Array, v: Array, torque: Array, judge: Judge | None) -> int:
        """Take the step that :meth:`Dynamics.step` was about to make when something arrived."""
        d, boxed, calls = self._dynamics, self._boxed, self._calls()
        stops = self._stops.arrivals[0] > 0
        calls.note(boxed, v, self.stopped)
        memory = self._contact.state() if self._remembers else None
        if judge is not None:
            judge(q, v + d.change, 1.0)
        share, lag = self._share[0], self._lag[0]
        # After a late arrival the rest takes back more than a foot may have been given that hardly weighs.
        # A joint would not be at its stop then.
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
        # No answer to the impact alone: the gap is closed within the step, as of a vertex that is put down.
        self._parts.again()
        return self._unsplit(q, v, torque, stops, judge)

    def _from_landing(self, q: Array, v: Array, torque: Array, behind: float, judge: Judge | None) -> int:
        """Go from the first part over the landing to the end of the step; velocities are ``behind`` until then."""
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
