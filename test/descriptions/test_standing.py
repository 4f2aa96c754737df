"""Standing postures that an import finds: upright, on flat soles side by side, with knees that can carry the robot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from description_support import small_mjcf, small_urdf

from bipedsim.config import RunConfig
from bipedsim.descriptions import Imported, import_robot
from bipedsim.model import Robot, sole_placements
from bipedsim.runs import run


def imported(tmp_path: Path, text: str, name: str = "robot.urdf") -> Imported:
    (tmp_path / name).write_text(text)
    return import_robot(tmp_path / name, tmp_path / "made", replace=True)


def with_yaw(first: str, second: str, third: str, width: float = 0.2) -> str:
    """Return the small robot with a third hip joint.

    Args:
        first, second, third: Axes of the left hip, from the pelvis down; SIDE is 1, and -1 on the right.
        width: Distance between the hips [m].
    """
    inertial = (
        '<inertial><mass value="0.3"/><inertia ixx="1e-3" iyy="1e-3" izz="1e-3" ixy="0" ixz="0" iyz="0"/></inertial>'
    )
    limit = '<limit lower="-1.5" upper="1.5" effort="60" velocity="8"/>'
    text, more = small_urdf(), ""
    for side, sign in (("left", 1), ("right", -1)):
        axes = [axis.replace("SIDE", f"{sign}") for axis in (first, second, third)]
        more += (
            f'<link name="{side}_top">{inertial}</link><joint name="{side}_hip_top" type="revolute"><parent '
            f'link="pelvis"/><child link="{side}_top"/><origin xyz="0 {0.5 * sign * width} 0"/><axis xyz="{axes[0]}"/>'
            f"{limit}</joint>"
        )
        head, joint, rest = text.partition(f'<joint name="{side}_hip_roll"')
        rest = rest.replace('<parent link="pelvis"/>', f'<parent link="{side}_top"/>', 1)
        rest = rest.replace(f'<origin xyz="0 {0.1 * sign} 0"/>', '<origin xyz="0 0 0"/>', 1)
        rest = rest.replace('<axis xyz="1 0 0"/>', f'<axis xyz="{axes[1]}"/>', 1)
        text = head + joint + rest.replace('<axis xyz="0 1 0"/>', f'<axis xyz="{axes[2]}"/>', 1)
    return text.replace("</robot>", f"{more}</robot>")


def check_regular(robot: Robot, width: float) -> None:
    """Check that the trunk is upright and the soles are flat, straight ahead and ``width`` [m] apart."""
    soles = sole_placements(robot.model, robot.model.createData(), robot.soles, robot.q_nominal)
    assert pin.Quaternion(robot.q_nominal[3:7]).toRotationMatrix()[2, 2] > np.cos(0.01)
    for placement in soles:
        np.testing.assert_allclose(placement.rotation[:, 2], [0.0, 0.0, 1.0], atol=1e-6)
        assert abs(placement.rotation[1, 0]) < 0.05
    left, right = (m.act(np.append(s.centre, 0.0)) for m, s in zip(soles, robot.soles, strict=True))
    np.testing.assert_allclose(left - right, [0.0, width, 0.0], atol=0.01)
    for side in ("left", "right"):
        assert robot.posture[robot.joint_names.index(f"{side}_knee")] > 0.1


HIPS = {
    "yaw roll pitch": ("0 0 1", "1 0 0", "0 1 0"),
    "pitch roll yaw": ("0 1 0", "1 0 0", "0 0 1"),
    "inclined pitch first": ("0 0.7071 -0.7071", "1 0 0", "0 0 1"),
    "inclined outwards": ("0 SIDE SIDE", "1 0 0", "0 0 1"),
    "yaw, then two inclined": ("0 0 1", "0 SIDE SIDE", "0 SIDE -SIDE"),
    "inclined yaw first": ("0 SIDE -SIDE", "1 0 0", "0 0 1"),
    "inclined in the sagittal plane": ("1 0 1", "1 0 -1", "0 1 0"),
    "negative axes": ("0 -0.5 0.866", "-1 0 0", "0 0 -1"),
}


@pytest.mark.parametrize("hip", HIPS)
def test_the_trunk_is_upright_whatever_the_axes_of_the_hips(tmp_path: Path, hip: str) -> None:
    made = imported(tmp_path, with_yaw(*HIPS[hip]).replace("--1", "1"))
    assert made.robot is not None
    check_regular(made.robot, 0.2)
    assert not made.notes.said["doubts"]


def test_a_robot_with_inclined_hips_stands(tmp_path: Path) -> None:
    made = imported(tmp_path, with_yaw(*HIPS["inclined pitch first"]))
    _, summary = run(RunConfig(robot=str(made.folder / "robot.yaml"), duration=2.0))
    assert summary["fell_at_s"] is None


def test_soles_that_would_overlap_are_apart(tmp_path: Path) -> None:
    """The soles are 0.1 m wide, and the hips 0.06 m apart."""
    made = imported(tmp_path, with_yaw(*HIPS["yaw roll pitch"], width=0.06))
    assert made.robot is not None
    check_regular(made.robot, 0.11)


def one_foot(robot: Robot, joint: str) -> float:
    """Return the torque of a joint of the left leg if the weight acts at the middle of the left sole [N.m]."""
    model, data, sole = robot.model, robot.model.createData(), robot.soles[0]
    pin.computeJointJacobians(model, data, robot.q_nominal)
    place = data.oMi[sole.joint_id]
    middle = place.act(sole.placement_joint_sole.act(np.append(sole.centre, 0.0))) - place.translation
    jacobian = pin.getJointJacobian(model, data, sole.joint_id, pin.LOCAL_WORLD_ALIGNED)
    at_middle = jacobian[:3] - pin.skew(middle) @ jacobian[3:]
    return float(abs(at_middle[2, model.joints[model.getJointId(joint)].idx_v]) * robot.weight)


@pytest.mark.parametrize("effort", [8.0, 13.0, 22.0, 60.0])
def test_weak_knees_bend_less(tmp_path: Path, effort: float) -> None:
    knee = f'<limit lower="-0.1" upper="2" effort="{effort}" velocity="8"/>'
    made = imported(tmp_path, small_urdf(knee=knee))
    strong = imported(tmp_path, small_urdf()).robot
    assert made.robot is not None
    assert strong is not None
    angles = [r.posture[r.joint_names.index("left_knee")] for r in (made.robot, strong)]
    assert (one_foot(strong, "left_knee") > 0.7 * effort) == (angles[0] < angles[1] - 0.01)
    weak = one_foot(made.robot, "left_knee") > 0.7 * effort
    assert any("one foot" in text for text in made.notes.said["doubts"]) == weak
    if not weak:
        assert angles[0] > 0.1


KEYS = {
    "home": (-0.4, True),
    "home_default": (-0.4, True),
    "my_stand_1": (-0.4, True),
    "home_tilted": (-0.9, True),
    "crouch": (-0.4, True),
    "homeless": (-0.9, False),
    "sit": (-1.2, False),
    "zero": (0.0, False),
}


@pytest.mark.parametrize("name", KEYS)
def test_a_keyframe_that_stands_is_used_and_named(tmp_path: Path, name: str) -> None:
    pytest.importorskip("mujoco")
    hip, used = KEYS[name]
    knee = 0.8 if hip else 0.0
    angles = " ".join([f"0 {hip} {knee} {-0.5 * knee} 0"] * 2)
    behind = f'<keyframe><key name="{name}" qpos="0 0 0.7 1 0 0 0 {angles}"/></keyframe>'
    made = imported(tmp_path, small_mjcf(behind=behind), "robot.xml")
    assert made.robot is not None
    named = [text for text in made.notes.said["found"] if text.startswith("posture: ") and repr(name) in text]
    assert bool(named) == used
    posture = made.robot.posture[made.robot.joint_names.index("left_knee")]
    assert (abs(posture - knee) < 0.05) == used
