"""Integrate walkers of two straight legs from event to event, as a reference for the same walkers in the simulator.

The model has two equations of motion, instantaneous heel strikes and an integrator of high order.

Angles follow Bhounsule and Adu-Bredu. theta_1 is the angle of the stance leg from the normal of the slope, and theta_2
that of the swing leg from the stance leg. Both are counter-clockwise for a walk to the right. A state is (theta_1,
theta_1', theta_2, theta_2') [rad, rad/s] just after a heel strike. The equations use the absolute angles A of the
stance leg and B of the swing leg, which makes their terms short (adubredu eq. 8 to 10 in other coordinates).
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
"""Maximum duration of a step in units of sqrt(l / g). A longer step counts as a fall."""
RELATIVE, ABSOLUTE = 1e-12, 1e-13
"""Tolerances of the integration."""

Torque = Callable[[float, Array], float]


class Stride(NamedTuple):
    """One step.

    Attributes:
        duration: Duration [s].
        mid_speed: theta_1' when the stance leg is normal to the slope [rad/s]; NaN if the step starts beyond it.
        after: (4,) state after the heel strike.
        path: (n, 4) states during the step.
    """

    duration: float
    mid_speed: float
    after: Array
    path: Array


@dataclass(frozen=True)
class StraightLegs:
    """A walker of two straight legs on a slope. With ``inertia`` 0, hip and legs are point masses.

    Attributes:
        hip, leg: Mass of the hip, and mass of each leg [kg].
        inertia: Moment of inertia of a leg about its centre of mass [kg.m^2].
        length, centre: Length of a leg, and distance of its centre of mass below the hip [m].
        gravity: Gravitational acceleration [m/s^2].
        slope: Downward slope in the walking direction [rad].
        apart: The swing foot may pass through the ground until theta_1 is below minus this angle [rad].
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
        """Return the walker with the parameters of a robot such as ``compass``.

        Its joints are x, z and pitch of the left leg, and the hip.

        Raises:
            ConfigError: The robot has a different structure.
        """
        model = robot.model
        if model.nv != 4 or len(robot.soles) != 2 or len(robot.soles[0].vertices) != 1:
            raise ConfigError("no walker of two straight legs on point feet, with x, z, pitch and hip", robot.name)
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
        """Return M (2, 2) and N (2,) of M (A'', B'') + N = (-u, u), with the hip torque u on the swing leg."""
        m, c, l = self.leg, self.centre, self.length  # noqa: E741 -- l is the length of the literature
        coupling, relative_angle = m * c * l, a - b
        cross = -coupling * math.cos(relative_angle)
        M = np.array(
            [
                [self.inertia + m * (l - c) ** 2 + (self.hip + m) * l**2, cross],
                [cross, self.inertia + m * c**2],
            ]
        )
        above = (self.hip + m) * l + m * (l - c)
        N = np.array(
            [
                -coupling * math.sin(relative_angle) * db**2 - self.gravity * above * math.sin(a - self.slope),
                coupling * math.sin(relative_angle) * da**2 + self.gravity * m * c * math.sin(b - self.slope),
            ]
        )
        return M, N

    def heel_strike(self, state: Array) -> Array:
        """Return the state after a plastic impact of the swing foot, which becomes the stance foot: M dv = J^T p.

        The coordinates are the hip position and both angles. The other foot leaves the ground without an impulse.
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
        """Return the step from ``state`` (4,), with the hip ``torque`` if given.

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

        def touches_down(_t: float, z: Array) -> float:
            return float(z[2] + 2.0 * z[0]) if z[0] < -self.apart else 1.0

        def passes_normal(_t: float, z: Array) -> float:
            return float(z[0])

        def falls(_t: float, z: Array) -> float:
            return 1.5 - abs(float(z[0]))

        touches_down.terminal = falls.terminal = True  # type: ignore[attr-defined]
        longest = LONGEST * math.sqrt(self.length / self.gravity)
        events = (touches_down, passes_normal, falls)
        solution = solve_ivp(rate, (0.0, longest), state, "DOP853", events=events, rtol=RELATIVE, atol=ABSOLUTE)
        if not len(solution.t_events[0]):
            raise NoReturnError("the walker falls from there", f"state {np.asarray(state).tolist()}")
        mid = solution.y_events[1]
        speed = float(mid[0][1]) if len(mid) else math.nan
        return Stride(float(solution.t[-1]), speed, self.heel_strike(solution.y[:, -1]), solution.y.T)

    def robot_state(self, state: Array) -> tuple[Array, Array]:
        """Return (q, v) of the robot for a state (4,), with the left foot at the origin as the stance foot."""
        angle, rate = state[0] - self.slope, state[1]
        c, s = self.length * math.cos(angle), self.length * math.sin(angle)
        return np.array([-s, c, angle, state[2]]), np.array([-c * rate, -s * rate, rate, state[3]])

    def before_strike(self, q: Array, v: Array, left: bool) -> Array:
        """Return the state (4,) of a robot whose stance foot is the left (``left``) or the right one."""
        if left:
            return np.array([q[2] + self.slope, v[2], q[3], v[3]])
        return np.array([q[2] + q[3] + self.slope, v[2] + v[3], -q[3], -v[3]])


class EventMap:
    """Return map of the event-based walker, from heel strike to heel strike.

    Args:
        walker: The walker.
        control: Returns the hip torque for a step from a given state; None for a passive walker.
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
