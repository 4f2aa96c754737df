"""The class side of constraint selection: arrays, and what the next step depends on."""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import NDArray

from bipedsim.contact.base import CompiledModel, ContactResult
from bipedsim.contact.selection.arrays import REVISED, Selection
from bipedsim.dynamics import Projection

_STATE = ("present", "slip", "anchors", "anchored", "landed")


class SelectionParams(Protocol):
    """What all models of constraint selection ask for; see their parameters."""

    @property
    def gamma(self) -> float: ...
    @property
    def threshold(self) -> float: ...
    @property
    def tolerance(self) -> float: ...


class SelectionModel(CompiledModel):
    """Base of the models of constraint selection.

    Args:
        projection: The projection that every solve gets, refilled.
        params: Parameters of the model.
        physics_dt: Step h [s].
        rules, resolves, candidates: As in :class:`Selection`.

    Attributes:
        params: Parameters of the model.
    """

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
        feet, widest = projection.vertices.shape[:2]
        super().__init__(projection, ContactResult.empty(feet))
        self.params = params
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

    def _memory(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self.arrays, name) for name in _STATE}
