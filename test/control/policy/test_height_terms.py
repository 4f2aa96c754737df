"""Policies that see the ground: order and offset of their height scans, from the file to the network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from policy_support import Plain, deployment
from refusals import refusal

from bipedsim.config import from_mapping
from bipedsim.control.policy.config import PolicyConfig
from bipedsim.control.policy.fit import ResolvedPolicy, fit
from bipedsim.control.policy.terms import FARTHEST, TermInputs
from bipedsim.ground import make_ground
from bipedsim.model import load_robot
from bipedsim.sim import Simulator

ROBOT = load_robot("biped14")
SLOPE = make_ground({"field": {"size": [8.0, 8.0], "heights": [[-0.8, -0.8], [0.8, 0.8]], "cell": 8.0}}, "slope")


def fitted(folder: Path, inputs: int, *terms: dict[str, Any]) -> ResolvedPolicy:
    """Resolve a policy with these observations, whose network takes ``inputs`` values."""
    Plain(inputs, len(ROBOT.joint_names)).save(folder / "policy.onnx")
    values = deployment(network=str(folder / "policy.onnx"), observations=list(terms))
    return fit(from_mapping(PolicyConfig, values, "policy"), "policy", ROBOT, 0.02)


def test_terms_read_their_part_of_the_scan(tmp_path: Path) -> None:
    policy = fitted(
        tmp_path,
        187 + 3 + 15 + 2,
        {"term": "height_scan"},
        {"term": "base_ang_vel"},
        {"term": "measured_heights", "size": [0.4, 0.2], "offset": 0.3},
        {"term": "height_scanner", "points": [[1.0, 0.0], [0.0, 1.0]], "offset": 0.0},
    )
    terms = policy.policy.terms
    assert policy.height_points is not None
    assert [term.size for term in terms] == [187, 3, 15, 2]
    assert len(policy.height_points) == 187 + 15 + 2
    seen = Simulator(ROBOT, SLOPE, height_scan=policy.height_points).reset(ROBOT.q_nominal)
    view = TermInputs.at_rest(ROBOT, 1)
    view.seen = seen
    scan, heights, two = (terms[i].values(view, terms[i].joints) for i in (0, 2, 3))
    base = ROBOT.q_nominal[:3]
    x = np.arange(-0.8, 0.81, 0.1)
    np.testing.assert_allclose(scan, np.tile(base[2] - 0.2 * (base[0] + x) - 0.5, 11), atol=1e-9)
    expected = np.repeat(base[2] - 0.2 * (base[0] + np.arange(-0.2, 0.21, 0.1)) - 0.3, 3)
    np.testing.assert_allclose(heights, expected, atol=1e-9)
    np.testing.assert_allclose(two, base[2] - 0.2 * (base[0] + np.array([1.0, 0.0])), atol=1e-9)


def test_heights_beyond_the_edge_of_the_ground_are_finite(tmp_path: Path) -> None:
    policy = fitted(tmp_path, 2, {"term": "height_scan", "points": [[0.0, 0.0], [9.0, 0.0]], "offset": 0.5})
    (term,) = policy.policy.terms
    view = TermInputs.at_rest(ROBOT, 1)
    view.seen = Simulator(ROBOT, SLOPE, height_scan=policy.height_points).reset(ROBOT.q_nominal)
    assert np.isinf(view.seen.height_scan[1])
    assert term.values(view, term.joints)[1] == FARTHEST - 0.5


def test_a_policy_without_a_scan_asks_for_none(tmp_path: Path) -> None:
    assert fitted(tmp_path, 3, {"term": "base_ang_vel"}).height_points is None


@pytest.mark.parametrize("scale", [[1.0, 2.0], [1.0] * 186])
def test_scales_have_one_number_for_each_point(tmp_path: Path, scale: list[float]) -> None:
    with refusal(place="policy: observations[0]"):
        fitted(tmp_path, 187, {"term": "height_scan", "scale": scale})
