"""Find the parts of the soles on which the ankles can hold the weight of a robot."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from bipedsim.errors import ConfigError
from bipedsim.model import Robot, Sole, sole_placements
from bipedsim.numerics import Array

_LOW = 0.25
"""Largest height of an ankle joint above its sole, as a share of the height of the first joint of the leg."""
_LEVEL = 0.7
"""Smallest horizontal component of the axis of an ankle joint that limits the centre of pressure."""
_LEAST_AREA = 1e-5
"""Smallest usable area of a sole [m^2]."""
_ROUNDING = 1e-6
"""Relative error of an area."""


def sole_polygons(robot: Robot, share: float) -> list[Array]:
    """Return the usable polygon (N, 2) of each sole about its centre [m], counter-clockwise.

    The ankle of a robot on one foot has to hold a torque. It is the weight times the distance of the centre of pressure
    from the axis of the joint, in the standing posture. In the polygon it is at most ``share`` of the effort limit.
    Passive ankles do not limit it.

    Args:
        robot: The robot.
        share: Usable fraction of the effort limits; 0 for no limit.

    Raises:
        ConfigError: Nothing is left of a sole.
    """
    polygons = [sole.vertices - sole.centre for sole in robot.soles]
    if not share:
        return polygons
    model, data = robot.model, robot.model.createData()
    places = sole_placements(model, data, robot.soles, robot.q_nominal)
    pin.computeJointJacobians(model, data, robot.q_nominal)
    return [_clipped(robot, data, sole, place, share) for sole, place in zip(robot.soles, places, strict=True)]


def ankles_limit_soles(robot: Robot, share: float) -> bool:
    """Return whether ``share`` of the effort limits of the ankles excludes a part of a sole.

    Raises:
        ConfigError: Nothing is left of a sole.
    """
    whole, usable = sole_polygons(robot, 0.0), sole_polygons(robot, share)
    return any(area(part) < (1.0 - _ROUNDING) * area(sole) for part, sole in zip(usable, whole, strict=True))


def _clipped(robot: Robot, data: pin.Data, sole: Sole, place: pin.SE3, share: float) -> Array:
    polygon, up = sole.vertices - sole.centre, place.rotation[:, 2]
    centre = place.act(np.append(sole.centre, 0.0))
    leg = list(robot.model.supports[sole.joint_id])[2:]
    actuated = list(robot.idx_v)
    top = (data.oMi[leg[0]].translation - centre) @ up
    for joint in leg:
        column = robot.model.joints[joint].idx_v
        if column not in actuated:
            continue
        axis = pin.getJointJacobian(robot.model, data, joint, pin.LOCAL_WORLD_ALIGNED)[3:, column]
        arm = centre - data.oMi[joint].translation
        if -arm @ up > _LOW * top or np.linalg.norm(np.cross(axis, up)) < _LEVEL:
            continue
        # The torque of a vertical force f at p about the axis a through o is f (up x a) (p - o).
        gradient = robot.weight * np.cross(up, axis)
        slope = gradient @ place.rotation[:, :2]
        limit = share * robot.effort_limit[actuated.index(column)]
        for sign in (1.0, -1.0):
            polygon = below(polygon, sign * slope, limit - sign * float(gradient @ arm))
    if area(polygon) < _LEAST_AREA:
        raise ConfigError(f"leaves nothing of the sole of foot {sole.name!r}", "ankle_share", share)
    return polygon


def below(polygon: Array, slope: Array, limit: float) -> Array:
    """Return the part of a convex polygon (N, 2) where slope @ p <= limit; (0, 2) if there is none."""
    room = limit - polygon @ slope
    points = []
    for i in range(len(polygon)):
        before = i - 1
        if room[before] * room[i] < 0.0:
            share = room[before] / (room[before] - room[i])
            points.append(polygon[before] + share * (polygon[i] - polygon[before]))
        if room[i] >= 0.0:
            points.append(polygon[i])
    return np.array(points).reshape(-1, 2)


def area(polygon: Array) -> float:
    """Return the area of a polygon (N, 2), counter-clockwise."""
    x, y = polygon.T
    return 0.5 * float(x @ np.roll(y, -1) - y @ np.roll(x, -1))
