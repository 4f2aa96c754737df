"""Path of the swing foot: quintics from rest to rest, forwards and up then down; or a new path from mid-swing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from bipedsim.control.walking.kicking import POINTS
from bipedsim.numerics import Array, Integers, kernel, quintic

FORWARD = (0.02, 0.98)
"""Shares of single support between which the foot moves horizontally."""
EVEN = 0.5
"""Share of a cubic in the horizontal path; the rest is a quintic. More acceleration at both ends reduces the torque in
between, and the speed."""
PEAK = 1.875 - 0.375 * EVEN
"""Speed of the foot in mid-swing over its mean speed."""
TOP = 0.45
"""Share of single support at which the foot reaches its top."""
WINDOW = (*FORWARD, TOP, TOP)
"""The window of a step on level ground: see :class:`SwingStep`."""


@kernel
def forward(t: float, duration: float, begin: float, end: float) -> tuple[float, float, float]:
    """Return the horizontal progress at ``t`` of ``duration`` [s], from 0 to 1, and its derivatives [1/s], [1/s^2].

    ``begin`` and ``end`` are the shares of ``duration`` between which the foot moves.
    """
    T = (end - begin) * duration
    x, v, a = quintic(t - begin * duration, T)
    s = (t - begin * duration) / T
    if not 0.0 < s < 1.0:
        return x, v, a
    quintic_share = 1.0 - EVEN
    return (
        quintic_share * x + EVEN * s * s * (3.0 - 2.0 * s),
        quintic_share * v + EVEN * 6.0 * s * (1.0 - s) / T,
        quintic_share * a + EVEN * (6.0 - 12.0 * s) / (T * T),
    )


@kernel
def bending(t: float, duration: float, begin: float, end: float) -> float:
    """Return the shift of the ZMP due to the bending of the leg at ``t`` of ``duration`` [s], 1 at both ends.

    The shift is backwards in mid-swing, and forwards before and after. The parabola and its integral have zero mean, so
    the DCM at the end does not change.
    """
    s = (t / duration - begin) / (end - begin)
    return 1.0 - 6.0 * s * (1.0 - s) if 0.0 < s < 1.0 else 0.0


@kernel
def height(
    t: float, duration: float, start: float, top: float, end: float, highest: float, lowers: float
) -> tuple[float, float, float]:
    """Return height [m], velocity and acceleration of a foot that rises from ``start`` to ``top`` and ends at ``end``.

    The foot is at rest at all three heights. It stays at the top from the share ``highest`` of ``duration`` to
    ``lowers``, and at ``end`` after ``duration`` [s].
    """
    up = highest * duration
    if t < up:
        x, v, a = quintic(t, up)
        return start + x * (top - start), v * (top - start), a * (top - start)
    down = lowers * duration
    x, v, a = quintic(t - down, duration - down)
    return top + x * (end - top), v * (end - top), a * (end - top)


def path_to(p: Array, v: Array, a: Array, end: Array, duration: float) -> Array:
    """Return the quintics (2, 6) from (p, v, a), each (2,), to rest at ``end`` (2,) after ``duration`` [s]."""
    T = duration
    gap, rate, bend = end - p - (v + 0.5 * a * T) * T, -(v + a * T) * T, -a * T * T
    cubic = (10.0 * gap - 4.0 * rate + 0.5 * bend) / T**3
    quartic = (-15.0 * gap + 7.0 * rate - bend) / T**4
    quintic_ = (6.0 * gap - 3.0 * rate + 0.5 * bend) / T**5
    return np.column_stack([p, v, 0.5 * a, cubic, quartic, quintic_])


def rise_to(z: float, v: float, a: float, end: float, least: float, duration: float) -> Array:
    """Return the sextic (7,) from (z, v, a) to rest at ``end`` after ``duration`` [s].

    At half time its height is at least ``least`` [m].
    """
    coefficients = path_to(np.array([z]), np.array([v]), np.array([a]), np.array([end]), duration)[0]
    half_way = float(coefficients @ (0.5 * duration) ** np.arange(6))
    # 64 u^3 (1 - u)^3 is 1 at half time, and at rest at both ends.
    bump = 64.0 * max(0.0, least - half_way)
    path = np.append(coefficients, 0.0)
    path[3:] += bump * np.array([1.0, -3.0, 3.0, -1.0]) / duration ** np.arange(3, 7)
    return path


@kernel
def along_rise(path, t: float, duration: float) -> tuple[float, float, float]:  # type: ignore[no-untyped-def]
    """Return height, velocity and acceleration of a sextic (7,) at ``t``; after ``duration`` [s], the final values."""
    s = min(t, duration)
    z = 0.0
    v = 0.0
    a = 0.0
    for i in range(6, -1, -1):
        a = a * s + 2.0 * v
        v = v * s + z
        z = z * s + path[i]
    return z, v, a


@kernel
def along_path(path, t: float, duration: float, p, v, a) -> None:  # type: ignore[no-untyped-def]
    """Fill the horizontal position, velocity and acceleration at ``t``; after ``duration`` [s], the final values."""
    s = min(t, duration)
    for i in range(2):
        c = path[i]
        p[i] = c[0] + s * (c[1] + s * (c[2] + s * (c[3] + s * (c[4] + s * c[5]))))
        v[i] = c[1] + s * (2.0 * c[2] + s * (3.0 * c[3] + s * (4.0 * c[4] + s * 5.0 * c[5])))
        a[i] = 2.0 * c[2] + s * (6.0 * c[3] + s * (12.0 * c[4] + s * 20.0 * c[5]))


class SwingStep(NamedTuple):
    """The path of the swing foot, in the axes of the world.

    Attributes:
        start_p, start_R: (3,) [m], (3, 3) pose at lift-off.
        land_p, land_R: Planned pose at touchdown.
        path: (2, 6) horizontal path after the touchdown was moved: sum c_i s^i [m] along x and y.
        path_time: (2,) time since lift-off at which this path begins, and its duration [s]; a duration of 0 means that
            the foot moves as planned at lift-off.
        rise: (7,) height after the touchdown was retimed: sum c_i s^i [m].
        retimed: (1,) whether the touchdown was retimed; then start_R and turn also refer to the new beginning.
        route: (POINTS, 4) for a foot that moves along a route: times since lift-off [s], and displacements from the
            position at lift-off [m]; 0 for a step.
        time: (1,) duration of the step [s].
        window: (4,) shares of that time at which the foot begins and ends to move horizontally, reaches the top, and
            begins to move down.
        knee: (2,) shift of the ZMP due to the bending of the leg, at both ends of the horizontal motion [m].
        lift: (1,) height [m] added to that of a step on level ground.
        turn: (3,) rotation vector from start to touchdown [rad].
        normal: (3,) normal of the ground, estimated from the contacts of the feet.
    """

    start_p: Array
    start_R: Array  # noqa: N815 -- R is the rotation
    land_p: Array
    land_R: Array  # noqa: N815
    path: Array
    path_time: Array
    rise: Array
    retimed: Integers
    route: Array
    time: Array
    window: Array
    knee: Array
    lift: Array
    turn: Array
    normal: Array

    @classmethod
    def on_the_spot(cls) -> SwingStep:
        """Make a step that ends where it begins."""
        path, level = np.zeros((2, 6)), np.array([0.0, 0.0, 1.0])
        route = np.zeros((POINTS, 4))
        poses = (np.zeros(3), np.eye(3), np.zeros(3), np.eye(3))
        paths = (path, np.zeros(2), np.zeros(7), np.zeros(1, np.int64))
        window, knee = np.array(WINDOW), np.zeros(2)
        return cls(*poses, *paths, route, np.ones(1), window, knee, np.zeros(1), np.zeros(3), level)

    def begin(self, p: Array, R: Array, land_p: Array, land_R: Array) -> None:
        """Swing from the pose p (3,), R (3, 3) to a touchdown."""
        self.start_p[:], self.start_R[:], self.land_p[:], self.land_R[:] = p, R, land_p, land_R
        self.path_time[:] = self.route[:] = 0.0
        self.retimed[0] = 0
        self.turn[:] = self.start_R @ pin.log3(self.start_R.T @ self.land_R)

    def begin_route(self, route: Array, p: Array, R: Array) -> None:
        """Move from the pose p (3,), R (3, 3) along ``route`` (POINTS, 4) and back."""
        self.begin(p, R, p, R)
        self.route[:] = route
        self.time[0] = route[-1, 0]
        self.turn[:] = self.knee[:] = 0.0

    def redirect(self, begin: float, p: Array, v: Array, a: Array) -> None:
        """Move from the state (>= 3,) each, ``begin`` seconds after lift-off, to a touchdown that was moved."""
        self.path_time[:] = begin, self.window[1] * self.time[0] - begin
        self.path[:] = path_to(p[:2], v[:2], a[:2], self.land_p[:2], self.path_time[1])

    def rise_again(self, clearance: float, p: Array, v: Array, a: Array, R: Array) -> None:
        """Plan height and rotation from the state, (>= 3,) each and R (3, 3), to a touchdown that was retimed.

        At half time the foot is at least ``clearance`` [m] above both ends.
        """
        top = max(self.start_p[2], self.land_p[2]) + clearance
        self.rise[:] = rise_to(p[2], v[2], a[2], self.land_p[2], top, self.path_time[1])
        self.start_R[:] = R
        self.turn[:] = R @ pin.log3(R.T @ self.land_R)
        self.retimed[0] = 1
        self.knee[:] = 0.0
