"""Anchors of sticking vertices, and the velocity that corrects the drift of a foot from them.

The models of vertex impulses use them. These models make the velocity of a sticking vertex zero with the Jacobian at
the beginning of the step. This leaves a displacement of second order in the step. Without anchors, feet would creep.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from bipedsim.contact.vertices import VertexContacts, carry_flags, carry_rows
from bipedsim.dynamics import NEW_PLANE, Projection
from bipedsim.numerics import Array, Flags, kernel, zeros_of


class Anchors(NamedTuple):
    """Anchors of K feet with at most N vertices each.

    Attributes:
        place: (K, N, 2) anchor of each vertex, ground axes [m]; part of the state.
        held: (K, N) whether a vertex has an anchor; part of the state.
        old_place, old_held: (N, 2), (N,) work arrays for a polygon that changes.
    """

    place: Annotated[Array, "K", "N", 2]
    held: Annotated[Flags, "K", "N"]
    old_place: Annotated[Array, "N", 2]
    old_held: Annotated[Flags, "N"]

    @classmethod
    def of_feet(cls, n_feet: int, widest: int) -> Anchors:
        """Return the arrays for ``n_feet`` feet with at most ``widest`` vertices each, without any anchor."""
        return zeros_of(cls, {"K": n_feet, "N": widest})


@kernel
def carry_anchors(k, p: Projection, s: VertexContacts, a: Anchors):
    """Transfer the anchors of foot ``k`` to the polygon of this step; a foot on a new plane has no anchors."""
    for i in range(a.old_held.shape[0]):
        a.held[k, i] = a.held[k, i] and p.changed[k] != NEW_PLANE
    carry_flags(a.held[k], s.origin[k], p.n_vertices[k], a.old_held)
    carry_rows(a.place[k], s.origin[k], p.n_vertices[k], a.old_place)


@kernel
def drift_correction(k, p: Projection, s: VertexContacts, a: Anchors, rate):
    """Anchor the sticking vertices of foot ``k`` and return the velocity that corrects their drift.

    The correction is one rigid motion of the whole sole, fitted to the drifts of its vertices. Separate corrections of
    the vertices would set the friction forces of neighbours against each other. A ball foot rolls, so it has no anchor.

    Args:
        k: Index of the foot.
        p, s, a: See :class:`Projection`, :class:`VertexContacts` and :class:`Anchors`.
        rate: Fraction of the drift that is corrected per time [1/s].

    Returns:
        Velocity (x, y) of the sole origin [m/s] and turn about the normal [rad/s], ground axes.
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
