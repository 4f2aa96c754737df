"""Grounds: closed forms of slopes and stairs, ground files, and errors."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, strategies as st
from paths import BODIES, ROOT
from refusals import refusal

from bipedsim.cli.main import main
from bipedsim.config.run import RunConfig
from bipedsim.errors import UnknownNameError
from bipedsim.ground.ground import Ground
from bipedsim.ground.patch import Patch
from bipedsim.ground.read import GROUNDS, get_ground
from bipedsim.model import load_robot
from bipedsim.runs.runner import run

SQUARE = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
angles = st.floats(-1.4, 1.4)
headings = st.floats(-7.0, 7.0)


def write(folder: Path, text: str) -> Path:
    path = folder / "ground.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("spec", ["{flat: {friction_static: 0.2}}", {"flat": {"friction_static": 0.2}}])
def test_a_ground_can_be_a_mapping_or_its_text(spec: Any) -> None:
    """Also in a run and a scenario, and a recording has it."""
    (patch,) = get_ground(spec).patches
    assert patch.friction_static == 0.2
    recording, _ = run(RunConfig(ground=spec, duration=0.002))
    assert recording.run["ground"]["mu_static"] == [0.2]
    assert get_ground(recording.about["ground"]).patches[0].friction_static == 0.2
    (slope,) = get_ground("{slope: {angle_deg: 5}, force_plates: []}").patches
    assert slope.normal_world[2] == pytest.approx(math.cos(math.radians(5.0)))


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ("{flat: {friction: 0.2}}", {"name": "friction", "place": "ground: flat"}),
        ("{flat: {friction_static: -1}}", {"place": "friction_static"}),
        ("{flat: {friction_static: 0.2}", {"place": "ground"}),
        ("{}", {"place": "ground"}),
        ("{flat: 5}", {"place": "ground: flat"}),
    ],
)
def test_a_wrong_mapping_is_refused(spec: str, fields: dict[str, Any]) -> None:
    with refusal(**fields):
        get_ground(spec)


def test_flat() -> None:
    ground = Ground.flat(0.25)
    assert ground.height(3.0, -2.0) == 0.25
    assert ground.height(np.zeros((2, 3)), 1.0).shape == (2, 3)
    assert np.array_equal(ground.patches[0].rotation_world_patch, np.eye(3))


@given(angles, headings, st.floats(-3.0, 3.0), st.floats(-3.0, 3.0))
def test_slope_rises_along_its_direction(angle: float, direction: float, x: float, y: float) -> None:
    ground = Ground.slope(angle, direction)
    along = x * math.cos(direction) + y * math.sin(direction)
    assert ground.height(x, y) == pytest.approx(along * math.tan(angle), abs=1e-12 / math.cos(angle))
    t1, t2, n = ground.patches[0].rotation_world_patch.T
    assert n[2] == pytest.approx(math.cos(angle))
    assert t1[2] == pytest.approx(math.sin(angle))
    assert t2[2] == 0.0
    np.testing.assert_allclose(np.cross(t1, t2), n, atol=1e-15)


def test_the_border_belongs_to_a_region() -> None:
    patch = Patch(np.zeros(3), np.eye(3), np.array(SQUARE), None, None)
    inside = [[0.5, 0.5], [0.0, 0.5], [1.0, 0.25], [0.5, 0.0], [0.75, 1.0], *SQUARE]
    outside = [[-1e-12, 0.5], [1.0 + 1e-12, 0.25], [0.5, 1.1], [0.5, -1e-9], [np.nan, 0.5]]
    assert patch.contains(inside).all()
    assert not patch.contains(outside).any()


@given(angles, headings, headings, st.floats(-2.0, 2.0), st.floats(-2.0, 2.0))
def test_pose_stands_on_the_ground_and_looks_along_yaw(a: float, d: float, yaw: float, x: float, y: float) -> None:
    ground = Ground.slope(a, d)
    pose = ground.pose_on(x, y, yaw)
    np.testing.assert_allclose(pose.rotation.T @ pose.rotation, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(pose.rotation[:, 2], ground.patches[0].normal_world, atol=1e-15)
    assert pose.translation.tolist() == [x, y, ground.height(x, y)]
    heading = pose.rotation[:2, 0] / np.linalg.norm(pose.rotation[:2, 0])
    np.testing.assert_allclose(heading, [math.cos(yaw), math.sin(yaw)], atol=1e-12)


def test_placing_a_robot_on_the_floor_keeps_every_bit() -> None:
    q = load_robot("biped14").q_nominal
    assert np.array_equal(Ground.flat().place(q), q)
    assert np.array_equal(get_ground("stairs").place(q), q)


def test_placing_a_robot_moves_it_as_a_whole() -> None:
    q = load_robot("biped14").q_nominal
    ground = Ground.slope(0.1, 0.7)
    placed = ground.place(q, 1.0, 2.0, 0.3)
    moved = pin.XYZQUATToSE3(placed[:7]) * pin.XYZQUATToSE3(q[:7]).inverse()
    assert moved.isApprox(ground.pose_on(1.0, 2.0, 0.3), 1e-12)
    assert np.array_equal(placed[7:], q[7:])


def test_stairs_are_a_staircase() -> None:
    ground = Ground.stairs(rise=0.15, run=0.3, steps=3, width=1.0, start=0.5, landing=0.4)
    x = np.array([-1.0, 0.49, 0.51, 0.79, 0.81, 1.11, 1.79, 1.81])
    assert ground.height(x, 0.2) == pytest.approx([0.0, 0.0, 0.15, 0.15, 0.30, 0.45, 0.45, 0.0])
    assert ground.height(0.6, 0.51) == 0.0, "beside the stairs there is the floor"
    assert [patch.name for patch in ground.patches] == ["floor", "step 1", "step 2", "step 3"]


def test_nothing_is_below_a_hole() -> None:
    ground = Ground((Patch(region=SQUARE, name="table"),))
    assert math.isnan(ground.height(1.5, 0.5))
    assert ground.height(0.5, 0.5) == 0.0
    with refusal(place="x = 1.5, y = 0.5 m"):
        ground.pose_on(1.5, 0.5)


def test_a_wall_is_nowhere_in_the_plan_view() -> None:
    wall = Patch(rotation_world_patch=pin.utils.rotate("y", 0.5 * math.pi))
    assert math.isnan(Ground((wall,)).height(0.0, 0.0))


def test_depth_counts_what_is_in_the_ground_not_what_is_under_a_step() -> None:
    ground = Ground.stairs(rise=0.15, run=0.3, steps=1, start=0.0)
    points = [[0.1, 0.0, 0.149], [0.1, 0.0, 0.1], [-0.1, 0.0, -0.2], [0.1, 0.0, 0.25]]
    assert ground.depth(points, 0.01) == pytest.approx([0.001, -0.1, 0.2, -0.1])
    assert Ground((Patch(region=SQUARE),)).depth([5.0, 5.0, 0.0], 0.01) == -np.inf


def test_arrays_hold_every_patch() -> None:
    triangle = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    ground = Ground(
        (
            Patch(name="floor"),
            Patch(np.array([1.0, 2.0, 3.0]), region=SQUARE, friction_static=0.3, friction_dynamic=0.2),
            Patch(region=triangle, friction_static=0.9),
        )
    )
    arrays = ground.arrays()
    assert arrays.counts.tolist() == [0, 4, 3]
    assert arrays.region.shape == (3, 4, 2)
    assert np.array_equal(arrays.region[1], SQUARE)
    assert np.array_equal(arrays.region[2, :3], triangle)
    assert np.array_equal(arrays.mu_static, [np.nan, 0.3, 0.9], equal_nan=True)
    assert np.array_equal(arrays.mu_dynamic, [np.nan, 0.2, 0.9], equal_nan=True)
    assert arrays.plane.tolist() == [0, 1, 0]
    for array in (*arrays[:-1], arrays.field.heights, arrays.field.tops):
        assert array.flags.c_contiguous
        assert array.dtype in (np.float64, np.int64)
    assert Ground.flat().arrays().region.shape == (1, 1, 2)


def test_planes_are_shared_by_what_lies_in_them() -> None:
    axes = pin.rpy.rpyToMatrix(0.2, -0.1, 0.4)
    other = axes @ pin.utils.rotate("z", 1.0)
    raised = 1e-3 * axes[:, 2]
    patches = [Patch(rotation_world_patch=axes), Patch(axes @ [3.0, 2.0, 0.0], other), Patch(raised, axes), Patch()]
    assert Ground(tuple(patches)).arrays().plane.tolist() == [0, 0, 2, 3]


def test_a_clockwise_region_is_turned_round() -> None:
    assert np.array_equal(Patch(region=SQUARE[::-1]).region, np.roll(SQUARE, 1, axis=0))


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"rotation_world_patch": 2.0 * np.eye(3)}, "rotation_world_patch"),
        ({"rotation_world_patch": np.diag([1.0, 1.0, -1.0])}, "rotation_world_patch"),
        ({"rotation_world_patch": np.eye(2)}, "rotation_world_patch"),
        ({"rotation_world_patch": np.full((3, 3), np.nan)}, "rotation_world_patch"),
        ({"point_world": [0.0, np.nan, 0.0]}, "point_world"),
        ({"point_world": "here"}, "point_world"),
        ({"region": [[0, 0], [2, 0], [0.5, 0.5], [0, 2]]}, "region[2]"),
        ({"region": [[0, 0], [1, 0]]}, "region"),
        ({"region": [[0, 0], [1, 0], [np.inf, 1]]}, "region"),
        ({"friction_static": 0.3, "friction_dynamic": 0.4}, "friction_dynamic"),
        ({"friction_dynamic": 0.4}, "friction_dynamic"),
        ({"friction_static": -0.1}, "friction_static"),
        ({"friction_static": math.nan}, "friction_static"),
    ],
)
def test_impossible_patches_are_refused(values: dict[str, Any], place: str) -> None:
    with refusal(place=f"patch 'ice': {place}"):
        Patch(name="ice", **values)


@pytest.mark.parametrize(
    ("build", "place"),
    [
        (lambda: Ground(()), "patches"),
        (lambda: Ground.slope(1.6), "slope: angle"),
        (lambda: Ground.slope(math.nan), "slope: angle"),
        (lambda: Ground.stairs(0.0, 0.3, 3), "stairs: rise"),
        (lambda: Ground.stairs(0.1, -0.3, 3), "stairs: run"),
        (lambda: Ground.stairs(0.1, 0.3, 3, width=math.nan), "stairs: width"),
        (lambda: Ground.stairs(0.1, 0.3, 0), "stairs: steps"),
        (lambda: Ground.stairs(0.1, 0.3, 1, landing=-1.0), "stairs: steps"),
    ],
)
def test_impossible_grounds_are_refused(build: Any, place: str) -> None:
    with refusal(place=place):
        build()


# --- ground files ---


@pytest.mark.parametrize("name", GROUNDS)
def test_every_ground_that_comes_along_can_be_stood_on(name: str) -> None:
    ground = get_ground(name)
    assert ground.height(0.0, 0.0) == 0.0
    assert ground.arrays().field.first == len(ground.patches)


def test_grounds_are_found_by_name_and_by_path(tmp_path: Path) -> None:
    assert {"flat", "slope", "stairs", "patches"} <= set(GROUNDS)
    path = write(tmp_path, "flat: {height: 0.5}\n")
    assert get_ground(path).height(0.0, 0.0) == get_ground(str(path)).height(0.0, 0.0) == 0.5
    with refusal(UnknownNameError, name="stiars", meant="stairs"):
        get_ground("stiars")
    with refusal(place=tmp_path / "none.yaml", cause=FileNotFoundError):
        get_ground(tmp_path / "none.yaml")
    with refusal(place="mine.yaml", cause=FileNotFoundError):
        get_ground("mine.yaml")
    with refusal(place="stiars.yaml", __cause__=None):
        get_ground("stiars.yaml")


def test_a_file_says_what_code_says(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
slope: {angle_deg: 10, direction_deg: 90, friction_static: 0.6}
stairs: {rise: 0.1, run: 0.3, steps: 2, width: 1.5, start: 1, landing: 0.5}
patches:
  - {name: ice, point: [1, 2, 3], rpy: [0.1, 0.2, 0.3], region: [[0, 0], [1, 0], [0, 1]], friction_static: 0.1,
     friction_dynamic: 0.05}
  - {normal: [0, -3, 4]}
""",
    )
    ground = get_ground(path)
    expected = [
        *Ground.slope(math.radians(10), math.radians(90), friction_static=0.6).patches,
        *Ground.stairs(0.1, 0.3, 2, 1.5, 1.0, 0.5).patches,
        Patch(
            np.array([1.0, 2.0, 3.0]),
            pin.rpy.rpyToMatrix(0.1, 0.2, 0.3),
            np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]),
            0.1,
            0.05,
            "ice",
        ),
        Patch(rotation_world_patch=np.array([[1, 0, 0], [0, 0.8, -0.6], [0, 0.6, 0.8]]), name="patch 1"),
    ]
    assert [patch.name for patch in ground.patches] == [patch.name for patch in expected]
    for ours, theirs in zip(ground.arrays()[:-1], Ground(tuple(expected)).arrays()[:-1], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-15)


def test_the_example_of_the_documentation_is_a_ground(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "ground.md").read_text(encoding="utf-8")
    example, of_scene = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert "mjcf:" in of_scene
    patches = get_ground(write(tmp_path, example)).patches
    stairs = ["floor", *(f"step {i}" for i in range(1, 6))]
    tiles = ["floor", *(f"tile {i} {j}" for i in range(10) for j in range(4))]
    assert [patch.name for patch in patches] == ["flat", "slope", *stairs, *tiles, "ice"]


def test_axes_of_a_normal_look_along_x_where_they_can(tmp_path: Path) -> None:
    ground = get_ground(write(tmp_path, "patches: [{normal: [0.3, 0.2, 2]}, {normal: [1, 0, 0]}]\n"))
    level, wall = (patch.rotation_world_patch for patch in ground.patches)
    assert level[1, 0] != 0.0
    assert level[0, 0] > 0.9
    np.testing.assert_allclose(level[:, 2], np.array([0.3, 0.2, 2.0]) / math.hypot(0.3, 0.2, 2.0))
    np.testing.assert_allclose(wall, [[0, 0, 1], [1, 0, 0], [0, 1, 0]], atol=1e-15)


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("flot: {}", "", "flot"),
        ("{}", "", None),
        ("patches: []", "patches", []),
        ("patches: {name: ice}", "patches", {"name": "ice"}),
        ("patches: [{nrmal: [0, 0, 1]}]", "patches[0]", "nrmal"),
        ("patches: [{}, {normal: [0, 0, 0]}]", "patches[1]: normal", [0.0, 0.0, 0.0]),
        ("patches: [{normal: [0, 0, .nan]}]", "patches[0].normal[2]", math.nan),
        ("patches: [{normal: [0, 1]}]", "patches[0].normal", [0, 1]),
        ("patches: [{normal: [0, 0, 1], rpy: [0, 0, 0]}]", "patches[0]: normal and rpy", None),
        ("patches: [{point: 3}]", "patches[0].point", 3),
        (
            "patches: [{name: ice, region: [[0, 0], [2, 0], [0.5, 0.5], [0, 2]]}]",
            "patches[0]: patch 'ice': region[2]",
            [0.5, 0.5],
        ),
        ("patches: [{friction_static: slippery}]", "patches[0].friction_static", "slippery"),
        (
            "patches: [{friction_static: 0.1, friction_dynamic: 0.2}]",
            "patches[0]: patch 'patch 0': friction_dynamic",
            0.2,
        ),
        ("stairs: {rise: 0}", "stairs: stairs: rise", 0.0),
        ("stairs: {steps: 2.5}", "stairs.steps", 2.5),
        ("stairs: {steps: 0}", "stairs.steps", 0),
        ("slope: {angle_deg: 90}", "slope.angle_deg", 90.0),
        ("flat: {height: .inf}", "flat.height", math.inf),
        ("flat: 3", "flat", 3),
    ],
)
def test_faults_of_a_file_are_named(tmp_path: Path, text: str, key: str, value: Any) -> None:
    path = write(tmp_path, text)
    with refusal(place=f"{path}: {key}" if key else path) as caught:
        get_ground(path)
    assert repr(getattr(caught.value, "name", caught.value.value)) == repr(value)


def test_a_file_without_ground_where_a_robot_is_to_stand_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, "patches: [{name: far, point: [9, 9, 0], region: [[0, 0], [1, 0], [1, 1], [0, 1]]}]")
    with refusal(place=f"{path}: x = 0.0, y = 0.0 m"):
        get_ground(path).pose_on(0.0, 0.0)


# --- the command line ---


def test_a_robot_stands_on_a_slope(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--json", "--ground", "slope", "--duration", "3"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["fz_mean_over_mg"] == pytest.approx(1.0, abs=1e-6), "vertical in the world, whatever the normal is"
    assert summary["foot_drift_m"] < 1e-6
    assert summary["penetration_m"] < 1e-6


def test_how_deep_a_ball_is_counts_from_its_skin() -> None:
    """A spring of the default 1e5 N/m gives way by m g / k, and at first by twice that at most."""
    ball = BODIES / "ball_3d"
    settings = RunConfig(str(ball), "user_controllers:Rest", contact_model="nonlinear_damping", duration=0.6)
    recording, summary = run(settings)
    sag = 0.3 * 9.81 / 1e5
    assert 0.2 - recording.sole_poses[-1, 0, 2] == pytest.approx(sag, rel=1e-3)
    assert sag < summary["penetration_m"] < 2.0 * sag


def test_an_unknown_ground_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--ground", "stiars"]) == 2
    assert "did you mean 'stairs'" in capsys.readouterr().err
