"""Which contacts a step begins with: stops that a joint gets to within it, however little the joints beside it move."""

from __future__ import annotations

import numpy as np
import pytest

from bipedsim.model import load_robot
from bipedsim.sim import Simulator

RESTITUTION = 0.8


@pytest.fixture(scope="module")
def lying() -> np.ndarray:
    """Return q (nq,) of a robot that lies on its back."""
    robot = load_robot("biped14")
    sim, q = Simulator(robot), robot.q_nominal.copy()
    q[2], q[3:7] = 0.15, (0.0, -np.sqrt(0.5), 0.0, np.sqrt(0.5))
    q[robot.idx_q] = np.clip(0.0, robot.position_lower + 0.1, robot.position_upper - 0.1)
    sim.reset(q)
    for _ in range(400):
        sim.step(-5.0 * sim.v[robot.idx_v])
    assert sim.reactions.touching is not None
    assert sim.reactions.touching.carries
    return sim.q.copy()


@pytest.mark.parametrize("name", ["r_hip_roll", "l_knee"])
def test_one_fast_joint_of_a_robot_that_lies_rebounds_from_its_stop(lying: np.ndarray, name: str) -> None:
    robot = load_robot("biped14")
    sim = Simulator(robot, hardware={"stop_restitution": RESTITUTION})
    j = robot.joint_names.index(name)
    q, v = lying.copy(), np.zeros(robot.model.nv)
    q[robot.idx_q[j]], v[robot.idx_v[j]] = robot.position_lower[j] + 0.012, -5.0
    sim.reset(q, v)
    speeds = []
    for _ in range(5):
        sim.step(np.zeros(robot.nu))
        assert sim.reactions.touching is not None
        assert sim.reactions.touching.carries
        speeds.append(float(sim.v[robot.idx_v[j]]))
    assert min(speeds) < -4.8
    # Gravity and the ground change it by a little in these milliseconds.
    assert max(speeds) == pytest.approx(-RESTITUTION * min(speeds), rel=0.02)
