"""Parts of the soles that the ankles can hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bipedsim.control.walking.ankle_limits import ankles_limit_soles, sole_polygons
from bipedsim.errors import ConfigError
from bipedsim.model import Robot, load_robot, sole_placements


def weak(factor: float) -> Robot:
    """Return talos with the effort limits of its ankles times ``factor``."""
    robot = load_robot("talos")
    limits = robot.effort_limit.copy()
    for i, name in enumerate(robot.joint_names):
        limits[i] *= factor if name.endswith(("5_joint", "6_joint")) and name.startswith("leg") else 1.0
    return replace(robot, effort_limit=limits)


def test_without_a_limit_or_with_strong_ankles_the_sole_is_whole() -> None:
    robot = load_robot("talos")
    for share in (0.0, 1.0):
        for sole, polygon in zip(robot.soles, sole_polygons(robot, share), strict=True):
            assert_allclose(np.sort(polygon, axis=0), np.sort(sole.vertices - sole.centre, axis=0), atol=1e-12)
    assert not ankles_limit_soles(robot, 1.0)


def test_the_weight_at_the_edge_of_the_usable_part_loads_the_ankle_pitch_by_its_share() -> None:
    robot, share = weak(0.3), 0.8
    assert ankles_limit_soles(robot, share)
    data = robot.model.createData()
    places = sole_placements(robot.model, data, robot.soles, robot.q_nominal)
    for sole, place, polygon in zip(robot.soles, places, sole_polygons(robot, share), strict=True):
        ankle = robot.model.joints[robot.model.parents[sole.joint_id]]
        limit = robot.effort_limit[list(robot.idx_v).index(ankle.idx_v)]
        across = data.oMi[robot.model.parents[sole.joint_id]].translation
        points = np.array([place.act(np.append(point + sole.centre, 0.0)) for point in polygon])
        torque = robot.weight * np.abs(points[:, 0] - across[0])
        assert torque.max() == pytest.approx(share * limit, rel=1e-3)


def test_ankles_without_torque_leave_nothing_of_the_soles() -> None:
    with pytest.raises(ConfigError):
        sole_polygons(weak(1e-9), 0.5)


def test_passive_ankles_do_not_limit_the_soles() -> None:
    robot = load_robot("parallel_ankles")
    assert not ankles_limit_soles(robot, 0.01)
