"""A contact model of the tests: springs and dampers under the vertices.

It is as simple as possible, and unstable if it is too stiff. It represents any model that a third party registers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bipedsim.config.fields import param
from bipedsim.contact.base import STEPS, ContactResult
from bipedsim.dynamics.projection import Projection


@dataclass(frozen=True)
class PenaltyParams:
    stiffness: float = param(5e4, "of the spring under each vertex", unit="N/m", low=0.0)
    damping: float = param(5e2, "of the damper beside it, in all directions", unit="N.s/m", low=0.0)


class Penalty:
    """Forces of the state before the step (explicit): f_n = k d - c v_n >= 0, and c against sliding, up to mu f_n."""

    Params = PenaltyParams
    late = None

    def __init__(self, projection: Projection, params: PenaltyParams, physics_dt: float) -> None:
        self.params, self.h = params, physics_dt
        self.result = ContactResult.empty(len(projection.position))

    def reset(self) -> None:
        fresh = ContactResult.empty(len(self.result.mode))
        for name in ("impulse", "wrench", "impact", "cop", "mode", "counters"):
            getattr(self.result, name)[...] = getattr(fresh, name)

    def solve(self, projection: Projection) -> ContactResult:
        p, r, h = projection, self.result, self.h
        for k in range(len(r.mode)):
            velocity, spin = p.w_before[6 * k : 6 * k + 3], p.w_before[6 * k + 3 : 6 * k + 6]
            force, torque = np.zeros(3), np.zeros(3)
            for offset in p.offsets[k, : p.n_vertices[k]]:
                depth = -(p.position[k, 2] + offset[2])
                if depth <= 0.0:
                    continue
                speed = velocity + np.cross(spin, offset)
                normal = max(0.0, self.params.stiffness * depth - self.params.damping * speed[2])
                tangent = -self.params.damping * speed[:2]
                pull = float(np.linalg.norm(tangent))
                if pull > p.mu_dynamic[k] * normal:
                    tangent *= p.mu_dynamic[k] * normal / pull
                f = np.array([*tangent, normal])
                force += f
                torque += np.cross(offset, f)
            r.impulse[k] = h * np.concatenate([force, torque])
            rotation = p.rotation[k]
            r.wrench[k] = np.concatenate([rotation.T @ force, rotation.T @ torque])
            fz = r.wrench[k, 2]
            r.cop[k] = (-r.wrench[k, 4] / fz, r.wrench[k, 3] / fz) if fz > 0.0 else np.nan
            r.n_vertices[k] = p.n_vertices[k]
            r.mode[k] = 2 * p.n_vertices[k] + 1 if fz > 0.0 else 0
        r.counters[STEPS] += 1
        return r

    def state(self) -> dict[str, Any]:
        return {"counters": self.result.counters.copy()}

    def set_state(self, state: dict[str, Any]) -> None:
        self.result.counters[...] = state["counters"]
