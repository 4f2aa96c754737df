"""Height fields: their triangles, their kernels, files and generators, compared with brute force and closed forms."""

from __future__ import annotations

import base64
import io
import math
import os
import re
import struct
import warnings
import zlib
from dataclasses import fields
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from footing_support import BLADE, SOLE, Foot
from hypothesis import given, settings, strategies as st
from PIL import Image
from PIL.TiffImagePlugin import ImageFileDirectory_v2
from refusals import refusal

from bipedsim.errors import ConfigError, InferredWarning
from bipedsim.ground import (
    Ground,
    HeightField,
    Patch,
    PlacedSole,
    bridge,
    get_ground,
    is_riser,
    make_ground,
    may_have_risers,
    surface,
    triangle_at,
)
from bipedsim.ground.bridging import FLUSH
from bipedsim.ground.terrains import FieldGrid, Terrains

RNG = np.random.default_rng(5)
ROUGH = Ground(field=HeightField(RNG.uniform(-0.01, 0.01, (41, 31)), 0.05, (0.3, -0.2)))


def brute_force_height(field: HeightField, x: float, y: float) -> float:
    """Return the height at (x, y) as the mean of the corners of the triangle there, with barycentric weights."""
    vertices, triangles = field.mesh()
    for a, b, c in vertices[triangles]:
        weights = np.linalg.solve(np.array([[*a[:2], 1.0], [*b[:2], 1.0], [*c[:2], 1.0]]).T, [x, y, 1.0])
        if weights.min() >= -1e-12:
            return float(weights @ [a[2], b[2], c[2]])
    return math.nan


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(x=st.floats(-0.8, 1.4), y=st.floats(-1.1, 0.7))
def test_heights_are_those_of_the_triangles(x: float, y: float) -> None:
    field = ROUGH.field
    assert field is not None
    expected = brute_force_height(field, x, y)
    assert ROUGH.height(x, y) == pytest.approx(expected, abs=1e-15, nan_ok=True)
    arrays = ROUGH.arrays()
    z, patch = surface(arrays, x, y)
    assert z == pytest.approx(expected, abs=1e-15, nan_ok=True)
    assert patch == triangle_at(arrays.field, x, y)
    assert (patch == -1) == math.isnan(expected)


def test_triangles_are_patches() -> None:
    field = ROUGH.field
    assert field is not None
    a = Ground((Patch(),), field=field).arrays()
    vertices, triangles = field.mesh()
    world = a.point[1:, None] + np.einsum("tab,tvb->tva", a.rotation[1:, :, :2], a.region[1:, :3])
    # The second triangle of a cell has the corners in another order than the mesh.
    np.testing.assert_allclose(world, vertices[triangles], atol=1e-15)
    np.testing.assert_allclose(
        a.rotation[1:] @ a.rotation[1:].transpose(0, 2, 1), np.tile(np.eye(3), (2400, 1, 1)), atol=1e-15
    )
    assert (a.plane[1:] == np.arange(1, 2401)).all(), "no two are in one plane"
    assert a.field.first == 1
    assert a.field.kinks.all()


@pytest.mark.parametrize("slope", [(0.0, 0.0), (0.2, -0.1), (1.0 / 3.0, 0.7)])
def test_a_plane_is_one_plane(slope: tuple[float, float]) -> None:
    grid = FieldGrid.of_size((2.0, 3.0), 0.1)
    arrays = Ground(field=HeightField(slope[0] * grid.x + slope[1] * grid.y, 0.1)).arrays()
    assert set(arrays.plane) == {0}
    assert not arrays.field.kinks[1:-1, 1:-1].any()


def test_depth_and_pose_are_those_of_the_plane_below() -> None:
    angle = 0.3
    grid = FieldGrid.of_size((2.0, 2.0), 0.1)
    ground, plane = Ground(field=HeightField(math.tan(angle) * grid.x, 0.1)), Ground.slope(angle)
    points = np.random.default_rng(0).uniform(-0.9, 0.9, (50, 3))
    np.testing.assert_allclose(ground.depth(points, 0.005), plane.depth(points, 0.005), atol=1e-15)
    assert ground.depth(np.array([[1.5, 0.0, -1.0]]), 0.005) == -np.inf
    ours, theirs = (g.pose_on(0.33, -0.21, 0.7) for g in (ground, plane))
    np.testing.assert_allclose(ours.homogeneous, theirs.homogeneous, atol=1e-15)
    with pytest.raises(ConfigError):
        ground.pose_on(1.5, 0.0)


@pytest.mark.parametrize("height", [-1.0, 0.5])
@pytest.mark.parametrize("edge", [0.01, 0.12, 0.22])
def test_a_hole_or_a_wall_near_the_start_does_not_tilt_it(height: float, edge: float) -> None:
    grid = FieldGrid.of_size((2.0, 2.0), 0.05)
    level = np.random.default_rng(1).uniform(-0.005, 0.005, grid.x.shape)
    whole = Ground(field=HeightField(level, 0.05)).pose_on(0.0, 0.0)
    pose = Ground(field=HeightField(np.where(grid.x > edge, height, level), 0.05)).pose_on(0.0, 0.0)
    assert np.arccos(pose.rotation[2, 2]) < np.radians(3.0)
    assert pose.translation[2] == pytest.approx(whole.translation[2], abs=0.01)


def test_on_the_tip_of_a_needle_the_start_is_level() -> None:
    heights = np.zeros((41, 41))
    heights[20, 20] = 1.0
    pose = Ground(field=HeightField(heights, 0.05)).pose_on(0.01, 0.0)
    assert pose.rotation[2, 2] == pytest.approx(1.0)
    assert pose.translation[2] == pytest.approx(0.8)


def test_field_and_patches_are_one_ground() -> None:
    field = HeightField(np.array([[0.1, 0.1], [-0.1, -0.1]]), 1.0)
    ground = Ground((Patch(),), field=field)
    assert ground.height(np.array([-0.5, -0.25, 0.25, 3.0]), 0.0) == pytest.approx([0.1, 0.05, 0.0, 0.0])
    arrays = ground.arrays()
    assert [surface(arrays, x, 0.1)[1] for x in (0.25, 3.0)] == [0, 0]
    assert surface(arrays, -0.25, 0.1)[1] > 0


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(
    at=st.tuples(st.floats(-0.6, 1.2), st.floats(-0.8, 0.4)),
    turn=st.tuples(st.floats(-0.15, 0.15), st.floats(-0.15, 0.15), st.floats(-3.0, 3.0)),
    high=st.floats(0.0, 0.01),
)
def test_a_sole_rests_on_a_face_of_the_roof(
    at: tuple[float, float], turn: tuple[float, float, float], high: float
) -> None:
    """The face is above every point of the field under the sole, on it at its corners, and has the lowest point."""
    R = pin.exp3(np.array([turn[0], turn[1], 0.0])) @ pin.exp3(np.array([0.0, 0.0, turn[2]]))
    foot = FOOT
    x, y = (a.ravel() for a in np.meshgrid(np.linspace(-0.1, 0.1, 41), np.linspace(-0.05, 0.05, 21)))

    def gaps(p: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the gaps along the normal of the sole, by bisection."""
        low, up = np.full(x.shape, -0.2), np.full(x.shape, 0.2)
        for _ in range(60):
            middle = 0.5 * (low + up)
            points = p + np.column_stack([x, y, -middle]) @ R.T
            above = points[:, 2] > ROUGH.height(points[:, 0], points[:, 1])
            low, up = np.where(above, middle, low), np.where(above, up, middle)
        return low

    p = np.array([*at, 0.1])
    p += (high - gaps(p, x, y).min()) * R[:, 2]
    patch = foot.patch(p, -1, R)
    assert patch >= 0
    foot.work.width[0] = 0.25
    sole = PlacedSole(R, p, foot.vertices, foot.n)
    patch, second, count = bridge(sole, -1, -1, np.array([0.0, 0.0, 1.0]), foot.ground, foot.work, foot.out)
    assert patch >= 0
    face = foot.work.face.copy()
    if second < 0:
        # The face is part of one triangle.
        n, on_plane = foot.ground.rotation[patch, :, 2], foot.ground.point[patch]
        face[:] = [*(-n @ R[:, :2] / (n @ R[:, 2])), n @ (p - on_plane) / (n @ R[:, 2])]
        count = len(foot.support(p, patch, R))
    assert count >= 3
    of_face = face[2] - face[0] * x - face[1] * y
    under = gaps(p, x, y)
    assert (of_face <= under + 2.0 * FLUSH).all()
    corners = foot.out[:count]
    on = face[2] - corners @ face[:2]
    np.testing.assert_allclose(gaps(p, *corners.T), on, atol=FLUSH)
    assert min(on) <= under.min() + 1e-9


FOOT = Foot(ROUGH)


@settings(max_examples=200, deadline=None)
@given(
    at=st.tuples(st.floats(-0.6, 0.6), st.floats(-0.6, 0.6)),
    turn=st.tuples(st.floats(-0.15, 0.15), st.floats(-0.15, 0.15), st.floats(-3.0, 3.0)),
    high=st.floats(0.001, 0.1),
    vertices=st.sampled_from([SOLE, BLADE]),
)
def test_a_foot_above_steep_cells_is_above_the_plane_of_its_polygon(
    at: tuple[float, float], turn: tuple[float, float, float], high: float, vertices: np.ndarray
) -> None:
    """The plane of a steep triangle under one corner is above the rest of the sole, which must not touch it there."""
    R = pin.exp3(np.array([turn[0], turn[1], 0.0])) @ pin.exp3(np.array([0.0, 0.0, turn[2]]))
    x, y = (a.ravel() for a in np.meshgrid(np.linspace(-0.1, 0.1, 81), np.linspace(-0.05, 0.05, 41)))
    sole = np.column_stack([x, 0.0 * y if len(vertices) == 2 else y, 0.0 * x]) @ R.T + [*at, 0.0]
    z = float((STEEP.height(*sole[:, :2].T) - sole[:, 2]).max()) + high
    foot = Foot(STEEP, vertices)
    position = np.array([*at, z])
    patch = foot.patch(position, rotation=R)
    assert patch >= 0
    if len(vertices) == 2 or high > 0.03:
        plane = foot.ground.plane[patch]
        polygon = foot.support(position, patch, R)
        world = np.column_stack([polygon, np.zeros(len(polygon))]) @ R.T + position
        heights = (world - foot.ground.point[plane]) @ foot.ground.rotation[plane][:, 2]
        assert heights.min(initial=np.inf) > -2e-3


STEEP = Ground(field=HeightField(np.random.default_rng(4).uniform(0.0, 0.04, (31, 31)), 0.08))

# --- files ---

BY_GDAL = (
    "eNrz9NRi4GBgYBBkYGBkZmAEsliBmBHKZgFiJihbAYiZoWyQDjYoG4QFGVnAdBuQEEUSF0MyRxyqxhaIZZDU2ELZzEAcjMTma+YB"
    "07eAuKmFh4ENSH8C4vXtzGC3KAEVbmxnYpADspOA7MYlTGA1DSAD4OCBPYS+YM9ADMiScASrFgp2hAkxgl3EDvYEiM0IpZlYNraL"
    "geQ5NrazM4gxsHGAxPuUGXhA9IsUFjCtqewaEhRsYamgrxAa4qtQlZ+XqmBs5FcDEa1h0LUEAoaKOckbElNSLK4cMFi4oJGR7Y1E"
    "o8vy9s7eIJmYM/MYNW4sVFXX3Muu94xBSeQpa0tLjYRUQ0NjYyMjw5IbXIwAgZs20A=="
)
"""A GeoTIFF of 5 x 4 pixels of 0.5 m by 0.25 m, EPSG:25832, Float32 with DEFLATE, predictor 3 and a NODATA value."""


def geotiff(path: Path, pixels: np.ndarray, tags: dict[int, object]) -> Path:
    """Write a GeoTIFF with Pillow."""
    info = ImageFileDirectory_v2()
    for tag, value in tags.items():
        info.tagtype[tag] = 2 if isinstance(value, str) else 3 if tag == 34735 else 12
        info[tag] = value  # type: ignore[assignment]
    Image.fromarray(pixels).save(path, tiffinfo=info)
    return path


def geo_keys(**values: int) -> tuple[int, ...]:
    """Return the directory of GeoKeys with short values."""
    numbers = {"model": 1024, "linear": 3076, "vertical": 4099}
    return (1, 1, 0, len(values), *(part for key, value in values.items() for part in (numbers[key], 0, 1, value)))


def test_a_geotiff_of_gdal_is_read(tmp_path: Path) -> None:
    (tmp_path / "h.tif").write_bytes(zlib.decompress(base64.b64decode(BY_GDAL)))
    field = get_ground(tmp_path / "h.tif").field
    assert field is not None
    assert (field.cell, field.cell_y) == (0.5, 0.25)
    expected = np.arange(20.0).reshape(4, 5) ** 2 / 64.0
    np.testing.assert_array_equal(field.heights, expected[::-1].T)
    # The first row of the file is in the north.
    assert field.height(-1.0, 0.375) == expected[0, 0]
    finer = make_ground({"field": {"file": str(tmp_path / "h.tif"), "cell": 0.1, "scale": 0.5}}, "here").field
    assert finer is not None
    assert (finer.cell, finer.cell_y, finer.heights[0, -1]) == (0.1, 0.1, 0.0)
    assert finer.heights[-1, 0] == 0.5 * expected[-1, -1]


def test_geotiffs_are_in_metres_north_up_and_whole(tmp_path: Path) -> None:
    pixels = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, -9999.0]], dtype=np.float32)
    right = {33550: (0.5, 0.2, 0.0), 34735: geo_keys(model=1, linear=9001, vertical=9001), 42113: "-32767"}
    matrix = [0.5, 0.0, 0.0, 7.0, 0.0, -0.2, 0.0, 8.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    by_matrix = {key: value for key, value in right.items() if key != 33550} | {34264: tuple(matrix)}
    for tags in (right, by_matrix):
        field = get_ground(geotiff(tmp_path / "h.tiff", pixels, tags)).field
        assert field is not None
        assert (field.cell, field.cell_y) == (0.5, 0.2)
        np.testing.assert_array_equal(field.heights, pixels[::-1].T)
    plain = get_ground(geotiff(tmp_path / "h.tif", (pixels > 3.0).astype(np.uint8), {})).field
    assert plain is not None
    assert (plain.cell, plain.cell_y, plain.heights.max()) == (0.05, 0.05, 1.0)
    rotated = (0.4, 0.3, *matrix[2:])
    for wrong in (
        {34735: geo_keys(model=2)},
        {34735: geo_keys(model=1, linear=9003)},
        {34735: geo_keys(model=1, vertical=9002)},
        {42113: "-9999"},
        {33550: (0.0, 0.2, 0.0)},
    ):
        with pytest.raises(ConfigError):
            get_ground(geotiff(tmp_path / "h.tif", pixels, right | wrong))
    with pytest.raises(ConfigError):
        get_ground(geotiff(tmp_path / "h.tif", pixels, by_matrix | {34264: rotated}))
    with pytest.raises(ConfigError):
        get_ground(geotiff(tmp_path / "h.tif", np.zeros((4, 4, 3), dtype=np.uint8), right))


def test_numpy_and_images_are_read(tmp_path: Path) -> None:
    heights = np.array([[0.0, 0.1, 0.2], [0.3, 0.4, 1.0]])
    np.save(tmp_path / "h.npy", heights)
    text = "field: {file: h.npy, scale: 2.0, offset: -0.1, cell: 0.5, centre: [1.0, 0.0], friction_static: 0.4}\n"
    (tmp_path / "g.yaml").write_text(text)
    ground = get_ground(tmp_path / "g.yaml")
    assert ground.field is not None
    assert ground.field.corner == (0.75, -0.5)
    np.testing.assert_allclose(ground.field.heights, 2.0 * heights - 0.1, atol=1e-15)
    assert set(ground.arrays().mu_static) == {0.4}
    for dtype, full in ((np.uint8, 255), (np.uint16, 65535)):
        # The last row of an image is at the smallest y.
        pixels = np.round(heights.T[::-1] * full).astype(dtype)
        Image.fromarray(pixels).save(tmp_path / "h.png")
        with pytest.warns(InferredWarning) as caught:
            field = get_ground(tmp_path / "h.png").field
        # The key to add replaces no other key of the user.
        assert re.findall(r"\w+: [\d.]+|\{", str(caught[0].message)) == ["scale: 1.0"]
        assert field is not None
        np.testing.assert_allclose(field.heights, heights, atol=0.5 / full)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            half = make_ground({"field": {"file": str(tmp_path / "h.png"), "scale": 0.5}}, "here").field
        assert half is not None
        np.testing.assert_array_equal(half.heights, 0.5 * field.heights)


def test_images_that_show_no_heights_are_refused(tmp_path: Path) -> None:
    grey = np.random.default_rng(0).integers(0, 256, (5, 7), dtype=np.uint8)
    solid = np.full_like(grey, 255)
    colour, faint = np.dstack([grey, grey, grey // 2]), np.dstack([grey, solid - 1])
    for name, pixels in {"colour": colour, "faint": faint}.items():
        Image.fromarray(pixels).save(tmp_path / f"{name}.png")
        with refusal(place="field: file"):
            make_ground({"field": {"file": str(tmp_path / f"{name}.png")}}, "here")
    Image.fromarray(colour).quantize(16).save(tmp_path / "palette.tif")
    with refusal(place="field: file"):
        make_ground({"field": {"file": str(tmp_path / "palette.tif")}}, "here")
    for name, pixels in {"grey": np.dstack([grey] * 3), "opaque": np.dstack([grey, solid])}.items():
        Image.fromarray(pixels).save(tmp_path / f"{name}.png")
        field = make_ground({"field": {"file": str(tmp_path / f"{name}.png"), "scale": 1.0}}, "here").field
        assert field is not None
        np.testing.assert_allclose(field.heights, grey[::-1].T / 255.0, atol=1e-12)


def test_16_bits_with_transparency_are_not_cut_to_8(tmp_path: Path) -> None:
    """Pillow reads such a file with 8 bits, and cannot write one."""
    rows = b"".join(b"\0" + struct.pack(">4H", 300, 65535, 40000, 65535) for _ in range(2))
    chunks = [(b"IHDR", struct.pack(">2I5B", 2, 2, 16, 4, 0, 0, 0)), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    parts = [struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks]
    (tmp_path / "deep.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))
    assert Image.open(tmp_path / "deep.png").size == (2, 2)
    with refusal(place="field: file"):
        make_ground({"field": {"file": str(tmp_path / "deep.png")}}, "here")


def test_files_that_are_too_large_take_no_memory(tmp_path: Path) -> None:
    header = io.BytesIO()
    shape = {"descr": "<f8", "fortran_order": False, "shape": (900_000, 900_000)}
    np.lib.format.write_array_header_1_0(header, shape)
    (tmp_path / "large.npy").write_bytes(header.getvalue())
    Image.new("L", (2000, 2000)).save(tmp_path / "large.png")
    np.save(tmp_path / "complex.npy", np.ones((3, 3), dtype=np.complex128))
    for name in ("large.npy", "large.png", "complex.npy"):
        with refusal(place="field: file"):
            make_ground({"field": {"file": str(tmp_path / name)}}, "here")


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    for name, content in {"a.npy": b"x", "b.png": b"x", "c.npy": None, "d.tif": b"x", "e.tif": None}.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(ConfigError) as caught:
            make_ground({"field": {"file": str(tmp_path / name)}}, "here")
        assert "here" in caught.value.place
    np.save(tmp_path / "bad.npy", np.array([[0.0, np.nan], [0.0, 0.0]]))
    for values in (
        {"file": str(tmp_path / "bad.npy")},
        {"heights": [[0.0, 1.0]]},
        {"heights": [[0.0, 1.0], [0.0]]},
        {},
        {"cell": 0.0, "stairs": {}},
        {"sloped": {}, "friction_dynamic": 0.3},
    ):
        with pytest.raises(ConfigError):
            make_ground({"field": values}, "here")


@pytest.mark.parametrize("name", [field.name for field in fields(Terrains)])
@pytest.mark.parametrize("shape", [(5, 1), (1, 5), (0, 5)])
def test_generators_on_a_line_are_refused(tmp_path: Path, name: str, shape: tuple[int, int]) -> None:
    np.save(tmp_path / "line.npy", np.zeros(shape))
    with refusal(place="field: heights"):
        make_ground({"field": {"file": str(tmp_path / "line.npy"), name: {}}}, "here")


def test_a_pipe_is_refused_without_a_wait(tmp_path: Path) -> None:
    for name in ("a.npy", "b.png"):
        os.mkfifo(tmp_path / name)
        with refusal(place="field: file"):
            get_ground(tmp_path / name)


def test_suffixes_have_any_letter_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "h.TIF").write_bytes(zlib.decompress(base64.b64decode(BY_GDAL)))
    Image.fromarray(np.zeros((3, 4), dtype=np.uint8)).save(tmp_path / "h.PNG")
    for name, shape in {"h.TIF": (5, 4), "h.PNG": (4, 3)}.items():
        field = make_ground({"field": {"file": name, "scale": 1.0}}, "here").field
        assert field is not None
        assert field.heights.shape == shape


def test_a_field_is_saved_with_its_ground() -> None:
    field = HeightField(ROUGH.field.heights, 0.05, (0.3, -0.2), 0.5, 0.4)  # type: ignore[union-attr]
    for ground in (Ground(field=field), Ground((Patch(), Patch(friction_static=0.2)), field=field), Ground.slope(0.1)):
        again = Ground.of_saved({name: array.tolist() for name, array in ground.saved().items()})
        for ours, theirs in zip(again.arrays()[:-1], ground.arrays()[:-1], strict=True):
            np.testing.assert_array_equal(ours, theirs)


# --- generators ---


@pytest.mark.parametrize("name", [field.name for field in fields(Terrains)])
def test_generators_repeat_and_start_level(name: str) -> None:
    made = [make_ground({"field": {name: {}, "seed": seed, "size": [6.0, 4.0]}}, "here").field for seed in (1, 1, 2)]
    first, again, other = (field.heights for field in made if field is not None)
    assert first.shape == (121, 81)
    assert np.isfinite(first).all()
    np.testing.assert_array_equal(first, again)
    seeded = name in ("random_uniform", "discrete_obstacles", "stepping_stones")
    assert np.array_equal(first, other) != seeded or name == "stepping_stones"


def heights(**generators: object) -> np.ndarray:
    field = make_ground({"field": {"cell": 0.1, "size": [6.0, 6.0], **generators}}, "here").field
    assert field is not None
    return field.heights


def test_shapes_of_generators() -> None:
    x = np.linspace(-3.0, 3.0, 61)
    stairs = heights(stairs={"step_width": 0.3, "step_height": 0.1})
    np.testing.assert_allclose(stairs[[0, 30, 31, 33, 34, 60], 7], [0.0, 0.0, 0.1, 0.1, 0.2, 1.0], atol=1e-12)
    np.testing.assert_allclose(heights(sloped={"slope": 0.2})[:, 3], 0.2 * x, atol=1e-12)
    pyramid = heights(pyramid_sloped={"slope": 0.2, "platform_size": 1.0})
    # Isaac Lab: height_max xx yy, cut off at the height of the corners of the platform.
    along = 1.0 - abs(x) / 3.0
    expected = 0.2 * 3.0 * np.minimum(np.outer(along, along), (2.5 / 3.0) ** 2)
    np.testing.assert_allclose(pyramid, expected, atol=1e-12)
    np.testing.assert_allclose(heights(pyramid_sloped={"slope": -0.2}), -expected, atol=1e-12)
    assert not heights(pyramid_sloped={"platform_size": 9.0}).any()
    steps = heights(pyramid_stairs={"step_width": 0.5, "step_height": -0.1, "platform_size": 1.0})
    np.testing.assert_allclose(steps[[0, 4, 5, 25, 30], 30], [0.0, 0.0, -0.1, -0.5, -0.5], atol=1e-12)
    rough = heights(random_uniform={"min_height": -0.02, "max_height": 0.03, "step": 0.01, "downsampled_scale": 0.2})
    np.testing.assert_allclose(rough[::2, ::2] * 100.0, np.round(rough[::2, ::2] * 100.0), atol=1e-9)
    assert (rough.min(), rough.max()) == pytest.approx((-0.02, 0.03))
    np.testing.assert_allclose(rough[1::2, ::2], 0.5 * (rough[:-1:2, ::2] + rough[2::2, ::2]), atol=1e-15)
    stones = heights(stepping_stones={"stone_size": 0.4, "stone_distance": 0.2, "max_height": 0.05, "depth": -0.7})
    assert set(stones[0]) <= {-0.7} | set(stones[stones >= -0.05])
    assert (stones[:, [5, 11]] == -0.7).all(), "gaps along x"
    assert (stones[25:36, 25:36] == 0.0).all()
    rectangles = heights(discrete_obstacles={"max_height": 0.1, "num_rects": 40})
    assert set(np.round(rectangles.ravel(), 9)) == {-0.1, -0.05, 0.0, 0.05, 0.1}


def test_waves_are_as_long_along_both_axes() -> None:
    """Isaac Lab: the wave length is the edge in y over the number of waves."""
    field = make_ground(
        {"field": {"cell": 0.1, "size": [6.0, 4.0], "wave": {"num_waves": 2, "amplitude": 0.1}}}, "here"
    )
    x, y = np.random.default_rng(0).integers([-30, -20], [31, 21], (50, 2)).T / 10.0
    expected = 0.05 * (np.sin(np.pi * x) + np.sin(np.pi * y))
    np.testing.assert_allclose(field.height(x * (1 - 1e-12), y * (1 - 1e-12)), expected, atol=1e-9)


def test_generators_are_added() -> None:
    both = heights(sloped={"slope": 0.2}, wave={"amplitude": 0.1}, offset=0.3)
    np.testing.assert_allclose(
        both, heights(sloped={"slope": 0.2}) + heights(wave={"amplitude": 0.1}) + 0.3, atol=1e-15
    )


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 100),
    height=st.floats(0.0, 0.1),
    where=st.tuples(st.floats(-2.0, 2.0), st.floats(-2.0, 2.0)),
    tilt=st.tuples(st.floats(-0.6, 0.6), st.floats(-0.6, 0.6)),
)
def test_no_riser_is_where_none_may_be(
    seed: int, height: float, where: tuple[float, float], tilt: tuple[float, float]
) -> None:
    """The bound of a block never excludes a triangle that is a riser for a sole, tilted or not."""
    z = np.random.default_rng(seed).uniform(0.0, height, (81, 81)) * (np.arange(81) > 40)[:, None]
    ground = Ground(field=HeightField(z, 0.05)).arrays()
    normal = pin.exp3(np.array([*tilt, 0.0]))[:, 2]
    reach = 0.3
    if may_have_risers(ground, *where, reach, normal[2]):
        return
    for x, y in np.random.default_rng(0).uniform(-reach, reach, (200, 2)) + where:
        triangle = triangle_at(ground.field, x, y)
        assert triangle < 0 or not is_riser(ground, triangle, *normal)


def test_risers_are_excluded_on_gentle_ground_only() -> None:
    """Slopes of 0.2 add up with the tilt of the sole; a step of one cell is a riser."""
    x = np.broadcast_to(0.05 * np.arange(81)[:, None], (81, 81))
    gentle = Ground(field=HeightField(0.2 * x, 0.05)).arrays()
    step = Ground(field=HeightField(np.where(x < 2.0, 0.0, 0.1), 0.05)).arrays()
    tilts = (0.0, 0.3, 0.5)
    assert [may_have_risers(gentle, 0.0, 0.0, 0.3, math.cos(tilt)) for tilt in tilts] == [False, False, True]
    assert may_have_risers(step, 0.0, 0.0, 0.3, 1.0)
    assert not may_have_risers(step, -1.5, 0.0, 0.3, 1.0)
