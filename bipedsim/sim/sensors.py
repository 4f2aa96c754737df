"""Ideal sensors from the state and the contact of one step: encoders, IMUs, ankle sensors and contact switches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bipedsim.contact import ContactResult
from bipedsim.dynamics import (
    UNIVERSE,
    Joints,
    accelerate,
    lever,
    move,
    needs,
    place,
    place_joints,
    turned_inertia,
)
from bipedsim.model import Robot
from bipedsim.numerics import (
    Array,
    Flags,
    Integers,
    act,
    assign,
    box,
    cross,
    entry,
    kernel,
    mul_t,
    point_acceleration,
    ready,
    to_quaternion,
    turn_axes,
)
from bipedsim.sim.io import Observation


class Instruments(NamedTuple):
    """Store the sensors of a robot with K feet: inputs, mounting frames and output.

    Attributes:
        joints: Joints of the robot after the step. Motions are those of joints that carry an instrument or a sole, or
            are distal to an instrument.
        below: (joints,) whether each joint carries an ankle sensor or is distal to one.
        load: (joints, 6) force and torque for the motion of the subtree of each of these, in the world at ``origin``.
        imu_joint, imu_R, imu_p: (1 + M,), (1 + M, 3, 3), (1 + M, 3) joint that carries each IMU, and the IMU frame in
            that joint; the main IMU first.
        ankle_joint, ankle_R, ankle_p: (K,), (K, 3, 3), (K, 3) joint that carries each ankle sensor, and the sensor
            frame in it.
        hangs: (K,) whether the mass of the foot is below the sensor; there is none below a load cell.
        sole_to_ankle: (K, 6, 6) transforms of wrenches from sole to ankle frame.
        foot_joint, sole_R, sole_p: (K,), (K, 3, 3), (K, 3) joint of each sole, and the sole frame in it.
        radius: (K,) of the ball feet [m], 0 for all other feet.
        switch_foot, switch_force: (W,) foot of each contact switch, and the normal force that closes it [N].
        axes: (3, 3) work array.
        idx_q, idx_v: (nu,) indices of the joint positions in q and of the joint velocities in v.
        observation: Output.
    """

    joints: Joints
    below: Flags
    load: Array
    imu_joint: Integers
    imu_R: Array  # noqa: N815 -- R is the rotation
    imu_p: Array
    ankle_joint: Integers
    ankle_R: Array  # noqa: N815
    ankle_p: Array
    hangs: Flags
    sole_to_ankle: Array
    foot_joint: Integers
    sole_R: Array  # noqa: N815
    sole_p: Array
    radius: Array
    switch_foot: Integers
    switch_force: Array
    axes: Array
    idx_q: Integers
    idx_v: Integers
    observation: Observation


@kernel
def _imu(s: Instruments, i, orientation, rate, force):
    """Fill the measurements of IMU ``i``: quaternion x y z w, angular velocity and specific force."""
    j, o = s.imu_joint[i], s.joints.origin
    pose, twist = s.joints.poses[j], s.joints.twists[j]
    turn_axes(pose, s.imu_R[i], s.axes)
    to_quaternion(s.axes, orientation)
    x, y, z = act(pose, s.imu_p[i])
    acceleration = point_acceleration(twist, s.joints.accelerations[j], (x - o[0], y - o[1], z - o[2]))
    assign(rate, mul_t(s.axes, twist[3:]))
    assign(force, mul_t(s.axes, acceleration))


@kernel
def _additional(s: Instruments, sole_wrench):
    """Fill the measurements of the additional IMUs and of the contact switches."""
    out = s.observation
    for i in range(out.imus.shape[0]):
        row = out.imus[i]
        _imu(s, i + 1, row[:4], row[4:7], row[7:])
    for w in range(s.switch_foot.shape[0]):
        out.contact_switches[w] = 1.0 if sole_wrench[s.switch_foot[w], 2] > s.switch_force[w] else 0.0


@kernel
def _ankles(s: Instruments, sole_wrench):
    """Fill the ankle wrenches: the ground wrench minus the wrench for the weight and the motion of the foot."""
    o = s.joints.origin
    for k in range(s.ankle_joint.shape[0]):
        out = s.observation.foot_wrench[k]
        for r in range(6):
            total = 0.0
            for c in range(6):
                total += s.sole_to_ankle[k, r, c] * sole_wrench[k, c]
            out[r] = total
        if s.hangs[k]:
            pose, load = s.joints.poses[s.ankle_joint[k]], s.load[s.ankle_joint[k]]
            turn_axes(pose, s.ankle_R[k], s.axes)
            x, y, z = act(pose, s.ankle_p[k])
            arm = cross((x - o[0], y - o[1], z - o[2]), load)
            force, torque = mul_t(s.axes, load), mul_t(s.axes, (load[3] - arm[0], load[4] - arm[1], load[5] - arm[2]))
            for a in range(3):
                out[a] -= force[a]
                out[3 + a] -= torque[a]


@kernel
def _move(s: Instruments, q, v, a):
    """Update joints and loads to the motion (q, v, a)."""
    t = s.joints
    place(t, q)
    for n in range(t.order.shape[0]):
        j = t.order[n]
        move(t, j, v)
        accelerate(t, j, a)
        if s.below[j]:
            load = needs(t, j, lever(t, j), turned_inertia(t, j))
            for r in range(6):
                s.load[j, r] = load[r]
    if s.below[UNIVERSE]:
        for r in range(6):
            s.load[UNIVERSE, r] = 0.0
    for n in range(t.order.shape[0] - 1, -1, -1):
        j = t.order[n]
        above = t.parent[j]
        if s.below[above]:
            for r in range(6):
                s.load[above, r] += s.load[j, r]


@entry
def _measure(instruments, q, v, a, tau_joint, sole_wrench):
    s = instruments.arrays
    out = s.observation
    for j in range(s.idx_v.shape[0]):
        out.joint_position[j] = q[s.idx_q[j]]
        out.joint_velocity[j] = v[s.idx_v[j]]
        out.joint_effort[j] = tau_joint[j]
    _move(s, q, v, a)
    _imu(s, 0, out.imu_orientation, out.imu_angular_velocity, out.imu_linear_acceleration)
    _ankles(s, sole_wrench)
    _additional(s, sole_wrench)


@entry
def _force_plates(instruments, impulse, cop, ground_axes, poses, cop_world):
    """Fill the poses of the soles and the centre of pressure of all feet, in the world.

    Args:
        instruments: See :class:`Instruments`.
        impulse, cop: (K, 6), (K, 2) impulse and CoP of the feet.
        ground_axes: (K, 3, 3) axes of the ground under each foot, normal last.
        poses: (K, 7) out, position and quaternion x y z w. cop_world: (3,) out, NaN in the air.
    """
    s = instruments.arrays
    R = s.axes
    for x in range(3):
        cop_world[x] = 0.0
    total = 0.0
    for k in range(poses.shape[0]):
        pose = s.joints.poses[s.foot_joint[k]]
        assign(poses[k], act(pose, s.sole_p[k]))
        turn_axes(pose, s.sole_R[k], R)
        to_quaternion(R, poses[k, 3:])
        fz = impulse[k, 2]
        if fz > 0.0:
            for x in range(3):
                below = s.radius[k] * ground_axes[k, x, 2]
                cop_world[x] += fz * (poses[k, x] + R[x, 0] * cop[k, 0] + R[x, 1] * cop[k, 1] - below)
            total += fz
    for x in range(3):
        cop_world[x] = cop_world[x] / total if total > 0.0 else np.nan


class Sensors:
    """Fill one Observation from the state, as ideal sensors without noise.

    Args:
        robot: The robot, with joint order, frames of IMUs and ankles, and contact switches.
        placed: Joints of the robot whose poses the sensors and the equations of motion share: the next step then need
            not compute them again. By default the sensors have their own.

    Attributes:
        observation: The last measurement; always the same object.
    """

    def __init__(self, robot: Robot, placed: Joints | None = None) -> None:
        model = robot.model
        self.observation = obs = Observation.of_robot(robot)
        imus = [(robot.imu_joint_id, robot.placement_joint_imu)]
        imus += [(imu.joint_id, imu.placement_joint_imu) for imu in robot.imus]
        feet = [sole.name for sole in robot.soles]
        ankles = robot.placement_joint_ankle
        soles = [(ankle, sole.placement_joint_sole) for ankle, sole in zip(ankles, robot.soles, strict=True)]
        below = [not set(model.supports[j]).isdisjoint(robot.ankle_joint_ids) for j in range(model.njoints)]
        carriers = {*(joint for joint, _ in imus), *(sole.joint_id for sole in robot.soles)}
        joints = Joints.of_model(model, {*carriers, *np.flatnonzero(below).tolist()})
        if placed is not None:
            joints = joints._replace(poses=placed.poses, origin=placed.origin, S=placed.S, placed=placed.placed)
        self._joints = box(joints)
        self._instruments = box(
            Instruments(
                joints=joints,
                below=np.array(below),
                load=np.zeros((model.njoints, 6)),
                imu_joint=np.array([joint for joint, _ in imus], dtype=np.int64),
                imu_R=np.array([placement.rotation for _, placement in imus]),
                imu_p=np.array([placement.translation for _, placement in imus]),
                ankle_joint=np.array(robot.ankle_joint_ids, dtype=np.int64),
                ankle_R=np.array([ankle.rotation for ankle in ankles]),
                ankle_p=np.array([ankle.translation for ankle in ankles]),
                hangs=np.array([not sole.load_cell for sole in robot.soles]),
                sole_to_ankle=np.array([ankle.actInv(sole).toDualActionMatrix() for ankle, sole in soles]),
                foot_joint=np.array([sole.joint_id for sole in robot.soles], dtype=np.int64),
                sole_R=np.array([sole.rotation for _, sole in soles]),
                sole_p=np.array([sole.translation for _, sole in soles]),
                radius=np.array([sole.radius for sole in robot.soles]),
                switch_foot=np.array([feet.index(each.foot) for each in robot.contact_switches], dtype=np.int64),
                switch_force=np.array([each.threshold for each in robot.contact_switches], dtype=np.float64),
                axes=np.zeros((3, 3)),
                idx_q=np.ascontiguousarray(robot.idx_q, dtype=np.int64),
                idx_v=np.ascontiguousarray(robot.idx_v, dtype=np.int64),
                observation=obs,
            )
        )
        vectors = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv), np.zeros(robot.nu)
        self._measure = ready(_measure, self._instruments, *vectors, obs.foot_wrench)

    def measure(self, t: float, q: Array, v: Array, a: Array, tau_joint: Array, contact: ContactResult) -> Observation:
        """Return the measurements at time ``t``; the next call overwrites the observation.

        Args:
            t: Time [s].
            q, v: State after the step, (nq,) and (nv,).
            a: (nv,) mean acceleration over the step, (v+ - v) / h.
            tau_joint: (nu,) torque applied over the step [N.m].
            contact: Ground reactions over the step.
        """
        self.observation.t = t
        self._measure(self._instruments, q, v, a, tau_joint, contact.wrench)
        return self.observation

    def place(self, q: Array) -> None:
        """Update the poses that :meth:`force_plates` reads to the configuration ``q`` (nq,)."""
        place_joints(self._joints, q)

    def restore(self, q: Array, observation: Observation) -> Observation:
        """Restore an earlier observation, measured at the configuration ``q`` (nq,), and return it."""
        self.place(q)
        return self.observation.take(observation)

    def force_plates(self, contact: ContactResult, ground_axes: Array) -> tuple[Array, Array]:
        """Return sole poses (K, 7) and overall CoP (3,), NaN in the air, in the world, at the last measurement.

        Args:
            contact: Ground reactions over the step.
            ground_axes: (K, 3, 3) axes of the ground under each foot, normal last.
        """
        poses = np.empty((len(contact.impulse), 7))
        cop_world = np.empty(3)
        _force_plates(self._instruments, contact.impulse, contact.cop, ground_axes, poses, cop_world)
        return poses, cop_world
