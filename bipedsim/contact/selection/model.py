"""The class side of constraint selection: arrays, and what the next step depends on."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from bipedsim.contact.base import CompiledModel, ContactResult
from bipedsim.contact.selection.arrays import Selection, Settings
from bipedsim.dynamics import Projection


class SelectionModel(CompiledModel):
    """Base of the models of constraint selection, which understand each other's state.

    Args:
        projection: The projection that every solve gets, refilled.
        settings: What the kernel is told.
    """

    arrays: Selection

    def __init__(self, projection: Projection, settings: Settings) -> None:
        feet, widest = projection.vertices.shape[:2]
        super().__init__(projection, ContactResult.empty(feet))
        self.arrays = Selection.of_feet(feet, widest, self.result, settings, projection.budget)

    @property
    def pointwise(self) -> int:
        """Steps since reset that no set of modes answered, but impulses of single vertices."""
        return int(self.arrays.state.pointwise[0])

    def _memory(self) -> dict[str, NDArray[Any]]:
        return self.arrays.state._asdict()
