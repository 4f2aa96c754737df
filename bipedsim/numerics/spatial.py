"""Rotation matrices to quaternions, for compiled functions."""

from __future__ import annotations

import numpy as np

from bipedsim.numerics.jit import kernel


@kernel
def to_quaternion(R, out):
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
