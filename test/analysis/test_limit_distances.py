"""The smallest distances to each limit, compared with a search over all ticks and joints of the runs."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

from bipedsim import RunConfig, run
from bipedsim.analysis import BRIEF, CARRIES, near_limits
from bipedsim.model import load_robot
from bipedsim.recording import Recording


@pytest.fixture(scope="module")
def squat() -> Recording:
    """Return half a second of a squat."""
    return run(RunConfig(scenario="squat", duration=0.5))[0]


def test_the_nearest_are_those_of_all_rows_and_joints(squat: Recording) -> None:
    robot = load_robot("biped14")
    rows: dict[str, list[tuple[float, str, float]]] = {"torque": [], "velocity": [], "position": []}
    for n, t in enumerate(squat.t):
        for i, name in enumerate(squat.joint_names):
            j = robot.joint_names.index(name)
            rows["torque"].append((abs(squat.joint_effort[n, i]) / robot.effort_limit[j], name, t))
            rows["velocity"].append((abs(squat.joint_velocity[n, i]) / robot.velocity_limit[j], name, t))
            position = squat.joint_position[n, i]
            left = min(position - robot.position_lower[j], robot.position_upper[j] - position)
            rows["position"].append((-left, name, t))
    found = near_limits(squat, joints=2)
    for quantity, judged in rows.items():
        mine = [one for one in found if one.quantity == quantity]
        assert len(mine) == 2
        worst = max(one[0] for one in judged)
        of = {(name, t) for value, name, t in judged if value == worst}
        assert (mine[0].of, mine[0].t) in of
        value = mine[0].share if quantity != "position" else -abs(mine[0].limit - mine[0].worst)
        assert value == pytest.approx(worst, rel=1e-12)
        assert not mine[0].beyond


def test_feet_are_judged_by_what_lasted_while_they_carried(squat: Recording) -> None:
    """A landing of 20 ms at the friction limit, an airborne foot and 60 ms of sliding: the last one counts."""
    t, weight = squat.t, squat.weight
    mine = copy.copy(squat)
    mine.wrench, mine.friction_used = squat.wrench.copy(), np.full_like(squat.friction_used, 0.1)
    mine.cop_margin = np.full_like(squat.cop_margin, 0.04)
    mine.wrench[:, :, 2] = 0.5 * weight
    lands, air, slides = (t > 0.1) & (t < 0.12), (t > 0.2) & (t < 0.27), (t > 0.3) & (t < 0.36)
    mine.friction_used[lands, 0], mine.cop_margin[lands, 0] = 1.0, 0.0
    mine.friction_used[air, 1], mine.wrench[air, 1, 2] = 1.0, 0.01 * weight
    mine.friction_used[slides, 1], mine.cop_margin[slides, 1] = 0.9, 0.002
    found = {(one.quantity, one.of): one for one in near_limits(mine)}
    left, right = mine.feet
    assert found["friction used", left].worst == 0.1
    assert found["friction used", right].worst == 0.9
    assert slides[np.searchsorted(t, found["friction used", right].t)]
    assert found["CoP to the edge", left].worst == 0.04
    assert found["CoP to the edge", right].worst == 0.002
    assert [one.of for one in near_limits(mine) if one.quantity == "friction used"] == [right, left]


@pytest.mark.parametrize("rows", [1, 2, 400])
def test_of_feet_it_is_the_value_of_the_best_moment_in_every_stretch(squat: Recording, rows: int) -> None:
    """Brute force, with missing rows and a jump in time."""
    random = np.random.default_rng(4)
    mine = copy.copy(squat)
    mine.t = squat.t.copy()
    mine.t[250:] += 1.0
    mine.friction_used = random.uniform(0.0, 1.0, squat.friction_used.shape)
    mine.wrench = squat.wrench.copy()
    mine.wrench[random.integers(0, len(mine.t), 8), 0, 2] = 0.0
    mine = mine.rows(np.arange(rows))
    loaded = mine.wrench[:, 0, 2] > CARRIES * mine.weight
    best = -np.inf
    for i in range(rows):
        # As many rows as there are in it, ends included.
        stretch = slice(i, i + min(rows, 1 + round(BRIEF / 1e-3)))
        t = mine.t[stretch]
        if i + len(range(*stretch.indices(10_000))) <= rows and loaded[stretch].all() and t[-1] - t[0] <= 2.0 * BRIEF:
            best = max(best, mine.friction_used[stretch, 0].min())
    (found,) = [one for one in near_limits(mine) if (one.quantity, one.of) == ("friction used", mine.feet[0])]
    assert found.worst == best


def test_a_joint_that_stands_at_its_stop_takes_nobodys_place() -> None:
    """The grippers of Talos rest at their joint limits."""
    recording = run(RunConfig(robot="talos", duration=0.3))[0]
    positions = [one for one in near_limits(recording) if one.quantity == "position"]
    assert [one.begins for one in positions] == [False, False, False, True, True]
    assert {one.of for one in positions[3:]} == {"gripper_left_joint", "gripper_right_joint"}
    assert all(one.at_it for one in positions[3:])
    # A joint that reaches its limit later, or exceeds it, is reported.
    gripper = recording.joint_names.index("gripper_left_joint")
    for value in (-0.1, 0.1):
        later = copy.copy(recording)
        later.joint_position = recording.joint_position.copy()
        later.joint_position[0 if value < 0.0 else -1, gripper] = value
        first = next(one for one in near_limits(later) if one.quantity == "position")
        assert (first.of, first.begins, first.beyond) == ("gripper_left_joint", False, value > 0.0)


def test_what_is_beyond_its_limit_is_told_and_what_is_unknown_left_out(squat: Recording) -> None:
    knee = squat.joint_names.index("l_knee")
    limits = load_robot("biped14")
    upper = limits.position_upper[limits.joint_names.index("l_knee")]
    beyond = copy.copy(squat)
    beyond.joint_position = beyond.joint_position.copy()
    beyond.joint_position[7, knee] = upper + 0.25
    beyond.friction_used = np.full_like(beyond.friction_used, math.nan)
    found = near_limits(beyond)
    (near, *_) = [one for one in found if one.quantity == "position"]
    assert (near.of, near.beyond, near.limit, near.unit) == ("l_knee", True, upper, "rad")
    assert near.worst - near.limit == pytest.approx(0.25)
    assert near.t == beyond.t[7]
    assert "friction used" not in {one.quantity for one in found}
