"""Gravity and ground reaction forces of static equilibrium, from the measurements of a robot."""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np
import pinocchio as pin

from bipedsim.control.loads import WHOLE
from bipedsim.dynamics import live_motions, live_poses, live_rows
from bipedsim.model import Chains, Robot
from bipedsim.numerics import Array, Integers, assign, box, cross, entry, kernel, mul, mul_t, point_velocity, zeros_of
from bipedsim.sim import Observation

EDGE = 0.003
"""Minimum distance [m] of the planned centre of pressure from the edges of the soles."""

UNPLANNED = np.array([math.nan, 0.0, 0.0, 0.0, 0.0])
"""The plan of a robot that stands still."""


class SupportArrays(NamedTuple):
    """Arrays of the kernels of :class:`StaticSupport`, in the axes of the base, for K feet.

    Attributes:
        axes: (joints, 3, 3), live; the rows are the axes of each joint.
        positions: (joints, 3) [m], live.
        twists: (joints, 6) in the frame of the joint, linear first; live.
        com, v_com: (3,) [m], [m/s]; live.
        imu_joint, imu_R: The joint that carries the IMU, and the rotation of the IMU in it.
        joint: (K,) joint above each ankle.
        centres, ankle_R, sole_R: (K, 3) centre of each sole [m], (K, 3, 3), (K, 3, 3), all in that joint.
        edges: (K, N, 4) see :func:`_edges`.
        weight, g, balance: [N], [m/s^2], shift of the centre of pressure per velocity of the CoM [s].
        now: (2,) planned vertical acceleration of the CoM [m/s^2], and the minimum load of this tick.
        up, lean: (3,) vertical measured by the IMU; direction of the ground reaction force.
        planned: (3,) planned velocity of the CoM [m/s].
        shift: (3,) from the load-weighted mean of the sole centres to the desired centre of pressure [m].
        place, share: (K, 3) centre of each sole [m], (K,) its share of the weight.
        forces, gravity: Results: (joints, 6) wrenches in the frames of the joints, (3,) [m/s^2].
    """

    axes: Array
    positions: Array
    twists: Array
    com: Array
    v_com: Array
    imu_joint: int
    imu_R: Array  # noqa: N815 -- R is the rotation
    joint: Integers
    centres: Array
    ankle_R: Array  # noqa: N815
    sole_R: Array  # noqa: N815
    edges: Array
    weight: float
    g: float
    balance: float
    now: Array
    up: Annotated[Array, 3]
    lean: Annotated[Array, 3]
    planned: Annotated[Array, 3]
    shift: Annotated[Array, 3]
    place: Annotated[Array, "K", 3]
    share: Annotated[Array, "K"]
    forces: Array
    gravity: Array


@kernel
def _locate_soles(b: SupportArrays, wrenches) -> float:  # type: ignore[no-untyped-def]
    """Locate the soles, and return the share of the ground reaction to apply, from the measured ankle wrenches."""
    carried = 0.0
    for f in range(b.joint.shape[0]):
        R = b.axes[b.joint[f]]
        for i in range(3):
            b.place[f, i] = b.positions[b.joint[f], i]
            for j in range(3):
                b.place[f, i] += R[j, i] * b.centres[f, j]
        for i in range(3):
            for j in range(3):
                for k in range(3):
                    carried += b.up[i] * R[j, i] * b.ankle_R[f, j, k] * wrenches[f, k]
    return min(max(carried / (WHOLE * b.weight), b.now[1]), 1.0)


@kernel
def _share_weight(b: SupportArrays, planned: float) -> None:
    """Fill each foot's share of the weight; the line between the centres of two feet takes the moment."""
    feet = b.joint.shape[0]
    for f in range(feet):
        b.share[f] = 1.0 / feet
    if feet != 2:
        return
    along = 0.0
    length = 0.0
    d_up = 0.0
    c_up = 0.0
    for i in range(3):
        d_up += (b.place[1, i] - b.place[0, i]) * b.up[i]
        c_up += (b.com[i] - b.place[0, i]) * b.up[i]
    for i in range(3):
        d = b.place[1, i] - b.place[0, i] - d_up * b.up[i]
        along += d * (b.com[i] - b.place[0, i] - c_up * b.up[i])
        length += d * d
    b.share[1] = min(max(along / max(length, 1e-12), 0.0), 1.0)
    if planned >= 0.0:
        b.share[1] = planned
    b.share[0] = 1.0 - b.share[1]


@kernel
def _tilt_force(b: SupportArrays, plan) -> None:  # type: ignore[no-untyped-def]
    """Fill planned velocity, gravity and force direction; the planned acceleration tilts the force in the sole axes."""
    pull = b.g + b.now[0]
    # In free flight there is no force to tilt.
    per_pull = 1.0 / pull if pull > 0.0 else 0.0
    for i in range(3):
        b.planned[i] = 0.0
        b.lean[i] = b.up[i]
        for f in range(b.joint.shape[0]):
            R = b.axes[b.joint[f]]
            for j in range(3):
                for k in range(2):
                    axis = b.share[f] * R[j, i] * b.sole_R[f, j, k]
                    b.planned[i] += axis * plan[1 + k]
                    b.lean[i] += axis * plan[3 + k] * per_pull
        b.gravity[i] = -pull * b.lean[i]


@kernel
def _fill_shift(b: SupportArrays, gyro) -> None:  # type: ignore[no-untyped-def]
    """Fill the shift of the centre of pressure: to below the CoM, and by ``balance`` times the CoM's velocity."""
    shift, v_com = b.shift, b.v_com
    # The angular velocity of the base is the gyro's, less the contribution of the joints between base and IMU.
    R = b.axes[b.imu_joint]
    wx = wy = wz = 0.0
    for k in range(3):
        component = -b.twists[b.imu_joint, 3 + k]
        for j in range(3):
            component += b.imu_R[k, j] * gyro[j]
        wx += R[k, 0] * component
        wy += R[k, 1] * component
        wz += R[k, 2] * component
    shift[:] = 0.0
    for f in range(b.joint.shape[0]):
        joint = b.joint[f]
        v = mul_t(b.axes[joint], b.twists[joint])
        arm = b.com[0] - b.positions[joint, 0], b.com[1] - b.positions[joint, 1], b.com[2] - b.positions[joint, 2]
        # This is the velocity of the CoM if the ankle rests. The foot's own rotation is left out: fed back on the small
        # inertia of a foot, it would be unstable with the smallest delay.
        rigid = point_velocity((v_com[0] - v[0], v_com[1] - v[1], v_com[2] - v[2], wx, wy, wz), arm)
        for i in range(3):
            shift[i] += b.share[f] * rigid[i]
    vertical = 0.0
    for i in range(3):
        shift[i] = b.com[i] + b.balance * (shift[i] - b.planned[i])
        for f in range(b.joint.shape[0]):
            shift[i] -= b.share[f] * b.place[f, i]
        vertical += shift[i] * b.up[i]
    for i in range(3):
        shift[i] -= vertical * b.lean[i]


@kernel
def _share_inside(b: SupportArrays) -> float:
    """Return the largest share of the shift that keeps the centre of pressure inside every sole."""
    scale = 1.0
    for f in range(b.joint.shape[0]):
        x, y, z = mul(b.axes[b.joint[f]], b.shift)
        for e in range(b.edges.shape[1]):
            outward = b.edges[f, e, 0] * x + b.edges[f, e, 1] * y + b.edges[f, e, 2] * z
            if outward > b.edges[f, e, 3]:
                scale = min(scale, max(b.edges[f, e, 3], 0.0) / outward)
    return scale


@entry
def _balance(balance, up_imu, gyro, wrenches, plan):  # type: ignore[no-untyped-def]
    """Fill gravity and the ground reaction wrench on each foot for static equilibrium.

    The IMU gives the vertical and the rotation. The velocities come from the loaded ankles, which do not move. See
    :class:`StaticSupport` for the distribution.
    """
    b = balance.arrays
    assign(b.up, mul_t(b.axes[b.imu_joint], mul(b.imu_R, up_imu)))
    load = _locate_soles(b, wrenches)
    _share_weight(b, plan[0])
    _tilt_force(b, plan)
    _fill_shift(b, gyro)
    scale = _share_inside(b)
    for f in range(b.joint.shape[0]):
        joint = b.joint[f]
        R, force, origin = b.axes[joint], b.forces[joint], b.positions[joint]
        pull = b.weight * (1.0 + b.now[0] / b.g) * b.share[f] * load
        lean = mul(R, b.lean)
        assign(force, (pull * lean[0], pull * lean[1], pull * lean[2]))
        x = b.place[f, 0] + scale * b.shift[0] - origin[0]
        y = b.place[f, 1] + scale * b.shift[1] - origin[1]
        z = b.place[f, 2] + scale * b.shift[2] - origin[2]
        assign(force[3:], cross(mul(R, (x, y, z)), force))


class StaticSupport:
    """Compute the joint torques g(q) - J^T f that support a robot on its feet.

    f is the ground reaction of static equilibrium: the whole weight, along the vertical of the IMU. Its centre of
    pressure is below the CoM, shifted by ``balance`` times the CoM's velocity. This damps sway more than joint damping
    can.

    Two feet share the force so that the line between their centres takes the moment; other numbers of feet share it
    equally. The remaining moment shifts the centre of pressure by the same amount under every foot, within the soles.
    If the feet together carry less than a fifth of the weight, as in the air, the force is reduced in proportion.

    A plan gives the share of each foot and the motion of the CoM. The force then tilts with the planned acceleration,
    and ``balance`` acts on the difference between measured and planned velocity. In closed kinematic chains the passive
    joints follow from the driven ones, and the drives also apply the torques of the passive joints.

    Args:
        robot: The robot; free-flying, with at least one foot.
        balance: Shift of the centre of pressure per velocity of the CoM [s].
    """

    def __init__(self, robot: Robot, balance: float) -> None:
        self._robot = robot
        # A separate model is needed because here the base stays fixed and gravity rotates instead.
        self._model = model = pin.Model(robot.model)
        self._data = data = model.createData()
        self._q = pin.neutral(model)
        self._v = np.zeros(model.nv)
        self._chains = Chains(robot) if robot.loops else None
        self._up = np.zeros(3)
        self._now = np.array([0.0, 1.0])
        self._forces = pin.StdVec_Force()
        for _ in range(model.njoints):
            self._forces.append(pin.Force.Zero())
        pin.centerOfMass(model, data, self._q, self._v, False)
        joints, soles = robot.ankle_joint_ids, robot.soles
        poses = live_poses(data, model.njoints)
        edges = np.zeros((len(joints), max(sole.n_vertices for sole in soles), 4))
        for row, sole in zip(edges, soles, strict=True):
            row[: sole.n_vertices] = _edges(sole.vertices, sole.placement_joint_sole.rotation)
        self._box = box(
            zeros_of(
                SupportArrays,
                {"K": len(joints)},
                axes=poses[:, :9].reshape(-1, 3, 3),
                positions=poses[:, 9:],
                twists=live_motions(data.v, model.njoints),
                com=data.com[0],
                v_com=data.vcom[0],
                imu_joint=int(robot.imu_joint_id),
                imu_R=np.ascontiguousarray(robot.placement_joint_imu.rotation),
                joint=np.array(joints, dtype=np.int64),
                centres=np.array([s.placement_joint_sole.act(np.append(s.centre, 0.0)) for s in soles]),
                ankle_R=np.array([m.rotation for m in robot.placement_joint_ankle]),
                sole_R=np.array([s.placement_joint_sole.rotation for s in soles]),
                edges=edges,
                weight=robot.weight,
                g=robot.weight / robot.mass,
                balance=balance,
                now=self._now,
                forces=live_rows([force.vector for force in self._forces], 6),
                gravity=model.gravity.linear,
            )
        )

    def reset(self) -> None:
        """Treat the next tick as standing, because a simulator measures no ground reaction before its first step."""
        self._now[1] = 1.0
        if self._chains is not None:
            self._chains.reset()

    def torque(self, observation: Observation, a_up: float = 0.0, plan: Array = UNPLANNED) -> Array:
        """Return the generalised torques (nv,); base rows are 0 in equilibrium. The next call overwrites them.

        Args:
            observation: Joint states, IMU and foot wrenches are read.
            a_up: Planned vertical acceleration of the CoM [m/s^2], added to gravity.
            plan: (5,) share of the weight on the second of two feet, NaN to derive it from the position of the CoM;
                planned velocity [m/s] and acceleration [m/s^2] of the CoM along x and y of the soles.
        """
        robot = self._robot
        self._q[robot.idx_q] = observation.joint_position
        self._v[robot.idx_v] = observation.joint_velocity
        if self._chains is not None:
            self._chains.follow(observation.joint_position, observation.joint_velocity)
            self._chains.fill(self._q, self._v)
        pin.centerOfMass(self._model, self._data, self._q, self._v, False)
        x, y, z, w = observation.imu_orientation
        self._up[:] = (2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y))
        self._now[0] = a_up
        _balance(self._box, self._up, observation.imu_angular_velocity, observation.foot_wrench, plan)
        self._now[1] = 0.0
        torque: Array = pin.computeStaticTorque(self._model, self._data, self._q, self._forces)
        if self._chains is not None:
            self._chains.carry(torque)
        return torque


def _edges(vertices: Array, rotation: Array) -> Array:
    """Return (N, 4): outward normal of each edge in the joint frame, and the distance [m] from the centre to it.

    The distance is reduced by the margin ``EDGE``.
    """
    if len(vertices) < 3:
        return np.tile([0.0, 0.0, 0.0, math.inf], (len(vertices), 1))
    along = np.roll(vertices, -1, axis=0) - vertices
    normals = np.column_stack([along[:, 1], -along[:, 0]]) / np.hypot(along[:, 0], along[:, 1])[:, None]
    room = np.einsum("ij,ij->i", normals, vertices - vertices.mean(axis=0)) - EDGE
    return np.column_stack([normals @ rotation[:, :2].T, room])
