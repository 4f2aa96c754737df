"""States in which a start puts the robot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from bipedsim.errors import ConfigError
from bipedsim.model import load_robot
from bipedsim.numerics import Array
from bipedsim.sim import Simulator
from bipedsim_ros.loop.operations import StartRequest, in_own_axes, object_state, read_request

ROBOTS = ("biped14", "talos_legs", "parallel_ankles")


def lowest(sim: Simulator) -> Array:
    """Return the height of the lowest vertex of each sole [m]."""
    poses = sim.ground_truth().pose_world_sole
    heights = []
    for sole, pose in zip(sim.robot.soles, poses, strict=True):
        points = np.column_stack([sole.vertices, np.zeros(sole.n_vertices)])
        heights.append((points @ pin.Quaternion(pose[3:]).matrix().T + pose[:3])[:, 2].min())
    return np.array(heights)


def started(name: str, **fields: Any) -> Simulator:
    sim = Simulator(load_robot(name))
    request = read_request("start", fields)
    assert isinstance(request, StartRequest)
    sim.reset(*request.state(sim))
    return sim


@pytest.mark.parametrize("name", ROBOTS)
def test_without_fields_the_robot_stands_as_after_a_reset(name: str) -> None:
    sim, other = started(name), Simulator(load_robot(name))
    other.reset()
    assert (sim.q.tobytes(), sim.v.tobytes()) == (other.q.tobytes(), other.v.tobytes())


@pytest.mark.parametrize("name", ROBOTS)
def test_a_lifted_leg_leaves_the_base_upright_and_the_other_foot_on_the_ground(name: str) -> None:
    robot = load_robot(name)
    j = next(i for i, joint in enumerate(robot.joint_names) if "knee" in joint or joint.endswith("_4_joint"))
    sim = started(name, positions={robot.joint_names[j]: float(robot.posture[j]) + 0.5})
    assert sim.q[robot.idx_q[j]] == pytest.approx(robot.posture[j] + 0.5)
    np.testing.assert_allclose(sim.q[3:7], robot.q_nominal[3:7], atol=1e-9)
    low, high = sorted(lowest(sim))
    assert low == pytest.approx(0.0, abs=1e-9)
    assert high > 0.01


def test_velocities_in_odom_axes() -> None:
    turned = [0.0, 0.0, 1.5, 0.0, 0.0, np.sin(0.4), np.cos(0.4)]
    twist = [1.0, 2.0, 3.0, 0.1, 0.2, 0.3]
    sim = started("biped14", base_pose=turned, base_twist=twist, velocities={"l_knee": 0.7})
    np.testing.assert_allclose(sim.q[:7], turned, atol=1e-12)
    rotation = pin.Quaternion(np.array(turned[3:])).matrix()
    np.testing.assert_allclose(rotation @ sim.v[:3], twist[:3], atol=1e-12)
    np.testing.assert_allclose(rotation @ sim.v[3:6], twist[3:], atol=1e-12)
    assert sim.v[sim.robot.idx_v[sim.robot.joint_names.index("l_knee")]] == 0.7
    state = object_state("ball", [*turned, *twist])
    np.testing.assert_allclose(state[7:], in_own_axes(np.array(turned[3:]), np.array(twist), "ball"))
    np.testing.assert_allclose(rotation @ state[7:10], twist[:3], atol=1e-12)


@pytest.mark.parametrize(
    "fields",
    [
        {"base_pose": [0.0] * 6},
        {"base_pose": [0.0] * 7},
        {"base_twist": [0.0] * 5},
        {"positions": {"tail": 0.1}},
        {"positions": {"l_knee": 99.0}},
        {"velocities": {"l_knee": "fast"}},
    ],
)
def test_a_start_that_cannot_be_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        started("biped14", **fields)
