"""Which robots are machines of the vendor."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from bipedsim.control.policy import UNITREE_MOTORS, pairs_along
from bipedsim.errors import ConfigError
from bipedsim.model import load_robot
from bipedsim_ros.interfaces.unitree.machine import machine_files, machine_for, misplaced_imu

MOTORS = machine_files()[0].motors


def test_g1_has_29_motors_in_its_own_order() -> None:
    machine = machine_for(load_robot("g1").joint_names)
    assert (machine.name, machine.used, machine.missing) == ("g1", tuple(range(29)), ())
    assert machine.mode_machine == 5
    assert machine.motor.tolist() == list(range(29))


def test_legs_alone_are_a_machine_whose_other_motors_are_missing() -> None:
    machine = machine_for(MOTORS[:12])
    assert machine.missing == MOTORS[12:]
    assert machine.mode_machine == 5


def test_the_machine_with_23_joints_calls_itself_otherwise() -> None:
    without = ("waist_roll", "waist_pitch", "wrist_pitch", "wrist_yaw")
    joints = [name for name in MOTORS if not any(part in name for part in without)]
    assert len(joints) == 23
    assert machine_for(joints).mode_machine == 4


def test_legs_that_are_called_the_same_are_told_by_their_order() -> None:
    """The hip of G1 begins with its pitch, that of H1_2 with its yaw."""
    legs = UNITREE_MOTORS["h1_2"][:12]
    downwards = [(above, below) for leg in (legs[:6], legs[6:]) for above, below in pairwise(leg)]
    assert machine_for(sorted(legs), downwards).name == "h1_2"
    assert machine_for(sorted(legs)).name == "g1"
    assert pairs_along(load_robot("g1"))[:2] == (MOTORS[:2], MOTORS[1:3])


def test_an_imu_elsewhere_than_on_the_machine_is_told() -> None:
    robot = load_robot("g1")
    machine = machine_for(robot.joint_names)
    assert not misplaced_imu(machine, robot)
    waist = robot.model.getJointId("waist_pitch_joint")
    said = misplaced_imu(machine, replace(robot, imu_joint_id=waist))
    assert "on the body of waist_pitch_joint, that of g1 on the root link" in said


def test_another_robot_is_refused_with_the_joints_that_no_motor_turns() -> None:
    with pytest.raises(ConfigError) as caught:
        machine_for(load_robot("biped14").joint_names)
    assert caught.value.place.startswith("joints l_hip_yaw, ")
