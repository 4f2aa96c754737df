"""Imported descriptions of a robot with known properties need no manual edits."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
import yaml
from description_support import BOX, FOOT, inertial, small_urdf
from hypothesis import given, strategies as st
from refusals import refusal
from scipy.spatial import ConvexHull

import bipedsim
from bipedsim.config import RunConfig
from bipedsim.descriptions import Imported, import_robot
from bipedsim.descriptions.doubts import find_doubts
from bipedsim.descriptions.soles import find_sole
from bipedsim.errors import ConfigError
from bipedsim.model import Shape, load_robot, sole_placements
from bipedsim.runs import run


def imported(tmp_path: Path, text: str, name: str = "small.urdf") -> Imported:
    """Import a file with this text; return the result."""
    (tmp_path / name).write_text(text)
    return import_robot(tmp_path / name, tmp_path / "made", replace=True)


def test_a_urdf_stands_without_a_hand_edit(tmp_path: Path) -> None:
    made = imported(tmp_path, small_urdf())
    robot = made.robot
    assert robot is not None
    assert not made.notes.said["doubts"]
    assert [sole.name for sole in robot.soles] == ["left", "right"]
    assert robot.nu == 10
    for sole in robot.soles:
        corners = sole.placement_joint_sole.act(np.append(sole.centre, 0.0))
        np.testing.assert_allclose(corners, [0.03, 0.0, -0.05], atol=1e-9)
        np.testing.assert_allclose(np.ptp(sole.vertices, axis=0), [0.2, 0.1], atol=1e-9)
    knees = [robot.posture[robot.joint_names.index(f"{side}_knee")] for side in ("left", "right")]
    assert all(0.3 < knee < 0.8 for knee in knees)
    _, summary = run(RunConfig(robot=str(made.folder / "robot.yaml"), duration=2.0))
    assert summary["fell_at_s"] is None
    assert summary["foot_drift_m"] < 1e-6


@pytest.mark.parametrize("order", [1, -1])
def test_of_several_imus_that_nearest_to_the_root_is_taken(order: int, tmp_path: Path) -> None:
    places = {"imu_of_pelvis": "pelvis", "imu_of_foot": "left_foot"}
    more = "".join(
        f'<link name="{name}"/><joint name="{name}_fixed" type="fixed"><parent link="{link}"/><child link="{name}"/>'
        "</joint>"
        for name, link in list(places.items())[::order]
    )
    made = imported(tmp_path, small_urdf(more=more))
    assert yaml.safe_load((made.folder / "robot.yaml").read_text())["imu"]["frame"] == "imu_of_pelvis"
    assert any("imu_of_foot" in said for said in made.notes.said["guessed"])


@pytest.mark.parametrize("moved", ["0.02 0 -0.35", "0 0.02 -0.35", "0 0 -0.37"])
def test_a_joint_that_another_description_has_elsewhere_is_told(moved: str, tmp_path: Path) -> None:
    text = small_urdf()
    knee = '<child link="left_shank"/><origin xyz="0 0 -0.35"/>'
    assert knee in text
    (tmp_path / "one.urdf").write_text(text)
    (tmp_path / "other.urdf").write_text(text.replace(knee, knee.replace("0 0 -0.35", moved)))
    made = import_robot(tmp_path / "one.urdf", tmp_path / "made", tmp_path / "other.urdf")
    said = next(said for said in made.notes.said["differs"] if said.startswith("places"))
    assert "left_knee by 0.02 m" in said
    assert "right_knee" not in said


def test_our_own_robots_come_back_from_their_urdf_alone(tmp_path: Path) -> None:
    folder = Path(bipedsim.__file__).parent / "robots" / "biped14"
    own = load_robot("biped14")
    made = import_robot(folder / "robot.urdf", tmp_path / "made")
    assert made.robot is not None
    assert made.robot.mass == own.mass
    for found, sole in zip(made.robot.soles, own.soles, strict=True):
        assert found.name == sole.name
        ours = {tuple(row) for row in np.round(sole.vertices_joint, 4) + 0.0}
        assert {tuple(row) for row in np.round(found.vertices_joint, 4) + 0.0} == ours


@pytest.mark.parametrize(
    ("foot", "size"),
    [
        (f'<collision><origin xyz="{FOOT}"/>{BOX}</collision>', (0.2, 0.1)),
        (
            "".join(
                f'<collision><origin xyz="{x} {y} -0.045"/><geometry><sphere radius="0.005"/></geometry></collision>'
                for x in (-0.07, 0.13)
                for y in (-0.05, 0.05)
            ),
            (0.2, 0.1),
        ),
        (
            "".join(
                f'<collision><origin xyz="0.03 {y} -0.04" rpy="0 1.5707963267948966 0"/>'
                '<geometry><cylinder radius="0.01" length="0.2"/></geometry></collision>'
                for y in (-0.05, 0.05)
            ),
            (0.2, 0.1),
        ),
        (f'<visual><origin xyz="{FOOT}"/>{BOX}</visual>', (0.2, 0.1)),
    ],
    ids=["box", "spheres", "cylinders", "visual"],
)
def test_soles_come_from_whatever_the_foot_is_made_of(tmp_path: Path, foot: str, size: tuple[float, float]) -> None:
    made = imported(tmp_path, small_urdf(foot))
    assert made.robot is not None
    for sole in made.robot.soles:
        np.testing.assert_allclose(np.ptp(sole.vertices, axis=0), size, atol=2e-3)
        # On the ground: the sole's plane is 0.05 m below the ankle.
        assert sole.placement_joint_sole.translation[2] == pytest.approx(-0.05, abs=1e-6)
    kind = "guessed" if "visual" in foot else "found"
    assert any("foot 'left'" in text and "sole" in text for text in made.notes.said[kind])


def test_a_foot_without_geometry_gets_the_box_of_its_inertia_and_missing_meshes_are_told(tmp_path: Path) -> None:
    mesh = '<collision><geometry><mesh filename="package://nowhere/foot.stl"/></geometry></collision>'
    made = imported(tmp_path, small_urdf(mesh))
    assert any("no geometry (a box of its inertia)" in text for text in made.notes.said["guessed"])
    # The warning appears once for all links, and not again when the result is loaded.
    missing = [text for text in made.notes.said["doubts"] if "nowhere" in text or "left_foot" in text]
    assert len(missing) == 1
    assert "left_foot, right_foot" in missing[0]
    assert [text for text in find_doubts(load_robot(made.folder / "robot.yaml")) if "left_foot" in text] == missing


def test_a_tilted_foot_link_has_a_sole_that_is_flat_on_the_ground(tmp_path: Path) -> None:
    tilted = f'<collision><origin xyz="{FOOT}" rpy="0 0.3 0"/>{BOX}</collision>'
    made = imported(tmp_path, small_urdf(tilted))
    robot = made.robot
    assert robot is not None
    for place in sole_placements(robot.model, robot.model.createData(), robot.soles, robot.q_nominal):
        np.testing.assert_allclose(place.rotation[:, 2], [0.0, 0.0, 1.0], atol=1e-9)
    sole = robot.soles[0]
    np.testing.assert_allclose(np.ptp(sole.vertices, axis=0), [0.2, 0.1], atol=1e-4)
    pitch = pin.rpy.matrixToRpy(sole.placement_joint_sole.rotation)[1]
    assert pitch == pytest.approx(0.3, abs=2e-3)


@pytest.mark.parametrize("sides", [("L", "R"), ("fl", "fr"), ("l", "r")])
def test_sides_are_told_by_names_or_by_places(tmp_path: Path, sides: tuple[str, str]) -> None:
    made = imported(tmp_path, small_urdf(sides=sides))
    assert made.robot is not None
    frames = {sole.name: sole.frame for sole in made.robot.soles}
    assert frames == {"left": f"{sides[0]}_foot", "right": f"{sides[1]}_foot"}


def test_an_impossible_inertia_is_mended_noted_and_told(tmp_path: Path) -> None:
    text = small_urdf(inertias={"left_foot": (0.001, 7.6e-19, 0.002)})
    made = imported(tmp_path, text)
    assert made.robot is not None
    assert len(made.notes.said["mended"]) == 1
    assert "left_foot" in made.notes.said["mended"][0]
    yaml = (made.folder / "robot.yaml").read_text()
    assert "inertia:\n  left_foot:" in yaml


def test_what_is_missing_is_guessed_and_said(tmp_path: Path) -> None:
    made = imported(tmp_path, small_urdf(limit="", kind="continuous"))
    assert made.robot is not None
    assert (made.robot.effort_limit > 0.0).all()
    assert np.isinf(made.robot.position_upper[0])
    guessed = "\n".join(made.notes.said["guessed"])
    assert "effort_limit of" in guessed
    assert "velocity_limit of" in guessed
    assert "armature of all joints" in guessed


def test_an_effort_limit_that_is_no_drive_s_is_taken_as_none(tmp_path: Path) -> None:
    """Of 50 000 N.m would follow a reflected inertia of 10 kg.m^2 in an arm, and friction of 500 N.m."""
    text = small_urdf(limit='<limit lower="-2" upper="2" effort="50000" velocity="8"/>')
    made = imported(tmp_path, text)
    config = yaml.safe_load((made.folder / "robot.yaml").read_text())
    imported(tmp_path, small_urdf(limit='<limit lower="-2" upper="2" velocity="8"/>'))
    without = yaml.safe_load((made.folder / "robot.yaml").read_text())
    for name in ("effort_limit", "armature", "joint_damping", "hardware"):
        assert config[name] == without[name]
    assert made.robot is not None
    limits = dict(zip(made.robot.joint_names, made.robot.effort_limit, strict=True))
    assert limits["left_knee"] == limits["right_knee"] == 60.0, "what a drive can give stays"
    (doubt,) = made.notes.said["doubts"]
    assert "left_hip_pitch 50000" in doubt
    assert "knee" not in doubt


def test_zmp_chooses_the_times_of_steps_itself(tmp_path: Path) -> None:
    """It computes the times from the pendulum and the speed, which an import does not know."""
    made = imported(tmp_path, small_urdf())
    config = yaml.safe_load((made.folder / "robot.yaml").read_text())
    assert not {"single_support", "double_support"} & set(config["controllers"]["zmp"])


@pytest.mark.parametrize("effort", [2.0, 10.0, 300.0])
def test_a_weak_ankle_has_the_zmp_nearer_to_it(tmp_path: Path, effort: float) -> None:
    """In single support, the ankle holds the weight with 0.4 of its effort, or the ZMP is a quarter of the sole off the
    middle.
    """
    text = small_urdf()
    for side in ("left", "right"):
        before, joint, after = text.partition(f'<joint name="{side}_ankle_pitch"')
        weak = re.sub(r'effort="[^"]*"', f'effort="{effort}"', after, count=1)
        assert weak != after
        text = before + joint + weak
    made = imported(tmp_path, text)
    assert made.robot is not None
    config = yaml.safe_load((made.folder / "robot.yaml").read_text())
    shift = config["controllers"]["zmp"].get("zmp_forward", 0.0)
    lever, sole = 0.03, 0.2
    if effort == 300.0:
        assert shift == 0.0
    else:
        needed = 0.4 * effort / made.robot.weight - lever
        assert needed < 0.0
        assert shift == pytest.approx(max(needed, -sole / 4), abs=6e-4)


def test_toes_and_followers_are_welded_and_told(tmp_path: Path) -> None:
    toe = "".join(
        f'<joint name="{side}_toe" type="revolute"><parent link="{side}_foot"/><child link="{side}_tip"/>'
        '<origin xyz="0.14 0 -0.04"/><axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="5" velocity="5"/></joint>'
        f'<link name="{side}_tip"><inertial><mass value="0.05"/><inertia ixx="1e-4" iyy="1e-4" izz="1e-4" ixy="0" '
        'ixz="0" iyz="0"/></inertial><collision><geometry><box size="0.02 0.1 0.02"/></geometry></collision></link>'
        for side in ("left", "right")
    )
    made = imported(tmp_path, small_urdf(more=toe))
    assert made.robot is not None
    assert made.robot.nu == 10
    assert any("toes" in text for text in made.notes.said["guessed"])
    assert np.ptp(made.robot.soles[0].vertices[:, 0]) == pytest.approx(0.22, abs=1e-3)
    follows = toe.replace('<limit lower="-1"', '<mimic joint="left_knee" multiplier="0.5"/><limit lower="-1"')
    coupled = imported(tmp_path, small_urdf(more=follows))
    assert coupled.robot is not None
    assert any("<mimic>" in text for text in coupled.notes.said["dropped"])
    # Of a joint that is fixed by now, as exporters leave it.
    fixed = imported(tmp_path, small_urdf(more=follows.replace('type="revolute"', 'type="fixed"')))
    assert fixed.robot is not None
    assert not fixed.notes.said["dropped"]


@pytest.mark.parametrize(
    ("knee", "mimic", "angle"),
    [
        ("-0.1", 'multiplier="0.5" offset="0.2"', 0.2),
        ("0.4", 'multiplier="0.5"', 0.2),
        ("0.4", 'offset="-0.1"', 0.3),
        ("0.4", 'multiplier="0" offset="0.1"', 0.1),
    ],
)
def test_a_follower_is_where_its_leader_nearest_to_zero_takes_it(
    tmp_path: Path, knee: str, mimic: str, angle: float
) -> None:
    more = "".join(
        f'<joint name="{name}" type="revolute"><parent link="pelvis"/><child link="{name}_link"/><axis xyz="0 1 0"/>'
        f'<mimic joint="{leader}" {how}/><limit lower="-1" upper="1" effort="5" velocity="5"/></joint>'
        f'<link name="{name}_link"><inertial><mass value="0.05"/><inertia ixx="1e-4" iyy="1e-4" izz="1e-4" ixy="0" '
        'ixz="0" iyz="0"/></inertial></link>'
        for name, leader, how in (("second", "first", 'multiplier="-2"'), ("first", "left_knee", mimic))
    )
    limit = f'<limit lower="{knee}" upper="2" effort="60" velocity="8"/>'
    made = imported(tmp_path, small_urdf(more=more, knee=limit))
    config = yaml.safe_load((made.folder / "robot.yaml").read_text())
    assert config["locked"] == pytest.approx({"first": angle, "second": -2.0 * angle})


def fixed(parent: str, child: str, name: str, origin: str = "") -> str:
    return f'<joint name="{name}" type="fixed"><parent link="{parent}"/><child link="{child}"/>{origin}</joint>'


def test_links_that_are_no_tree_are_all_told_at_once(tmp_path: Path) -> None:
    more = (
        '<link name="tool"/><link name="a"/><link name="b"/>'
        + fixed("left_thigh", "right_foot", "rod")
        + fixed("right_thigh", "left_foot", "bar")
        + fixed("a", "b", "to")
        + fixed("b", "a", "back")
    )
    with pytest.raises(ConfigError) as caught:
        imported(tmp_path, small_urdf(more=more))
    faults = {str(fault.place).rpartition(": ")[2]: fault.value for fault in caught.value.faults}
    assert len(caught.value.faults) == 4
    assert faults["roots"] == ["pelvis", "tool"]
    assert sorted(faults["cycle"]) == ["a", "b"]
    assert {fault.value for fault in caught.value.faults if fault.place.endswith("link")} == {"left_foot", "right_foot"}


@pytest.mark.parametrize("name", ["world", "World"])
@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("rpy", ["0 0 0", "0 0 2", "1.2 -0.3 0.5"])
def test_a_robot_that_is_fixed_to_the_world_floats_with_its_trunk_as_base(
    tmp_path: Path, name: str, between: bool, rpy: str
) -> None:
    origin = f'<origin xyz="0.3 0 0.9" rpy="{rpy}"/>'
    more = f'<link name="{name}"/>' + fixed(name, "mount" if between else "pelvis", "hook", origin)
    more += f'<link name="mount"/>{fixed("mount", "pelvis", "screw", origin)}' * between
    robot = imported(tmp_path, small_urdf(more=more)).robot
    assert robot is not None
    model = robot.model
    trunk = model.frames[model.getFrameId("pelvis")]
    assert trunk.parentJoint == 1
    assert np.linalg.norm(trunk.placement.translation) < 1e-12
    turn = pin.rpy.rpyToMatrix(np.array([float(angle) for angle in rpy.split()]))
    turn = turn @ turn if between else turn
    np.testing.assert_allclose(trunk.placement.rotation[2], turn[2] if abs(turn[2, 2]) < 1.0 else [0, 0, 1], atol=1e-12)


@pytest.mark.parametrize("kind", ["fixed", "floating"])
def test_shapes_of_links_between_world_and_trunk_are_dropped_with_a_note(tmp_path: Path, kind: str) -> None:
    shape = '<visual><geometry><box size="0.1 0.1 0.1"/></geometry></visual>'
    more = f'<link name="world"/>{fixed("world", "mount", "hook", "")}<link name="mount">{shape}</link>'
    more += f'<joint name="screw" type="{kind}"><parent link="mount"/><child link="pelvis"/></joint>'
    notes = imported(tmp_path, small_urdf(more=more)).notes.said
    (note,) = [text for text in notes["dropped"] if "shapes" in text]
    assert "mount" in note
    assert "world," not in note


def test_feet_without_a_mirrored_joint_are_a_warning_and_not_a_correction(tmp_path: Path) -> None:
    """One foot has two joints more than the other, which carries two tips side by side."""

    def tip(name: str, parent: str, y: float, shape: str = "") -> str:
        return (
            f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{name}_tip"/>'
            f'<origin xyz="0 {y} 0"/><axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="5" velocity="5"/></joint>'
            f'<link name="{name}_tip">{inertial(0.05, (1e-4, 1e-4, 1e-4), "0 0 0")}{shape}</link>'
        )

    text = small_urdf()
    sole = text[text.index("<collision>") : text.index("</collision>") + len("</collision>")]
    begin, _, rest = text.partition('<link name="left_foot">')
    text = f'{begin}<link name="left_foot">{rest.replace(sole, "", 1)}'
    more = tip("left_a", "left_foot", 0.0) + tip("left_b", "left_a_tip", 0.0, sole)
    more += tip("right_a", "right_foot", 0.02) + tip("right_b", "right_foot", -0.02)
    made = imported(tmp_path, text.replace("</robot>", f"{more}</robot>"))
    assert not any("mirror each other" in note for note in made.notes.said["mended"])
    assert any("mirror each other" in note for note in made.notes.said["doubts"])


@pytest.mark.parametrize(
    ("root", "noted"),
    [
        ('<link name="base_footprint"/>', True),
        ('<link name="world"><collision><geometry><box size="9 9 0.1"/></geometry></collision></link>', True),
        ('<link name="base_link"/>', False),
    ],
)
def test_another_root_without_mass_remains_the_base(tmp_path: Path, root: str, noted: bool) -> None:
    name = ElementTree.fromstring(root).attrib["name"]
    more = root + fixed(name, "pelvis", "hook", '<origin xyz="0 0 0.9"/>' if noted else "")
    made = imported(tmp_path, small_urdf(more=more))
    assert made.robot is not None
    model = made.robot.model
    assert model.frames[model.getFrameId(name)].placement.isIdentity()
    assert any(f"massless link '{name}'" in text for text in made.notes.said["guessed"]) == noted


def test_mirrored_joints_have_their_signs(tmp_path: Path) -> None:
    report = imported(tmp_path, small_urdf()).report
    assert "| left_hip_roll | right_hip_roll | - |" in report
    assert "| left_knee | right_knee | + |" in report


def test_a_package_is_searched_for_the_robot(tmp_path: Path) -> None:
    package = tmp_path / "small_description"
    (package / "urdf").mkdir(parents=True)
    (package / "urdf" / "small.urdf").write_text(small_urdf())
    (package / "urdf" / "hand.urdf").write_text('<robot name="hand"><link name="palm"/></robot>')
    made = import_robot(package, tmp_path / "made")
    assert made.robot is not None
    assert any("others there" in text and "hand.urdf" in text for text in made.notes.said["guessed"])


def test_no_file_that_is_there_is_written_anew(tmp_path: Path) -> None:
    source = tmp_path / "small.urdf"
    source.write_text(small_urdf())
    import_robot(source, tmp_path)  # next to the description, which is no file that the import writes
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ConfigError) as caught:
        import_robot(source, tmp_path)
    assert {str(tmp_path / name) for name in ("robot.yaml", "report.md")} <= set(caught.value.place.split(", "))
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    with refusal(place=source):
        import_robot(source, source)
    with refusal(place=tmp_path / "smal.urdf"):
        import_robot(tmp_path / "smal.urdf", tmp_path / "other")


def test_a_robot_that_cannot_stand_is_written_and_told(tmp_path: Path) -> None:
    stiff = '<limit lower="1.9" upper="2" effort="60" velocity="8"/>'
    made = imported(tmp_path, small_urdf(limit=stiff, knee=stiff))
    assert made.robot is None
    assert (made.folder / "robot.yaml").is_file()
    assert any("posture" in text for text in made.notes.said["doubts"])


BALL = '<geometry><sphere radius="0.015"/></geometry>'
EDGE = '<geometry><box size="0.2 0.004 0.02"/></geometry>'


@pytest.mark.parametrize(
    ("foot", "n"),
    [
        (f'<collision><origin xyz="{FOOT}"/>{BALL}</collision>', 1),
        (f'<collision><origin xyz="{FOOT}"/>{EDGE}</collision>', 2),
        (f'<collision><origin xyz="{FOOT}" rpy="0 0.3 0.1"/>{EDGE}</collision>', 2),
    ],
    ids=["points", "blades", "leaning blades"],
)
def test_robots_on_points_and_blades_begin_upright(tmp_path: Path, foot: str, n: int) -> None:
    robot = imported(tmp_path, small_urdf(foot)).robot
    assert robot is not None
    data = robot.model.createData()
    com = pin.centerOfMass(robot.model, data, robot.q_nominal)
    np.testing.assert_allclose(data.oMi[1].rotation[2], [0.0, 0.0, 1.0], atol=1e-5)
    knee = robot.posture[robot.joint_names.index("left_knee")]
    assert 0.3 < knee < 0.8
    touching = []
    for sole in robot.soles:
        assert sole.n_vertices == n
        place = data.oMi[sole.joint_id]
        touching += list(sole.vertices_joint @ place.rotation.T + place.translation)
        np.testing.assert_allclose((place * sole.placement_joint_sole).rotation[2, 2], 1.0, atol=1e-4)
    np.testing.assert_allclose(np.array(touching)[:, 2], robot.soles[0].radius, atol=1e-5)
    np.testing.assert_allclose(np.mean(touching, axis=0)[:2], com[:2], atol=1e-4)


def test_a_folder_may_have_the_name_of_another_robot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "small.urdf").write_text(small_urdf())
    monkeypatch.chdir(tmp_path)
    made = import_robot("small.urdf", "biped14")
    assert made.robot is not None
    assert made.robot.nu == 10
    assert "10 driven joints" in made.report


def test_all_numbers_that_are_none_and_axes_without_a_direction_are_told_at_once(tmp_path: Path) -> None:
    text = small_urdf(limit='<limit lower="-2" upper="2" effort="60 Nm" velocity="8"/><dynamics damping="0,01"/>')
    text = text.replace('<axis xyz="0 1 0"/>', '<axis xyz="0 0 0"/>', 1).replace(
        '<mass value="10.0"/>', '<mass value="nan"/>'
    )
    text = text.replace('<origin xyz="0 0.1 0"/>', '<origin xyz="0 0,1 0"/>', 1)
    with pytest.raises(ConfigError) as caught:
        imported(tmp_path, text)
    values = [fault.value for fault in caught.value.faults]
    assert {"60 Nm", "0,01", "0 0 0", "nan", "0 0,1 0"} == set(values)
    assert values.count("60 Nm") == 8
    owners = {fault.place.split(": ")[1] for fault in caught.value.faults}
    assert {"joint 'left_hip_pitch'", "link 'pelvis'"} <= owners


@pytest.mark.parametrize("axis", ["0 0 0", "0 1", "x y z", "0 inf 0"])
def test_a_robot_yaml_with_such_an_axis_does_not_load(tmp_path: Path, axis: str) -> None:
    made = imported(tmp_path, small_urdf())
    text = (tmp_path / "small.urdf").read_text()
    (tmp_path / "small.urdf").write_text(text.replace('<axis xyz="0 1 0"/>', f'<axis xyz="{axis}"/>', 1))
    with refusal(place="joint 'left_hip_pitch': <axis> xyz", value=axis):
        load_robot(made.folder / "robot.yaml")


def test_the_axis_of_a_joint_that_is_fixed_means_nothing(tmp_path: Path) -> None:
    more = '<joint name="w" type="fixed"><parent link="pelvis"/><child link="tip"/><axis xyz="0 0 0"/></joint>'
    assert imported(tmp_path, small_urdf(more=f'{more}<link name="tip"/>')).robot is not None


def test_a_mesh_whose_axes_are_not_followed_is_told(tmp_path: Path) -> None:
    mesh = '<visual><geometry><mesh filename="foot.dae"/></geometry></visual>'
    for up, told in (("Y_UP", True), ("Z_UP", False)):
        (tmp_path / "foot.dae").write_text(
            '<?xml version="1.0"?><COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1"><asset>'
            "<created>2020-01-01T00:00:00</created><modified>2020-01-01T00:00:00</modified>"
            f"<up_axis>{up}</up_axis></asset></COLLADA>"
        )
        made = imported(tmp_path, small_urdf(more="", foot=f'<collision><origin xyz="{FOOT}"/>{BOX}</collision>{mesh}'))
        assert any("foot.dae" in text for text in made.notes.said["guessed"]) == told


def test_a_size_that_is_none_of_what_is_only_seen_stops_nothing(tmp_path: Path) -> None:
    seen = '<visual><geometry><cylinder radius="-0.05" length="0.1"/></geometry></visual>'
    made = imported(tmp_path, small_urdf(f'<collision><origin xyz="{FOOT}"/>{BOX}</collision>{seen}'))
    assert made.robot is not None
    assert any("left_foot" in text and "-0.05" in text for text in made.notes.said["dropped"])
    touching = f'<collision><geometry><sphere radius="-0.05"/></geometry></collision>{seen}'
    with pytest.raises(ConfigError) as caught:
        imported(tmp_path, small_urdf(touching))
    places = " ".join(fault.place for fault in caught.value.faults)
    assert {"left_foot", "right_foot"} <= set(re.findall(r"link '(\w+)'", places))


NOTHING = '<inertial><mass value="0"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial>'


@pytest.mark.parametrize("inertial", ["", NOTHING])
def test_a_floating_joint_under_a_world_without_mass_is_the_base(tmp_path: Path, inertial: str) -> None:
    joint = '<joint name="w" type="floating"><parent link="world"/><child link="pelvis"/></joint>'
    made = imported(tmp_path, small_urdf(more=f'<link name="world">{inertial}</link>{joint}'))
    assert made.robot is not None
    assert made.robot.nu == 10


def test_a_package_may_have_suffixes_in_capitals(tmp_path: Path) -> None:
    (tmp_path / "package" / "robots").mkdir(parents=True)
    (tmp_path / "package" / "robots" / "Small.URDF").write_text(small_urdf())
    assert import_robot(tmp_path / "package", tmp_path / "made").robot is not None


def test_a_nul_character_is_named_with_its_line(tmp_path: Path) -> None:
    with refusal(place=tmp_path / "small.urdf"):
        imported(tmp_path, small_urdf() + "\n\0")


def test_a_planar_robot_is_told(tmp_path: Path) -> None:
    made = imported(
        tmp_path, small_urdf().replace('xyz="0 0.1 0"', 'xyz="0 0 0"').replace('xyz="0 -0.1 0"', 'xyz="0 0 0"')
    )
    assert any("one plane" in text for text in made.notes.said["doubts"])


@given(
    st.lists(st.tuples(st.floats(-0.15, 0.15), st.floats(-0.06, 0.06)), min_size=3, max_size=60),
    st.floats(0.0, 6.3),
)
def test_a_sole_lacks_little_of_its_outline_and_says_how_much(points: list[tuple[float, float]], turn: float) -> None:
    """Reference: the convex hull of the points. No point is farther outside the sole than the reported distance."""
    flat = np.array(points) @ np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    shape = Shape("foot", 1, "hull", np.column_stack([flat, np.zeros(len(flat))]))
    found = find_sole([shape], np.array([0.0, 0.0, -1.0]), np.array([1.0, 0.0, 0.0]), [], 0.8)
    assert found is not None
    if len(found.vertices) < 3:
        return
    hull = ConvexHull(found.vertices)
    assert len(hull.vertices) == len(found.vertices) <= 16
    outside = float((flat @ hull.equations[:, :2].T + hull.equations[:, 2]).max())
    assert outside == pytest.approx(found.cut_off, abs=1e-9)
    whole = ConvexHull(np.round(flat, 5))
    assert outside < 1e-3 or len(whole.vertices) > 16
    inside = found.vertices @ whole.equations[:, :2].T + whole.equations[:, 2]
    assert inside.max() < 1e-9, "no corner is where the foot is not"
