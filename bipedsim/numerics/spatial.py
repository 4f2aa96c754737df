"""Vectors, rotations and motions in space, for compiled functions.

A vector argument is any object with three numbers. A returned vector is a tuple of three, which stays in registers;
:func:`assign` and :func:`accumulate` write it to an array. A pose (12,) is a placement as pinocchio stores it: rotation
column by column, then translation. A motion (6,) has the linear part first. The tests define each function by a line of
numpy.
"""

from __future__ import annotations

import math

import numpy as np

from bipedsim.numerics.arrays import Array
from bipedsim.numerics.jit import kernel

Three = tuple[float, float, float]
Vector = Array | Three
Motion = Array | tuple[float, float, float, float, float, float]


@kernel
def assign(out: Array, v: Vector) -> None:
    """Set the first three entries of ``out`` to the vector v."""
    out[0], out[1], out[2] = v[0], v[1], v[2]


@kernel
def accumulate(out: Array, v: Vector) -> None:
    """Add the vector v to the first three entries of ``out``."""
    out[0] += v[0]
    out[1] += v[1]
    out[2] += v[2]


@kernel
def minus(a: Vector, b: Vector) -> Three:
    """Return a - b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@kernel
def dot(a: Vector, b: Vector) -> float:
    """Return a . b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@kernel
def cross(a: Vector, b: Vector) -> Three:
    """Return a x b."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@kernel
def mul(R: Array, v: Vector) -> Three:
    """Return R v, R (3, 3)."""
    return (
        R[0, 0] * v[0] + R[0, 1] * v[1] + R[0, 2] * v[2],
        R[1, 0] * v[0] + R[1, 1] * v[1] + R[1, 2] * v[2],
        R[2, 0] * v[0] + R[2, 1] * v[1] + R[2, 2] * v[2],
    )


@kernel
def mul_t(R: Array, v: Vector) -> Three:
    """Return R^T v, R (3, 3)."""
    return (
        R[0, 0] * v[0] + R[1, 0] * v[1] + R[2, 0] * v[2],
        R[0, 1] * v[0] + R[1, 1] * v[1] + R[2, 1] * v[2],
        R[0, 2] * v[0] + R[1, 2] * v[1] + R[2, 2] * v[2],
    )


@kernel
def product(A: Array, B: Array, out: Array) -> None:
    """Fill ``out`` with A B, all (3, 3); ``out`` must not be A or B."""
    for i in range(3):
        for j in range(3):
            out[i, j] = A[i, 0] * B[0, j] + A[i, 1] * B[1, j] + A[i, 2] * B[2, j]


@kernel
def act(pose: Array, r: Vector) -> Three:
    """Return the point r, given in the frame ``pose``, in the parent frame."""
    return (
        pose[9] + pose[0] * r[0] + pose[3] * r[1] + pose[6] * r[2],
        pose[10] + pose[1] * r[0] + pose[4] * r[1] + pose[7] * r[2],
        pose[11] + pose[2] * r[0] + pose[5] * r[1] + pose[8] * r[2],
    )


@kernel
def turn(pose: Array, v: Vector) -> Three:
    """Return the vector v, given in the frame ``pose``, in the axes of the parent frame."""
    return (
        pose[0] * v[0] + pose[3] * v[1] + pose[6] * v[2],
        pose[1] * v[0] + pose[4] * v[1] + pose[7] * v[2],
        pose[2] * v[0] + pose[5] * v[1] + pose[8] * v[2],
    )


@kernel
def turn_axes(pose: Array, R: Array, out: Array) -> None:
    """Fill ``out`` with the rotation of ``pose`` times R, both (3, 3); ``out`` must not be R."""
    for i in range(3):
        for j in range(3):
            total = 0.0
            for c in range(3):
                total += pose[3 * c + i] * R[c, j]
            out[i, j] = total


@kernel
def point_velocity(motion: Motion, r: Vector) -> Three:
    """Return the velocity u + w x r of the point r of a body that moves with ``motion`` = (u, w)."""
    return (
        motion[0] + motion[4] * r[2] - motion[5] * r[1],
        motion[1] + motion[5] * r[0] - motion[3] * r[2],
        motion[2] + motion[3] * r[1] - motion[4] * r[0],
    )


@kernel
def point_acceleration(motion: Motion, acceleration: Motion, r: Vector) -> Three:
    """Return the classical acceleration of the point r of a body.

    The spatial ``acceleration`` (6,) is the rate of the body's velocity field at a fixed point. A point that moves with
    the body has the additional acceleration w x u (Featherstone 2008, section 2.11).
    """
    u = point_velocity(motion, r)
    a = point_velocity(acceleration, r)
    return (
        a[0] + motion[4] * u[2] - motion[5] * u[1],
        a[1] + motion[5] * u[0] - motion[3] * u[2],
        a[2] + motion[3] * u[1] - motion[4] * u[0],
    )


@kernel
def add_wrench(out: Array, f: Vector, r: Vector) -> None:
    """Add the force ``f`` at the point ``r`` to the wrench ``out`` (6,)."""
    accumulate(out, f)
    accumulate(out[3:], cross(r, f))


@kernel
def exp3(phi: Vector, scale: float, out: Array) -> None:
    """Fill ``out`` (3, 3) with the rotation by the vector ``scale`` phi [rad], by Rodrigues' formula."""
    square = scale * scale * (phi[0] * phi[0] + phi[1] * phi[1] + phi[2] * phi[2])
    angle = math.sqrt(square)
    if angle < 1e-4:
        a, b = 1.0 - square / 6.0, 0.5 - square / 24.0
    else:
        a, b = math.sin(angle) / angle, (1.0 - math.cos(angle)) / square
    a *= scale
    for i in range(3):
        for j in range(3):
            out[i, j] = b * scale * scale * phi[i] * phi[j]
        out[i, i] += 1.0 - b * square
    out[0, 1] -= a * phi[2]
    out[1, 0] += a * phi[2]
    out[0, 2] += a * phi[1]
    out[2, 0] -= a * phi[1]
    out[1, 2] -= a * phi[0]
    out[2, 1] += a * phi[0]


@kernel
def turn_quaternion(quaternion: Array, phi: Vector, out: Array) -> None:
    """Fill ``out`` (4,) with the unit quaternion x y z w rotated by the vector phi [rad] in its own axes.

    ``out`` must not be ``quaternion``.
    """
    angle = math.sqrt(phi[0] * phi[0] + phi[1] * phi[1] + phi[2] * phi[2])
    share = 0.5 - angle * angle / 48.0 if angle < 1e-4 else math.sin(0.5 * angle) / angle
    x, y, z, w = quaternion[0], quaternion[1], quaternion[2], quaternion[3]
    a, b, c, d = share * phi[0], share * phi[1], share * phi[2], math.cos(0.5 * angle)
    out[0] = w * a + x * d + y * c - z * b
    out[1] = w * b + y * d + z * a - x * c
    out[2] = w * c + z * d + x * b - y * a
    out[3] = w * d - x * a - y * b - z * c
    length = math.sqrt(out[0] * out[0] + out[1] * out[1] + out[2] * out[2] + out[3] * out[3])
    for i in range(4):
        out[i] /= length


@kernel
def rotation_error(R: Array, goal: Array) -> Three:
    """Return the vector that rotates R to ``goal``, both (3, 3), for small angles and in their common reference axes.

    It is half the sum of the cross products of their columns, which is the rotation vector up to third order.
    """
    x = y = z = 0.0
    for c in range(3):
        turn_c = cross(R[:, c], goal[:, c])
        x += 0.5 * turn_c[0]
        y += 0.5 * turn_c[1]
        z += 0.5 * turn_c[2]
    return x, y, z


@kernel
def from_quaternion(quaternion: Array, out: Array) -> None:
    """Fill ``out`` with the rotation matrix (3, 3) of the unit quaternion x y z w."""
    x, y, z, w = quaternion
    out[0, 0] = 1.0 - 2.0 * (y * y + z * z)
    out[0, 1] = 2.0 * (x * y - w * z)
    out[0, 2] = 2.0 * (x * z + w * y)
    out[1, 0] = 2.0 * (x * y + w * z)
    out[1, 1] = 1.0 - 2.0 * (x * x + z * z)
    out[1, 2] = 2.0 * (y * z - w * x)
    out[2, 0] = 2.0 * (x * z - w * y)
    out[2, 1] = 2.0 * (y * z + w * x)
    out[2, 2] = 1.0 - 2.0 * (x * x + y * y)


@kernel
def to_quaternion(R: Array, out: Array) -> None:
    """Fill ``out`` (4,) with the unit quaternion x y z w, w >= 0, of the rotation matrix R (3, 3)."""
    trace = R[0, 0] + R[1, 1] + R[2, 2]
    if trace > 0.0:
        w = 0.5 * np.sqrt(1.0 + trace)
        out[0] = (R[2, 1] - R[1, 2]) / (4.0 * w)
        out[1] = (R[0, 2] - R[2, 0]) / (4.0 * w)
        out[2] = (R[1, 0] - R[0, 1]) / (4.0 * w)
        out[3] = w
        return
    i = 0
    if R[1, 1] > R[0, 0]:
        i = 1
    if R[2, 2] > R[i, i]:
        i = 2
    j = (i + 1) % 3
    k = (i + 2) % 3
    x = 0.5 * np.sqrt(1.0 + R[i, i] - R[j, j] - R[k, k])
    w = (R[k, j] - R[j, k]) / (4.0 * x)
    sign = 1.0 if w >= 0.0 else -1.0
    out[i] = sign * x
    out[j] = sign * (R[i, j] + R[j, i]) / (4.0 * x)
    out[k] = sign * (R[i, k] + R[k, i]) / (4.0 * x)
    out[3] = sign * w
