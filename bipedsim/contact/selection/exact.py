"""Exact constraint selection (moraud2008 section II): search until a set of modes violates nothing.

Every candidate re-solves the coupled dynamics of all feet. New candidates correct what the best one so far violates:
first all feet at once by the rule of one-step selection, then one foot at a time, then to the neighbours of its mode
(none - vertex - edge - face), through which every combination can be reached. The modes of the last step come first.
"""

from __future__ import annotations

from dataclasses import dataclass

from bipedsim.config import param
from bipedsim.contact.modes import clamped_range
from bipedsim.contact.selection.arrays import Selection, begin
from bipedsim.contact.selection.candidate import solve
from bipedsim.contact.selection.fallback import take_least_evil
from bipedsim.contact.selection.model import SelectionModel
from bipedsim.contact.selection.rules import choose, judge
from bipedsim.contact.selection.write_result import publish
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
    candidates: int = param(40, "sets of modes that one step may try; the best one is kept", low=1, high=10000)


@kernel
def neighbour(mode, n, j) -> int:
    """Return the ``j``-th mode next to ``mode`` in the order none - vertex - edge - face, or -1 if there are fewer."""
    if mode == 0:
        return 1 + j if j < n else -1
    first, count = clamped_range(mode, n)
    edges = n if n > 2 else n - 1
    if count == 1:
        if j == 0:
            return 0
        if n == 2:
            return 3 if j == 1 else -1
        if j < 3 and n > 2:
            return 1 + n + (first + n - 2 + j) % n
        return -1
    if count == 2 and mode <= n + edges:
        if j < 2:
            return 1 + (first + j) % n
        return 2 * n + 1 if j == 2 and n > 2 else -1
    return 1 + n + j if j < n else -1


@kernel
def _better(s: Selection, a, b) -> bool:
    """Whether candidate ``a`` ranks before ``b``: by rule, then by the extent of what is violated, then by freedom."""
    for r in range(6):
        if s.scores[a, r] != s.scores[b, r]:
            return s.scores[a, r] < s.scores[b, r]
    return a < b


@kernel
def _is_new(s: Selection, count) -> bool:
    for c in range(count):
        same = True
        for k in range(s.trial.shape[0]):
            same = same and s.tested[c, k] == s.trial[k]
        if same:
            return False
    return True


@kernel
def _correct(p: Projection, s: Selection, source, count, choices_only) -> bool:
    """Fill ``s.trial`` with the next correction of candidate ``source`` that is new; return False if none is left."""
    feet = s.trial.shape[0]
    n_choices = feet + 1
    # The longest list of neighbours has N entries.
    widest = max(s.perfect.shape[0], 3)
    while True:
        step = s.cursor[source]
        if choices_only and step >= n_choices:
            return False
        s.cursor[source] += 1
        for k in range(feet):
            s.trial[k] = s.tested[source, k]
        if step == 0:
            for k in range(feet):
                s.trial[k] = s.choices[source, k]
        elif step < n_choices:
            s.trial[step - 1] = s.choices[source, step - 1]
        else:
            foot = (step - n_choices) // widest
            if foot >= feet:
                return False
            mode = neighbour(s.trial[foot], p.n_vertices[foot], (step - n_choices) % widest)
            if mode < 0:
                s.cursor[source] = n_choices + (foot + 1) * widest
                continue
            s.trial[foot] = mode
        if _is_new(s, count):
            return True


@kernel
def exact(p: Projection, s: Selection):
    """Take one step with the first set of modes that violates nothing, or the best of those that were tried."""
    begin(p, s)
    feet = s.mode.shape[0]
    for k in range(feet):
        s.trial[k] = s.present[k]
    count = 0
    best = 0
    searching = True
    resolved = False
    while True:
        solve(p, s)
        if not searching:
            break
        resolved = judge(p, s)
        if resolved:
            break
        choose(p, s)
        _remember(p, s, count)
        if count == 0 or _better(s, count, best):
            best = count
        count += 1
        if count == s.candidates or not _next_candidate(p, s, count):
            # The best one is solved for once more, to be published.
            searching = False
            for k in range(feet):
                s.trial[k] = s.tested[best, k]
    if not resolved:
        take_least_evil(p, s)
    for k in range(feet):
        s.present[k] = s.trial[k]
    publish(p, s, not resolved)


@kernel
def _remember(p: Projection, s: Selection, count):
    """Put the candidate that was solved into the queue as number ``count``."""
    clamped = 0
    for k in range(s.trial.shape[0]):
        s.tested[count, k] = s.trial[k]
        s.choices[count, k] = s.chosen[k]
        clamped += clamped_range(s.trial[k], p.n_vertices[k])[1]
    for r in range(4):
        s.scores[count, r] = s.violations[r]
    s.scores[count, 4] = s.size[0]
    s.scores[count, 5] = clamped
    s.cursor[count] = 0
    s.open[count] = True


@kernel
def _next_candidate(p: Projection, s: Selection, count) -> bool:
    """Fill ``s.trial`` with a new correction; return False if there is none.

    What the candidates themselves call for comes first, the newest one's before all: a landing foot goes from none
    over a vertex to its edge, and each of these looks worse than none until the last. Then the neighbours, the best
    candidate's first.
    """
    for i in range(count):
        if _correct(p, s, count - 1 - i, count, True):
            return True
    while True:
        top = -1
        for c in range(count):
            if s.open[c] and (top < 0 or _better(s, c, top)):
                top = c
        if top < 0:
            return False
        if _correct(p, s, top, count, False):
            return True
        s.open[top] = False


class Exact(SelectionModel):
    """Exact constraint selection: a search over the modes of all feet, for one solve in nearly all steps.

    Args:
        projection: The feet and what is under them; see :class:`SelectionModel`.
        params: See :class:`ExactParams`.
        physics_dt: Step h [s].
    """

    Params = ExactParams
    kernel = exact

    def __init__(self, projection: Projection, params: ExactParams, physics_dt: float) -> None:
        super().__init__(projection, params, physics_dt, candidates=params.candidates)
