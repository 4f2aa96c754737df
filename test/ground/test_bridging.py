"""The support face of a sole, compared with all planes through three corners, and the condition for contact with
several planes.
"""

from __future__ import annotations

import itertools

import numpy as np
import pinocchio as pin
import pytest
from footing_support import SOLE, Foot, region
from hypothesis import given, settings, strategies as st

from bipedsim.ground import Ground, Patch, PlacedSole, bridge, face_axes, may_bridge, still_lies_on, tiles
from bipedsim.ground.bridging import FLUSH, STEEPEST_FACE

STEP = Ground((Patch(), Patch(np.array([0.02, 0.0, 0.02]), region=region(0.0, 0.5, -0.5, 0.5))))
WIDTH = float(np.hypot(0.2, 0.1))
LEVEL = np.array([0.0, 0.0, 1.0])


def look(foot: Foot, R: np.ndarray, p: np.ndarray, present: int = -1, second: int = -1) -> tuple[int, int, np.ndarray]:
    """Return the result of :func:`bridge` for a foot at rest: two patches and the polygon."""
    foot.patch(p, present, R)
    foot.work.width[0] = WIDTH
    sole = PlacedSole(R, p, foot.vertices, foot.n)
    patch, other, count = bridge(sole, present, second, LEVEL, foot.ground, foot.work, foot.out)
    return patch, other, foot.out[:count].copy()


def nearest_slope(corners: np.ndarray) -> float:
    """Return the least slope of a plane through the lowest corner and two others that is above none of the rest."""
    low = np.argmin(corners[:, 2])
    least = np.inf
    others = [i for i in range(len(corners)) if i != low]
    for i, j in itertools.combinations(others, 2):
        d = corners[[i, j]] - corners[low]
        if abs(np.linalg.det(d[:, :2])) < 1e-7:
            continue
        slope = -np.linalg.solve(d[:, :2], d[:, 2])
        above = corners[:, 2] - corners[low, 2] + (corners[:, :2] - corners[low, :2]) @ slope
        if above.min() >= -1e-9 and np.abs(slope).max() < STEEPEST_FACE:
            least = min(least, float(np.hypot(*slope)))
    return least


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10),
    x=st.floats(0.45, 1.3),
    y=st.floats(-0.25, 0.25),
    turn=st.tuples(st.floats(-0.3, 0.3), st.floats(-0.3, 0.3), st.floats(-3.0, 3.0)),
)
def test_the_face_is_the_nearest_of_all_planes_above_the_ground(
    seed: int, x: float, y: float, turn: tuple[float, float, float]
) -> None:
    foot = Foot(tiles(0.02, 0.15, 6, 4, start=0.5, seed=seed, tilt=0.07))
    R = pin.exp3(np.array([turn[0], turn[1], 0.0])) @ pin.exp3(np.array([0.0, 0.0, turn[2]]))
    # The point is just above the highest point of the ground under it, so no riser is next to it.
    p = np.array([x, y, 0.1])
    foot.patch(p, -1, R)
    p = p - (foot.work.clearance[0] - 1e-3) * LEVEL
    foot.patch(p, -1, R)
    look(foot, R, p)
    corners = foot.work.corner[: foot.work.corners[0]]
    expected = nearest_slope(corners)
    found = float(np.hypot(foot.work.face[0], foot.work.face[1]))
    members = foot.work.members[: foot.work.n_members[0]]
    above = corners[:, 2] - (foot.work.face[2] - corners[:, :2] @ foot.work.face[:2])
    assert above.min() >= -3.0 * FLUSH, "no corner is above the face"
    assert np.abs(above[members]).max() <= 2.0 * FLUSH
    assert found <= expected + 2e-3, "no plane is nearer to the sole"


def heel_down(lift: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return the pose with the heel ``lift`` [m] above the floor and the sole on the edge of the tile."""
    angle = np.arcsin((0.02 - lift) / np.hypot(0.12, 0.02 - lift))
    R = pin.utils.rotate("y", -angle)
    return R, np.array([0.02, 0.0, 0.02]) - R @ np.array([0.12 / np.cos(angle) - 0.1, 0.0, 0.0])


def test_toes_on_a_tile_and_heel_on_the_floor() -> None:
    R, p = heel_down()
    foot = Foot(STEP)
    patch, other, polygon = look(foot, R, p)
    assert {patch, other} == {0, 1}
    # The face is flush with the sole, from the heel to the edge. The overhanging part carries no load.
    np.testing.assert_allclose(foot.work.face, 0.0, atol=1e-12)
    assert polygon[:, 0].min() == pytest.approx(-0.1)
    assert polygon[:, 0].max() == pytest.approx(np.hypot(0.12, 0.02) - 0.1, abs=1e-12)
    axes, origin = np.zeros((3, 3)), np.zeros(3)
    face_axes(R, p, np.array([1.0, 0.0, 0.0]), foot.work.face, axes, origin)
    np.testing.assert_allclose(axes, R, atol=1e-12)
    assert still_lies_on(R, p, axes, origin, foot.work)


@pytest.mark.parametrize("lift", [2e-4, 2e-3, 0.02])
def test_while_the_heel_is_in_the_air_the_tile_is_the_ground(lift: float) -> None:
    R, p = heel_down(lift)
    foot = Foot(STEP)
    patch, other, _ = look(foot, R, p)
    assert other == -1
    assert patch == 1


def test_a_corner_that_lands_within_the_step_belongs_to_the_face() -> None:
    R, p = heel_down(2e-4)
    foot = Foot(STEP)
    foot.patch(p, -1, R)
    # The heel goes down by 0.3 mm about the edge.
    edge = np.hypot(0.12, 0.0198) - 0.1
    foot.work.ahead[:] = np.array([1.0, 0.0, -edge]) * 3e-4 / (0.1 + edge)
    patch, other, polygon = look(foot, R, p)
    assert {patch, other} == {0, 1}
    assert polygon[:, 0].min() == pytest.approx(-0.1)
    # The plane of the face is that of its corners where they are now, before the step.
    for x, top in ((-0.1, 0.0), (edge, 0.02)):
        height = p[2] + R[2, 0] * x - top
        assert foot.work.face[2] - foot.work.face[0] * x == pytest.approx(height / R[2, 2], abs=1e-6)


def test_one_plane_is_not_looked_at_twice() -> None:
    """A sole flat on a tile, with the floor 20 mm below, has no other face near it; neither has one over one plane."""
    foot = Foot(STEP)
    patch = foot.patch([0.2, 0.0, 0.02])
    assert not may_bridge(np.eye(3), patch, WIDTH, foot.ground, foot.work)
    single = Foot(Ground.flat())
    assert not may_bridge(np.eye(3), single.patch([0.0, 0.0, 0.0]), WIDTH, single.ground, single.work)
    R, p = heel_down()
    assert may_bridge(R, foot.patch(p, -1, R), WIDTH, foot.ground, foot.work)


def test_friction_is_that_of_the_patch_under_the_centre() -> None:
    R, p = heel_down()
    assert look(Foot(STEP), R, p)[0] == 0, "the centre is over the floor"
    # A bar under the middle, its front edge under the sole and the front end of that on the floor.
    bar = Foot(Ground((Patch(), Patch(np.array([0.0, 0.0, 0.03]), region=region(-0.02, 0.01, -0.5, 0.5)))))
    angle = np.arcsin(0.03 / 0.1)
    R = pin.utils.rotate("y", angle)
    edge = np.array([0.01, 0.0, 0.03])
    # The sole's front end is 0.1 m from its origin, and so is the floor from the edge along the sole.
    found = look(bar, R, edge)
    assert found[0] == 1, "the centre is over the edge of the bar"
    assert found[1] == 0
    assert look(bar, R, edge + 0.002 * R[:, 0], 1)[0] == 0, "and past it over the floor"


@pytest.mark.long
def test_soles_are_whole_on_one_plane() -> None:
    foot = Foot(STEP)
    patch, other, polygon = look(foot, np.eye(3), np.array([0.3, 0.0, 0.02]))
    assert (patch, other, len(polygon)) == (1, -1, 0)
    np.testing.assert_array_equal(foot.support([0.3, 0.0, 0.02], patch), SOLE)
