"""Compute the sole poses of many rows at once by forward kinematics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pinocchio as pin

from bipedsim.model import Robot
from bipedsim.numerics import Array, Indices
from bipedsim.recording.recording import Recording

_MADE_OF = {"sole_poses": ("base_pose", "joint_position")}
PIECE = 4096
"""Number of rows per batch, so that intermediate results fit into the cache."""
Pose = tuple[Any, ...]
"""Position and quaternion x y z w; each a number or an array (n,)."""


def made_of(columns: Iterable[str]) -> set[str]:
    """Return the source columns of those columns that are computed and have no topic."""
    return {name for column in columns for name in _MADE_OF.get(column, ())}


def put_sole_poses(out: Recording, robot: Robot) -> None:
    """Fill ``sole_poses`` by forward kinematics from the true base pose and the measured joints.

    Poses stay NaN if a joint is not measured, such as the joints of a planar base.
    """
    model = robot.model
    movable = list(model.names)[2 if robot.free_flyer else 1 :]
    if set(movable) - set(out.joint_names):
        return
    order = [out.joint_names.index(name) for name in movable]
    known = np.isfinite(out.joint_position).all(axis=1)
    if robot.free_flyer:
        known &= np.isfinite(out.base_pose).all(axis=1) & (np.abs(out.base_pose[:, 3:]).max(axis=1) > 0.0)
    rows = np.flatnonzero(known)
    if not len(rows):
        return
    column_of = {model.joints[model.getJointId(name)].idx_q: at for name, at in zip(movable, order, strict=True)}
    for first in range(0, len(rows), PIECE):
        _put(out, robot, rows[first : first + PIECE], column_of)


def _put(out: Recording, robot: Robot, rows: Indices, column_of: dict[int, int]) -> None:
    """Fill some rows; ``column_of`` maps a joint's index in q to its column in ``joint_position``."""
    model = robot.model
    base, joints = out.base_pose[rows], out.joint_position[rows]
    for k, foot in enumerate(out.feet):
        sole = next((candidate for candidate in robot.soles if candidate.name == foot), None)
        if sole is None:
            continue
        pose = _of(pin.SE3.Identity())
        for joint in list(model.supports[sole.joint_id])[1:]:
            pose = _then(pose, _of(model.jointPlacements[joint]))
            if robot.free_flyer and joint == 1:
                pose = _then(pose, tuple(base.T))
                continue
            pose = _then(pose, _motion(model, joint, joints[:, column_of[model.idx_qs[joint]]]))
        pose = _then(pose, _of(sole.placement_joint_sole))
        sign = np.where(pose[6] < 0.0, -1.0, 1.0)
        norm = sign * np.sqrt(sum(part * part for part in pose[3:]))
        out.sole_poses[rows, k] = np.stack([*pose[:3], *(part / norm for part in pose[3:])], axis=-1)


def _of(placement: pin.SE3) -> Pose:
    return tuple(pin.SE3ToXYZQUAT(placement))


def _motion(model: pin.Model, joint: int, q: Array) -> Pose:
    """Return the pose of a prismatic or revolute joint displaced by ``q`` (n,)."""
    data = model.joints[joint].createData()
    model.joints[joint].calc(data, pin.neutral(model))
    axis = np.asarray(data.S).reshape(6)
    sine = np.sin(0.5 * q)
    if not axis[3:].any():
        return (*(component * q for component in axis[:3]), 0.0, 0.0, 0.0, 1.0)
    return (0.0, 0.0, 0.0, *(component * sine for component in axis[3:]), np.cos(0.5 * q))


def _then(a: Pose, b: Pose) -> Pose:
    """Compose two poses: ``b`` is relative to ``a``."""
    x, y, z, w = a[3:]
    px, py, pz, bx, by, bz, bw = b
    # These lines rotate the point by the quaternion: p + 2 w (u x p) + 2 u x (u x p).
    tx, ty, tz = 2.0 * (y * pz - z * py), 2.0 * (z * px - x * pz), 2.0 * (x * py - y * px)
    return (
        a[0] + px + w * tx + y * tz - z * ty,
        a[1] + py + w * ty + z * tx - x * tz,
        a[2] + pz + w * tz + x * ty - y * tx,
        w * bx + x * bw + y * bz - z * by,
        w * by - x * bz + y * bw + z * bx,
        w * bz + x * by - y * bx + z * bw,
        w * bw - x * bx - y * by - z * bz,
    )
