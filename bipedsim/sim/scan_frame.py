"""Convert a height scan to points in the frame of the base, without a ground or a simulator."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from bipedsim.errors import ConfigError
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.sim.io import Observation


def scan_points(points: Array, heights: Array, up: Array) -> Array:
    """Return the points (S, 3) of a height scan in the frame of the base [m], NaN where there is no ground.

    Args:
        points: (S, 2) points of the scan in the heading frame of the base [m].
        heights: (S,) height of the base above the ground there [m].
        up: (3,) vertical in the axes of the base.

    Raises:
        ConfigError: ``up`` has no three numbers: the observation has no height scan.
    """
    if np.shape(up) != (3,):
        raise ConfigError("must be the vertical (3,); an observation has one if it has a height scan", "up", up)
    up = up / np.linalg.norm(up)
    ahead = np.array([1.0, 0.0, 0.0]) - up[0] * up
    size = float(np.linalg.norm(ahead))
    # A base whose x axis is vertical has the heading of world x, which is unknown here.
    ahead = ahead / size if size > 0.0 else np.array([0.0, 0.0, 1.0])
    below = np.where(np.isfinite(heights), -heights, np.nan)
    return np.column_stack([points, below]) @ np.array([ahead, np.cross(up, ahead), up])


class VerticalFromImu:
    """Compute the vertical in the axes of the base from the IMU and the joints between them.

    Args:
        robot: The robot, with a floating base.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._data = robot.model.createData()
        self._q = robot.q_nominal.copy()
        self._q[:7] = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0
        self._turn = np.array(robot.placement_joint_imu.rotation)

    def fill(self, observation: Observation) -> None:
        """Set ``scan_up`` from the other measurements; NaN if the IMU gives no attitude."""
        robot = self._robot
        x, y, z, w = observation.imu_orientation.tolist()
        square = x * x + y * y + z * z + w * w
        if not square > 0.5:
            observation.scan_up.fill(np.nan)
            return
        # The root link is attached to the first joint.
        if robot.imu_joint_id != 1:
            self._q[robot.idx_q] = observation.joint_position
            pin.forwardKinematics(robot.model, self._data, self._q)
            self._turn = self._data.oMi[robot.imu_joint_id].rotation @ robot.placement_joint_imu.rotation
        up = np.array([2.0 * (x * z - w * y), 2.0 * (y * z + w * x), w * w - x * x - y * y + z * z])
        observation.scan_up[:] = self._turn @ (up / square)
