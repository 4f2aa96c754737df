"""Shapes of bodies, from the URDF and from robot.yaml."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from bipedsim.errors import ConfigError
from bipedsim.model import Robot, Shape, load_robot, lowest_point
from bipedsim.model.shapes import COARSE, located

URDF = """<robot name="thing"><link name="body"><inertial><mass value="1"/>
<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>
<collision><origin xyz="0.1 0 0" rpy="1.5707963267948966 0 0"/><geometry>{shape}</geometry></collision>
</link></robot>"""
YAML = """name: thing
urdf: thing.urdf
joints: []
feet: {{sole: {{frame: body, vertices: [[0.0, 0.0]], placement: {{xyz: [0.0, 0.0, -0.5]}}}}}}
{more}
"""


def thing(folder: Path, shape: str, more: str = "") -> Robot:
    (folder / "thing.urdf").write_text(URDF.format(shape=shape))
    (folder / "robot.yaml").write_text(YAML.format(more=more))
    return load_robot(folder / "robot.yaml")


def only(robot: Robot) -> Shape:
    (shape,) = robot.shapes.shapes
    return shape


def test_shapes_of_a_urdf_are_where_their_origin_says(tmp_path: Path) -> None:
    sphere = only(thing(tmp_path, '<sphere radius="0.2"/>'))
    np.testing.assert_allclose(sphere.points, [[0.1, 0.0, 0.0]], atol=1e-15)
    assert (sphere.radius, sphere.ring) == (0.2, 0.0)
    cylinder = only(thing(tmp_path, '<cylinder radius="0.2" length="0.6"/>'))
    np.testing.assert_allclose(cylinder.points, [[0.1, -0.3, 0.0], [0.1, 0.3, 0.0]], atol=1e-15)
    np.testing.assert_allclose(cylinder.axis, [0.0, -1.0, 0.0], atol=1e-15)
    assert (cylinder.radius, cylinder.ring) == (0.0, 0.2)
    box = only(thing(tmp_path, '<box size="0.2 0.4 0.6"/>'))
    np.testing.assert_allclose(np.ptp(box.points, axis=0), [0.2, 0.6, 0.4], atol=1e-15)


def stl(path: Path, triangles: np.ndarray) -> None:
    """Write triangles (n, 3, 3) as a binary STL."""
    kind = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("unused", "<u2")])
    rows = np.zeros(len(triangles), dtype=kind)
    rows["corners"] = triangles
    path.write_bytes(bytes(80) + len(rows).to_bytes(4, "little") + rows.tobytes())


def test_a_mesh_is_its_hull_of_few_vertices(tmp_path: Path) -> None:
    points = np.random.default_rng(1).normal(size=(3000, 3)) * [0.1, 0.05, 0.02]
    hull = ConvexHull(points)
    corners = points[hull.simplices]
    # All turned outwards.
    inwards = np.linalg.det(corners - points.mean(axis=0)) < 0.0
    corners[inwards] = corners[inwards][:, ::-1]
    stl(tmp_path / "cloud.stl", corners)
    robot = thing(tmp_path, '<mesh filename="cloud.stl" scale="2 2 2"/>')
    shape = only(robot)
    assert robot.shapes.warnings == ()
    assert len(shape.points) <= 32
    directions = np.random.default_rng(2).normal(size=(500, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    # The mesh is turned by 90 degrees about x.
    whole = 2.0 * points[:, [0, 2, 1]] * [1.0, -1.0, 1.0] + [0.1, 0.0, 0.0]
    lacking = (directions @ whole.T).max(axis=1) - (directions @ shape.points.T).max(axis=1)
    assert lacking.min() > -1e-6
    assert lacking.max() < 30.0 * COARSE


def test_missing_thin_and_open_meshes_are_named(tmp_path: Path) -> None:
    robot = thing(tmp_path, '<mesh filename="gone.stl"/>')
    assert robot.shapes.shapes == ()
    assert "'body'" in robot.shapes.warnings[0]
    assert "gone.stl" in robot.shapes.warnings[0]
    stl(
        tmp_path / "flat.stl",
        np.array([[[0.0, 0, 0], [0.1, 0, 0], [0, 0.1, 0]], [[0.1, 0.1, 0], [0.1, 0, 0], [0, 0.1, 0]]]),
    )
    assert "thick" in thing(tmp_path, '<mesh filename="flat.stl"/>').shapes.warnings[0]
    # A tetrahedron that lacks a side, and one of which a side is turned.
    points = np.vstack([np.zeros(3), 0.1 * np.eye(3)])
    sides = points[[[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]]
    stl(tmp_path / "whole.stl", sides)
    assert thing(tmp_path, '<mesh filename="whole.stl"/>').shapes.warnings == ()
    for name, some in (("open.stl", sides[:3]), ("turned.stl", np.concatenate([sides[:3], sides[3:, ::-1]]))):
        stl(tmp_path / name, some)
        (said,) = thing(tmp_path, f'<mesh filename="{name}"/>').shapes.warnings
        assert "open" in said
        assert name in said
    (tmp_path / "noise.stl").write_bytes(b"no mesh")
    assert "noise.stl" in thing(tmp_path, '<mesh filename="noise.stl"/>').shapes.warnings[0]


def test_robot_yaml_gives_other_shapes(tmp_path: Path) -> None:
    given = "bodies: {body: [{kind: capsule, radius: 0.1, length: 0.4, placement: {xyz: [0.0, 0.0, 1.0]}}]}"
    shape = only(thing(tmp_path, '<mesh filename="gone.stl"/>', given))
    np.testing.assert_allclose(shape.points, [[0.0, 0.0, 1.2], [0.0, 0.0, 0.8]], atol=1e-15)
    assert thing(tmp_path, '<sphere radius="1"/>', "bodies: {body: []}").shapes.shapes == ()


@pytest.mark.parametrize(
    ("shape", "more", "message"),
    [
        ('<sphere radius="-1"/>', "", "radius = -1"),
        ('<box size="1 0 1"/>', "", "size = .* must be positive"),
        ('<sphere radius="x"/>', "", "three finite numbers"),
        ('<sphere radius="1"/>', "bodies: {bodi: []}", "bodi"),
        ('<sphere radius="1"/>', "bodies: {body: [{kind: capsule, radius: 1.0}]}", "length = 0.0 m of a capsule"),
        ('<sphere radius="1"/>', "self_collision: [[body]]", "must be two links"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, shape: str, more: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        _ = thing(tmp_path, shape, more).shapes


def test_meshes_are_named_by_their_place_for_programs_that_know_no_package(tmp_path: Path) -> None:
    (tmp_path / "arm" / "meshes").mkdir(parents=True)
    mesh = tmp_path / "arm" / "meshes" / "link.stl"
    mesh.write_bytes(b"")
    names = ("package://arm/meshes/link.stl", f"file://{mesh}", "package://arm/meshes/none.stl")
    text = "".join(f"<visual><geometry><mesh filename='{name}' scale='1 1 1'/></geometry></visual>" for name in names)
    found = located(text, tmp_path / "arm" / "urdf" / "arm.urdf")
    assert found == text.replace("package://arm/meshes/link.stl", f"file://{mesh.resolve()}")


@given(st.integers(0, 2**32 - 1), st.sampled_from(["ball", "ring", "both"]), st.booleans())
def test_the_lowest_point_is_that_of_all_that_are_looked_at(seed: int, kind: str, upright: bool) -> None:
    """Brute force: balls around many points of the ring around each point, placed in the world by pinocchio."""
    rng = np.random.default_rng(seed)
    pose = pin.SE3(np.eye(3) if upright else pin.exp3(2.0 * rng.normal(size=3)), rng.normal(size=3))
    points = rng.normal(size=(4, 3))
    radius = np.zeros(4) if kind == "ring" else rng.uniform(0.01, 0.2, 4)
    ring = np.zeros(4) if kind == "ball" else rng.uniform(0.01, 0.2, 4)
    frames = [pin.exp3(rng.normal(size=3)) for _ in points]
    found = lowest_point(pose, points, radius, ring, np.array([frame[:, 2] for frame in frames]))
    turns = np.linspace(0.0, 2.0 * np.pi, 2001)
    for point, r, c, frame, lowest in zip(points, radius, ring, frames, found, strict=True):
        circle = point[:, None] + c * (frame[:, :1] * np.cos(turns) + frame[:, 1:2] * np.sin(turns))
        world = np.array([pose.act(on) for on in circle.T])
        k = int(np.argmin(world[:, 2]))
        # Between two points that are looked at the circle sinks by ring (step / 2)^2 / 2 more at most.
        assert lowest[2] == pytest.approx(world[k, 2] - r, abs=0.2 * (turns[1] / 2.0) ** 2 / 2.0 + 1e-12)
        above = lowest + np.array([0.0, 0.0, r])
        assert np.linalg.norm(world - above, axis=1).min() < 0.2 * turns[1], "below a point of the circle"
        np.testing.assert_allclose(lowest_point(pose, point, r, c, frame[:, 2]), lowest, rtol=0.0, atol=1e-14)
