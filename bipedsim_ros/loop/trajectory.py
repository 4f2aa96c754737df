"""A trajectory between waypoints, as ros2_control's joint_trajectory_controller goes it."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import BPoly

from bipedsim.numerics import Array
from bipedsim_ros.wire import Waypoints


class Trajectory:
    """From where the joints are through the waypoints, and then at rest at the last one.

    Between points with positions alone it is linear, with velocities cubic, with accelerations quintic. Points that
    are over when it begins are left out. Joints that the waypoints do not name stay.

    Args:
        points: The waypoints.
        now: When it begins [s].
        position: (nu,) where the joints are [rad].
        velocity: (nu,) how fast [rad/s].
    """

    def __init__(self, points: Waypoints, now: float, position: Array, velocity: Array) -> None:
        self._joints = points.joints
        self.position = position.copy()
        self.velocity = np.zeros_like(position)
        t = points.t + (now if points.start is None else points.start)
        ahead = t > now
        self._end = float(t[-1]) if ahead.any() else now
        if len(t):
            self._last = points.position[-1]
        columns = [points.position, points.velocity, points.acceleration]
        given = [column for column in columns if column is not None]
        begin = (position[self._joints], velocity[self._joints], np.zeros(len(self._joints)))
        self._path: BPoly | None = None
        if ahead.any():
            rows = [begin[: len(given)], *zip(*(column[ahead] for column in given), strict=True)]
            self._path = BPoly.from_derivatives([now, *t[ahead]], [np.array(row) for row in rows])
            self._speed = self._path.derivative()
        elif len(t):
            self.position[self._joints] = self._last

    def go(self, t: float) -> None:
        """Fill :attr:`position` (nu,) [rad] and :attr:`velocity` (nu,) [rad/s] of the time ``t`` [s]."""
        if self._path is None:
            return
        if t < self._end:
            self.position[self._joints] = self._path(t)
            self.velocity[self._joints] = self._speed(t)
            return
        self.position[self._joints] = self._last
        self.velocity[:] = 0.0
        self._path = None
