"""A contact model as another distribution would bring it, compiled: viscous mud under the vertices, alone in a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy.typing import NDArray

from bipedsim.config import param
from bipedsim.contact import CompiledModel, ContactResult
from bipedsim.dynamics import Projection
from bipedsim.numerics import kernel


@dataclass(frozen=True)
class MudParams:
    damping: float = param(2e3, "of the mud under each vertex, in all directions", unit="N.s/m", low=0.0)


class Mud(NamedTuple):
    h: float
    damping: float
    impulse: NDArray[Any]
    counters: NDArray[Any]


@kernel
def mud(p, m):
    """Slow down the vertices below the ground."""
    for k in range(m.impulse.shape[0]):
        m.impulse[k, :] = 0.0
        w = p.w_before[6 * k : 6 * k + 6]
        for i in range(p.n_vertices[k]):
            r = p.offsets[k, i]
            if p.position[k, 2] + r[2] < 0.0:
                fx = -m.damping * (w[0] + w[4] * r[2] - w[5] * r[1])
                fy = -m.damping * (w[1] + w[5] * r[0] - w[3] * r[2])
                fz = max(-m.damping * (w[2] + w[3] * r[1] - w[4] * r[0]), 0.0)
                m.impulse[k, 0] += m.h * fx
                m.impulse[k, 1] += m.h * fy
                m.impulse[k, 2] += m.h * fz
                m.impulse[k, 3] += m.h * (r[1] * fz - r[2] * fy)
                m.impulse[k, 4] += m.h * (r[2] * fx - r[0] * fz)
                m.impulse[k, 5] += m.h * (r[0] * fy - r[1] * fx)
    m.counters[3] += 1


class MudModel(CompiledModel):
    Params = MudParams
    kernel = mud

    def __init__(self, projection: Projection, params: MudParams, physics_dt: float) -> None:
        super().__init__(projection, ContactResult.empty(len(projection.position)))
        self.arrays = Mud(physics_dt, params.damping, self.result.impulse, self.result.counters)

    def _memory(self) -> dict[str, NDArray[Any]]:
        return {}
