"""Feet as points among the other contacts: their motion decides whether they slide, and friction stays in its cone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pinocchio as pin
import pytest

from bipedsim.contact import UNRESOLVED
from bipedsim.ground import Ground
from bipedsim.model import load_robot
from bipedsim.objects import ObjectConfig
from bipedsim.sim import Simulator
from bipedsim.touch import Touching
from bipedsim.touch.step import BEYOND

STATIC, DYNAMIC = 0.6, 0.3


def slips(sim: Simulator, q: np.ndarray) -> list[list[float]]:
    """Return how fast the loaded vertices of each foot slide where a step from ``q`` has ended [m/s]."""
    model, data = sim.robot.model, sim.robot.model.createData()
    pin.forwardKinematics(model, data, q, sim.v)
    found = []
    for k, sole in enumerate(sim.robot.soles):
        body, twist = data.oMi[sole.joint_id], data.v[sole.joint_id]
        bits = int(sim.contact.clamped[k])
        arms = [sole.placement_joint_sole.act(np.array([*xy, 0.0])) for xy in sole.vertices]
        loaded = [arm for i, arm in enumerate(arms) if bits >> i & 1]
        speeds = [body.rotation @ (twist.linear + np.cross(twist.angular, arm)) for arm in loaded]
        found.append([float(np.hypot(u[0], u[1])) for u in speeds])
    return found


def pushed_into_a_crate(model: str) -> Simulator:
    """Return a robot that a push is to drive into a crate."""
    robot = load_robot("biped14")
    size = (0.3, 0.5, 0.3)
    crate = ObjectConfig(
        name="crate", shape="box", mass=20.0, size=size, position=(0.3, 0.0, 0.15), friction_static=0.8
    )
    ground = Ground.flat(friction_static=STATIC, friction_dynamic=DYNAMIC)
    sim = Simulator(robot, ground, contact=model, objects=[crate])
    sim.push(np.array([0.33, -0.1, 0.0, 0.0, 0.0, 0.0]) * robot.weight, duration=0.4)
    return sim


@pytest.mark.parametrize("model", ["one_step", "ncp"])
def test_a_foot_slides_if_and_only_if_all_loaded_vertices_slip(model: str) -> None:
    """Sticking feet may have more than dynamic friction. The total friction of sliding feet is at most dynamic."""
    sim = pushed_into_a_crate(model)
    robot = sim.robot
    assert sim.reactions.touching is not None
    seen, beyond, before = 0, 0, 0
    for _ in range(330):
        q = sim.q.copy()
        sim.step(600.0 * (robot.q_nominal[robot.idx_q] - q[robot.idx_q]) - 20.0 * sim.v[robot.idx_v])
        as_points, before = sim.reactions.touching.as_points > before, sim.reactions.touching.as_points
        if not as_points:
            continue
        for k, speeds in enumerate(slips(sim, q)):
            if not speeds:
                continue
            seen += 1
            assert bool(sim.contact.sliding[k]) == (min(speeds) > 1e-5), (k, speeds)
            total = sim.contact.impulse[k]
            mu = DYNAMIC if sim.contact.sliding[k] else STATIC
            assert np.hypot(total[0], total[1]) <= mu * total[2] * (1.0 + 1e-9)
            x, y, z = sim.reactions.touching._points.last[k].T
            bits = int(sim.contact.clamped[k])
            assert [bool(bits >> i & 1) for i in range(len(z))] == (z > 0.0).tolist()
            beyond += max(speeds) <= 1e-5 and bool((np.hypot(x, y) > 1.01 * DYNAMIC * z).any())
    assert seen > 10
    assert beyond > 0, "a vertex has to stick with more than dynamic friction"


def test_a_model_without_an_answer_is_not_asked_again_in_that_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search takes longest if it fails. The feet become points at once, and the step has a solution."""
    solve = Touching.solve

    def without_answer(touching: Touching, ask: Callable[[], np.ndarray]) -> np.ndarray:
        def asked() -> np.ndarray:
            impulse = ask()
            # As a model does that has found none, off in every round, so that feet and others do not fit.
            touching._result.counters[UNRESOLVED] += 1
            return rng.uniform(0.5, 1.5) * impulse

        return solve(touching, asked)

    rng = np.random.default_rng(1)
    monkeypatch.setattr(Touching, "solve", without_answer)
    sim = pushed_into_a_crate("one_step")
    touching, robot = sim.reactions.touching, sim.robot
    assert touching is not None
    for _ in range(330):
        touching._waits = 0  # each of the steps may ask often
        sim.step(600.0 * (robot.q_nominal[robot.idx_q] - sim.q[robot.idx_q]) - 20.0 * sim.v[robot.idx_v])
        assert touching.rounds <= 1
        if touching.as_points > 10:
            break
    assert touching.as_points > 10
    assert sim.contact.unresolved == 0


@pytest.mark.parametrize(("share", "points"), [(0.5, False), (2.0, True)])
def test_feet_beyond_their_cone_become_points(monkeypatch: pytest.MonkeyPatch, share: float, points: bool) -> None:
    """A model that fits the others, with more friction than its feet can have, counts as inconsistent."""
    solve = Touching.solve
    solved: list[bool] = []

    def with_more_friction(touching: Touching, ask: Callable[[], np.ndarray]) -> np.ndarray:
        def asked() -> np.ndarray:
            impulse = ask()
            touching._result.friction_used[:] = 1.0 + share * BEYOND
            return impulse

        before = touching.as_points
        impulse = solve(touching, asked)
        solved.append(touching.as_points > before)
        x, y, z = touching._points.last.reshape(-1, 3).T
        assert not solved[-1] or (np.hypot(x, y) <= STATIC * z + 1e-9).all()
        return impulse

    monkeypatch.setattr(Touching, "solve", with_more_friction)
    sim = pushed_into_a_crate("one_step")
    robot = sim.robot
    while len(solved) < 20:
        sim.step(600.0 * (robot.q_nominal[robot.idx_q] - sim.q[robot.idx_q]) - 20.0 * sim.v[robot.idx_v])
    assert all(solved) == points
    assert sim.contact.unresolved == 0
