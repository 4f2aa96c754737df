"""What the ground did over a control tick of several physics steps: no impulse between two measurements is lost."""

from __future__ import annotations

import numpy as np

from bipedsim.contact import ContactResult


class Tick:
    """Sums the contact results of ``n_steps`` physics steps.

    Args:
        step: The result that the contact model overwrites at every physics step.
        n_steps: Physics steps of a tick.

    Attributes:
        result: Impulse and impact are sums, wrenches means over the tick, the CoP is the mean weighted by normal force;
            of margin and friction the worst, of modes the last ones.
    """

    def __init__(self, step: ContactResult, n_steps: int) -> None:
        self._step = step
        self._n_steps = n_steps
        self.result = ContactResult.empty(len(step.mode), step.vertex_forces.shape[1])
        self.result.counters = step.counters
        self._normal = np.zeros(len(step.mode))

    def begin(self) -> None:
        """Start a tick."""
        r = self.result
        for array in (r.impulse, r.impact, r.wrench, r.vertex_forces, r.cop, self._normal):
            array[:] = 0.0
        r.cop_margin[:] = np.nan
        r.friction_used[:] = np.nan

    def add(self) -> None:
        """Take in the physics step that was made last."""
        r, step = self.result, self._step
        r.impulse += step.impulse
        r.impact += step.impact
        r.wrench += step.wrench / self._n_steps
        r.vertex_forces += step.vertex_forces / self._n_steps
        normal = step.impulse[:, 2]
        loaded = normal > 0.0
        r.cop[loaded] += normal[loaded, None] * step.cop[loaded]
        self._normal[loaded] += normal[loaded]
        # fmin and fmax leave NaN out.
        np.fmin(r.cop_margin, step.cop_margin, out=r.cop_margin)
        np.fmax(r.friction_used, step.friction_used, out=r.friction_used)

    def end(self) -> None:
        """Finish the tick."""
        r, step = self.result, self._step
        with np.errstate(divide="ignore", invalid="ignore"):
            np.divide(r.cop, self._normal[:, None], out=r.cop)
        for name in ("n_vertices", "mode", "clamped", "sliding"):
            getattr(r, name)[:] = getattr(step, name)

    def reset(self) -> None:
        """Forget the last tick."""
        self.result.clear()

    def state(self) -> ContactResult:
        """Return a copy of the last tick."""
        return ContactResult(**{name: array.copy() for name, array in self.result.arrays().items()})

    def set_state(self, state: ContactResult) -> None:
        """Go back to what :meth:`state` returned; the counters are those of the contact model."""
        self.result.take(state.arrays() | {"counters": self.result.counters})
