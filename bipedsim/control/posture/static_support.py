"""Gravity and ground reaction of static equilibrium, from what a robot measures."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from bipedsim.model import Robot
from bipedsim.numerics import control_entry
from bipedsim.sim import Observation

Array = NDArray[np.float64]

EDGE = 0.003
"""The planned centre of pressure stays this far [m] inside the soles."""
LOADED = 0.2
"""Share of the weight on the feet at which the ground reaction is taken in full; below, in proportion."""

UNPLANNED = np.array([math.nan, 0.0, 0.0, 0.0, 0.0])
"""The plan of a robot that stays where it is."""


@control_entry
def _balance(up_imu, gyro, imu, twist_imu, com, v_com, rotations, positions, twists, wrenches, const, forces, gravity):  # type: ignore[no-untyped-def]
    """Fill gravity (3,) and the ground's wrench on each foot (6,), in the frame of its joint, for static equilibrium.

    Everything is in the axes of the base: up and rotation come from the IMU, velocities from the ankles that carry the
    weight and do not move. See :class:`StaticSupport` for the distribution.
    """
    imu_placement, centres, ankle_rotations, sole_rotations, edges, numbers, plan = const
    weight, g, balance, a_up, least_load = numbers
    feet = len(rotations)
    up = np.zeros(3)
    for i in range(3):
        for k in range(3):
            component = 0.0
            for j in range(3):
                component += imu_placement[k, j] * up_imu[j]
            up[i] += imu[k, i] * component
    p = np.zeros((feet, 3))
    mean = np.zeros(3)
    carried = 0.0
    for f in range(feet):
        R = rotations[f]
        for i in range(3):
            p[f, i] = positions[f][i]
            for j in range(3):
                p[f, i] += R[j, i] * centres[f, j]
            mean[i] += p[f, i] / feet
        for i in range(3):
            for j in range(3):
                for k in range(3):
                    carried += up[i] * R[j, i] * ankle_rotations[f, j, k] * wrenches[f, k]
    load = min(max(carried / (LOADED * weight), least_load), 1.0)
    share = np.full(feet, 1.0 / feet)
    if feet == 2:
        along = 0.0
        length = 0.0
        d_up = 0.0
        c_up = 0.0
        for i in range(3):
            d_up += (p[1, i] - p[0, i]) * up[i]
            c_up += (com[i] - p[0, i]) * up[i]
        for i in range(3):
            d = p[1, i] - p[0, i] - d_up * up[i]
            along += d * (com[i] - p[0, i] - c_up * up[i])
            length += d * d
        share[1] = min(max(along / max(length, 1e-12), 0.0), 1.0)
        if plan[0] >= 0.0:
            share[1] = plan[0]
        share[0] = 1.0 - share[1]
    # Planned velocity, and what leans the force: the planned acceleration, along the soles that carry the weight.
    planned = np.zeros(3)
    lean = np.zeros(3)
    # In free flight there is no force that could lean.
    per_pull = 1.0 / (g + a_up) if g + a_up > 0.0 else 0.0
    for i in range(3):
        lean[i] = up[i]
        for f in range(feet):
            R = rotations[f]
            for j in range(3):
                for k in range(2):
                    axis = share[f] * R[j, i] * sole_rotations[f, j, k]
                    planned[i] += axis * plan[1 + k]
                    lean[i] += axis * plan[3 + k] * per_pull
        gravity[i] = -(g + a_up) * lean[i]
    # Angular velocity of the base: the gyro's, less what the joints between base and IMU add.
    w = np.zeros(3)
    for i in range(3):
        for k in range(3):
            component = -twist_imu[3 + k]
            for j in range(3):
                component += imu_placement[k, j] * gyro[j]
            w[i] += imu[k, i] * component
    shift = np.zeros(3)
    for f in range(feet):
        R = rotations[f]
        v = np.zeros(3)
        for i in range(3):
            for j in range(3):
                v[i] += R[j, i] * twists[f][j]
        x = com[0] - positions[f][0]
        y = com[1] - positions[f][1]
        z = com[2] - positions[f][2]
        # Velocity of the CoM if the ankle rests. The foot's own rotation stays out of it: fed back on a foot's small
        # inertia it would be unstable with the least delay.
        shift[0] += share[f] * (v_com[0] - v[0] + w[1] * z - w[2] * y)
        shift[1] += share[f] * (v_com[1] - v[1] + w[2] * x - w[0] * z)
        shift[2] += share[f] * (v_com[2] - v[2] + w[0] * y - w[1] * x)
    vertical = 0.0
    for i in range(3):
        shift[i] = com[i] + balance * (shift[i] - planned[i])
        for f in range(feet):
            shift[i] -= share[f] * p[f, i]
        vertical += shift[i] * up[i]
    for i in range(3):
        shift[i] -= vertical * lean[i]
    # The same shift under every foot, shortened until it stays inside the tightest sole.
    scale = 1.0
    for f in range(feet):
        R = rotations[f]
        local = np.zeros(3)
        for j in range(3):
            for i in range(3):
                local[j] += R[j, i] * shift[i]
        for e in range(edges.shape[1]):
            outward = edges[f, e, 0] * local[0] + edges[f, e, 1] * local[1] + edges[f, e, 2] * local[2]
            if outward > edges[f, e, 3]:
                scale = min(scale, max(edges[f, e, 3], 0.0) / outward)
    for f in range(feet):
        R = rotations[f]
        pull = weight * (1.0 + a_up / g) * share[f] * load
        local_lean = np.zeros(3)
        arm = np.zeros(3)
        for j in range(3):
            for i in range(3):
                local_lean[j] += R[j, i] * lean[i]
                arm[j] += R[j, i] * (p[f, i] + scale * shift[i] - positions[f][i])
        force = forces[f]
        for i in range(3):
            force[i] = pull * local_lean[i]
        force[3] = arm[1] * force[2] - arm[2] * force[1]
        force[4] = arm[2] * force[0] - arm[0] * force[2]
        force[5] = arm[0] * force[1] - arm[1] * force[0]


class StaticSupport:
    """Joint torques g(q) - J^T f that hold a robot up on its feet.

    f is the ground reaction of static equilibrium: the whole weight, vertical by the IMU, its centre of pressure below
    the CoM and shifted by ``balance`` times the CoM's velocity, which damps sway more than joint damping can. Two feet
    share it so that the line between their centres carries the moment, other numbers of feet share it equally; what is
    left shifts the centre of pressure under every foot alike, within the soles. Feet that carry less than a fifth of
    the weight together, as in the air, get in proportion less. A plan says what each foot carries and how the CoM
    moves: then the force leans with the planned acceleration, and ``balance`` acts on the difference of the velocities.

    Args:
        robot: The robot; free-flying, with at least one foot.
        balance: Shift of the centre of pressure per velocity of the CoM [s].
    """

    def __init__(self, robot: Robot, balance: float) -> None:
        self._robot = robot
        self._balance = balance
        self._weight = robot.weight
        self._g = robot.weight / robot.mass
        self._least_load = 1.0
        # Gravity turns with the base here and the base stays put: a model of its own.
        self._model = pin.Model(robot.model)
        self._data = data = self._model.createData()
        self._q = pin.neutral(self._model)
        self._v = np.zeros(self._model.nv)
        self._up = np.zeros(3)
        self._forces = pin.StdVec_Force()
        for _ in range(self._model.njoints):
            self._forces.append(pin.Force.Zero())
        pin.centerOfMass(self._model, data, self._q, self._v, False)
        # Live views of pinocchio's data, refilled in place by every call.
        joints = robot.ankle_joint_ids
        self._views = (
            np.asarray(data.oMi[robot.imu_joint_id].rotation).T,
            data.v[robot.imu_joint_id].vector,
            data.com[0],
            data.vcom[0],
            tuple(np.asarray(data.oMi[j].rotation).T for j in joints),
            tuple(data.oMi[j].translation for j in joints),
            tuple(data.v[j].vector for j in joints),
        )
        self._feet_views = tuple(self._forces[j].vector for j in joints)
        self._gravity = self._model.gravity.linear
        most = max(s.n_vertices for s in robot.soles)
        edges = np.zeros((len(joints), most, 4))
        for row, sole in zip(edges, robot.soles, strict=True):
            row[: sole.n_vertices] = _edges(sole.vertices, sole.placement_joint_sole.rotation)
        self._const = (
            np.ascontiguousarray(robot.placement_joint_imu.rotation),
            np.array([s.placement_joint_sole.act(np.append(s.centre, 0.0)) for s in robot.soles]),
            np.array([m.rotation for m in robot.placement_joint_ankle]),
            np.array([s.placement_joint_sole.rotation for s in robot.soles]),
            edges,
        )

    def reset(self) -> None:
        """Take the next tick as standing: before its first step, a simulator has measured no ground reaction."""
        self._least_load = 1.0

    def torque(self, observation: Observation, a_up: float = 0.0, plan: Array = UNPLANNED) -> Array:
        """Return the generalised torques (nv,); base rows are 0 in equilibrium. Overwritten by the next call.

        Args:
            observation: Joint states, IMU and foot wrenches are read.
            a_up: Planned vertical acceleration of the CoM [m/s^2], added to gravity.
            plan: (5,) share of the second of two feet of the weight, NaN for the one that the CoM's place asks for;
                planned velocity [m/s] and acceleration [m/s^2] of the CoM along x and y of the soles.
        """
        robot = self._robot
        self._q[robot.idx_q] = observation.joint_position
        self._v[robot.idx_v] = observation.joint_velocity
        pin.centerOfMass(self._model, self._data, self._q, self._v, False)
        x, y, z, w = observation.imu_orientation
        self._up[:] = (2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y))
        numbers = (self._weight, self._g, self._balance, a_up, self._least_load)
        _balance(
            self._up,
            observation.imu_angular_velocity,
            *self._views,
            observation.foot_wrench,
            (*self._const, numbers, plan),
            self._feet_views,
            self._gravity,
        )
        self._least_load = 0.0
        torque: Array = pin.computeStaticTorque(self._model, self._data, self._q, self._forces)
        return torque


def _edges(vertices: Array, rotation: Array) -> Array:
    """Return (N, 4): outward normal of each edge in the joint frame, and the room [m] from the sole's centre to it."""
    if len(vertices) < 3:
        return np.tile([0.0, 0.0, 0.0, math.inf], (len(vertices), 1))
    along = np.roll(vertices, -1, axis=0) - vertices
    normals = np.column_stack([along[:, 1], -along[:, 0]]) / np.hypot(along[:, 0], along[:, 1])[:, None]
    room = np.einsum("ij,ij->i", normals, vertices - vertices.mean(axis=0)) - EDGE
    return np.column_stack([normals @ rotation[:, :2].T, room])
