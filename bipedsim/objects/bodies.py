"""State of free rigid bodies, and how they move between contacts.

A body moves with the velocity of its centre of mass and its angular velocity, both in world axes. Without contact its
momentum is what forces from outside make of it, to rounding: the angular momentum about the centre of mass is carried
over a step, and turned back into a velocity by the inertia in the attitude at its end (midpoint rule on SO(3), second
order; Simo and Wong 1991). The centre of mass follows its parabola.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.numerics import (
    Array,
    assign,
    exp3,
    from_quaternion,
    kernel,
    mul,
    mul_t,
    product,
    to_quaternion,
)

ITERATIONS, SETTLED = 12, 1e-15
"""Fixed-point iterations of the midpoint rule at most, and the relative change [rad] that ends them."""


class Bodies(NamedTuple):
    """N free bodies, and links of a robot behind them; work arrays belong to the part of a step that is being made.

    Attributes:
        mass: (N,) [kg]. inertia, inverse: (N, 3, 3) about the centre of mass in body axes [kg.m^2], and its inverse.
        com: (N, 3) centre of mass in the frame of the body [m].
        position: (A, 3) centre of mass in the world [m], of links the origin of their joint. R: (A, 3, 3) attitude.
        quaternion: (N, 4) the same, x y z w.
        v, w: (A, 3) velocity of that point and angular velocity in world axes.
        gravity: (3,) [m/s^2].
        force, torque: (N, 3) of pushes, mean over the step: force [N], and torque about the centre of mass [N.m].
        mobility: (N, 3, 3) inverse inertia in world axes: in the middle of a part, else of the moment.
        v_free, w_free: (N, 3) velocities at the end of the part without contact.
        turn: (N, 3) rotation vector of the part without contact [rad].
        v_end, w_end: (N, 3) velocities at the end of the part.
        impulse: (N, 6) of all contacts in the part, force and torque about the centre of mass [N.s, N.m.s].
        contact: (N, 6) the same over the step, impacts included.
        at_end: (N,) 1 where the way follows the velocity at the end of the part, as contacts were closed within it;
            between 0 and 1, for which share of the part an impact acts; else 0.
        A, B: (3, 3) work.
    """

    mass: Annotated[Array, "N"]
    inertia: Annotated[Array, "N", 3, 3]
    inverse: Annotated[Array, "N", 3, 3]
    com: Annotated[Array, "N", 3]
    position: Annotated[Array, "A", 3]
    quaternion: Annotated[Array, "N", 4]
    R: Annotated[Array, "A", 3, 3]
    v: Annotated[Array, "A", 3]
    w: Annotated[Array, "A", 3]
    gravity: Annotated[Array, 3]
    force: Annotated[Array, "N", 3]
    torque: Annotated[Array, "N", 3]
    mobility: Annotated[Array, "N", 3, 3]
    v_free: Annotated[Array, "N", 3]
    w_free: Annotated[Array, "N", 3]
    turn: Annotated[Array, "N", 3]
    v_end: Annotated[Array, "N", 3]
    w_end: Annotated[Array, "N", 3]
    impulse: Annotated[Array, "N", 6]
    contact: Annotated[Array, "N", 6]
    at_end: Annotated[Array, "N"]
    A: Annotated[Array, 3, 3]
    B: Annotated[Array, 3, 3]


@kernel
def place(b: Bodies) -> None:
    """Fill attitudes and mobilities of all bodies."""
    for i in range(b.mass.shape[0]):
        from_quaternion(b.quaternion[i], b.R[i])
        _fill_mobility(b, i, b.R[i])


@kernel
def _fill_mobility(b: Bodies, i: int, R) -> None:
    """Fill R I^-1 R^T of body ``i``."""
    product(R, b.inverse[i], b.A)
    for r in range(3):
        for c in range(3):
            total = 0.0
            for k in range(3):
                total += b.A[r, k] * R[c, k]
            b.mobility[i, r, c] = total


@kernel
def fly(b: Bodies, i: int, s: float) -> None:
    """Fill where body ``i`` would get in ``s`` seconds without contact: velocities, and the rotation on the way.

    Its mobility becomes that in the middle.
    """
    for a in range(3):
        b.v_free[i, a] = b.v[i, a] + s * (b.gravity[a] + b.force[i, a] / b.mass[i])
    spin = mul(b.R[i], mul(b.inertia[i], mul_t(b.R[i], b.w[i])))
    tau = b.torque[i]
    half = (spin[0] + 0.5 * s * tau[0], spin[1] + 0.5 * s * tau[1], spin[2] + 0.5 * s * tau[2])
    turn = b.turn[i]
    for a in range(3):
        turn[a] = s * b.w[i, a]
    for _ in range(ITERATIONS):
        exp3(turn, 0.5, b.A)
        product(b.A, b.R[i], b.B)
        now = mul(b.B, mul(b.inverse[i], mul_t(b.B, half)))
        change = 0.0
        size = 0.0
        for a in range(3):
            change = max(change, abs(s * now[a] - turn[a]))
            size = max(size, abs(turn[a]))
            turn[a] = s * now[a]
        if not change > SETTLED * size:
            break
    _fill_mobility(b, i, b.B)
    exp3(turn, 1.0, b.A)
    product(b.A, b.R[i], b.B)
    end = (spin[0] + s * tau[0], spin[1] + s * tau[1], spin[2] + s * tau[2])
    assign(b.w_free[i], mul(b.B, mul(b.inverse[i], mul_t(b.B, end))))


@kernel
def finish(b: Bodies, share: float) -> None:
    """Fill the velocities at the end of a part from those without contact and ``share`` of the impulses."""
    for i in range(b.mass.shape[0]):
        torque = mul(b.mobility[i], b.impulse[i, 3:])
        for a in range(3):
            b.v_end[i, a] = b.v_free[i, a] + share * b.impulse[i, a] / b.mass[i]
            b.w_end[i, a] = b.w_free[i, a] + share * torque[a]


@kernel
def move(b: Bodies, s: float) -> None:
    """Take all bodies to the end of a part of ``s`` seconds whose velocities :func:`finish` has filled.

    Velocities go linearly from beginning to end, and the way is their mean: of second order, and in flight exact.
    """
    for i in range(b.mass.shape[0]):
        half = s * b.at_end[i] if b.at_end[i] > 0.0 else 0.5 * s
        for a in range(3):
            way = s * b.v_end[i, a] if b.at_end[i] == 1.0 else 0.5 * s * (b.v[i, a] + b.v_end[i, a])
            if b.at_end[i] > 0.0 and b.at_end[i] != 1.0:
                way += (half - 0.5 * s) * (b.v_end[i, a] - b.v_free[i, a])
            b.position[i, a] += way
            b.turn[i, a] += half * (b.w_end[i, a] - b.w_free[i, a])
            b.v[i, a] = b.v_end[i, a]
            b.w[i, a] = b.w_end[i, a]
        if b.turn[i, 0] != 0.0 or b.turn[i, 1] != 0.0 or b.turn[i, 2] != 0.0:
            exp3(b.turn[i], 1.0, b.A)
            product(b.A, b.R[i], b.B)
            to_quaternion(b.B, b.quaternion[i])
            length = 0.0
            for a in range(4):
                length += b.quaternion[i, a] ** 2
            for a in range(4):
                b.quaternion[i, a] /= np.sqrt(length)
    place(b)


@kernel
def kick(b: Bodies) -> None:
    """Change all velocities at once by the impulses of contact."""
    for i in range(b.mass.shape[0]):
        torque = mul(b.mobility[i], b.impulse[i, 3:])
        for a in range(3):
            b.v[i, a] += b.impulse[i, a] / b.mass[i]
            b.w[i, a] += torque[a]


@kernel
def note(b: Bodies, share: float) -> None:
    """Add ``share`` of the impulses of a part to those of the step."""
    for i in range(b.mass.shape[0]):
        for x in range(6):
            b.contact[i, x] += share * b.impulse[i, x]


@kernel
def kinetic_energy(b: Bodies) -> float:
    """Return the kinetic energy of all bodies [J]."""
    total = 0.0
    for i in range(b.mass.shape[0]):
        local = mul_t(b.R[i], b.w[i])
        spin = mul(b.inertia[i], local)
        for a in range(3):
            total += 0.5 * (b.mass[i] * b.v[i, a] ** 2 + spin[a] * local[a])
    return total
