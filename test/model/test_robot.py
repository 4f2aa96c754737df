"""Loading a robot: the meaning of robot.yaml, and the error of every kind of invalid input."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import yaml
from paths import STANDING
from refusals import faults_of, refusal

from bipedsim.errors import ConfigError, UnknownNameError, install
from bipedsim.model import effort_and_velocity_limits, load_robot, schema as robot_config
from bipedsim.model.robot import has_free_flyer
from bipedsim.sim.simulator import Simulator

INERTIAL = '<inertial><mass value="{m}"/><inertia ixx="{i}" iyy="{i}" izz="{i}" ixy="0" ixz="0" iyz="0"/></inertial>'
LIMIT = '<limit lower="-1" upper="1" effort="20" velocity="5"/>'


def link(name: str, mass: float, inertia: float = 0.01) -> str:
    return f'<link name="{name}">{INERTIAL.format(m=mass, i=inertia)}</link>'


def joint(name: str, parent: str, child: str, xyz: str = "0 0 0", axis: str = "0 1 0", limit: str = LIMIT) -> str:
    return (
        f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}"/><axis xyz="{axis}"/>{limit}</joint>'
    )


LINKS = [link("body", 10.0, 0.1), link("thigh", 2.0), link("shank", 1.5), link("foot", 1.0)]
JOINTS = [
    joint("hip", "body", "thigh"),
    joint("knee", "thigh", "shank", "0 0 -0.4"),
    joint("ankle", "shank", "foot", "0 0 -0.4"),
]
HOPPER = f'<robot name="hopper">{"".join(LINKS)}{"".join(JOINTS)}</robot>'
CONFIG: dict[str, Any] = {
    "name": "hopper",
    "description": "one leg",
    "urdf": "robot.urdf",
    "joints": ["hip", "knee", "ankle"],
    "feet": {
        "only": {
            "frame": "foot",
            "placement": {"xyz": [0.0, 0.0, -0.05]},
            "vertices": [[0.15, 0.05], [-0.05, 0.05], [-0.05, -0.05], [0.15, -0.05]],
            "friction_static": 0.6,
            "friction_dynamic": 0.5,
        }
    },
    "imu": {"frame": "body"},
    "armature": 0.02,
    "posture": {"hip": -0.3, "knee": 0.6, "ankle": -0.3},
}

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str = HOPPER, drop: str = "", **changes: Any) -> Path:
        values = {**CONFIG, **changes}
        values.pop(drop, None)
        (tmp_path / "robot.urdf").write_text(text)
        (tmp_path / "robot.yaml").write_text(yaml.safe_dump(values, sort_keys=False))
        return tmp_path / "robot.yaml"

    return write


def foot(**changes: Any) -> dict[str, Any]:
    values = {**CONFIG["feet"]["only"], **changes}
    return {"only": {k: v for k, v in values.items() if v is not None}}


def faults(path: Path | str) -> set[tuple[str, Any]]:
    """Return place and value of the errors of a robot; see :func:`faults_of`."""
    with pytest.raises(ConfigError) as caught:
        load_robot(path)
    assert all(fault.place.startswith(str(Path(path).parent)) for fault in caught.value.faults or (caught.value,))
    return faults_of(caught.value)


def test_a_hopper_of_ones_own(write: Write) -> None:
    robot = load_robot(write())
    assert robot.joint_names == ("hip", "knee", "ankle")
    assert robot.mass == pytest.approx(14.5)
    assert robot.soles[0].friction_static == 0.6
    assert robot.model.armature.tolist() == [0.0] * 6 + [0.02] * 3
    assert robot.imu_frame == "body"
    assert robot.imu_joint_id == 1
    data = robot.model.createData()
    com = pin.centerOfMass(robot.model, data, robot.q_nominal)
    assert com[:2] == pytest.approx([0.0, 0.0], abs=1e-12)
    assert robot.urdf_xml == HOPPER
    assert load_robot(robot.source.parent).q_nominal == pytest.approx(robot.q_nominal)
    assert load_robot(str(robot.source)).name == "hopper"


def test_a_folder_beside_is_a_robot_too(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write()
    monkeypatch.chdir(tmp_path.parent)
    assert load_robot(tmp_path.name).name == "hopper"


def test_a_foot_that_nothing_moves_is_refused(write: Write) -> None:
    robot = load_robot(write(root="fixed", feet=foot(frame="body")))
    with refusal(place="feet.only.frame", value="body"):
        Simulator(robot)


def test_order_of_joints_is_that_of_the_config(write: Write) -> None:
    robot = load_robot(write(joints=["ankle", "hip", "knee"], effort_limit={"ankle": 7.0}, velocity_limit={".*": 2.0}))
    assert robot.idx_v.tolist() == [8, 6, 7]
    assert robot.effort_limit.tolist() == [7.0, 20.0, 20.0]
    assert robot.velocity_limit.tolist() == [2.0, 2.0, 2.0]
    assert effort_and_velocity_limits(robot.model)[0][6:].tolist() == [20.0, 20.0, 7.0]


def test_later_lines_win_and_expressions_match_whole_names(write: Write) -> None:
    robot = load_robot(write(armature={".*": 0.1, "kn.*": 0.2, "knee": 0.3}, joint_damping={"hip": 1.5}))
    assert robot.model.armature[robot.idx_v].tolist() == [0.1, 0.3, 0.1]
    assert robot.joint_damping[robot.idx_v].tolist() == [1.5, 0.0, 0.0]
    assert faults(write(armature={"kne": 0.2})) == {("armature", "'kne'")}


def test_locked_joints_are_welded_at_their_angle(write: Write) -> None:
    locked = load_robot(write(joints=["hip", "ankle"], locked={"knee": 0.6}, posture={"hip": -0.3, "ankle": -0.3}))
    free = load_robot(write())
    assert locked.nu == 2
    assert locked.mass == pytest.approx(free.mass)
    assert locked.model.nv == 8
    others = load_robot(write(joints=["hip"], locked={"knee": 0.6, "others": -0.3}, posture={}, feet={}))
    assert others.joint_names == ("hip",)
    assert others.soles == ()


def test_joints_default_to_all_that_are_not_locked(write: Write) -> None:
    assert load_robot(write(drop="joints")).joint_names == ("hip", "knee", "ankle")
    ankle = load_robot(write(drop="joints", locked={"knee": 0.6}, posture={"hip": -0.3, "ankle": -0.3}))
    assert ankle.joint_names == ("hip", "ankle")


def test_passive_joints_move_without_command_or_limit(write: Write) -> None:
    text = HOPPER.replace(joint("knee", "thigh", "shank", "0 0 -0.4"), joint("knee", "thigh", "shank", limit=""))
    changes = {"passive": ["knee"], "armature": {"hip": 0.02}, "joint_damping": {"knee": 0.3}}
    robot = load_robot(write(text, drop="joints", **changes))
    assert robot.joint_names == ("hip", "ankle")
    assert robot.model.nv == 9
    knee = robot.model.joints[robot.model.getJointId("knee")]
    assert robot.joint_damping[knee.idx_v] == 0.3
    assert robot.model.upperPositionLimit[knee.idx_q] == np.inf
    assert load_robot(write(text, root="fixed", joints=["hip", "ankle"], passive=["knee"])).q_nominal[1] == 0.6


def test_bodies_between_joints_may_be_massless_and_no_others(write: Write) -> None:
    empty = HOPPER.replace(link("thigh", 2.0), '<link name="thigh"/>')
    assert load_robot(write(empty, joints=["knee", "ankle"], passive=["hip"])).mass == pytest.approx(12.5)
    assert load_robot(write(empty)).mass == pytest.approx(12.5)
    loose = HOPPER.replace(link("foot", 1.0), '<link name="foot"/>')
    assert faults(write(loose)) == {("the body that joint 'ankle' carries (links foot)", "None")}
    assert faults(write(loose, joints=["hip", "knee"], passive=["ankle"], armature=None)) == {("mass matrix", "None")}


@pytest.mark.parametrize(
    ("changes", "key", "value"),
    [
        ({"passive": "knee"}, "passive", "knee"),
        ({"passive": ["elbow"]}, "passive", "elbow"),
        ({"passive": ["knee"]}, "joints", "knee"),
        ({"joints": ["hip"], "passive": ["knee", "knee"]}, "passive", "knee"),
        ({"joints": [], "passive": ["knee"], "locked": {"knee": 0.0}}, "passive", "knee"),
        ({"joints": ["hip"], "passive": ["knee"]}, "joints", "ankle"),
    ],
)
def test_wrong_passive_joints_are_refused(write: Write, changes: dict[str, Any], key: str, value: str) -> None:
    assert faults(write(**changes)) == {(key, repr(value))}


def test_only_a_point_foot_is_a_ball(write: Write) -> None:
    assert load_robot(write(feet=foot(vertices=[[0.0, 0.0]], radius=0.05))).soles[0].radius == 0.05
    assert load_robot(write()).soles[0].radius == 0.0
    assert faults(write(feet=foot(radius=0.05))) == {("feet.only.radius", "0.05")}
    assert faults(write(feet=foot(vertices=[[0.0, 0.0]], radius=-0.1))) == {("feet.only.radius", "-0.1")}


def test_fixed_root_has_no_base(write: Write) -> None:
    robot = load_robot(write(root="fixed"))
    assert not robot.free_flyer
    assert not has_free_flyer(robot.model)
    assert robot.model.nv == robot.nu == 3
    assert robot.q_nominal == pytest.approx([-0.3, 0.6, -0.3])
    assert robot.settle([0.1, 0.2, 0.3]) == pytest.approx([0.1, 0.2, 0.3])


@pytest.mark.parametrize("vertices", [[[0.0, 0.0]], [[0.1, 0.0], [-0.1, 0.0]]])
def test_points_and_blades_rest_on_the_ground_in_the_given_posture(write: Write, vertices: list[list[float]]) -> None:
    robot = load_robot(write(feet=foot(vertices=vertices)))
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, robot.q_nominal)
    heights = [data.oMi[robot.soles[0].joint_id].act(v)[2] for v in robot.soles[0].vertices_joint]
    assert np.abs(heights).max() < 1e-12
    assert robot.posture == pytest.approx([-0.3, 0.6, -0.3])


def test_settle_is_least_squares_over_uneven_feet(tmp_path: Path) -> None:
    """One knee is bent more than the other, so no base pose puts all vertices on the ground."""
    robot = load_robot("biped14")
    posture = robot.posture.copy()
    posture[robot.joint_names.index("l_knee")] += 0.2
    q = robot.settle(posture)
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, q)
    points = np.vstack([[data.oMi[s.joint_id].act(v) for v in s.vertices_joint] for s in robot.soles])
    best = np.sum(points[:, 2] ** 2)
    assert abs(points[:, 2].mean()) < 1e-12
    for axis in np.eye(6)[[2, 3, 4]]:
        for step in (-1e-3, 1e-3):
            move = pin.exp6(step * axis)
            assert np.sum(np.array([move.act(p)[2] for p in points]) ** 2) > best


def test_wrong_joints_for_standing_are_mended_and_said(write: Write) -> None:
    robot = load_robot(write(posture={"hip": -0.3, "knee": 0.6, "ankle": 0.2}))
    assert any("standing needs" in w for w in robot.warnings)


def test_no_armature_is_said(write: Write) -> None:
    assert any("armature" in w and "hip" in w for w in load_robot(write(drop="armature")).warnings)


def test_limits_may_come_from_the_config_alone(write: Write) -> None:
    bare = HOPPER.replace(LIMIT, "")
    limits = {"effort_limit": 30.0, "velocity_limit": 6.0, "position_limit": {".*": [-1.5, 1.5]}}
    robot = load_robot(write(bare, **limits))
    assert robot.effort_limit.tolist() == [30.0] * 3
    assert robot.position_upper.tolist() == [1.5] * 3
    assert ("effort", "None") in faults(write(bare))
    assert ("lower", "None") in faults(write(bare, effort_limit=30.0, velocity_limit=6.0))
    none = HOPPER.replace('effort="20"', 'effort="0"')
    assert ("effort_limit.hip", "0.0") in faults(write(none))


def test_unknown_robot_lists_the_table() -> None:
    with refusal(UnknownNameError, name="biped15", meant="biped14") as caught:
        load_robot("biped15")
    assert set(STANDING) <= set(caught.value.choices)


def test_missing_files(write: Write, tmp_path: Path) -> None:
    with refusal(place="nowhere/robot.yaml", cause=FileNotFoundError):
        load_robot("nowhere/robot.yaml")
    assert faults(write(urdf="absent.urdf")) == {("urdf", "'absent.urdf'")}
    for name, text in (("broken.yaml", "name: ["), ("list.yaml", "- 1")):
        (tmp_path / name).write_text(text)
        with refusal(place=tmp_path / name):
            load_robot(tmp_path / name)


def test_missing_example_robot_data_says_what_to_install(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(robot_config, "_prefixes", list)
    with refusal(place="urdf") as missing:
        load_robot("talos")
    assert install("bipedsim[robots]") in str(missing.value)
    monkeypatch.undo()
    with refusal(UnknownNameError, kind="urdf") as caught:
        load_robot(write(urdf="package:example-robot-data/talos_data/robots/talos.urdf"))
    assert "talos_data/robots/talos_reduced.urdf" in caught.value.choices
    assert faults(write(urdf="package:other/x.urdf")) == {("urdf", "'package:other/x.urdf'")}


@pytest.mark.parametrize(
    ("changes", "key", "value"),
    [
        ({"drop": "name"}, "name", None),
        ({"drop": "urdf"}, "urdf", None),
        ({"feets": {}}, "", "feets"),
        ({"root": "planar"}, "", "planar"),
        ({"feet": [1]}, "feet", [1]),
        ({"controllers": {"posture": 3}}, "controllers.posture", 3),
        ({"joints": ["hip", "knee", "ancle"]}, "joints", "ancle"),
        ({"joints": ["hip", "knee", "hip", "ankle"]}, "joints", "hip"),
        ({"joints": "hip"}, "joints", "hip"),
        ({"joints": ["hip", "knee"]}, "joints", "ankle"),
        ({"locked": {"hip": 0.0}}, "joints", "hip"),
        ({"locked": {"toe": 0.0}}, "locked", "toe"),
        ({"armature": {"hip": "big"}}, "armature.hip", "big"),
        ({"armature": {"hip": -0.1}}, "armature.hip", -0.1),
        ({"armature": {"h[ip": 0.1}}, "armature: name", "h[ip"),
        ({"effort_limit": {"hip": 0.0}}, "effort_limit.hip", 0.0),
        ({"position_limit": {"hip": [1.0, -1.0]}}, "position_limit.hip", [1.0, -1.0]),
        ({"position_limit": {"hip": 1.0}}, "position_limit.hip", 1.0),
        ({"posture": {"knee": 1.4}}, "posture.knee", 1.4),
        ({"imu": {"frame": "head"}}, "imu.frame", "head"),
        ({"imu": {"link": "body"}}, "imu", "link"),
        ({"feet": foot(frame="food")}, "feet.only.frame", "food"),
        ({"feet": foot(frame=None)}, "feet.only.frame", None),
        ({"feet": foot(vertices=None)}, "feet.only.vertices", None),
        ({"feet": foot(vertices=[[0, 0], [0, 0]])}, "feet.only.vertices[0]", None),
        ({"feet": foot(friction_static=0.3)}, "feet.only: friction_dynamic", 0.5),
        ({"feet": foot(friction_dynamic=-0.1)}, "feet.only.friction_dynamic", -0.1),
        ({"feet": foot(mu=0.5)}, "feet.only", "mu"),
        ({"feet": foot(placement={"xyz": [0, 0]})}, "feet.only.placement.xyz", [0, 0]),
        ({"feet": foot(placement={"xzy": [0, 0, 0]})}, "feet.only.placement", "xzy"),
        ({"feet": foot(ankle_frame="shank")}, "feet.only.ankle_frame", "shank"),
        ({"feet": {"left foot": foot()["only"]}}, "feet.left foot", None),
        ({"position_limit": {".*": [-1.0, -0.9]}, "posture": {".*": -0.95}}, "posture", None),
        ({"feet": foot(placement={"rpy": [3.14159, 0.0, 0.0]})}, "feet", None),
    ],
)
def test_wrong_keys_and_values_are_named(write: Write, changes: dict[str, Any], key: str, value: Any) -> None:
    path = write(**changes)
    with refusal(place=f"{path}: {key}" if key else path) as caught:
        load_robot(path)
    assert getattr(caught.value, "name", caught.value.value) == value


THIGH = "the body that joint 'hip' carries (links thigh)"


@pytest.mark.parametrize(
    ("urdf", "place", "value"),
    [
        ("<robot", "", "<robot"),
        ("<robots/>", "", None),
        (HOPPER.replace('name="knee"', 'name="hip"'), "joint", "hip"),
        (HOPPER.replace("</robot>", '<link name="thigh"/></robot>'), "link", "thigh"),
        (HOPPER.replace('child link="foot"', 'child link="fot"'), "joint 'ankle'", "fot"),
        (HOPPER.replace('type="revolute"', 'type="hinge"', 1), "joint 'hip'", "hinge"),
        (HOPPER.replace('velocity="5"', 'velocity="fast"', 1), "<limit> velocity", "fast"),
        (HOPPER.replace('velocity="5"', 'velocity="inf"', 1), "<limit> velocity", "inf"),
        (HOPPER.replace('velocity="5"', "", 1), "velocity", None),
        (HOPPER.replace('type="revolute"', 'type="floating"', 1), "joint 'hip'", None),
        (HOPPER.replace('mass value="2.0"', 'mass value="-2.0"'), "mass", -2.0),
        (HOPPER.replace('mass value="2.0"', 'mass value="1e300"'), THIGH, None),
        (HOPPER.replace('ixx="0.01"', 'ixx="1e308"', 1), THIGH, None),
        (HOPPER.replace('mass value="2.0"', 'weight value="2.0"'), "link 'thigh'", None),
        (
            HOPPER.replace(link("foot", 1.0), '<link name="foot"/>'),
            "the body that joint 'ankle' carries (links foot)",
            None,
        ),
        (
            HOPPER.replace('<mass value="2.0"/><inertia ixx="0.01"', '<mass value="2.0"/><inertia ixx="0.03"'),
            THIGH,
            None,
        ),
        (HOPPER.replace(JOINTS[2], ""), "roots", ["body", "foot"]),
        (HOPPER.replace("<robot name=", "<robot title="), "", None),
    ],
)
def test_broken_urdf_is_named(
    write: Write, urdf: str, place: str, value: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    assert faults(write(urdf)) == {(place or str(write(urdf).with_name("robot.urdf")), repr(value))}
    out, err = capfd.readouterr()
    assert out + err == ""


def test_inertia_of_a_welded_link_matters_as_part_of_its_body(write: Write) -> None:
    """A sensor with a wrong inertia in a heavy body is common in published models.

    It causes a warning, not an error.
    """
    sensor = link("sensor", 0.1, 1e-6).replace('ixx="1e-06"', 'ixx="9e-06"')
    weld = '<joint name="weld" type="fixed"><parent link="body"/><child link="sensor"/></joint>'
    robot = load_robot(write(HOPPER.replace("</robot>", sensor + weld + "</robot>")))
    assert any("link 'sensor'" in w and "principal moments" in w for w in robot.warnings)


def test_leg_without_inertia_is_refused(write: Write) -> None:
    urdf = HOPPER.replace(link("foot", 1.0), link("foot", 1.0, 0.0))
    assert faults(write(urdf, drop="armature")) == {("mass matrix", "None")}
    assert load_robot(write(urdf)).nu == 3


def test_meshes_are_not_read(write: Write) -> None:
    root = ElementTree.fromstring(HOPPER)
    visual = ElementTree.SubElement(root.findall("link")[0], "visual")
    ElementTree.SubElement(ElementTree.SubElement(visual, "geometry"), "mesh", filename="package://absent/x.dae")
    assert load_robot(write(ElementTree.tostring(root, encoding="unicode"))).nu == 3
