"""What a robot can stand without a step, in theory: the oracle of a push map; and how long its legs are."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from bipedsim.model import Robot, sole_placements
from bipedsim.numerics import Array, reach


@dataclass(frozen=True, eq=False)
class Stance:
    """How a robot stands just before it is pushed, in axes with x along its heading and the origin between its feet.

    Attributes:
        polygon: (N, 2) support, counter-clockwise [m].
        zmp: (2,) where the ground carries it [m].
        com_height: Of the CoM above the soles [m].
        mass: [kg].
        gravity: [m/s^2].
        feet: Names of the feet that carry it.
    """

    polygon: Array
    zmp: Array
    com_height: float
    mass: float
    gravity: float
    feet: tuple[str, ...]

    @property
    def omega(self) -> float:
        """Rate of the linear inverted pendulum, sqrt(g / z) [1/s]."""
        return float(np.sqrt(self.gravity / self.com_height))

    def reach(self, angle: float) -> float:
        """Return the distance [m] from the ZMP to the edge of the support towards ``angle`` [rad]; 0 from outside."""
        return reach(self.polygon, self.zmp, np.array([np.cos(angle), np.sin(angle)]))

    def bound(self, angle: float) -> float:
        """Return the largest impulse [N.s] towards ``angle`` [rad] that feet which stay can take: m omega reach.

        At rest the DCM xi = c + c'/omega is where the ZMP is. An impulse J moves it by J / (m omega) at once, and it
        can be brought back as long as the ZMP can be put beyond it (Pratt et al. 2006; Englsberger et al. 2015).
        Pushes that last, CoM heights that change and arms that swing make some per cent of difference.
        """
        return self.mass * self.omega * self.reach(angle)


def support_polygon(points: Array) -> Array:
    """Return the convex hull (N, 2) of points (n, 2), counter-clockwise."""
    from scipy.spatial import ConvexHull

    return np.asarray(points[ConvexHull(points).vertices])


class Leg(NamedTuple):
    """One leg of a robot in its nominal posture.

    Attributes:
        hip_height: Of the hip above the sole [m].
        ground: Height of the sole in the world [m].
        straight: Length from the hip to the sole of a leg that is stretched, along its joints [m].
        beside: Distance over the ground of the hip from the CoM [m].
    """

    hip_height: float
    ground: float
    straight: float
    beside: float


def leg_of(robot: Robot, k: int) -> Leg:
    """Return the leg of foot ``k``: from the joint next to the root to the sole."""
    model, data = robot.model, robot.model.createData()
    place = sole_placements(model, data, robot.soles, robot.q_nominal)[k].translation
    com = pin.centerOfMass(model, data, robot.q_nominal)
    points = [*(data.oMi[joint].translation for joint in list(model.supports[robot.soles[k].joint_id])[2:]), place]
    hip = points[0]
    straight = sum(float(np.linalg.norm(b - a)) for a, b in pairwise(points))
    return Leg(float(hip[2] - place[2]), float(place[2]), straight, float(np.hypot(*(hip - com)[:2])))
