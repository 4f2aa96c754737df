"""Looks of bodies: shapes have the volume of their formulas, missing files are reported, robots without shapes are
lines.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("viser", reason="viser, the extra `view`, is not installed")

from bipedsim.model import Robot, load_robot
from bipedsim.objects import ObjectConfig
from bipedsim.view.page.bodies import PLAIN, Look, ball, cone, looks, object_looks
from bipedsim.view.page.view_run import IN_FILE

LINK = '<link name="base_link"><visual><geometry>{}</geometry></visual></link>'


def volume(vertices: NDArray[np.float64], faces: NDArray[np.int64]) -> float:
    """Return the volume within triangles that are counter-clockwise from outside, by the divergence theorem."""
    a, b, c = (vertices[faces[:, i]] for i in range(3))
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6.0)


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("biped14")


def first(robot: Robot, geometry: str) -> Look:
    described = dataclasses.replace(robot, urdf_xml=f'<robot name="r">{LINK.format(geometry)}</robot>')
    return next(look for look in looks(described)[0] if look.name == "base_link")


@pytest.mark.parametrize(
    ("geometry", "expected"),
    [
        ('<box size="1 2 3"/>', 6.0),
        ('<sphere radius="0.5"/>', np.pi / 6.0),
        ('<ellipsoid radii="1 2 3"/>', 8.0 * np.pi),
        ('<cylinder radius="0.5" length="2"/>', 0.5 * np.pi),
        ('<capsule radius="0.5" length="2"/>', 0.5 * np.pi + np.pi / 6.0),
        ('<cone radius="0.5" length="2"/>', np.pi / 6.0),
    ],
)
def test_a_shape_has_its_volume_and_its_middle_in_its_frame(robot: Robot, geometry: str, expected: float) -> None:
    look = first(robot, geometry)
    assert volume(look.vertices, look.faces) == pytest.approx(expected, rel=0.04)
    np.testing.assert_allclose(look.vertices.min(axis=0), -look.vertices.max(axis=0), atol=1e-6)


def test_the_cone_of_friction_opens_upwards_from_its_tip() -> None:
    vertices, faces = cone(0.5, 1.0)
    assert volume(vertices, faces) == pytest.approx(np.pi / 12.0, rel=0.03)
    heights = vertices[:, 2]
    widths = np.hypot(vertices[:, 0], vertices[:, 1])
    # Its surface is mu z, within it only the middle of its mouth.
    assert (widths <= 0.5 * heights + 1e-9).all()
    assert widths[heights > 0.99].max() == pytest.approx(0.5)


def test_meshes_that_lack_are_named_and_replaced(robot: Robot) -> None:
    text = (
        '<robot name="r"><link name="base_link"><visual><geometry><mesh filename="nowhere.stl"/></geometry></visual>'
        '<collision><geometry><box size="1 1 1"/></geometry></collision></link></robot>'
    )
    found, missing, _ = looks(dataclasses.replace(robot, urdf_xml=text))
    assert missing == ("base_link: no file nowhere.stl",)
    assert [len(look.faces) for look in found if look.name == "base_link"] == [12]


def test_a_mesh_is_drawn_where_its_file_says(robot: Robot, tmp_path: Path) -> None:
    import trimesh

    trimesh.creation.box((2.0, 2.0, 2.0)).export(tmp_path / "box.stl")
    mesh = f'<mesh filename="file://{tmp_path}/box.stl" scale="0.5 1 1"/>'
    link = LINK.format(mesh).replace("<visual>", '<visual><origin xyz="1 0 0" rpy="0 0 1.5707963267948966"/>')
    found, missing, _ = looks(dataclasses.replace(robot, urdf_xml=f'<robot name="r">{link}</robot>'))
    look = next(look for look in found if look.name == "base_link")
    assert missing == ()
    # A turn about z takes the short side from x to y.
    np.testing.assert_allclose(look.vertices.min(axis=0), [0.0, -0.5, -1.0], atol=1e-6)
    np.testing.assert_allclose(look.vertices.max(axis=0), [2.0, 0.5, 1.0], atol=1e-6)
    assert len(look.vertices) == 24, "the corners of each side, so that edges are visible"
    assert look.colour == PLAIN


def test_colours_are_those_of_the_file(robot: Robot) -> None:
    assert (64, 76, 102) in {look.colour for look in looks(robot)[0]}


def test_a_robot_without_looks_is_drawn_as_lines() -> None:
    compass = load_robot("compass")
    found, missing, _ = looks(compass)
    assert {compass.model.names[look.joint_id] for look in found} == {look.name for look in found}
    assert len(found) >= 2
    assert missing == ()


@pytest.mark.long
@pytest.mark.parametrize("name", ["talos", "g1"])
def test_fine_meshes_are_thinned_and_keep_their_size(name: str) -> None:
    robot = load_robot(name)
    whole, _, _ = looks(robot, 10**9)
    thin, _, said = looks(robot, IN_FILE)
    assert 0.8 * IN_FILE < sum(len(look.faces) for look in thin) <= IN_FILE
    assert "thinned from" in said
    for a, b in zip(whole, thin, strict=True):
        assert np.abs(np.ptp(a.vertices, axis=0) - np.ptp(b.vertices, axis=0)).max() < 0.02


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (ObjectConfig(name="a", shape="box", mass=1.0, size=(0.1, 0.2, 0.3)), 0.006),
        (ObjectConfig(name="b", shape="ball", mass=1.0, radius=0.1), 4e-3 * np.pi / 3.0),
        (ObjectConfig(name="c", shape="cylinder", mass=1.0, radius=0.1, length=0.5), 5e-3 * np.pi),
    ],
)
def test_objects_have_their_volume(config: ObjectConfig, expected: float) -> None:
    found = sum(volume(look.vertices, look.faces) for look in object_looks(config))
    assert found == pytest.approx(expected, rel=0.04)


def test_a_ball_is_round() -> None:
    vertices, _ = ball(0.3)
    np.testing.assert_allclose(np.linalg.norm(vertices, axis=1), 0.3)
