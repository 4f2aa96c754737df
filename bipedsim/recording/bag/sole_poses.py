"""Where the soles were, by forward kinematics of many rows at once."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from scipy.spatial.transform import Rotation

from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.recording.recording import Recording


def put_sole_poses(out: Recording, robot: Robot) -> None:
    """Fill ``sole_poses`` by forward kinematics from the true base pose and the measured joints.

    They stay unknown where joints are, such as those of a planar base, that nothing measures.
    """
    model = robot.model
    if set(robot.joint_names) - set(out.joint_names) or model.nq > robot.nu + (7 if robot.free_flyer else 0):
        return
    order = [out.joint_names.index(name) for name in robot.joint_names]
    known = np.isfinite(out.joint_position).all(axis=1)
    if robot.free_flyer:
        known &= np.isfinite(out.base_pose).all(axis=1) & (np.abs(out.base_pose[:, 3:]).max(axis=1) > 0.0)
    rows = np.flatnonzero(known)
    if not len(rows):
        return
    column_of = dict(zip(robot.idx_q.tolist(), order, strict=True))
    for k, foot in enumerate(out.feet):
        sole = next((one for one in robot.soles if one.name == foot), None)
        if sole is None:
            continue
        position, turn = np.zeros((len(rows), 3)), Rotation.identity(len(rows))
        for joint in list(model.supports[sole.joint_id])[1:]:
            position, turn = _then(position, turn, model.jointPlacements[joint])
            if robot.free_flyer and joint == 1:
                position = position + turn.apply(out.base_pose[rows, :3])
                turn = turn * Rotation.from_quat(out.base_pose[rows, 3:])
                continue
            angle = out.joint_position[rows, column_of[model.idx_qs[joint]], None]
            along, about = _motion(model, joint)
            if along.any():
                position = position + turn.apply(angle * along)
            if about.any():
                turn = turn * Rotation.from_rotvec(angle * about)
        position, turn = _then(position, turn, sole.placement_joint_sole)
        out.sole_poses[rows, k, :3] = position
        out.sole_poses[rows, k, 3:] = turn.as_quat(canonical=True)


def _then(position: Array, turn: Rotation, placement: pin.SE3) -> tuple[Array, Rotation]:
    return position + turn.apply(placement.translation), turn * Rotation.from_matrix(placement.rotation)


def _motion(model: pin.Model, joint: int) -> tuple[Array, Array]:
    """Return the direction (3,) in which a joint of one degree of freedom slides, and the axis (3,) about it turns."""
    data = model.joints[joint].createData()
    model.joints[joint].calc(data, pin.neutral(model))
    column = np.asarray(data.S).reshape(6)
    return column[:3], column[3:]
