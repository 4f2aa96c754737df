"""Rows of point contacts between any bodies: the velocities of the points for velocities y with unit mass.

An impulse f at the points changes y by Y^T f, so that D = Y Y^T. A free body with M^-1 = S S^T and the rows J has
Y = J S.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.contact.time_stepping.cone_problem import ConeProblem, floor_mobilities
from bipedsim.numerics import (
    Array,
    Blocks,
    Integers,
    Vector,
    cross,
    kernel,
    link_blocks,
    order_blocks,
    unlink_blocks,
    zeros_of,
)

OF_BODY = 6
"""Number of velocities of a free body."""


class PointRows(NamedTuple):
    """Rows of at most C points over n velocities with unit mass.

    The velocities of a robot come first, in the order from base to leaves, as in pinocchio. The elimination begins with
    the last velocity, so that contacts of single bodies with the ground cause no fill-in. Free bodies follow, and are
    eliminated before the robot if they touch few others.

    Attributes:
        Y: (C, 3, w) rows, with entries only for the velocities that move the point.
        column: (C, w) index of the velocity of each entry; the velocities of a body are next to each other.
        width: (C,) number of entries.
        own: (C, 3, 3) diagonal blocks of D [1/kg].
        block: (n,) block of each velocity: that of the robot, or of a free body.
        system: Linear equations of a Newton step.
        y, rhs, step: (n,) Y^T f, and work arrays.
    """

    Y: Annotated[Array, "C", 3, "w"]
    column: Annotated[Integers, "C", "w"]
    width: Annotated[Integers, "C"]
    own: Annotated[Array, "C", 3, 3]
    block: Integers
    system: Blocks
    y: Annotated[Array, "n"]
    rhs: Annotated[Array, "n"]
    step: Annotated[Array, "n"]

    @classmethod
    def of_size(cls, capacity: int, robot: int, bodies: int) -> PointRows:
        """Return the arrays for at most ``capacity`` points of a robot with so many velocities, and of free bodies."""
        sizes = np.array([robot] * (robot > 0) + [OF_BODY] * bodies, dtype=np.int64)
        system = Blocks.of_sizes(np.concatenate([[0], np.cumsum(sizes)]))
        system.used[0] = len(sizes)
        block = np.repeat(np.arange(len(sizes)), sizes)
        lengths = {"C": capacity, "n": len(block), "w": robot + OF_BODY * min(bodies, 2)}
        return zeros_of(cls, lengths, system=system, block=block)


@kernel
def fill_root(mass: float, mobility: Array, root: Array) -> None:
    """Fill the lower triangular S (6, 6) of M^-1 = S S^T of a free body from its mass and inverse inertia (3, 3)."""
    for r in range(3):
        root[r, r] = 1.0 / np.sqrt(mass)
        for c in range(r + 1):
            total = mobility[r, c]
            for k in range(c):
                total -= root[3 + r, 3 + k] * root[3 + c, 3 + k]
            root[3 + r, 3 + c] = np.sqrt(total) if r == c else total / root[3 + c, 3 + c]


@kernel
def add_body(r: PointRows, m: int, column: int, sign: float, axes: Array, arm: Vector, root: Array) -> None:
    """Append the entries of a free body to the rows of point ``m``.

    Args:
        r: The rows; ``width`` grows.
        m: The point.
        column: First velocity of the body.
        sign: 1, or -1 if the velocity of the body counts negative.
        axes: (3, 3) axes of the point as rows, in the world.
        arm: (3,) from the centre of mass to the point [m].
        root: (6, 6) of :func:`fill_root`.
    """
    width = r.width[m]
    r.width[m] = width + OF_BODY
    for j in range(OF_BODY):
        r.column[m, width + j] = column + j
    for a in range(3):
        row, axis = r.Y[m, a], axes[a]
        turning = cross(arm, axis)
        for j in range(3):
            row[width + j] = sign * axis[j] * root[j, j]
            total = 0.0
            for k in range(j, 3):
                total += turning[k] * root[3 + k, 3 + j]
            row[width + 3 + j] = sign * total


@kernel
def prepare_points(r: PointRows, q: ConeProblem) -> None:
    """Fill the diagonal blocks of D, the mobilities of the points, and the order of the elimination."""
    unlink_blocks(r.system)
    for m in range(q.points[0]):
        for a in range(3):
            for b in range(a + 1):
                total = 0.0
                for j in range(r.width[m]):
                    total += r.Y[m, a, j] * r.Y[m, b, j]
                r.own[m, a, b] = r.own[m, b, a] = total
        q.mobility[m] = (r.own[m, 0, 0] + r.own[m, 1, 1] + r.own[m, 2, 2]) / 3.0
        if r.width[m] > 0:
            link_blocks(r.system, r.block[r.column[m, 0]], r.block[r.column[m, r.width[m] - 1]])
    order_blocks(r.system)
    floor_mobilities(q)


@kernel
def velocities(r: PointRows) -> int:
    """Return the number of velocities of the problem."""
    return int(r.system.begin[r.system.used[0]])


@kernel
def velocity_at(r: PointRows, m: int, y: Array) -> tuple[float, float, float]:
    """Return the velocity of point ``m`` for the velocities ``y`` (n,)."""
    ux = uy = uz = 0.0
    rows, column = r.Y[m], r.column[m]
    for j in range(r.width[m]):
        by = y[column[j]]
        ux += rows[0, j] * by
        uy += rows[1, j] * by
        uz += rows[2, j] * by
    return ux, uy, uz


@kernel
def add_impulse(r: PointRows, m: int, f: tuple[float, float, float], y: Array) -> None:
    """Add the effect of the impulse ``f`` at point ``m`` to ``y`` (n,)."""
    rows, column = r.Y[m], r.column[m]
    for j in range(r.width[m]):
        y[column[j]] += rows[0, j] * f[0] + rows[1, j] * f[1] + rows[2, j] * f[2]
