"""Falls are detected by the tilt and the height of the base, and never for a robot that cannot fall."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from bipedsim.analysis.fall import HEIGHT, TILT, fall_time
from bipedsim.model import Robot, load_robot
from bipedsim.recording.recording import Recording


def moving_base(robot: Robot, poses: list[pin.SE3]) -> Recording:
    """Return a recording, one row per second, in which each of ``poses`` moves the whole robot in its posture."""
    recording = Recording.empty(len(poses), robot.joint_names, [sole.name for sole in robot.soles], robot.name)
    recording.t[:] = np.arange(len(poses))
    recording.joint_position[:] = robot.posture
    data = robot.model.createData()
    for i, pose in enumerate(poses):
        q = robot.q_nominal.copy()
        q[:7] = pin.SE3ToXYZQUAT(pose * pin.XYZQUATToSE3(q[:7]))
        pin.forwardKinematics(robot.model, data, q)
        recording.base_pose[i] = q[:7]
        for k, sole in enumerate(robot.soles):
            recording.sole_poses[i, k] = pin.SE3ToXYZQUAT(data.oMi[sole.joint_id] * sole.placement_joint_sole)
    return recording


def turned(axis: int, angle: float) -> pin.SE3:
    vector = np.zeros(3)
    vector[axis] = angle
    return pin.SE3(pin.exp3(vector), np.array([0.3, -0.2, 1.0]))


@pytest.fixture(scope="module")
def biped() -> Robot:
    return load_robot("biped14")


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_falls_when_it_leans_beyond_the_limit_to_any_side(biped: Robot, axis: int, sign: float) -> None:
    poses = [turned(axis, 0.0), turned(axis, sign * 0.9 * TILT), turned(axis, sign * 1.01 * TILT)]
    assert fall_time(moving_base(biped, poses[:2]), biped) is None
    assert fall_time(moving_base(biped, poses), biped) == 2.0


def test_turning_about_and_lifting_is_no_fall(biped: Robot) -> None:
    poses = [turned(2, angle) for angle in (0.0, 2.0, np.pi, -1.0)]
    assert fall_time(moving_base(biped, poses), biped) is None


def test_falls_when_the_com_sinks_to_half_its_height_over_the_lowest_sole(biped: Robot) -> None:
    recording = moving_base(biped, [turned(2, 0.0)] * 3)
    data = biped.model.createData()
    height = pin.centerOfMass(biped.model, data, biped.q_nominal)[2]
    for row, share in ((1, 0.99), (2, 1.01)):
        recording.base_pose[row, 2] -= share * (1.0 - HEIGHT) * height
    assert fall_time(recording, biped) == 2.0


def test_what_is_fixed_or_has_no_drives_cannot_fall(biped: Robot) -> None:
    recording = moving_base(biped, [turned(0, 0.0), turned(0, np.pi)])
    assert fall_time(recording, biped) == 1.0
    fixed = replace(biped, model=pin.buildSampleModelManipulator())
    assert not fixed.free_flyer
    assert fall_time(recording, fixed) is None
    assert fall_time(recording, replace(biped, joint_names=())) is None


def test_a_recording_without_the_base_knows_of_no_fall(biped: Robot) -> None:
    recording = moving_base(biped, [turned(0, 0.0), turned(0, np.pi)])
    recording.base_pose[:] = np.nan
    assert fall_time(recording, biped) is None
