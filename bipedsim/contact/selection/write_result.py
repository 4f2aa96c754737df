"""End of a step of constraint selection: the candidate becomes the state, and impulses become wrenches."""

from __future__ import annotations

from bipedsim.contact.modes import clamped_range
from bipedsim.contact.selection.arrays import Selection
from bipedsim.contact.selection.candidate import multipliers, spread
from bipedsim.contact.selection.fallback import impact_of_vertices
from bipedsim.contact.write_result import count_step, to_sole, write_mode, write_pressure
from bipedsim.dynamics import Projection
from bipedsim.numerics import kernel


@kernel
def _split_impact(p: Projection, s: Selection) -> bool:
    """Fill ``s.trial.impact`` with the impulse that changes the velocities before the step to the target ones.

    The rest of the impulse balances the forces that act over the step; the impulse is linear in both. A landing takes
    two steps: the first closes the gap, the second stops the velocity with which it was closed.

    Returns:
        Whether the impact was computed.
    """
    landed_before = s.state.landed[0]
    gained = False
    for k in range(s.trial.mode.shape[0]):
        n = p.n_vertices[k]
        first, count = clamped_range(s.trial.mode[k], n)
        for j in range(count):
            gained = gained or not _is_clamped(s.result.mode[k], n, (first + j) % n)
    s.state.landed[0] = gained
    if not (gained or landed_before) or p.parted[0]:
        s.trial.impact[:, :] = 0.0
        return True
    if s.trial.pointwise[0]:
        return impact_of_vertices(p, s)
    multipliers(p, s, p.w_before)
    spread(s.scratch, s.trial.impact)
    return True


@kernel
def _is_clamped(mode, n, i) -> bool:
    first, count = clamped_range(mode, n)
    return (i - first) % n < count


@kernel
def _bits(mode, n) -> int:
    """Return the first 63 clamped vertices as bits."""
    first, count = clamped_range(mode, n)
    bits = 0
    for j in range(count):
        i = (first + j) % n
        if i < 63:
            bits |= 1 << i
    return bits


@kernel
def write_result(p: Projection, s: Selection, violated: bool):
    """Store the last candidate as the state and write the result."""
    split = _split_impact(p, s)
    trial, r = s.trial, s.result
    changes = 0
    for k in range(trial.mode.shape[0]):
        changes += write_mode(k, p, r, trial.mode[k], trial.sliding[k], _bits(trial.mode[k], p.n_vertices[k]))
        for a in range(3):
            s.state.slip[k, a] = trial.slip[k, a]
        for a in range(6):
            r.impulse[k, a] = trial.impulse[k, a]
        to_sole(p.rotation[k], trial.impulse[k], r.wrench[k])
        for a in range(6):
            r.wrench[k, a] /= s.settings.h
        to_sole(p.rotation[k], trial.impact[k], r.impact[k])
        write_pressure(k, p, r, trial.cop[k, 0], trial.cop[k, 1])
    count_step(r, changes, violated or not split)
