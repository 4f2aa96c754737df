"""Feet as points among the other contacts: their motion decides whether they slide, and friction stays in its cone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pinocchio as pin
import pytest

from bipedsim.contact import CONTACT_MODELS, STEPS, UNRESOLVED
from bipedsim.ground import Ground
from bipedsim.model import load_robot
from bipedsim.objects import ObjectConfig
from bipedsim.sim import Simulator
from bipedsim.touch import Touching
from bipedsim.touch.feet import FeetAsPoints
from bipedsim_studies.bench.hold import Hold

STATIC, DYNAMIC = 0.6, 0.3


def slips(sim: Simulator, feet: FeetAsPoints, q: np.ndarray, loaded: np.ndarray) -> list[list[float]]:
    """Return how fast the ``loaded`` vertices (K, N) of each foot slide where a step from ``q`` has ended [m/s].

    The velocity that corrects the drift of a sticking foot does not count.
    """
    assert sim.reactions.touching is not None
    drift = sim.reactions.touching.contacts.drift
    model, data = sim.robot.model, sim.robot.model.createData()
    pin.forwardKinematics(model, data, q, sim.v)
    found = []
    for k, sole in enumerate(sim.robot.soles):
        body, twist = data.oMi[sole.joint_id], data.v[sole.joint_id]
        arms = [sole.placement_joint_sole.act(np.array([*xy, 0.0])) for xy in sole.vertices]
        speeds = [body.rotation @ (twist.linear + np.cross(twist.angular, arm)) for arm in arms]
        found.append(
            [float(np.hypot(*(u[:2] - drift[feet.contact[k, i]]))) for i, u in enumerate(speeds) if loaded[k, i]]
        )
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


def hold(sim: Simulator) -> np.ndarray:
    """Return torques that hold the nominal posture."""
    robot = sim.robot
    return 600.0 * (robot.q_nominal[robot.idx_q] - sim.q[robot.idx_q]) - 20.0 * sim.v[robot.idx_v]


@pytest.mark.parametrize("model", ["one_step", "ncp"])
def test_a_foot_slides_if_and_only_if_all_loaded_vertices_slip(model: str) -> None:
    """Sticking feet may have more than dynamic friction. The total friction of sliding feet is at most dynamic."""
    sim = pushed_into_a_crate(model)
    assert sim.reactions.touching is not None
    feet = sim.reactions.touching._feet
    seen, beyond = 0, 0
    for _ in range(330):
        q = sim.q.copy()
        sim.step(hold(sim))
        if not feet.begun[0]:
            continue
        x, y, z = np.moveaxis(feet.last, -1, 0)
        for k, speeds in enumerate(slips(sim, feet, q, z > 0.0)):
            if not speeds:
                continue
            seen += 1
            assert bool(sim.contact.sliding[k]) == (min(speeds) > 1e-5), (k, speeds)
            total = sim.contact.impulse[k]
            mu = DYNAMIC if sim.contact.sliding[k] else STATIC
            assert np.hypot(total[0], total[1]) <= mu * total[2] * (1.0 + 1e-9)
            bits = int(sim.contact.clamped[k])
            assert all(bits >> i & 1 for i in np.flatnonzero(z[k] > 0.0))
            beyond += max(speeds) <= 1e-5 and bool((np.hypot(x[k], y[k]) > 1.01 * DYNAMIC * z[k]).any())
    assert seen > 10
    assert beyond > 0, "a vertex has to stick with more than dynamic friction"


def test_a_model_without_an_answer_is_not_asked_again_in_that_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search takes longest if it fails. The feet become points at once, and the step has a solution."""
    solve = Touching._solve_in_turn
    seen: list[int] = []

    def without_answer(touching: Touching, ask: Callable[[], np.ndarray]) -> tuple[bool, np.ndarray]:
        def asked() -> np.ndarray:
            impulse = ask()
            # As a model does that has found none, off in every round, so that feet and others do not fit.
            touching._result.counters[UNRESOLVED] += 1
            return rng.uniform(0.5, 1.5) * impulse

        solved, impulse = solve(touching, asked)
        seen.append(touching.rounds)
        return solved, impulse

    rng = np.random.default_rng(1)
    monkeypatch.setattr(Touching, "_solve_in_turn", without_answer)
    sim = pushed_into_a_crate("feedback_linearised")
    assert sim.reactions.touching is not None
    while len(seen) < 20:
        sim.reactions.touching._waits = 0  # each of the steps may ask often
        sim.step(hold(sim))
    assert max(seen) == 1
    assert sim.contact.unresolved == 0


@pytest.mark.long
@pytest.mark.parametrize("model", ["one_step", "exact", "ncp", "lcp"])
def test_feet_do_not_creep_next_to_a_crate(model: str) -> None:
    """A robot sways for 3 s, while a crate is so close to its foot that all contacts are solved together."""
    crate = ObjectConfig(name="crate", shape="box", mass=5.0, size=(0.1, 0.1, 0.1), position=(0.17001, 0.085, 0.05))
    sim = Simulator(load_robot("biped14"), contact=model, objects=[crate])
    assert sim.reactions.touching is not None
    feet, posture = sim.reactions.touching._feet, Hold(sim.robot, sim.physics_dt)
    start, worst, together = sim.ground_truth().pose_world_sole.copy(), 0.0, 0
    roll = np.array(["roll" in name for name in sim.robot.joint_names])
    for _ in range(3000):
        sim.step(posture.torque(sim.q, sim.v) + 5.0 * np.sin(2.0 * np.pi * sim.t) * roll)
        together += int(feet.begun[0])
        worst = max(worst, float(np.abs(sim.ground_truth().pose_world_sole - start)[:, :2].max()))
    assert together > 2900
    assert not sim.contact.sliding.any()
    assert worst < 1e-6


@pytest.mark.parametrize("model", ["one_step", "exact", "ncp", "lcp"])
def test_feet_stay_where_other_contacts_have_left_them(model: str) -> None:
    """The contact model continues from there, without the anchors that it had before."""
    sim = Simulator(load_robot("biped14"), contact=model)
    posture, touching = Hold(sim.robot, sim.physics_dt), sim.reactions.touching
    assert touching is not None
    for _ in range(100):
        sim.step(posture.torque(sim.q, sim.v))
    # As after steps with other contacts, in which the feet slid by 5 mm and then stuck.
    places = sim.ground_truth().pose_world_sole[:, :2] + [0.0, 0.005]
    sim.q[1] += 0.005
    sim.stepper.touched = touching._feet.begun[0] = True
    for _ in range(10):
        sim.step(posture.torque(sim.q, sim.v))
    assert np.abs(sim.ground_truth().pose_world_sole[:, :2] - places).max() < 1e-7
    assert not sim.contact.sliding.any()


@pytest.mark.parametrize("model", CONTACT_MODELS)
def test_a_step_counts_once(model: str) -> None:
    """However often it is solved: for rebounds, for joint limits, or in turn with other contacts."""
    sim = Simulator(load_robot("biped14"), contact=model, hardware={"body_restitution": 0.3})
    v = np.zeros(sim.robot.model.nv)
    v[0], v[4] = 0.4, 0.3
    sim.reset(sim.q.copy(), v)
    touched = 0
    for _ in range(900):
        before = sim.contact.counters.copy()
        sim.advance(np.zeros(sim.robot.nu))
        if sim.stepper.touched:
            touched += 1
            assert sim.contact.counters[STEPS] - before[STEPS] == 1
            assert sim.contact.unresolved - before[UNRESOLVED] in (0, 1)
    assert touched > 50
