"""Assign forces at points to the force plate under the point, or to the floor."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from bipedsim.numerics import Array, Integers, kernel

NO_MOMENT = (0.0, 0.0, 0.0)
"""Moment of a force about its own point."""
REACH = 0.01
"""Tolerated height of a point above or below the surface of a plate [m]; covers soft ground and rolling balls."""


class Surfaces(NamedTuple):
    """Surfaces of P plates and the forces on them in a step; W is the largest number of polygon points.

    Attributes:
        axes: (P, 3, 3) axes of the plates' transducers as columns, in the world.
        centre: (P, 3) centres of the surfaces [m].
        half: (P, 2) half the sizes [m].
        origin: (P, 3) origins of the transducers [m].
        load: (P + 1, 6) impulse on the standing body over the step [N.s], [N.m.s], about the transducers' origin in the
            plate's axes. The last entry is the floor, about the world's origin in world axes.
        at_once: (P, 6) part of the load that is an impact.
        share: (P + 1,) fractions of the normal force of the current foot.
        moment: (P + 1, 3) first moments [m] and polar moment [m^2] of these fractions about the centre of pressure.
        polygon, piece, spare: (W, 3) points x, y [m] and their pressure.
        system: (3, 4) work array.
        fallbacks: (1,) number of feet without a pressure solution, with the force applied at the CoP.
    """

    axes: Annotated[Array, "P", 3, 3]
    centre: Annotated[Array, "P", 3]
    half: Annotated[Array, "P", 2]
    origin: Annotated[Array, "P", 3]
    load: Annotated[Array, "P+1", 6]
    at_once: Annotated[Array, "P", 6]
    share: Annotated[Array, "P+1"]
    moment: Annotated[Array, "P+1", 3]
    polygon: Annotated[Array, "W", 3]
    piece: Annotated[Array, "W", 3]
    spare: Annotated[Array, "W", 3]
    system: Annotated[Array, 3, 4]
    fallbacks: Annotated[Integers, 1]


@kernel
def clear(s: Surfaces) -> None:
    """Reset the forces at the start of a step."""
    for p in range(s.load.shape[0]):
        for a in range(6):
            s.load[p, a] = 0.0
    for p in range(s.at_once.shape[0]):
        for a in range(6):
            s.at_once[p, a] = 0.0


@kernel
def local(s: Surfaces, p: int, x: float, y: float, z: float):
    """Return a world point in the axes of plate ``p``, relative to the centre of its surface."""
    dx = x - s.centre[p, 0]
    dy = y - s.centre[p, 1]
    dz = z - s.centre[p, 2]
    R = s.axes[p]
    return (
        R[0, 0] * dx + R[1, 0] * dy + R[2, 0] * dz,
        R[0, 1] * dx + R[1, 1] * dy + R[2, 1] * dz,
        R[0, 2] * dx + R[1, 2] * dy + R[2, 2] * dz,
    )


@kernel
def plate_at(s: Surfaces, x: float, y: float, z: float) -> int:
    """Return the plate that contains a world point, the first one at a common border; -1 for the floor."""
    for p in range(s.centre.shape[0]):
        u, v, w = local(s, p, x, y, z)
        if abs(u) <= s.half[p, 0] and abs(v) <= s.half[p, 1] and abs(w) <= REACH:
            return p
    return -1


@kernel
def add_force(s: Surfaces, p: int, at, impulse, moment, at_once: float) -> None:  # type: ignore[no-untyped-def]
    """Add an impulse (3,) and its moment (3,) about a world point, in world axes, to plate ``p``; -1 for the floor.

    ``at_once`` is the fraction of the impulse that is an impact.
    """
    x, y, z = at[0], at[1], at[2]
    fx, fy, fz = impulse[0], impulse[1], impulse[2]
    mx, my, mz = moment[0], moment[1], moment[2]
    if p < 0:
        last = s.load[s.centre.shape[0]]
        last[0] += fx
        last[1] += fy
        last[2] += fz
        last[3] += mx + y * fz - z * fy
        last[4] += my + z * fx - x * fz
        last[5] += mz + x * fy - y * fx
        return
    dx = x - s.origin[p, 0]
    dy = y - s.origin[p, 1]
    dz = z - s.origin[p, 2]
    ax = mx + dy * fz - dz * fy
    ay = my + dz * fx - dx * fz
    az = mz + dx * fy - dy * fx
    R = s.axes[p]
    for a in range(3):
        force = R[0, a] * fx + R[1, a] * fy + R[2, a] * fz
        moment = R[0, a] * ax + R[1, a] * ay + R[2, a] * az
        s.load[p, a] += force
        s.load[p, 3 + a] += moment
        s.at_once[p, a] += at_once * force
        s.at_once[p, 3 + a] += at_once * moment


@kernel
def add_point(s: Surfaces, point: Array, axes: Array, impulse: Array, sign: float) -> None:
    """Add a force at a world point (3,): ``sign`` times an impulse (3,) along the columns of ``axes``."""
    f0, f1, f2 = sign * impulse[0], sign * impulse[1], sign * impulse[2]
    fx = axes[0, 0] * f0 + axes[0, 1] * f1 + axes[0, 2] * f2
    fy = axes[1, 0] * f0 + axes[1, 1] * f1 + axes[1, 2] * f2
    fz = axes[2, 0] * f0 + axes[2, 1] * f1 + axes[2, 2] * f2
    p = plate_at(s, point[0], point[1], point[2])
    add_force(s, p, point, (fx, fy, fz), NO_MOMENT, 0.0)
