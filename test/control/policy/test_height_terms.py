"""Policies that see the ground: order and offset of their height scans, from the file to the network."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bipedsim.config import from_mapping
from bipedsim.control.policy.config import PolicyConfig
from bipedsim.control.policy.fit import ResolvedPolicy, fit
from bipedsim.errors import ConfigError
from bipedsim.ground import make_ground
from bipedsim.model import load_robot
from bipedsim.sim import Simulator

ROBOT = load_robot("biped14")
SLOPE = make_ground({"field": {"size": [8.0, 8.0], "heights": [[-0.8, -0.8], [0.8, 0.8]], "cell": 8.0}}, "slope")


def fitted(*terms: dict[str, Any]) -> ResolvedPolicy:
    """Resolve a policy with these observations; its network only counts them."""
    names = list(ROBOT.joint_names)
    values = {"network": "n.onnx", "joints": names, "stiffness": 1.0, "damping": 1.0, "observations": list(terms)}
    config = from_mapping(PolicyConfig, values, "policy")

    class Counting:
        input_size = None

        def reset(self) -> None: ...

        def __call__(self, _: np.ndarray) -> np.ndarray:
            return np.zeros(len(names), dtype=np.float32)

    return fit(config, "policy", ROBOT, 0.02, lambda: Counting())  # type: ignore[arg-type,return-value]


def test_terms_read_their_part_of_the_scan() -> None:
    policy = fitted(
        {"term": "height_scan"},
        {"term": "base_ang_vel"},
        {"term": "measured_heights", "size": [0.4, 0.2], "offset": 0.3},
        {"term": "height_scanner", "points": [[1.0, 0.0], [0.0, 1.0]], "offset": 0.0},
    )
    assert policy.height_points is not None
    assert [term.size for term in policy.terms] == [187, 3, 15, 2]
    assert len(policy.height_points) == 187 + 15 + 2
    seen = Simulator(ROBOT, SLOPE, height_scan=policy.height_points).reset(ROBOT.q_nominal)
    view = SimpleNamespace(seen=seen)
    scan, heights, two = (policy.terms[i].values(view, policy.terms[i].joints) for i in (0, 2, 3))  # type: ignore[arg-type]
    base = ROBOT.q_nominal[:3]
    x = np.arange(-0.8, 0.81, 0.1)
    np.testing.assert_allclose(scan, np.tile(base[2] - 0.2 * (base[0] + x) - 0.5, 11), atol=1e-9)
    expected = np.repeat(base[2] - 0.2 * (base[0] + np.arange(-0.2, 0.21, 0.1)) - 0.3, 3)
    np.testing.assert_allclose(heights, expected, atol=1e-9)
    np.testing.assert_allclose(two, base[2] - 0.2 * (base[0] + np.array([1.0, 0.0])), atol=1e-9)


def test_a_policy_without_a_scan_asks_for_none() -> None:
    assert fitted({"term": "base_ang_vel"}).height_points is None


@pytest.mark.parametrize("scale", [[1.0, 2.0], [1.0] * 186])
def test_scales_have_one_number_for_each_point(scale: list[float]) -> None:
    with pytest.raises(ConfigError):
        fitted({"term": "height_scan", "scale": scale})
