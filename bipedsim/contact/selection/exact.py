"""Exact constraint selection (moraud2008 section II): a search for a set of modes without violations."""

from __future__ import annotations

from dataclasses import dataclass

from bipedsim.config import param
from bipedsim.contact.selection.arrays import Selection, Settings, begin
from bipedsim.contact.selection.fallback import fall_back
from bipedsim.contact.selection.model import SelectionModel
from bipedsim.contact.selection.search import search
from bipedsim.contact.selection.write_result import write_result
from bipedsim.dynamics import Projection
from bipedsim.numerics import kernel


@dataclass(frozen=True)
class ExactParams:
    """Parameters of exact constraint selection."""

    threshold: float = param(
        1e-3, "geometric threshold d: a vertex this near to the ground may be clamped", unit="m", low=1e-6, high=0.05
    )
    gamma: float = param(0.2, "share of a position error of the contact that one step removes", low=1e-6, high=1.0)
    tolerance: float = param(
        1e-9, "a CoP this far outside or a vertex this far below violates nothing", unit="m", low=1e-12, high=1e-3
    )
    candidates: int = param(40, "maximum number of sets of modes per step, before single vertices", low=1, high=10000)


@kernel
def exact(p: Projection, s: Selection):
    """Advance one step with the first set of modes without violations, or else with impulses of single vertices."""
    begin(p, s)
    resolved = search(p, s) or fall_back(p, s)
    for k in range(s.trial.mode.shape[0]):
        s.state.present[k] = s.trial.mode[k]
    write_result(p, s, not resolved)


class Exact(SelectionModel):
    """Select constraints exactly, by a search over the modes of all feet; nearly all steps need one solve.

    Args:
        projection: The feet and the ground under them; see :class:`SelectionModel`.
        params: See :class:`ExactParams`.
        physics_dt: Step h [s].

    Attributes:
        params: Parameters of the model.
    """

    Params = ExactParams
    kernel = exact

    def __init__(self, projection: Projection, params: ExactParams, physics_dt: float) -> None:
        self.params = params
        shared = physics_dt, params.gamma, params.threshold, params.tolerance
        super().__init__(projection, Settings(*shared, candidates=params.candidates))
