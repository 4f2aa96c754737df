"""Shapes of bodies, from the URDF and from robot.yaml."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, strategies as st
from refusals import refusal
from scipy.spatial import ConvexHull

from bipedsim.model import Robot, Shape, load_robot, lowest_point
from bipedsim.model.shapes import COARSE, ShapeFault, collada_up_axis, located, mesh_triangles

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
    (warning,) = robot.shapes.warnings
    assert robot.shapes.left_out == (warning,)
    assert (warning.fault, warning.link) == (ShapeFault.NO_FILE, "body")
    assert "gone.stl" in warning.text
    stl(
        tmp_path / "flat.stl",
        np.array([[[0.0, 0, 0], [0.1, 0, 0], [0, 0.1, 0]], [[0.1, 0.1, 0], [0.1, 0, 0], [0, 0.1, 0]]]),
    )
    thin = thing(tmp_path, '<mesh filename="flat.stl"/>').shapes
    assert thin.warnings[0].fault is ShapeFault.THIN
    assert thin.left_out == ()
    # A tetrahedron with a missing face, and one with an inverted face.
    points = np.vstack([np.zeros(3), 0.1 * np.eye(3)])
    sides = points[[[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]]
    stl(tmp_path / "whole.stl", sides)
    assert thing(tmp_path, '<mesh filename="whole.stl"/>').shapes.warnings == ()
    for name, some in (("open.stl", sides[:3]), ("turned.stl", np.concatenate([sides[:3], sides[3:, ::-1]]))):
        stl(tmp_path / name, some)
        shapes = thing(tmp_path, f'<mesh filename="{name}"/>').shapes
        (warning,) = shapes.warnings
        assert warning.fault is ShapeFault.OPEN
        assert shapes.left_out == ()
        assert name in warning.text
    (tmp_path / "noise.stl").write_bytes(b"no mesh")
    (warning,) = thing(tmp_path, '<mesh filename="noise.stl"/>').shapes.warnings
    assert warning.fault is ShapeFault.UNREADABLE
    assert "noise.stl" in warning.text


def test_robot_yaml_gives_other_shapes(tmp_path: Path) -> None:
    given = "bodies: {body: [{kind: capsule, radius: 0.1, length: 0.4, placement: {xyz: [0.0, 0.0, 1.0]}}]}"
    shape = only(thing(tmp_path, '<mesh filename="gone.stl"/>', given))
    np.testing.assert_allclose(shape.points, [[0.0, 0.0, 1.2], [0.0, 0.0, 0.8]], atol=1e-15)
    assert thing(tmp_path, '<sphere radius="1"/>', "bodies: {body: []}").shapes.shapes == ()


@pytest.mark.parametrize(
    ("shape", "more", "place"),
    [
        ('<sphere radius="-1"/>', "", "<sphere> radius"),
        ('<box size="1 0 1"/>', "", "size"),
        ('<sphere radius="x"/>', "", "radius"),
        ('<sphere radius="1"/>', "bodies: {bodi: []}", "bodies"),
        ('<sphere radius="1"/>', "bodies: {body: [{kind: capsule, radius: 1.0}]}", "bodies.body[0]: length"),
        ('<sphere radius="1"/>', "self_collision: [[body]]", "self_collision"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, shape: str, more: str, place: str) -> None:
    with refusal(place=place):
        _ = thing(tmp_path, shape, more).shapes


def test_meshes_are_named_by_their_place_for_programs_that_know_no_package(tmp_path: Path) -> None:
    (tmp_path / "arm" / "meshes").mkdir(parents=True)
    mesh = tmp_path / "arm" / "meshes" / "link.stl"
    mesh.write_bytes(b"")
    names = ("package://arm/meshes/link.stl", f"file://{mesh}", "package://arm/meshes/none.stl")
    text = "".join(f"<visual><geometry><mesh filename='{name}' scale='1 1 1'/></geometry></visual>" for name in names)
    found = located(text, tmp_path / "arm" / "urdf" / "arm.urdf")
    assert found == text.replace("package://arm/meshes/link.stl", f"file://{mesh.resolve()}")


@pytest.mark.long
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


BOX = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
QUADS = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))


def triangles_of_box(size: tuple[float, float, float], at: tuple[float, float, float]) -> np.ndarray:
    """Return the triangles (12, 3, 3) of a box."""
    corners = BOX * size + at
    return np.array([corners[[q[0], q[k], q[k + 1]]] for q in QUADS for k in (1, 2)])


def geometry(name: str, parts: list[tuple[str, np.ndarray]]) -> str:
    """Return a <geometry> of Collada, each part a primitive: triangles (n, 3, 3) as ``triangles`` or ``polylist``."""
    points = np.concatenate([corners.reshape(-1, 3) for _, corners in parts])
    numbers, primitives, start = " ".join(f"{v:.9g}" for v in points.ravel()), "", 0
    for kind, corners in parts:
        indices = " ".join(map(str, range(start, start + 3 * len(corners))))
        start += 3 * len(corners)
        lengths = f"<vcount>{'3 ' * len(corners)}</vcount>" if kind == "polylist" else ""
        primitives += (
            f'<{kind} count="{len(corners)}"><input semantic="VERTEX" source="#{name}v" offset="0"/>{lengths}'
            f"<p>{indices}</p></{kind}>"
        )
    return (
        f'<geometry id="{name}"><mesh><source id="{name}p"><float_array id="{name}f" count="{points.size}">{numbers}'
        f'</float_array><technique_common><accessor source="#{name}f" count="{len(points)}" stride="3">'
        '<param name="X" type="float"/><param name="Y" type="float"/><param name="Z" type="float"/></accessor>'
        f'</technique_common></source><vertices id="{name}v"><input semantic="POSITION" source="#{name}p"/></vertices>'
        f"{primitives}</mesh></geometry>"
    )


def collada(path: Path, geometries: str, nodes: str, unit: str = "", up: str = "Z_UP", library: str = "") -> None:
    """Write a Collada file."""
    path.write_text(
        '<?xml version="1.0"?><COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1"><asset>'
        f"<created>2020-01-01T00:00:00</created><modified>2020-01-01T00:00:00</modified>{unit}<up_axis>{up}</up_axis>"
        f"</asset><library_geometries>{geometries}</library_geometries>{library}<library_visual_scenes>"
        f'<visual_scene id="s">{nodes}</visual_scene></library_visual_scenes>'
        '<scene><instance_visual_scene url="#s"/></scene></COLLADA>'
    )


NODE = '<node><instance_geometry url="#a"/></node>'
FOOT_PARTS = [((0.1, 0.1, 0.02), (0.05 * k, 0.0, 0.0)) for k in range(4)]


@pytest.mark.parametrize(("unit", "metre"), [("", 1.0), ('<unit name="mm" meter="0.001"/>', 1e-3), ("<unit/>", 1.0)])
def test_all_parts_of_a_collada_file_count_in_its_unit_where_its_nodes_put_them(
    tmp_path: Path, unit: str, metre: float
) -> None:
    """Two geometries, one of two primitives of two kinds, under nodes that scale, move and repeat."""
    parts = [triangles_of_box(size, at) / metre for size, at in FOOT_PARTS]
    first = geometry("a", [("triangles", parts[0]), ("polylist", parts[1])])
    second = geometry("b", [("triangles", parts[2])])
    # The fourth is the third again, in a node of a library that is twice as coarse, and moved.
    shared = '<library_nodes><node id="n"><scale>0.5 0.5 0.5</scale>{}</node></library_nodes>'
    double = geometry("c", [("triangles", 2.0 * triangles_of_box(*FOOT_PARTS[0]) / metre)])
    nodes = (
        '<node><instance_geometry url="#a"/></node><node><node><instance_geometry url="#b"/></node></node>'
        f'<node><translate>{0.15 / metre} 0 0</translate><instance_node url="#n"/></node>'
    )
    library = shared.format('<instance_geometry url="#c"/>')
    collada(tmp_path / "foot.dae", first + second + double, nodes, unit, library=library)
    found = mesh_triangles(tmp_path / "foot.dae")
    wanted = np.concatenate([triangles_of_box(size, at) for size, at in FOOT_PARTS])
    assert found.shape == wanted.shape
    ordered = [np.array(sorted(map(tuple, np.round(t, 7).reshape(-1, 9) + 0.0))) for t in (found, wanted)]
    np.testing.assert_allclose(*ordered, atol=1e-6)
    hull = only(thing(tmp_path, f'<mesh filename="{tmp_path / "foot.dae"}"/>'))
    np.testing.assert_allclose(np.ptp(hull.points, axis=0), [0.25, 0.02, 0.1], atol=1e-6)


def test_the_up_axis_of_a_collada_file_turns_nothing_and_is_known(tmp_path: Path) -> None:
    """RViz and Gazebo do not turn it either, and robots of both kinds are published for them."""
    box = triangles_of_box((0.1, 0.2, 0.3), (0.0, 0.0, 0.0))
    for up in ("Y_UP", "Z_UP"):
        collada(tmp_path / "box.dae", geometry("a", [("triangles", box)]), NODE, up=up)
        points = mesh_triangles(tmp_path / "box.dae").reshape(-1, 3)
        np.testing.assert_allclose(np.ptp(points, axis=0), [0.1, 0.2, 0.3], atol=1e-7)
        assert collada_up_axis(tmp_path / "box.dae") == up[0]


def test_a_geometry_of_a_collada_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    """A foot without one of its parts would be another foot."""
    box = triangles_of_box((0.1, 0.2, 0.3), (0.0, 0.0, 0.0))
    broken = geometry("b", [("triangles", box)]).replace("#bv", "#nowhere")
    nodes = NODE + NODE.replace("#a", "#b")
    collada(tmp_path / "box.dae", geometry("a", [("triangles", box)]) + broken, nodes)
    with pytest.raises(ValueError, match="'b'"):
        mesh_triangles(tmp_path / "box.dae")


def test_all_objects_and_materials_of_an_obj_file_count(tmp_path: Path) -> None:
    """Parts with materials of their own are meshes of their own to many readers."""
    lines, offset = [], 1
    for k, (size, at) in enumerate(FOOT_PARTS):
        lines += [f"v {x} {y} {z}" for x, y, z in BOX * size + at]
        lines += ["o half" if k == 2 else "", f"usemtl m{k}"]
        lines += [f"f {' '.join(str(offset + i) for i in quad)}" for quad in QUADS]
        offset += 8
    (tmp_path / "foot.obj").write_text("\n".join(["mtllib gone.mtl", *lines]))
    points = mesh_triangles(tmp_path / "foot.obj").reshape(-1, 3)
    np.testing.assert_allclose(np.ptp(points, axis=0), [0.25, 0.1, 0.02], atol=1e-7)
    assert len(mesh_triangles(tmp_path / "foot.obj")) == 48


@pytest.mark.parametrize("name", ["x.dae", "x.obj", "x.ply", "x.stl", "x.unknown"])
def test_a_file_that_is_no_mesh_is_told_by_its_link(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("<not a mesh")
    robot = thing(tmp_path, f'<mesh filename="{tmp_path / name}"/>')
    assert not robot.shapes.shapes
    (warning,) = robot.shapes.warnings
    assert (warning.fault, warning.link) == (ShapeFault.UNREADABLE, "body")
    assert name in warning.text
