"""What a step takes when no set of modes free of violations was found: it pushes and never pulls."""

from __future__ import annotations

from bipedsim.contact.modes import clamped_range, normal_velocity
from bipedsim.contact.selection.arrays import Selection
from bipedsim.contact.selection.candidate import SLIGHT, is_sound, solve
from bipedsim.contact.selection.rules import COP, GEOMETRIC, PULL, UNSOUND, choose, judge, nearest_feature, pulls
from bipedsim.dynamics import Projection
from bipedsim.numerics import kernel


@kernel
def fall_back(p: Projection, s: Selection) -> bool:
    """Replace the candidate that was solved last by one that holds the lowest vertices and only pushes.

    Returns whether that violates nothing, after all.
    """
    if _hold_lowest(p, s):
        solve(p, s)
    # Face to edge to vertex to none, for every foot.
    for _ in range(3 * s.trial.mode.shape[0]):
        if not _release(p, s):
            break
        solve(p, s)
    return judge(p, s)


@kernel
def _hold_lowest(p: Projection, s: Selection) -> bool:
    """Replace a candidate through which vertices fall by ``SLIGHT`` or worse, and return whether it was.

    Every foot that calls for another mode touches with the one vertex that would fall deepest without contact.
    """
    judge(p, s)
    broken = s.trial.violations
    if broken[UNSOUND] + broken[COP] + broken[GEOMETRIC] + broken[PULL] == 0 and s.trial.extent[0] < SLIGHT:
        return False
    choose(p, s)
    for k in range(s.trial.mode.shape[0]):
        if s.trial.chosen[k] == s.trial.mode[k]:
            continue
        s.trial.mode[k] = _lowest(k, p, s)
    return True


@kernel
def _lowest(k, p: Projection, s: Selection) -> int:
    """Return the mode of foot ``k`` with the one vertex that would fall deepest without contact, or that of none."""
    mode = 0
    deepest = 0.0
    for i in range(p.n_vertices[k]):
        height = s.scratch.heights[k, i] + s.settings.h * normal_velocity(p.w_free, k, p.offsets[k, i])
        if height < deepest:
            deepest = height
            mode = 1 + i
    return mode


@kernel
def _release(p: Projection, s: Selection) -> bool:
    """Let go in ``s.trial`` what pulls, and all but the vertex or edge that a CoP outside tips over.

    Where neither is so and the equations had no solution, every foot is left with one vertex, and in the end with none.
    Returns whether anything was let go. Every call that does shrinks a set: repeated, it ends in modes that only push,
    which never add energy, though a vertex may fall through the ground.
    """
    released = False
    for k in range(s.trial.mode.shape[0]):
        n = p.n_vertices[k]
        first, count = clamped_range(s.trial.mode[k], n)
        if count == 0:
            continue
        if pulls(k, s.trial):
            s.trial.mode[k] = 0
            released = True
        elif s.trial.outside[k] > s.settings.tolerance:
            keep, keep_count, _ = nearest_feature(
                p.vertices[k], n, (first, count), s.trial.cop[k, 0], s.trial.cop[k, 1], s.settings.tolerance
            )
            s.trial.mode[k] = 1 + keep if keep_count == 1 else 1 + n + keep
            released = True
    if not released and not is_sound(p, s):
        for k in range(s.trial.mode.shape[0]):
            count = clamped_range(s.trial.mode[k], p.n_vertices[k])[1]
            released = released or count > 0
            s.trial.mode[k] = _lowest(k, p, s) if count > 1 else 0
    return released
