"""Starts on rough height fields: no sole and no body is in the ground, and the robot stands."""

from __future__ import annotations

import numpy as np
import pytest

from bipedsim.control import make_controller
from bipedsim.errors import ConfigError
from bipedsim.ground import Ground, HeightField, get_ground, make_ground
from bipedsim.model import foot_poses, load_robot
from bipedsim.sim import Simulator, placed

ROBOT = load_robot("talos")


def rough(height: float, seed: int, slope: float = 0.0) -> Ground:
    """Return a field of 8 cm cells with random heights [m] on a slope towards +x."""
    heights = np.random.default_rng(seed).uniform(-height, height, (41, 41))
    return Ground(field=HeightField(heights + slope * 0.08 * (np.arange(41.0)[:, None] - 20.0), 0.08, yaw=0.3))


def clearance(sim: Simulator, q: np.ndarray) -> float:
    """Return the smallest height of a point of a sole above the field [m]; the points are 2 mm apart."""
    smallest = np.inf
    poses = foot_poses(ROBOT, q)
    for sole in ROBOT.soles:
        low, high = sole.vertices.min(axis=0), sole.vertices.max(axis=0)
        x, y = (a.ravel() for a in np.meshgrid(*(np.arange(a, b, 0.002) for a, b in zip(low, high, strict=True))))
        world = np.column_stack([x, y, 0.0 * x]) @ poses[sole.name].rotation.T + poses[sole.name].translation
        smallest = min(smallest, float((world[:, 2] - sim.ground.height(*world[:, :2].T)).min()))
    return smallest


@pytest.mark.parametrize("seed", range(4))
def test_soles_and_bodies_are_above_a_rough_field(seed: int) -> None:
    sim = Simulator(ROBOT, rough(0.03, seed))
    q = placed(sim, ROBOT.q_nominal)
    assert -1e-3 < clearance(sim, q) < 0.02
    assert sim.reactions.touching is not None
    assert max([0.0, *sim.reactions.touching.depths(q).values()]) < 1e-5
    sim.reset()
    np.testing.assert_array_equal(sim.start[0], q)


def test_the_mean_plane_is_that_of_the_slope_below_the_roughness() -> None:
    for slope in (0.0, 0.2):
        pose = rough(0.005, 3, slope).pose_on(0.0, 0.0)
        normal = np.array([-slope * np.cos(0.3), -slope * np.sin(0.3), 1.0])
        assert np.linalg.norm(pose.rotation[:, 2] - normal / np.linalg.norm(normal)) < 0.02
        assert abs(pose.translation[2]) < 0.003


@pytest.mark.parametrize("name", ["flat", "slope", "stairs", "tiles", "rough"])
def test_starts_elsewhere_are_those_of_the_ground(name: str) -> None:
    ground = get_ground(name)
    np.testing.assert_array_equal(placed(Simulator(ROBOT, ground), ROBOT.q_nominal), ground.place(ROBOT.q_nominal))
    level = make_ground({"field": {"sloped": {"slope": 0.1}}}, "field")
    q = placed(Simulator(ROBOT, level), ROBOT.q_nominal)
    np.testing.assert_allclose(q, level.place(ROBOT.q_nominal), atol=1e-12)


def test_a_robot_that_cannot_be_raised_out_of_the_ground_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bipedsim.sim.standing._sole_depth", lambda robot, ground, q: 0.01)
    with pytest.raises(ConfigError):
        placed(Simulator(ROBOT, rough(0.03, 0)), ROBOT.q_nominal)


@pytest.mark.long
def test_a_robot_stands_on_a_rough_field() -> None:
    sim = Simulator(ROBOT, rough(0.01, 1))
    observation = sim.reset()
    controller = make_controller("posture", ROBOT, dt=sim.control_dt)
    controller.reset(observation)
    for _ in range(1500):
        observation = sim.step(controller.update(observation).tau_joint)
    assert sim.q[2] > 0.95 * ROBOT.q_nominal[2]
