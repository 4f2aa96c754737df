"""The class side of constraint selection: state in and out, one compiled function inside."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from bipedsim.contact.base import ContactResult
from bipedsim.contact.selection.arrays import REVISED, Selection
from bipedsim.dynamics import Projection
from bipedsim.numerics import box

_STATE = ("present", "slip", "anchors", "anchored", "landed")


class Step(NamedTuple):
    """What one solve reads and writes."""

    projection: Projection
    selection: Selection


class SelectionParams(Protocol):
    """What all models of constraint selection ask for; see their parameters."""

    @property
    def gamma(self) -> float: ...
    @property
    def threshold(self) -> float: ...
    @property
    def tolerance(self) -> float: ...


class SelectionModel:
    """Base of the models of constraint selection.

    Args:
        projection: The projection that every solve gets, refilled.
        params: Parameters of the model.
        physics_dt: Step h [s].
        rules, resolves, candidates: As in :class:`Selection`.

    Attributes:
        params: Parameters of the model.
        arrays: For whoever fuses the solve with the dynamics into one compiled step.
        result: What the ground did over the last step.
    """

    late = None

    def __init__(
        self,
        projection: Projection,
        params: SelectionParams,
        physics_dt: float,
        *,
        rules: int = REVISED,
        resolves: int = 0,
        candidates: int = 0,
    ) -> None:
        self.params = params
        feet, widest = projection.vertices.shape[:2]
        self.result = ContactResult.empty(feet)
        self.arrays = Selection.of_feet(
            feet,
            widest,
            self.result,
            h=physics_dt,
            gamma=params.gamma,
            threshold=params.threshold,
            tolerance=params.tolerance,
            rules=rules,
            resolves=resolves,
            candidates=candidates,
        )
        self._projection = projection

    @cached_property
    def _step(self) -> Any:
        """For solves outside a fused step, which are rare: boxing takes seconds to compile."""
        return box(Step(self._projection, self.arrays))

    def reset(self) -> None:
        """Forget contacts, anchors and counters: every foot is in the air until it touches."""
        for name in _STATE:
            getattr(self.arrays, name)[...] = 0
        self.result.clear()

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
        state = {name: getattr(self.arrays, name).copy() for name in _STATE}
        return state | {name: array.copy() for name, array in self.result.arrays().items()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned; the models of constraint selection understand each other's."""
        for name in _STATE:
            getattr(self.arrays, name)[...] = state[name]
        self.result.take(state)
