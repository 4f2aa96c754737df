"""Compute the position of a robot's feet relative to a ground plane, and translate the robot along the plane."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from bipedsim.errors import ConfigError
from bipedsim.ground import Ground
from bipedsim.model import Robot
from bipedsim.numerics import Array, Indices

_ALIGNED = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED


class FeetOnPlane:
    """Positions and velocities of the foot vertices, and their height above a ground of one plane.

    Args:
        robot: The robot.
        ground: One unbounded plane, so that a stride is the same everywhere.

    Attributes:
        normal: (3,) normal of the ground, in world axes.

    Raises:
        ConfigError: The robot has no feet, or the ground is not one plane.
    """

    def __init__(self, robot: Robot, ground: Ground) -> None:
        if len(ground.patches) != 1 or ground.patches[0].region is not None or ground.field is not None:
            raise ConfigError(
                "a return map needs one endless plane, such as `flat` or a slope, on which strides are the same "
                f"everywhere; this one has {len(ground.patches)} patches, a border or a height field",
                "ground",
            )
        if not robot.soles:
            raise ConfigError("no feet: its strides have no end", robot.name)
        self._robot = robot
        self._data = robot.model.createData()
        self._points = [sole.vertices_joint for sole in robot.soles]
        self._origin = ground.patches[0].point_world
        self.normal: Array = ground.patches[0].rotation_world_patch[:, 2]

    def points(self, q: Array, feet: ArrayLike) -> Array:
        """Return the vertices (n, 3) of ``feet`` (indices), in world axes [m]."""
        pin.forwardKinematics(self._robot.model, self._data, q)
        return np.vstack([self._of(k) for k in np.atleast_1d(feet)])

    def velocities(self, q: Array, v: Array, feet: ArrayLike) -> Array:
        """Return the velocities (n, 3) of the vertices of ``feet``, in world axes [m/s]."""
        pin.forwardKinematics(self._robot.model, self._data, q, v)
        rows = []
        for k in np.atleast_1d(feet):
            joint = self._robot.soles[k].joint_id
            motion = pin.getVelocity(self._robot.model, self._data, joint, _ALIGNED)
            arms = self._of(k) - self._data.oMi[joint].translation
            rows.append(motion.linear + np.cross(motion.angular, arms))
        return np.vstack(rows)

    def height(self, q: Array, foot: int) -> float:
        """Return the height of the lowest point of ``foot`` above the ground [m]."""
        lowest = float(((self.points(q, foot) - self._origin) @ self.normal).min())
        return lowest - self._robot.soles[foot].radius

    def com_height(self, q: Array) -> float:
        """Return the height of the centre of mass above the ground [m]."""
        com = pin.centerOfMass(self._robot.model, self._data, q)
        return float((com - self._origin) @ self.normal)

    def _of(self, k: int) -> Array:
        pose = self._data.oMi[self._robot.soles[k].joint_id]
        return np.asarray(self._points[k] @ pose.rotation.T + pose.translation)


def sliders(robot: Robot) -> Indices:
    """Return the velocity indices of the leading prismatic joints, which translate a robot with a fixed root."""
    columns = []
    for joint in range(1, robot.model.njoints):
        joint_model = robot.model.joints[joint]
        if robot.model.parents[joint] != joint - 1 or not joint_model.shortname().startswith("JointModelP"):
            break
        columns.append(joint_model.idx_v)
    return np.array(columns, dtype=np.intp)


def translated(robot: Robot, q: Array, offset: Array) -> Array:
    """Return ``q`` (nq,) of the robot translated by ``offset`` (3,) [m], as far as its root joints allow."""
    result = q.copy()
    if robot.free_flyer:
        result[:3] += offset
        return result
    columns = sliders(robot)
    if len(columns):
        joint = len(columns)
        jacobian = pin.computeJointJacobian(robot.model, robot.model.createData(), q, joint)
        rotation = _rotation(robot, q, joint)
        axes = rotation @ jacobian[:3, columns]
        result[: len(columns)] += np.linalg.lstsq(axes, offset, rcond=None)[0]
    return result


def _rotation(robot: Robot, q: Array, joint: int) -> Array:
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, q)
    return np.asarray(data.oMi[joint].rotation)
