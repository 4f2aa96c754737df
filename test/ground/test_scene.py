"""MJCF scenes as ground: heights are those that MuJoCo's rays measure; turned fields are fields in turned axes."""

from __future__ import annotations

import math
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import yaml
from PIL import Image
from refusals import refusal

from bipedsim.control import make_controller
from bipedsim.errors import ConfigError, OmittedWarning, UnknownNameError
from bipedsim.ground import Ground, HeightField, get_ground, make_ground, surface
from bipedsim.model import load_robot
from bipedsim.sim import Simulator

mujoco = pytest.importorskip("mujoco")

RNG = np.random.default_rng(8)
ELEVATION = RNG.uniform(2.0, 7.0, (9, 14))
BOXES = "".join(
    f'<geom name="box{i}" type="box" size="0.3 0.2 0.1" pos="{x} {y} {z}" euler="{a} {b} {c}"/>'
    for i, (x, y, z, a, b, c) in enumerate(
        RNG.uniform([-3.0, -3.0, 0.0, -40.0, -40.0, -180.0], [3.0, 3.0, 0.3, 40.0, 40.0, 180.0], (20, 6))
    )
)
FIELD = '<geom name="hills" type="hfield" hfield="hills" pos="0.3 -0.2 -0.05" euler="0 0 35"/>'
FLOOR = '<geom name="floor" type="plane" size="0 0 1"/>'
ROBOT = """<body name="robot" pos="0 0 3"><freejoint/><geom type="sphere" size="0.1"/>
    <body name="leg"><joint type="hinge"/><geom type="box" size="0.4 0.4 0.1"/></body></body>"""


def scene(folder: Path, world: str, hfield: str = "", more: str = "") -> Path:
    """Write a scene; ``hfield`` are the attributes of the asset ``hills`` besides its size."""
    numbers = " ".join(map(str, ELEVATION.ravel()))
    hfield = hfield or f'nrow="9" ncol="14" elevation="{numbers}"'
    path = folder / "scene.xml"
    asset = f'<asset><hfield name="hills" size="1.3 0.6 0.2 0.1" {hfield}/></asset>' if "hills" in world else ""
    path.write_text(f"<mujoco>{asset}<worldbody>{world}</worldbody>{more}</mujoco>")
    return path


def suggested(warning: object) -> dict[str, Any]:
    """Return the key and value that a warning says to add to ``mjcf``."""
    key = re.search(r"leave_out: \[.*\]", str(warning))
    assert key is not None
    return dict(yaml.safe_load(key[0]))


def ray_heights(path: Path, points: Any) -> tuple[Any, Any]:
    """Return the heights (n,) that rays down onto ``points`` (n, 2) hit, NaN for none, and the z of the face there."""
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    heights, slopes = np.full(len(points), np.nan), np.ones(len(points))
    hit = np.zeros(1, dtype=np.int32)
    for k, (x, y) in enumerate(points):
        distance = mujoco.mj_ray(model, data, np.array([x, y, 2.0]), np.array([0.0, 0.0, -1.0]), None, 1, -1, hit)
        if distance < 0.0:
            continue
        heights[k] = 2.0 - distance
        if model.geom_type[hit[0]] == mujoco.mjtGeom.mjGEOM_BOX:
            rotation = data.geom_xmat[hit[0]].reshape(3, 3)
            local = rotation.T @ (np.array([x, y, heights[k]]) - data.geom_xpos[hit[0]])
            slopes[k] = abs(rotation[2, np.argmin(abs(abs(local) - model.geom_size[hit[0]]))])
    return heights, slopes


def test_heights_are_those_of_rays_of_mujoco(tmp_path: Path) -> None:
    path = scene(tmp_path, FLOOR + FIELD + BOXES)
    ground = get_ground(str(path))
    points = RNG.uniform(-3.5, 3.5, (4000, 2))
    expected, slope = ray_heights(path, points)
    faces = slope >= 0.5
    assert 0.9 < faces.mean() < 1.0
    assert (expected > 1e-3).mean() > 0.1
    np.testing.assert_allclose(ground.height(*points[faces].T), expected[faces], atol=1e-9)
    arrays = ground.arrays()
    of_kernel = np.array([surface(arrays, x, y)[0] for x, y in points[faces]])
    np.testing.assert_allclose(of_kernel, expected[faces], atol=1e-9)


def test_a_field_alone_ends_at_its_border(tmp_path: Path) -> None:
    path = scene(tmp_path, FIELD)
    ground = get_ground(path)
    assert ground.patches == ()
    points = RNG.uniform(-1.6, 1.6, (3000, 2))
    expected, _ = ray_heights(path, points)
    assert 0.1 < np.isnan(expected).mean() < 0.9
    np.testing.assert_allclose(ground.height(*points.T), expected, atol=1e-9)


@pytest.mark.parametrize("kind", ["png", "binary"])
def test_files_of_elevations_are_read_as_mujoco_reads_them(tmp_path: Path, kind: str) -> None:
    if kind == "png":
        Image.fromarray(RNG.integers(0, 256, (9, 14), dtype=np.uint8)).save(tmp_path / "hills.png")
        path = scene(tmp_path, FIELD, 'file="hills.png"')
    else:
        data = np.array([9, 14], dtype=np.int32).tobytes() + ELEVATION.astype(np.float32).tobytes()
        (tmp_path / "hills.bin").write_bytes(data)
        path = scene(tmp_path, FIELD, 'file="hills.bin"')
    points = RNG.uniform(-0.4, 0.4, (200, 2))
    expected, _ = ray_heights(path, points)
    np.testing.assert_allclose(get_ground(path).height(*points.T), expected, atol=1e-9)
    (tmp_path / f"hills.{kind[:3]}").unlink()
    with pytest.raises(ConfigError):
        get_ground(path)


def test_friction_replaces_that_of_the_sole_where_the_shape_decides(tmp_path: Path) -> None:
    def plane(name: str, attributes: str) -> str:
        return f'<geom name="{name}" type="plane" size="0 0 1" {attributes}/>'

    world = (
        plane("same", 'friction="0.4"')
        + plane("ice", 'friction="0.1" priority="1"')
        + plane("glass", 'condim="1" priority="2"')
        + plane("below", 'friction="0.4" priority="-1"')
    )
    path = scene(tmp_path, world)
    by_name = {patch.name: patch.friction_static for patch in get_ground(path).patches}
    assert by_name == {"same": None, "ice": 0.1, "glass": 0.0, "below": None}
    own = make_ground({"mjcf": {"file": str(path), "friction_static": 0.7, "friction_dynamic": 0.5}}, "own")
    assert {(patch.friction_static, patch.friction_dynamic) for patch in own.patches} == {(0.7, 0.5)}
    glue = scene(tmp_path, plane("glue", 'friction="50" priority="1"'))
    with refusal(place=f"{glue}: glue", value=50.0):
        get_ground(glue)


def test_left_out_parts_are_named_and_can_be_left_out_on_purpose(tmp_path: Path) -> None:
    world = f"""{FLOOR}{FIELD}{ROBOT}
        <geom type="cylinder" size="0.5 0.2"/>
        <geom name="second" type="hfield" hfield="hills" pos="5 0 0"/>
        <geom name="wall" type="plane" size="1 1 1" euler="90 0 0"/>
        <geom name="picture" type="sphere" size="9" contype="0" conaffinity="0"/>
        <body name="stairs" pos="1 0 0"><geom name="tread" type="box" size="0.2 0.2 0.1"/></body>
        <body name="lift" mocap="true"><geom type="box" size="1 1 1"/></body>"""
    path = scene(tmp_path, world)
    names = {"geom2", "second", "wall", "robot", "lift"}
    with pytest.warns(OmittedWarning) as caught:
        ground = get_ground(path)
    assert len(caught) == 1
    warning = str(caught[0].message)
    assert all(f"'{name}'" in warning for name in names)
    assert [patch.name for patch in ground.patches] == ["floor", "tread"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same = make_ground({"mjcf": {"file": str(path), "leave_out": sorted(names)}}, "same")
        less = make_ground({"mjcf": {"file": str(path), "leave_out": [*sorted(names), "stairs", "hills"]}}, "less")
    assert [patch.name for patch in same.patches] == ["floor", "tread"]
    assert [patch.name for patch in less.patches] == ["floor"]
    assert less.field is None
    assert set(suggested(warning)["leave_out"]) == names
    with pytest.raises(UnknownNameError) as unknown:
        make_ground({"mjcf": {"file": str(path), "leave_out": ["tred"]}}, "wrong")
    assert unknown.value.meant == "tread"


def test_the_warning_contains_all_names(tmp_path: Path) -> None:
    """A message shows the first names; the key in it that switches the warning off has all of them."""
    barrels = [f'<geom name="barrel: {i}" type="cylinder" size="0.1 0.1"/>' for i in range(40)]
    crate = '<geom name="crate" type="box" size="0.1 0.1 0.1"/>'
    keys = {"file": str(scene(tmp_path, FLOOR + crate + "".join(barrels))), "leave_out": ["crate"]}
    with pytest.warns(OmittedWarning) as caught:
        make_ground({"mjcf": keys}, "first")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ground = make_ground({"mjcf": keys | suggested(caught[0].message)}, "second")
    assert [patch.name for patch in ground.patches] == ["floor"]


def test_missing_meshes_are_reported_if_they_would_collide_and_are_not_left_out(tmp_path: Path) -> None:
    mesh = '<geom name="{}" type="mesh" mesh="m" {}/>'
    world = (
        FLOOR
        + mesh.format("rock", "")
        + mesh.format("picture", 'contype="0" conaffinity="0"')
        + mesh.format("paired", 'contype="0" conaffinity="0"')
        + f"<body name='rack'>{mesh.format('shelf', '')}</body>"
        + f"<body>{mesh.format('unnamed', '')}<body name='door'><joint/>{mesh.format('handle', '')}"
        + '<geom name="knob" size="0.1"/></body></body>'
    )
    path = scene(tmp_path, world, more='<contact><pair geom1="paired" geom2="knob"/></contact>')
    path.write_text(path.read_text().replace("<worldbody>", '<asset><mesh name="m" file="m.stl"/></asset><worldbody>'))

    def left_out(names: list[str]) -> set[str]:
        with pytest.warns(OmittedWarning) as caught:
            make_ground({"mjcf": {"file": str(path), "leave_out": names}}, "here")
        assert len(caught) == 1
        return set(suggested(caught[0].message)["leave_out"])

    assert left_out([]) == {"rock", "paired", "shelf", "unnamed", "door"}
    assert left_out(["rock", "rack"]) == {"rock", "rack", "paired", "unnamed", "door"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        names = ["rock", "rack", "paired", "unnamed", "door"]
        assert len(make_ground({"mjcf": {"file": str(path), "leave_out": names}}, "here").patches) == 1


def test_what_carries_moving_bodies_and_cannot_move_is_terrain(tmp_path: Path) -> None:
    """The pedestal of a door is welded to the world, so MuJoCo's rays hit it and it is ground; the door is not."""
    world = f"""{FLOOR}<body name="pedestal" pos="1 2 0"><geom name="block" type="box" size="0.4 0.3 0.2"/>
        <body name="door" pos="0 0 1"><joint type="hinge"/><geom type="box" size="0.1 0.1 0.5"/>
        <body name="handle"><geom type="box" size="0.1 0.1 0.1"/></body></body></body>"""
    path = scene(tmp_path, world)
    with pytest.warns(OmittedWarning) as caught:
        ground = get_ground(path)
    assert re.findall(r"'(\w+)'", str(caught[0].message)) == ["door"]
    assert [patch.name for patch in ground.patches] == ["floor", "block"]
    assert ground.height(1.3, 2.2) == pytest.approx(ray_heights(path, [(1.3, 2.2)])[0][0]) == pytest.approx(0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bare = make_ground({"mjcf": {"file": str(path), "leave_out": ["pedestal"]}}, "bare")
    assert [patch.name for patch in bare.patches] == ["floor"]


def test_names_of_shapes_are_the_same_without_meshes(tmp_path: Path) -> None:
    """A shape keeps its number if the mesh of another shape is missing, and a static one is reported."""
    body = '<body name="rack"><geom type="mesh" mesh="m"/><geom name="geom1" type="box" size="1 1 0.1"/></body>'
    box = '<geom type="box" size="0.2 0.2 0.3"/>'
    path = scene(tmp_path, FLOOR + body + f'<body name="stand">{box}</body>')
    asset = '<asset><mesh name="m" file="m.stl"/></asset>'
    path.write_text(path.read_text().replace("<worldbody>", f"{asset}<worldbody>"))
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=np.float32)
    faces = [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]
    triangles = b"".join(bytes(12) + corners[face].tobytes() + bytes(2) for face in faces)
    names = []
    for exists in (False, True):
        if exists:
            (tmp_path / "m.stl").write_bytes(bytes(80) + np.uint32(4).tobytes() + triangles)
        with pytest.warns(OmittedWarning) as caught:
            ground = get_ground(path)
        assert len(caught) == 1
        assert re.search(r"'geom1_'", str(caught[0].message))
        names.append([patch.name for patch in ground.patches])
    assert names[0] == names[1] == ["floor", "geom1", "geom3"]


def test_a_tilted_field_is_left_out_by_name(tmp_path: Path) -> None:
    with pytest.warns(OmittedWarning):
        ground = get_ground(scene(tmp_path, FLOOR + FIELD.replace('"0 0 35"', '"0 5 35"')))
    assert ground.field is None


def test_what_is_no_terrain_is_refused(tmp_path: Path) -> None:
    for world in ("", '<geom type="sphere" size="1"/>'):
        with pytest.raises(ConfigError):
            get_ground(scene(tmp_path, world))
    urdf = tmp_path / "robot.xml"
    urdf.write_text("<robot name='a'><link name='b'/></robot>")
    with pytest.raises(ConfigError) as caught:
        get_ground(urdf)
    assert str(urdf) in caught.value.place
    both = {"mjcf": {"file": str(scene(tmp_path, FIELD))}, "field": {"wave": {}}}
    with pytest.raises(ConfigError) as caught:
        make_ground(both, "both")
    assert caught.value.place == "both: field"
    with pytest.raises(ConfigError) as caught:
        make_ground({"mjcf": {}}, "none")
    assert caught.value.place.startswith("none: mjcf")


def test_a_field_without_elevations_is_level(tmp_path: Path) -> None:
    with pytest.warns(OmittedWarning):
        ground = get_ground(scene(tmp_path, FIELD, 'nrow="5" ncol="5"'))
    assert ground.height(0.1, 0.2) == pytest.approx(-0.05, abs=1e-15)


def test_textures_and_parts_of_the_robot_may_be_missing(tmp_path: Path) -> None:
    body = """<body name="robot"><freejoint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
        <geom type="mesh" mesh="m"/></body>"""
    path = scene(tmp_path, FLOOR.replace("/>", ' material="wood"/>') + body)
    assets = """<asset><texture name="wood" type="2d" file="wood.png"/><material name="wood" texture="wood"/>
        <mesh name="m" file="m.stl"/></asset>"""
    path.write_text(path.read_text().replace("<worldbody>", f"{assets}<worldbody>"))
    with pytest.warns(OmittedWarning):
        assert len(get_ground(path).patches) == 1


def test_a_turned_field_is_a_field_in_turned_axes() -> None:
    yaw, centre = 0.7, np.array([0.4, -0.3])
    c, s = math.cos(yaw), math.sin(yaw)
    back = np.array([[c, s], [-s, c]])
    heights = RNG.uniform(-0.1, 0.1, (12, 9))
    plain = Ground(field=HeightField(heights, 0.1, cell_y=0.15))
    turned = Ground(field=HeightField(heights, 0.1, (0.4, -0.3), yaw=yaw, cell_y=0.15))
    points = RNG.uniform(-0.8, 0.8, (300, 2))
    there = (points - centre) @ back.T
    np.testing.assert_allclose(turned.height(*points.T), plain.height(*there.T), atol=1e-14)
    high = np.full((300, 1), 0.03)
    np.testing.assert_allclose(
        turned.depth(np.hstack([points, high]), 0.005), plain.depth(np.hstack([there, high]), 0.005), atol=1e-14
    )
    assert turned.field is not None
    assert plain.field is not None
    vertices, triangles = turned.field.mesh()
    arrays = turned.arrays()
    world = arrays.point[:, None] + np.einsum("tab,tvb->tva", arrays.rotation[:, :, :2], arrays.region)
    np.testing.assert_allclose(np.sort(world, axis=1), np.sort(vertices[triangles], axis=1), atol=1e-14)
    np.testing.assert_allclose((vertices[:, :2] - centre) @ back.T, plain.field.mesh()[0][:, :2], atol=1e-14)
    plane = turned.field.plane(0.45, -0.35)
    assert plane is not None
    assert plane.normal_world @ (np.array([0.45, -0.35, turned.height(0.45, -0.35)]) - plane.point_world) == (
        pytest.approx(0.0, abs=1e-15)
    )
    saved = Ground.of_saved({name: array.tolist() for name, array in turned.saved().items()})
    np.testing.assert_array_equal(saved.height(*points.T), turned.height(*points.T))
    of_file = {"heights": heights.tolist(), "cell": 0.1, "centre": [0.4, -0.3], "yaw_deg": math.degrees(yaw)}
    of_file = make_ground({"field": of_file}, "file")
    square = Ground(field=HeightField(heights, 0.1, (0.4, -0.3), yaw=yaw))
    np.testing.assert_allclose(of_file.height(*points.T), square.height(*points.T), atol=1e-14)


@pytest.mark.parametrize("wrong", [{"cell_y": -1.0}, {"cell_y": math.inf}, {"yaw": math.nan}])
def test_wrong_axes_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        HeightField(np.zeros((3, 3)), 0.1, **wrong)


@pytest.mark.long
def test_contact_on_a_turned_field_is_contact_in_turned_axes() -> None:
    robot, yaw = load_robot("biped14"), 0.7
    turn = pin.SE3(pin.exp3(np.array([0.0, 0.0, yaw])), np.zeros(3))
    heights = RNG.uniform(-0.01, 0.01, (41, 31))
    q = robot.q_nominal.copy()
    q[2] += 0.015
    turned = q.copy()
    turned[:7] = pin.SE3ToXYZQUAT(turn * pin.XYZQUATToSE3(q[:7]))
    ends = []
    for start, angle in ((q, 0.0), (turned, yaw)):
        ground = Ground(field=HeightField(heights, 0.04, yaw=angle, cell_y=0.06))
        sim = Simulator(robot, ground)
        controller = make_controller("posture", robot, dt=sim.control_dt)
        observation = sim.reset(start)
        controller.reset(observation)
        for _ in range(300):
            observation = sim.step(controller.update(observation).tau_joint)
        ends.append((pin.XYZQUATToSE3(sim.q[:7]), sim.q[7:].copy()))
    difference = ends[1][0].actInv(turn * ends[0][0])
    assert np.linalg.norm(pin.log6(difference).vector) < 1e-6
    np.testing.assert_allclose(ends[1][1], ends[0][1], atol=1e-6)


@pytest.mark.long
def test_a_robot_walks_over_a_scene(tmp_path: Path) -> None:
    """The floor is level, then rough by +-2 cm, then a ramp of a tilted box."""
    elevation = " ".join(map(str, np.random.default_rng(1).uniform(0.0, 1.0, 20 * 31)))
    path = tmp_path / "scene.xml"
    path.write_text(f"""<mujoco><asset>
        <hfield name="hills" nrow="20" ncol="31" size="1.5 1 0.04 0.1" elevation="{elevation}"/></asset><worldbody>
        {FLOOR}<geom type="hfield" hfield="hills" pos="1.9 0 -0.02" euler="0 0 10"/>
        </worldbody></mujoco>""")
    robot, ground = load_robot("talos"), get_ground(path)
    sim = Simulator(robot, ground, contact="one_step")
    observation = sim.reset(ground.place(robot.q_nominal))
    controller = make_controller("zmp", robot, dt=sim.control_dt)
    controller.reset(observation)
    for tick in range(round(8.0 / sim.control_dt)):
        if tick == round(0.5 / sim.control_dt):
            controller.set_velocity(0.25, 0.0, 0.0)
        observation = sim.step(controller.update(observation).tau_joint)
    assert sim.q[0] > 1.2
    assert sim.q[2] > 0.8 * robot.q_nominal[2]
