"""Gains of joints: of one joint in closed form, of a robot by the eigenvalues of its explicit loop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from physics_support import wheel_robot
from refusals import refusal

from bipedsim.model import drive_gains, gains, inverse_inertia, joint_gains, load_robot

H = 1e-3


def test_of_one_joint_they_follow_from_its_inertia(tmp_path: Path) -> None:
    kp, kd = joint_gains(wheel_robot(tmp_path, 0.1, 20.0, 5.0), H, damping=0.4, stiffness=30.0)
    assert kd[0] == pytest.approx(0.4 * 0.1 / H)
    assert kp[0] == pytest.approx(30.0 * kd[0])


@pytest.mark.parametrize("name", ["biped14", "parallel_ankles"])
def test_the_fastest_mode_of_all_joints_is_as_fast_as_it_should_be(name: str) -> None:
    robot = load_robot(name)
    _, kd = joint_gains(robot, H, damping=0.3)
    assert np.abs(np.linalg.eigvals(H * inverse_inertia(robot) @ np.diag(kd))).max() == pytest.approx(0.3)


def test_joints_that_loops_hold_have_no_gains_and_the_others_those_of_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a joint that cannot move M^-1 has a row of zeros, in rounding or not."""
    robot = load_robot("biped14")
    inverse = inverse_inertia(robot)
    for rounding in (0.0, 1e-17):
        held = inverse.copy()
        held[3], held[:, 3] = 0.0, 0.0
        held[3, 3] = rounding
        monkeypatch.setattr(gains, "inverse_inertia", lambda _, held=held: held)
        kp, kd = joint_gains(robot, H, damping=0.3)
        assert kp[3] == kd[3] == 0.0
        assert np.isfinite(kp).all()
        assert np.abs(np.linalg.eigvals(H * held @ np.diag(kd))).max() == pytest.approx(0.3)


def test_robot_yaml_has_the_last_word(tmp_path: Path) -> None:
    robot = wheel_robot(tmp_path, 0.1, 20.0, 5.0, "drive_stiffness: 30.0\n")
    kp, kd = drive_gains(robot, H)
    assert kp[0] == 30.0
    assert kd[0] == joint_gains(robot, H)[1][0]
    kp, kd = drive_gains(wheel_robot(tmp_path, 0.1, 20.0, 5.0, "drive_damping: {axle: 2.0}\n"), H)
    assert kd[0] == 2.0
    with refusal(place="drive_stiffness", value=-1.0):
        wheel_robot(tmp_path, 0.1, 20.0, 5.0, "drive_stiffness: -1.0\n")
