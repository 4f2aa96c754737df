"""Motion of the feet within a step, for models whose forces depend on the positions of the vertices.

The Delassus matrix and the contact-free acceleration of the feet are constant over a step of the dynamics. The feet are
integrated in contact space, 6 numbers per foot: w' = drive + G f(x, w). A stiff force law thus gets the short substeps
that it needs without evaluating the dynamics. The robot gets the impulse, and the impulse weighted by the time that
remained when it acted. A ball, or a brick that does not turn, has a constant G and is integrated with fourth order.

The integrator is the classical Runge-Kutta method. A substep ends where a vertex touches down or lifts off. The kink of
its force is then at the end of a substep.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.contact.vertices import VertexContacts
from bipedsim.dynamics import Projection
from bipedsim.numerics import Array, Integers, assign, kernel, zeros_of

CLOSED = 1e-12
"""A vertex within this distance of the ground [m] is at the ground."""
SHORTEST = 1e-6
"""Shortest substep, as a fraction of the step."""
MOST_EVENTS = 50
"""Maximum number of substeps per step that end at a touchdown or lift-off; falls of whole robots have up to eleven."""
LEAVING = 1e-9
"""A vertex at the ground that rises faster than this [m/s] lifts off."""


class Substeps(NamedTuple):
    """Work arrays of K feet with N vertices at most.

    Attributes:
        h: Step [s].
        drive: (6K,) acceleration of the feet without contact, including J' v.
        shift, twist: (6K,) at the stage: displacement since the beginning of the step [m, rad], and velocity.
        shift0, twist0: (6K,) the same at the beginning of the substep.
        shift_sum, twist_sum: (6K,) weighted sums of their derivatives over the stages.
        wrench: (K, 6) contact forces on the feet at the stage, at the sole origins [N, N.m].
        wrench_sum: (K, 6) weighted sum of the wrenches over the stages.
        early: (K, 6) sum of the wrenches of the first three stages.
        impulse: (K, 6) impulse since the beginning of the step.
        late: (K, 6) impulse weighted by the fraction of the step that remained when it acted.
        offset: (K, 3, N) vertices relative to the sole origin at the beginning of the step; centres for balls. The
            vertices are the last index, so that loops over many vertices are vectorised.
        height: (K, N) heights of the vertices at the stage [m].
        velocity: (K, 3, N) velocities of the vertices at the stage [m/s].
        arm: (K, 3, N) vertices relative to the sole origin at the stage [m].
        force: (K, N, 3) forces on the vertices at the stage, ground axes [N].
        force_sum: (K, 3, N) weighted sum of these forces over the stages.
        impulses: (K, N, 3) impulses of the vertices since the beginning of the step [N.s]; cleared by their owner.
        events: (1,) number of substeps of the step that ended at a touchdown or lift-off.
    """

    h: float
    drive: Annotated[Array, "6K"]
    shift: Annotated[Array, "6K"]
    twist: Annotated[Array, "6K"]
    shift0: Annotated[Array, "6K"]
    twist0: Annotated[Array, "6K"]
    shift_sum: Annotated[Array, "6K"]
    twist_sum: Annotated[Array, "6K"]
    wrench: Annotated[Array, "K", 6]
    wrench_sum: Annotated[Array, "K", 6]
    early: Annotated[Array, "K", 6]
    impulse: Annotated[Array, "K", 6]
    late: Annotated[Array, "K", 6]
    height: Annotated[Array, "K", "N"]
    offset: Annotated[Array, "K", 3, "N"]
    velocity: Annotated[Array, "K", 3, "N"]
    arm: Annotated[Array, "K", 3, "N"]
    force: Annotated[Array, "K", "N", 3]
    force_sum: Annotated[Array, "K", 3, "N"]
    impulses: Annotated[Array, "K", "N", 3]
    events: Annotated[Integers, 1]

    @classmethod
    def of_feet(cls, contacts: VertexContacts) -> Substeps:
        """Return the arrays for the feet of ``contacts``, to whose impulses the substeps add."""
        n_feet, widest = contacts.heights.shape
        return zeros_of(cls, {"K": n_feet, "N": widest}, h=contacts.h, impulses=contacts.impulses)


@kernel
def start(p: Projection, c: Substeps):
    """Initialise the feet at the beginning of the step."""
    c.events[0] = 0
    for r in range(c.drive.shape[0]):
        c.drive[r] = (p.w_free[r] - p.w_before[r]) / c.h + p.bias[r]
        c.shift[r] = 0.0
        c.twist[r] = p.w_before[r]
    for k in range(c.impulse.shape[0]):
        for r in range(6):
            c.impulse[k, r] = 0.0
            c.late[k, r] = 0.0
        for i in range(p.n_vertices[k]):
            for a in range(3):
                c.offset[k, a, i] = p.offsets[k, i, a]
            c.offset[k, 2, i] += p.radius[k]
    place(p, c)


@kernel
def place(p: Projection, c: Substeps):
    """Fill heights, arms and velocities of vertices from ``shift`` and ``twist``; a ball touches below its centre."""
    for k in range(c.height.shape[0]):
        d = c.shift[6 * k : 6 * k + 6]
        w = c.twist[6 * k : 6 * k + 6]
        # Local copies: the compiler cannot exclude that the writes below change these arrays.
        a, b, g = d[3], d[4], d[5]
        u0, u1, u2, w0, w1, w2 = w[0], w[1], w[2], w[3], w[4], w[5]
        radius, base = p.radius[k], p.position[k, 2] + d[2]
        height, arm, velocity = c.height[k], c.arm[k], c.velocity[k]
        x0, y0, z0 = c.offset[k, 0], c.offset[k, 1], c.offset[k, 2]
        x1, y1, z1 = arm[0], arm[1], arm[2]
        vx, vy, vz = velocity[0], velocity[1], velocity[2]
        for i in range(p.n_vertices[k]):
            x, y, z = x0[i], y0[i], z0[i]
            # Rotation to second order: x + t x x + t x (t x x) / 2.
            ox, oy, oz = b * z - g * y, g * x - a * z, a * y - b * x
            x += ox + 0.5 * (b * oz - g * oy)
            y += oy + 0.5 * (g * ox - a * oz)
            z += oz + 0.5 * (a * oy - b * ox) - radius
            x1[i] = x
            y1[i] = y
            z1[i] = z
            height[i] = base + z
            vx[i] = u0 + w1 * z - w2 * y
            vy[i] = u1 + w2 * x - w0 * z
            vz[i] = u2 + w0 * y - w1 * x


@kernel
def substep(p: Projection, c: Substeps, longest: float, rest: float) -> float:
    """Return the duration of the next substep [s], which ends at the next touchdown or lift-off at the latest.

    Forces may let vertices touch down and lift off endlessly. After ``MOST_EVENTS`` of these events, substeps no longer
    end at an event, and the step counts as unresolved.

    Args:
        p, c: See :class:`Projection` and :class:`Substeps`.
        longest: Longest substep that the force law allows [s].
        rest: Remaining time of the step [s].
    """
    dt = min(longest, rest)
    if c.events[0] >= MOST_EVENTS:
        return rest if rest - dt < SHORTEST * c.h else dt
    for k in range(c.height.shape[0]):
        for i in range(p.n_vertices[k]):
            height = c.height[k, i]
            ahead = c.velocity[k, 2, i] * dt
            if (CLOSED < height < -ahead) or (-ahead < height < -CLOSED):
                dt = max(-height / c.velocity[k, 2, i], SHORTEST * c.h)
    if dt < min(longest, rest):
        c.events[0] += 1
    return rest if rest - dt < SHORTEST * c.h else dt


@kernel
def is_closed(c: Substeps, k: int, i: int) -> bool:
    """Return whether vertex ``i`` of foot ``k`` is in contact."""
    height = c.height[k, i]
    return height < -CLOSED or (height <= CLOSED and c.velocity[k, 2, i] <= LEAVING)


@kernel
def begin_substep(c: Substeps):
    """Store the state at the beginning of the substep and clear the sums."""
    for r in range(c.shift.shape[0]):
        c.shift0[r] = c.shift[r]
        c.twist0[r] = c.twist[r]
        c.shift_sum[r] = 0.0
        c.twist_sum[r] = 0.0
    for k in range(c.wrench.shape[0]):
        for r in range(6):
            c.wrench_sum[k, r] = 0.0
            c.early[k, r] = 0.0
        for a in range(3):
            for i in range(c.force_sum.shape[2]):
                c.force_sum[k, a, i] = 0.0


@kernel
def _sum_up(p, c):
    """Fill the wrenches on the feet from the forces on their vertices."""
    for k in range(c.wrench.shape[0]):
        fx = fy = fz = mx = my = mz = 0.0
        for i in range(p.n_vertices[k]):
            x, y, z = p.offsets[k, i, 0], p.offsets[k, i, 1], p.offsets[k, i, 2]
            f, g, n = c.force[k, i, 0], c.force[k, i, 1], c.force[k, i, 2]
            fx += f
            fy += g
            fz += n
            mx += y * n - z * g
            my += z * f - x * n
            mz += x * g - y * f
        wrench = c.wrench[k]
        assign(wrench, (fx, fy, fz))
        assign(wrench[3:], (mx, my, mz))


@kernel
def _acceleration(p, c, r):
    """Return row ``r`` of the acceleration of the feet under the wrenches of :func:`_sum_up`."""
    a = c.drive[r]
    for k in range(c.wrench.shape[0]):
        for j in range(6):
            a += p.G[r, 6 * k + j] * c.wrench[k, j]
    return a


@kernel
def crossing(p: Projection, c: Substeps, dt: float) -> float:
    """Return ``dt`` [s], or the time at which the first vertex crosses the ground under the forces of the first stage.

    A vertex that has just lifted off has almost no velocity. Its acceleration alone returns it within a substep. If
    the crossing were only detected at the end of the substep, the vertex would return faster than it left.
    """
    _sum_up(p, c)
    whole = dt
    if c.events[0] >= MOST_EVENTS:
        return dt
    for k in range(c.height.shape[0]):
        ax = _acceleration(p, c, 6 * k + 3)
        ay = _acceleration(p, c, 6 * k + 4)
        az = _acceleration(p, c, 6 * k + 2)
        for i in range(p.n_vertices[k]):
            # Distance, velocity and acceleration away from the ground, positive on the current side of the vertex.
            side = -1.0 if is_closed(c, k, i) else 1.0
            z = side * c.height[k, i]
            if side < 0.0 and z <= CLOSED:
                continue
            v = side * c.velocity[k, 2, i]
            a = side * (az + ax * c.arm[k, 1, i] - ay * c.arm[k, 0, i])
            square = v * v - 2.0 * a * z
            if square <= 0.0 or (v >= 0.0 and a >= 0.0):
                continue
            # First root after now, in the form without cancellation.
            root = np.sqrt(square)
            t = -(v + root) / a if v > 0.0 else 2.0 * z / (root - v)
            if 0.0 < t < dt:
                dt = max(t, SHORTEST * c.h)
    if dt < whole:
        c.events[0] += 1
    return dt


@kernel
def next_stage(p: Projection, c: Substeps, stage: int, dt: float):
    """Add the vertex forces of ``stage`` (0 to 3) and move to the next stage, or to the end after the last one.

    Torques use the arms at the beginning of the step, as G does.
    """
    weight = 2.0 if stage == 1 or stage == 2 else 1.0
    _sum_up(p, c)
    for k in range(c.wrench.shape[0]):
        for i in range(p.n_vertices[k]):
            for a in range(3):
                c.force_sum[k, a, i] += weight * c.force[k, i, a]
    move_on(p, c, stage, dt)


@kernel
def move_on(p: Projection, c: Substeps, stage: int, dt: float):
    """Advance from ``stage`` as :func:`next_stage` does, if ``wrench`` and ``force_sum`` already include its forces."""
    weight = 2.0 if stage == 1 or stage == 2 else 1.0
    feet = c.wrench.shape[0]
    for k in range(feet):
        for r in range(6):
            c.wrench_sum[k, r] += weight * c.wrench[k, r]
            if stage < 3:
                c.early[k, r] += c.wrench[k, r]
    ahead = 0.5 * dt if stage < 2 else dt
    for r in range(6 * feet):
        a = _acceleration(p, c, r)
        c.shift_sum[r] += weight * c.twist[r]
        c.twist_sum[r] += weight * a
        if stage < 3:
            c.shift[r] = c.shift0[r] + ahead * c.twist[r]
            c.twist[r] = c.twist0[r] + ahead * a
        else:
            c.shift[r] = c.shift0[r] + dt / 6.0 * c.shift_sum[r]
            c.twist[r] = c.twist0[r] + dt / 6.0 * c.twist_sum[r]
    if stage == 3:
        for k in range(feet):
            for r in range(6):
                c.late[k, r] += dt / c.h * (c.impulse[k, r] + dt / 6.0 * c.early[k, r])
                c.impulse[k, r] += dt / 6.0 * c.wrench_sum[k, r]
            for i in range(p.n_vertices[k]):
                for a in range(3):
                    c.impulses[k, i, a] += dt / 6.0 * c.force_sum[k, a, i]
    place(p, c)
