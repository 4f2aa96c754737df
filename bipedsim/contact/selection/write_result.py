"""The end of a step of constraint selection: the candidate becomes the state, impulses become wrenches."""

from __future__ import annotations

import numpy as np

from bipedsim.contact.modes import clamped_range
from bipedsim.contact.selection.arrays import Selection
from bipedsim.contact.selection.candidate import distance_outside, multipliers, spread
from bipedsim.dynamics import Projection
from bipedsim.numerics import inlined_kernel, kernel


@inlined_kernel
def _split_impact(p: Projection, s: Selection):
    """Fill ``s.trial_impact``: the impulse that takes the velocities before the step to the wanted ones.

    The rest of the impulse, which is linear in the two, answers the forces that act over the step. A landing takes two
    steps: the first closes the gap, the second stops what was left of the velocity for that.
    """
    landed_before = s.landed[0]
    gained = False
    for k in range(s.trial.shape[0]):
        n = p.n_vertices[k]
        first, count = clamped_range(s.trial[k], n)
        for j in range(count):
            gained = gained or not _is_clamped(s.mode[k], n, (first + j) % n)
    s.landed[0] = gained
    if not (gained or landed_before):
        s.trial_impact[:, :] = 0.0
        return
    multipliers(p, s, p.w_before)
    spread(s, s.trial_impact)


@kernel
def _is_clamped(mode, n, i) -> bool:
    first, count = clamped_range(mode, n)
    return (i - first) % n < count


@inlined_kernel
def publish(p: Projection, s: Selection, violated: bool):
    """Make the candidate that was solved last the state, and count what changed."""
    _split_impact(p, s)
    changes = 0
    h = s.h
    for k in range(s.mode.shape[0]):
        n = p.n_vertices[k]
        if s.trial[k] != s.mode[k] or s.trial_sliding[k] != s.sliding[k]:
            changes += 1
        s.mode[k] = s.trial[k]
        s.sliding[k] = s.trial_sliding[k]
        for a in range(3):
            s.slip[k, a] = s.trial_slip[k, a]
        first, count = clamped_range(s.mode[k], n)
        bits = 0
        for j in range(count):
            i = (first + j) % n
            if i < 63:
                bits |= 1 << i
        s.clamped[k] = bits
        s.n_vertices[k] = n
        f = s.trial_impulse[k]
        hit = s.trial_impact[k]
        R = p.rotation[k]
        for a in range(3):
            s.impulse[k, a] = f[a]
            s.impulse[k, 3 + a] = f[3 + a]
            s.wrench[k, a] = (R[0, a] * f[0] + R[1, a] * f[1] + R[2, a] * f[2]) / h
            s.wrench[k, 3 + a] = (R[0, a] * f[3] + R[1, a] * f[4] + R[2, a] * f[5]) / h
            s.impact[k, a] = R[0, a] * hit[0] + R[1, a] * hit[1] + R[2, a] * hit[2]
            s.impact[k, 3 + a] = R[0, a] * hit[3] + R[1, a] * hit[4] + R[2, a] * hit[5]
        if f[2] <= 0.0:
            s.cop[k, :] = np.nan
            s.cop_margin[k] = np.nan
            s.friction_used[k] = np.nan
            continue
        x = s.trial_cop[k, 0]
        y = s.trial_cop[k, 1]
        s.cop[k, 0] = x
        s.cop[k, 1] = y
        if count == n:
            s.cop_margin[k] = -s.outside[k]
        else:
            s.cop_margin[k] = -distance_outside(p.vertices[k], p.edges[k], n, 0, n, x, y)
        mu = p.mu_dynamic[k] if s.sliding[k] else p.mu_static[k]
        s.friction_used[k] = np.sqrt(f[0] * f[0] + f[1] * f[1]) / (mu * f[2]) if mu > 0.0 else 0.0
    # The contacts that a robot starts with are no change of state.
    if s.counters[3] > 0:
        s.counters[0] += changes
    s.counters[3] += 1
    if violated:
        s.counters[1] += 1
