"""State of free rigid bodies, and their motion between contacts.

A body moves with the velocity of its centre of mass and its angular velocity, both in world axes. Momentum is the
primary state: velocities follow from it and from the attitude, so every step balances momentum to rounding. The centre
of mass follows its parabola.

Free rotation is composed of exact rotations of two kinds: that of a symmetric top, and that of the difference between
the body and the top. This is a splitting method (McLachlan and Quispel, "Splitting methods", Acta Numerica 2002,
section 3). The rotation of balls, cylinders and other symmetric bodies is thus exact for any step. For all others the
composition is of order six (Kahan and Li, "Composition constants for raising the orders of unconventional schemes",
Math. Comp. 66, 1997), in sub-steps of a small angle. It preserves angular momentum to rounding. It is symmetric and
symplectic, so its energy does not drift. Half of an external torque acts before the rotation and half after it.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.numerics import (
    Array,
    Integers,
    assign,
    exp3,
    from_quaternion,
    kernel,
    mul,
    mul_t,
    product,
    to_quaternion,
)

SUB_TURN, MOST_SUB_TURNS = 0.1, 1000
"""Maximum angle [rad] of a sub-step of the free rotation of an asymmetric body, and maximum number of sub-steps."""
EXACT = 1e-5
"""Angle [rad] of a free rotation up to which a single stage is exact to rounding."""
SYMMETRIC = 1e-12
"""Relative difference below which two moments of inertia count as equal."""
FAST = 0.3
"""Rotation [rad] in a sub-step above which forces computed at its midpoint are not accurate."""
STAGES = (
    0.39216144400731413928,
    0.33259913678935943860,
    -0.70624617255763935981,
    0.08221359629355080023,
    0.79854399093482996340,
    0.08221359629355080023,
    -0.70624617255763935981,
    0.33259913678935943860,
    0.39216144400731413928,
)
"""Fractions of a sub-step: the composition s9odr6a of Kahan and Li."""


class Bodies(NamedTuple):
    """N free bodies, followed by the links of a robot (A bodies in total).

    A time step is divided into sub-steps; work arrays belong to the current sub-step.

    Attributes:
        mass: (N,) [kg].
        inertia: (N, 3, 3) about the centre of mass in body axes [kg.m^2].
        moments: (N, 3) principal moments [kg.m^2]; the first two are the most similar ones.
        principal: (N, 3, 3) principal axes in body axes, as columns.
        com: (N, 3) centre of mass in the frame of the body [m].
        reach: (N,) maximum distance of a point of the body from its centre of mass [m].
        position: (A, 3) centre of mass in the world [m]; for links the origin of their joint.
        R: (A, 3, 3) attitude.
        quaternion: (N, 4) attitude, x y z w.
        v, w: (A, 3) velocity of ``position``, and angular velocity, in world axes.
        gravity: (3,) [m/s^2].
        force, torque: (N, 3) external pushes, mean over the step: force [N], and torque about the centre of mass [N.m].
        mobility: (N, 3, 3) current inverse inertia in world axes.
        v_free, w_free, spin_free: (N, 3) velocities and angular momentum [N.m.s] at the end of the sub-step without
            contact.
        R_free, mobility_free: (N, 3, 3) attitude and inverse inertia at the end of the sub-step without contact.
        v_end, w_end, R_end: (N, 3), (N, 3), (N, 3, 3) velocities and attitude at the end of the sub-step.
        rough: (1,) number of rotations that needed more than ``MOST_SUB_TURNS`` sub-steps.
        impulse: (N, 6) of all contacts in the sub-step, force and torque about the centre of mass [N.s, N.m.s].
        contact: (N, 6) the same over the step, including impacts.
        at_end: (N,) 1 if the displacement follows the velocity at the end of the sub-step, because contacts closed
            within it. A value between 0 and 1 is the fraction of the sub-step for which an impact acts. Otherwise 0.
        A, B, Q, m: (3, 3), (3, 3), (3, 3), (3,) work arrays.
    """

    mass: Annotated[Array, "N"]
    inertia: Annotated[Array, "N", 3, 3]
    moments: Annotated[Array, "N", 3]
    principal: Annotated[Array, "N", 3, 3]
    com: Annotated[Array, "N", 3]
    reach: Annotated[Array, "N"]
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
    spin_free: Annotated[Array, "N", 3]
    R_free: Annotated[Array, "N", 3, 3]
    mobility_free: Annotated[Array, "N", 3, 3]
    v_end: Annotated[Array, "N", 3]
    w_end: Annotated[Array, "N", 3]
    R_end: Annotated[Array, "N", 3, 3]
    rough: Annotated[Integers, 1]
    impulse: Annotated[Array, "N", 6]
    contact: Annotated[Array, "N", 6]
    at_end: Annotated[Array, "N"]
    A: Annotated[Array, 3, 3]
    B: Annotated[Array, 3, 3]
    Q: Annotated[Array, 3, 3]
    m: Annotated[Array, 3]


@kernel
def place(b: Bodies) -> None:
    """Fill attitudes and mobilities of all bodies from their quaternions."""
    for i in range(b.mass.shape[0]):
        from_quaternion(b.quaternion[i], b.R[i])
        _fill_mobility(b, i, b.R[i], b.mobility[i])


@kernel
def _fill_mobility(b: Bodies, i: int, R, out) -> None:
    """Fill ``out`` with the inverse inertia of body ``i`` in world axes, with the attitude R (3, 3)."""
    product(R, b.principal[i], b.A)
    for r in range(3):
        for c in range(r + 1):
            total = 0.0
            for k in range(3):
                total += b.A[r, k] * b.A[c, k] / b.moments[i, k]
            out[r, c] = total
            out[c, r] = total


@kernel
def angular_momentum(b: Bodies, i: int) -> tuple[float, float, float]:
    """Return the angular momentum of body ``i`` about its centre of mass, in world axes [N.m.s]."""
    return mul(b.R[i], mul(b.inertia[i], mul_t(b.R[i], b.w[i])))


@kernel
def fly(b: Bodies, i: int, s: float) -> None:
    """Fill velocities, momentum and attitude of body ``i`` after ``s`` seconds without contact."""
    for a in range(3):
        b.v_free[i, a] = b.v[i, a] + s * (b.gravity[a] + b.force[i, a] / b.mass[i])
    spin = angular_momentum(b, i)
    tau = b.torque[i]
    half = (spin[0] + 0.5 * s * tau[0], spin[1] + 0.5 * s * tau[1], spin[2] + 0.5 * s * tau[2])
    _rotate(b, i, half, s)
    for a in range(3):
        b.spin_free[i, a] = spin[a] + s * tau[a]
    _fill_mobility(b, i, b.R_free[i], b.mobility_free[i])
    assign(b.w_free[i], mul(b.mobility_free[i], b.spin_free[i]))


@kernel
def _rotate(b: Bodies, i: int, spin, s: float) -> None:
    """Fill ``R_free`` with the attitude of body ``i`` after ``s`` seconds with the angular momentum ``spin`` (3,)."""
    moments = b.moments[i]
    Q, m = b.Q, b.m
    product(b.R[i], b.principal[i], Q)
    assign(m, mul_t(Q, spin))
    differs = 1.0 / moments[1] - 1.0 / moments[0]
    if abs(moments[0] - moments[1]) <= SYMMETRIC * moments[0]:
        _rotate_top(b, moments, s)
    else:
        angle = s * np.sqrt((m[0] / moments[0]) ** 2 + (m[1] / moments[1]) ** 2 + (m[2] / moments[2]) ** 2)
        # The default also applies if the angle is not finite.
        count = MOST_SUB_TURNS
        if angle <= SUB_TURN * MOST_SUB_TURNS:
            count = 1 + int(angle / SUB_TURN)
        else:
            b.rough[0] += 1
        stages = 1 if angle <= EXACT else len(STAGES)
        for _ in range(count):
            for k in range(stages):
                share = STAGES[k] if stages > 1 else 1.0
                t = share * s / count
                _rotate_second(b, 0.5 * t * differs * m[1])
                _rotate_top(b, moments, t)
                _rotate_second(b, 0.5 * t * differs * m[1])
    for r in range(3):
        for c in range(3):
            total = 0.0
            for k in range(3):
                total += Q[r, k] * b.principal[i, c, k]
            b.R_free[i, r, c] = total


@kernel
def _rotate_top(b: Bodies, moments, t: float) -> None:
    """Rotate the axes Q and the momentum m as a symmetric top whose first two moments equal the first one."""
    Q, m = b.Q, b.m
    about = mul(Q, m)
    by = t / moments[0]
    b.A[0, 0], b.A[0, 1], b.A[0, 2] = about
    exp3(b.A[0], by, b.B)
    product(b.B, Q, b.A)
    angle = t * m[2] * (1.0 / moments[2] - 1.0 / moments[0])
    c, s = np.cos(angle), np.sin(angle)
    for r in range(3):
        x, y = b.A[r, 0], b.A[r, 1]
        Q[r, 0] = c * x + s * y
        Q[r, 1] = c * y - s * x
        Q[r, 2] = b.A[r, 2]
    x, y = m[0], m[1]
    m[0] = c * x + s * y
    m[1] = c * y - s * x


@kernel
def _rotate_second(b: Bodies, angle: float) -> None:
    """Rotate the axes Q by ``angle`` [rad] about the second axis, and the momentum m in Q by the opposite angle."""
    Q, m = b.Q, b.m
    c, s = np.cos(angle), np.sin(angle)
    for r in range(3):
        x, z = Q[r, 0], Q[r, 2]
        Q[r, 0] = c * x - s * z
        Q[r, 2] = c * z + s * x
    x, z = m[0], m[2]
    m[0] = c * x - s * z
    m[2] = c * z + s * x


@kernel
def is_round(b: Bodies, i: int) -> bool:
    """Return whether the inertia of body ``i`` is the same about all axes."""
    moments = b.moments[i]
    return abs(moments[0] - moments[1]) + abs(moments[2] - moments[1]) <= SYMMETRIC * moments[0]


@kernel
def turns_far(b: Bodies, i: int, s: float) -> bool:
    """Return whether body ``i`` rotates far in ``s`` seconds; the rotation of a ball does not matter."""
    w = b.w[i]
    return s * np.sqrt(w[0] ** 2 + w[1] ** 2 + w[2] ** 2) > FAST and not is_round(b, i)


@kernel
def finish_body(b: Bodies, i: int, share: float, s: float) -> None:
    """Fill the end state of body ``i`` for a sub-step of ``s`` seconds with the fraction ``share`` of its impulses.

    Contact rotates the body by the change of its mean angular velocity. So the attitude at the end differs from that of
    the flight, and with it the inertia that converts momentum to velocity.
    """
    half = s * b.at_end[i] if b.at_end[i] > 0.0 else 0.5 * s
    torque = (share * b.impulse[i, 3], share * b.impulse[i, 4], share * b.impulse[i, 5])
    change = mul(b.mobility_free[i], torque)
    for a in range(3):
        b.v_end[i, a] = b.v_free[i, a] + share * b.impulse[i, a] / b.mass[i]
        b.w_end[i, a] = b.w_free[i, a] + change[a]
    if change[0] == 0.0 and change[1] == 0.0 and change[2] == 0.0:
        for r in range(3):
            assign(b.R_end[i, r], b.R_free[i, r])
        return
    exp3(change, half, b.B)
    product(b.B, b.R_free[i], b.R_end[i])
    if is_round(b, i):
        return
    moments = b.moments[i]
    product(b.R_end[i], b.principal[i], b.Q)
    spin = (b.spin_free[i, 0] + torque[0], b.spin_free[i, 1] + torque[1], b.spin_free[i, 2] + torque[2])
    m = mul_t(b.Q, spin)
    assign(b.w_end[i], mul(b.Q, (m[0] / moments[0], m[1] / moments[1], m[2] / moments[2])))


@kernel
def finish(b: Bodies, share: float, s: float) -> None:
    """Fill the end states of all bodies for a sub-step of ``s`` seconds with the fraction ``share`` of impulses."""
    for i in range(b.mass.shape[0]):
        finish_body(b, i, share, s)


@kernel
def fastest(b: Bodies) -> tuple[int, float]:
    """Return the body with the fastest point at the end of a sub-step, and its speed [m/s], which may be non-finite."""
    index = 0
    largest = 0.0
    for i in range(b.mass.shape[0]):
        v, w = b.v_end[i], b.w_end[i]
        speed = np.sqrt(v[0] ** 2 + v[1] ** 2 + v[2] ** 2)
        speed += b.reach[i] * np.sqrt(w[0] ** 2 + w[1] ** 2 + w[2] ** 2)
        # The negated comparison also catches NaN.
        if not speed <= largest:
            index = i
            largest = speed
    return index, largest


@kernel
def _displacement(b: Bodies, i: int, a: int, s: float) -> float:
    """Return the displacement [m] of body ``i`` along axis ``a`` in a sub-step that :func:`finish` has filled.

    Velocities change linearly over the sub-step, so the displacement follows their mean. This is of second order, and
    exact in flight.
    """
    if b.at_end[i] == 1.0:
        return s * b.v_end[i, a]
    displacement = 0.5 * s * (b.v[i, a] + b.v_end[i, a])
    if b.at_end[i] > 0.0:
        displacement += s * (b.at_end[i] - 0.5) * (b.v_end[i, a] - b.v_free[i, a])
    return displacement


@kernel
def end_position(b: Bodies, i: int, s: float) -> tuple[float, float, float]:
    """Return the centre of mass of body ``i`` at the end of a sub-step of ``s`` seconds [m]."""
    x = b.position[i]
    return x[0] + _displacement(b, i, 0, s), x[1] + _displacement(b, i, 1, s), x[2] + _displacement(b, i, 2, s)


@kernel
def move(b: Bodies, s: float) -> None:
    """Move all bodies to the end of a sub-step of ``s`` seconds that :func:`finish` has filled."""
    for i in range(b.mass.shape[0]):
        assign(b.position[i], end_position(b, i, s))
        for a in range(3):
            b.v[i, a] = b.v_end[i, a]
            b.w[i, a] = b.w_end[i, a]
        to_quaternion(b.R_end[i], b.quaternion[i])
        length = 0.0
        for a in range(4):
            length += b.quaternion[i, a] ** 2
        for a in range(4):
            b.quaternion[i, a] /= np.sqrt(length)
    place(b)


@kernel
def apply_impulses(b: Bodies) -> None:
    """Change all velocities instantaneously by the contact impulses."""
    for i in range(b.mass.shape[0]):
        torque = mul(b.mobility[i], b.impulse[i, 3:])
        for a in range(3):
            b.v[i, a] += b.impulse[i, a] / b.mass[i]
            b.w[i, a] += torque[a]


@kernel
def accumulate_impulses(b: Bodies, share: float) -> None:
    """Add the fraction ``share`` of the impulses of a sub-step to those of the step."""
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
