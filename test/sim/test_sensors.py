"""Measurements of the robot, compared with closed forms and an independent momentum balance."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings, strategies as st
from physics_support import G, standing_torque

from bipedsim.contact import ContactResult
from bipedsim.model import ROBOTS, Robot, load_robot
from bipedsim.numerics.spatial import to_quaternion
from bipedsim.sim.sensors import Sensors
from bipedsim.sim.simulator import Simulator

loaded = lru_cache(load_robot)


@pytest.fixture(scope="module", params=["biped14", "talos"])
def robot(request: pytest.FixtureRequest) -> Robot:
    return load_robot(request.param)


@given(st.tuples(*[st.floats(-4.0, 4.0)] * 3))
def test_quaternions_come_from_any_rotation(rotation_vector: tuple[float, float, float]) -> None:
    R = pin.exp3(np.array(rotation_vector))
    quaternion = np.zeros(4)
    to_quaternion(R, quaternion)
    assert quaternion[3] >= 0.0
    assert np.linalg.norm(quaternion) == pytest.approx(1.0)
    np.testing.assert_allclose(pin.Quaternion(quaternion).matrix(), R, atol=1e-12)


def test_standing_ankles_carry_all_but_the_feet(robot: Robot) -> None:
    sim = Simulator(robot)
    tau = standing_torque(robot)
    for _ in range(3):
        observation = sim.step(tau)
    feet = sum(robot.model.inertias[joint].mass for joint in robot.ankle_joint_ids)
    upward = 0.0
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, sim.q)
    for k, joint in enumerate(robot.ankle_joint_ids):
        axes = data.oMi[joint].act(robot.placement_joint_ankle[k]).rotation
        upward += float((axes @ observation.foot_wrench[k, :3])[2])
    assert upward == pytest.approx((robot.mass - feet) * G, rel=1e-6)


def test_imu_at_rest_shows_plus_g_along_the_upward_axis(robot: Robot) -> None:
    observation = Simulator(robot).reset()
    axes = pin.Quaternion(observation.imu_orientation).matrix()
    np.testing.assert_allclose(axes @ observation.imu_linear_acceleration, [0.0, 0.0, G], atol=1e-9)
    np.testing.assert_allclose(observation.imu_angular_velocity, 0.0)


def test_free_fall_shows_nothing(robot: Robot) -> None:
    sim = Simulator(robot)
    q = robot.q_nominal.copy()
    q[2] += 1.0
    sim.reset(q)
    observation = sim.step(np.zeros(robot.nu))
    np.testing.assert_allclose(observation.imu_linear_acceleration, 0.0, atol=1e-6)
    np.testing.assert_allclose(observation.foot_wrench, 0.0, atol=1e-5)


def test_imu_of_a_tumbling_robot_is_the_second_derivative_of_its_position(robot: Robot) -> None:
    """Specific force = R^T (p'' - g), with p the IMU's origin, differentiated numerically from ground truth."""
    h = 1e-4
    sim = Simulator(robot, physics_dt=h)
    rng = np.random.default_rng(1)
    q = robot.q_nominal.copy()
    q[2] += 3.0
    sim.reset(q, 0.8 * rng.normal(size=robot.model.nv))
    data = robot.model.createData()
    positions, rotations, measured, gyros = [], [], [], []
    for _ in range(40):
        observation = sim.step(2.0 * np.ones(robot.nu))
        pin.forwardKinematics(robot.model, data, sim.q)
        pose = data.oMi[robot.imu_joint_id].act(robot.placement_joint_imu)
        positions.append(pose.translation.copy())
        rotations.append(pose.rotation.copy())
        measured.append(observation.imu_linear_acceleration.copy())
        gyros.append(observation.imu_angular_velocity.copy())
        np.testing.assert_allclose(pin.Quaternion(observation.imu_orientation).matrix(), pose.rotation, atol=1e-9)
    for i in range(5, 35):
        acceleration = (positions[i + 1] - 2.0 * positions[i] + positions[i - 1]) / h**2
        expected = rotations[i].T @ (acceleration + np.array([0.0, 0.0, G]))
        np.testing.assert_allclose(measured[i], expected, atol=0.05 * max(1.0, float(np.linalg.norm(expected))))
        spin = pin.log3(rotations[i - 1].T @ rotations[i + 1]) / (2.0 * h)
        np.testing.assert_allclose(gyros[i], spin, atol=0.02)


def test_ankle_wrench_is_what_moves_the_foot_less_the_ground(robot: Robot) -> None:
    """Newton's law for the foot alone, from its pose: m p'' = ground + gravity - (force of the foot on the ankle)."""
    h = 1e-4
    sim = Simulator(robot, physics_dt=h)
    q = robot.q_nominal.copy()
    q[2] += 3.0
    sim.reset(q, 0.5 * np.random.default_rng(2).normal(size=robot.model.nv))
    data = robot.model.createData()
    joint = robot.ankle_joint_ids[0]
    mass, lever = robot.model.inertias[joint].mass, robot.model.inertias[joint].lever
    centres, forces = [], []
    for _ in range(20):
        observation = sim.step(3.0 * np.ones(robot.nu))
        pin.forwardKinematics(robot.model, data, sim.q)
        axes = data.oMi[joint].act(robot.placement_joint_ankle[0]).rotation
        centres.append(data.oMi[joint].act(lever))
        forces.append(axes @ observation.foot_wrench[0, :3])
    for i in range(5, 15):
        acceleration = (centres[i + 1] - 2.0 * centres[i] + centres[i - 1]) / h**2
        expected = -mass * (acceleration + np.array([0.0, 0.0, G]))
        np.testing.assert_allclose(forces[i], expected, atol=0.03 * max(1.0, float(np.linalg.norm(expected))))


def test_ankle_torque_is_the_sole_wrench_moved_up(robot: Robot) -> None:
    """Standing still: torque at the ankle = torque at the sole + lever x force, less the weight of the foot."""
    sim = Simulator(robot)
    tau = standing_torque(robot)
    for _ in range(3):
        observation = sim.step(tau)
    for k, joint in enumerate(robot.ankle_joint_ids):
        ankle = robot.placement_joint_ankle[k]
        sole = pin.Force(sim.contact.wrench[k])
        at_ankle = ankle.actInv(robot.soles[k].placement_joint_sole).act(sole)
        data = robot.model.createData()
        pin.forwardKinematics(robot.model, data, sim.q)
        inertia = robot.model.inertias[joint]
        down = data.oMi[joint].rotation.T @ np.array([0.0, 0.0, -G * inertia.mass])
        weight = ankle.actInv(pin.Force(down, np.cross(inertia.lever, down)))
        np.testing.assert_allclose(observation.foot_wrench[k], (at_ankle + weight).vector, atol=1e-5)


def test_joint_order_is_that_of_the_robot(robot: Robot) -> None:
    sim = Simulator(robot)
    v = np.zeros(robot.model.nv)
    v[robot.idx_v[3]] = 0.7
    observation = sim.reset(v=v)
    assert np.flatnonzero(observation.joint_velocity).tolist() == [3]
    joint = robot.model.getJointId(robot.joint_names[3])
    assert observation.joint_position[3] == sim.q[robot.model.joints[joint].idx_q]


@pytest.mark.parametrize("name", sorted(ROBOTS))
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_imu_and_ankles_are_those_of_pinocchios_rnea(name: str, seed: int) -> None:
    robot = loaded(name)
    if not robot.soles:
        # Such are no robots that could be simulated.
        return
    model, sensors = robot.model, Sensors(robot)
    rng = np.random.default_rng(seed)
    q = pin.integrate(model, pin.neutral(model), rng.uniform(-1.5, 1.5, model.nv))
    v, a = rng.normal(size=model.nv), 10.0 * rng.normal(size=model.nv)
    contact = ContactResult.empty(len(robot.soles))
    contact.wrench[:] = rng.normal(size=contact.wrench.shape)
    observation = sensors.measure(0.0, q, v, a, np.zeros(robot.nu), contact)

    data = model.createData()
    pin.rnea(model, data, q, v, a)
    pin.forwardKinematics(model, data, q, v, a)
    joint, placement = robot.imu_joint_id, robot.placement_joint_imu
    spin = pin.getFrameVelocity(model, data, joint, placement, pin.LOCAL).angular
    felt = pin.getFrameClassicalAcceleration(model, data, joint, placement, pin.LOCAL).linear
    R = data.oMi[joint].rotation @ placement.rotation
    np.testing.assert_allclose(pin.Quaternion(observation.imu_orientation).matrix(), R, atol=1e-12)
    np.testing.assert_allclose(observation.imu_angular_velocity, spin, atol=1e-12)
    np.testing.assert_allclose(observation.imu_linear_acceleration, felt - R.T @ model.gravity.linear, atol=1e-11)
    for k, (sole, ankle) in enumerate(zip(robot.soles, robot.placement_joint_ankle, strict=True)):
        ground = ankle.actInv(sole.placement_joint_sole).act(pin.Force(contact.wrench[k]))
        needed = pin.Force.Zero() if sole.load_cell else ankle.actInv(data.f[robot.ankle_joint_ids[k]])
        np.testing.assert_allclose(observation.foot_wrench[k], (ground - needed).vector, atol=1e-10)
