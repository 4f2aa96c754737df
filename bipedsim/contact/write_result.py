"""Last stage of every contact model: wrenches, CoP and modes from impulses, and the counters of changes."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import fields
from typing import Any

import numpy as np

from bipedsim.contact.base import STATE_CHANGES, STEPS, UNRESOLVED, ContactResult
from bipedsim.contact.modes import distance_outside
from bipedsim.dynamics import Projection
from bipedsim.numerics import Array, assign, kernel, mul_t

_Arrays: Any = namedtuple("_Arrays", [entry.name for entry in fields(ContactResult)])  # type: ignore[misc]


def for_kernels(result: ContactResult) -> ContactResult:
    """Return the arrays of ``result`` as a named tuple, the form that kernels accept. The arrays are shared."""
    written: Any = _Arrays(**result.arrays())
    return written


@kernel
def to_sole(R: Array, wrench: Array, out: Array) -> None:
    """Express ``wrench`` (6,) in the axes that are the columns of R (3, 3); ``out`` (6,) may be ``wrench`` itself."""
    assign(out, mul_t(R, wrench))
    assign(out[3:], mul_t(R, wrench[3:]))


@kernel
def write_mode(k: int, p: Projection, r: ContactResult, mode: int, sliding: bool, clamped: int) -> int:
    """Write mode, friction state and ``clamped`` vertices as bits; return 1 if mode or friction changed, else 0."""
    changed = mode != r.mode[k] or sliding != r.sliding[k]
    r.mode[k] = mode
    r.sliding[k] = sliding
    r.clamped[k] = clamped
    r.n_vertices[k] = p.n_vertices[k]
    return 1 if changed else 0


@kernel
def write_pressure(k: int, p: Projection, r: ContactResult, x: float, y: float) -> None:
    """Write the CoP (x, y), its margin and the used fraction of friction; NaN without normal impulse."""
    f = r.impulse[k]
    if f[2] <= 0.0:
        r.cop[k, :] = np.nan
        r.cop_margin[k] = np.nan
        r.friction_used[k] = np.nan
        return
    n = p.n_vertices[k]
    r.cop[k, 0] = x
    r.cop[k, 1] = y
    r.cop_margin[k] = -distance_outside(p.vertices[k], p.edges[k], n, (0, n), x, y)
    mu = p.mu_dynamic[k] if r.sliding[k] else p.mu_static[k]
    r.friction_used[k] = np.sqrt(f[0] * f[0] + f[1] * f[1]) / (mu * f[2]) if mu > 0.0 else 0.0


@kernel
def count_step(r: ContactResult, changes: int, unresolved: bool) -> None:
    """Count one step and its changes of state; the initial contacts do not count as a change."""
    if r.counters[STEPS] > 0:
        r.counters[STATE_CHANGES] += changes
    r.counters[STEPS] += 1
    if unresolved:
        r.counters[UNRESOLVED] += 1
