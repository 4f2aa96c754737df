"""Which robots are machines of the vendor."""

from __future__ import annotations

import pytest

from bipedsim.errors import ConfigError
from bipedsim.model import load_robot
from bipedsim_ros.interfaces.unitree.machine import machine_files, machine_for

MOTORS = machine_files()[0].motors


def test_g1_has_29_motors_in_its_own_order() -> None:
    machine = machine_for(load_robot("g1").joint_names)
    assert (machine.name, machine.n, machine.missing, machine.mode_machine) == ("g1", 29, (), 5)
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


def test_another_robot_is_refused_with_the_joints_that_no_motor_turns() -> None:
    with pytest.raises(ConfigError, match=r"no motor of g1 turns l_hip_yaw, .*name the joints"):
        machine_for(load_robot("biped14").joint_names)
