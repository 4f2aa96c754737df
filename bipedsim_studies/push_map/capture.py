"""Compute the theoretical push limit of a standing robot, as a reference for push maps, and its leg geometry."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from bipedsim.model import Robot, sole_placements
from bipedsim.numerics import Array, reach


@dataclass(frozen=True, eq=False)
class PushStance:
    """Stance of a robot just before a push, in a frame with x along its heading and the origin between its feet.

    Attributes:
        polygon: (N, 2) support polygon, counter-clockwise [m].
        zmp: (2,) zero moment point [m].
        com_height: Height of the CoM above the soles [m].
        mass: Mass [kg].
        gravity: Gravitational acceleration [m/s^2].
        feet: Names of the feet in contact.
    """

    polygon: Array
    zmp: Array
    com_height: float
    mass: float
    gravity: float
    feet: tuple[str, ...]

    @property
    def omega(self) -> float:
        """Eigenvalue of the linear inverted pendulum, sqrt(g / z) [1/s]."""
        return float(np.sqrt(self.gravity / self.com_height))

    def reach(self, angle: float) -> float:
        """Return the distance [m] from the ZMP to the support's edge towards ``angle`` [rad], or 0 from outside."""
        return reach(self.polygon, self.zmp, np.array([np.cos(angle), np.sin(angle)]))

    def bound(self, angle: float) -> float:
        """Return the largest impulse [N.s] towards ``angle`` [rad] that fixed feet can withstand: m omega reach.

        At rest, the DCM xi = c + c'/omega equals the ZMP. An impulse J moves it instantly by J / (m omega). The DCM can
        be returned as long as the ZMP can be moved beyond it (Pratt et al. 2006; Englsberger et al. 2015). A finite
        push duration, variable CoM height and arm motion change the limit by some per cent.
        """
        return self.mass * self.omega * self.reach(angle)


def support_polygon(points: Array) -> Array:
    """Return the convex hull (N, 2) of points (n, 2), counter-clockwise."""
    from scipy.spatial import ConvexHull

    return np.asarray(points[ConvexHull(points).vertices])


class LegGeometry(NamedTuple):
    """Geometry of one leg in the nominal posture.

    Attributes:
        hip_height: Height of the hip above the sole [m].
        ground: Height of the sole in the world [m].
        straight: Length of the stretched leg from hip to sole, along its joints [m].
        beside: Horizontal distance of the hip from the CoM [m].
    """

    hip_height: float
    ground: float
    straight: float
    beside: float


def leg_of(robot: Robot, k: int) -> LegGeometry:
    """Return the geometry of the leg of foot ``k``, from the joint next to the root to the sole."""
    model, data = robot.model, robot.model.createData()
    sole_position = sole_placements(model, data, robot.soles, robot.q_nominal)[k].translation
    com = pin.centerOfMass(model, data, robot.q_nominal)
    points = [
        *(data.oMi[joint].translation for joint in list(model.supports[robot.soles[k].joint_id])[2:]),
        sole_position,
    ]
    hip = points[0]
    straight = sum(float(np.linalg.norm(b - a)) for a, b in pairwise(points))
    return LegGeometry(
        float(hip[2] - sole_position[2]), float(sole_position[2]), straight, float(np.hypot(*(hip - com)[:2]))
    )
