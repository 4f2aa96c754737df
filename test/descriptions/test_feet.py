"""Feet of MJCF and URDF files in the ways in which makers write them: the sole, its friction, and their origin."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from description_support import BOX, FOOT, small_mjcf, small_urdf
from numpy.testing import assert_allclose

from bipedsim.descriptions import Imported, import_robot
from bipedsim.descriptions.notes import MENDED

mujoco = pytest.importorskip("mujoco")

FLOOR = '<geom name="floor" type="plane" size="1 1 1" friction="0.6"/>'
CORNERS = [(x, y) for x in (-0.07, 0.13) for y in (-0.05, 0.05)]
SEEN = '<geom type="box" size="0.2 0.2 0.02" pos="0 0 -0.06" contype="0" conaffinity="0" mass="0"/>'
UNDERSIDE = '<geom {} type="box" size="0.1 0.05 0.01" pos="0.03 0 -0.04" mass="0.8"/>'


def imported(tmp_path: Path, text: str, name: str) -> Imported:
    (tmp_path / name).write_text(text)
    return import_robot(tmp_path / name, tmp_path / "made", replace=True)


def halves(kind: str) -> str:
    """Return two shapes that together have the outline of the foot."""
    return "".join(
        f'<geom {kind} type="box" size="0.05 0.05 0.01" pos="{x} 0 -0.04" mass="0.4"/>' for x in (-0.02, 0.08)
    )


FEET = {
    "one box": UNDERSIDE.format(""),
    "heel and toe": halves(""),
    "four balls": "".join(f'<geom size="0.005" pos="{x} {y} -0.045" mass="0.2"/>' for x, y in CORNERS),
    "a class": UNDERSIDE.format('class="collision"') + SEEN,
    "a visual below": UNDERSIDE.format("") + SEEN,
    "another group": UNDERSIDE.format('group="3" contype="1" conaffinity="0"') + SEEN,
    "affinity only": UNDERSIDE.format('contype="0" conaffinity="1"') + SEEN,
    "a welded body": f'<geom size="0.01" mass="0.1"/><body name="SIDE_sole">{halves("")}</body>',
    "a mesh of two parts": '<geom type="mesh" mesh="parts" mass="0.8"/>',
    "two capsules": "".join(
        f'<geom type="capsule" size="0.01" fromto="-0.06 {y} -0.04 0.12 {y} -0.04" mass="0.4"/>' for y in (-0.04, 0.04)
    ),
}


@pytest.mark.parametrize("foot", FEET)
def test_the_sole_is_that_of_all_shapes_that_touch_the_floor(tmp_path: Path, foot: str) -> None:
    parts = ""
    for count, x in enumerate((-0.02, 0.08)):
        points = [(x + dx, y, z) for dx in (-0.05, 0.05) for y in (-0.05, 0.05) for z in (-0.05, -0.03)]
        parts += f"o part{count}\n" + "".join("v {} {} {}\n".format(*point) for point in points)
        faces = ((1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7), (1, 3, 7, 5), (2, 6, 8, 4))
        parts += "".join("f {} {} {} {}\n".format(*(8 * count + corner for corner in face)) for face in faces)
    (tmp_path / "parts.obj").write_text(parts)
    text = small_mjcf(FLOOR, FEET[foot])
    for side in ("left", "right"):
        text = text.replace("SIDE", side, 1)
    text = text.replace("<worldbody>", '<asset><mesh name="parts" file="parts.obj"/></asset><worldbody>')
    text = text.replace(
        "</default></default>", '</default><default class="collision"><geom group="3"/></default></default>'
    )
    made = imported(tmp_path, text, "robot.xml")
    assert made.robot is not None
    assert not made.notes.said["doubts"]
    for sole in made.robot.soles:
        # Lying capsules touch the floor along lines at the distance of their axes.
        size = [0.2, 0.1] if foot not in ("two capsules", "four balls") else np.ptp(sole.vertices, axis=0)
        np.testing.assert_allclose(np.ptp(sole.vertices, axis=0), size, atol=1e-4)
        assert np.ptp(sole.vertices, axis=0).min() > 0.07
        assert sole.placement_joint_sole.translation[2] == pytest.approx(-0.05, abs=1e-6)
        assert sole.friction_static == 1.0


def test_each_value_has_its_origin(tmp_path: Path) -> None:
    """Reference: the file, and the robot that was loaded."""
    mjcf = imported(tmp_path, small_mjcf(FLOOR), "robot.xml")
    urdf = imported(tmp_path, small_urdf(f'<visual><origin xyz="{FOOT}"/>{BOX}</visual>'), "robot.urdf")
    for made, taken in (
        (
            mjcf,
            {"effort_limit", "armature", "joint_damping", "coulomb_friction", "sole length", "sole width", "friction"},
        ),
        (urdf, {"effort_limit", "velocity_limit"}),
    ):
        assert made.robot is not None
        for origin in made.origins:
            assert bool(origin.taken) == (origin.name in taken)
            assert bool(origin.inferred) == (origin.name not in taken)
            named = [sole.name for sole in made.robot.soles] if origin.name[0] in "sf" else made.robot.joint_names
            assert set(origin.taken) | set(origin.inferred) == set(named)
            assert origin.name in made.short
            assert origin.name in made.report
    armature = next(origin for origin in mjcf.origins if origin.name == "armature")
    assert set(armature.taken.values()) == {0.01}
    effort = next(origin for origin in urdf.origins if origin.name == "effort_limit")
    assert effort.taken["left_knee"] == 60.0


def test_a_limit_that_is_no_drive_s_is_inferred(tmp_path: Path) -> None:
    knee = '<limit lower="-0.1" upper="2" effort="90000" velocity="0"/>'
    made = imported(tmp_path, small_urdf(knee=knee), "robot.urdf")
    by_name = {origin.name: origin for origin in made.origins}
    for name in ("effort_limit", "velocity_limit"):
        assert set(by_name[name].inferred) == {"left_knee", "right_knee"}
        assert len(by_name[name].taken) == 8


def test_shapes_one_joint_above_the_foot_of_the_other_leg_move_to_the_foot(tmp_path: Path) -> None:
    """The file of Fourier GR3 attaches the shapes of one foot to its ankle pitch."""
    text = small_urdf()
    shape = f'<collision><origin xyz="{FOOT}"/>{BOX}</collision>'
    head, _, tail = text.partition('<link name="right_foot">')
    inner, _, rest = tail.partition("</link>")
    assert shape in inner
    text = f'{head}<link name="right_foot">{inner.replace(shape, "")}</link>{rest}'
    text = text.replace('<link name="right_ankle">', f'<link name="right_ankle">{shape}')
    (tmp_path / "whole.urdf").write_text(small_urdf())
    (tmp_path / "odd.urdf").write_text(text)
    whole = import_robot(tmp_path / "whole.urdf", tmp_path / "whole").robot
    made = import_robot(tmp_path / "odd.urdf", tmp_path / "odd")
    assert made.robot is not None
    assert whole is not None
    assert made.notes.said[MENDED]
    for sole, other in zip(whole.soles, made.robot.soles, strict=True):
        assert other.frame == sole.frame
        assert_allclose(other.vertices_joint, sole.vertices_joint, atol=1e-9)
    assert made.robot.joint_names == whole.joint_names
