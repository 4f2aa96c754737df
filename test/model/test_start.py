"""Where a run begins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from description_support import small_urdf
from refusals import refusal

from bipedsim.config import RunConfig
from bipedsim.descriptions import import_robot
from bipedsim.errors import UnknownNameError
from bipedsim.model import Robot, load_robot, sole_placements, start_configuration
from bipedsim.runs import run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "small.urdf").write_text(small_urdf())
    folder = import_robot(tmp_path / "small.urdf", tmp_path / "small").folder
    path = folder / "robot.yaml"
    crouched = {".*_hip_pitch": -0.6, ".*_knee": 1.2, ".*_ankle_pitch": -0.6}
    path.write_text(path.read_text() + yaml.safe_dump({"postures": {"crouch": crouched}}))
    return folder


def knee(robot: Robot, q: np.ndarray) -> float:
    return float(q[robot.idx_q[robot.joint_names.index("left_knee")]])


def test_a_start_by_name_by_file_or_standing(folder: Path, tmp_path: Path) -> None:
    robot = load_robot(folder)
    np.testing.assert_array_equal(start_configuration(robot), robot.q_nominal)
    np.testing.assert_array_equal(start_configuration(robot, "standing"), robot.q_nominal)
    crouched = start_configuration(robot, "crouch")
    assert knee(robot, crouched) == 1.2
    for place in sole_placements(robot.model, robot.model.createData(), robot.soles, crouched):
        assert place.translation[2] == pytest.approx(0.0, abs=1e-9)
    file = tmp_path / "own.yaml"
    file.write_text("left_knee: 0.7\n")
    own = start_configuration(robot, str(file))
    assert knee(robot, own) == 0.7
    left_alone = robot.joint_names.index("right_knee")
    assert own[robot.idx_q[left_alone]] == robot.posture[left_alone]


def test_unknown_postures_and_joints_are_told(folder: Path, tmp_path: Path) -> None:
    robot = load_robot(folder)
    with refusal(UnknownNameError, name="crouh", meant="crouch"):
        start_configuration(robot, "crouh")
    file = tmp_path / "own.yaml"
    file.write_text("left_kne: 0.7\n")
    with refusal(UnknownNameError, name="left_kne", meant="left_knee"):
        start_configuration(robot, str(file))


def test_a_run_begins_there_and_goes_on_to_stand(folder: Path) -> None:
    robot = load_robot(folder)
    recording, summary = run(RunConfig(robot=str(folder / "robot.yaml"), posture="crouch", duration=2.0))
    at = robot.joint_names.index("left_knee")
    assert recording.joint_position[0, at] == pytest.approx(1.2, abs=1e-2)
    assert recording.joint_position[-1, at] == pytest.approx(robot.posture[at], abs=2e-2)
    assert summary["fell_at_s"] is None
    with refusal(UnknownNameError, kind="posture", name="crouh"):
        run(RunConfig(robot=str(folder / "robot.yaml"), posture="crouh", duration=0.01))
