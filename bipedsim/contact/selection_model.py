"""The class side of constraint selection: state in and out, one compiled function inside."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bipedsim.compiled import box
from bipedsim.contact.base import ContactResult, Projection
from bipedsim.contact.selection import Selection

_STATE = ("present", "slip", "anchors", "anchored", "landed")
_RESULT = (
    "impulse",
    "wrench",
    "impact",
    "cop",
    "cop_margin",
    "friction_used",
    "n_vertices",
    "mode",
    "clamped",
    "sliding",
    "counters",
)


class Step(NamedTuple):
    """What one solve reads and writes."""

    projection: Projection
    selection: Selection


class SelectionModel:
    """Base of the models of constraint selection.

    Args:
        selection: Parameters and arrays.
        projection: The projection that every solve gets, refilled.
        result: What ``selection`` publishes into.

    Attributes:
        selection: For whoever fuses the solve with the dynamics into one compiled step.
        result: What the ground did over the last step.
    """

    def __init__(self, selection: Selection, projection: Projection, result: ContactResult) -> None:
        self.selection = selection
        self.result = result
        self._projection = projection
        self._step = box(Step(projection, selection))

    def reset(self) -> None:
        """Forget contacts, anchors and counters: every foot is in the air until it touches."""
        for name in _STATE:
            getattr(self.selection, name)[...] = 0
        empty = ContactResult.empty(len(self.result.mode))
        for name in _RESULT:
            getattr(self.result, name)[...] = getattr(empty, name)

    def solve(self, projection: Projection) -> ContactResult:
        """Return the contact impulses of one step; the result is overwritten by the next call."""
        if projection is not self._projection:
            for mine, given in zip(self._projection, projection, strict=True):
                np.copyto(mine, given)
        self._select(self._step)
        return self.result

    def _select(self, step: Any) -> None:
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """Return a copy of everything that the next step depends on, and of the last result."""
        state = {name: getattr(self.selection, name).copy() for name in _STATE}
        return state | {name: getattr(self.result, name).copy() for name in _RESULT}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned; the models of constraint selection understand each other's."""
        for name in _STATE:
            getattr(self.selection, name)[...] = state[name]
        for name in _RESULT:
            getattr(self.result, name)[...] = state[name]
