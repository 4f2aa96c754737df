"""Files as other programs and systems write them: MuJoCo, urdfdom or pinocchio read them, and so does the import."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from description_support import BOX, FOOT, small_mjcf, small_urdf

from bipedsim.descriptions import Imported, import_robot
from bipedsim.descriptions.mjcf import stl
from bipedsim.errors import ConfigError
from bipedsim.model import load_robot

mujoco = pytest.importorskip("mujoco")

MESH = "meshes/My Foot.STL"
"""A box of 0.2 x 0.1 x 0.02 m at the place of the foot, below the folder of the description."""
SOLID = f'<collision><origin xyz="{FOOT}"/>{BOX}</collision>'


def imported(tmp_path: Path, content: bytes | str, name: str) -> Imported:
    """Import a file with this content from a folder ``small`` with a mesh."""
    folder = tmp_path / "small"
    (folder / MESH).parent.mkdir(parents=True, exist_ok=True)
    corners = np.array([[x, y, z] for x in (-0.07, 0.13) for y in (-0.05, 0.05) for z in (-0.05, -0.03)])
    faces = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
    triangles = [corners[[a, b, c]] for a, b, c, d in faces] + [corners[[a, c, d]] for a, b, c, d in faces]
    (folder / MESH).write_bytes(stl(np.array(triangles)))
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return import_robot(file, tmp_path / "made", replace=True)


def declared(encoding: str, text: str) -> str:
    return f'<?xml version="1.0" encoding="{encoding}"?>\n<!-- Füße 30° -->{text}'


ENCODED = {
    "bom": lambda text: text.encode("utf-8-sig"),
    "bom before another declaration": lambda text: declared("iso-8859-1", text).encode("utf-8-sig"),
    "latin-1": lambda text: declared("iso-8859-1", text).encode("latin-1"),
    "windows": lambda text: declared("Windows-1252", text + "<!-- € -->").encode("cp1252"),
    "chinese": lambda text: declared("GB18030", text + "<!-- 脚 -->").encode("gb18030"),
    "japanese": lambda text: f'<?xml version="1.0" encoding="shift_jis"?><!-- 脚 -->{text}'.encode("shift_jis"),
    "utf-16": lambda text: declared("utf-16", text).encode("utf-16"),
    "utf-16 without mark": lambda text: declared("utf-16", text).encode("utf-16-be"),
    "utf-32": lambda text: declared("utf-32", text).encode("utf-32"),
    "declares utf-16, is utf-8": lambda text: declared("utf-16", text).encode(),
    "undeclared": lambda text: f"<!-- 30° -->{text}".encode("latin-1"),
    "declares utf-8, is latin-1": lambda text: declared("utf-8", text).encode("latin-1"),
    "space before the declaration": lambda text: f"\n  {declared('utf-8', text)}".encode(),
    "default namespace": lambda text: text.replace(" ", ' xmlns="http://www.example.org/robot" ', 1).encode(),
    "carriage returns": lambda text: text.replace(">", ">\r").encode(),
}


@pytest.mark.parametrize("kind", ["urdf", "xml"])
@pytest.mark.parametrize("how", ENCODED)
def test_a_description_in_any_encoding_is_read(tmp_path: Path, kind: str, how: str) -> None:
    text = {"urdf": small_urdf(), "xml": small_mjcf()}[kind]
    knee = "knöchel" if any(word in how for word in ("latin-1", "windows", "utf", "bom")) else "knee"
    made = imported(tmp_path, ENCODED[how](text.replace("knee", knee)), f"small.{kind}")
    robot = load_robot(made.folder / "robot.yaml")
    inferred = how in ("undeclared", "declares utf-8, is latin-1")
    assert f"left_{knee}" in robot.joint_names
    assert robot.nu == 10
    assert len(made.notes.said["doubts"]) == inferred


@pytest.mark.parametrize("kind", ["urdf", "xml"])
@pytest.mark.parametrize("content", [b"", b"\0\1\2\3" * 99, declared("klingon", small_urdf()).encode()])
def test_no_description_is_refused_by_its_name(tmp_path: Path, kind: str, content: bytes) -> None:
    with pytest.raises(ConfigError) as caught:
        imported(tmp_path, content, f"small.{kind}")
    assert f"small.{kind}" in caught.value.place


@pytest.mark.parametrize(
    "shape",
    [
        '<box size="0 0 0"/>',
        '<sphere radius="0"/>',
        '<cylinder radius="-0.1" length="0"/>',
        '<box size="0,1 0,1 0,1"/>',
        "<box/>",
        "<mesh/>",
        '<mesh filename="nothing.stl"/>',
        f'<mesh filename="{MESH}" scale="0 0 0"/>',
        f'<mesh filename="{MESH}" scale="1"/>',
        "<torus/>",
        "",
    ],
)
def test_a_visual_shape_never_stops_an_import(tmp_path: Path, shape: str) -> None:
    made = imported(tmp_path, small_urdf(f"{SOLID}<visual><geometry>{shape}</geometry></visual><visual/>"), "r.urdf")
    assert made.robot is not None
    assert not made.notes.said["doubts"]


NAMES = [
    MESH,
    "package://small/meshes/My%20Foot.STL",
    "package://another_name/meshes/My Foot.STL",
    r"package://small\meshes\My Foot.STL",
    "model://small/meshes/My Foot.STL",
    "$(find small)/meshes/My Foot.STL",
    "file://{folder}/meshes/My Foot.STL",
    "file:{folder}/meshes/My%20Foot.STL",
    "file:///home/somebody/small/meshes/My Foot.STL",
    "{folder}/meshes/My Foot.STL",
    r"meshes\My Foot.STL",
    "Meshes/my foot.stl",
    r"C:\Users\somebody\small\meshes\My Foot.STL",
    "file:///C:/Users/somebody/small/meshes/My%20Foot.stl",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_mesh_is_found_however_its_name_is_written(tmp_path: Path, name: str) -> None:
    mesh = f'<mesh filename="{name.format(folder=tmp_path / "small")}"/>'
    made = imported(tmp_path, small_urdf(f"<collision><geometry>{mesh}</geometry></collision>"), "urdf/r.urdf")
    assert made.robot is not None
    assert not made.notes.said["doubts"]
    for sole in made.robot.soles:
        np.testing.assert_allclose(np.ptp(sole.vertices, axis=0), [0.2, 0.1], atol=1e-4)


def test_the_literal_name_of_a_mesh_has_priority(tmp_path: Path) -> None:
    (tmp_path / "small" / "meshes").mkdir(parents=True)
    (tmp_path / "small" / "meshes" / "My%20Foot.STL").write_bytes(stl(np.eye(3)[None]))
    mesh = '<collision><geometry><mesh filename="meshes/My%20Foot.STL"/></geometry></collision>'
    assert imported(tmp_path, small_urdf(mesh), "r.urdf").notes.said["doubts"], "a triangle is no foot"


@pytest.mark.parametrize("value", ["0,02", "2,0", "${f}", "0.1 Nm", "", " ", "1e400", "nan", "0x10", "1_0", "1d3", "٣"])
def test_all_faults_of_a_file_are_reported_at_once(tmp_path: Path, value: str) -> None:
    text = small_urdf(
        f'<collision><origin xyz="0 {value or "x"} 0"/>{BOX}</collision>',
        limit=f'<limit lower="-2" upper="2" effort="{value}" velocity="8"/>',
    ).replace('<mass value="10.0"/>', f'<mass value="{value}"/>')
    text = text.replace('name="left_thigh"', 'name="left_hip"', 1)
    with pytest.raises(ConfigError) as caught:
        imported(tmp_path, text, "r.urdf")
    places = " ".join(fault.place for fault in caught.value.faults)
    for owner in ("joint 'left_hip_roll'", "link 'pelvis'", "link 'left_foot'", "r.urdf: link "):
        assert owner in places
    assert len({str(fault) for fault in caught.value.faults}) == len(caught.value.faults)


def test_spaces_around_a_number_are_not_part_of_it(tmp_path: Path) -> None:
    limit = '<limit lower=" -2" upper="2 " effort=" 60 " velocity="8"/>'
    robot = imported(tmp_path, small_urdf(limit=limit), "r.urdf").robot
    assert robot is not None
    assert robot.effort_limit[0] == 60.0


SLIDES = (("x", "prismatic", "1 0 0"), ("z", "prismatic", "0 0 1"), ("pitch", "continuous", "0 1 0"))


@pytest.mark.parametrize(
    "chain",
    [
        (("w", "floating", "0 0 1"),),
        (("v", "fixed", "0 0 1"), ("w", "floating", "0 0 1")),
        (("w", "planar", "0 1 0"),),
        SLIDES,
        (*SLIDES, ("v", "fixed", "0 0 1")),
    ],
)
@pytest.mark.parametrize("mass", [0.0, 1e-4])
def test_joints_between_world_and_trunk_are_a_floating_base(
    tmp_path: Path, chain: tuple[tuple[str, str, str], ...], mass: float
) -> None:
    links = ["world", *(f"base{i}" for i in range(1, len(chain))), "pelvis"]
    inertial = f'<inertial><mass value="{mass}"/><inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial>'
    limit = '<limit lower="-9" upper="9" effort="0" velocity="9"/>'
    more = "".join(f'<link name="{link}">{inertial}</link>' for link in links[:-1]) + "".join(
        f'<joint name="{name}" type="{kind}"><parent link="{a}"/><child link="{b}"/><axis xyz="{axis}"/>{limit}</joint>'
        for (name, kind, axis), a, b in zip(chain, links[:-1], links[1:], strict=True)
    )
    robot = imported(tmp_path, small_urdf(more=more), "r.urdf").robot
    assert robot is not None
    assert robot.nu == 10
    assert robot.free_flyer


@pytest.mark.parametrize("name", ["left knee", "left:knee", "left(knee", "left.knee", "left+knee", "[left]_knee"])
def test_the_name_of_a_joint_is_not_a_pattern(tmp_path: Path, name: str) -> None:
    text = small_urdf().replace("left_knee", name).replace("right_knee", name.replace("left", "right"))
    robot = imported(tmp_path, text, "r.urdf").robot
    assert robot is not None
    assert robot.effort_limit[robot.joint_names.index(name)] == 60.0


def meshed(name: str, compiler: str = "", more: str = "") -> str:
    """Return the small MJCF robot with feet of a mesh."""
    text = small_mjcf(foot='<geom type="mesh" mesh="sole" mass="0.8"/>')
    head = f'<compiler angle="degree" {compiler}/><asset><mesh name="sole" file="{name}"/>{more}</asset>'
    return text.replace('<compiler angle="degree"/>', head)


TEXTURE = '<texture name="t" type="2d" file="no.png"/><material name="m" texture="t"/>'
CUBE = '<texture name="t" type="cube" fileup="a.png" filedown="b.png"/><material name="m" texture="t"/>'


@pytest.mark.parametrize(
    "text",
    [
        meshed("My Foot.STL", 'meshdir="meshes"'),
        meshed("My Foot.STL", 'assetdir="meshes"'),
        meshed("C:/a/My Foot.STL", 'meshdir="meshes" strippath="true"'),
        meshed("C:/a/my foot.stl", 'meshdir="meshes" strippath="true"'),
        meshed("C:/a/my foot.stl", 'meshdir="Meshes" strippath="true"'),
        meshed(r"meshes\My Foot.STL"),
        meshed("my foot.stl", 'meshdir="Meshes"'),
        meshed("meshes/My%20Foot.STL"),
        meshed("package://small/meshes/My Foot.STL"),
        meshed(MESH, "", TEXTURE),
        meshed(MESH, "", CUBE),
        meshed(MESH, "", '<skin file="no.skn"/>'),
        meshed(MESH, "", '<hfield name="h" file="no.png" size="1 1 1 1"/>'),
    ],
)
@pytest.mark.parametrize("way", ["itself", "include", "attach"])
def test_an_mjcf_finds_its_meshes_and_needs_no_pictures(tmp_path: Path, text: str, way: str) -> None:
    attach = (
        '<mujoco><asset><model name="r" file="r.xml"/></asset><worldbody><frame pos="0 0 1"><attach model="r" '
        'body="pelvis" prefix="p_"/></frame></worldbody></mujoco>'
    )
    made = imported(tmp_path, text, "r.xml")
    if way != "itself":
        made = imported(
            tmp_path, {"include": '<mujoco><include file="r.xml"/></mujoco>', "attach": attach}[way], "s.xml"
        )
    assert made.robot is not None
    assert not made.notes.said["doubts"]
    assert made.robot.mass == pytest.approx(20.0)
    for sole in made.robot.soles:
        np.testing.assert_allclose(np.ptp(sole.vertices, axis=0), [0.2, 0.1], atol=1e-4)


def test_an_attached_file_keeps_its_own_folder_of_meshes_when_one_is_missing(tmp_path: Path) -> None:
    text = meshed("My Foot.STL", 'meshdir="../meshes"', '<mesh name="none" file="none.stl"/>')
    imported(tmp_path, small_urdf(), "r.urdf")
    (tmp_path / "small" / "parts").mkdir()
    (tmp_path / "small" / "parts" / "r.xml").write_text(
        text.replace('<site name="imu"', '<geom type="mesh" mesh="none"/><site name="imu"')
    )
    attach = (
        '<mujoco><asset><model name="r" file="parts/r.xml"/></asset><worldbody><attach model="r" body="pelvis" '
        'prefix="p_"/></worldbody></mujoco>'
    )
    made = imported(tmp_path, attach, "s.xml")
    assert made.robot is not None
    assert made.robot.mass == pytest.approx(20.0)
    assert len(made.notes.said["doubts"]) == 1
    assert "none.stl" in made.notes.said["doubts"][0]


def test_a_robot_that_cannot_do_without_a_missing_mesh_is_refused_with_its_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        imported(tmp_path, meshed("none.stl").replace(' mass="0.8"', ""), "r.xml")
    assert "none.stl" in str(caught.value)


def test_the_nearly_massless_bodies_of_a_planar_mjcf_are_its_base(tmp_path: Path) -> None:
    inertial = '<inertial pos="0 0 0" mass="1e-4" diaginertia="1e-8 1e-8 1e-8"/>'
    bodies = "".join(f'<body><joint type="slide" axis="{axis}"/>{inertial}' for axis in ("1 0 0", "0 0 1"))
    text = small_mjcf(base='<joint axis="0 1 0"/>').replace('<body name="pelvis"', f'{bodies}<body name="pelvis"')
    made = imported(tmp_path, text.replace("</worldbody>", "</body></body></worldbody>"), "r.xml")
    assert made.robot is not None
    assert made.robot.nu == 10
    assert made.robot.model.nv == 16
    assert made.robot.mass == pytest.approx(19.2)
