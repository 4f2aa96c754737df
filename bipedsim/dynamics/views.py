"""Live views of pinocchio's results as arrays. A kernel gets them once; every later call refills them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from bipedsim.numerics import Array


def live_rows(views: Sequence[Array], width: int) -> Array:
    """Return views at equal distances in memory as one array (len(views), width), without a copy.

    Raises:
        RuntimeError: The distances differ: this version of pinocchio uses another memory layout.
    """
    first = views[0]
    stride = views[1].ctypes.data - first.ctypes.data if len(views) > 1 else width * first.itemsize
    rows: Array = np.lib.stride_tricks.as_strided(first, (len(views), width), (stride, first.itemsize))
    for row, view in zip(rows, views, strict=True):
        if row.ctypes.data != view.ctypes.data:
            raise RuntimeError(f"pinocchio {pin.__version__} does not store its results at equal distances")
    return rows


def live_poses(data: pin.Data, n_joints: int) -> Array:
    """Return data.oMi as a live array (n_joints, 12): rotation column after column, then translation [m].

    Raises:
        RuntimeError: This version of pinocchio stores placements in another layout.
    """
    placements = [data.oMi[i] for i in range(n_joints)]
    poses = live_rows([np.asarray(placement.rotation).T.reshape(-1) for placement in placements], 12)
    if poses[0, 9:].ctypes.data != np.asarray(placements[0].translation).ctypes.data:
        raise RuntimeError(f"pinocchio {pin.__version__} does not store translations behind rotations")
    return poses


def live_motions(motions: Sequence[pin.Motion], n_joints: int) -> Array:
    """Return data.v or data.a_gf as a live array (n_joints, 6), linear first, each in the frame of its joint.

    Raises:
        RuntimeError: This version of pinocchio stores motions in another layout.
    """
    return live_rows([np.asarray(motions[i].linear) for i in range(n_joints)], 6)
