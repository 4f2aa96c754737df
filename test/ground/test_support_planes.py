"""The plane that a foot or a ball meets among several: on stairs, under a table, next to a riser."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from footing_support import SOLE, STAIRS, Foot, region

from bipedsim.ground.ground import Ground
from bipedsim.ground.patch import Patch
from bipedsim.ground.support import SUNK, TIE, UNDERSIDE


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
    # The toe reaches 2 cm into the step. Risers do not collide, and the foot does not move.
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


@pytest.mark.long
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


def test_a_ball_is_met_by_the_plane_a_radius_below_its_centre() -> None:
    step = Patch(np.array([0.0, 0.0, 0.1]), region=region(0.5, 1.5, -0.5, 0.5))
    ball = Foot(Ground((Patch(), step)), [[0.0, 0.0]], radius=0.2)
    assert ball.patch([1.0, 0.0, 0.31]) == 1, "above the step"
    assert ball.patch([0.49, 0.0, 0.31]) == 0, "its side is over the step, its lowest point is not"
    assert ball.patch([1.0, 0.0, 0.2]) == 0, "on the floor and in the riser: it is beside the step and not lifted by it"
    assert ball.patch([1.0, 0.0, 0.28], present=1) == 1, "sunk into the step that it was on"
    tilted = pin.utils.rotate("y", 2.0)
    np.testing.assert_array_equal(ball.support([1.0, 0.0, 0.31], 1, tilted), [[0.0, 0.0]])
