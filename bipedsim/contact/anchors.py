"""Where sticking vertices belong, and the motion that takes a foot back there, for models of vertex impulses.

Velocities are zero only with the Jacobian of the beginning of a step; without anchors, feet would creep by its second
order.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from bipedsim.contact.vertices import VertexContacts, carry_flags, carry_rows
from bipedsim.dynamics import NEW_PLANE, Projection
from bipedsim.numerics import Array, Flags, kernel, zeros_of


class Anchors(NamedTuple):
    """Anchors of K feet of N vertices at most.

    Attributes:
        place, held: (K, N, 2) where a sticking vertex belongs, ground axes [m], (K, N) whether it has an anchor: state.
        old_place, old_held: (N, 2), (N,) work, for a polygon that changes.
    """

    place: Annotated[Array, "K", "N", 2]
    held: Annotated[Flags, "K", "N"]
    old_place: Annotated[Array, "N", 2]
    old_held: Annotated[Flags, "N"]

    @classmethod
    def of_feet(cls, n_feet: int, widest: int) -> Anchors:
        """Return the arrays for ``n_feet`` of ``widest`` vertices at most, none of them held."""
        return zeros_of(cls, {"K": n_feet, "N": widest})


@kernel
def carry_anchors(k, p: Projection, s: VertexContacts, a: Anchors):
    """Continue the anchors of foot ``k`` on another polygon; on another plane it has none yet."""
    for i in range(a.old_held.shape[0]):
        a.held[k, i] = a.held[k, i] and p.changed[k] != NEW_PLANE
    carry_flags(a.held[k], s.origin[k], p.n_vertices[k], a.old_held)
    carry_rows(a.place[k], s.origin[k], p.n_vertices[k], a.old_place)


@kernel
def way_back(k, p: Projection, s: VertexContacts, a: Anchors, rate):
    """Anchor the vertices of foot ``k`` that stick; return the velocity (x, y, turn) that takes its drift back.

    A rigid motion of the whole sole, about its origin, fitted to the drifts: vertices that want each their own would
    set friction of one against that of the next. A ball rolls, and has no anchor.

    Args:
        k, p, s, a: Foot, :class:`Projection`, :class:`VertexContacts`, :class:`Anchors`.
        rate: Share of the drift over time [1/s].
    """
    count = 0
    x = y = ex = ey = 0.0
    for i in range(p.n_vertices[k]):
        if p.radius[k] > 0.0 or not (s.touching[k, i] and s.sticking[k, i]):
            a.held[k, i] = False
            continue
        rx = p.offsets[k, i, 0]
        ry = p.offsets[k, i, 1]
        if not a.held[k, i]:
            a.held[k, i] = True
            a.place[k, i, 0] = p.position[k, 0] + rx
            a.place[k, i, 1] = p.position[k, 1] + ry
        count += 1
        x += rx
        y += ry
        ex += p.position[k, 0] + rx - a.place[k, i, 0]
        ey += p.position[k, 1] + ry - a.place[k, i, 1]
    if count == 0:
        return 0.0, 0.0, 0.0
    x /= count
    y /= count
    ex /= count
    ey /= count
    turn = squares = 0.0
    for i in range(p.n_vertices[k]):
        if a.held[k, i]:
            rx = p.offsets[k, i, 0]
            ry = p.offsets[k, i, 1]
            turn += (rx - x) * (p.position[k, 1] + ry - a.place[k, i, 1] - ey)
            turn -= (ry - y) * (p.position[k, 0] + rx - a.place[k, i, 0] - ex)
            squares += (rx - x) ** 2 + (ry - y) ** 2
    wz = -rate * turn / squares if squares > 0.0 else 0.0
    return -rate * ex + wz * y, -rate * ey - wz * x, wz
