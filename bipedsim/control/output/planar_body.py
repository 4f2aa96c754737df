"""A biped in the plane x z: inverse kinematics of trunk and feet, and the centre of pressure of a motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from bipedsim.errors import ConfigError
from bipedsim.model import Robot
from bipedsim.numerics import Array

ON_PLACE = 1e-11
"""Error at which the inverse kinematics ends [m, rad]."""
ITERATIONS = 50
BASE = ("JointModelPX", "JointModelPZ", "JointModelRY")
"""Types of the joints from the world to the trunk of a planar robot."""
PLANE = [0, 2, 4]
"""Rows of a spatial velocity in the plane: x, z and pitch."""


@dataclass(frozen=True)
class PlanarFeet:
    """Feet at one time: forward displacement (2,) [m], height (2,) [m], share of the weight (2,)."""

    ahead: Array
    up: Array
    share: Array


class PlanarBody:
    """Compute kinematics and dynamics of a biped in the plane.

    Args:
        robot: The robot.
        controller: Name of the controller, for messages.

    Raises:
        ConfigError: The robot is not a planar biped.
    """

    def __init__(self, robot: Robot, controller: str) -> None:
        self.robot, self._who = robot, controller
        model = robot.model
        base = tuple(model.joints[i].shortname() for i in range(1, min(4, model.njoints)))
        legs = robot.nu == 6 and model.nv == 9 and model.nq == 9
        if base != BASE or not legs or [sole.n_vertices for sole in robot.soles] != [2, 2]:
            raise ConfigError(
                "it needs a planar biped such as planar_biped: passive joints x, z and pitch of the "
                f"trunk, three drives per leg, and two feet with heel and toe. {robot.name!r} is none. Use "
                "controller zmp for robots in space",
                f"{controller}: mode",
            )
        self._data = model.createData()
        self._centres = [sole.placement_joint_sole * _shifted(sole.centre) for sole in robot.soles]
        self._joints = robot.idx_v
        pin.centerOfMass(model, self._data, robot.q_nominal)
        g = robot.weight / robot.mass
        self.omega = float(np.sqrt(g / self._data.com[0][2]))
        self._home = self._places(robot.q_nominal)
        self.middle = float(self._home[:, 0].mean())
        self.room = min(float(np.abs(sole.vertices[:, 0] - sole.centre[0]).min()) for sole in robot.soles)

    def postures(self, base: Array, feet: Sequence[PlanarFeet], start: Array) -> Array:
        """Solve configurations (n, 9) with the trunk upright at ``base`` (n, 2), x and z, and flat ``feet``.

        Args:
            base: [m].
            feet: n times.
            start: (9,) initial guess for the first one.

        Raises:
            ConfigError: A leg is too short, or a joint would leave its limits.
        """
        q = start.copy()
        configurations = np.zeros((len(base), len(q)))
        for i, (trunk, foot_targets) in enumerate(zip(base, feet, strict=True)):
            q[:3] = (*trunk, self.robot.q_nominal[2])
            target = self._home + np.column_stack([foot_targets.ahead, foot_targets.up, np.zeros(2)])
            for _ in range(ITERATIONS):
                error = (self._places(q) - target).ravel()
                if np.abs(error).max() < ON_PLACE:
                    break
                q[self._joints] -= np.linalg.lstsq(self._rows()[:, self._joints], error, rcond=None)[0]
            else:
                raise self.refused("the legs are too short")
            angles, robot = q[self._joints], self.robot
            outside = np.maximum(robot.position_lower - angles, angles - robot.position_upper)
            if outside.max() > 0.0:
                raise self.refused(f"joint {robot.joint_names[int(np.argmax(outside))]} would leave its limits")
            configurations[i] = q
        return configurations

    def centre_of_pressure(self, q: Array, v: Array, a: Array) -> Array:
        """Return the centre of pressure (n,) [m] of a motion (n, 9), on the ground of the standing robot."""
        model, data = self.robot.model, self._data
        cop = np.zeros(len(q))
        ground = self._home[:, 1].mean()
        for i in range(len(q)):
            f_x, f_z, moment = pin.rnea(model, data, q[i], v[i], a[i])[:3]
            if f_z <= 0.0:
                raise self.refused("it would leave the ground")
            cop[i] = q[i, 0] - (moment + (q[i, 1] - ground) * f_x) / f_z
        return cop

    def _places(self, q: Array) -> Array:
        """Return x, z and pitch (2, 3) of the centre of each sole."""
        model, data = self.robot.model, self._data
        pin.computeJointJacobians(model, data, q)
        poses = [data.oMi[s.joint_id] * c for s, c in zip(self.robot.soles, self._centres, strict=True)]
        pitch = [np.arctan2(pose.rotation[0, 2], pose.rotation[0, 0]) for pose in poses]
        return np.array([[*pose.translation[[0, 2]], angle] for pose, angle in zip(poses, pitch, strict=True)])

    def _rows(self) -> Array:
        """Return the Jacobian (6, 9) of the last :meth:`_places`."""
        world = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        model, data = self.robot.model, self._data
        pairs = zip(self.robot.soles, self._centres, strict=True)
        return np.vstack([pin.getFrameJacobian(model, data, s.joint_id, c, world)[PLANE] for s, c in pairs])

    def refused(self, why: str) -> ConfigError:
        """Make the error that says why the walk is impossible."""
        return ConfigError(
            f"{why}. Use a shorter step_length, a larger walk_drop, or more time",
            f"{self._who}: walk of {self.robot.name}",
        )


def _shifted(centre: Array) -> pin.SE3:
    return pin.SE3(np.eye(3), np.append(centre, 0.0))
