"""One-step constraint selection (moraud2008 section IV): a bounded number of solves, and one in nearly all steps.

The present contact modes are solved for, every vertex is judged on its own, and the admissible set nearest to that
perfect vector becomes the mode of the step, which is solved for in turn. A touch-down can swing further vertices into
the ground within the same step: up to ``resolves`` such corrections are made. With one of them a tumbling box
penetrates 0.8 mm at impacts, with three 0.01 mm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from bipedsim.contact.base import ContactResult, Projection, padded_vertices
from bipedsim.contact.modes import clamped_range, mode_masks, n_modes
from bipedsim.contact.rules import COP_TOLERANCE, choose_mode, nearest_feature
from bipedsim.contact.selection import solve_impulses
from bipedsim.params import param
from bipedsim.sole import Sole


@dataclass(frozen=True)
class OneStepParams:
    """Parameters of one-step constraint selection."""

    threshold: float = param(
        1e-3, "geometric threshold d: a vertex this near to the ground may be clamped", unit="m", low=0.0, high=0.05
    )
    gamma: float = param(0.2, "share of a position error of the contact that one step removes", low=1e-6, high=1.0)
    resolves: int = param(3, "solves at most after the first one, in steps in which a mode changes", low=0, high=20)


@njit(cache=True)
def _begin(position, offsets, n_vertices, masks, mode, sliding, anchors, anchored, heights, errors):
    """Fill heights and drift of all vertices; a vertex that came to rest in the last step is anchored where it is."""
    for k in range(mode.shape[0]):
        for i in range(n_vertices[k]):
            heights[k, i] = position[k, 2] + offsets[k, i, 2]
            for a in range(2):
                xy = position[k, a] + offsets[k, i, a]
                if not (masks[k, mode[k], i] and not sliding[k]):
                    errors[k, i, a] = 0.0
                    continue
                if not anchored[k, i]:
                    anchors[k, i, a] = xy
                errors[k, i, a] = xy - anchors[k, i, a]
            anchored[k, i] = masks[k, mode[k], i] and not sliding[k]


@njit(cache=True)
def _choose(modes, n_vertices, n_modes_of, masks, vertices, heights, offsets, w_next, impulse, cops, h, band, chosen):
    """Fill the chosen mode of each foot and return whether any differs from the one that was solved for."""
    widest = vertices.shape[1]
    speeds = np.zeros(widest)
    perfect = np.zeros(widest, dtype=np.int64)
    cost = np.zeros(widest)
    weights = np.zeros(4)
    changed = False
    for k in range(modes.shape[0]):
        n = n_vertices[k]
        weights[0] = 1.0
        for j in range(1, 4):
            # With one vertex nothing competes within the foot, but the order of the rules must hold.
            weights[j] = weights[j - 1] / max(n, 2)
        w = w_next[6 * k : 6 * k + 6]
        for i in range(n):
            speeds[i] = w[2] + w[3] * offsets[k, i, 1] - w[4] * offsets[k, i, 0]
        chosen[k] = choose_mode(
            modes[k], n, masks[k, : n_modes_of[k]], vertices[k], heights[k], speeds, impulse[6 * k + 2],
            cops[k, 0], cops[k, 1], h, band, weights, perfect, cost,
        )  # fmt: skip
        changed = changed or chosen[k] != modes[k]
    return changed


@njit(cache=True)
def _finish(
    h, R, vertices, n_vertices, mu_static, mu_dynamic, masks, mode, sliding, new_mode, new_sliding, impulse, cops,
    anchored, out_impulse, wrench, cop, margin, used, clamped,
):  # fmt: skip
    """Publish the step and return (state changes, whether a rule is still violated)."""
    changes = 0
    violated = False
    for k in range(mode.shape[0]):
        n = n_vertices[k]
        if new_mode[k] != mode[k] or new_sliding[k] != sliding[k]:
            changes += 1
        mode[k] = new_mode[k]
        sliding[k] = new_sliding[k]
        clamped[k] = 0
        for i in range(n):
            if masks[k, mode[k], i]:
                if i < 63:
                    clamped[k] |= 1 << i
            else:
                anchored[k, i] = False
        f = impulse[6 * k : 6 * k + 6]
        for a in range(6):
            out_impulse[k, a] = f[a]
        for a in range(3):
            wrench[k, a] = (R[k, 0, a] * f[0] + R[k, 1, a] * f[1] + R[k, 2, a] * f[2]) / h
            wrench[k, 3 + a] = (R[k, 0, a] * f[3] + R[k, 1, a] * f[4] + R[k, 2, a] * f[5]) / h
        if f[2] <= 0.0:
            violated = violated or f[2] < 0.0
            cop[k, :] = np.nan
            margin[k] = np.nan
            used[k] = np.nan
            continue
        cop[k, 0] = cops[k, 0]
        cop[k, 1] = cops[k, 1]
        if n == 1:
            margin[k] = 0.0
        else:
            margin[k] = -nearest_feature(vertices[k], n, 0, n, cop[k, 0], cop[k, 1])[2]
        first, count = clamped_range(mode[k], n)
        violated = violated or nearest_feature(vertices[k], n, first, count, cop[k, 0], cop[k, 1])[2] > COP_TOLERANCE
        mu = mu_dynamic[k] if sliding[k] else mu_static[k]
        used[k] = np.sqrt(f[0] * f[0] + f[1] * f[1]) / (mu * f[2]) if mu > 0.0 else 0.0
    return changes, violated


@njit(cache=True)
def _one_step(
    G, w_free, R, offsets, position, vertices, n_vertices, n_modes_of, masks, mu_static, mu_dynamic, h, gamma, band,
    resolves, mode, sliding, slip, anchors, anchored, out_impulse, wrench, cop, margin, used, clamped,
):  # fmt: skip
    feet = mode.shape[0]
    widest = vertices.shape[1]
    heights = np.zeros((feet, widest))
    errors = np.zeros((feet, widest, 2))
    impulse = np.zeros(6 * feet)
    w_next = np.zeros(6 * feet)
    cops = np.zeros((feet, 2))
    radius = np.zeros(feet)
    new_sliding = np.zeros(feet, dtype=np.bool_)
    trial = mode.copy()
    chosen = mode.copy()
    _begin(position, offsets, n_vertices, masks, mode, sliding, anchors, anchored, heights, errors)
    for attempt in range(resolves + 1):
        solve_impulses(
            G, w_free, R, offsets, heights, errors, vertices, n_vertices, trial, sliding, mu_static, mu_dynamic,
            h, gamma, new_sliding, slip, radius, impulse, w_next, cops,
        )  # fmt: skip
        if attempt == resolves:
            break
        if not _choose(
            trial, n_vertices, n_modes_of, masks, vertices, heights, offsets, w_next, impulse, cops, h, band, chosen
        ):
            break
        trial[:] = chosen
    return _finish(
        h, R, vertices, n_vertices, mu_static, mu_dynamic, masks, mode, sliding, trial, new_sliding, impulse, cops,
        anchored, out_impulse, wrench, cop, margin, used, clamped,
    )  # fmt: skip


class OneStep:
    """One-step constraint selection: fixed cost, feet that stick, CoP exact.

    Args:
        soles: The feet, K of them.
        params: See :class:`OneStepParams`.
        physics_dt: Step h [s].
    """

    Params = OneStepParams

    def __init__(self, soles: tuple[Sole, ...], params: OneStepParams, physics_dt: float) -> None:
        self.params = params
        self._h = physics_dt
        self._vertices, self._n_vertices = padded_vertices(soles)
        feet, widest = self._vertices.shape[:2]
        self._n_modes = np.array([n_modes(int(n)) for n in self._n_vertices], dtype=np.int64)
        self._masks = np.zeros((feet, int(self._n_modes.max(initial=1)), widest), dtype=np.int64)
        for k, n in enumerate(self._n_vertices):
            self._masks[k, : self._n_modes[k], :n] = mode_masks(int(n))
        self._mu_static = np.array([sole.friction_static for sole in soles])
        self._mu_dynamic = np.array([sole.friction_dynamic for sole in soles])
        self._slip = np.zeros((feet, 3))
        self._anchors = np.zeros((feet, widest, 2))
        self._anchored = np.zeros((feet, widest), dtype=np.bool_)
        self._first_step = True
        self.result = ContactResult.empty(feet)

    def reset(self) -> None:
        """Forget contacts, anchors and counters: every foot is in the air until it touches."""
        self._slip[:] = 0.0
        self._anchors[:] = 0.0
        self._anchored[:] = False
        self._first_step = True
        empty = ContactResult.empty(len(self._n_vertices))
        for name in _RESULT_ARRAYS:
            getattr(self.result, name)[:] = getattr(empty, name)
        self.result.state_changes = 0
        self.result.unresolved = 0

    def solve(self, projection: Projection) -> ContactResult:
        """Return the contact impulses of one step; the result is overwritten by the next call."""
        p = projection
        r = self.result
        # A robot that starts on the ground has no present modes to begin from: touching down takes the first solve.
        resolves = self.params.resolves + (1 if self._first_step else 0)
        changes, violated = _one_step(
            p.G, p.w_free, p.rotation, p.offsets, p.position,
            self._vertices, self._n_vertices, self._n_modes, self._masks,
            self._mu_static, self._mu_dynamic, self._h, self.params.gamma, self.params.threshold, resolves,
            r.mode, r.sliding, self._slip, self._anchors, self._anchored,
            r.impulse, r.wrench, r.cop, r.cop_margin, r.friction_used, r.clamped,
        )  # fmt: skip
        # The contacts that a robot starts with are no change of state.
        r.state_changes += 0 if self._first_step else changes
        self._first_step = False
        r.unresolved += violated
        return r

    def state(self) -> dict[str, Any]:
        """Return a copy of everything that the next step depends on, and of the last result."""
        own = {"slip": self._slip, "anchors": self._anchors, "anchored": self._anchored}
        arrays = own | {name: getattr(self.result, name) for name in _RESULT_ARRAYS}
        counters = {
            "first_step": self._first_step,
            "state_changes": self.result.state_changes,
            "unresolved": self.result.unresolved,
        }
        return {name: value.copy() for name, value in arrays.items()} | counters

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned."""
        self._slip[:] = state["slip"]
        self._anchors[:] = state["anchors"]
        self._anchored[:] = state["anchored"]
        self._first_step = state["first_step"]
        for name in _RESULT_ARRAYS:
            getattr(self.result, name)[:] = state[name]
        self.result.state_changes = state["state_changes"]
        self.result.unresolved = state["unresolved"]


_RESULT_ARRAYS = ("impulse", "wrench", "cop", "cop_margin", "friction_used", "mode", "clamped", "sliding")
