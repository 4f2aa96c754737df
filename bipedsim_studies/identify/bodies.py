"""Describe rigid bodies by ten numbers of which every choice is physically possible."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from bipedsim.numerics import Array

_STEP = 1e-6
_THINNEST = 1e-5
"""Smallest radius of gyration of a body [m]; that of a point mass is zero, and could not be strained."""


def body(described: pin.Inertia, numbers: Array) -> pin.Inertia:
    """Return the inertia of a body that differs from its description.

    The second moments of mass about the CoM, S = tr(I) / 2 - I, are S0^(1/2) exp(E) S0^(1/2) with a symmetric strain E.
    They are positive definite for all E, which is all that an inertia needs (Wensing, Kim and Slotine, IEEE RA-L 2018).

    Args:
        described: Inertia of the description.
        numbers: (10,) logarithm of the ratio of masses, shift of the CoM (3) [m], strain E: xx, yy, zz, xy, xz, yz.
    """
    ratio = np.exp(numbers[0])
    second = 0.5 * np.trace(described.inertia) * np.eye(3) - described.inertia
    moments, axes = np.linalg.eigh(second)
    root = (axes * np.sqrt(np.maximum(moments, described.mass * _THINNEST**2))) @ axes.T
    xx, yy, zz, xy, xz, yz = numbers[4:]
    strain, directions = np.linalg.eigh(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
    strained = ratio * root @ (directions * np.exp(strain)) @ directions.T @ root
    inertia = np.trace(strained) * np.eye(3) - strained
    return pin.Inertia(described.mass * ratio, described.lever + numbers[1:4], 0.5 * (inertia + inertia.T))


def body_and_slope(described: pin.Inertia, numbers: Array) -> tuple[pin.Inertia, Array]:
    """Return :func:`body`, and the derivative (10, 10) of its dynamic parameters with respect to ``numbers``."""
    slope = np.empty((10, 10))
    for i in range(10):
        step = np.zeros(10)
        step[i] = _STEP
        ahead, behind = (body(described, numbers + sign * step).toDynamicParameters() for sign in (1.0, -1.0))
        slope[:, i] = (ahead - behind) / (2.0 * _STEP)
    return body(described, numbers), slope
