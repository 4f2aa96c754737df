"""What one solve may be believed: a set of modes whose equations are next to singular has no say in the step."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from motion_support import Bookkeeper, Judge
from physics_support import SELECTION_MODELS, box_robot

from bipedsim.contact.modes import RECOVERY
from bipedsim.model import Robot
from bipedsim.sim.simulator import Simulator

H = 1e-3
NOTHING = np.zeros(0)
DROPS = 60


def gain(robot: Robot, model: str, q: np.ndarray, v: np.ndarray) -> tuple[float, Simulator]:
    """Return the kinetic energy [J] that contact adds in one step or a part of it, and the simulator after it."""
    sim = Simulator(robot, contact=model, physics_dt=H)
    sim.reset(q, v)
    judge = Judge(sim, Bookkeeper(robot, h=H))
    sim.advance(NOTHING)
    return max(judge.gains), sim


@pytest.mark.parametrize("model", SELECTION_MODELS)
def test_a_set_that_breaks_its_own_constraints_is_not_taken(tmp_path: Path, model: str) -> None:
    case: dict[str, Any] = json.loads(Path(__file__).with_name("energy_gain.json").read_text())
    robot = box_robot(
        tmp_path, case["sole_vertices"], case["mass"], case["com"][2], case["inertia_diag"], 2.0, 2.0
    )
    added, sim = gain(robot, model, np.array(case["q"]), np.array(case["v"]))
    assert added <= 0.0
    assert np.abs(sim.v).max() < 10.0


def thrown(folder: Path, rng: np.random.Generator) -> tuple[Robot, np.ndarray, np.ndarray]:
    """Return a random body, tilted and thrown onto the ground with a corner of its sole just above it or in it."""
    n = int(rng.integers(3, 12))
    angles = 2.0 * np.pi / n * (np.arange(n) + rng.uniform(0.0, 0.8, n))
    points = rng.uniform(0.05, 0.2) * np.column_stack([np.cos(angles), rng.uniform(0.4, 1.0) * np.sin(angles)])
    vertices: Sequence[Sequence[float]] = points.tolist()
    height, mass = rng.uniform(0.02, 0.4), rng.uniform(0.5, 8.0)
    inertia = mass * rng.uniform(0.03, 0.12, 3) ** 2
    # A body's inertias obey the inequality of the triangle.
    inertia[2] = min(max(inertia[2], abs(inertia[0] - inertia[1]) + 1e-6), inertia[0] + inertia[1])
    mu = rng.uniform(0.1, 2.0)
    robot = box_robot(folder, vertices, mass, height, inertia.tolist(), mu, mu)
    rotation = pin.exp3(np.array([*rng.uniform(-0.5, 0.5, 2), rng.uniform(-3.0, 3.0)]))
    lowest = (np.column_stack([points, np.zeros(n)]) @ rotation.T)[:, 2].min()
    pose = pin.SE3(rotation, np.array([0.0, 0.0, rng.uniform(-2e-4, 1e-3) - lowest]))
    v = np.concatenate([rng.uniform(-1.0, 1.0, 3), rng.uniform(-7.0, 7.0, 3)])
    return robot, pin.SE3ToXYZQUAT(pose), v


@pytest.mark.parametrize("model", SELECTION_MODELS)
def test_no_drop_gains_energy(tmp_path: Path, model: str) -> None:
    """Beyond what lifts a corner out of the ground, at RECOVERY at most."""
    rng = np.random.default_rng(5)
    for _ in range(DROPS):
        robot, q, v = thrown(tmp_path, rng)
        added, sim = gain(robot, model, q, v)
        impulse = sim.contact.impulse[0]
        assert added <= RECOVERY * impulse[2] + 1e-9
        assert impulse[2] >= 0.0
        assert np.hypot(*impulse[:2]) <= robot.soles[0].friction_static * impulse[2] * (1.0 + 1e-9)
