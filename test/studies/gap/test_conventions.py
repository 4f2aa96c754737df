"""Recordings whose sensors have another sign than ours, or no gravity."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from refusals import refusal
from scipy.spatial.transform import Rotation

from bipedsim.config import RunConfig
from bipedsim.errors import RecordingError
from bipedsim.model import IDEAL, load_robot
from bipedsim.recording import Recording
from bipedsim.runs import run
from bipedsim_studies.gap import convention_fault, predict_recording
from bipedsim_studies.identify import signals_of

FEET = ("left", "right")


def recorded(robot: str, scenario: str) -> Recording:
    controller = "zmp" if scenario == "walk" else "posture"
    return run(RunConfig(robot=robot, scenario=scenario, controller=controller, hardware="realistic", duration=3.0))[0]


@pytest.fixture(scope="module")
def squat() -> Recording:
    return recorded("biped14", "squat")


def fault_of(recording: Recording, robot: str = "biped14") -> str:
    """Return the fault, or an empty text."""
    imu = recording.imu_orientation, recording.imu_linear_acceleration
    return convention_fault(load_robot(robot), recording.joint_position, *imu, recording.ankle_wrench) or ""


@pytest.mark.parametrize("robot", ["biped14", "talos", "g1"])
@pytest.mark.parametrize("scenario", ["squat", "walk", "hang"])
def test_our_own_recordings_have_no_fault(robot: str, scenario: str) -> None:
    assert not fault_of(recorded(robot, scenario), robot)


@pytest.mark.parametrize("feet", [[0], [1], [0, 1]])
def test_each_foot_with_the_other_sign_is_named(squat: Recording, feet: list[int]) -> None:
    wrench = squat.ankle_wrench.copy()
    wrench[:, feet] *= -1.0
    fault = fault_of(replace(squat, ankle_wrench=wrench))
    assert [name for name in FEET if name in fault] == [FEET[foot] for foot in feet]


def test_sensors_may_be_mounted_in_any_direction(squat: Recording) -> None:
    """Description and measurements turn together: the IMU and one ankle sensor are upside down, the other is tilted."""
    robot = load_robot("biped14")
    turns = Rotation.from_euler("xyz", [[180.0, 0.0, 30.0], [0.0, 180.0, 0.0], [120.0, 20.0, 0.0]], degrees=True)
    of_imu, *of_feet = (pin.SE3(each.as_matrix(), np.zeros(3)) for each in turns)
    mounted = replace(
        robot,
        placement_joint_imu=robot.placement_joint_imu * of_imu,
        placement_joint_ankle=tuple(a * b for a, b in zip(robot.placement_joint_ankle, of_feet, strict=True)),
    )
    wrench = squat.ankle_wrench.copy()
    for foot, turn in enumerate(of_feet):
        wrench[:, foot, :3] @= turn.rotation
    orientation = (Rotation.from_quat(squat.imu_orientation) * turns[0]).as_quat()
    measured = squat.joint_position, orientation, squat.imu_linear_acceleration @ of_imu.rotation
    assert convention_fault(mounted, *measured, wrench) is None
    wrench[:, 1] *= -1.0
    fault = convention_fault(mounted, *measured, wrench) or ""
    assert [name for name in FEET if name in fault] == ["right"]


def test_the_trunk_may_be_turned_against_the_feet() -> None:
    """The hips are bent by 2.5 rad, so that the trunk is nearly upside down on flat feet."""
    robot = load_robot("biped14")
    bend, gravity = Rotation.from_euler("y", -2.5), [0.0, 0.0, 9.81]
    position = np.zeros((1, robot.nu))
    position[0, [robot.joint_names.index(name) for name in ("l_hip_pitch", "r_hip_pitch")]] = -2.5
    # The IMU of biped14 has the axes of the trunk.
    assert np.allclose(robot.placement_joint_imu.rotation, np.eye(3))
    orientation, acceleration = bend.inv().as_quat()[None], bend.apply(gravity)[None]
    wrench = np.zeros((1, 2, 6))
    wrench[:, :, 2] = 0.5 * robot.weight
    assert convention_fault(robot, position, orientation, acceleration, wrench) is None
    fault = convention_fault(robot, position, orientation, acceleration, -wrench) or ""
    assert all(name in fault for name in FEET)


def test_an_imu_with_the_other_sign_is_not_mistaken_for_the_feet(squat: Recording) -> None:
    """The orientation shows the wrong sensor. Without it, the text leaves both open."""
    other = replace(squat, imu_linear_acceleration=-squat.imu_linear_acceleration)
    fault = fault_of(other)
    assert not any(name in fault for name in FEET)
    both = fault_of(replace(other, imu_orientation=np.full_like(squat.imu_orientation, np.nan)))
    assert all(name in both for name in ("IMU", *FEET))


def test_an_orientation_against_both_sensors_is_named(squat: Recording) -> None:
    """Both sensors have the other sign, or the orientation is one in a world whose z axis points down."""
    x, y, z, w = squat.imu_orientation.T
    down = np.stack([w, -z, y, -x], axis=1)
    both = replace(squat, imu_linear_acceleration=-squat.imu_linear_acceleration, ankle_wrench=-squat.ankle_wrench)
    for other in (both, replace(squat, imu_orientation=down)):
        fault = fault_of(other)
        assert "orientation" in fault
        assert not any(name in fault for name in FEET)


@pytest.mark.parametrize("scale", [0.0, 1.0 / 9.81])
def test_accelerations_without_gravity_or_in_units_of_it_are_found(squat: Recording, scale: float) -> None:
    noise = np.random.default_rng(0).normal(0.0, 0.02, squat.imu_linear_acceleration.shape)
    fault = fault_of(replace(squat, imu_linear_acceleration=scale * squat.imu_linear_acceleration + noise))
    assert not any(name in fault for name in FEET)


def test_what_is_not_measured_has_no_sign(squat: Recording) -> None:
    for name in ("ankle_wrench", "imu_linear_acceleration", "joint_position"):
        missing = np.full_like(getattr(squat, name), np.nan)
        assert not fault_of(replace(squat, **{name: missing}))


def test_identify_and_gap_refuse_them(squat: Recording) -> None:
    robot = load_robot("biped14")
    other = replace(squat, ankle_wrench=-squat.ankle_wrench)
    assert len(signals_of(squat, robot))
    with refusal(RecordingError, place="squat.npz"):
        signals_of(other, robot, "squat.npz")
    gaps, _ = predict_recording(squat, robot, {"model": IDEAL})
    assert len(gaps[0].starts)
    with refusal(RecordingError, place=""):
        predict_recording(other, robot, {"model": IDEAL})
