"""What came nearest to its limit, beside every row and joint of runs looked at one by one."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

from bipedsim import RunConfig, run
from bipedsim.analysis import near_limits
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
    margins = [one for one in found if one.quantity == "CoP to the edge"]
    assert sorted(one.of for one in margins) == sorted(squat.feet)
    assert margins[0].worst == np.nanmin(squat.cop_margin)
    friction = [one for one in found if one.quantity == "friction used"]
    assert friction[0].share == np.nanmax(squat.friction_used)


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
