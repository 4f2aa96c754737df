"""Interpolate a trajectory between waypoints, as ros2_control's joint_trajectory_controller does."""

from __future__ import annotations

import math

import numpy as np

from bipedsim.numerics import Array
from bipedsim_ros.wire import Waypoints


class Trajectory:
    """Trajectory from the present joint state through the waypoints to rest at the last one.

    Interpolation is linear between points with positions only, cubic with velocities and quintic with accelerations.
    Points in the past are skipped. Joints that the waypoints do not name keep their position.

    Args:
        points: The waypoints.
        now: Time at which the trajectory begins [s].
        position: (nu,) joint positions at this time [rad].
        velocity: (nu,) joint velocities at this time [rad/s].

    Attributes:
        position, velocity: (nu,) setpoint at the time of the last :meth:`go` [rad], [rad/s].
        start: Time from which the times of the waypoints count [s].
        end: Time of the last waypoint, or ``now`` if all are in the past [s].
    """

    def __init__(self, points: Waypoints, now: float, position: Array, velocity: Array) -> None:
        self._joints = points.joints
        self.position = position.copy()
        self.velocity = np.zeros_like(position)
        self.start = now if points.start is None else points.start
        t = points.t + self.start
        ahead = t > now
        self.end = float(t[-1]) if ahead.any() else now
        if len(t):
            self._last = points.position[-1]
        columns = [points.position, points.velocity, points.acceleration]
        available = [column for column in columns if column is not None]
        begin = (position[self._joints], velocity[self._joints], np.zeros(len(self._joints)))
        self._path: _Hermite | None = None
        if ahead.any():
            columns_ahead = [np.vstack([first, column[ahead]]) for first, column in zip(begin, available, strict=False)]
            self._path = _Hermite(np.array([now, *t[ahead]]), np.stack(columns_ahead))
        elif len(t):
            self.position[self._joints] = self._last

    def go(self, t: float) -> None:
        """Update :attr:`position` (nu,) [rad] and :attr:`velocity` (nu,) [rad/s] to the time ``t`` [s]."""
        if self._path is None:
            return
        if t < self.end:
            self.position[self._joints], self.velocity[self._joints] = self._path.at(t)
            return
        self.position[self._joints] = self._last
        self.velocity[:] = 0.0
        self._path = None


class _Hermite:
    """Piecewise polynomials with given derivatives at both ends of each piece.

    Import of scipy.interpolate would delay the start of a node by 0.4 s.

    Args:
        t: (n,) knots [s], ascending.
        values: (m, n, k) derivatives 0 to m - 1 of k functions at the knots.
    """

    def __init__(self, t: Array, values: Array) -> None:
        m = len(values)
        self._t = t
        self._length = np.diff(t)
        # The derivatives are with respect to s = (t - t_i) / length of the piece, divided by factorials.
        order = np.arange(m)
        factorial = np.array([math.factorial(i) for i in range(2 * m)], dtype=float)
        scale = self._length ** order[:, None] / factorial[:m, None]
        begin, end = values[:, :-1] * scale[..., None], values[:, 1:] * scale[..., None]
        # The i-th derivative of s^j at s = 1, divided by i!, is the binomial coefficient.
        binomial = np.array([[float(math.comb(j, i)) for j in range(2 * m)] for i in range(m)])
        missing = end - np.tensordot(binomial[:, :m], begin, 1)
        rest = np.linalg.solve(binomial[:, m:], missing.reshape(m, -1)).reshape(missing.shape)
        self._coefficients = np.concatenate([begin, rest])
        self._powers = np.arange(2 * m)

    def at(self, t: float) -> tuple[Array, Array]:
        """Return values and first derivatives (k,) at ``t`` [s], between the first and the last knot."""
        i = min(max(int(np.searchsorted(self._t, t, side="right")) - 1, 0), len(self._length) - 1)
        c, length = self._coefficients[:, i], self._length[i]
        powers = ((t - self._t[i]) / length) ** self._powers
        return powers @ c, (self._powers[1:] * powers[:-1]) @ c[1:] / length
