"""What makes a set of clamped vertices valid, with priorities: CoP > geometric > negative force > kinematic.

moraud2008 sections II, III and IV. Two departures, for reasons measured on humanoids (docs/contact_models.md): a face
is judged by its CoP, not by vertex forces that a face does not determine; and a vertex at rest within the geometric
threshold is clamped only if it is about to penetrate, or face and edge alternate for ever.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from bipedsim.contact.modes import clamped_range

# Rounding, not physics: a CoP this far outside [m] is on the edge, a vertex this far below the ground [m] is on it.
COP_TOLERANCE = 1e-9
HEIGHT_TOLERANCE = 1e-10


@njit(cache=True)
def nearest_feature(vertices, n: int, first: int, count: int, x: float, y: float) -> tuple[int, int, float]:
    """Return (first, count) of the clamped vertices that the CoP tips over, and how far outside it is [m].

    Args:
        vertices: (N, 2) counter-clockwise in the sole frame [m].
        n: Number of vertices.
        first, count: Vertices that are clamped.
        x, y: CoP in the sole frame [m].

    Returns:
        The present range and a distance <= 0 while the CoP is inside, else the edge or vertex nearest to it and the
        distance.
    """
    if count < 2:
        return first, count, 0.0
    edges = 1 if count == 2 else n
    outside = -np.inf
    best = first
    for k in range(edges):
        i = (first + k) % n
        j = (i + 1) % n
        ex = vertices[j, 0] - vertices[i, 0]
        ey = vertices[j, 1] - vertices[i, 1]
        length = np.sqrt(ex * ex + ey * ey)
        along = ((x - vertices[i, 0]) * ex + (y - vertices[i, 1]) * ey) / length
        if count == 2:
            if -along > COP_TOLERANCE and -along >= along - length:
                return i, 1, -along
            if along - length > COP_TOLERANCE:
                return j, 1, along - length
            return first, count, max(-along, along - length)
        across = ((x - vertices[i, 0]) * ey - (y - vertices[i, 1]) * ex) / length
        if across > outside:
            outside = across
            best = i
    if outside <= COP_TOLERANCE:
        return first, count, outside
    # Outside: the closest point of the polygon lies on an edge, or at a vertex past the end of every violated edge.
    closest = np.inf
    feature = best
    feature_count = 2
    for i in range(n):
        j = (i + 1) % n
        ex = vertices[j, 0] - vertices[i, 0]
        ey = vertices[j, 1] - vertices[i, 1]
        length2 = ex * ex + ey * ey
        t = ((x - vertices[i, 0]) * ex + (y - vertices[i, 1]) * ey) / length2
        inside = 0.0 < t < 1.0
        t = min(max(t, 0.0), 1.0)
        dx = x - vertices[i, 0] - t * ex
        dy = y - vertices[i, 1] - t * ey
        dist = np.sqrt(dx * dx + dy * dy)
        if dist < closest:
            closest = dist
            feature = i if inside or t == 0.0 else j
            feature_count = 2 if inside else 1
    return feature, feature_count, closest


@njit(cache=True)
def choose_mode(mode, n, masks, vertices, heights, speeds, fz, cop_x, cop_y, h, band, weights, perfect, cost):
    """Return the admissible mode nearest to the perfect vector of one foot (moraud2008 section IV).

    Args:
        mode: Present mode, whose trial solve is judged.
        n: Number of vertices.
        masks: (n_modes, N) the admissible set.
        vertices: (N, 2) in the sole frame [m].
        heights, speeds: (N,) heights [m] and normal velocities after the trial step [m/s].
        fz: Normal impulse of the trial [N.s].
        cop_x, cop_y: CoP of the trial in the sole frame [m].
        h, band: Step [s] and geometric threshold d [m].
        weights: (4,) costs a_cop, a_g, a_nf, a_k.
        perfect, cost: (N,) work arrays: the perfect vector, and what leaving it costs at each vertex.
    """
    first, count = clamped_range(mode, n)
    for i in range(n):
        cost[i] = weights[3]
        falls_through = heights[i] + h * speeds[i] < -HEIGHT_TOLERANCE and speeds[i] < 0.0
        if masks[mode, i]:
            perfect[i] = 1
            if heights[i] > band and heights[i] + h * speeds[i] > band:
                perfect[i] = 0
                cost[i] = weights[1]
            continue
        if heights[i] < -band:
            perfect[i] = 1
            cost[i] = weights[1]
        elif heights[i] > band:
            perfect[i] = 1 if falls_through else 0
            cost[i] = weights[1]
        else:
            perfect[i] = 1 if falls_through else 0
    if count > 0:
        if fz < 0.0:
            for k in range(count):
                i = (first + k) % n
                perfect[i] = 0
                cost[i] = weights[2]
        else:
            keep, keep_count, outside = nearest_feature(vertices, n, first, count, cop_x, cop_y)
            if outside > COP_TOLERANCE:
                for k in range(count):
                    i = (first + k) % n
                    perfect[i] = 0
                    cost[i] = weights[0]
                for k in range(keep_count):
                    perfect[(keep + k) % n] = 1

    best = mode
    best_cost = _distance(masks, mode, n, perfect, cost)
    for candidate in range(masks.shape[0]):
        c = _distance(masks, candidate, n, perfect, cost)
        # The present mode wins ties; among the others the one with fewer constraints, which comes first.
        if c < best_cost - 1e-12:
            best = candidate
            best_cost = c
    return best


@njit(cache=True)
def _distance(masks, mode, n, perfect, cost):
    total = 0.0
    for i in range(n):
        if masks[mode, i] != perfect[i]:
            total += cost[i]
    return total
