"""Tilted tiles: side by side in the plan view, limited in slope, at the heights of level tiles."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refusal

from bipedsim.ground import make_ground, tiles


def test_leaning_tiles_leave_no_gap_and_keep_their_heights() -> None:
    level = tiles(0.04, 0.4, 5, 4, seed=3).patches[1:]
    leaning = tiles(0.04, 0.4, 5, 4, seed=3, tilt=np.deg2rad(5.0)).patches[1:]
    angles = []
    for flat, patch in zip(level, leaning, strict=True):
        assert flat.region is not None
        assert patch.region is not None
        corners = patch.point_world + patch.region @ patch.rotation_world_patch[:, :2].T
        np.testing.assert_allclose(corners[:, :2], flat.point_world[:2] + flat.region, atol=1e-12)
        assert corners[:, 2].mean() == pytest.approx(flat.point_world[2], abs=1e-12)
        angles.append(np.degrees(np.arccos(patch.normal_world[2])))
    assert 4.0 < max(angles) <= 5.0
    normals = np.array([patch.normal_world[:2] for patch in leaning])
    assert (normals.min(axis=0) < -0.02).all()
    assert (normals.max(axis=0) > 0.02).all(), "towards every side"


def test_a_ground_file_has_them_in_degrees() -> None:
    written = {"height": 0.03, "size": 0.5, "columns": 3, "rows": 2, "start": 0.2, "seed": 7, "tilt_deg": 4.0}
    ground = make_ground({"tiles": written}, "here")
    same = tiles(0.03, 0.5, 3, 2, start=0.2, seed=7, tilt=np.deg2rad(4.0))
    for read, made in zip(ground.patches, same.patches, strict=True):
        np.testing.assert_array_equal(read.rotation_world_patch, made.rotation_world_patch)
        np.testing.assert_array_equal(read.point_world, made.point_world)


@pytest.mark.parametrize("tilt", [-0.01, np.pi / 4, np.nan])
def test_what_cannot_be_a_tilt_is_refused(tilt: float) -> None:
    with refusal(place="tiles: tilt"):
        tiles(0.02, 0.4, 2, 2, tilt=tilt)
