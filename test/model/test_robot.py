"""Loading a robot: what robot.yaml means, and what every kind of broken input says."""

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

from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.model import load_robot, schema as robot_config
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


def message(path: Path | str, kind: type[ConfigError] = ConfigError) -> str:
    with pytest.raises(kind) as caught:
        load_robot(path)
    return str(caught.value)


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
    with pytest.raises(ConfigError, match="fixed to the world"):
        Simulator(robot)


def test_order_of_joints_is_that_of_the_config(write: Write) -> None:
    robot = load_robot(write(joints=["ankle", "hip", "knee"], effort_limit={"ankle": 7.0}, velocity_limit={".*": 2.0}))
    assert robot.idx_v.tolist() == [8, 6, 7]
    assert robot.effort_limit.tolist() == [7.0, 20.0, 20.0]
    assert robot.velocity_limit.tolist() == [2.0, 2.0, 2.0]
    assert robot.model.upperEffortLimit[6:].tolist() == [20.0, 20.0, 7.0]


def test_later_lines_win_and_expressions_match_whole_names(write: Write) -> None:
    robot = load_robot(write(armature={".*": 0.1, "kn.*": 0.2, "knee": 0.3}, joint_damping={"hip": 1.5}))
    assert robot.model.armature[robot.idx_v].tolist() == [0.1, 0.3, 0.1]
    assert robot.joint_damping[robot.idx_v].tolist() == [1.5, 0.0, 0.0]
    assert "unknown joint 'kne'" in message(write(armature={"kne": 0.2}))


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
    assert "joint 'ankle' carries (links foot) has no mass" in message(
        write(HOPPER.replace(link("foot", 1.0), '<link name="foot"/>'))
    )
    loose = HOPPER.replace(link("foot", 1.0), '<link name="foot"/>')
    assert "not positive definite" in message(write(loose, joints=["hip", "knee"], passive=["ankle"], armature=None))


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"passive": "knee"}, ["passive = 'knee'", "must be a list of texts"]),
        ({"passive": ["elbow"]}, ["unknown joint 'elbow'", "hip, knee, ankle", "passive"]),
        ({"passive": ["knee"]}, ["'knee' is both in joints and in passive"]),
        ({"joints": ["hip"], "passive": ["knee", "knee"]}, ["'knee' appears 2 times"]),
        ({"joints": [], "passive": ["knee"], "locked": {"knee": 0.0}}, ["'knee' is both in passive and in locked"]),
        ({"joints": ["hip"], "passive": ["knee"]}, ["ankle are neither in joints nor in passive nor in locked"]),
    ],
)
def test_wrong_passive_joints_are_refused(write: Write, changes: dict[str, Any], parts: list[str]) -> None:
    text = message(write(**changes))
    assert all(part in text for part in parts), text


def test_only_a_point_foot_is_a_ball(write: Write) -> None:
    assert load_robot(write(feet=foot(vertices=[[0.0, 0.0]], radius=0.05))).soles[0].radius == 0.05
    assert load_robot(write()).soles[0].radius == 0.0
    text = message(write(feet=foot(radius=0.05)))
    assert all(part in text for part in ("feet.only.radius = 0.05 m with 4 vertices", "exactly one vertex")), text
    assert "radius = -0.1" in message(write(feet=foot(vertices=[[0.0, 0.0]], radius=-0.1)))


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
    """One knee bent more than the other: no base pose brings all vertices to the ground."""
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
    assert "effort_limit: {hip: ...}" in message(write(bare))
    assert "position_limit: {hip: [lower, upper]}" in message(write(bare, effort_limit=30.0, velocity_limit=6.0))
    none = HOPPER.replace('effort="20"', 'effort="0"')
    assert "joint 'hip' has effort_limit 0" in message(write(none))


def test_unknown_robot_lists_the_table() -> None:
    text = message("biped15", UnknownNameError)
    assert "did you mean 'biped14'?" in text
    assert all(name in text for name in STANDING)


def test_missing_files(write: Write, tmp_path: Path) -> None:
    assert "nowhere/robot.yaml" in message("nowhere/robot.yaml")
    text = message(write(urdf="absent.urdf"))
    assert "robot.yaml: urdf = 'absent.urdf': no such file" in text
    (tmp_path / "broken.yaml").write_text("name: [")
    assert "not valid YAML" in message(tmp_path / "broken.yaml")
    (tmp_path / "list.yaml").write_text("- 1")
    assert "mapping" in message(tmp_path / "list.yaml")


def test_missing_example_robot_data_says_what_to_install(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(robot_config, "_prefixes", list)
    assert "pip install 'bipedsim[robots]'" in message("talos")
    monkeypatch.undo()
    text = message(write(urdf="package:example-robot-data/talos_data/robots/talos.urdf"), UnknownNameError)
    assert "talos_data/robots/talos_reduced.urdf" in text
    assert "package:example-robot-data/<path" in message(write(urdf="package:other/x.urdf"))


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"drop": "name"}, ["key 'name' is missing"]),
        ({"drop": "urdf"}, ["key 'urdf' is missing"]),
        ({"feets": {}}, ["unknown parameter 'feets'", "did you mean 'feet'?"]),
        ({"root": "planar"}, ["unknown root 'planar'", "free_flyer, fixed"]),
        ({"feet": [1]}, ["feet = [1] must be a mapping"]),
        ({"controllers": {"posture": 3}}, ["controllers.posture = 3 must be a mapping"]),
        ({"joints": ["hip", "knee", "ancle"]}, ["joints: unknown joint 'ancle'", "did you mean 'ankle'?"]),
        ({"joints": ["hip", "knee", "hip", "ankle"]}, ["'hip' appears 2 times"]),
        ({"joints": "hip"}, ["joints = 'hip' must be a list"]),
        ({"joints": ["hip", "knee"]}, ["joints ankle are neither in joints nor in passive nor", "others: 0.0"]),
        ({"locked": {"hip": 0.0}}, ["joint 'hip' is both in joints and in locked"]),
        ({"locked": {"toe": 0.0}}, ["locked: unknown joint 'toe'"]),
        ({"armature": {"hip": "big"}}, ["armature.hip = 'big' must be a finite number"]),
        ({"armature": {"hip": -0.1}}, ["armature.hip = -0.1 kg.m^2 is below its minimum"]),
        ({"armature": {"h[ip": 0.1}}, ["neither a joint nor a regular expression"]),
        ({"effort_limit": {"hip": 0.0}}, ["joint 'hip' has effort_limit 0"]),
        ({"position_limit": {"hip": [1.0, -1.0]}}, ["joint 'hip' has position limits [1, -1]"]),
        ({"position_limit": {"hip": 1.0}}, ["position_limit.hip = 1.0 must be two numbers"]),
        ({"posture": {"knee": 1.4}}, ["posture.knee = 1.4 rad is outside the limits [-1, 1]"]),
        ({"imu": {"frame": "head"}}, ["imu.frame: unknown frame 'head'", "body, thigh, shank, foot"]),
        ({"imu": {"link": "body"}}, ["imu: unknown parameter 'link'"]),
        ({"feet": foot(frame="food")}, ["feet.only.frame: unknown frame 'food'", "did you mean 'foot'?"]),
        ({"feet": foot(frame=None)}, ["feet.only: key 'frame' is missing"]),
        ({"feet": foot(vertices=None)}, ["feet.only: key 'vertices' is missing"]),
        ({"feet": foot(vertices=[[0, 0], [0, 0]])}, ["feet.only.vertices: vertices 0 and 1 are 0 m apart"]),
        ({"feet": foot(friction_static=0.3)}, ["friction_dynamic = 0.5 is above friction_static = 0.3"]),
        ({"feet": foot(friction_dynamic=-0.1)}, ["friction_dynamic = -0.1 is below its minimum"]),
        ({"feet": foot(mu=0.5)}, ["feet.only: unknown parameter 'mu'", "friction_static"]),
        ({"feet": foot(placement={"xyz": [0, 0]})}, ["feet.only.placement.xyz = [0, 0] must be three numbers"]),
        ({"feet": foot(placement={"xzy": [0, 0, 0]})}, ["feet.only.placement: unknown parameter 'xzy'", "mean 'xyz'"]),
        ({"feet": foot(ankle_frame="shank")}, ["ankle_frame = 'shank' moves with joint 'knee'"]),
        ({"feet": {"left foot": foot()["only"]}}, ["feet.left foot", "letters, digits"]),
        ({"position_limit": {".*": [-1.0, -0.9]}, "posture": {".*": -0.95}}, ["posture", "flat soles"]),
        ({"feet": foot(placement={"rpy": [3.14159, 0.0, 0.0]})}, ["feet: "]),
    ],
)
def test_wrong_keys_and_values_are_named(write: Write, changes: dict[str, Any], parts: list[str]) -> None:
    text = message(write(**changes))
    assert "robot.yaml" in text
    for part in parts:
        assert part in text


@pytest.mark.parametrize(
    ("urdf", "parts"),
    [
        ("<robot", ["not valid XML"]),
        ("<robots/>", ["root element is <robots>"]),
        (HOPPER.replace('name="knee"', 'name="hip"'), ["joint 'hip' appears 2 times"]),
        (HOPPER.replace('link name="shank"', 'link name="thigh"'), ["link 'thigh' appears 2 times"]),
        (HOPPER.replace('child link="foot"', 'child link="fot"'), ["child link 'fot'", "did you mean 'foot'?"]),
        (HOPPER.replace('type="revolute"', 'type="hinge"', 1), ["unknown joint type 'hinge'", "revolute"]),
        (HOPPER.replace('velocity="5"', 'velocity="fast"', 1), ["joint 'hip'", "velocity = 'fast' is not a number"]),
        (HOPPER.replace('velocity="5"', 'velocity="inf"', 1), ["joint 'hip'", "velocity = 'inf' is not finite"]),
        (HOPPER.replace('velocity="5"', "", 1), ["joint 'hip' has no velocity limit", "velocity_limit: {hip"]),
        (HOPPER.replace('type="revolute"', 'type="floating"', 1), ["joint 'hip' has 7 position variables"]),
        (HOPPER.replace('mass value="2.0"', 'mass value="-2.0"'), ["link 'thigh': mass = -2.0 kg is negative"]),
        (HOPPER.replace('mass value="2.0"', 'mass value="1e300"'), ["carries", "mass 1e+300 kg", "beyond 1e+12"]),
        (HOPPER.replace('ixx="0.01"', 'ixx="1e308"', 1), ["carries", "inertia up to 1e+308 kg.m^2 is beyond 1e+12"]),
        (HOPPER.replace('mass value="2.0"', 'weight value="2.0"'), ["link 'thigh'", "<mass>"]),
        (HOPPER.replace(link("foot", 1.0), '<link name="foot"/>'), ["joint 'ankle' carries", "foot", "no mass"]),
        (
            HOPPER.replace('<mass value="2.0"/><inertia ixx="0.01"', '<mass value="2.0"/><inertia ixx="0.03"'),
            ["joint 'hip' carries (links thigh)", "principal moments 0.01, 0.01, 0.03", "sum of the other two"],
        ),
        (HOPPER.replace(JOINTS[2], ""), ["not a valid URDF", "root link"]),
        (HOPPER.replace("<robot name=", "<robot title="), ["not a valid URDF"]),
    ],
)
def test_broken_urdf_is_named(write: Write, urdf: str, parts: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    text = message(write(urdf))
    assert "robot." in text
    for part in parts:
        assert part in text
    out, err = capfd.readouterr()
    assert out + err == ""


def test_inertia_of_a_welded_link_matters_as_part_of_its_body(write: Write) -> None:
    """A sensor with a wrong inertia in a heavy body is common in published models: said, not refused."""
    sensor = link("sensor", 0.1, 1e-6).replace('ixx="1e-06"', 'ixx="9e-06"')
    weld = '<joint name="weld" type="fixed"><parent link="body"/><child link="sensor"/></joint>'
    robot = load_robot(write(HOPPER.replace("</robot>", sensor + weld + "</robot>")))
    assert any("link 'sensor'" in w and "principal moments" in w for w in robot.warnings)


def test_leg_without_inertia_is_refused(write: Write) -> None:
    urdf = HOPPER.replace(link("foot", 1.0), link("foot", 1.0, 0.0))
    assert "mass matrix" in message(write(urdf, drop="armature"))
    assert load_robot(write(urdf)).nu == 3


def test_meshes_are_not_read(write: Write) -> None:
    root = ElementTree.fromstring(HOPPER)
    visual = ElementTree.SubElement(root.findall("link")[0], "visual")
    ElementTree.SubElement(ElementTree.SubElement(visual, "geometry"), "mesh", filename="package://absent/x.dae")
    assert load_robot(write(ElementTree.tostring(root, encoding="unicode"))).nu == 3
