"""The feet of a robot above a ground of one plane, and the robot moved along it."""

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
    """Where the vertices of all feet are, how fast, and how high above the ground.

    Args:
        robot: The robot.
        ground: One endless plane, on which a stride here is a stride there.

    Attributes:
        normal: (3,) of the ground, in world axes.

    Raises:
        ConfigError: The robot has no feet, or the ground is not one plane.
    """

    def __init__(self, robot: Robot, ground: Ground) -> None:
        if len(ground.patches) != 1 or ground.patches[0].region is not None:
            raise ConfigError(
                "a return map needs a ground of one endless plane, such as `flat` or a slope, on which strides are the "
                f"same everywhere; this one has {len(ground.patches)} patches or a border"
            )
        if not robot.soles:
            raise ConfigError(f"{robot.name} has no feet: its strides have no end")
        self._robot = robot
        self._data = robot.model.createData()
        self._points = [sole.vertices_joint for sole in robot.soles]
        self._origin = ground.patches[0].point_world
        self.normal: Array = ground.patches[0].rotation_world_patch[:, 2]

    def points(self, q: Array, feet: ArrayLike) -> Array:
        """Return the vertices (n, 3) of ``feet`` (indices) in the world [m]."""
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
        """Return how high the lowest vertex of ``foot`` is above the ground [m]."""
        lowest = float(((self.points(q, foot) - self._origin) @ self.normal).min())
        return lowest - self._robot.soles[foot].radius

    def com_height(self, q: Array) -> float:
        """Return how high the centre of mass is above the ground [m]."""
        com = pin.centerOfMass(self._robot.model, self._data, q)
        return float((com - self._origin) @ self.normal)

    def _of(self, k: int) -> Array:
        pose = self._data.oMi[self._robot.soles[k].joint_id]
        return np.asarray(self._points[k] @ pose.rotation.T + pose.translation)


def sliders(robot: Robot) -> Indices:
    """Return which velocities move a robot with a fixed root as a whole: its prismatic joints before all others."""
    found = []
    for joint in range(1, robot.model.njoints):
        kind = robot.model.joints[joint]
        if robot.model.parents[joint] != joint - 1 or not kind.shortname().startswith("JointModelP"):
            break
        found.append(kind.idx_v)
    return np.array(found, dtype=np.intp)


def moved(robot: Robot, q: Array, by: Array) -> Array:
    """Return the configuration ``q`` (nq,) moved ``by`` (3,) in the world [m], as far as the robot can be moved."""
    there = q.copy()
    if robot.free_flyer:
        there[:3] += by
        return there
    columns = sliders(robot)
    if len(columns):
        joint = len(columns)
        jacobian = pin.computeJointJacobian(robot.model, robot.model.createData(), q, joint)
        rotation = _rotation(robot, q, joint)
        axes = rotation @ jacobian[:3, columns]
        there[: len(columns)] += np.linalg.lstsq(axes, by, rcond=None)[0]
    return there


def _rotation(robot: Robot, q: Array, joint: int) -> Array:
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, q)
    return np.asarray(data.oMi[joint].rotation)
