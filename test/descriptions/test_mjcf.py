"""MJCF converted to URDF. Reference: MuJoCo's mass matrix and centre of mass, at random angles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import yaml
from description_support import FOOT, small_mjcf, small_urdf
from refusals import refusal

from bipedsim.descriptions import Imported, import_robot
from bipedsim.model import sole_placements

mujoco = pytest.importorskip("mujoco")

ODD = """<mujoco model="odd"><compiler angle="radian" eulerseq="zyx"/><worldbody>
<body name="root" pos="1 2 3"><freejoint/>
<geom type="box" size="0.1 0.2 0.1" mass="3"/>
<body name="one" pos="0.1 0.2 -0.3" euler="0.3 -0.4 0.5"><joint name="a" axis="1 2 3" pos="0.05 -0.02 0.01"/>
<joint name="b" axis="0 1 -1" pos="-0.03 0.02 0.04" ref="0.4"/>
<geom type="capsule" size="0.05" fromto="0 0 0 0.1 0.2 0.3"/>
<body name="two" pos="-0.2 0.1 -0.4" quat="0.5 0.1 -0.7 0.2"><joint name="c" type="slide" axis="1 0 1" ref="0.1"/>
<inertial pos="0.02 0.03 -0.01" quat="1 0.3 0.2 0" mass="1.5" diaginertia="0.02 0.03 0.04"/>
<body name="three" pos="0 0 -0.2"><geom type="ellipsoid" size="0.05 0.1 0.02" mass="0.4"/></body>
<body name="four" pos="0 0.1 -0.3" euler="1 0 0.2"><joint name="d" axis="0 0 1" pos="0.1 0.1 0.1"/>
<geom type="sphere" size="0.06" pos="0.01 0.02 0.03" mass="0.7"/></body></body></body></body></worldbody></mujoco>"""


def imported(tmp_path: Path, text: str) -> Imported:
    (tmp_path / "robot.xml").write_text(text)
    return import_robot(tmp_path / "robot.xml", tmp_path / "made", replace=True)


@pytest.mark.parametrize("text", [ODD, small_mjcf()], ids=["odd", "small"])
def test_masses_and_kinematics_are_those_of_mujoco(tmp_path: Path, text: str) -> None:
    made = imported(tmp_path, text)
    urdf = next(made.folder.glob("*.urdf"))
    model = pin.buildModelFromUrdf(str(urdf), pin.JointModelFreeFlyer())
    data = model.createData()
    judge = mujoco.MjModel.from_xml_string(text)
    judge.dof_armature[:] = 0.0
    state = mujoco.MjData(judge)
    rng = np.random.default_rng(1)
    names = [judge.joint(j).name for j in range(1, judge.njnt)]
    for _ in range(5):
        angles = rng.uniform(-1.0, 1.0, len(names))
        q = pin.neutral(model)
        state.qpos[:7] = 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0
        for name, angle in zip(names, angles, strict=True):
            joint = model.joints[model.getJointId(name)]
            # A hinge without limits is one with sine and cosine to pinocchio.
            q[joint.idx_q : joint.idx_q + joint.nq] = angle if joint.nq == 1 else [np.cos(angle), np.sin(angle)]
            state.qpos[judge.joint(name).qposadr[0]] = angle
        mujoco.mj_forward(judge, state)
        full = np.zeros((judge.nv, judge.nv))
        _fill_mass_matrix(judge, state, full)
        pin.crba(model, data, q)
        mass = np.triu(data.M) + np.triu(data.M, 1).T
        mine = [model.joints[model.getJointId(name)].idx_v for name in names]
        theirs = [judge.joint(name).dofadr[0] for name in names]
        np.testing.assert_allclose(mass[np.ix_(mine, mine)], full[np.ix_(theirs, theirs)], atol=1e-9)
        com = pin.centerOfMass(model, data, q)
        np.testing.assert_allclose(com, state.subtree_com[1], atol=1e-9)


def _fill_mass_matrix(judge: Any, state: Any, full: np.ndarray) -> None:
    """Fill the mass matrix column by column: the layout of qM differs between releases."""
    for i in range(judge.nv):
        unit, column = np.zeros(judge.nv), np.zeros(judge.nv)
        unit[i] = 1.0
        mujoco.mj_mulM(judge, state, column, unit)
        full[:, i] = column


def test_an_mjcf_stands_with_the_numbers_of_its_file(tmp_path: Path) -> None:
    floor = '<geom type="plane" size="1 1 1"/><body name="ball" pos="1 0 0"><freejoint/><geom size="0.1"/></body>'
    made = imported(tmp_path, small_mjcf(floor))
    robot = made.robot
    assert robot is not None
    assert not made.notes.said["doubts"]
    assert robot.nu == 10
    np.testing.assert_allclose(robot.model.armature[robot.idx_v], 0.01)
    np.testing.assert_allclose(robot.joint_damping[robot.idx_v], 0.4)
    np.testing.assert_allclose(robot.effort_limit, 60.0)
    assert robot.imu_frame == "imu"
    assert robot.position_upper[robot.joint_names.index("left_knee")] == pytest.approx(np.deg2rad(120.0))
    for sole in robot.soles:
        np.testing.assert_allclose(np.ptp(sole.vertices, axis=0), [0.2, 0.1], atol=1e-9)
        # The floor has the default of 1, and of two values the larger counts.
        assert sole.friction_static == 1.0
    assert any("ball" in text for text in made.notes.said["dropped"])


def test_closed_chains_couplings_tendons_and_springs_are_told(tmp_path: Path) -> None:
    behind = """<equality><connect name="bar" body1="left_foot" body2="left_shank" anchor="0.05 0 0"/>
    <joint joint1="right_ankle_roll" joint2="right_ankle_pitch" polycoef="0.1 1 0 0 0"/></equality>
    <tendon><fixed name="cord"><joint joint="left_knee" coef="1"/></fixed></tendon>"""
    made = imported(tmp_path, small_mjcf(behind=behind))
    yaml = (made.folder / "robot.yaml").read_text()
    assert "loops:\n  bar:" in yaml
    assert any("1 closed chains: bar" in text for text in made.notes.said["found"])
    dropped = "\n".join(made.notes.said["dropped"])
    assert "right_ankle_roll is welded at 0.1 rad" in dropped
    assert "1 tendons: cord" in dropped


@pytest.mark.parametrize("key", ["", '<keyframe><key name="home" qpos="0 0 0.7 1 0 0 0 {}"/></keyframe>'])
def test_a_coupled_joint_is_welded_where_mujoco_holds_it(tmp_path: Path, key: str) -> None:
    behind = """<equality><joint name="c" joint1="right_toe" joint2="left_toe" polycoef="0.1 2 0 1 0"/>
    <joint name="b" joint1="left_toe" joint2="left_knee" polycoef="0.05 0.5 0.2 0 0"/>
    <joint name="a" joint1="rod" polycoef="0.02 0 0 0 0"/></equality>"""
    text = small_mjcf(behind=behind + key.format(" ".join(["0", *["0 -0.4 0.8 -0.4 0.1 0"] * 2])))
    inertial = '<inertial pos="0 0 0" mass="0.1" diaginertia="1e-4 1e-4 1e-4"/>'
    for side, ref in (("left", 17), ("right", -11)):
        tip = f'<body name="{side}_tip"><joint name="{side}_toe" axis="0 1 0" ref="{ref}"/>{inertial}</body>'
        text = text.replace(f'<body name="{side}_foot"', f'{tip}<body name="{side}_foot"')
    rod = f'<body name="mast"><joint name="rod" type="slide" axis="0 0 1" ref="0.5"/>{inertial}</body>'
    text = text.replace("<freejoint/>", f"<freejoint/>{rod}")
    locked = yaml.safe_load((imported(tmp_path, text).folder / "robot.yaml").read_text())["locked"]
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[:] = model.key_qpos[0] if key else model.qpos0
    for name in ("rod", "left_toe", "right_toe"):
        data.qpos[model.joint(name).qposadr[0]] = locked[name]
    mujoco.mj_forward(model, data)
    couplings = data.efc_type[: data.nefc] == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    assert couplings.sum() == 3
    np.testing.assert_allclose(data.efc_pos[: data.nefc][couplings], 0.0, atol=1e-9)


def test_a_keyframe_of_another_size_is_refused(tmp_path: Path) -> None:
    angles = " ".join(["0 -0.4 0.8 -0.4 0"] * 2)
    behind = f"""<keyframe><key name="home" qpos="0 0 0.7 1 0 0 0 {angles[:-2]}"/><key name="none" time="1"/>
    <key name="whole" qpos="0 0 0.7 1 0 0 0 {angles}"/></keyframe>"""
    with refusal(place="key 'home': qpos"):
        imported(tmp_path, small_mjcf(behind=behind))


def test_keyframes_are_postures(tmp_path: Path) -> None:
    angles = " ".join(["0 -0.4 0.8 -0.4 0"] * 2)
    behind = f'<keyframe><key name="home" qpos="0 0 0.7 1 0 0 0 {angles}"/></keyframe>'
    made = imported(tmp_path, small_mjcf(behind=behind))
    assert made.robot is not None
    assert made.robot.postures["home"]["left_knee"] == 0.8
    assert made.robot.posture[2] == pytest.approx(0.8, abs=0.05)


def test_a_base_of_slides_and_hinges_floats(tmp_path: Path) -> None:
    base = "".join(f'<joint name="base_{n}" type="slide" axis="{a}"/>' for n, a in (("x", "1 0 0"), ("z", "0 0 1")))
    made = imported(tmp_path, small_mjcf(base=base))
    assert made.robot is not None
    assert made.robot.free_flyer
    assert made.robot.nu == 10


def test_meshes_that_are_missing_are_told(tmp_path: Path) -> None:
    inertial = '<inertial pos="0 0 0" mass="0.8" diaginertia="1e-3 2e-3 2e-3"/>'
    text = small_mjcf(foot=f'<geom type="mesh" mesh="sole"/>{inertial}')
    text = text.replace("<worldbody>", '<asset><mesh name="sole" file="sole.stl"/></asset><worldbody>')
    made = imported(tmp_path, text)
    assert any("left_foot, right_foot lack them" in t for t in made.notes.said["doubts"])


def test_urdf_and_mjcf_of_one_robot_are_compared(tmp_path: Path) -> None:
    (tmp_path / "one.urdf").write_text(small_urdf())
    (tmp_path / "other.xml").write_text(small_mjcf())
    made = import_robot(tmp_path / "one.urdf", tmp_path / "made", tmp_path / "other.xml")
    said = "\n".join(made.notes.said["differs"])
    assert "limit lower: left_hip_roll -2 and -2.007" not in said
    assert "left_knee -0.1 and -0.08727" in said
    assert "masses of bodies" in said
    same = import_robot(tmp_path / "one.urdf", tmp_path / "same", tmp_path / "one.urdf")
    assert same.notes.said["differs"] == []


PLAIN = small_mjcf().replace('damping="0.4" armature="0.01" frictionloss="0.2"', "")
"""The small robot without armature, damping and friction of the joints."""


def test_what_a_file_leaves_out_has_the_defaults_of_mjcf(tmp_path: Path) -> None:
    """Reference: the compiled model, joint by joint."""
    made = imported(tmp_path, PLAIN)
    assert made.robot is not None
    robot, judge = made.robot, mujoco.MjModel.from_xml_string(PLAIN)
    dofs = [judge.joint(name).dofadr[0] for name in robot.joint_names]
    np.testing.assert_array_equal(robot.model.armature[robot.idx_v], judge.dof_armature[dofs])
    np.testing.assert_array_equal(robot.joint_damping[robot.idx_v], judge.dof_damping[dofs])
    assert (judge.dof_armature == 0.0).all()
    assert set(robot.hardware["realistic"]["coulomb_friction"].values()) == {0.0}
    guessed = "\n".join(made.notes.said["guessed"])
    assert "velocity_limit" in guessed, "which MJCF does not know"
    assert not any(key in guessed for key in ("armature", "joint_damping", "coulomb_friction"))


def test_a_guess_is_named_on_the_screen_with_its_size(tmp_path: Path) -> None:
    (tmp_path / "small.urdf").write_text(small_urdf())
    made = import_robot(tmp_path / "small.urdf", tmp_path / "made")
    assert made.robot is not None
    assert made.notes.said["guessed"]
    for said in made.notes.said["guessed"]:
        assert said in made.short
    (said,) = [text for text in made.notes.said["guessed"] if text.startswith("armature")]
    armature = made.robot.model.armature[made.robot.idx_v]
    assert f"{armature.max():.3g}" in said


def test_a_urdf_that_states_its_friction_keeps_it_and_zero_is_a_statement(tmp_path: Path) -> None:
    limit = '<limit lower="-2" upper="2" effort="60" velocity="8"/>'
    (tmp_path / "small.urdf").write_text(small_urdf(limit=f'{limit}<dynamics damping="0" friction="0.123456789"/>'))
    robot = import_robot(tmp_path / "small.urdf", tmp_path / "made").robot
    assert robot is not None
    roll, knee = (robot.joint_names.index(name) for name in ("left_hip_roll", "left_knee"))
    assert robot.joint_damping[robot.idx_v[roll]] == 0.0
    assert robot.hardware["realistic"]["coulomb_friction"]["(left|right)_hip_roll"] == 0.123456789
    assert robot.joint_damping[robot.idx_v[knee]] > 0.0, "of which the file says nothing"


def test_gears_reflect_by_their_square_and_limits_of_joints_and_actuators_count(tmp_path: Path) -> None:
    """Reference: the armature in MuJoCo's mass matrix, and the joint force for the largest command."""
    more = (
        '<position joint="left_knee" gear="3" kp="12" kv="0.5" forcerange="-7 7" armature="0.02" damping="0.03"/>'
        '<motor joint="left_hip_roll" gear="-4" ctrlrange="-5 5" armature="0.001"/>'
        '<motor joint="right_hip_roll" gear="2" ctrlrange="-5 5"/><motor joint="right_hip_roll" ctrlrange="-1 1"/>'
        '<general joint="left_hip_pitch" gear="3" gainprm="-2.5" ctrlrange="-4 4"/>'
    )
    text = small_mjcf().replace('<joint name="right_knee"', '<joint name="right_knee" actuatorfrcrange="-17 17"')
    for joint in ("left_knee", "left_hip_roll", "left_hip_pitch", "right_hip_roll"):
        text = text.replace(f'<motor joint="{joint}" gear="2" ctrlrange="-30 30"/>', "")
    text = text.replace("<actuator>", f"<actuator>{more}")
    made = imported(tmp_path, text)
    assert made.robot is not None
    robot, judge = made.robot, mujoco.MjModel.from_xml_string(text)
    state = mujoco.MjData(judge)
    mujoco.mj_forward(judge, state)
    full, bare = np.zeros((judge.nv, judge.nv)), np.zeros((judge.nv, judge.nv))
    _fill_mass_matrix(judge, state, full)
    judge.actuator_armature[:] = judge.dof_armature[:] = 0.0
    mujoco.mj_forward(judge, state)
    _fill_mass_matrix(judge, state, bare)
    dofs = [judge.joint(name).dofadr[0] for name in robot.joint_names]
    np.testing.assert_allclose(robot.model.armature[robot.idx_v], np.diag(full - bare)[dofs], atol=1e-12)
    state.ctrl[:] = 1e6
    mujoco.mj_forward(judge, state)
    np.testing.assert_allclose(robot.effort_limit, np.abs(state.qfrc_actuator[dofs]), rtol=1e-12)
    assert robot.drive_stiffness["left_knee"] == pytest.approx(9.0 * 12.0)
    assert robot.drive_damping["left_knee"] == pytest.approx(9.0 * 0.5)
    state.ctrl[:] = 0.0
    state.qvel[dofs] = 1.0
    mujoco.mj_forward(judge, state)
    np.testing.assert_allclose(robot.joint_damping[robot.idx_v], -state.qfrc_passive[dofs], rtol=1e-12)


@pytest.mark.parametrize("rest", [0.0, 12.0, -7.0])
def test_a_joint_on_a_spring_is_where_the_spring_rests(tmp_path: Path, rest: float) -> None:
    """As MuJoCo has the foot where no force acts on that joint, which has no drive; all others are at 0."""
    text = small_mjcf()
    for side in ("left", "right"):
        text = text.replace(f'<motor joint="{side}_ankle_roll" gear="2" ctrlrange="-30 30"/>', "")
        text = text.replace(
            f'<joint name="{side}_ankle_roll"', f'<joint name="{side}_ankle_roll" stiffness="40" springref="{rest}"'
        )
    made = imported(tmp_path, text)
    assert made.robot is not None
    assert made.robot.nu == 8
    model, judge = made.robot.model, mujoco.MjModel.from_xml_string(text)
    state, data = mujoco.MjData(judge), model.createData()
    for side in ("left", "right"):
        at = judge.joint(f"{side}_ankle_roll").qposadr[0]
        state.qpos[at] = judge.qpos_spring[at]
    mujoco.mj_kinematics(judge, state)
    pin.framesForwardKinematics(model, data, pin.neutral(model))
    for side in ("left", "right"):
        foot = data.oMf[model.getFrameId(f"{side}_foot", pin.FrameType.BODY)].rotation
        np.testing.assert_allclose(foot, state.body(f"{side}_foot").xmat.reshape(3, 3), atol=1e-6)


FLOOR = '<geom name="floor" type="plane" size="1 1 1" {}/>'


@pytest.mark.parametrize(
    ("floor", "foot", "behind"),
    [
        ("", "", ""),
        ('friction="0.3"', 'friction="0.6"', ""),
        ('friction="0.3" priority="1"', 'friction="0.6"', ""),
        ('friction="0.9"', 'friction="0.4" priority="2"', ""),
        ('friction="0.9" condim="1"', 'condim="1"', ""),
        ('contype="2" conaffinity="2"', 'contype="2" friction="1.5"', ""),
        ("", 'contype="0" conaffinity="0"', '<pair geom1="floor" geom2="{}" friction="0.6 0.6"/>'),
        ("", "", '<pair geom1="{}" geom2="floor" friction="0.2 0.2" condim="4"/>'),
    ],
    ids=[
        "default",
        "larger",
        "priority of the floor",
        "of the foot",
        "frictionless",
        "masks",
        "pair",
        "pair and masks",
    ],
)
def test_the_friction_of_soles_is_that_of_mujoco_s_contacts(tmp_path: Path, floor: str, foot: str, behind: str) -> None:
    """Reference: the contacts that MuJoCo finds when the robot is lowered into the floor."""
    shape = f'<geom name="NAME" type="box" size="0.1 0.05 0.01" pos="{FOOT}" {foot}/>'
    seen = '<geom type="box" size="0.2 0.2 0.01" contype="0" conaffinity="0" mass="0"/>'
    text = small_mjcf(FLOOR.format(floor), foot=shape + seen)
    for side in ("left", "right"):
        text = text.replace('"NAME"', f'"{side}_sole"', 1)
    pairs = "".join(behind.format(f"{side}_sole") for side in ("left", "right")) if behind else ""
    text = text.replace("</actuator>", f"</actuator><contact>{pairs}</contact>")
    robot = imported(tmp_path, text).robot
    assert robot is not None
    judge = mujoco.MjModel.from_xml_string(text)
    state = mujoco.MjData(judge)
    state.qpos[2] -= 0.001 + 0.0
    mujoco.mj_forward(judge, state)
    touching = {
        judge.geom(geom).name: 0.0 if contact.dim < 3 else contact.friction[0]
        for contact in state.contact
        for geom in (contact.geom1, contact.geom2)
    }
    for sole in robot.soles:
        assert sole.friction_static == sole.friction_dynamic == touching[f"{sole.name}_sole"]
        np.testing.assert_allclose(np.ptp(sole.vertices, axis=0), [0.2, 0.1], atol=1e-9)


@pytest.mark.parametrize(
    ("floor", "foot", "expected"),
    [
        (FLOOR.format('friction="0.6" contype="1" conaffinity="2"'), 'contype="2" friction="0.5"', 0.6),
        ("", 'friction="0.7" condim="1"', 0.7),
        ("", 'friction="0.7" condim="1" priority="1"', 0.0),
    ],
    ids=["a shape that cannot touch the floor", "no floor", "no floor, and the foot decides"],
)
def test_the_friction_of_soles_with_a_frictionless_shape(
    tmp_path: Path, floor: str, foot: str, expected: float
) -> None:
    """Feet of mujoco_playground: frictionless shapes, whose friction comes from the floor of another file."""
    shape = f'<geom type="box" size="0.1 0.05 0.01" pos="{FOOT}" {foot}/>'
    aside = f'<geom type="box" size="0.1 0.05 0.01" pos="{FOOT}" contype="4" conaffinity="4" condim="1"/>'
    robot = imported(tmp_path, small_mjcf(floor, foot=shape + (aside if floor else ""))).robot
    assert robot is not None
    assert [sole.friction_static for sole in robot.soles] == [expected, expected]


TURNS = {
    "quat": 'quat="0.5 0.5 0.5 0.5"',
    "euler": 'euler="90 0 90"',
    "axisangle": 'axisangle="1 0 0 90"',
    "upside down": 'euler="180 0 0"',
    "a little": 'euler="0 12 0"',
}


def turned(attribute: str, base: str = "<freejoint/>") -> str:
    """Return the small robot with the axes of its pelvis turned, and all within turned back: it stands as before."""
    whole = (
        mujoco.MjModel.from_xml_string(
            f'<mujoco><worldbody><body name="b" {attribute}><geom size="0.1"/></body></worldbody></mujoco>'
        )
        .body("b")
        .quat
    )
    back = " ".join(f"{v:.17g}" for v in whole * [1, -1, -1, -1])
    text = small_mjcf(base=base).replace('<body name="pelvis" pos="0 0 0.75">', f'<body name="pelvis" {attribute}>')
    head, inner = text.split("<worldbody>")
    first, rest = inner.split("<geom", 1)
    body, end = rest.rsplit("</body>", 1)
    return f'{head}<worldbody>{first}<frame quat="{back}"><geom{body}</frame></body>{end}'


@pytest.mark.parametrize(
    ("how", "attribute"),
    [
        *(("body", attribute) for attribute in TURNS.values()),
        *((how, TURNS["quat"]) for how in ("frame", "slides", "keyframe")),
        ("keyframe", TURNS["upside down"]),
        ("keyframe", TURNS["a little"]),
    ],
)
def test_a_robot_that_stands_in_its_file_stands_whatever_the_axes_of_its_root(
    tmp_path: Path, attribute: str, how: str
) -> None:
    """Reference: MuJoCo's positions of all bodies relative to the soles, at the joint positions of the import."""
    slides = "".join(f'<joint name="t{n}" type="slide" axis="{a}"/>' for n, a in (("x", "1 0 0"), ("y", "0 1 0")))
    text = turned(attribute, slides if how == "slides" else "<freejoint/>")
    if how == "frame":
        text = text.replace(f'<body name="pelvis" {attribute}>', f'<frame {attribute}><body name="pelvis">')
        text = text.replace("</body>\n    </worldbody>", "</body></frame></worldbody>")
        assert "</frame></worldbody>" in text
    if how == "keyframe":
        quat = mujoco.MjModel.from_xml_string(text).body("pelvis").quat
        text = text.replace(f'<body name="pelvis" {attribute}>', '<body name="pelvis">')
        angles = " ".join(["0 -0.4 0.8 -0.4 0"] * 2)
        key = f'<keyframe><key name="home" qpos="0 0 1 {" ".join(map(str, quat))} {angles}"/></keyframe>'
        text = text.replace("</mujoco>", f"{key}</mujoco>")
    robot = imported(tmp_path, text).robot
    assert robot is not None
    assert [sole.name for sole in robot.soles] == ["left", "right"]
    q, data = robot.q_nominal, robot.model.createData()
    tilt = np.arccos(min(1.0, pin.Quaternion(q[3:7]).toRotationMatrix()[2, 2]))
    # A tilted pelvis in a keyframe is a posture. Elsewhere, a tilt describes the axes of the pelvis.
    leaning = np.deg2rad(12.0) if (how, attribute) == ("keyframe", TURNS["a little"]) else 0.0
    assert tilt == pytest.approx(leaning, abs=0.05)
    soles = sole_placements(robot.model, data, robot.soles, q)
    pin.updateFramePlacements(robot.model, data)
    judge = mujoco.MjModel.from_xml_string(text)
    state = mujoco.MjData(judge)
    for name, angle in zip(robot.joint_names, robot.posture, strict=True):
        state.qpos[judge.joint(name).qposadr[0]] = angle
    mujoco.mj_kinematics(judge, state)
    root = pin.SE3(state.body("pelvis").xmat.reshape(3, 3), state.body("pelvis").xpos)
    ours = data.oMf[robot.model.getFrameId("pelvis")]
    for name in ("left_shank", "right_foot", "left_foot"):
        body = pin.SE3(state.body(name).xmat.reshape(3, 3), state.body(name).xpos)
        mine = data.oMf[robot.model.getFrameId(name)]
        np.testing.assert_allclose(ours.actInv(mine).homogeneous, root.actInv(body).homogeneous, atol=1e-9)
    assert soles[0].translation[1] > soles[1].translation[1]
    assert all(place.rotation[0, 0] > 0.99 for place in soles), "x of the soles is ahead"


def test_the_upright_base_of_a_tilted_root_looks_along_x_of_the_root(tmp_path: Path) -> None:
    """Reference: "up" in the axes of MuJoCo's root body, and the x axis of the root seen from above the base."""
    text = turned('euler="0 12 20"')
    robot = imported(tmp_path, text).robot
    assert robot is not None
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, pin.neutral(robot.model))
    root = data.oMf[robot.model.getFrameId("pelvis")].rotation
    judge = mujoco.MjModel.from_xml_string(text)
    state = mujoco.MjData(judge)
    mujoco.mj_kinematics(judge, state)
    np.testing.assert_allclose(root[2], state.body("pelvis").xmat.reshape(3, 3)[2], atol=1e-9)
    assert np.arctan2(root[1, 0], root[0, 0]) == pytest.approx(0.0, abs=1e-9)


def test_equalities_that_are_not_active_hold_nothing(tmp_path: Path) -> None:
    behind = """<equality><connect name="bar" body1="left_foot" body2="left_shank" anchor="0.05 0 0" active="false"/>
    <joint name="pair" joint1="right_ankle_roll" joint2="right_ankle_pitch" polycoef="0.1 1 0 0 0" active="false"/>
    </equality>"""
    made = imported(tmp_path, small_mjcf(behind=behind))
    assert made.robot is not None
    assert made.robot.loops == ()
    assert made.robot.nu == 10
    dropped = "\n".join(made.notes.said["dropped"])
    assert "'bar'" in dropped
    assert "'pair'" in dropped


def test_motors_of_ball_joints_are_told(tmp_path: Path) -> None:
    text = small_mjcf()
    for side in ("left", "right"):
        text = text.replace(f'<joint name="{side}_hip_roll" axis="1 0 0"/>', f'<joint name="{side}_ball" type="ball"/>')
        text = text.replace(f'<joint name="{side}_hip_pitch" axis="0 1 0"/>', "")
        text = text.replace(f'<motor joint="{side}_hip_roll"', f'<motor name="{side}_m" joint="{side}_ball"')
        text = text.replace(f'<motor joint="{side}_hip_pitch" gear="2" ctrlrange="-30 30"/>', "")
    text = text.replace('type="ball"/>', 'type="ball" range="0 100"/>')
    made = imported(tmp_path, text)
    assert "left_m, right_m" not in "\n".join(made.notes.said["found"])
    for side in ("left", "right"):
        assert any(f"{side}_ball" in said and f"{side}_m" in said for said in made.notes.said["dropped"])


def test_a_ball_foot_keeps_its_radius(tmp_path: Path) -> None:
    made = imported(tmp_path, small_mjcf(foot='<geom size="0.0234" pos="0.03 0 -0.04"/>'))
    assert made.robot is not None
    for sole in made.robot.soles:
        assert (sole.n_vertices, sole.radius) == (1, 0.0234)
        point = sole.placement_joint_sole.act(np.append(sole.vertices[0], 0.0))
        np.testing.assert_allclose(point, [0.03, 0.0, -0.04], atol=1e-5)


def test_without_a_floor_the_feet_keep_their_friction_and_that_is_told(tmp_path: Path) -> None:
    for floor, friction in (("", 0.7), (FLOOR.format('friction="0.1"'), 0.7), (FLOOR.format('friction="0.9"'), 0.9)):
        made = imported(tmp_path, small_mjcf(floor))
        assert made.robot is not None
        assert {sole.friction_static for sole in made.robot.soles} == {friction}
        assert any("no floor" in text for text in made.notes.said["guessed"]) == (not floor)


def test_gravity_is_that_of_the_file(tmp_path: Path) -> None:
    text = small_mjcf().replace("<worldbody>", '<option gravity="0 0 -1.62"/><worldbody>')
    made = imported(tmp_path, text)
    assert made.robot is not None
    np.testing.assert_array_equal(made.robot.model.gravity.linear, [0.0, 0.0, -1.62])


def test_a_keyframe_that_does_not_stand_is_told_with_what_moves(tmp_path: Path) -> None:
    for hip, moved in ((-0.4, False), (-0.8, True)):
        angles = " ".join([f"0 {hip} 0.8 -0.4 0"] * 2)
        behind = f'<keyframe><key name="home" qpos="0 0 0.7 1 0 0 0 {angles}"/></keyframe>'
        made = imported(tmp_path, small_mjcf(behind=behind))
        assert made.robot is not None
        apart = max(
            abs(made.robot.posture[made.robot.joint_names.index(n)] - v)
            for n, v in (("left_hip_pitch", hip), ("left_knee", 0.8), ("left_ankle_pitch", -0.4))
        )
        said = [text for text in made.notes.said["guessed"] if "keyframe 'home'" in text]
        assert bool(said) == (apart > 0.01)
        assert bool(said) or not moved


def test_a_pair_with_a_floor_of_another_file_is_told(tmp_path: Path) -> None:
    behind = '<contact><pair geom1="floor" geom2="nowhere"/></contact>'
    made = imported(tmp_path, small_mjcf(behind=behind))
    assert made.robot is not None
    assert any("floor, nowhere" in text for text in made.notes.said["doubts"])
