"""Planar closed chains with the digits of a CAD export: they close and move like the exact chain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from description_support import small_mjcf

from bipedsim.descriptions import Imported, import_robot
from bipedsim.errors import ConfigError
from bipedsim.model import LoopEquations, load_robot

pytest.importorskip("mujoco")

SIDES = ("left", "right")


def four_bar(axis: float, anchor: float, points: int, sites: bool, seed: int = 0) -> str:
    """Return the small robot with knees that a crank on the thigh moves through a rod.

    Args:
        axis: Scale of the deviations of the hinges from parallel axes.
        anchor: Scale of the distances between the two ends of a constraint [m].
        points: Number of points of the pin that connects rod and shank.
        sites: Whether both ends are stated, as sites; otherwise MuJoCo computes the second one.
        seed: Of the deviations.
    """
    rng, text, pins = np.random.default_rng(seed), small_mjcf(), []
    link = '<geom type="capsule" fromto="0 0 0 {}" size=".01" mass=".1" contype="0" conaffinity="0"/>'
    for side in SIDES:
        (a, b), (c, d) = rng.normal(size=(2, 2)) * axis
        bars = (
            f'<body name="{side}_crank" pos="0 0 -.05"><joint name="{side}_crank" axis="{a} 1 {b}"/>'
            f'{link.format(".05 0 0")}<body name="{side}_rod" pos=".05 0 0"><joint name="{side}_rod" '
            f'axis="{c} 1 {d}"/>{link.format("0 0 -.3")}'
        )
        other = ""
        for i in range(points):
            x, y, z = rng.normal(size=3) * anchor + [0.05, 0.02 * i, 0.0]
            bars += f'<site name="{side}_rod{i}" pos="0 {0.02 * i} -.3"/>'
            other += f'<site name="{side}_shank{i}" pos="{x} {y} {z}"/>'
            ends = f'body1="{side}_rod" body2="{side}_shank" anchor="{x - 0.05} {y} {z - 0.3}"'
            if sites:
                ends = f'site1="{side}_rod{i}" site2="{side}_shank{i}"'
            pins.append(f'<connect name="{side}_pin{i}" {ends}/>')
        text = text.replace(f'<body name="{side}_shank"', f'{bars}</body></body><body name="{side}_shank"')
        text = text.replace(f'<joint name="{side}_knee"', f'{other}<joint name="{side}_knee"')
        text = text.replace(f'<motor joint="{side}_knee"', f'<motor joint="{side}_crank"')
    return text.replace("</actuator>", f"</actuator><equality>{''.join(pins)}</equality>")


def imported(tmp_path: Path, text: str) -> Imported:
    (tmp_path / "robot.xml").write_text(text)
    return import_robot(tmp_path / "robot.xml", tmp_path / "made", replace=True)


@pytest.mark.long
@pytest.mark.parametrize("points", [1, 2])
@pytest.mark.parametrize("sites", [False, True])
@pytest.mark.parametrize(
    ("axis", "anchor"), [(0.0, 0.0), (1e-9, 1e-9), (1e-6, 0.0), (1e-4, 0.0), (0.0, 1e-6), (0.0, 1e-4), (1e-6, 1e-4)]
)
def test_a_four_bar_with_digits_of_cad_moves(
    tmp_path: Path, axis: float, anchor: float, sites: bool, points: int
) -> None:
    """Reference: the knee angle of the exact four-bar, for several angles of the crank."""
    exact = imported(tmp_path, four_bar(0.0, 0.0, 1, False)).robot
    made = imported(tmp_path, four_bar(axis, anchor, points, sites))
    robot = made.robot
    assert robot is not None
    assert exact is not None
    told = [text for text in made.notes.said["doubts"] if "loops" in text]
    if axis == anchor == 0.0:
        assert not told
    elif axis > 1e-9 or (anchor > 1e-9 and sites):
        assert told
    assert not [text for text in made.notes.said["doubts"] if text not in told]
    crank = robot.joint_names.index("left_crank")
    for change in np.linspace(-0.3, 0.3, 5):
        knees = []
        for each in (exact, robot):
            angles = exact.posture.copy()
            angles[crank] += change
            q = each.settle(angles)
            assert LoopEquations(each.model, each.loops).gaps(q).max() < 1e-12
            knees.append(q[each.model.joints[each.model.getJointId("left_knee")].idx_q])
        assert knees[0] == pytest.approx(knees[1], abs=60.0 * (axis + anchor) + 1e-9)
    assert abs(knees[0]) > 0.1


@pytest.mark.parametrize("size", [0.002, 0.01])
def test_ends_that_do_not_meet_are_refused_with_their_distance(tmp_path: Path, size: float) -> None:
    text = four_bar(0.0, 0.0, 1, True).replace(
        'name="left_shank0" pos="0.05 0.0', f'name="left_shank0" pos="0.05 {size}'
    )
    made = imported(tmp_path, text)
    assert made.robot is None
    with pytest.raises(ConfigError) as caught:
        load_robot(made.folder / "robot.yaml")
    assert caught.value.place.endswith("loops.left_pin0")
    assert caught.value.value == pytest.approx(size)


def test_a_spatial_chain_stays_as_it_is(tmp_path: Path) -> None:
    made = imported(tmp_path, four_bar(0.02, 0.0, 1, True))
    text = (made.folder / "robot.yaml").read_text()
    assert "left_pin0" in text
    robot = made.robot
    if robot is not None:
        raw = pin.buildModelFromUrdf(str(next(made.folder.glob("*.urdf"))), pin.JointModelFreeFlyer())
        for joint in ("left_crank", "left_rod"):
            ours = robot.model.jointPlacements[robot.model.getJointId(joint)]
            np.testing.assert_allclose(ours, raw.jointPlacements[raw.getJointId(joint)], atol=1e-15)


def test_the_frames_of_loops_keep_all_digits(tmp_path: Path) -> None:
    """Reference: the anchor of the file."""
    text = four_bar(0.0, 0.0, 1, True).replace(
        'name="left_rod0" pos="0 0.0 -.3"', 'name="left_rod0" pos="0 0 -.30123456789012345"'
    )
    robot = imported(tmp_path, text).robot
    assert robot is not None
    loop = next(loop for loop in robot.loops if loop.name == "left_pin0")
    assert loop.placements[0].translation[2] == pytest.approx(-0.30123456789012345, abs=1e-16)


def test_a_knee_with_two_parallel_rods_stands(tmp_path: Path) -> None:
    """The second rod of a parallelogram adds no constraint, except for the digits of the export."""
    text = four_bar(0.0, 0.0, 1, True)
    for side in SIDES:
        link = '<geom type="capsule" fromto="0 0 0 0 0 -.3" size=".01" mass=".1" contype="0" conaffinity="0"/>'
        rod = (
            f'<body name="{side}_back" pos="-.05 0 0"><joint name="{side}_back" axis="0 1 0"/>{link}'
            f'<site name="{side}_back0" pos="0 0 -.30000000001"/></body>'
        )
        text = text.replace(f'<body name="{side}_rod"', f'{rod}<body name="{side}_rod"')
        shank = f'<site name="{side}_shank_back" pos="-.05 0 0"/>'
        text = text.replace(f'<joint name="{side}_knee"', f'{shank}<joint name="{side}_knee"')
        pin_back = f'<connect name="{side}_pin_back" site1="{side}_back0" site2="{side}_shank_back"/>'
        text = text.replace("</equality>", f"{pin_back}</equality>")
    robot = imported(tmp_path, text).robot
    assert robot is not None
    assert LoopEquations(robot.model, robot.loops).gaps(robot.q_nominal).max() < 1e-8
    free = robot.model.nv - np.linalg.matrix_rank(LoopEquations(robot.model, robot.loops).at(robot.q_nominal)[1], 1e-6)
    assert free == 6 + robot.nu
