"""Which bodies get into the ground in a step, against all of their points and velocities by pinocchio."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from bipedsim.dynamics import Dynamics
from bipedsim.dynamics.bodies import touches_ground
from bipedsim.errors import ConfigError
from bipedsim.ground import Ground
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array, call
from bipedsim.sim import Simulator

H = 1e-3


def lowest(robot: Robot, d: Dynamics, q: Array, v: Array, normal: Array) -> tuple[float, float]:
    """Return how far the lowest point of any body is from the ground, and will be after a step with ``v`` [m]."""
    model, data, b = robot.model, robot.model.createData(), d.bodies
    pin.forwardKinematics(model, data, q, v)
    joints = [int(joint) for joint in b.joint[b.body]]
    rotation = np.array([data.oMi[joint].rotation for joint in joints])
    motions = np.array([pin.getVelocity(model, data, joint, pin.WORLD).vector for joint in joints])
    axis = np.einsum("pij,pj->pi", rotation, b.axis)
    across = normal - axis * (axis @ normal)[:, None]
    across /= np.maximum(np.linalg.norm(across, axis=1), 1e-300)[:, None]
    points = np.array([data.oMi[joint].translation for joint in joints]) + np.einsum("pij,pj->pi", rotation, b.point)
    points -= b.ball[:, None] * normal + b.ring[:, None] * across
    gaps = points @ normal
    rates = (motions[:, :3] + np.cross(motions[:, 3:], points)) @ normal
    return float(gaps.min()), float((gaps + H * rates).min())


@pytest.mark.long
@pytest.mark.parametrize("name", ["biped14", "g1"])
@pytest.mark.parametrize("angle", [0.0, 0.2])
def test_a_body_touches_where_one_of_its_points_does(name: str, angle: float) -> None:
    """The test of a bounding box agrees with the test of the points inside it."""
    robot = load_robot(name)
    ground = Ground.slope(angle)
    normal = ground.patches[0].normal_world
    d = Dynamics(robot, ground, H, shapes=robot.shapes.shapes)
    rng = np.random.default_rng(1)
    found = []
    for _ in range(100):
        turn = np.concatenate([np.zeros(3), rng.normal(size=3), 0.2 * rng.normal(size=robot.model.nv - 6)])
        q = pin.integrate(robot.model, robot.q_nominal, turn)
        gap, _ = lowest(robot, d, q, np.zeros(robot.model.nv), normal)
        q[:3] += (rng.uniform(0.0, 2e-3) - gap) * normal
        v, x = rng.uniform(0.0, 2.0) * rng.normal(size=(2, robot.model.nv))
        d.project(q, v, np.zeros(robot.nu))
        d.change[:] = x
        touches = call(touches_ground, d.bodies, d.tree, ground.arrays(), v, H)
        _, ahead = lowest(robot, d, q, v + x, normal)
        assert touches == (ahead < 0.0), f"the lowest point ends at {1e3 * ahead} mm"
        found.append(touches)
    assert 15 < sum(found) < 85


@pytest.mark.parametrize(("up", "left"), [(0.0, 0), (0.004, 0), (-0.004, 0), (0.006, 8), (0.05, 8), (-0.006, 8)])
def test_only_points_near_the_plane_of_a_sole_are_left_to_it(up: float, left: int) -> None:
    """The lowest corners of each foot of biped14, a box, are contact points if its sole is elsewhere."""
    robot = sole_moved(load_robot("biped14"), up)
    d = Dynamics(robot, Ground.flat(), H, shapes=robot.shapes.shapes)
    pin.forwardKinematics(robot.model, data := robot.model.createData(), robot.q_nominal)
    feet = {sole.joint_id for sole in robot.soles}
    joints = d.bodies.joint[d.bodies.body]
    lowest = [data.oMi[int(j)].act(point)[2] for j, point in zip(joints, d.bodies.point, strict=True) if j in feet]
    assert sum(abs(z + up) < 1e-6 for z in lowest) == left


def sole_moved(robot: Robot, up: float) -> Robot:
    """Return a robot with soles moved up by ``up`` [m] on its feet, standing on them."""
    shift = pin.SE3(np.eye(3), np.array([0.0, 0.0, up]))
    soles = tuple(replace(s, placement_joint_sole=s.placement_joint_sole * shift) for s in robot.soles)
    q = robot.q_nominal.copy()
    q[2] -= up
    return replace(robot, soles=soles, q_nominal=q)


def test_a_sole_far_above_the_end_of_its_foot_is_no_start() -> None:
    """It used to stand with its feet 50 mm in the ground, without a warning. Soles that are nearer are pushed out."""
    robot = load_robot("biped14")
    with pytest.raises(ConfigError) as caught:
        Simulator(sole_moved(robot, 0.05))
    assert all(robot.model.frames[i].name in caught.value.place for i in foot_frames(robot))
    sim = Simulator(sole_moved(robot, 0.007))
    assert sim.reactions.touching is not None
    before = max(sim.reactions.touching.depths(sim.q).values())
    for _ in range(50):
        sim.advance(np.zeros(robot.nu))
    assert before > 5e-3
    assert max(sim.reactions.touching.depths(sim.q).values(), default=0.0) < before


def foot_frames(robot: Robot) -> list[int]:
    """Return the frames of the links whose shapes form the feet."""
    feet = {sole.joint_id for sole in robot.soles}
    names = {shape.name for shape in robot.shapes.shapes if shape.joint_id in feet}
    return [robot.model.getFrameId(name, pin.FrameType.BODY) for name in names]
