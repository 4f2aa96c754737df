"""Base class of the models of constraint selection: arrays and saved state."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from bipedsim.contact.base import CompiledModel, ContactResult
from bipedsim.contact.selection.arrays import Selection, Settings
from bipedsim.dynamics import Projection


class SelectionModel(CompiledModel):
    """Base class of the models of constraint selection, which accept each other's state.

    Args:
        projection: The projection that every solve gets, refilled.
        settings: Parameters of the jitted function.
    """

    rigid = True
    arrays: Selection

    def __init__(self, projection: Projection, settings: Settings) -> None:
        feet, widest = projection.vertices.shape[:2]
        super().__init__(projection, ContactResult.empty(feet))
        self.arrays = Selection.of_feet(feet, widest, self.result, settings, projection.budget)

    def resume(self) -> None:
        """Continue from the modes of ``result``, with new anchors."""
        super().resume()
        state = self.arrays.state
        state.present[:], state.slip[:] = self.result.mode, 0.0

    @property
    def pointwise(self) -> int:
        """Number of steps since reset that used impulses of single vertices, because no set of modes was valid."""
        return int(self.arrays.state.pointwise[0])

    def _memory(self) -> dict[str, NDArray[Any]]:
        return self.arrays.state._asdict()
