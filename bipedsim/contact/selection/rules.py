"""Rules that make a set of clamped vertices valid, by priority: CoP > geometric > negative force > kinematic.

The condition that the equations have a solution precedes all of them.

The rules are those of moraud2008 sections II, III and IV, with two departures that humanoids need
(docs/contact_models.md). A face is judged by its CoP, because its vertex forces are not unique. A vertex at rest within
the geometric threshold is clamped only if it is about to penetrate; otherwise face and edge alternate endlessly.
"""

from __future__ import annotations

import numpy as np

from bipedsim.contact.modes import clamped_range, normal_velocity, target_height_velocity
from bipedsim.contact.selection.arrays import PUBLISHED, REVISED, Selection, Settings, Trial
from bipedsim.contact.selection.candidate import is_valid_solution
from bipedsim.dynamics import Projection
from bipedsim.numerics import cross, kernel

# Thresholds of the published kinematic rule: a vertex separates with a_z > A_T [m/s^2] and v_z > -V_T [m/s].
A_T = 0.1
V_T = 0.1

# Of several vertices that would penetrate, the deeper one wins a tie. TIE is the largest relative increase of its cost,
# DEEP the depth [m] at which it is reached.
TIE = 1e-6
DEEP = 1e-2

INVALID, COP, GEOMETRIC, PULL, KINEMATIC = range(5)
"""Indices of :attr:`bipedsim.contact.selection.arrays.Trial.violations`, one per rule."""


@kernel
def nearest_feature(
    vertices, n: int, clamped: tuple[int, int], x: float, y: float, tolerance: float
) -> tuple[int, int, float]:
    """Return (first, count) of the clamped vertices that the CoP tips over, and its distance outside [m].

    Args:
        vertices: (N, 2) counter-clockwise in the sole frame [m].
        n: Number of vertices.
        clamped: First clamped vertex and number of clamped vertices.
        x, y: CoP in the sole frame [m].
        tolerance: A CoP this far outside [m] counts as on the edge, to allow for rounding.

    Returns:
        The present range and a distance <= 0 while the CoP is inside. Otherwise, the nearest edge or vertex and the
        distance from it.
    """
    first, count = clamped
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
            if -along > tolerance and -along >= along - length:
                return i, 1, -along
            if along - length > tolerance:
                return j, 1, along - length
            return first, count, max(-along, along - length)
        across = ((x - vertices[i, 0]) * ey - (y - vertices[i, 1]) * ex) / length
        if across > outside:
            outside = across
            best = i
    if outside <= tolerance:
        return first, count, outside
    # The nearest point of the polygon is on an edge, or at a vertex beyond the end of every violated edge.
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


@kernel
def pulls(k, trial: Trial) -> bool:
    """Return whether foot ``k`` would be pulled; a torque without load counts, and only redundant feet can get one."""
    f = trial.impulse[k]
    return f[2] < 0.0 or (f[2] == 0.0 and (f[3] != 0.0 or f[4] != 0.0))


@kernel
def _must_be_clamped(z, speed, settings: Settings) -> bool:
    """Return whether a free vertex at height ``z`` must not continue with ``speed``.

    Near the ground it must not move further into the ground. Below the threshold it must rise as fast as a clamped
    vertex would; a faster foot is leaving and is not held.
    """
    if z < -settings.threshold:
        return speed < target_height_velocity(z, settings.h, settings.gamma)
    return z + settings.h * speed < -settings.tolerance and speed < 0.0


@kernel
def _rule_costs(n: int) -> tuple[float, float, float, float]:
    """Return the costs of deviating from the CoP, geometric, negative-force and kinematic rules, for ``n`` vertices."""
    # With one vertex the costs do not compete within the foot, but the order of the rules must hold.
    a_cop = 1.0
    a_g = a_cop / max(n, 2)
    a_nf = a_g / max(n, 2)
    return a_cop, a_g, a_nf, a_nf / max(n, 2)


@kernel
def perfect_vector(k, p: Projection, s: Selection):
    """Fill ``perfect`` and ``cost`` for foot ``k``, judging every vertex on its own (moraud2008 section IV-B).

    A clamped vertex ends the step on the ground, so only free vertices can violate the kinematic rule.
    """
    settings, trial = s.settings, s.trial
    perfect, cost = s.scratch.perfect, s.scratch.cost
    n = p.n_vertices[k]
    first, count = clamped_range(trial.mode[k], n)
    a_cop, a_g, a_nf, a_k = _rule_costs(n)
    for j in range(n):
        i = (first + j) % n
        z = s.scratch.heights[k, i]
        speed = normal_velocity(trial.w_next, k, p.offsets[k, i])
        cost[i] = a_k
        if j < count:
            perfect[i] = 1
            if z > settings.threshold and z + settings.h * speed > settings.threshold:
                perfect[i] = 0
                cost[i] = a_g
            continue
        perfect[i] = 1 if _must_be_clamped(z, speed, settings) else 0
        if abs(z) > settings.threshold:
            cost[i] = a_g
        if perfect[i] == 1:
            # Of many vertices that would penetrate, the deepest are clamped first.
            cost[i] *= 1.0 + TIE * min(max(-(z + settings.h * speed), 0.0) / DEEP, 1.0)
    if count == 0:
        return
    if pulls(k, trial):
        for j in range(count):
            i = (first + j) % n
            perfect[i] = 0
            cost[i] = a_nf
    elif trial.outside[k] > settings.tolerance:
        _keep_nearest(k, p, s, (first, count), a_cop)


@kernel
def published_vector(k, p: Projection, s: Selection):
    """Fill ``perfect`` and ``cost`` for foot ``k`` by the published rules (moraud2008 sections II to IV).

    Vertex forces are those of minimum norm. The kinematic rule clamps every vertex at rest within the threshold. The
    CoP rule is not applied with ``THRESHOLDS``.
    """
    settings, trial = s.settings, s.trial
    perfect, cost = s.scratch.perfect, s.scratch.cost
    n = p.n_vertices[k]
    first, count = clamped_range(trial.mode[k], n)
    a_cop, a_g, a_nf, a_k = _rule_costs(n)
    base, slope_x, slope_y = _minimum_norm_forces(k, p, s, first, count)
    for j in range(n):
        i = (first + j) % n
        z = s.scratch.heights[k, i]
        if abs(z) > settings.threshold:
            perfect[i] = 1 if z < 0.0 else 0
            cost[i] = a_g
            continue
        x = p.offsets[k, i, 0] - s.scratch.r_vj[k, 0]
        y = p.offsets[k, i, 1] - s.scratch.r_vj[k, 1]
        if j < count and base + slope_x * x + slope_y * y < 0.0:
            perfect[i] = 0
            cost[i] = a_nf
            continue
        if j < count:
            # "Separating vertices ought to remain unclamped": a clamped vertex has the acceleration of an impact.
            perfect[i] = 1
            cost[i] = a_k
            continue
        speed = normal_velocity(trial.w_next, k, p.offsets[k, i])
        acceleration = (speed - normal_velocity(p.w_before, k, p.offsets[k, i])) / settings.h
        perfect[i] = 0 if acceleration > A_T and speed > -V_T else 1
        cost[i] = a_k
    outside = trial.outside[k] > settings.tolerance
    if settings.rules == PUBLISHED and count > 1 and trial.impulse[k, 2] > 0.0 and outside:
        _keep_nearest(k, p, s, (first, count), a_cop)


@kernel
def _keep_nearest(k, p: Projection, s: Selection, clamped, weight):
    """Restrict the perfect vector to those clamped vertices that the CoP tips over."""
    n = p.n_vertices[k]
    first, count = clamped
    x, y = s.trial.cop[k]
    for j in range(count):
        i = (first + j) % n
        s.scratch.perfect[i] = 0
        s.scratch.cost[i] = weight
    keep, keep_count, _ = nearest_feature(p.vertices[k], n, clamped, x, y, s.settings.tolerance)
    for j in range(keep_count):
        s.scratch.perfect[(keep + j) % n] = 1


@kernel
def _minimum_norm_forces(k, p: Projection, s: Selection, first, count):
    """Return (a, b, c) of the least-norm forces a + b x + c y of clamped vertices at (x, y) from the virtual joint."""
    if count == 0:
        return 0.0, 0.0, 0.0
    n = p.n_vertices[k]
    f = s.trial.impulse[k]
    r = s.scratch.r_vj[k]
    # Moments about the virtual joint.
    moment = cross(r, f)
    mx = f[3] - moment[0]
    my = f[4] - moment[1]
    sxx = 0.0
    sxy = 0.0
    syy = 0.0
    for j in range(count):
        i = (first + j) % n
        x = p.offsets[k, i, 0] - r[0]
        y = p.offsets[k, i, 1] - r[1]
        sxx += x * x
        sxy += x * y
        syy += y * y
    base = f[2] / count
    if count == 1:
        return base, 0.0, 0.0
    if count == 2:
        # The vertices are on one line, so the sums of squares describe a single direction.
        scale = 1.0 / (sxx + syy) ** 2
        along = -my * sxx + mx * sxy, -my * sxy + mx * syy
        return base, along[0] * scale, along[1] * scale
    scale = 1.0 / (sxx * syy - sxy * sxy)
    return base, (-my * syy - mx * sxy) * scale, (mx * sxx + my * sxy) * scale


@kernel
def nearest_mode(mode, n, perfect, cost) -> int:
    """Return the admissible mode nearest to the perfect vector: minimum of sum cost_i |p_i - s_i| (section IV-C).

    The present mode wins ties. Among the others, the mode with fewer constraints wins.
    """
    # Clamping vertex i changes the distance of `none` by (1 - 2 p_i) cost_i.
    none = 0.0
    face = 0.0
    for i in range(n):
        none += cost[i] * perfect[i]
        face += cost[i] * (1 - perfect[i])
    first, count = clamped_range(mode, n)
    best_cost = none
    for j in range(count):
        i = (first + j) % n
        best_cost += cost[i] * (1 - 2 * perfect[i])
    best = mode
    if none < best_cost - 1e-12:
        best_cost = none
        best = 0
    for i in range(n):
        c = none + cost[i] * (1 - 2 * perfect[i])
        if c < best_cost - 1e-12:
            best_cost = c
            best = 1 + i
    edges = n if n > 2 else n - 1
    for i in range(edges):
        j = (i + 1) % n
        c = none + cost[i] * (1 - 2 * perfect[i]) + cost[j] * (1 - 2 * perfect[j])
        if c < best_cost - 1e-12:
            best_cost = c
            best = 1 + n + i
    if n > 2 and face < best_cost - 1e-12:
        best = 2 * n + 1
    return best


@kernel
def choose(p: Projection, s: Selection) -> bool:
    """Fill ``s.trial.chosen`` for the solved candidate; return whether any foot should change its mode."""
    trial, perfect = s.trial, s.scratch.perfect
    changed = False
    for k in range(trial.mode.shape[0]):
        n = p.n_vertices[k]
        if s.settings.rules == REVISED:
            perfect_vector(k, p, s)
        else:
            published_vector(k, p, s)
        first, count = clamped_range(trial.mode[k], n)
        agrees = True
        for j in range(n):
            agrees = agrees and perfect[(first + j) % n] == (1 if j < count else 0)
        trial.chosen[k] = trial.mode[k] if agrees else nearest_mode(trial.mode[k], n, perfect, s.scratch.cost)
        changed = changed or trial.chosen[k] != trial.mode[k]
    return changed


@kernel
def judge(p: Projection, s: Selection) -> bool:
    """Count the violations of the candidate in ``s.trial.violations``; return whether there are none."""
    settings, trial = s.settings, s.trial
    trial.violations[:] = 0
    trial.extent[0] = 0.0
    if not is_valid_solution(p, s):
        trial.violations[INVALID] += 1
    if not trial.converged[0]:
        trial.violations[KINEMATIC] += 1
    for k in range(trial.mode.shape[0]):
        n = p.n_vertices[k]
        first, count = clamped_range(trial.mode[k], n)
        if count > 0:
            if pulls(k, trial):
                trial.violations[PULL] += 1
            elif trial.outside[k] > settings.tolerance:
                trial.violations[COP] += 1
                trial.extent[0] += trial.outside[k]
        for j in range(n):
            i = (first + j) % n
            z = s.scratch.heights[k, i]
            speed = normal_velocity(trial.w_next, k, p.offsets[k, i])
            if j < count:
                if z > settings.threshold and z + settings.h * speed > settings.threshold:
                    trial.violations[GEOMETRIC] += 1
                continue
            if _must_be_clamped(z, speed, settings):
                trial.violations[GEOMETRIC if z < -settings.threshold else KINEMATIC] += 1
                trial.extent[0] += max(-(z + settings.h * speed), 0.0)
    violations = trial.violations
    return violations[INVALID] + violations[COP] + violations[GEOMETRIC] + violations[PULL] + violations[KINEMATIC] == 0
