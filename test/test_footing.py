"""Where a foot can stand: clipping against brute force, the choice of a patch on stairs, modes carried over borders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numba import njit
from numba.core.runtime import _nrt_python, rtsys
from physics_support import rectangle, regular_polygon

from bipedsim.contact import footing, polygons
from bipedsim.contact.footing import (
    BORDER,
    CARRY,
    SUNK,
    TIE,
    UNDERSIDE,
    carry_mode,
    carry_vertices,
    choose_patch,
    make_work,
    patch_friction,
    polygon_capacity,
    same_polygon,
    support_polygon,
)
from bipedsim.contact.modes import face_mode
from bipedsim.contact.polygons import MERGE
from bipedsim.ground import Ground, Patch

SOLE = np.array(rectangle(0.2, 0.1))
BLADE = np.array([[0.1, 0.0], [-0.1, 0.0]])
POINT = np.array([[0.02, 0.01]])


class Foot:
    """One sole over one ground."""

    def __init__(self, ground: Ground, vertices: Any = SOLE, radius: float = 0.0) -> None:
        self.ground = ground.arrays()
        self.vertices = np.array(vertices, dtype=np.float64)
        self.n = len(self.vertices)
        self.radius = radius
        self.work = make_work(self.ground, self.n)
        self.out = np.full((polygon_capacity(self.ground, self.n), 2), np.nan)

    def patch(self, position: Any, present: int = -1, rotation: Any = None) -> int:
        R = np.eye(3) if rotation is None else np.array(rotation)
        p = np.array(position, dtype=np.float64)
        return int(choose_patch(R, p, self.vertices, self.n, self.radius, present, self.ground, self.work))

    def support(self, position: Any, patch: int, rotation: Any = None) -> np.ndarray:
        R = np.eye(3) if rotation is None else np.array(rotation)
        p = np.array(position, dtype=np.float64)
        count = support_polygon(R, p, self.vertices, self.n, patch, self.ground, self.work, self.out)
        return self.out[:count].copy()


def region(x0: float, x1: float, y0: float, y1: float) -> np.ndarray:
    return np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])


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


# --- the choice between planes ---

STAIRS = Ground.stairs(rise=0.15, run=0.3, steps=3, start=0.5)


@pytest.mark.parametrize(
    ("position", "patch"),
    [
        ([0.0, 0.0, 0.0], 0),
        ([0.0, 0.0, 0.7], 0),
        ([0.45, 0.0, 0.2], 1),
        ([0.6, 0.0, 0.15], 1),
        ([0.75, 0.0, 0.4], 2),
        ([1.3, 0.0, 0.5], 3),
        ([1.49, 0.0, 0.45], 3),
        ([1.51, 0.0, 0.2], 0),
        ([0.6, 1.2, 0.1], 0),
    ],
)
def test_a_foot_above_stairs_meets_the_highest_step_below_it(position: list[float], patch: int) -> None:
    assert Foot(STAIRS).patch(position) == patch


def test_a_foot_beside_a_riser_does_not_pop_up() -> None:
    foot = Foot(STAIRS)
    # The toe reaches 2 cm into the step: risers do not collide, and the foot stays where it is.
    assert foot.patch([0.42, 0.0, 0.0], 0) == 0
    assert np.array_equal(foot.support([0.42, 0.0, 0.0], 0), SOLE)
    assert foot.patch([0.72, 0.0, 0.15], 1) == 1


def test_the_nose_of_a_step_carries_what_is_above_it() -> None:
    foot = Foot(STAIRS)
    assert foot.patch([0.53, 0.0, 0.15], 0) == 1
    support = foot.support([0.53, 0.0, 0.15], 1)
    assert support[:, 0].min() == pytest.approx(-0.03, abs=1e-15)
    assert foot.patch([0.39, 0.0, 0.15], 1) == 0, "past the nose it is the floor that comes next"


def test_only_what_is_above_a_step_is_judged() -> None:
    """A toe that points down in front of a step is far below its tread, where it is not above it."""
    foot = Foot(STAIRS)
    down = pin.utils.rotate("y", -0.5)
    assert foot.patch([0.55, 0.0, 0.20], -1, down) == 1
    lowest = 0.55 - 0.1 * np.cos(0.5)
    assert lowest < 0.5, "the heel hangs over the nose"


def test_under_a_table_and_on_it() -> None:
    table = Patch(np.array([0.0, 0.0, 0.7]), region=region(-1.0, 1.0, -1.0, 1.0))
    foot = Foot(Ground((Patch(), table)))
    assert [foot.patch([0, 0, z]) for z in (0.0, 0.5, 0.7 - 1.1 * UNDERSIDE, 0.7 - 0.9 * UNDERSIDE, 0.9)] == [
        0,
        0,
        0,
        1,
        1,
    ]


def test_a_foot_may_sink_into_what_it_stands_on() -> None:
    foot = Foot(STAIRS)
    assert [foot.patch([0.65, 0.0, 0.15 - depth], 1) for depth in (1.1 * UNDERSIDE, 0.9 * SUNK, 1.1 * SUNK)] == [
        1,
        1,
        0,
    ]
    assert foot.patch([0.65, 0.0, 0.15 - 1.1 * UNDERSIDE], 0) == 0


def test_a_plane_without_end_has_no_underside() -> None:
    foot = Foot(Ground((*Ground.slope(0.3).patches, *Ground.flat().patches)))
    assert foot.patch([-1.0, 0.0, -0.5]) == 1
    assert foot.patch([1.0, 0.0, -0.5]) == 0


def test_the_present_plane_wins_ties() -> None:
    level = Patch(region=region(-1.0, 0.0, -1.0, 1.0))
    higher = Foot(Ground((level, Patch(np.array([0.0, 0.0, 3.0 * TIE]), region=region(0.0, 1.0, -1.0, 1.0)))))
    assert [higher.patch([0, 0, 0], present) for present in (-1, 0, 1)] == [1, 1, 1]
    even = Foot(Ground((level, Patch(np.array([0.0, 0.0, 0.5 * TIE]), region=region(0.0, 1.0, -1.0, 1.0)))))
    assert [even.patch([0, 0, 0], present) for present in (-1, 0, 1)] == [1, 0, 1]


def test_the_normal_need_not_be_up() -> None:
    """The same stairs, turned in space with the foot, give the same answers."""
    turn = pin.SE3(pin.exp3(np.array([0.7, -1.9, 0.4])), np.array([0.3, -2.0, 1.0]))
    patches = [
        Patch(turn.act(patch.point_world), turn.rotation @ patch.rotation_world_patch, patch.region)
        for patch in STAIRS.patches
    ]
    turned, upright = Foot(Ground(tuple(patches))), Foot(STAIRS)
    for x in np.linspace(0.2, 1.7, 40):
        for z in (0.16, 0.31, 0.6):
            position = np.array([x, 0.05, z])
            patch = upright.patch(position)
            assert turned.patch(turn.act(position), -1, turn.rotation) == patch
            ours = turned.support(turn.act(position), patch, turn.rotation)
            np.testing.assert_allclose(ours, upright.support(position, patch), atol=1e-12)


# --- modes across a change of the support ---


def test_same_polygon() -> None:
    other = SOLE.copy()
    assert same_polygon(SOLE, 4, other, 4)
    other[2, 1] += 0.9 * MERGE
    assert same_polygon(SOLE, 4, other, 4)
    other[2, 1] += 0.2 * MERGE
    assert not same_polygon(SOLE, 4, other, 4)
    assert not same_polygon(SOLE, 4, SOLE, 3)


@pytest.mark.parametrize("polygon", [POINT, BLADE, SOLE, np.array(regular_polygon(7, 0.1))], ids=len)
def test_modes_of_the_same_polygon_stay(polygon: np.ndarray) -> None:
    n = len(polygon)
    modes = range(face_mode(n) + 1)
    assert [carry_mode(mode, polygon, n, polygon, n) for mode in modes] == list(modes)
    nowhere = np.zeros((1, 2))
    assert all(carry_mode(mode, polygon, n, nowhere, 0) == 0 for mode in modes)


def test_modes_across_a_border() -> None:
    # The heel, vertices 1 and 2, is cut off: the toe edge (3, 0) becomes (4, 0) of five vertices.
    cut = np.array([[0.1, 0.05], [-0.02, 0.05], [-0.05, 0.02], [-0.05, -0.05], [0.1, -0.05]])
    expected = {0: 0, 1: 1, 2: 0, 3: 0, 4: 5, 5: 6, 6: 0, 7: 9, 8: 10, 9: 11}
    assert {mode: carry_mode(mode, SOLE, 4, cut, 5) for mode in range(10)} == expected
    # And back: edges grow, the cut itself is no edge of the sole.
    expected = {0: 0, 1: 1, 2: 0, 3: 0, 4: 0, 5: 4, 6: 5, 7: 0, 8: 0, 9: 7, 10: 8, 11: 9}
    assert {mode: carry_mode(mode, cut, 5, SOLE, 4) for mode in range(12)} == expected


def test_modes_of_smaller_soles_and_points_that_moved() -> None:
    assert carry_mode(9, SOLE, 4, BLADE, 2) == 3
    assert carry_mode(9, SOLE, 4, POINT, 1) == 1
    assert carry_mode(3, BLADE, 2, SOLE, 4) == 9
    shifted = SOLE + np.array([0.9 * CARRY, 0.0])
    assert [carry_mode(mode, SOLE, 4, shifted, 4) for mode in range(10)] == list(range(10))
    shifted = SOLE + np.array([1.1 * CARRY, 0.0])
    assert [carry_mode(mode, SOLE, 4, shifted, 4) for mode in (1, 2, 6, 8, 9)] == [0, 0, 0, 0, 9]


def test_vertices_that_continue() -> None:
    cut = np.array([[0.1, 0.05], [-0.02, 0.05], [-0.05, 0.02], [-0.05, -0.05], [0.1, -0.05]])
    origin = np.full(5, 7)
    carry_vertices(SOLE, 4, cut, 5, origin)
    assert origin.tolist() == [0, -1, -1, -1, 3]


# --- balls ---


def test_a_ball_is_met_by_the_plane_a_radius_below_its_centre() -> None:
    step = Patch(np.array([0.0, 0.0, 0.1]), region=region(0.5, 1.5, -0.5, 0.5))
    ball = Foot(Ground((Patch(), step)), [[0.0, 0.0]], radius=0.2)
    assert ball.patch([1.0, 0.0, 0.31]) == 1, "above the step"
    assert ball.patch([0.49, 0.0, 0.31]) == 0, "its side is over the step, its lowest point is not"
    assert ball.patch([1.0, 0.0, 0.2]) == 0, "on the floor and in the riser: it is beside the step and not lifted by it"
    assert ball.patch([1.0, 0.0, 0.28], present=1) == 1, "sunk into the step that it was on"
    tilted = pin.utils.rotate("y", 2.0)
    np.testing.assert_array_equal(ball.support([1.0, 0.0, 0.31], 1, tilted), [[0.0, 0.0]])


# --- what compiled code must keep ---


@njit
def _many_steps(steps, R, p, vertices, n, ground, work, out, origin):
    total = 0
    for k in range(steps):
        p[0] = 0.01 * k
        patch = choose_patch(R, p, vertices, n, 0.0, k % 5 - 1, ground, work)
        count = support_polygon(R, p, vertices, n, patch, ground, work, out)
        total += carry_mode(k % 10, vertices, n, out, count) + same_polygon(vertices, n, out, count)
        carry_vertices(vertices, n, out, count, origin)
    return total


def test_nothing_is_allocated_in_a_step() -> None:
    foot = Foot(STAIRS)
    pose = np.eye(3), np.array([0.0, 0.0, 0.5])
    args = (*pose, foot.vertices, foot.n, foot.ground, foot.work, foot.out, np.zeros(8, dtype=np.int64))
    if hasattr(_nrt_python, "memsys_enable_stats"):
        _nrt_python.memsys_enable_stats()
    assert _many_steps(1, *args) >= 0
    allocated = []
    for steps in (1, 200):
        before = rtsys.get_allocation_stats().alloc
        _many_steps(steps, *args)
        allocated.append(rtsys.get_allocation_stats().alloc - before)
    assert allocated[1] == allocated[0], "each array that Python hands over is wrapped, and that is all"


def test_interpreted_and_compiled_code_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = Foot(Ground((*STAIRS.patches, Patch(np.array([0.0, 0.0, 0.15]), region=region(0.7, 0.75, -0.3, 0.02)))))
    positions = [np.array([x, y, z]) for x in np.linspace(0.3, 1.6, 27) for y in (0.0, 0.03) for z in (0.15, 0.3)]
    R = pin.utils.rotate("y", 0.05)
    ours = [(patch, compiled.support(p, patch, R)) for p in positions for patch in [compiled.patch(p, -1, R)]]
    for module in (polygons, footing):
        for name, function in vars(module).copy().items():
            if hasattr(function, "py_func"):
                monkeypatch.setattr(module, name, function.py_func)
    monkeypatch.setitem(globals(), "choose_patch", footing.choose_patch)
    monkeypatch.setitem(globals(), "support_polygon", footing.support_polygon)
    for p, (patch, support) in zip(positions, ours, strict=True):
        assert compiled.patch(p, -1, R) == patch
        np.testing.assert_allclose(compiled.support(p, patch, R), support, atol=1e-15)
