"""Where a foot can stand on one plane: soles clipped against brute force, patches side by side, friction."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from footing_support import BLADE, POINT, SOLE, Foot, region
from hypothesis import assume, given, settings, strategies as st
from physics_support import regular_polygon

from bipedsim.ground.ground import Ground
from bipedsim.ground.patch import Patch
from bipedsim.ground.support import BORDER, patch_friction
from bipedsim.numerics.polygons import MERGE


def area(polygon: np.ndarray) -> float:
    x, y = polygon.T
    return 0.5 * float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))


def inside_by(polygon: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return how far inside of a convex polygon the points (n, 2) are, by half-planes; negative outside."""
    edge = np.roll(polygon, -1, axis=0) - polygon
    edge /= np.linalg.norm(edge, axis=1)[:, None]
    offset = points[:, None] - polygon
    return (edge[:, 0] * offset[..., 1] - edge[:, 1] * offset[..., 0]).min(axis=1)


@st.composite
def convex_polygons(draw: st.DrawFn) -> np.ndarray:
    """Polygons on an ellipse, anywhere near the origin: convex by construction."""
    n = draw(st.integers(3, 8))
    steps = np.array(draw(st.lists(st.floats(0.3, 1.0), min_size=n, max_size=n)))
    phase = 2.0 * np.pi * np.cumsum(steps) / steps.sum() + draw(st.floats(0.0, 6.3))
    points = np.column_stack([draw(st.floats(0.02, 0.3)) * np.cos(phase), draw(st.floats(0.02, 0.3)) * np.sin(phase)])
    return points + np.array([draw(st.floats(-0.3, 0.3)), draw(st.floats(-0.3, 0.3))])


rotations = st.tuples(*[st.floats(-1.2, 1.2)] * 3).map(lambda w: pin.exp3(np.array(w)))
shifts = st.tuples(*[st.floats(-0.2, 0.2)] * 3).map(np.array)


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(convex_polygons(), convex_polygons(), rotations, rotations, shifts, st.integers(0, 2**32 - 1))
def test_the_support_is_what_lies_in_sole_and_region(
    sole: np.ndarray, border: np.ndarray, R: np.ndarray, axes: np.ndarray, p: np.ndarray, seed: int
) -> None:
    # Seen edge on, a sole has no part that a point could be in.
    assume(abs((axes.T @ R)[2, 2]) > 0.1)
    point = np.array([0.01, -0.02, 0.03])
    foot = Foot(Ground((Patch(point, axes, border),)), sole)
    support = foot.support(p, 0, R)
    points = np.random.default_rng(seed).uniform(sole.min(axis=0), sole.max(axis=0), (400, 2))
    on_patch = (points @ R[:, :2].T + p - point) @ axes[:, :2]
    both = np.minimum(inside_by(sole, points), inside_by(border, on_patch))
    if len(support) == 0:
        assert (both < 1e-4).all()
        return
    assert len(support) >= 3
    ours = inside_by(support, points)
    # Borders are exact to MERGE, which a tilted sole shows at up to ten times that.
    clear = np.abs(both) > 20.0 * MERGE
    assert ((ours > -20.0 * MERGE) | (both < 0.0))[clear].all()
    assert ((ours < 20.0 * MERGE) | (both > 0.0))[clear].all()
    edge = np.roll(support, -1, axis=0) - support
    assert (np.hypot(*edge.T) >= MERGE).all()
    after = np.roll(edge, -1, axis=0)
    assert (edge[:, 0] * after[:, 1] - edge[:, 1] * after[:, 0] > 0.0).all()


@settings(max_examples=200, deadline=None)
@given(convex_polygons(), rotations, rotations, shifts)
def test_a_sole_that_is_contained_keeps_its_bits(
    sole: np.ndarray, R: np.ndarray, axes: np.ndarray, p: np.ndarray
) -> None:
    wide = region(-3.0, 3.0, -3.0, 3.0)
    assert np.array_equal(Foot(Ground((Patch(region=wide, rotation_world_patch=axes),)), sole).support(p, 0, R), sole)
    assert np.array_equal(Foot(Ground.plane(p, axes), sole).support(p, 0, R), sole)


def test_a_sole_that_reaches_to_the_border_is_not_cut() -> None:
    for over in (0.0, 0.5 * MERGE):
        foot = Foot(Ground((Patch(region=region(-0.1 + over, 0.1, -0.05, 0.05)),)))
        assert np.array_equal(foot.support([0, 0, 0], 0), SOLE)
    cut = Foot(Ground((Patch(region=region(-0.1 + 2.0 * MERGE, 1.0, -1.0, 1.0)),))).support([0, 0, 0], 0)
    assert len(cut) == 4
    assert cut[:, 0].min() == pytest.approx(-0.1 + 2.0 * MERGE, abs=1e-15)


def test_cut_soles_keep_the_bits_of_what_is_left() -> None:
    foot = Foot(Ground.stairs(0.1, 0.3, 1, start=0.0))
    support = foot.support([0.05, 0.0, 0.1], 1)
    assert np.array_equal(support[0], SOLE[0])
    assert np.array_equal(support[-1], SOLE[3])
    np.testing.assert_allclose(support[1:3], [[-0.05, 0.05], [-0.05, -0.05]], atol=1e-15)


def test_a_corner_of_the_ground_under_the_sole() -> None:
    support = Foot(Ground((Patch(region=region(0.0, 1.0, 0.0, 1.0)),))).support([0, 0, 0], 0)
    np.testing.assert_allclose(support, [[0.1, 0.05], [0.0, 0.05], [0.0, 0.0], [0.1, 0.0]], atol=1e-15)
    whole = Foot(Ground((Patch(region=region(-0.01, 0.01, -0.01, 0.01)),))).support([0, 0, 0], 0)
    assert area(whole) == pytest.approx(4e-4)


def test_what_only_touches_does_not_support() -> None:
    beside = Foot(Ground((Patch(region=region(0.1, 1.0, -1.0, 1.0)),)))
    assert len(beside.support([0, 0, 0], 0)) == 0
    assert beside.patch([0, 0, 0]) == -1
    assert len(beside.support([0, 0, 0], -1)) == 0


def test_a_blade_is_cut_as_a_segment_and_a_point_is_in_or_out() -> None:
    ground = Ground((Patch(region=region(-0.05, 0.06, -1.0, 1.0)),))
    np.testing.assert_allclose(Foot(ground, BLADE).support([0, 0, 0], 0), [[0.06, 0.0], [-0.05, 0.0]], atol=1e-15)
    assert len(Foot(ground, BLADE).support([0.16, 0, 0], 0)) == 0
    assert np.array_equal(Foot(ground, POINT).support([0, 0, 0], 0), POINT)
    assert len(Foot(ground, POINT).support([0.1, 0, 0], 0)) == 0
    tiles = Ground((Patch(region=region(-1.0, -0.02, -1.0, 1.0)), Patch(region=region(0.03, 0.08, -1.0, 1.0))))
    np.testing.assert_allclose(Foot(tiles, BLADE).support([0, 0, 0], 0), [[0.08, 0.0], [-0.1, 0.0]], atol=1e-15)


def test_a_tilted_sole_is_cut_along_the_normal_of_the_patch() -> None:
    foot = Foot(Ground((Patch(region=region(-1.0, 0.05, -1.0, 1.0)),)))
    support = foot.support([0, 0, 0.1], 0, pin.utils.rotate("y", np.pi / 3.0))
    assert support[:, 0].max() == pytest.approx(0.1, abs=1e-12), "cos 60 deg of 0.1 m reach to the border"
    support = foot.support([0.02, 0, 0.1], 0, pin.utils.rotate("y", np.pi / 3.0))
    assert support[:, 0].max() == pytest.approx(0.06, abs=1e-12)


# --- patches of one plane ---


def test_tiles_of_one_plane_carry_a_foot_together() -> None:
    turned = pin.utils.rotate("z", 0.5 * np.pi)
    right = Patch(np.array([0.02, 0.0, 0.0]), turned, region(-1.0, 1.0, -1.0, 0.0))
    foot = Foot(Ground((Patch(region=region(-1.0, 0.02, -1.0, 1.0)), right)))
    assert foot.patch([0, 0, 0]) == 0
    for patch in (0, 1):
        assert np.array_equal(foot.support([0, 0, 0], patch), SOLE)


def test_a_foot_over_a_gap_stands_on_both_sides_of_it() -> None:
    ground = Ground((Patch(region=region(-1.0, -0.06, -0.02, 0.02)), Patch(region=region(0.04, 1.0, -0.03, 0.03))))
    support = Foot(ground).support([0, 0, 0], 0)
    expected = [[0.1, -0.03], [0.1, 0.03], [0.04, 0.03], [-0.1, 0.02], [-0.1, -0.02], [0.04, -0.03]]
    start = int(np.argmin(np.linalg.norm(support - expected[0], axis=1)))
    np.testing.assert_allclose(np.roll(support, -start, axis=0), expected, atol=1e-15)


def test_stepping_stones_never_need_more_room_than_there_is() -> None:
    stone = np.array(regular_polygon(5, 0.008))
    centres = [np.array([x, y]) for x in np.linspace(-0.2, 0.2, 15) for y in np.linspace(-0.1, 0.1, 9)]
    foot = Foot(Ground(tuple(Patch(region=stone + centre) for centre in centres)), regular_polygon(12, 0.09))
    support = foot.support([0, 0, 0], foot.patch([0, 0, 0]))
    assert 3 <= len(support) <= len(foot.out)
    assert (inside_by(foot.vertices, support) > -1e-12).all()
    assert area(support) > 0.9 * area(foot.vertices)


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(convex_polygons(), st.lists(convex_polygons(), min_size=2, max_size=4))
def test_support_of_several_patches_is_the_hull_of_the_parts(sole: np.ndarray, borders: list[np.ndarray]) -> None:
    foot = Foot(Ground(tuple(Patch(region=border) for border in borders)), sole)
    parts = [Foot(Ground((Patch(region=border),)), sole).support([0, 0, 0], 0) for border in borders]
    support = foot.support([0, 0, 0], 0)
    points = np.vstack(parts)
    if len(points) == 0:
        assert len(support) == 0
        return
    assert len(support) >= 3
    if len(support) < len(foot.out):
        assert (inside_by(support, points) > -5.0 * MERGE).all()
    for vertex in support:
        assert np.linalg.norm(points - vertex, axis=1).min() == 0.0


def test_friction_is_that_of_the_patch_under_the_centre() -> None:
    ice = Patch(region=region(0.0, 1.0, -1.0, 1.0), friction_static=0.1, friction_dynamic=0.05)
    foot = Foot(Ground((Patch(), ice)))
    assert foot.patch([-0.01, 0, 0]) == 0
    assert foot.patch([0.01, 0, 0]) == 1, "the ice lies on the floor"
    assert np.array_equal(foot.support([-0.01, 0, 0], 1), SOLE), "the floor goes on below the ice"
    border = 0.9 * BORDER
    assert [foot.patch([x, 0, 0], present) for x in (-border, border) for present in (0, 1)] == [0, 1, 0, 1]
    assert [foot.patch([x, 0, 0], present) for x in (-0.002, 0.002) for present in (0, 1)] == [0, 0, 1, 1]


def test_friction_table() -> None:
    ground = Ground((Patch(), Patch(friction_static=0.1, friction_dynamic=0.05), Patch(friction_static=0.0))).arrays()
    assert patch_friction(0.6, 0.5, 0, ground) == (0.6, 0.5)
    assert patch_friction(0.6, 0.5, 1, ground) == (0.1, 0.05)
    assert patch_friction(0.6, 0.5, 2, ground) == (0.0, 0.0)
    assert patch_friction(0.6, 0.5, -1, ground) == (0.6, 0.5)
