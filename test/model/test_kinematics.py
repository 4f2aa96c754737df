"""Standing postures and inverse kinematics. Reference: pinocchio's forward kinematics."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings, strategies as st
from refusals import refusal

from bipedsim import Simulator, load_robot
from bipedsim.errors import UnknownNameError
from bipedsim.model import (
    Robot,
    at_posture,
    com_position,
    drive_gains,
    foot_poses,
    inverse_kinematics,
    standing_posture,
    standing_torque,
)
from bipedsim.numerics import Array
from bipedsim.sim import Command

ROBOTS = {name: load_robot(name) for name in ("biped14", "talos", "g1", "parallel_ankles")}


def forward(robot: Robot, q: Array) -> tuple[Array, dict[str, pin.SE3]]:
    """Return the CoM and the poses of the soles, by pinocchio alone."""
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, q)
    com = pin.centerOfMass(robot.model, data, q).copy()
    pin.forwardKinematics(robot.model, data, q)
    return com, {sole.name: data.oMi[sole.joint_id] * sole.placement_joint_sole for sole in robot.soles}


@pytest.mark.parametrize("name", ROBOTS)
def test_a_lower_posture_keeps_its_feet_and_limits(name: str) -> None:
    robot = ROBOTS[name]
    height = 0.93 * robot.com_height
    q = standing_posture(robot, height=height, shift=(0.01, -0.02))
    com, feet = forward(robot, q)
    before, where = forward(robot, robot.q_nominal)
    np.testing.assert_allclose(com, [before[0] + 0.01, before[1] - 0.02, height], atol=1e-9)
    for foot, pose in feet.items():
        np.testing.assert_allclose(pose.homogeneous, where[foot].homogeneous, atol=1e-9)
    angles = q[robot.idx_q]
    assert (angles >= robot.position_lower - 1e-9).all()
    assert (angles <= robot.position_upper + 1e-9).all()
    robot.check_closed(q)
    assert com_position(robot, q) == pytest.approx(com)
    assert foot_poses(robot, q)["left"].isApprox(feet["left"])


def test_nothing_asked_for_is_the_nominal_posture() -> None:
    robot = ROBOTS["g1"]
    np.testing.assert_allclose(standing_posture(robot), robot.q_nominal, atol=1e-6)


small = st.floats(-0.06, 0.06)
steps = st.tuples(small, small, st.floats(0.0, 0.08))
shifts = st.tuples(small, small, st.floats(-0.05, 0.0))


@settings(max_examples=25, deadline=None)
@given(steps, st.floats(-0.25, 0.25), shifts)
def test_a_foot_goes_where_it_is_asked_to(step: tuple[float, ...], yaw: float, com: tuple[float, ...]) -> None:
    robot = ROBOTS["talos"]
    wanted = foot_poses(robot, robot.q_nominal)["left"]
    wanted = pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, yaw) @ wanted.rotation, wanted.translation + step)
    target = com_position(robot, robot.q_nominal) + com
    q = inverse_kinematics(robot, {"left": pin.SE3ToXYZQUAT(wanted)}, target)
    found, feet = forward(robot, q)
    np.testing.assert_allclose(found, target, atol=1e-9)
    assert feet["left"].isApprox(wanted, 1e-9)
    assert feet["right"].isApprox(foot_poses(robot, robot.q_nominal)["right"], 1e-9)


def test_a_position_alone_keeps_the_attitude_and_carries_the_com_along() -> None:
    robot = ROBOTS["g1"]
    begin = foot_poses(robot, robot.q_nominal)
    away = np.array([0.5, 0.0, 0.1])
    q = inverse_kinematics(robot, {name: pose.translation + away for name, pose in begin.items()})
    np.testing.assert_allclose(q[:3] - robot.q_nominal[:3], [0.5, 0.0, 0.1], atol=1e-6)
    np.testing.assert_allclose(q[robot.idx_q], robot.posture, atol=1e-6)


def test_what_it_cannot_reach_says_how_far_it_comes() -> None:
    robot = ROBOTS["biped14"]
    with refusal(place="biped14: posture"):
        standing_posture(robot, height=1.5 * robot.com_height)
    with refusal(UnknownNameError, name="middle", choices=("left", "right")):
        inverse_kinematics(robot, {"middle": [0.0, 0.0, 0.0]})
    with refusal(place="com", value=[0.0, np.nan, 1.0]):
        inverse_kinematics(robot, com=[0.0, np.nan, 1.0])
    with refusal(place="feet['left']", value=[0.0, 1.0]):
        inverse_kinematics(robot, {"left": [0.0, 1.0]})
    with refusal(place="feet['left'][3:]"):
        inverse_kinematics(robot, {"left": np.zeros(7)})
    with refusal(place="biped14: q"):
        inverse_kinematics(robot, start=np.zeros(3))
    with refusal(place="compass"):
        inverse_kinematics(load_robot("compass"))


def test_a_robot_at_a_posture_is_held_there_by_its_own_torques() -> None:
    robot = at_posture(ROBOTS["talos"], standing_posture(ROBOTS["talos"], height=0.8))
    sim = Simulator(robot)
    sim.reset(robot.q_nominal)
    stiffness, damping = drive_gains(robot, 1e-3)
    command = Command(standing_torque(robot), robot.posture, None, stiffness, damping)
    for _ in range(500):
        sim.step(command)
    assert np.abs(sim.q[robot.idx_q] - robot.posture).max() < 1e-3
    assert sim.contact.wrench[:, 2].sum() == pytest.approx(robot.weight, rel=1e-3)
