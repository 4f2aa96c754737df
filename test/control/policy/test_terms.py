"""IMU terms describe the root link for any mounting of the IMU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
from hypothesis import given, settings, strategies as st

from bipedsim.control.policy.terms import ALIASES, TERMS, UNMEASURED, BaseSensor, TermInputs
from bipedsim.model import load_robot
from bipedsim.sim import Simulator

G1 = load_robot("g1")


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["pelvis", "torso_link", "left_elbow_joint"]))
def test_the_root_link_is_seen_by_an_imu_anywhere(seed: int, where: str) -> None:
    """The simulator's own IMU, mounted askew on a body: velocity and attitude of the root are those of the state."""
    random = np.random.default_rng(seed)
    model = G1.model
    frame = model.frames[model.getFrameId(where)]
    askew = pin.SE3(pin.exp3(random.normal(0.0, 1.0, 3)), random.normal(0.0, 0.1, 3))
    joint = model.getJointId(where) if where.endswith("joint") else frame.parentJoint
    robot = replace(G1, imu_joint_id=joint, placement_joint_imu=askew)
    q = pin.integrate(model, robot.q_nominal, np.r_[0.0, 0.0, 1.0, random.normal(0.0, 0.3, 3), np.zeros(robot.nu)])
    middle = 0.5 * (robot.position_lower + robot.position_upper)
    q[robot.idx_q] = middle + 0.3 * random.uniform(-1.0, 1.0, robot.nu) * (robot.position_upper - middle)
    v = random.normal(0.0, 1.0, model.nv)
    seen = Simulator(robot, contact="one_step").reset(q, v)
    view = TermInputs.at_rest(robot, 1)
    view.seen = seen
    assert BaseSensor(robot).read(view)
    rotation = pin.Quaternion(q[3:7]).toRotationMatrix()
    np.testing.assert_allclose(view.base_angular_velocity, v[3:6], atol=1e-9)
    np.testing.assert_allclose(view.gravity, rotation.T @ [0.0, 0.0, -1.0], atol=1e-9)
    np.testing.assert_allclose(pin.rpy.rpyToMatrix(view.euler), rotation, atol=1e-9)
    assert abs(view.euler[1]) <= np.pi / 2


def test_names_are_there_once() -> None:
    assert not set(TERMS) & (set(ALIASES) | set(UNMEASURED))
    assert set(ALIASES.values()) <= set(TERMS)
