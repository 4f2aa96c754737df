"""Which bodies get into the ground in a step, against all of their points and velocities by pinocchio."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from bipedsim.dynamics import Dynamics
from bipedsim.dynamics.bodies import touches_ground
from bipedsim.ground import Ground
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array, call

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


@pytest.mark.parametrize("name", ["biped14", "g1"])
@pytest.mark.parametrize("angle", [0.0, 0.2])
def test_a_body_touches_where_one_of_its_points_does(name: str, angle: float) -> None:
    """What a box around a body says of it at once is never another thing than its points do."""
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
