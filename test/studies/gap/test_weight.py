"""The share of the weight that the ankle sensors carry."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bipedsim.config import RunConfig
from bipedsim.errors import RecordingError
from bipedsim.model import IDEAL, load_robot
from bipedsim.recording import Recording
from bipedsim.runs import run
from bipedsim_studies.gap import carried_share, predict_recording, sign_fault
from bipedsim_studies.identify import signals_of


def recorded(robot: str, scenario: str) -> Recording:
    return run(RunConfig(robot=robot, scenario=scenario, controller="posture", duration=3.0))[0]


def share(recording: Recording, robot: str) -> float:
    each = recording.joint_position, recording.imu_linear_acceleration, recording.ankle_wrench
    return carried_share(load_robot(robot), *each)


@pytest.mark.parametrize("robot", ["biped14", "talos", "g1"])
def test_feet_carry_what_is_above_their_sensors(robot: str) -> None:
    """The robot squats, so that neither its acceleration nor the angles of its ankles are those of standing."""
    model = load_robot(robot)
    feet = sum(model.model.inertias[joint].mass for joint in model.ankle_joint_ids)
    assert share(recorded(robot, "squat"), robot) == pytest.approx(1.0 - feet / model.mass, abs=0.01)


def test_a_robot_that_hangs_is_not_carried() -> None:
    hanging = recorded("biped14", "hang")
    # The feet pull at their sensors.
    assert -0.1 < share(hanging, "biped14") < 0.0
    robot = load_robot("biped14")
    each = hanging.joint_position, hanging.imu_linear_acceleration, hanging.ankle_wrench
    assert sign_fault(robot, *each) is None


def test_sensors_with_the_other_sign_are_refused() -> None:
    squat, robot = recorded("biped14", "squat"), load_robot("biped14")
    other = replace(squat, ankle_wrench=-squat.ankle_wrench)
    assert len(signals_of(squat, robot))
    with pytest.raises(RecordingError):
        signals_of(other, robot)
    with pytest.raises(RecordingError):
        predict_recording(other, robot, {"model": IDEAL})
    # Without forces, nothing has a sign.
    other.ankle_wrench[..., :3] = np.nan
    assert np.isnan(share(other, "biped14"))
