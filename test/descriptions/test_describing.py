"""Output of `describe`, and the modelling mistakes that it reports."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from description_support import inertial, small_urdf
from refusals import refusal

from bipedsim.descriptions import describe, find_doubts, import_robot
from bipedsim.descriptions.guesses import gains
from bipedsim.descriptions.notes import GUESSED, TITLES
from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.model import ROBOTS, inverse_inertia, load_robot


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "small.urdf").write_text(small_urdf())
    return import_robot(tmp_path / "small.urdf", tmp_path / "small").folder


def edited(folder: Path, **changes: object) -> Path:
    """Return the robot.yaml of ``folder`` with keys replaced, those of feet in both."""
    path = folder / "robot.yaml"
    config = yaml.safe_load(path.read_text())
    for key, value in changes.items():
        if key in ("placement", "vertices"):
            for foot in config["feet"].values():
                foot[key] = value
        else:
            config[key] = value
    path.write_text(yaml.safe_dump(config))
    return path


def test_a_sound_robot_has_no_doubts(folder: Path) -> None:
    found = describe(folder)
    assert found.robot is not None
    assert found.doubts == ()
    assert "23.000 kg, 10 driven joints" in found.text
    assert "zmp: com_height 0 means" in found.text


@pytest.mark.parametrize("name", ["biped14", "g1", "icub", "parallel_ankles", "talos", "talos_legs"])
def test_our_own_robots_have_no_doubts(name: str) -> None:
    try:
        robot = load_robot(name)
    except ConfigError as error:
        pytest.skip(str(error))
    # Of icub's meshes some are open, which matters to no hull.
    assert [doubt for doubt in find_doubts(robot) if "convex hulls" not in doubt] == []


def test_every_robot_can_be_described() -> None:
    for name in ROBOTS:
        found = describe(name)
        assert found.robot is None or found.text.startswith(f"# {found.robot.name}")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"placement": {"xyz": [0.03, 0.0, -0.55]}}, "the sole is 0.5 m below the lowest point"),
        ({"vertices": [[0.1, 0.15], [-0.1, 0.15], [-0.1, -0.15], [0.1, -0.15]]}, "by 0.1 m"),
        ({"effort_limit": 2.0}, "standing needs most of the effort limit of"),
        ({"armature": 0.0}, "no reflected rotor inertia"),
        ({"position_limit": {".*_knee": [-0.1, 0.55]}}, "left_knee, right_knee are within 0.03 rad of a limit"),
        ({"position_limit": {".*_knee": [0.0, 126.0]}}, "left_knee 0 to 126 rad, right_knee 0 to 126 rad"),
    ],
)
def test_mistakes_that_load_are_doubts(folder: Path, changes: dict[str, object], said: str) -> None:
    found = describe(edited(folder, **changes))
    assert found.robot is not None
    assert any(said in doubt for doubt in found.doubts), found.doubts


def test_a_trunk_without_mass_is_a_doubt(tmp_path: Path) -> None:
    box = '<collision><geometry><box size="0.3 0.4 0.5"/></geometry></collision>'
    head = (
        f'<link name="head">{inertial(1.0)}</link><joint name="neck" type="fixed"><parent link="pelvis"/>'
        '<child link="head"/></joint>'
    )
    for text, doubted in (
        (small_urdf(), False),
        (small_urdf().replace('mass value="10.0"', 'mass value="0.005"'), True),
        (small_urdf(more=head).replace('<link name="pelvis">', f'<link name="pelvis">{box}'), False),
        (small_urdf(more=head).replace(inertial(10.0, (0.1, 0.1, 0.1), "0 0 0.1"), box), True),
    ):
        (tmp_path / "trunk.urdf").write_text(text)
        found = describe(import_robot(tmp_path / "trunk.urdf", tmp_path / "made", replace=True).folder)
        assert any(doubt.startswith("pelvis: ") for doubt in found.doubts) == doubted, found.doubts


@pytest.mark.parametrize("limits", [[-6.2832, 6.2832], [-1000.0, 1000.0]])
def test_limits_of_a_turn_or_beyond_all_are_no_doubt(folder: Path, limits: list[float]) -> None:
    assert describe(edited(folder, position_limit={".*_hip_roll": limits})).doubts == ()


def test_all_that_is_wrong_is_told_at_once(folder: Path) -> None:
    wrong = {"imu": {"frame": "imi"}, "self_collision": [["a"]], "joint_damping": {"kne": 1.0}}
    path = edited(folder, **wrong, postures={"x": {"y": 0}})
    found = describe(path)
    assert found.robot is None
    text = "\n".join(found.doubts)
    for part in ("imi", "self_collision", "kne", "postures.x"):
        assert part in text


def test_gains_are_stable_when_they_are_held_for_a_step(folder: Path) -> None:
    """Reference: the eigenvalues of a step of v' = v - h M^-1 kd v.

    They leave the unit circle just above ``kd_most``.
    """
    robot = load_robot(folder)
    found, mobility = gains(robot), inverse_inertia(robot)

    def largest(kd: np.ndarray) -> float:
        return float(np.abs(np.linalg.eigvals(np.eye(robot.nu) - 1e-3 * mobility * kd)).max())

    assert largest(found["kd"]) < 1.0
    assert largest(0.99 * found["kd_most"]) < 1.0
    assert largest(1.01 * found["kd_most"]) > 1.0


def test_a_foreign_file_is_described_with_what_was_guessed(tmp_path: Path) -> None:
    (tmp_path / "small.urdf").write_text(small_urdf())
    found = describe(tmp_path / "small.urdf")
    assert found.robot is not None
    assert TITLES[GUESSED] in found.text
    with refusal(UnknownNameError, kind="robot"):
        describe("no_such_robot")


def test_a_robot_whose_bodies_touch_nothing_is_told(tmp_path: Path) -> None:
    source = ROBOTS["biped14"].parent
    (tmp_path / "robot.yaml").write_text((source / "robot.yaml").read_text())
    urdf = (source / "robot.urdf").read_text()
    (tmp_path / "robot.urdf").write_text(re.sub(r"<collision.*?</collision>", "", urdf, flags=re.DOTALL))
    assert len([text for text in find_doubts(load_robot(tmp_path / "robot.yaml")) if "collision geometry" in text]) == 1
    assert not [text for text in find_doubts(load_robot("biped14")) if "collision geometry" in text]
