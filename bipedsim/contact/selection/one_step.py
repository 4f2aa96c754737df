"""One-step constraint selection (moraud2008 section IV): a bounded number of solves, and one in nearly all steps.

The step is first solved in the present contact modes. Every vertex is then judged on its own, which gives the perfect
vector. The admissible set nearest to it becomes the mode of the step and is solved in turn. A touchdown can move
further vertices into the ground within the same step, so up to ``resolves`` such corrections are made. If they do not
settle and ``candidates`` are allowed, a search follows. The last resort are impulses of single vertices.
"""

from __future__ import annotations

from dataclasses import dataclass

from bipedsim.config import param
from bipedsim.contact.base import STEPS
from bipedsim.contact.selection.arrays import PUBLISHED, REVISED, THRESHOLDS, Selection, Settings, begin
from bipedsim.contact.selection.candidate import is_valid_solution, solve
from bipedsim.contact.selection.fallback import fall_back
from bipedsim.contact.selection.model import SelectionModel
from bipedsim.contact.selection.rules import choose
from bipedsim.contact.selection.search import search
from bipedsim.contact.selection.write_result import write_result
from bipedsim.dynamics import Projection
from bipedsim.numerics import kernel

_RULES = {"revised": REVISED, "published": PUBLISHED, "thresholds": THRESHOLDS}


@dataclass(frozen=True)
class OneStepParams:
    """Parameters of one-step constraint selection."""

    threshold: float = param(
        1e-3, "geometric threshold d: a vertex this near to the ground may be clamped", unit="m", low=1e-6, high=0.05
    )
    gamma: float = param(0.2, "share of a position error of the contact that one step removes", low=1e-6, high=1.0)
    resolves: int = param(
        3, "maximum number of solves after the first one, in steps with a change of mode", low=0, high=20
    )
    tolerance: float = param(
        1e-9, "a CoP this far outside or a vertex this far below is on the edge", unit="m", low=1e-12, high=1e-3
    )
    candidates: int = param(
        0,
        "maximum number of sets of modes in a step whose resolves did not settle, before single vertices",
        low=0,
        high=10000,
    )
    rules: str = param(
        "revised",
        "revised: docs/contact_models.md; published: moraud2008 as printed; thresholds: the same without its CoP rule",
        choices=tuple(_RULES),
    )


@kernel
def one_step(p: Projection, s: Selection):
    """Advance one step: solve, choose, and solve again until the choice is stable or ``resolves`` is used up."""
    begin(p, s)
    settings, trial, state = s.settings, s.trial, s.state
    feet = trial.mode.shape[0]
    for k in range(feet):
        trial.mode[k] = state.present[k]
    # A robot that starts on the ground has no present modes, so its first solve only detects the touchdown.
    resolves = settings.resolves + (1 if s.result.counters[STEPS] == 0 and settings.rules == REVISED else 0)
    changed = True
    for attempt in range(resolves + 1):
        if attempt > 0:
            for k in range(feet):
                trial.mode[k] = trial.chosen[k]
        solve(p, s)
        changed = choose(p, s)
        if not changed:
            break
    unresolved = changed or not trial.converged[0] or not is_valid_solution(p, s)
    if unresolved and settings.candidates > 0:
        unresolved = not search(p, s)
    if unresolved and settings.rules == REVISED:
        unresolved = not fall_back(p, s)
    for k in range(feet):
        state.present[k] = trial.chosen[k] if resolves == 0 else trial.mode[k]
    write_result(p, s, unresolved)


class OneStep(SelectionModel):
    """Select constraints in one step: bounded cost, sticking feet and an exact CoP.

    Args:
        projection: The feet and the ground under them; see :class:`SelectionModel`.
        params: See :class:`OneStepParams`. The published rules apply their choice in the next step, without a further
            solve.
        physics_dt: Step h [s].

    Attributes:
        params: Parameters of the model.
    """

    Params = OneStepParams
    kernel = one_step

    def __init__(self, projection: Projection, params: OneStepParams, physics_dt: float) -> None:
        resolves = params.resolves if params.rules == "revised" else 0
        self.params = params
        shared = physics_dt, params.gamma, params.threshold, params.tolerance
        # Rules whose choice applies in the next step need no search in this one.
        candidates = params.candidates if resolves > 0 else 0
        settings = Settings(*shared, rules=_RULES[params.rules], resolves=resolves, candidates=candidates)
        super().__init__(projection, settings)
