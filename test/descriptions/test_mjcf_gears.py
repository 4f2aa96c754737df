"""Gears between rotors and the joints that they drive."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from description_support import small_mjcf

from bipedsim.descriptions import import_robot
from bipedsim.descriptions.mjcf_gears import find_gears

mujoco = pytest.importorskip("mujoco")

INERTIA = 1e-4
"""Inertia of a rotor about its axis [kg.m^2]."""


def rotor(name: str, where: str) -> str:
    return (
        f'<body name="{name}_body" pos="{where}"><joint name="{name}" axis="0 0 1" armature="0.003" range="-300 300" '
        f'damping="0.1" frictionloss="0.02"/>'
        f'<inertial pos="0 0 0" mass="0.02" diaginertia="1e-4 1e-4 {INERTIA}"/></body>'
    )


def geared(behind: str, motors: str) -> str:
    """Return the small robot with a head on two joints without actuators, and two rotors in the pelvis."""
    head = (
        '<body name="neck" pos="0 0 0.25"><joint name="yaw" axis="0 0 1"/><joint name="pitch" axis="0 1 0"/>'
        '<inertial pos="0 0 0.1" mass="1" diaginertia="0.01 0.01 0.01"/></body>'
    )
    text = small_mjcf(behind=behind).replace(
        '<site name="imu"', f'{head}{rotor("first", "0 0.05 0.1")}{rotor("second", "0 -0.05 0.1")}<site name="imu"'
    )
    return text.replace("</actuator>", f"{motors}</actuator>")


MOTORS = (
    '<motor name="m1" joint="first" ctrlrange="-2 2" ctrllimited="true"/>'
    '<motor name="m2" joint="second" ctrlrange="-2 2" ctrllimited="true"/>'
)
COUPLINGS = """<equality><joint joint1="yaw" joint2="first" polycoef="0 -0.5 0 0 0"/>
<joint joint1="pitch" joint2="second" polycoef="0 0.25 0 0 0"/></equality>"""
DIFFERENTIAL = """<tendon><fixed name="a" limited="true" range="-0.01 0.01"><joint joint="first" coef="0.3"/>
<joint joint="second" coef="-0.3"/><joint joint="yaw" coef="1"/></fixed>
<fixed name="b" limited="true" range="-0.01 0.01"><joint joint="first" coef="-0.2"/>
<joint joint="second" coef="-0.2"/><joint joint="pitch" coef="1"/></fixed></tendon>"""


@pytest.mark.parametrize("behind", [COUPLINGS, DIFFERENTIAL], ids=["couplings", "differential"])
def test_rotors_turn_as_the_constraints_of_the_file_require(behind: str) -> None:
    m = mujoco.MjModel.from_xml_string(geared(behind, MOTORS))
    names = {m.joint(j).name: j for j in range(m.njnt)}
    gears = find_gears(mujoco, m, {names["first"], names["second"]})
    assert set(gears.driven) == {names["yaw"], names["pitch"]}
    assert gears.rotors == sorted((names["first"], names["second"]))
    data = mujoco.MjData(m)
    rates = dict.fromkeys(names.values(), 0.0)
    for joint, rate in ((names["yaw"], 0.01), (names["pitch"], -0.02)):
        rates[joint] += rate
        for turning, turns in gears.driven[joint].items():
            rates[turning] += turns * rate
    for joint, rate in rates.items():
        if m.jnt_type[joint] == mujoco.mjtJoint.mjJNT_HINGE:
            data.qpos[m.jnt_qposadr[joint]] = rate
    mujoco.mj_forward(m, data)
    equalities = data.efc_pos[data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY]
    assert np.abs(equalities).max(initial=0.0) < 1e-12
    assert np.abs(data.ten_length).max(initial=0.0) < 1e-12


def test_a_driven_joint_has_the_torque_and_inertia_of_its_rotor_through_the_ratio(tmp_path: Path) -> None:
    (tmp_path / "robot.xml").write_text(geared(COUPLINGS, MOTORS))
    made = import_robot(tmp_path / "robot.xml", tmp_path / "made")
    assert made.robot is not None
    assert {"yaw", "pitch"} <= set(made.robot.joint_names)
    assert not {"first", "second"} & set(made.robot.joint_names)
    config = yaml.safe_load((made.folder / "robot.yaml").read_text())
    assert config["locked"] == {"first": 0.0, "second": 0.0}
    assert not config.get("passive")
    limits = dict(zip(made.robot.joint_names, made.robot.effort_limit, strict=True))
    assert limits["yaw"] == pytest.approx(2.0 * 2.0)
    assert limits["pitch"] == pytest.approx(4.0 * 2.0)
    # The joint's own armature of 0.01 kg.m^2 is a default of the file.
    assert config["armature"]["pitch"] == pytest.approx(0.01 + 4.0**2 * (0.003 + INERTIA))


@pytest.mark.parametrize(
    "behind",
    [
        COUPLINGS.replace("0 0.25 0 0 0", "0 0.25 0.1 0 0"),
        DIFFERENTIAL.replace("-0.01 0.01", "-1 1"),
        DIFFERENTIAL.replace('first" coef="-0.2"', 'first" coef="0.2"'),
        DIFFERENTIAL.replace('second" coef="-0.2"', 'second" coef="-0.1"'),
    ],
    ids=["nonlinear", "loose", "one relation twice", "loose at one joint"],
)
def test_other_couplings_are_no_gears(behind: str) -> None:
    m = mujoco.MjModel.from_xml_string(geared(behind, MOTORS))
    names = {m.joint(j).name: j for j in range(m.njnt)}
    gears = find_gears(mujoco, m, {names["first"], names["second"]})
    assert names["pitch"] not in gears.driven


def test_a_rotor_that_carries_a_body_is_no_rotor() -> None:
    m = mujoco.MjModel.from_xml_string(geared(COUPLINGS, MOTORS))
    names = {m.joint(j).name: j for j in range(m.njnt)}
    m.body_parentid[m.jnt_bodyid[names["yaw"]]] = m.jnt_bodyid[names["first"]]
    assert names["yaw"] not in find_gears(mujoco, m, {names["first"], names["second"]}).driven


FINGER = {
    "slides": ('name="first" axis="0 0 1"', 'name="first" type="slide" axis="0 0 1"'),
    "CoM beside the axis": ('<inertial pos="0 0 0" mass="0.02"', '<inertial pos="0.01 0 0" mass="0.02"'),
    "collides": ("</body>", '<geom size="0.01"/></body>'),
}


@pytest.mark.parametrize("change", FINGER.values(), ids=FINGER)
def test_a_finger_is_no_rotor(change: tuple[str, str]) -> None:
    first = rotor("first", "0 0.05 0.1")
    assert change[0] in first
    text = geared(COUPLINGS, MOTORS).replace(first, first.replace(*change))
    m = mujoco.MjModel.from_xml_string(text)
    names = {m.joint(j).name: j for j in range(m.njnt)}
    gears = find_gears(mujoco, m, {names["first"], names["second"]})
    assert gears.rotors == [names["second"]]


def test_armature_of_actuators_counts_once_and_rotors_have_limits_of_force(tmp_path: Path) -> None:
    motors = MOTORS.replace('name="m2"', 'name="m2" armature="0.002"')
    text = geared(COUPLINGS.replace("0 0.25 0", "0 0.1 0"), motors).replace(
        'name="second" axis="0 0 1"', 'name="second" axis="0 0 1" actuatorfrcrange="-0.5 0.5" stiffness="0.1"'
    )
    try:
        m = mujoco.MjModel.from_xml_string(text)
    except ValueError:
        pytest.skip("this MuJoCo has no armature of actuators")
    (tmp_path / "robot.xml").write_text(text)
    made = import_robot(tmp_path / "robot.xml", tmp_path / "made")
    assert made.robot is not None
    turning = float(m.dof_M0[m.joint("second").dofadr[0]])
    assert turning == pytest.approx(0.003 + 0.002 + INERTIA)
    config = yaml.safe_load((made.folder / "robot.yaml").read_text())
    assert config["armature"]["pitch"] == pytest.approx(0.01 + 10.0**2 * turning)
    limits = dict(zip(made.robot.joint_names, made.robot.effort_limit, strict=True))
    assert limits["pitch"] == pytest.approx(10.0 * 0.5)
    dropped = (made.folder / "report.md").read_text()
    assert dropped.count("'second'") >= 2
