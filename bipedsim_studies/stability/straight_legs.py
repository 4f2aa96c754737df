"""Walkers of two straight legs by events: two equations of motion, heel strikes without duration, an integrator of
high order. The reference for the same walkers on the engine.

Angles are those of Bhounsule and Adu-Bredu: theta_1 of the stance leg from the normal of the slope, theta_2 of the
swinging leg from the stance leg, counter-clockwise for a walk to the right; a state is (theta_1, theta_1', theta_2,
theta_2') [rad, rad/s] just after a heel strike. The equations are written in the absolute angles A of the stance leg
and B of the other, in which their terms are short (adubredu eq. 8 to 10 in other coordinates).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.integrate import solve_ivp

from bipedsim.errors import ConfigError
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim_studies.stability.maps import NoReturnError, Return

LONGEST = 20.0
"""A step that takes longer than this many times sqrt(l / g) is a fall."""
RELATIVE, ABSOLUTE = 1e-12, 1e-13
"""Tolerances of the integration."""

Torque = Callable[[float, Array], float]


class Stride(NamedTuple):
    """One step.

    Attributes:
        duration: [s].
        mid_speed: theta_1' when the stance leg is normal to the slope [rad/s], NaN if it begins beyond.
        after: (4,) state after the heel strike.
        path: (n, 4) states on the way.
    """

    duration: float
    mid_speed: float
    after: Array
    path: Array


@dataclass(frozen=True)
class StraightLegs:
    """A walker of two straight legs on a slope; point masses at hip and legs with ``inertia`` 0.

    Attributes:
        hip, leg: Masses [kg]; ``leg`` of each.
        inertia: Of a leg about its centre of mass [kg.m^2].
        length, centre: Length of a leg, and its centre of mass below the hip [m].
        gravity: [m/s^2].
        slope: Falls by this in the direction of the walk [rad].
        apart: Legs pass through the ground until theta_1 is below minus this [rad].
    """

    hip: float
    leg: float
    inertia: float
    length: float
    centre: float
    gravity: float
    slope: float
    apart: float = 0.05

    @classmethod
    def of_robot(cls, robot: Robot, slope: float) -> StraightLegs:
        """Return the numbers of a robot such as ``compass``: joints x, z, pitch of the left leg, and hip.

        Raises:
            ConfigError: The robot is not of that kind.
        """
        model = robot.model
        if model.nv != 4 or len(robot.soles) != 2 or len(robot.soles[0].vertices) != 1:
            raise ConfigError(f"{robot.name} is no walker of two straight legs on point feet, with x, z, pitch and hip")
        hip, leg = model.inertias[2], model.inertias[3]
        length = -float(robot.soles[0].vertices_joint[0, 2])
        return cls(
            hip=hip.mass,
            leg=leg.mass,
            inertia=float(leg.inertia[1, 1]),
            length=length,
            centre=-float(leg.lever[2]),
            gravity=robot.weight / robot.mass,
            slope=slope,
            apart=math.asin(0.5 * robot.soles[0].passes_ground / length),
        )

    def equations(self, a: float, b: float, da: float, db: float) -> tuple[Array, Array]:
        """Return M (2, 2) and N (2,) of M (A'', B'') + N = (-u, u), u the torque of the hip on the swinging leg."""
        m, c, l = self.leg, self.centre, self.length  # noqa: E741 -- l is the length of the literature
        coupling, turned = m * c * l, a - b
        cross = -coupling * math.cos(turned)
        M = np.array(
            [
                [self.inertia + m * (l - c) ** 2 + (self.hip + m) * l**2, cross],
                [cross, self.inertia + m * c**2],
            ]
        )
        above = (self.hip + m) * l + m * (l - c)
        N = np.array(
            [
                -coupling * math.sin(turned) * db**2 - self.gravity * above * math.sin(a - self.slope),
                coupling * math.sin(turned) * da**2 + self.gravity * m * c * math.sin(b - self.slope),
            ]
        )
        return M, N

    def heel_strike(self, state: Array) -> Array:
        """Return the state after a plastic impact of the swinging foot, which becomes the stance foot: M dv = J^T p.

        Coordinates are the place of the hip and both angles; the other foot leaves without an impulse.
        """
        a, da, relative, d_relative = state
        angles = np.array([a, a + relative])
        M = np.diag([self.hip, self.hip, self.inertia, self.inertia])
        for column, angle in enumerate(angles, 2):
            J = np.zeros((2, 4))
            J[:, :2] = np.eye(2)
            J[:, column] = self.centre * np.array([np.cos(angle), np.sin(angle)])
            M += self.leg * J.T @ J
        foot = np.zeros((2, 4))
        foot[:, :2] = np.eye(2)
        foot[:, 3] = self.length * np.array([np.cos(angles[1]), np.sin(angles[1])])
        hip = -da * self.length * np.array([np.cos(a), np.sin(a)])
        before = np.array([*hip, da, da + d_relative])
        after = before - np.linalg.solve(M, foot.T @ np.linalg.solve(foot @ np.linalg.solve(M, foot.T), foot @ before))
        return np.array([a + relative, after[3], -relative, after[2] - after[3]])

    def stride(self, state: Array, torque: Torque | None = None) -> Stride:
        """Return the step that begins with ``state`` (4,), without a motor where there is no ``torque``.

        Raises:
            NoReturnError: The walker falls.
        """

        def rate(t: float, z: Array) -> list[float]:
            M, N = self.equations(z[0], z[0] + z[2], z[1], z[1] + z[3])
            u = 0.0 if torque is None else torque(t, z)
            first, second = -u - N[0], u - N[1]
            determinant = M[0, 0] * M[1, 1] - M[0, 1] ** 2
            a = (M[1, 1] * first - M[0, 1] * second) / determinant
            b = (M[0, 0] * second - M[0, 1] * first) / determinant
            return [z[1], a, z[3], b - a]

        def lands(_t: float, z: Array) -> float:
            return float(z[2] + 2.0 * z[0]) if z[0] < -self.apart else 1.0

        def passes(_t: float, z: Array) -> float:
            return float(z[0])

        def falls(_t: float, z: Array) -> float:
            return 1.5 - abs(float(z[0]))

        lands.terminal = falls.terminal = True  # type: ignore[attr-defined]
        longest = LONGEST * math.sqrt(self.length / self.gravity)
        events = (lands, passes, falls)
        found = solve_ivp(rate, (0.0, longest), state, "DOP853", events=events, rtol=RELATIVE, atol=ABSOLUTE)
        if not len(found.t_events[0]):
            raise NoReturnError(f"the walker falls from the state {np.asarray(state).tolist()}")
        mid = found.y_events[1]
        speed = float(mid[0][1]) if len(mid) else math.nan
        return Stride(float(found.t[-1]), speed, self.heel_strike(found.y[:, -1]), found.y.T)

    def robot_state(self, state: Array) -> tuple[Array, Array]:
        """Return (q, v) of the robot for a state (4,), the left foot standing at the origin."""
        angle, rate = state[0] - self.slope, state[1]
        c, s = self.length * math.cos(angle), self.length * math.sin(angle)
        return np.array([-s, c, angle, state[2]]), np.array([-c * rate, -s * rate, rate, state[3]])

    def before_strike(self, q: Array, v: Array, left: bool) -> Array:
        """Return the state (4,) of a robot that stands on its left foot, or on its right one."""
        if left:
            return np.array([q[2] + self.slope, v[2], q[3], v[3]])
        return np.array([q[2] + q[3] + self.slope, v[2] + v[3], -q[3], -v[3]])


class EventMap:
    """The step of a walker by events as a map, from heel strike to heel strike.

    Args:
        walker: The walker.
        control: Returns the torque of the hip for a step that begins with a state; None for a walker without a motor.
    """

    names = ("theta_1", "theta_1'", "theta_2", "theta_2'")

    def __init__(self, walker: StraightLegs, control: Callable[[Array], Torque] | None = None) -> None:
        self._walker, self._control = walker, control

    def __call__(self, xi: Array) -> Return:
        """Return the state after the next heel strike.

        Raises:
            NoReturnError: The walker falls.
        """
        step = self._walker.stride(xi, None if self._control is None else self._control(xi))
        return Return(step.after, step.duration)
