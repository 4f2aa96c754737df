"""Integrate walkers of a trunk and two straight legs from event to event, with instantaneous heel strikes.

All angles are from the vertical and positive forwards: phi_1 of the stance leg, phi_2 of the swing leg, phi_3 of the
trunk. The hip is at length (sin phi_1, cos phi_1) from the stance foot. Centres of mass are sums of such vectors with
constant coefficients L. With A = sum m L L^T + I and B = sum m L, the equations with a fixed stance foot are

    A_ij cos(phi_i - phi_j) phi_j'' + A_ij sin(phi_i - phi_j) phi_j'^2 - g B_i sin phi_i = (S u)_i

(hurmuzlu2001 section 2, Fig. 3). u contains the torques of the trunk on the stance leg and on the swing leg.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from bipedsim.errors import ConfigError
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim_studies.stability.maps import NoReturnError

RELATIVE, ABSOLUTE = 1e-11, 1e-12
"""Tolerances of the integration."""
SELECTION: Array = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
"""S: distributes both torques to stance leg, swing leg and trunk."""
EXCHANGED = np.array([1, 0, 2])
"""Permutation of the links at a heel strike: the swing leg becomes the stance leg."""

Numbers = NDArray[np.inexact]
LinkTorque = Callable[[float, Array, Array], Array]
"""Function of time [s], phi (3,) and phi' (3,) that returns u (2,) [N.m]."""


class LinkStep(NamedTuple):
    """Motion during one single-support phase.

    Attributes:
        t: (n,) time [s]. phi, rate: (n, 3) angles and rates [rad, rad/s]. lands: Whether it ends with a touch-down.
    """

    t: Array
    phi: Array
    rate: Array
    lands: bool


@dataclass(frozen=True, eq=False)
class ThreeLinks:
    """A trunk and two straight legs.

    Attributes:
        leg, trunk: Mass of each leg, and mass of the trunk [kg].
        leg_inertia, trunk_inertia: Moments of inertia about their centres of mass [kg.m^2].
        length: Length of a leg [m].
        leg_centre, trunk_centre: Distance of the centres of mass below and above the hip [m].
        gravity: Gravitational acceleration [m/s^2].
        pivot: Stiffness of a spring from the ground to the stance leg, unloaded if the leg is upright [N.m/rad].
    """

    leg: float
    trunk: float
    leg_inertia: float
    trunk_inertia: float
    length: float
    leg_centre: float
    trunk_centre: float
    gravity: float
    pivot: float = 0.0

    @classmethod
    def of_robot(cls, robot: Robot) -> ThreeLinks:
        """Return the walker with the parameters of a robot such as ``three_links``.

        Its joints are x, z and pitch of the trunk, and two hips.

        Raises:
            ConfigError: The robot has a different structure.
        """
        model = robot.model
        if model.nv != 5 or len(robot.soles) != 2 or len(robot.soles[0].vertices) != 1:
            raise ConfigError(f"{robot.name} is no walker of a trunk and two straight legs on point feet")
        trunk, leg = model.inertias[3], model.inertias[4]
        return cls(
            leg=leg.mass,
            trunk=trunk.mass,
            leg_inertia=float(leg.inertia[1, 1]),
            trunk_inertia=float(trunk.inertia[1, 1]),
            length=-float(robot.soles[0].vertices_joint[0, 2]),
            leg_centre=-float(leg.lever[2]),
            trunk_centre=float(trunk.lever[2]),
            gravity=robot.weight / robot.mass,
        )

    @property
    def masses(self) -> Array:
        """Masses (3,) of stance leg, swing leg and trunk [kg]."""
        return np.array([self.leg, self.leg, self.trunk])

    @property
    def arms(self) -> Array:
        """Coefficients L (3, 3): centre of mass k is at sum L_ki (sin phi_i, cos phi_i) from the stance foot [m]."""
        whole, c = self.length, self.leg_centre
        return np.array([[whole - c, 0.0, 0.0], [whole, -c, 0.0], [whole, 0.0, self.trunk_centre]])

    @property
    def coupling(self) -> Array:
        """Coefficients A (3, 3) of the equations of motion [kg.m^2]."""
        inertia = np.diag([self.leg_inertia, self.leg_inertia, self.trunk_inertia])
        coupling: Array = self.arms.T @ (self.masses[:, None] * self.arms) + inertia
        return coupling

    @property
    def moments(self) -> Array:
        """Coefficients B (3,) of the gravity terms [kg.m]."""
        moments: Array = self.masses @ self.arms
        return moments

    def equations(self, phi: Array, rate: Array) -> tuple[Array, Array]:
        """Return M (3, 3) and N (3,) of M phi'' + N = S u."""
        apart = phi[:, None] - phi[None, :]
        A = self.coupling
        weight = self.gravity * self.moments * np.sin(phi)
        spring = np.array([self.pivot * phi[0], 0.0, 0.0])
        return A * np.cos(apart), (A * np.sin(apart)) @ rate**2 - weight + spring

    def acceleration(self, phi: Array, rate: Array, u: Array) -> Array:
        """Return phi'' (3,) [rad/s^2]."""
        M, N = self.equations(phi, rate)
        return np.asarray(np.linalg.solve(M, SELECTION @ u - N), dtype=np.float64)

    def flow(self, x: Numbers, u: Numbers) -> Numbers:
        """Return the derivatives (6, k) of states x (6, k) = (phi, phi') under torques u (2, k), real or complex."""
        phi, rate = x[:3], x[3:]
        apart, A = phi[:, None] - phi[None, :], self.coupling[:, :, None]
        M = np.moveaxis(A * np.cos(apart), 2, 0)
        N = np.einsum("ijk,jk->ik", A * np.sin(apart), rate**2)
        N = N - self.gravity * self.moments[:, None] * np.sin(phi)
        N[0] += self.pivot * phi[0]
        return np.vstack([rate, np.linalg.solve(M, (SELECTION @ u - N).T[..., None])[..., 0].T])

    def momentum(self, phi: Array, rate: Array) -> float:
        """Return the angular momentum about the stance foot [kg.m^2/s], which the torques do not change."""
        return float(self.equations(phi, rate)[0].sum(axis=0) @ rate)

    def moment(self, phi: Array) -> float:
        """Return the moment of gravity and of the spring about the stance foot [N.m]."""
        return float(self.gravity * self.moments @ np.sin(phi) - self.pivot * phi[0])

    def energy(self, phi: Array, rate: Array) -> float:
        """Return the kinetic and potential energy [J], including that of the spring."""
        M, _ = self.equations(phi, rate)
        height = float(self.moments @ np.cos(phi))
        return float(0.5 * rate @ M @ rate) + self.gravity * height + 0.5 * self.pivot * float(phi[0]) ** 2

    def ground_force(self, phi: Array, rate: Array, acceleration: Array) -> Array:
        """Return the ground reaction force on the stance foot (2,), forwards and upwards [N]."""
        s, c = np.sin(phi), np.cos(phi)
        horizontal = self.moments @ (c * acceleration - s * rate**2)
        vertical = self.moments @ (-s * acceleration - c * rate**2)
        return np.array([horizontal, vertical + self.masses.sum() * self.gravity])

    def heel_strike(self, phi: Array, rate: Array) -> tuple[Array, Array]:
        """Return phi and phi' (3,) after the swing foot has touched down and become the stance foot.

        The impact has neither slip nor rebound, and the other foot leaves the ground without an impulse. Three angular
        momenta are conserved: the total about the new stance foot, and those of the old stance leg and of the trunk
        about the hip.
        """
        after = phi[EXCHANGED]
        M, _ = self.equations(after, rate[EXCHANGED])
        # The new stance foot still moves before the impact, and M does not include this velocity.
        hip = self.length * rate[0] * np.array([np.cos(phi[0]), -np.sin(phi[0])])
        hip_from_foot = self.length * rate[1] * np.array([np.cos(phi[1]), -np.sin(phi[1])])
        foot = hip - hip_from_foot
        directions = np.column_stack([np.cos(after), -np.sin(after)])
        foot_momentum = self.moments * (directions @ foot)
        rate_after = rate[EXCHANGED] + np.linalg.solve(M, foot_momentum)
        return after, rate_after

    def step(self, phi: Array, rate: Array, torque: LinkTorque, longest: float) -> LinkStep:
        """Return the single-support motion until the swing foot touches down in front, at most ``longest`` [s].

        Raises:
            NoReturnError: The walker falls.
        """

        def slope(t: float, z: Array) -> Array:
            return np.concatenate([z[3:], self.acceleration(z[:3], z[3:], torque(t, z[:3], z[3:]))])

        def touches_down(_t: float, z: Array) -> float:
            return float(z[0] + z[1]) if z[0] > 0.02 else -1.0

        def falls(_t: float, z: Array) -> float:
            return 1.2 - float(np.abs(z[:3]).max())

        touches_down.terminal = falls.terminal = True  # type: ignore[attr-defined]
        start = np.concatenate([phi, rate])
        events = (touches_down, falls)
        solution = solve_ivp(slope, (0.0, longest), start, "DOP853", events=events, rtol=RELATIVE, atol=ABSOLUTE)
        if len(solution.t_events[1]):
            raise NoReturnError(f"the walker falls from {np.asarray(start).tolist()}")
        return LinkStep(solution.t, solution.y[:3].T, solution.y[3:].T, bool(len(solution.t_events[0])))


class LinkConstraint:
    """Virtual constraint phi_2 = p_2(phi_1), phi_3 = p_3(phi_1), which leaves one degree of freedom.

    The remaining motion conserves s^2 / 2 minus the integral of G I over phi_1. Here s = I phi_1' is the angular
    momentum about the stance foot, and G is the moment about it.

    Args:
        walker: The walker.
        paths: p_2 and p_3 as functions of the stance leg's angle [rad].
        frequency: Frequency of the critically damped feedback that enforces the constraint [rad/s].
    """

    def __init__(self, walker: ThreeLinks, paths: Sequence[Polynomial | Chebyshev], frequency: float = 30.0) -> None:
        self.walker = walker
        self._paths = tuple((path, path.deriv(1), path.deriv(2)) for path in paths)
        self._frequency = frequency

    @classmethod
    def repeating(
        cls, walker: ThreeLinks, end: float, landing: tuple[float, float], lean: float, sway: float
    ) -> LinkConstraint:
        """Return the constraint that a touch-down at phi_1 = ``end`` preserves, in angles and rates.

        Both paths are cubics through the postures after one touch-down and before the next. Their derivatives before
        the touch-down are ``landing``; the impact determines those after it. The trunk's path has the additional term
        ``sway`` u (1 - u^2)^2, with u = phi_1 / end.

        Args:
            walker: The walker.
            end: Angle of the stance leg at a touch-down [rad].
            landing: Rates of swing leg and trunk before a touch-down, relative to that of the stance leg.
            lean: Angle of the trunk at a touch-down [rad].
            sway: Amplitude of the additional term [rad].
        """
        before = np.array([end, -end, lean])
        after, rate = walker.heel_strike(before, np.array([1.0, *landing]))
        powers = np.arange(4)
        ends = np.array([-end, end])
        values = ends[:, None] ** powers
        slopes = powers * ends[:, None] ** np.maximum(powers - 1, 0)
        rows = np.vstack([values, slopes])
        wanted = [[after[k], before[k], rate[k] / rate[0], landing[k - 1]] for k in (1, 2)]
        swing, trunk = (Polynomial(np.linalg.solve(rows, each)) for each in wanted)
        u = Polynomial([0.0, 1.0 / end])
        return cls(walker, (swing, trunk + sway * u * (1.0 - u * u) ** 2))

    def posture(self, angle: float) -> Array:
        """Return phi (3,) [rad] on the constraint."""
        return np.array([angle, *(path[0](angle) for path in self._paths)])

    def slopes(self, angle: float) -> Array:
        """Return the derivative of phi (3,) with respect to phi_1 on the constraint."""
        return np.array([1.0, *(path[1](angle) for path in self._paths)])

    def inertia(self, angle: float) -> float:
        """Return the inertia I = s / phi_1' on the constraint [kg.m^2]."""
        return self.walker.momentum(self.posture(angle), self.slopes(angle))

    def moment(self, angle: float) -> float:
        """Return the moment G about the stance foot on the constraint [N.m]."""
        return self.walker.moment(self.posture(angle))

    def torque(self, _t: float, phi: Array, rate: Array) -> Array:
        """Return u (2,) [N.m] by computed torque, so that deviations from the constraint decay (eq. 56)."""
        w = self._frequency
        M, N = self.walker.equations(phi, rate)
        accelerations = np.linalg.solve(M, np.column_stack([SELECTION, -N]))
        path_accelerations = np.array([path[2](phi[0]) for path in self._paths]) * rate[0] ** 2
        slopes = np.array([path[1](phi[0]) for path in self._paths])
        error = phi[1:] - np.array([path[0](phi[0]) for path in self._paths])
        error_rate = rate[1:] - slopes * rate[0]
        rows = np.column_stack([-slopes, np.eye(2)])
        wanted = path_accelerations - 2.0 * w * error_rate - w**2 * error
        return np.linalg.solve(rows @ accelerations[:, :2], wanted - rows @ accelerations[:, 2])
