"""The simulator from a user's view: budgets on humanoids, repeatability, and rejected input."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings, strategies as st
from marks import sampled
from paths import INSTALLED
from physics_support import G, standing_torque
from refusals import refusal
from state_support import among_things, in_a_gantry, same, traces, with_loops

from bipedsim.contact.models import CONTACT_MODELS
from bipedsim.control.controllers import make_controller
from bipedsim.errors import ConfigError, DivergenceError, UnknownNameError
from bipedsim.ground import Ground, Patch
from bipedsim.model import Robot, load_robot
from bipedsim.runs.pushes import Push, PushSchedule
from bipedsim.sim.simulator import Simulator, whole_ratio

FACE = 9
ROBOTS = ["biped14", "talos", "g1"]


@pytest.fixture(scope="module")
def biped() -> Robot:
    return load_robot("biped14")


def controlled(sim: Simulator, ticks: int, **params: object) -> list[np.ndarray]:
    """Run under `posture` and return the joint positions."""
    controller = make_controller("posture", sim.robot, params, sim.control_dt)
    observation = sim.reset()
    controller.reset(observation)
    positions = []
    for _ in range(ticks):
        observation = sim.step(controller.update(observation).tau_joint)
        positions.append(observation.joint_position.copy())
    return positions


@pytest.mark.parametrize("name", sampled(ROBOTS))
def test_forces_balance_momentum_at_every_step(name: str) -> None:
    """Sum f = m (a_com - g) through a squat, and the momentum's change in flight and at a landing.

    Where a vertex lands, forces act in two configurations of the robot, and momentum alone is the same in both. Over a
    step it follows the forces to first order in h.
    """
    robot = load_robot(name)
    model, data = robot.model, robot.model.createData()
    sim = Simulator(robot)
    controller = make_controller("posture", robot, {"mode": "squat"}, sim.control_dt)
    q = robot.q_nominal.copy()
    q[2] += 0.02
    observation = sim.reset(q)
    controller.reset(observation)
    smooth, landing = [], []
    for _ in range(1500):
        q, v = sim.q.copy(), sim.v.copy()
        observation = sim.step(controller.update(observation).tau_joint)
        ground = sim.contact.impulse[:, :3].sum(axis=0) / sim.physics_dt
        before = pin.computeCentroidalMomentum(model, data, q, v).linear.copy()
        change = pin.computeCentroidalMomentum(model, data, sim.q, sim.v).linear - before
        error = np.abs(ground - change / sim.physics_dt - [0.0, 0.0, robot.weight]).max()
        if not ground.any():
            assert error < 1e-8
        elif sim.contact.impact.any():
            landing.append(error / ground[2])
        else:
            smooth.append(error / ground[2])
            pin.centerOfMass(model, data, q, v, (sim.v - v) / sim.physics_dt)
            np.testing.assert_allclose(ground, robot.mass * (data.acom[0] + [0.0, 0.0, G]), atol=1e-8)
        used = np.nan_to_num(sim.contact.friction_used)
        assert (used <= 1.0 + 1e-9).all()
        pressing = sim.contact.impulse[:, 2] > 0.0
        assert (sim.contact.cop_margin[pressing] >= -1e-9).all()
    assert sim.contact.mode.tolist() == [FACE, FACE]
    assert len(landing) > 0
    assert max(landing) < max(smooth), "a landing costs no order"


@pytest.mark.parametrize("name", sampled(ROBOTS))
def test_work_and_energy_agree_to_first_order(name: str) -> None:
    """The energy residual of a squat halves with the step."""
    robot = load_robot(name)
    model, data = robot.model, robot.model.createData()
    residuals = []
    for h in (2e-3, 1e-3, 5e-4):
        sim = Simulator(robot, physics_dt=h, control_dt=2e-3)
        controller = make_controller("posture", robot, {"mode": "squat", "ramp": 0.5}, sim.control_dt)
        observation = sim.reset()
        controller.reset(observation)
        inner = Simulator(robot, physics_dt=h)
        work = 0.0
        for _ in range(600):
            tau = controller.update(observation).tau_joint.copy()
            for _ in range(round(2e-3 / h)):
                v = inner.v.copy()
                inner.step(tau)
                mean = 0.5 * (v + inner.v)
                work += h * (tau @ mean[robot.idx_v] - robot.joint_damping @ inner.v**2)
            observation = sim.step(tau)
        np.testing.assert_array_equal(inner.q, sim.q)
        M = pin.crba(model, data, inner.q)
        M = np.triu(M) + np.triu(M, 1).T
        kinetic = 0.5 * inner.v @ M @ inner.v
        start = pin.computePotentialEnergy(model, data, robot.q_nominal)
        residuals.append(abs(kinetic + pin.computePotentialEnergy(model, data, inner.q) - start - work))
    assert residuals[0] < 0.02 * robot.mass
    assert residuals[1] < 0.65 * residuals[0]
    assert residuals[2] < 0.65 * residuals[1]


@pytest.mark.parametrize("name", ["biped14", "talos"])
def test_fall_over_the_toes_takes_both_front_edges_once(name: str) -> None:
    """A forward tilt changes the face contact to the front edge on each foot.

    No other mode occurs until the tilt is large.
    """
    robot = load_robot(name)
    sim = Simulator(robot)
    controller = make_controller("posture", robot, {"balance": 0.0}, sim.control_dt)
    observation = sim.reset()
    controller.reset(observation)
    sim.push(np.array([0.0, 0.0, 0.0, 0.0, 0.25 * robot.weight * robot.q_nominal[2], 0.0]))
    edges = []
    for vertices in (sole.vertices for sole in robot.soles):
        front = vertices[:, 0] > vertices[:, 0].max() - 1e-9
        edges.append(int((1 << np.flatnonzero(front)).sum()))
    for _ in range(3000):
        observation = sim.step(controller.update(observation).tau_joint)
        margin = sim.contact.cop_margin[np.isfinite(sim.contact.cop_margin)]
        assert (margin >= -1e-9).all()
        if sim.q[4] > 0.15:
            break
    assert sim.q[4] > 0.15
    assert sim.contact.clamped.tolist() == edges
    assert sim.contact.state_changes == 2


@pytest.mark.parametrize(
    ("name", "rolls"),
    [
        ("biped14", ("l_hip_roll", "r_hip_roll", "l_ankle_roll", "r_ankle_roll")),
        ("talos", ("leg_left_2_joint", "leg_right_2_joint", "leg_left_6_joint", "leg_right_6_joint")),
    ],
)
def test_hip_sway_keeps_the_feet_where_they_are(name: str, rolls: tuple[str, ...]) -> None:
    """Open-loop sway of the hips under a stiff PD (4000, 100): the load goes from foot to foot, the feet stay."""
    robot = load_robot(name)
    sim = Simulator(robot)
    static = standing_torque(robot)
    observation = sim.reset()
    start = sim.ground_truth().pose_world_sole.copy()
    joints = [robot.joint_names.index(roll) for roll in rolls]
    goal, speed = robot.posture.copy(), np.zeros(robot.nu)
    w = 2.0 * np.pi * 0.5
    loads = []
    for _ in range(5000):
        ramp, slope = min(sim.t, 1.0), float(sim.t < 1.0)
        sway = 0.07 * ramp * np.sin(w * sim.t)
        rate = 0.07 * (slope * np.sin(w * sim.t) + ramp * w * np.cos(w * sim.t))
        goal[joints] = robot.posture[joints] + sway * np.array([1.0, 1.0, -1.0, -1.0])
        speed[joints] = rate * np.array([1.0, 1.0, -1.0, -1.0])
        tau = static + 4000.0 * (goal - observation.joint_position) + 100.0 * (speed - observation.joint_velocity)
        observation = sim.step(tau)
        loads.append(sim.contact.wrench[0, 2])
    assert np.abs(sim.ground_truth().pose_world_sole - start)[:, :3].max() < 1e-5
    assert np.ptp(loads) > 0.2 * robot.weight
    assert sim.contact.state_changes <= 30


def test_repeats_are_bit_identical(biped: Robot) -> None:
    sim = Simulator(biped)
    first = controlled(sim, 700, mode="squat")
    second = controlled(sim, 700, mode="squat")
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, controlled(Simulator(biped), 700, mode="squat"))


@pytest.mark.long
def test_measuring_changes_no_bits(biped: Robot) -> None:
    measured, blind = Simulator(biped), Simulator(biped)
    rng = np.random.default_rng(5)
    for _ in range(300):
        torque = 30.0 * rng.normal(size=biped.nu)
        measured.step(torque)
        blind.advance(torque)
        np.testing.assert_array_equal(measured.q, blind.q)
        np.testing.assert_array_equal(measured.v, blind.v)


@pytest.mark.long
def test_other_processes_get_the_same_bits() -> None:
    program = (
        "import hashlib, numpy as np; from bipedsim.model import load_robot; from bipedsim.sim import Simulator\n"
        "s = Simulator(load_robot('biped14'))\n"
        "for i in range(400): s.step(20 * np.sin(0.01 * i + np.arange(14)))\n"
        "print(hashlib.sha256(s.q.tobytes() + s.v.tobytes() + s.contact.wrench.tobytes()).hexdigest())"
    )
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True) for _ in range(2)
    ]
    sim = Simulator(load_robot("biped14"))
    for i in range(400):
        sim.step(20 * np.sin(0.01 * i + np.arange(14)))
    here = hashlib.sha256(sim.q.tobytes() + sim.v.tobytes() + sim.contact.wrench.tobytes()).hexdigest()
    assert [run.stdout.strip() for run in runs] == [here, here]


@pytest.mark.parametrize("at", [1, 95, 150, 420])
def test_restore_repeats_the_future_bit_by_bit(biped: Robot, at: int) -> None:
    """Snapshots in the air, around the impact, sliding, and during a push."""
    rng = np.random.default_rng(at)
    torques = 10.0 * rng.normal(size=(600, biped.nu))
    sim = Simulator(biped)
    q = biped.q_nominal.copy()
    q[2] += 0.05
    sim.reset(q, 0.1 * rng.normal(size=biped.model.nv))
    for i in range(at):
        if i == 100:
            sim.push(np.array([50.0, 20.0, 0, 0, 0, 0]), duration=0.35)
        sim.step(torques[i])
    snapshot = sim.snapshot()
    futures = []
    for _ in range(2):
        observation = sim.restore(snapshot)
        trace = [observation.foot_wrench.copy()]
        for i in range(at, 600):
            observation = sim.step(torques[i])
            trace += [observation.joint_position.copy(), observation.foot_wrench.copy(), sim.contact.wrench.copy()]
        futures.append(np.concatenate([x.ravel() for x in trace]))
        counters = sim.contact.state_changes, sim.contact.unresolved, sim.t
    np.testing.assert_array_equal(*futures)
    assert counters[2] == pytest.approx(0.6)


def test_substeps_hold_the_torque(biped: Robot) -> None:
    fine, coarse = Simulator(biped), Simulator(biped, physics_dt=1e-3, control_dt=4e-3)
    tau = 5.0 * np.ones(biped.nu)
    for _ in range(50):
        for _ in range(4):
            fine.step(tau)
        coarse.step(tau)
    np.testing.assert_array_equal(fine.q, coarse.q)
    assert coarse.t == fine.t == pytest.approx(0.2)


@given(ratio=st.integers(1, 1000), dt=st.floats(1e-6, 1e-2))
def test_whole_ratios_are_found(ratio: int, dt: float) -> None:
    assert whole_ratio(ratio * dt, dt) == ratio


@pytest.mark.parametrize(
    ("control", "physics"), [(1e-3, 3e-4), (1e-3, 2e-3), (1e-3, 0.0), (np.nan, 1e-3), (-1e-3, 1e-3)]
)
def test_other_ratios_are_refused_with_both_values(biped: Robot, control: float, physics: float) -> None:
    with pytest.raises(ConfigError) as caught:
        Simulator(biped, physics_dt=physics, control_dt=control)
    bad = [x for x in (control, physics) if not x > 0] or [control]
    assert caught.value.place in ("control_dt", "physics_dt")
    assert caught.value.value in bad or np.isnan(caught.value.value)


def test_unknown_names_list_the_choices(biped: Robot) -> None:
    with refusal(UnknownNameError, name="one_stp", meant="one_step"):
        Simulator(biped, contact="one_stp")
    with refusal(UnknownNameError, name="gama", meant="gamma"):
        Simulator(biped, contact_params={"gama": 0.2})
    with refusal(place="gamma", value=2.0):
        Simulator(biped, contact_params={"gamma": 2})
    with refusal(UnknownNameError, name="hand"):
        Simulator(biped).push(np.zeros(6), body="hand")


@pytest.mark.parametrize("bad", [np.zeros(3), np.full(14, np.nan), np.full(14, np.inf), np.zeros((14, 1))])
def test_bad_torques_never_touch_the_state(biped: Robot, bad: np.ndarray) -> None:
    sim = Simulator(biped)
    sim.step(np.zeros(14))
    before = sim.q.copy(), sim.v.copy(), sim.t
    with pytest.raises(ConfigError) as caught:
        sim.step(bad)
    assert caught.value.place.startswith("tau_joint")
    np.testing.assert_array_equal(sim.q, before[0])
    np.testing.assert_array_equal(sim.v, before[1])
    assert sim.t == before[2]


@pytest.mark.parametrize("rows", [1, 6])
def test_a_command_may_be_part_of_any_array(biped: Robot, rows: int) -> None:
    """Every second number of a larger one, a column, single precision, whole numbers, a list: the numbers count."""
    rng = np.random.default_rng(2)
    numbers = np.rint(rng.uniform(0.0, 9.0, (rows, biped.nu)))
    plain = numbers[0] if rows == 1 else numbers
    wide, tall = np.full((rows, 2 * biped.nu), np.nan), np.full((biped.nu, rows + 3), np.nan)
    wide[:, ::2], tall[:, 1 : rows + 1] = numbers, numbers.T
    forms: list[Any] = [
        wide[0, ::2] if rows == 1 else wide[:, ::2],
        tall[:, 1] if rows == 1 else tall[:, 1 : rows + 1].T,
    ]
    forms += [
        np.asfortranarray(plain),
        plain.astype(np.float32),
        plain.astype(np.int64),
        plain.tolist(),
        plain[::-1][::-1],
    ]
    sims = [Simulator(biped) for _ in range(2)]
    for form in forms:
        for sim, command in zip(sims, (plain, form), strict=True):
            sim.reset()
            sim.step(command)
            sim.step(command)
        same(traces(sims[0]), traces(sims[1]))


def test_divergence_keeps_the_last_good_state(biped: Robot) -> None:
    sim = Simulator(biped)
    controller_gain = 1e5
    observation = sim.reset()
    before = sim.t, sim.q.copy(), sim.v.copy()

    def spoiled_damping() -> None:
        nonlocal observation, before
        for _ in range(2000):
            before = sim.t, sim.q.copy(), sim.v.copy()
            observation = sim.step(-controller_gain * (observation.joint_velocity + 1e-3))

    with pytest.raises(DivergenceError) as caught:
        spoiled_damping()
    assert caught.value.t == before[0]
    np.testing.assert_array_equal(caught.value.q, before[1])
    np.testing.assert_array_equal(sim.v, before[2])
    assert np.isfinite(sim.q).all()
    with pytest.raises(DivergenceError):
        sim.step(np.zeros(14))
    sim.reset()
    sim.step(np.zeros(14))
    assert np.isfinite(sim.contact.wrench).all()


def test_push_acts_for_its_duration_and_moves_the_right_body(biped: Robot) -> None:
    sim = Simulator(biped, physics_dt=1e-4, control_dt=1e-3)
    q = biped.q_nominal.copy()
    q[2] += 5.0
    sim.reset(q)
    impulse = 3.0
    sim.push(np.array([0.0, impulse / 0.01, 0, 0, 0, 0]), body="l_sole", duration=0.01)
    for _ in range(50):
        sim.step(np.zeros(14))
    data = biped.model.createData()
    pin.computeCentroidalMomentum(biped.model, data, sim.q, sim.v)
    momentum = data.hg.linear
    np.testing.assert_allclose(momentum, [0.0, impulse, -biped.weight * 0.05], rtol=2e-4, atol=3e-3)
    assert data.hg.angular[0] > 0.0


def test_a_push_is_refused_beyond_what_could_be_meant(biped: Robot) -> None:
    with refusal(place="push: wrench"):
        Simulator(biped).push(np.array([0.0, 0.0, 0.0, 0.0, 1e300, 0.0]))


def test_a_push_acts_on_the_link_where_a_joint_has_its_name(biped: Robot, tmp_path: Path) -> None:
    """The foot has the name of its ankle joint, as in many a URDF."""
    shutil.copytree(INSTALLED / "bipedsim" / "robots" / "biped14", tmp_path / "robot")
    urdf = tmp_path / "robot" / "robot.urdf"
    urdf.write_text(urdf.read_text().replace('"l_foot"', '"l_ankle_roll"'))
    sims = [Simulator(biped), Simulator(load_robot(str(tmp_path / "robot" / "robot.yaml")))]
    for sim, body in zip(sims, ("l_foot", "l_ankle_roll"), strict=True):
        sim.push(np.array([10.0, 20.0, 0.0, 0.0, 0.0, 0.0]), body)
        sim.step(np.zeros(14))
    np.testing.assert_array_equal(sims[0].v, sims[1].v)


def test_ground_truth_follows_a_step_without_sensors(biped: Robot) -> None:
    """Two simulators make the same steps; the one that measures nothing still shows where its soles are."""
    measured, blind = Simulator(biped), Simulator(biped)
    for sim in (measured, blind):
        sim.push(np.array([80.0, 30.0, 0, 0, 0, 0]))
    tau = standing_torque(biped)
    start = blind.ground_truth().pose_world_sole.copy()
    for _ in range(400):
        measured.step(tau)
        blind.advance(tau)
    truth = blind.ground_truth()
    np.testing.assert_array_equal(truth.pose_world_sole, measured.ground_truth().pose_world_sole)
    np.testing.assert_array_equal(truth.cop_world, measured.ground_truth().cop_world)
    assert np.abs(truth.pose_world_sole - start).max() > 1e-4


@pytest.mark.parametrize("duration", [0.0, -1.0, float("nan")])
def test_a_push_of_no_duration_is_refused(biped: Robot, duration: float) -> None:
    with refusal(place="push: duration", value=duration):
        Simulator(biped).push(np.ones(6), duration=duration)


@pytest.mark.parametrize(("substeps", "duration"), [(1, 1e-4), (1, 4e-4), (1, 1.5e-3), (4, 2.5e-3), (1, 4e-3)])
@pytest.mark.parametrize("at", [0.0, 3e-4, 2e-3])
def test_a_push_of_any_length_has_its_impulse(biped: Robot, substeps: int, duration: float, at: float) -> None:
    """In the air, all of it is momentum: m v = F t, also of a second push that begins within the same tick."""
    sim = Simulator(biped, physics_dt=1e-3, control_dt=substeps * 1e-3)
    q = biped.q_nominal.copy()
    q[2] += 5.0
    across = at + duration + 2e-4
    sim.add(PushSchedule([Push(at, duration, (0.0, 100.0, 0.0)), Push(across, 3e-4, (50.0, 0.0, 0.0))]))
    sim.reset(q)
    for _ in range(8):
        sim.advance(np.zeros(biped.nu))
    momentum = pin.computeCentroidalMomentum(biped.model, biped.model.createData(), sim.q, sim.v).linear
    np.testing.assert_allclose(momentum[:2], [50.0 * 3e-4, 100.0 * duration], rtol=2e-3, atol=1e-6)


def test_a_push_ends_where_the_next_one_begins(biped: Robot) -> None:
    sim = Simulator(biped)
    q = biped.q_nominal.copy()
    q[2] += 5.0
    sim.reset(q)
    sim.push(np.array([0.0, 100.0, 0.0, 0.0, 0.0, 0.0]))
    sim.push(np.array([0.0, -100.0, 0.0, 0.0, 0.0, 0.0]), duration=5e-4, after=1.5e-3)
    for _ in range(4):
        sim.advance(np.zeros(biped.nu))
    momentum = pin.computeCentroidalMomentum(biped.model, biped.model.createData(), sim.q, sim.v).linear
    assert momentum[1] == pytest.approx(100.0 * (1.5e-3 - 5e-4), rel=2e-3)


def test_a_quaternion_of_no_length_is_refused(biped: Robot) -> None:
    sim = Simulator(biped)
    q = biped.q_nominal.copy()
    q[3:7] = 0.0
    with refusal(place="q[3:7]", value=[0.0] * 4):
        sim.reset(q)
    np.testing.assert_array_equal(sim.q, biped.q_nominal)


def test_a_refused_step_leaves_no_snapshot(biped: Robot) -> None:
    sim = Simulator(biped)
    before = sim.snapshot()
    with pytest.raises(DivergenceError):
        sim.step(np.full(biped.nu, 1e12))
    with pytest.raises(DivergenceError):
        sim.snapshot()
    sim.restore(before)
    assert np.isfinite(sim.step(standing_torque(biped)).foot_wrench).all()


def stirred(sim: Simulator, seed: int, ticks: int) -> list[dict[str, np.ndarray]]:
    """Run under random torques and pushes of any length; return the traces of the last ticks."""
    rng = np.random.default_rng(seed)
    seen = []
    for tick in range(ticks):
        if rng.random() < 0.1:
            wrench = np.array([*rng.uniform(-300.0, 300.0, 3), 0.0, 0.0, 0.0])
            sim.push(wrench, duration=rng.uniform(1e-4, 0.02), after=rng.uniform(0.0, 2e-3))
        sim.step(standing_torque(sim.robot) + rng.normal(size=sim.robot.nu))
        if tick > ticks - 3:
            seen.append(traces(sim))
    return seen


@pytest.mark.long
@pytest.mark.parametrize("model", CONTACT_MODELS)
@settings(max_examples=2, deadline=None)
@given(
    hardware=st.sampled_from(["ideal", "realistic"]),
    substeps=st.sampled_from([1, 4]),
    seed=st.integers(0, 99),
    thrown=st.booleans(),
)
def test_what_was_run_before_is_forgotten_by_reset_and_by_restore(
    biped: Robot, model: str, hardware: str, substeps: int, seed: int, thrown: bool
) -> None:
    """After a reset, the outputs are, to the bit, those of a new simulator, for any earlier run, push and slip."""

    def fresh() -> Simulator:
        return Simulator(biped, None, model, 1e-3, substeps * 1e-3, None, hardware, 5)

    start = biped.q_nominal.copy(), np.zeros(biped.model.nv)
    start[1][:2] = (0.8, -0.4) if thrown else (0.0, 0.0)
    sim, other = fresh(), fresh()
    other.reset(*start, seed=5)
    first = traces(other)
    expected = stirred(other, seed, 40)

    sim.reset()
    stirred(sim, seed + 1, 30)
    sim.push(np.array([0.0, 200.0, 0.0, 0.0, 0.0, 0.0]))
    sim.step(np.full(biped.nu, 3.0))
    sim.reset(*start, seed=5)
    same(traces(sim), first)
    kept = sim.snapshot()
    for now, then in zip(stirred(sim, seed, 40), expected, strict=True):
        same(now, then)
    # In the middle of it, perhaps under a push or sliding.
    middle, at = sim.snapshot(), traces(sim)
    future, drawn = stirred(sim, seed + 2, 20), []
    sim.push(np.array([0.0, 0.0, 900.0, 0.0, 0.0, 0.0]))
    stirred(sim, seed + 3, 7)
    for twin in (sim, fresh()):
        twin.restore(middle)
        same(traces(twin), at)
        for now, then in zip(stirred(twin, seed + 2, 20), future, strict=True):
            same(now, then)
        twin.push(np.array([0.0, 0.0, 900.0, 0.0, 0.0, 0.0]))
        twin.step(np.zeros(biped.nu))
        twin.reset()
        drawn.append(traces(twin))
        twin.restore(kept)
        for now, then in zip(stirred(twin, seed, 40), expected, strict=True):
            same(now, then)
    same(*drawn)


@pytest.mark.long
@pytest.mark.parametrize(
    ("scene", "acts"),
    [
        (among_things, {"impulses.stops", "impulses.bodies", "objects", "touching", "plates"}),
        (partial(among_things, "ncp"), {"impulses.stops", "impulses.bodies", "objects", "touching", "plates"}),
        (in_a_gantry, {"gantry", "plates"}),
        (with_loops, {"impulses.loops"}),
    ],
    ids=["things", "things, ncp", "gantry", "loops"],
)
def test_all_that_surrounds_a_robot_is_forgotten_and_restored(scene: Callable[[], Simulator], acts: set[str]) -> None:
    """A fall among objects, a rope, closed chains: equal to the bit to those of a new simulator."""

    def thrown(sim: Simulator, speed: float, ticks: int) -> list[dict[str, np.ndarray]]:
        torque = standing_torque(sim.robot)
        seen = []
        for _ in range(ticks):
            if speed:
                push = np.array([speed * sim.robot.weight, 0.0, 0.0, 0.0, 0.0, 0.0])
                for body in (None, *(() if sim.objects is None else sim.objects.names)):
                    sim.push(push, body, duration=1e-3)
            sim.step(0.5 * torque)
            seen.append(traces(sim))
        return seen

    sim, other = scene(), scene()
    other.reset(seed=0)
    first, expected = traces(other), thrown(other, 1.5, 150)
    changed = [name for name in first if any(now[name].tobytes() != first[name].tobytes() for now in expected)]
    for what in acts:
        assert any(name.startswith(what) for name in changed), f"{what} has no part in it"
    thrown(sim, -0.6, 250)
    sim.reset(seed=0)
    same(traces(sim), first)
    for now, then in zip(thrown(sim, 1.5, 40), expected, strict=False):
        same(now, then)
    # The pushes have ended; only their effect remains.
    at = thrown(sim, 0.0, 2)[-1]
    middle, future = sim.snapshot(), thrown(sim, 0.0, 60)
    thrown(sim, 1.5, 90)
    assert acts.isdisjoint({"impulses.stops"}) or sim.stop_impulse.any()
    astray = scene()
    thrown(astray, 1.5, 40)
    assert acts.isdisjoint({"impulses.bodies"}) or astray.body_impulse.any()
    for twin in (sim, astray, scene()):
        twin.restore(middle)
        same(traces(twin), at)
        for now, then in zip(thrown(twin, 0.0, 60), future, strict=True):
            same(now, then)


def end_of_the_ground() -> Ground:
    """Return a table that ends under the toes of biped14, with little friction on the left."""
    left, right = (np.array([[-1.0, y], [0.05, y], [0.05, y + 1.0], [-1.0, y + 1.0]]) for y in (0.0, -1.0))
    return Ground((Patch(region=left, friction_static=0.2, friction_dynamic=0.1), Patch(region=right)))


@pytest.mark.parametrize(("name", "ground", "ticks"), [("compass", None, 1500), ("biped14", end_of_the_ground(), 200)])
def test_what_the_feet_stood_on_is_forgotten_and_restored(name: str, ground: Ground | None, ticks: int) -> None:
    """A leg that passes the ground, and soles over an edge, to the bit as in a simulator that was never elsewhere."""
    robot = load_robot(name)
    sim, other = Simulator(robot, ground), Simulator(robot, ground)
    rest = np.zeros(robot.nu)
    begin = sim.snapshot()
    met = []
    for tick in range(ticks):
        before = sim.snapshot()
        sim.step(rest)
        if tick % (ticks // 5) == 0 or any(
            before.footing[key].tobytes() != values.tobytes()
            for key, values in sim.snapshot().footing.items()
            if key in ("patch", "passing", "n_vertices")
        ):
            met.append((before, traces(sim)))
    assert len(met) >= 5
    other.reset(seed=0)
    other.step(rest)
    for before, then in reversed(met):
        for twin in (sim, Simulator(robot, ground)):
            twin.restore(before)
            twin.step(rest)
            same(traces(twin), then)
        sim.reset(seed=0)
        sim.step(rest)
        same(traces(sim), traces(other))
    sim.restore(begin)
    assert sim.t == 0.0


def test_what_falls_freely_feels_no_weight_with_several_steps_in_a_tick(biped: Robot) -> None:
    sim = Simulator(biped, physics_dt=1e-3, control_dt=4e-3)
    q = biped.q_nominal.copy()
    q[2] += 1.0
    sim.reset(q)
    for _ in range(3):
        observation = sim.step(np.zeros(biped.nu))
        assert np.abs(observation.imu_linear_acceleration).max() < 1e-9


@pytest.mark.parametrize("events", [True, False])
@pytest.mark.parametrize("model", CONTACT_MODELS)
def test_a_landing_is_restored_in_each_of_its_steps(biped: Robot, model: str, events: bool) -> None:
    """Tilted, so that the vertices touch down one after the other, by a simulator that was elsewhere before."""
    sim, other = (Simulator(biped, contact=model, events=events) for _ in range(2))
    q, v = pin.integrate(biped.model, biped.q_nominal, np.eye(biped.model.nv)[3:5].T @ [0.02, 0.03]), sim.v.copy()
    q[2], v[:3] = q[2] + 0.01, (0.2, 0.1, -0.3)
    sim.reset(q, v)
    rest, met = np.zeros(biped.nu), []
    for _ in range(60):
        before = sim.snapshot()
        sim.step(rest)
        met.append((before, traces(sim)))
    assert sim.contact.wrench[:, 2].any()
    for before, then in reversed(met):
        other.restore(before)
        other.step(rest)
        same(traces(other), then)


def test_a_foot_that_stands_is_restored_where_it_was_passing_the_ground() -> None:
    """The compass on its left foot, while the right one passes, and mirrored."""
    robot = load_robot("compass")
    x, z, left, hip = robot.q_nominal
    rest, laps = np.zeros(robot.nu), []
    for q in (robot.q_nominal, np.array([x, z, left + hip, -hip])):
        sim = Simulator(robot)
        sim.reset(q, seed=0)
        begin = sim.snapshot()
        for _ in range(50):
            sim.step(rest)
        laps.append((begin, traces(sim)))
    sim = Simulator(robot)
    for begin, then in (*laps, *laps):
        sim.restore(begin)
        for _ in range(50):
            sim.step(rest)
        same(traces(sim), then)
