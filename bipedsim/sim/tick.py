"""Ground reactions over a control tick of several physics steps, so that no impulse between measurements is lost."""

from __future__ import annotations

import numpy as np

from bipedsim.contact import ContactResult
from bipedsim.numerics import Array
from bipedsim.sim.participant import Participant, Simulation


class Tick(Participant):
    """Sum the contact results of the physics steps of a tick.

    Args:
        step: The result that the contact model overwrites at every physics step.
        acceleration: (nv,) mean acceleration over a physics step, which the dynamics overwrite.
        n_steps: Physics steps of a tick. A tick of one step needs no sums and is no participant.

    Attributes:
        n_steps: As given.
        result: Impulse and impact are sums. Wrenches are means over the tick. The CoP is the mean weighted by normal
            force. Margin and friction are the worst of the tick, and modes are those of the last step.
        acceleration: (nv,) mean acceleration over the tick.
    """

    name = "tick"

    def __init__(self, step: ContactResult, acceleration: Array, n_steps: int) -> None:
        self._step, self._acceleration = step, acceleration
        self.n_steps = n_steps
        self.result, self.acceleration = step, acceleration
        if n_steps > 1:
            self.result = ContactResult.empty(len(step.mode), step.vertex_forces.shape[1])
            self.result.counters = step.counters
            self.acceleration = np.zeros_like(acceleration)
        self._normal = np.zeros(len(step.mode))
        self._steps = 0

    def begin_tick(self, sim: Simulation) -> None:
        """Start the sums."""
        r = self.result
        self._steps = 0
        self.acceleration[:] = 0.0
        for array in (r.impulse, r.impact, r.wrench, r.vertex_forces, r.cop, self._normal):
            array[:] = 0.0
        r.cop_margin[:] = np.nan
        r.friction_used[:] = np.nan

    def after_step(self, sim: Simulation) -> None:
        """Add the last physics step."""
        r, step = self.result, self._step
        self._steps += 1
        self.acceleration += self._acceleration
        r.impulse += step.impulse
        r.impact += step.impact
        r.wrench += step.wrench / self.n_steps
        r.vertex_forces += step.vertex_forces / self.n_steps
        normal = step.impulse[:, 2]
        loaded = normal > 0.0
        r.cop[loaded] += normal[loaded, None] * step.cop[loaded]
        self._normal[loaded] += normal[loaded]
        # fmin and fmax ignore NaN.
        np.fmin(r.cop_margin, step.cop_margin, out=r.cop_margin)
        np.fmax(r.friction_used, step.friction_used, out=r.friction_used)
        if self._steps == self.n_steps:
            self._end()

    def _end(self) -> None:
        r, step = self.result, self._step
        self.acceleration /= self.n_steps
        with np.errstate(divide="ignore", invalid="ignore"):
            np.divide(r.cop, self._normal[:, None], out=r.cop)
        for name in ("n_vertices", "mode", "clamped", "sliding"):
            getattr(r, name)[:] = getattr(step, name)

    def reset(self, sim: Simulation) -> None:
        """Clear the results of the last tick."""
        self.result.clear()

    def state(self) -> ContactResult:
        """Return a copy of the last tick."""
        return ContactResult(**{name: array.copy() for name, array in self.result.arrays().items()})

    def set_state(self, state: ContactResult, sim: Simulation) -> None:
        """Restore a state that :meth:`state` returned; the contact model restores the counters."""
        self.result.take(state.arrays() | {"counters": self.result.counters})
