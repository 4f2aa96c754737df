"""MJCF as a URDF: judged by MuJoCo's own mass matrix and centre of mass, at random angles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from description_support import small_mjcf, small_urdf

from bipedsim.descriptions import Imported, import_robot

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
        assert sole.friction_static == 0.7
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
    assert any("1 meshes are not there; without them are left_foot, right_foot" in t for t in made.notes.said["doubts"])


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
