"""Rows of all contacts of a step: velocities and Delassus matrix, compared with pinocchio's Jacobians."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import pytest

from bipedsim.model import LoopEquations, Robot, load_robot
from bipedsim.numerics import Array
from bipedsim.objects import ObjectConfig
from bipedsim.sim import Simulator
from bipedsim.touch import Touching

KEYS: dict[str, Any] = {"shape": "ball", "radius": 0.1, "mass": 2.0, "inertia": (0.01, 0.01, 0.01)}
BALLS = [
    ObjectConfig(name="first", position=(0.32, 0.1, 0.25), velocity=(-3.0, 0.0, 0.0), **KEYS),
    ObjectConfig(name="second", position=(0.5205, 0.1, 0.25), velocity=(-3.0, 0.0, 0.0), **KEYS),
]
"""Two balls that hit a leg, one behind the other."""


def falling(name: str, model: str, steps: int, objects: list[ObjectConfig] | None = None) -> Simulator:
    """Return a robot that has fallen for a while and twists its joints."""
    robot = load_robot(name)
    sim = Simulator(robot, contact=model, objects=objects or [])
    v = np.zeros(robot.model.nv)
    v[0], v[1], v[4] = 0.4, 0.1, 0.3
    sim.reset(sim.q.copy(), v)
    for _ in range(steps):
        sim.advance(np.zeros(robot.nu))
    return sim


def inverse_masses(robot: Robot, q: Array, h: float, objects: list[ObjectConfig]) -> Array:
    """Return M^-1 of the robot, with implicit damping and closed chains, and of the objects along the world's axes."""
    M = pin.crba(robot.model, robot.model.createData(), q)
    M = np.triu(M) + np.triu(M, 1).T + h * np.diag(robot.joint_damping)
    size = robot.model.nv + 6 * len(objects)
    inverse = np.zeros((size, size))
    of_robot = np.linalg.inv(M)
    if robot.loops:
        G = LoopEquations(robot.model, robot.loops).at(q)[1]
        of_robot -= of_robot @ G.T @ np.linalg.pinv(G @ of_robot @ G.T, rcond=1e-10) @ G @ of_robot
    inverse[: robot.model.nv, : robot.model.nv] = of_robot
    for k, one in enumerate(objects):
        i = robot.model.nv + 6 * k
        assert one.mass is not None
        assert one.inertia is not None
        inverse[i : i + 6, i : i + 6] = np.diag(1.0 / np.array([one.mass] * 3 + list(one.inertia)))
    return inverse


def jacobian(sim: Simulator, touching: Touching, m: int, q: Array) -> Array:
    """Return the rows (3, n) of contact ``m`` along its axes, from pinocchio."""
    model, c = sim.robot.model, touching.contacts
    data = model.createData()
    pin.computeJointJacobians(model, data, q)
    joints = len(sim.dynamics.bodies.leaf)
    J = np.zeros((3, model.nv + 6 * len(touching.objects.position)))
    for sign, side in ((1.0, int(c.a[m])), (-1.0, int(c.b[m]))):
        if side >= joints:
            j = side - joints
            J[2, sim.dynamics.stops.idx_v[j]] -= sim.dynamics.stops.side[j]
        elif side > 0:
            of_joint = pin.getJointJacobian(model, data, side, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
            arm = pin.skew(c.point[m] - data.oMi[side].translation)
            J[:, : model.nv] += sign * c.axes[m].T @ (of_joint[:3] - arm @ of_joint[3:])
        elif side < 0:
            i = model.nv + 6 * (-1 - side)
            arm = pin.skew(c.point[m] - touching.objects.position[-1 - side])
            J[:, i : i + 6] += sign * c.axes[m].T @ np.hstack([np.eye(3), -arm])
    return J


@pytest.mark.parametrize(
    ("name", "model", "steps", "objects"),
    [
        ("biped14", "one_step", 900, []),
        ("biped14", "feedback_linearised", 900, []),
        ("g1", "one_step", 1500, []),
        ("parallel_ankles", "one_step", 1200, []),
        ("biped14", "one_step", 0, BALLS),
    ],
)
def test_rows_and_velocities_are_those_of_pinocchio(
    name: str, model: str, steps: int, objects: list[ObjectConfig]
) -> None:
    """In every step that is solved with other contacts, for all of these, joint limits and objects included."""
    sim = falling(name, model, steps, objects)
    touching = sim.reactions.touching
    assert touching is not None
    kinds: set[str] = set()
    rng = np.random.default_rng(0)
    for _ in range(60):
        q, v = sim.q.copy(), sim.v.copy()
        sim.advance(0.05 * rng.normal(size=sim.robot.nu) * sim.robot.effort_limit)
        if not sim.stepper.touched:
            continue
        s, n = touching._coupling, int(touching._problem.points[0])
        J = np.vstack([jacobian(sim, touching, m, q) for m in range(n)])
        Y = np.zeros_like(J)
        for m in range(n):
            width = s.rows.width[m]
            Y[3 * m : 3 * m + 3, s.rows.column[m, :width]] = s.rows.Y[m, :, :width]
        D = J @ inverse_masses(sim.robot, q, sim.physics_dt, objects) @ J.T
        np.testing.assert_allclose(Y @ Y.T, D, atol=1e-10 * np.abs(D).max())
        of_objects = touching.objects.free.ravel() if objects else np.zeros(0)
        before = J @ np.concatenate([v, of_objects])
        np.testing.assert_allclose(s.before[:n].ravel(), before, atol=1e-11 * max(1.0, np.abs(before).max()))
        joints = len(sim.dynamics.bodies.leaf)
        for m in range(n):
            a, b = int(touching.contacts.a[m]), int(touching.contacts.b[m])
            kinds.add(
                "limit" if a >= joints else "objects" if max(a, b) < 0 else "object" if min(a, b) < 0 else "ground"
            )
    assert "ground" in kinds
    assert ({"object", "objects"} <= kinds) == bool(objects)
