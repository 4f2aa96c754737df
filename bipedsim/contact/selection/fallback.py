"""What a step takes when no set of modes free of violations was found: it pushes and never pulls."""

from __future__ import annotations

from bipedsim.contact.modes import clamped_range
from bipedsim.contact.selection.arrays import Selection
from bipedsim.contact.selection.candidate import solve
from bipedsim.contact.selection.rules import choose, judge, nearest_feature, normal_speed, pulls
from bipedsim.dynamics import Projection
from bipedsim.numerics import kernel

# Falling this far through the ground in a step [m] is the least evil.
SLIGHT = 1e-5


@kernel
def take_least_evil(p: Projection, s: Selection):
    """Replace the candidate that was solved last by one that holds the lowest vertices and only pushes."""
    if _fall_back(p, s):
        solve(p, s)
    # Face to edge to vertex to none, for every foot.
    for _ in range(3 * s.trial.shape[0]):
        if not _release(p, s):
            break
        solve(p, s)


@kernel
def _fall_back(p: Projection, s: Selection) -> bool:
    """Replace a candidate that violates more than ``SLIGHT`` where no valid one was found; return whether it was.

    Every foot that calls for another mode touches with the one vertex that would fall deepest without contact.
    """
    judge(p, s)
    if s.violations[0] + s.violations[1] + s.violations[2] == 0 and s.size[0] < SLIGHT:
        return False
    choose(p, s)
    for k in range(s.trial.shape[0]):
        if s.chosen[k] == s.trial[k]:
            continue
        s.trial[k] = 0
        deepest = 0.0
        for i in range(p.n_vertices[k]):
            height = s.heights[k, i] + s.h * normal_speed(k, i, p, p.w_free)
            if height < deepest:
                deepest = height
                s.trial[k] = 1 + i
    return True


@kernel
def _release(p: Projection, s: Selection) -> bool:
    """Let go in ``s.trial`` what pulls, and all but the vertex or edge that a CoP outside tips over.

    Returns whether anything was let go. Every call that does shrinks a set: repeated, it ends in modes that only push,
    which never add energy, though a vertex may fall through the ground.
    """
    released = False
    for k in range(s.trial.shape[0]):
        n = p.n_vertices[k]
        first, count = clamped_range(s.trial[k], n)
        if count == 0:
            continue
        if pulls(k, s):
            s.trial[k] = 0
            released = True
        elif s.outside[k] > s.tolerance:
            keep, keep_count, _ = nearest_feature(
                p.vertices[k], n, first, count, s.trial_cop[k, 0], s.trial_cop[k, 1], s.tolerance
            )
            s.trial[k] = 1 + keep if keep_count == 1 else 1 + n + keep
            released = True
    return released
