"""Compute the terms of eq. 1 from a robot's model: mass matrix, bias forces, and Jacobian and drift of points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim_studies.complementarity import System, Terms

X, Z = 0, 2
"""Rows of a point's Jacobian that are tangential and normal on flat ground, for motion in the plane y = 0."""


@dataclass(frozen=True, eq=False)
class Mechanics:
    """Robot in one state, in the form of eq. 1.

    Attributes:
        M: (nv, nv) mass matrix, both triangles.
        nle: (nv,) bias forces N(q, v) [N, N.m]; without torques h = -nle.
        position: (p, 3) positions of the points in the world [m].
        rows: (p, 3, nv) Jacobian: world velocity of the points = rows @ v.
        drift: (p, 3) acceleration of the points at a = 0, Jdot v [m/s^2].
    """

    M: Array
    nle: Array
    position: Array
    rows: Array
    drift: Array


def of_frames(robot: Robot, names: Sequence[str]) -> list[tuple[int, Array]]:
    """Return the origins of frames as points (joint, (3,) [m] in the joint frame)."""
    frames = [robot.model.frames[robot.model.getFrameId(name)] for name in names]
    return [(int(frame.parentJoint), frame.placement.translation.copy()) for frame in frames]


def of_soles(robot: Robot) -> list[tuple[int, Array]]:
    """Return the vertices of all soles as points (joint, (3,) [m] in the joint frame)."""
    return [(sole.joint_id, vertex) for sole in robot.soles for vertex in sole.vertices_joint]


def mass_matrix(data: pin.Data) -> Array:
    """Return the symmetric mass matrix (nv, nv) in ``data``; pinocchio fills only the upper triangle."""
    return np.asarray(np.triu(data.M) + np.triu(data.M, 1).T)


def mechanics(robot: Robot, q: ArrayLike, v: ArrayLike, points: Sequence[tuple[int, Array]]) -> Mechanics:
    """Evaluate a robot at q (nq,), v (nv,), with the Jacobians of ``points`` (joint, (3,) [m] in the joint frame)."""
    model, data = robot.model, robot.model.createData()
    q, v = np.asarray(q, dtype=np.float64), np.asarray(v, dtype=np.float64)
    pin.computeAllTerms(model, data, q, v)
    M = mass_matrix(data)
    nle = data.nle.copy()
    pin.forwardKinematics(model, data, q, v, np.zeros(model.nv))
    world = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    position, rows, drift = [], [], []
    for joint, point in points:
        arm = data.oMi[joint].rotation @ point
        J = pin.getJointJacobian(model, data, joint, world)
        spin = pin.getVelocity(model, data, joint, world).angular
        # This is the acceleration of the joint's origin, with the centripetal part that spatial accelerations omit.
        origin = pin.getClassicalAcceleration(model, data, joint, world)
        position.append(data.oMi[joint].translation + arm)
        rows.append(J[:3] - pin.skew(arm) @ J[3:])
        drift.append(origin.linear + np.cross(origin.angular, arm) + np.cross(spin, np.cross(spin, arm)))
    return Mechanics(M, nle, np.array(position), np.array(rows), np.array(drift))


def between_stops(
    robot: Robot, J: ArrayLike, offset: ArrayLike, forces: Callable[[float, Array, Array], ArrayLike]
) -> System:
    """Return a robot as a system with the gaps J q + offset (m,) [m].

    ``forces`` returns generalised forces (nv,) as a function of t, q and v.
    """
    rows, constant, model = np.asarray(J, dtype=np.float64), np.asarray(offset, dtype=np.float64), robot.model
    data, bias = model.createData(), np.zeros(len(rows))

    def terms(t: float, q: Array, v: Array) -> Terms:
        pin.computeAllTerms(model, data, q, v)
        return Terms(mass_matrix(data), np.asarray(forces(t, q, v)) - data.nle, rows, bias, rows @ q + constant)

    return terms
