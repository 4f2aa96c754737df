"""Search for a set of modes without violations (moraud2008 section II).

Every candidate re-solves the coupled dynamics of all feet. New candidates correct the violations of the best one so
far. Corrections first change all feet at once by the rule of one-step selection, then one foot at a time. They then
move to the neighbours of a mode (none - vertex - edge - face), through which every combination can be reached. The
modes of the last step come first.

If the first ``ORDINARY`` candidates fail, the next one is the set of vertices in contact under Signorini's and
Coulomb's laws at each vertex. This finds nearly all sets that no rule leads to. If that set has violations too, a valid
set hardly ever exists.
"""

from __future__ import annotations

from bipedsim.contact.modes import clamped_range
from bipedsim.contact.selection.arrays import Queue, Selection
from bipedsim.contact.selection.candidate import solve
from bipedsim.contact.selection.fallback import modes_of_vertices
from bipedsim.contact.selection.rules import choose, judge
from bipedsim.dynamics import Projection
from bipedsim.numerics import kernel

ORDINARY = 4
"""Number of candidates within which nearly all searches end; after it, the impulses of single vertices give a set."""


@kernel
def neighbour(mode, n, j) -> int:
    """Return the ``j``-th neighbour of ``mode`` in the order none - vertex - edge - face, or -1 if there is none."""
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
def _better(queue: Queue, a, b) -> bool:
    """Return whether candidate ``a`` ranks before ``b``: by rule, then by extent of the violations, then by freedom."""
    for r in range(7):
        if queue.scores[a, r] != queue.scores[b, r]:
            return queue.scores[a, r] < queue.scores[b, r]
    return a < b


@kernel
def _is_new(mode, tested, count) -> bool:
    for c in range(count):
        same = True
        for k in range(mode.shape[0]):
            same = same and tested[c, k] == mode[k]
        if same:
            return False
    return True


@kernel
def _correct(p: Projection, s: Selection, source, count, choices_only) -> bool:
    """Fill ``s.trial.mode`` with the next new correction of candidate ``source``; return False if there is none."""
    mode, queue = s.trial.mode, s.queue
    feet = mode.shape[0]
    n_choices = feet + 1
    # The longest list of neighbours has N entries.
    widest = max(s.scratch.perfect.shape[0], 3)
    for _ in range(n_choices + feet * widest + 1):
        step = queue.cursor[source]
        if choices_only and step >= n_choices:
            return False
        queue.cursor[source] += 1
        for k in range(feet):
            mode[k] = queue.tested[source, k]
        if step == 0:
            for k in range(feet):
                mode[k] = queue.choices[source, k]
        elif step < n_choices:
            mode[step - 1] = queue.choices[source, step - 1]
        else:
            foot = (step - n_choices) // widest
            if foot >= feet:
                return False
            other = neighbour(mode[foot], p.n_vertices[foot], (step - n_choices) % widest)
            if other < 0:
                queue.cursor[source] = n_choices + (foot + 1) * widest
                continue
            mode[foot] = other
        if _is_new(mode, queue.tested, count):
            return True
    return False


@kernel
def search(p: Projection, s: Selection) -> bool:
    """Solve candidates until one has no violations; return whether one was found.

    The search leaves half of the budget of the step for the fallback to single vertices.
    """
    reserved = p.budget[0] // 2
    p.budget[0] -= reserved
    resolved: bool = _try_candidates(p, s)
    p.budget[0] = max(p.budget[0], 0) + reserved
    return resolved


@kernel
def _try_candidates(p: Projection, s: Selection) -> bool:
    """Solve candidates as :func:`search` does, with the whole budget."""
    mode, present = s.trial.mode, s.state.present
    feet = mode.shape[0]
    for k in range(feet):
        mode[k] = present[k]
    for index in range(s.settings.candidates):
        if index > 0 and p.budget[0] <= 0:
            return False
        solve(p, s)
        if judge(p, s):
            return True
        choose(p, s)
        _enqueue(p, s, index)
        count = index + 1
        if count == s.settings.candidates:
            return False
        if count == ORDINARY:
            modes_of_vertices(p, s)
            if _is_new(mode, s.queue.tested, count):
                continue
        if not _next_candidate(p, s, count):
            return False
    return False


@kernel
def _enqueue(p: Projection, s: Selection, count):
    """Add the solved candidate to the queue at index ``count``."""
    trial, queue = s.trial, s.queue
    clamped = 0
    for k in range(trial.mode.shape[0]):
        queue.tested[count, k] = trial.mode[k]
        queue.choices[count, k] = trial.chosen[k]
        clamped += clamped_range(trial.mode[k], p.n_vertices[k])[1]
    for r in range(5):
        queue.scores[count, r] = trial.violations[r]
    queue.scores[count, 5] = trial.extent[0]
    queue.scores[count, 6] = clamped
    queue.cursor[count] = 0
    queue.open[count] = True


@kernel
def _next_candidate(p: Projection, s: Selection, count) -> bool:
    """Fill ``s.trial.mode`` with a new correction; return False if there is none.

    The modes that the rules select for a candidate come first, starting with the newest candidate. A landing foot goes
    from none via a vertex to its edge, and each of these scores worse than none until the last. The neighbours follow,
    starting with those of the best candidate.
    """
    for i in range(count):
        if _correct(p, s, count - 1 - i, count, True):
            return True
    for _ in range(count + 1):
        top = -1
        for c in range(count):
            if s.queue.open[c] and (top < 0 or _better(s.queue, c, top)):
                top = c
        if top < 0:
            return False
        if _correct(p, s, top, count, False):
            return True
        s.queue.open[top] = False
    return False
