"""rt/lowstate: motors, IMU, clock."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import pytest

from bipedsim.control.policy import UNITREE_MOTORS
from bipedsim.sim import Observation
from bipedsim_ros.interfaces.unitree.layout import GO, HG, Cdr
from bipedsim_ros.interfaces.unitree.low_state import LowStateWriter, roll_pitch_yaw
from bipedsim_ros.interfaces.unitree.machine import machine_files, machine_for

MOTORS = machine_files()[0].motors


def measured(nu: int, t: float = 0.0) -> Observation:
    """Return an observation of numbers that differ."""
    observation = Observation.zeros(nu, 0)
    observation.t = t
    observation.joint_position[:] = np.arange(nu)
    observation.joint_velocity[:] = 100.0 + np.arange(nu)
    observation.joint_effort[:] = 200.0 + np.arange(nu)
    observation.imu_angular_velocity[:] = 1.0, 2.0, 3.0
    observation.imu_linear_acceleration[:] = 0.1, 0.2, 9.8
    return observation


def read(data: bytes) -> Any:
    """Return the values of a state with a valid checksum."""
    cdr = Cdr(HG.low_state)
    assert cdr.read(data) is None
    return cdr.values


@pytest.mark.parametrize("joints", [MOTORS, MOTORS[::-1], MOTORS[:12]])
def test_each_motor_has_the_state_of_its_joint_and_the_others_are_held(joints: tuple[str, ...]) -> None:
    machine = machine_for(joints)
    values = read(LowStateWriter(machine).serialized(measured(len(joints)), 7, bytes(range(40))))
    states = values["motor_state"]
    motor = [MOTORS.index(name) for name in joints]
    for name, begin in (("q", 0.0), ("dq", 100.0), ("tau_est", 200.0)):
        np.testing.assert_array_equal(states[name][motor], begin + np.arange(len(joints)))
    held = [k for k in range(29) if k not in motor]
    assert (states["mode"][:29] == 1).all()
    assert (states["mode"][29:] == 0).all()
    assert not states["q"][held].any()
    assert not states["tau_est"][held].any()
    assert values["tick"] == 7
    assert values["mode_machine"] == 5
    assert values["wireless_remote"].tolist() == list(range(40))


def test_the_imu_is_in_the_vendors_order() -> None:
    observation = measured(29)
    observation.imu_orientation[:] = 0.5, 0.1, -0.3, 0.8
    observation.imu_orientation /= np.linalg.norm(observation.imu_orientation)
    imu = read(LowStateWriter(machine_for(MOTORS)).serialized(observation, 1, bytes(40)))["imu_state"]
    x, y, z, w = observation.imu_orientation
    np.testing.assert_allclose(imu["quaternion"], [w, x, y, z], rtol=1e-6)
    np.testing.assert_allclose(imu["gyroscope"], [1.0, 2.0, 3.0])
    np.testing.assert_allclose(imu["accelerometer"], [0.1, 0.2, 9.8], rtol=1e-6)
    rpy = pin.rpy.matrixToRpy(pin.Quaternion(w, x, y, z).matrix())
    np.testing.assert_allclose(imu["rpy"], rpy, atol=1e-6)


def test_angles_at_the_pole_are_finite() -> None:
    half = np.sqrt(0.5)
    assert roll_pitch_yaw(0.0, half, 0.0, half)[1] == pytest.approx(np.pi / 2)


def test_accelerations_are_differences_and_begin_anew_with_time() -> None:
    state = LowStateWriter(machine_for(MOTORS))

    def ddq(t: float, change: float) -> Any:
        observation = measured(29, t)
        observation.joint_velocity += change
        return read(state.serialized(observation, 1, bytes(40)))["motor_state"]["ddq"][:29]

    assert not ddq(0.0, 0.0).any()
    np.testing.assert_allclose(ddq(0.002, 0.01), 5.0, rtol=1e-3)
    np.testing.assert_allclose(ddq(0.002, 0.01), 5.0, rtol=1e-3)
    assert not ddq(0.0, 3.0).any()


def test_h1_says_its_feet_its_head_and_has_no_motor_nine() -> None:
    machine = machine_for([name for name in UNITREE_MOTORS["h1"] if name])
    observation = Observation.zeros(19, 2)
    observation.joint_position[:] = np.arange(19) + 1.0
    observation.foot_wrench[:, 2] = 250.4, 1e6
    cdr = Cdr(GO.low_state)
    assert cdr.read(LowStateWriter(machine).serialized(observation, 3, bytes(40))) is None
    values = cdr.values
    assert values["head"].tolist() == [0xFE, 0xEF]
    assert values["foot_force"].tolist() == [32767, 250, 0, 0]  # right, left
    assert values["motor_state"]["q"].tolist() == [*range(1, 10), 0, *range(10, 20)]
    assert values["motor_state"]["mode"].tolist() == [1] * 9 + [0] + [1] * 10
    assert values["tick"] == 3
