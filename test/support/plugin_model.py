"""Contact model in a package of its own: viscous mud under the vertices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from bipedsim.config import param
from bipedsim.contact import VertexContacts, VertexModel, begin_vertices, write_vertices
from bipedsim.numerics import kernel


@dataclass(frozen=True)
class MudParams:
    damping: float = param(2e3, "of the mud under each vertex, in all directions", unit="N.s/m", low=0.0)


class Mud(NamedTuple):
    contacts: VertexContacts
    damping: float


@kernel
def mud(p, m):
    """Slow down the vertices below the ground."""
    s = m.contacts
    begin_vertices(p, s)
    per_speed = s.h * m.damping
    for k in range(p.n_vertices.shape[0]):
        w = p.w_before[6 * k : 6 * k + 6]
        for i in range(p.n_vertices[k]):
            s.touching[k, i] = s.heights[k, i] < 0.0
            if s.touching[k, i]:
                r = p.offsets[k, i]
                s.impulses[k, i, 0] = -per_speed * (w[0] + w[4] * r[2] - w[5] * r[1])
                s.impulses[k, i, 1] = -per_speed * (w[1] + w[5] * r[0] - w[3] * r[2])
                s.impulses[k, i, 2] = max(-per_speed * (w[2] + w[3] * r[1] - w[4] * r[0]), 0.0)
    write_vertices(p, s, 1, False)


class MudModel(VertexModel):
    Params = MudParams
    kernel = mud

    def _arrays_of(self, n_feet: int, widest: int) -> Mud:
        return Mud(self.contacts, self.params.damping)
