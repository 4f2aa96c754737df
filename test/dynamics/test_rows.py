"""Velocities fixed before the contact acts, against dense linear algebra on all of M, J and G."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
import pytest

from bipedsim.dynamics.rows import energy_added
from bipedsim.dynamics.step import Dynamics
from bipedsim.dynamics.tree import change, eliminate, keep_whole
from bipedsim.ground.ground import Ground
from bipedsim.model import Robot, StopParams, load_robot
from bipedsim.numerics import Array, call

H = 1e-3


class Dense(NamedTuple):
    """M of the step, J of the feet in world axes, and h times all forces but contact."""

    M: Array
    J: Array
    f: Array


def dense(robot: Robot, q: Array, v: Array, tau: Array) -> Dense:
    model, data = robot.model, robot.model.createData()
    M = np.triu(pin.crba(model, data, q)) + np.triu(data.M, 1).T
    f = -pin.nonLinearEffects(model, data, q, v) - robot.joint_damping * v
    f[robot.idx_v] += tau
    pin.computeJointJacobians(model, data, q)
    J = []
    for sole in robot.soles:
        origin = data.oMi[sole.joint_id].act(sole.placement_joint_sole.translation)
        world = pin.getJointJacobian(model, data, sole.joint_id, pin.WORLD)
        J += [world[:3] - pin.skew(origin) @ world[3:], world[3:]]
    return Dense(M + H * np.diag(robot.joint_damping), np.vstack(J), H * f)


def state(robot: Robot, seed: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    q = pin.integrate(robot.model, robot.q_nominal, 0.3 * rng.normal(size=robot.model.nv))
    return q, rng.normal(size=robot.model.nv), 20.0 * rng.normal(size=robot.nu)


def solved(step: Dense, v: Array, rows: Array, goal: Array, impulse: Array) -> tuple[Array, Array]:
    """Return v+ and the impulses of the rows: all equations at once."""
    n, nv = rows.shape
    kkt = np.block([[step.M, -rows.T], [rows, np.zeros((n, n))]])
    x = np.linalg.solve(kkt, np.concatenate([step.M @ v + step.f + step.J.T @ impulse, goal]))
    return x[:nv], x[nv:]


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("name", ["biped14", "talos"])
def test_rows_are_fixed_whatever_the_contact_does(name: str, count: int) -> None:
    """General constraint rows, as of closed chains: velocities at the feet, and impulses on the joints."""
    robot = load_robot(name)
    dynamics = Dynamics(robot, Ground.flat(), H, StopParams())
    rng = np.random.default_rng(count)
    for seed in range(4):
        q, v, tau = state(robot, seed)
        p = dynamics.project(q, v, tau)
        step, r = dense(robot, q, v, tau), dynamics.tree.rows
        rows, goal = rng.normal(size=(count, robot.model.nv)), rng.normal(size=count)
        call(keep_whole, dynamics.tree, p)
        r.used[0] = count
        r.Q[:count], r.goal[:count], r.goal_late[:count] = rows, goal, goal
        call(eliminate, dynamics.tree, p, v, 0)
        free, _ = solved(step, v, rows, goal, np.zeros(len(step.J)))
        np.testing.assert_allclose(p.w_free, step.J @ free, atol=1e-9)
        impulse = rng.normal(size=(len(robot.soles), 6))
        after, along = solved(step, v, rows, goal, impulse.ravel())
        # Delassus: the change by an impulse, relative to the step without it.
        np.testing.assert_allclose(p.G @ impulse.ravel(), step.J @ (after - free), atol=1e-8)
        call(change, dynamics.tree, impulse, False, v)
        np.testing.assert_allclose(v + dynamics.change, after, atol=1e-9)
        np.testing.assert_allclose(r.impulse[:count], along, atol=1e-8 * max(1.0, np.abs(along).max(initial=0.0)))
        alone = np.linalg.solve(step.M, step.M @ v + step.f)
        alone_energy = 0.5 * alone @ step.M @ alone
        assert r.given[0] == pytest.approx(0.5 * free @ step.M @ free - alone_energy, rel=1e-8, abs=1e-9)
        contact = 0.5 * impulse.ravel() @ step.J @ (free + after)
        added = 0.5 * after @ step.M @ after - alone_energy - contact
        assert call(energy_added, r, 0, impulse) == pytest.approx(added, rel=1e-8, abs=1e-8)


def test_a_row_that_says_nothing_new_changes_nothing() -> None:
    robot = load_robot("biped14")
    dynamics = Dynamics(robot, Ground.flat(), H, StopParams())
    q, v, tau = state(robot, 7)
    row, found = np.zeros(robot.model.nv), []
    row[9], row[12] = 1.0, -0.5
    for count in (1, 2):
        p = dynamics.project(q, v, tau)
        r: Any = dynamics.tree.rows
        call(keep_whole, dynamics.tree, p)
        r.used[0] = count
        for n in range(count):
            r.Q[n], r.goal[n], r.goal_late[n] = (1.0 + n) * row, 0.1 * (1 + n), 0.0
        call(eliminate, dynamics.tree, p, v, 0)
        call(change, dynamics.tree, np.zeros((len(robot.soles), 6)), False, v)
        found.append((p.G.copy(), v + dynamics.change))
    np.testing.assert_allclose(found[1][0], found[0][0], atol=1e-12)
    np.testing.assert_allclose(found[1][1], found[0][1], atol=1e-12)
    assert row @ found[1][1] == pytest.approx(0.1)
