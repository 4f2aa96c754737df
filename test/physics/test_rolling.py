"""Balls: they roll without slipping, slip where friction does not suffice, and lose nothing by rolling."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from physics_support import G, special_robot

from bipedsim.ground.ground import Ground
from bipedsim.ground.patch import Patch
from bipedsim.model import Robot
from bipedsim.model.posture import place_base
from bipedsim.model.sole import Sole
from bipedsim.sim.simulator import Simulator

NOTHING = np.zeros(0)
H = 1e-3
RADIUS = 0.2
MU = 0.3
LIMIT = 3.5 * MU
"""Slope, as a tangent, above which a solid sphere slips: (1 + m r^2 / I) mu."""

pytestmark = pytest.mark.parametrize("model", ["one_step", "exact"])


@pytest.fixture(scope="module")
def ball() -> Robot:
    return special_robot("ball")


def downhill(angle: float) -> tuple[Ground, np.ndarray, np.ndarray]:
    """Return a plane that falls towards +x, the direction down it and its normal, both (x, z)."""
    ground = Ground.slope(-angle)
    axes = ground.patches[0].rotation_world_patch
    return ground, axes[[0, 2], 0], axes[[0, 2], 2]


def released(ball: Robot, model: str, angle: float, h: float = H) -> Simulator:
    """Return the ball at rest on a plane that falls by ``angle`` towards +x."""
    ground, _, normal = downhill(angle)
    sim = Simulator(ball, ground, contact=model, physics_dt=h)
    sim.reset(np.array([*(RADIUS * normal), 0.0]))
    return sim


def run(sim: Simulator, duration: float) -> None:
    for _ in range(round(duration / sim.physics_dt)):
        sim.step(NOTHING)


def test_ball_rolls_down_a_slope_by_five_sevenths(ball: Robot, model: str) -> None:
    """Velocities are exact, since the acceleration is constant; the path is off by a t h / 2."""
    angle = 0.2
    _, along, normal = downhill(angle)
    acceleration = 5.0 / 7.0 * G * np.sin(angle)
    errors = []
    for h in (4e-3, 2e-3, 1e-3):
        sim = released(ball, model, angle, h)
        run(sim, 1.0)
        assert sim.v[:2] @ along == pytest.approx(acceleration, rel=1e-12)
        assert RADIUS * sim.v[2] == pytest.approx(acceleration, rel=1e-12)
        assert sim.q[:2] @ normal == pytest.approx(RADIUS, abs=1e-12)
        assert sim.contact.friction_used[0] == pytest.approx(np.tan(angle) / LIMIT)
        assert sim.contact.state_changes == sim.contact.unresolved == 0
        errors.append(sim.q[:2] @ along - 0.5 * acceleration)
    np.testing.assert_allclose(errors, 0.5 * acceleration * np.array([4e-3, 2e-3, 1e-3]), rtol=1e-9)


def test_ball_slips_beyond_seven_halves_of_friction(ball: Robot, model: str) -> None:
    for factor, slips in ((0.999, False), (1.001, True)):
        angle = np.arctan(factor * LIMIT)
        sim = released(ball, model, angle)
        run(sim, 0.5)
        assert bool(sim.contact.sliding[0]) is slips
        _, along, _ = downhill(angle)
        pull, grip = np.sin(angle), MU * np.cos(angle) if slips else 2.0 / 7.0 * np.sin(angle)
        assert sim.v[:2] @ along == pytest.approx(0.5 * G * (pull - grip), rel=1e-9)
        assert sim.v[2] == pytest.approx(0.5 * 2.5 * G * grip / RADIUS, rel=1e-9)


@pytest.mark.parametrize(("speed", "spin"), [(2.0, -10.0), (1.0, -40.0), (0.0, 30.0), (3.0, 0.0)])
def test_a_ball_with_spin_ends_rolling(ball: Robot, model: str, speed: float, spin: float) -> None:
    """The angular momentum about the line of contact is conserved: the rolling speed is (5 v + 2 r w) / 7.

    Until it rolls, friction is mu m g and the slip v - r w falls by 7/2 mu g.
    """
    sim = Simulator(ball, contact=model)
    sim.reset(ball.q_nominal, np.array([speed, 0.0, spin]))
    slip = speed - RADIUS * spin
    until = abs(slip) / (3.5 * MU * G)
    run(sim, until - 2 * H)
    assert sim.contact.sliding[0]
    assert sim.v[0] == pytest.approx(speed - np.sign(slip) * MU * G * sim.t, rel=1e-9)
    run(sim, 4 * H)
    assert not sim.contact.sliding[0]
    rolling = (5.0 * speed + 2.0 * RADIUS * spin) / 7.0
    assert sim.v[0] == pytest.approx(rolling, rel=1e-12)
    assert RADIUS * sim.v[2] == pytest.approx(rolling, rel=1e-12)
    assert sim.contact.state_changes == 1


def test_rolling_on_the_flat_loses_nothing(ball: Robot, model: str) -> None:
    sim = Simulator(ball, contact=model)
    start = np.array([1.0, 0.0, 1.0 / RADIUS])
    sim.reset(ball.q_nominal, start)
    run(sim, 10.0)
    np.testing.assert_allclose(sim.v, start, rtol=1e-12, atol=1e-14)
    assert sim.q == pytest.approx([10.0, RADIUS, 10.0 / RADIUS], rel=1e-12)
    assert sim.contact.impulse[0, 2] == pytest.approx(ball.weight * H)
    assert np.linalg.norm(sim.contact.impulse[0, :2]) < 1e-15
    truth = sim.ground_truth()
    np.testing.assert_allclose(truth.cop_world, [10.0, 0.0, 0.0], atol=1e-12)
    np.testing.assert_array_equal(truth.pose_world_base, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])


def test_a_dropped_ball_stops_on_its_lowest_point(ball: Robot, model: str) -> None:
    sim = Simulator(ball, contact=model)
    sim.reset(ball.q_nominal + np.array([0.0, 0.3, 0.0]))
    lowest = np.inf
    for _ in range(500):
        sim.step(NOTHING)
        lowest = min(lowest, sim.q[1])
    assert lowest == pytest.approx(RADIUS, abs=1e-12)
    np.testing.assert_allclose(sim.v, 0.0, atol=1e-12)


def test_a_ball_in_space_rolls_down_the_steepest_line(model: str) -> None:
    """The normal and both axes of the ground are oblique, and the CoP is at the contact point of the ball."""
    robot = special_robot("ball_3d")
    angle, heading = 0.3, 0.7
    fall = np.array([np.cos(angle) * np.cos(heading), np.cos(angle) * np.sin(heading), -np.sin(angle)])
    axis = np.array([-np.sin(heading), np.cos(heading), 0.0])
    ground = Ground.plane([0.1, -0.2, 0.3], pin.exp3(angle * axis) @ pin.utils.rotate("z", 0.4))
    patch = ground.patches[0]
    errors = []
    for h in (4e-3, 2e-3, 1e-3):
        sim = Simulator(robot, ground, contact=model, physics_dt=h)
        start = patch.point_world + RADIUS * patch.normal_world
        sim.reset(np.array([*start, 0.0, 0.0, 0.0, 1.0]))
        run(sim, 0.6)
        travelled = sim.q[:3] - start
        errors.append(float(np.linalg.norm(travelled - 0.5 * 0.6**2 * 5.0 / 7.0 * G * np.sin(angle) * fall)))
        assert sim.contact.unresolved == 0
        assert abs(travelled @ patch.normal_world) < 0.1 * h
        below = sim.q[:3] - RADIUS * patch.normal_world
        np.testing.assert_allclose(sim.ground_truth().cop_world, below, atol=1e-12)
    assert 0.9 < np.polyfit(np.log([4e-3, 2e-3, 1e-3]), np.log(errors), 1)[0] < 1.1


def test_a_ball_rolls_off_a_step_onto_the_floor(ball: Robot, model: str) -> None:
    """It leaves the tread when its centre passes the nose, as a point foot does, and lands on its skin."""
    region = np.array([[-1.0, -1.0], [0.5, -1.0], [0.5, 1.0], [-1.0, 1.0]])
    ground = Ground((Patch(), Patch(np.array([0.0, 0.0, 0.3]), region=region)))
    sim = Simulator(ball, ground, contact=model)
    sim.reset(np.array([0.0, 0.3 + RADIUS, 0.0]), np.array([1.0, 0.0, 1.0 / RADIUS]))
    run(sim, 0.49)
    assert sim.q[1] == pytest.approx(0.3 + RADIUS, abs=1e-12)
    run(sim, 1.0)
    assert sim.q[0] > 1.4
    assert sim.q[1] == pytest.approx(RADIUS, abs=1e-12)
    assert sim.v[0] == pytest.approx(1.0, rel=1e-9)


def test_balls_of_any_size_stand_on_one_plane(model: str) -> None:
    """The base is placed so that each of four balls is in contact with z = 0. The simulator finds it at rest there."""
    robot = special_robot("ball_3d")
    sizes = {"front": (0.3, 0.0, 0.05), "left": (-0.2, 0.25, 0.10), "right": (-0.2, -0.25, 0.20)}
    soles = tuple(
        Sole(name, "ball", 1, pin.SE3(np.eye(3), np.array([x, y, -0.3])), np.zeros((1, 2)), 0.5, 0.5, radius)
        for name, (x, y, radius) in sizes.items()
    )
    q = place_base(robot.model, soles, robot.q_nominal)
    tripod = replace(robot, soles=soles, q_nominal=q, ankle_joint_ids=(1,) * 3, placement_joint_ankle=(pin.SE3(),) * 3)
    pose = pin.XYZQUATToSE3(q[:7])
    centres = [pose.act(sole.placement_joint_sole.translation)[2] for sole in soles]
    np.testing.assert_allclose(centres, [radius for *_, radius in sizes.values()], atol=1e-12)
    sim = Simulator(tripod, contact=model)
    run(sim, 0.1)
    np.testing.assert_allclose(sim.v, 0.0, atol=1e-10)
    assert sim.contact.impulse[:, 2].sum() / H == pytest.approx(robot.weight)
