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

from bipedsim.contact import ContactModel, Parts
from bipedsim.dynamics import LANDS, SPEED_LIMIT, TOUCHES, Dynamics
from bipedsim.numerics import Array
from bipedsim.touch import Touching

Judge = Callable[[Array, Array, float], None]


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
        touched: Whether more than the soles had a part in the last step.
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
        self._flies = False
        self._stops = dynamics.stops
        self.stopped = False
        self.stop_impulse: Array = np.zeros(len(self._stops.held))
        self._loops = dynamics.loops
        self.loop_impulse: Array = np.zeros(len(self._loops.impulse))
        self._chained = len(self.loop_impulse) > 0
        self._place: Array = np.zeros(model.nq)

    def take(self, q: Array, v: Array, torque: Array, judge: Judge | None = None) -> float:
        """Move ``v`` to the end of a step from (q, v); :meth:`move` then says where it ends.

        Args:
            q, v: (nq,), (nv,).
            torque: (nu,) of the joints [N.m].
            judge: Called with what the step, or each part of it, begins and ends with, and for which share of the step
                more than contact acts in it: ``judge(q, v+, share)``.

        Returns:
            As :meth:`Dynamics.step`.
        """
        d = self._dynamics
        unresolved = self._parts.unresolved
        touching = self._touching
        if self.touched:
            self.touched = False
            assert touching is not None
            if not touching.carries:
                touching.rest()
        if touching is not None and (touching.carries or (touching.wanted is not None and touching.wanted())):
            return self._touch(touching, q, v, torque, judge)
        fastest = d.step(q, v, torque, self._contact, self._events, self._events)
        if fastest == TOUCHES:
            assert touching is not None
            return self._touch(touching, q, v, torque, judge)
        self.stopped = self._chained or d.near
        if self.stopped:
            self._note_stops()
        self._landed = fastest == LANDS
        if self._landed and self._parts.unresolved > unresolved and self._stops.arrivals[0] == 0:
            # Without the vertices that may land, no set may be left that holds the others: three of four are none.
            d.take_back(self._contact)
            fastest = self._unsplit(q, v, torque, False)
        elif self._landed:
            return self._land(q, v, torque, judge)
        if judge is not None and 0.0 <= fastest < SPEED_LIMIT:
            judge(q, v, 1.0)
        return fastest

    def _touch(self, touching: Touching, q: Array, v: Array, torque: Array, judge: Judge | None) -> float:
        """Take a step as a whole in which more than the feet touches."""
        self._landed = False
        self.touched = True
        fastest = self._dynamics.touch(q, v, torque, self._contact, touching)
        self.stopped = self._chained or self._dynamics.near
        if self.stopped:
            self._note_stops()
        if touching.unresolved:
            self._parts.fail()
        if judge is not None and 0.0 <= fastest < SPEED_LIMIT:
            judge(q, v, 1.0)
        return fastest

    def _unsplit(self, q: Array, v: Array, torque: Array, flies: bool) -> float:
        """Take a step as a whole in the end that was begun in parts; ``flies`` if it should keep momentum in flight."""
        self._landed = False
        fastest = self._dynamics.step(q, v, torque, self._contact, split=False, flies=flies)
        self.stopped = self._chained or self._dynamics.near
        if self.stopped:
            self._note_stops()
        return fastest

    def _note_stops(self) -> None:
        """Take in what stops and loops did in a step that was made as a whole."""
        d = self._dynamics
        if d.repeated:
            self._parts.again()
        if d.unresolved:
            self._parts.fail()
        self.stop_impulse[:] = self._stops.impulse
        if self._chained:
            self.loop_impulse[:] = self._loops.impulse

    def move(self, q: Array, v: Array) -> Array:
        """Return the configuration (nq,) at the end of the step from ``q``; see :meth:`Dynamics.move`."""
        return self._dynamics.move(self._place if self._landed else q, v)

    def warm_up(self, q: Array, v: Array) -> None:
        """Load or compile what the first landing and the first flight need, as of a step from (q, v)."""
        self._parts.begin()
        self._parts.add(1.0)
        self._parts.end()
        self._dynamics.correct(q.copy(), v.copy())
        if self._touching is not None:
            self._touching.warm_up()

    @property
    def unseen(self) -> bool:
        """Whether the last step ended with another velocity than ``judge`` was shown."""
        return self._landed or bool(self._dynamics.flight.aloft[0])

    def _land(self, q: Array, v: Array, torque: Array, judge: Judge | None) -> float:
        """Take the step that :meth:`Dynamics.step` was about to make when something arrived."""
        d, h = self._dynamics, self._h
        stops = self._stops.arrivals[0] > 0
        # The robot as a whole keeps its momentum where a stop is all that it meets.
        self._flies = bool(d.flight.aloft[0] and stops)
        before = self.stop_impulse.copy() if self.stopped else 0.0
        before_loops = self.loop_impulse.copy()
        change = d.change.copy()
        d.acceleration[:] = change / h
        if judge is not None:
            judge(q, v + change, 1.0)
        share, lag = float(d.landing.share[0]), float(d.landing.lag[0])
        memory, begun = (self._contact.state(), d.state()), v.copy()
        # After a late arrival the rest takes back more than a foot may have been given that hardly weighs.
        # A joint would not be at its stop then.
        for behind in (lag, 1.0 - share)[: 1 if lag + share <= 1.0 or stops else 2]:
            self.stop_impulse[:] = before
            self.loop_impulse[:] = before_loops
            fastest = self._from_landing(q, v, torque, change, share, behind, judge)
            if fastest == TOUCHES:
                assert self._touching is not None
                v[:] = begun
                self._contact.set_state(memory[0])
                d.set_state(memory[1])
                self._parts.again()
                return self._touch(self._touching, q, v, torque, judge)
            # A stop that is reached in the rest of the step has an impulse, of which no share may be taken back.
            if not 0.0 <= fastest < SPEED_LIMIT or (self._parts.sound and not self._stops.closing[0]):
                return fastest
            v[:] = begun
            self._contact.set_state(memory[0])
            d.set_state(memory[1])
        # No answer to the impact alone: the gap is closed within the step, as of a vertex that is put down.
        self._parts.again()
        fastest = self._unsplit(q, v, torque, stops)
        if judge is not None and 0.0 <= fastest < SPEED_LIMIT:
            judge(q, v, 1.0)
        return fastest

    def _from_landing(
        self, q: Array, v: Array, torque: Array, change: Array, share: float, lag: float, judge: Judge | None
    ) -> float:
        """Go from the first part, which changes ``v`` by ``change``, over the landing to the end of the step."""
        d, h = self._dynamics, self._h
        until = lag + share
        self._parts.begin()
        self._parts.add(until)
        self.stop_impulse *= until
        self.loop_impulse *= until
        self._place = place = d.closed(pin.integrate(self._model, q, share * h * (v + (lag + 0.5 * share) * change)))
        arriving = v + until * change
        fastest = d.impact(place, arriving, torque, self._contact)
        if not 0.0 <= fastest < SPEED_LIMIT:
            return fastest
        self._add(1.0, at_once=True)
        flies = self._flies and bool(d.flight.aloft[0])
        after = arriving + d.change
        d.acceleration[:] = d.change / h
        if judge is not None:
            judge(place, after, 0.0)
        left = 1.0 - share
        fastest = d.rest(place, after, torque, self._contact, left)
        if not 0.0 <= fastest < SPEED_LIMIT:
            return fastest
        d.acceleration[:] = d.change / h
        if judge is not None:
            judge(place, after + d.change, 1.0)
        self._add(1.0 - until)
        self._parts.end()
        # As ever: in flight along the parabola, which leaves nothing to correct, else to where contacts want to be.
        way = 0.5 * left if d.flight.aloft[0] else 1.0
        d.flight.aloft[0] = flies and d.flight.aloft[0]
        d.displacement[:] = left * h * (after + way * d.change)
        if way < 1.0 and self._stops.near[0]:
            self._keep_to_stops(place)
        after += (1.0 - until) * d.change
        d.acceleration[:] = (after - v) / h
        v[:] = after
        return float(np.abs(v).max())

    def _keep_to_stops(self, q: Array) -> None:
        """Have joints that are slow end the way from ``q`` at their limits, in flight, where nothing else minds."""
        s, way = self._stops, self._dynamics.displacement
        angle = q[s.idx_q]
        way[s.idx_v] = np.clip(way[s.idx_v], s.lower - angle, s.upper - angle)

    def _add(self, share: float, at_once: bool = False) -> None:
        """Take in what ground and stops did in the part that was solved last."""
        self._parts.add(share, at_once)
        if self._dynamics.unresolved:
            self._parts.fail()
        self.loop_impulse += share * self._loops.impulse
        if self._stops.near[0]:
            self.stop_impulse += share * self._stops.impulse
            self.stopped = True
