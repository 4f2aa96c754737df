"""Ground reaction of free bodies on force plates."""

from __future__ import annotations

from typing import Any

import numpy as np

from bipedsim.numerics import entry
from bipedsim.objects.contacts import WORLD
from bipedsim.plates import NO_MOMENT, add_force, plate_at


@entry
def press(boxed: Any, plates: Any) -> None:
    """Add the ground reaction of each body in the last step to the plate, or floor, below it.

    The impulse of a body in contact with the ground only is known, including impacts. It is distributed in proportion
    to the forces at its points in the last sub-step. If the body has left the ground, it acts at the nearest point. For
    a body that also touches other bodies, the forces of the last sub-step are taken for the whole step.

    Args:
        boxed: A :class:`bipedsim.objects.stepping.Stepping`.
        plates: The :class:`bipedsim.plates.Surfaces`.
    """
    a = boxed.arrays
    b, c, h = a.near.bodies, a.near.contacts, a.h
    s = plates.arrays
    for i in range(b.mass.shape[0]):
        alone = True
        pushed = 0.0
        gap = np.inf
        nearest = -1
        for m in range(c.points[0]):
            p = c.pair[m]
            if c.first[p] != i and c.second[p] != i:
                continue
            if c.second[p] != WORLD:
                alone = alone and c.force[m, 2] == 0.0
                continue
            pushed += c.force[m, 2] * h
            if c.gap[m] < gap:
                gap = c.gap[m]
                nearest = m
        if nearest < 0:
            continue
        n = c.axes[c.pair[nearest], 2]
        total = b.contact[i, 0] * n[0] + b.contact[i, 1] * n[1] + b.contact[i, 2] * n[2]
        if alone and not pushed > 0.0:
            if total != 0.0:
                x, y, z = c.where[nearest, 0], c.where[nearest, 1], c.where[nearest, 2]
                j = b.contact[i]
                add_force(s, plate_at(s, x, y, z), (x, y, z), j, NO_MOMENT, 1.0)
            continue
        scale = total / pushed if alone else 1.0
        at_once = min(max(1.0 - 1.0 / scale, 0.0), 1.0) if scale > 1.0 + 1e-9 else 0.0
        for m in range(c.points[0]):
            p = c.pair[m]
            if c.first[p] != i or c.second[p] != WORLD or not c.force[m, 2] > 0.0:
                continue
            A, f = c.axes[p], c.force[m]
            w = scale * h
            x, y, z = c.where[m, 0], c.where[m, 1], c.where[m, 2]
            fx = w * (A[0, 0] * f[0] + A[1, 0] * f[1] + A[2, 0] * f[2])
            fy = w * (A[0, 1] * f[0] + A[1, 1] * f[1] + A[2, 1] * f[2])
            fz = w * (A[0, 2] * f[0] + A[1, 2] * f[1] + A[2, 2] * f[2])
            add_force(s, plate_at(s, x, y, z), (x, y, z), (fx, fy, fz), NO_MOMENT, at_once)
