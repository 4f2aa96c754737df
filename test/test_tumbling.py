"""Boxes that tumble onto soles of any number of vertices: nothing pulls, nothing is thrown, nothing falls through."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from physics_support import box_robot, regular_polygon

from bipedsim.contact import CONTACT_MODELS
from bipedsim.contact.modes import RECOVERY
from bipedsim.simulator import Simulator

H = 1e-3
MASS = 2.0
DROPS = 12


@pytest.mark.parametrize("n", [3, 8, 16, 64])
@pytest.mark.parametrize("model", list(CONTACT_MODELS))
def test_contact_pushes_and_takes_energy(tmp_path_factory: pytest.TempPathFactory, model: str, n: int) -> None:
    """Kinetic energy with contact against that of the same step without, as in the plastic impact of Moreau.

    Where no set of Table I is free of violations, a vertex may fall through the ground; taking that back at no more
    than RECOVERY is all that may add energy.
    """
    robot = box_robot(tmp_path_factory.mktemp("box"), regular_polygon(n, 0.15), mass=MASS)
    data = robot.model.createData()
    corners = np.column_stack([robot.soles[0].vertices, np.zeros(n)])
    rng = np.random.default_rng(n)
    sim = Simulator(robot, contact=model)
    for _ in range(DROPS):
        pose = pin.SE3(pin.exp3(np.array([*rng.uniform(-0.5, 0.5, 2), 0.3])), np.zeros(3))
        pose.translation[2] = 0.02 - (corners @ pose.rotation.T)[:, 2].min()
        linear = pose.rotation.T @ np.array([*rng.uniform(-1, 1, 2), rng.uniform(-2, 0)])
        sim.reset(pin.SE3ToXYZQUAT(pose), np.array([*linear, *rng.uniform(-3, 3, 3)]))
        for _ in range(500):
            q, v = sim.q.copy(), sim.v.copy()
            free = v + H * np.linalg.solve(
                pin.crba(robot.model, data, q), -pin.nonLinearEffects(robot.model, data, q, v)
            )
            before = sim.contact.unresolved
            contact = sim.advance(np.zeros(0))
            gain = pin.computeKineticEnergy(robot.model, data, q, sim.v)
            gain -= pin.computeKineticEnergy(robot.model, data, q, free)
            assert contact.impulse[0, 2] >= 0.0
            deepest = (corners @ pin.XYZQUATToSE3(q).rotation.T)[:, 2].min() + q[2]
            assert deepest > -5e-4
            sound = contact.unresolved == before and deepest > -1e-9
            assert gain <= (1e-12 if sound else 0.5 * MASS * RECOVERY**2)
