"""Motor commands: joint targets, and rejected commands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from bipedsim.control.policy import UNITREE_MOTORS
from bipedsim_ros.interfaces.unitree.layout import GO, HG, Cdr
from bipedsim_ros.interfaces.unitree.low_commands import LowCommands
from bipedsim_ros.interfaces.unitree.machine import machine_files, machine_for

MOTORS = machine_files()[0].motors
NUMBERS = ("q", "dq", "tau", "kp", "kd")


def message() -> Cdr:
    """Return a valid command in which every number of every motor is different."""
    cdr = Cdr(HG.low_cmd)
    cdr.values["mode_machine"] = 5
    motors = cdr.values["motor_cmd"]
    motors["mode"] = 1
    for k, name in enumerate(NUMBERS):
        motors[name] = 100 * k + np.arange(35)
    return cdr


@pytest.mark.parametrize("joints", [MOTORS, MOTORS[::-1], MOTORS[:12], MOTORS[5:2:-1]])
def test_each_joint_gets_the_numbers_of_its_motor(joints: tuple[str, ...]) -> None:
    commands = LowCommands(machine_for(joints))
    assert commands.read(message().serialized()) is None
    motor = np.array([MOTORS.index(name) for name in joints])
    command = commands.command
    got = (command.position, command.velocity, command.tau_joint, command.stiffness, command.damping)
    for k, values in enumerate(got):
        assert values is not None
        np.testing.assert_array_equal(values, 100 * k + motor)


def test_a_motor_that_is_off_turns_freely() -> None:
    commands, cdr = LowCommands(machine_for(MOTORS)), message()
    cdr.values["motor_cmd"]["mode"][3] = 0
    assert commands.read(cdr.serialized()) is None
    assert commands.command.stiffness is not None
    assert commands.command.stiffness[3] == commands.command.tau_joint[3] == 0.0
    assert (np.delete(commands.command.stiffness, 3) > 0.0).all()


def _set(name: str, motor: int, value: float) -> Any:
    return lambda values: values["motor_cmd"][name].__setitem__(motor, value)


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        (lambda values: values.__setitem__("mode_machine", 4), "mode_machine", "copy it from rt/lowstate"),
        (lambda values: values.__setitem__("mode_pr", 1), "mode_pr", "only 0 is simulated"),
        (_set("mode", 7, 10), "mode", "mode of motor 7 is 10"),
        (_set("q", 2, np.nan), "not_finite", "q of motor 2 is nan"),
        (_set("tau", 2, np.inf), "not_finite", "tau of motor 2 is inf"),
        (_set("kd", 28, -1.0), "negative", "kd of motor 28 is -1"),
    ],
)
def test_what_no_machine_should_get_is_refused_and_leaves_the_command_as_it_was(
    change: Any, kind: str, text: str
) -> None:
    commands, cdr = LowCommands(machine_for(MOTORS)), message()
    change(cdr.values)
    fault = commands.read(cdr.serialized())
    assert fault is not None
    assert fault.kind == kind
    assert text in fault.text
    assert not commands.drives


def test_motors_that_the_robot_lacks_are_not_looked_at() -> None:
    commands, cdr = LowCommands(machine_for(MOTORS[:12])), message()
    cdr.values["motor_cmd"]["q"][20] = np.nan
    assert commands.read(cdr.serialized()) is None


@pytest.mark.parametrize("name", ["kp", "kd", "tau", "q"])
def test_a_command_drives_that_asks_a_joint_for_anything(name: str) -> None:
    commands, cdr = LowCommands(machine_for(MOTORS)), Cdr(HG.low_cmd)
    cdr.values["mode_machine"] = 5
    cdr.values["motor_cmd"]["mode"] = 1
    cdr.values["motor_cmd"][name][8] = 0.5
    assert commands.read(cdr.serialized()) is None
    assert commands.drives == (name != "q")


H1 = machine_for(UNITREE_MOTORS["h1"][6:9] + UNITREE_MOTORS["h1"][10:13])


def test_the_strong_motors_of_h1_are_on_by_ten_and_what_stands_for_no_position_has_no_stiffness() -> None:
    commands, cdr = LowCommands(H1), Cdr(GO.low_cmd)
    motors = cdr.values["motor_cmd"]
    motors["mode"] = 10
    motors["q"], motors["dq"], motors["kp"], motors["kd"] = 0.5, 0.1, 100.0, 2.0
    motors["q"][8], motors["dq"][10], motors["mode"][11] = 2.146e9, 16000.0, 1
    motors["q"][12], motors["dq"][6] = -2.146e9, -16000.0
    assert commands.read(cdr.serialized()) is None
    got = commands.command
    np.testing.assert_array_equal(got.stiffness, [100, 100, 0, 100, 100, 0])
    np.testing.assert_array_equal(got.damping, [0, 2, 2, 0, 2, 2])
    np.testing.assert_allclose(got.position, [0.5, 0.5, 0, 0.5, 0.5, 0])
    np.testing.assert_allclose(got.velocity, [0, 0.1, 0.1, 0, 0.1, 0.1])
    motors["mode"][7] = 7
    fault = commands.read(cdr.serialized())
    assert fault is not None
    assert "mode of motor 7 is 7, expected 1 or 10 (on)" in fault.text


def test_a_command_for_the_other_family_is_refused_for_its_size() -> None:
    fault = LowCommands(H1).read(message().serialized())
    assert fault is not None
    assert fault.kind == "size"
