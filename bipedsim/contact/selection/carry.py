"""Transfer of contact modes to another polygon, for a foot that slides over a border."""

from __future__ import annotations

import numpy as np

from bipedsim.contact.modes import clamped_range
from bipedsim.ground import CARRY
from bipedsim.numerics import kernel, to_edge


@kernel
def carry_mode(mode, old, n_old, new, n_new):
    """Return the mode on the polygon ``new`` that continues ``mode`` on ``old``.

    If all vertices were clamped, all are clamped. An edge or a vertex continues as the one within ``CARRY``. If there
    is none, the foot is released and the contact model selects its mode anew.

    Args:
        mode: Contact mode (contact/modes.py).
        old, new: (>= n_old, 2), (>= n_new, 2) polygons in the sole frame [m].
        n_old, n_new: Numbers of vertices; 0 means no support.
    """
    first, count = clamped_range(mode, n_old)
    if count == 0 or n_new == 0:
        return 0
    if count == n_old:
        return n_new if n_new == 1 else 3 if n_new == 2 else 2 * n_new + 1
    best = 0
    closest = CARRY
    if count == 1:
        for j in range(n_new):
            d = np.hypot(new[j, 0] - old[first, 0], new[j, 1] - old[first, 1])
            if d <= closest:
                closest = d
                best = 1 + j
        return best
    second = (first + 1) % n_old
    for j in range(n_new if n_new > 2 else n_new - 1):
        k = (j + 1) % n_new
        # Both ends of an edge that was cut, or grew back, are on the line of the other edge.
        cut = max(_off_edge(new[j], old, n_old, first), _off_edge(new[k], old, n_old, first))
        grown = max(_off_edge(old[first], new, n_new, j), _off_edge(old[second], new, n_new, j))
        d = min(cut, grown)
        if d <= closest:
            closest = d
            best = n_new + 1 + j
    return best


@kernel
def _off_edge(point, polygon, n, i):
    return to_edge(polygon, n, i, point[0], point[1])[2]
