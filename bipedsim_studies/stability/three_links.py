"""A walker of a trunk and two straight legs by events: equations of motion, heel strikes without duration.

Angles lean ahead, from the vertical: phi_1 of the stance leg, phi_2 of the swinging leg, phi_3 of the trunk, so that
the hip is at length (sin phi_1, cos phi_1) from the stance foot. Centres of mass are sums of such vectors with
constant coefficients L. With A = sum m L L^T + I and B = sum m L the equations on the stance foot are

    A_ij cos(phi_i - phi_j) phi_j'' + A_ij sin(phi_i - phi_j) phi_j'^2 - g B_i sin phi_i = (S u)_i

(hurmuzlu2001 section 2, Fig. 3). u are the torques of the trunk on the stance leg and on the swinging leg.
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
"""S: what both torques do to stance leg, swinging leg and trunk."""
EXCHANGED = np.array([1, 0, 2])
"""The swinging leg becomes the stance leg."""

Numbers = NDArray[np.inexact]
LinkTorque = Callable[[float, Array, Array], Array]
"""Of time [s], phi (3,) and phi' (3,): u (2,) [N.m]."""


class LinkStep(NamedTuple):
    """A motion on one foot.

    Attributes:
        t: (n,) [s]. phi, rate: (n, 3) [rad, rad/s]. lands: Whether the swinging foot landed at its end.
    """

    t: Array
    phi: Array
    rate: Array
    lands: bool


@dataclass(frozen=True, eq=False)
class ThreeLinks:
    """A trunk and two straight legs.

    Attributes:
        leg, trunk: Masses [kg]; ``leg`` of each.
        leg_inertia, trunk_inertia: About their centres of mass [kg.m^2].
        length: Of a leg [m].
        leg_centre, trunk_centre: Centres of mass, below and above the hip [m].
        gravity: [m/s^2].
        pivot: Stiffness of a spring from the ground to the stance leg, at rest where that is upright [N.m/rad].
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
        """Return the numbers of a robot such as ``three_links``: joints x, z and pitch of the trunk, and two hips.

        Raises:
            ConfigError: The robot is not of that kind.
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
        """(3,) of stance leg, swinging leg, trunk [kg]."""
        return np.array([self.leg, self.leg, self.trunk])

    @property
    def arms(self) -> Array:
        """L (3, 3): centre of mass k is at sum L_ki (sin phi_i, cos phi_i) from the stance foot [m]."""
        whole, c = self.length, self.leg_centre
        return np.array([[whole - c, 0.0, 0.0], [whole, -c, 0.0], [whole, 0.0, self.trunk_centre]])

    @property
    def coupling(self) -> Array:
        """A (3, 3) [kg.m^2]."""
        inertia = np.diag([self.leg_inertia, self.leg_inertia, self.trunk_inertia])
        coupling: Array = self.arms.T @ (self.masses[:, None] * self.arms) + inertia
        return coupling

    @property
    def moments(self) -> Array:
        """B (3,) [kg.m]."""
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
        """Return phi'' (3,)."""
        M, N = self.equations(phi, rate)
        return np.asarray(np.linalg.solve(M, SELECTION @ u - N), dtype=np.float64)

    def flow(self, x: Numbers, u: Numbers) -> Numbers:
        """Return the change (6, k) of states x (6, k), phi over phi', under torques u (2, k); complex ones, too."""
        phi, rate = x[:3], x[3:]
        apart, A = phi[:, None] - phi[None, :], self.coupling[:, :, None]
        M = np.moveaxis(A * np.cos(apart), 2, 0)
        N = np.einsum("ijk,jk->ik", A * np.sin(apart), rate**2)
        N = N - self.gravity * self.moments[:, None] * np.sin(phi)
        N[0] += self.pivot * phi[0]
        return np.vstack([rate, np.linalg.solve(M, (SELECTION @ u - N).T[..., None])[..., 0].T])

    def momentum(self, phi: Array, rate: Array) -> float:
        """Return the angular momentum about the stance foot [kg.m^2/s], on which the torques have no effect."""
        return float(self.equations(phi, rate)[0].sum(axis=0) @ rate)

    def moment(self, phi: Array) -> float:
        """Return the moment of gravity and of the spring about the stance foot [N.m]."""
        return float(self.gravity * self.moments @ np.sin(phi) - self.pivot * phi[0])

    def energy(self, phi: Array, rate: Array) -> float:
        """Return the kinetic and potential energy [J], the spring's included."""
        M, _ = self.equations(phi, rate)
        height = float(self.moments @ np.cos(phi))
        return float(0.5 * rate @ M @ rate) + self.gravity * height + 0.5 * self.pivot * float(phi[0]) ** 2

    def ground_force(self, phi: Array, rate: Array, acceleration: Array) -> Array:
        """Return the force of the ground on the stance foot, ahead and upwards (2,) [N]."""
        s, c = np.sin(phi), np.cos(phi)
        ahead = self.moments @ (c * acceleration - s * rate**2)
        up = self.moments @ (-s * acceleration - c * rate**2)
        return np.array([ahead, up + self.masses.sum() * self.gravity])

    def heel_strike(self, phi: Array, rate: Array) -> tuple[Array, Array]:
        """Return phi and phi' (3,) after the swinging foot has landed, without slip or rebound, to be the stance foot.

        Kept are the angular momenta of everything about the new foot, of the old leg about the hip, and of the trunk
        about the hip: the other foot leaves without an impulse.
        """
        after = phi[EXCHANGED]
        M, _ = self.equations(after, rate[EXCHANGED])
        # Velocities before, with the hip's: the new stance foot moves, so that M alone does not know them.
        hip = self.length * rate[0] * np.array([np.cos(phi[0]), -np.sin(phi[0])])
        own = self.length * rate[1] * np.array([np.cos(phi[1]), -np.sin(phi[1])])
        foot = hip - own
        directions = np.column_stack([np.cos(after), -np.sin(after)])
        carried = self.moments * (directions @ foot)
        new = rate[EXCHANGED] + np.linalg.solve(M, carried)
        return after, new

    def step(self, phi: Array, rate: Array, torque: LinkTorque, longest: float) -> LinkStep:
        """Return the motion on one foot until the other one lands ahead, or ``longest`` [s] are over.

        Raises:
            NoReturnError: The walker falls.
        """

        def slope(t: float, z: Array) -> Array:
            return np.concatenate([z[3:], self.acceleration(z[:3], z[3:], torque(t, z[:3], z[3:]))])

        def lands(_t: float, z: Array) -> float:
            return float(z[0] + z[1]) if z[0] > 0.02 else -1.0

        def falls(_t: float, z: Array) -> float:
            return 1.2 - float(np.abs(z[:3]).max())

        lands.terminal = falls.terminal = True  # type: ignore[attr-defined]
        start = np.concatenate([phi, rate])
        events = (lands, falls)
        found = solve_ivp(slope, (0.0, longest), start, "DOP853", events=events, rtol=RELATIVE, atol=ABSOLUTE)
        if len(found.t_events[1]):
            raise NoReturnError(f"the walker falls from {np.asarray(start).tolist()}")
        return LinkStep(found.t, found.y[:3].T, found.y[3:].T, bool(len(found.t_events[0])))


class LinkConstraint:
    """phi_2 = p_2(phi_1) and phi_3 = p_3(phi_1): joint moments that leave one degree of freedom.

    What is left keeps s^2 / 2 less the integral of G I over phi_1, where s = I phi_1' is the angular momentum about the
    stance foot and G the moment about it.

    Args:
        walker: The walker.
        paths: p_2 and p_3, over the angle of the stance leg [rad].
        frequency: Of the feedback that holds them, critically damped [rad/s].
    """

    def __init__(self, walker: ThreeLinks, paths: Sequence[Polynomial | Chebyshev], frequency: float = 30.0) -> None:
        self.walker = walker
        self._paths = tuple((path, path.deriv(1), path.deriv(2)) for path in paths)
        self._frequency = frequency

    @classmethod
    def repeating(
        cls, walker: ThreeLinks, end: float, landing: tuple[float, float], lean: float, sway: float
    ) -> LinkConstraint:
        """Return the constraint that a touch-down at phi_1 = ``end`` leaves as it was, in angles and rates.

        Both paths are cubics through what is before a touch-down and what is after the one before, which their
        derivatives ``landing`` decide; the trunk's has ``sway`` u (1 - u^2)^2 more, u = phi_1 / end.

        Args:
            walker: The walker.
            end: [rad].
            landing: Rates of swinging leg and trunk before a touch-down, over that of the stance leg.
            lean: Of the trunk at a touch-down [rad].
            sway: [rad].
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
        """Return phi' (3,) over phi_1' on the constraint."""
        return np.array([1.0, *(path[1](angle) for path in self._paths)])

    def inertia(self, angle: float) -> float:
        """Return I [kg.m^2]."""
        return self.walker.momentum(self.posture(angle), self.slopes(angle))

    def moment(self, angle: float) -> float:
        """Return G [N.m]."""
        return self.walker.moment(self.posture(angle))

    def torque(self, _t: float, phi: Array, rate: Array) -> Array:
        """Return u (2,) [N.m] under which what is off the constraint decays, by computed torque (eq. 56)."""
        w = self._frequency
        M, N = self.walker.equations(phi, rate)
        free = np.linalg.solve(M, np.column_stack([SELECTION, -N]))
        bends = np.array([path[2](phi[0]) for path in self._paths]) * rate[0] ** 2
        slopes = np.array([path[1](phi[0]) for path in self._paths])
        error = phi[1:] - np.array([path[0](phi[0]) for path in self._paths])
        error_rate = rate[1:] - slopes * rate[0]
        rows = np.column_stack([-slopes, np.eye(2)])
        wanted = bends - 2.0 * w * error_rate - w**2 * error
        return np.linalg.solve(rows @ free[:, :2], wanted - rows @ free[:, 2])
