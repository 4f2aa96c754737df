"""Joint limits under every contact model: closed forms, joint ranges, and conserved quantities."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from marks import sampled
from physics_support import G, special_robot
from refusals import refusal
from scipy.integrate import solve_ivp
from theory import MODELS, THEORY, Theory
from uncompiled import InPython

from bipedsim.dynamics import step
from bipedsim.ground import Ground
from bipedsim.model import Robot, load_robot
from bipedsim.sim.simulator import Simulator

VELOCITY_LEVEL = [name for name in MODELS if THEORY.get(name, Theory()).rigid]
OFF = {"joint_stops": False}

URDF = """<robot name="pendulum"><link name="ceiling"/>
<link name="rod"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
<inertia ixx="0.08" ixy="0" ixz="0" iyy="0.08" iyz="0" izz="0.001"/></inertial></link>
<joint name="hinge" type="revolute"><parent link="ceiling"/><child link="rod"/><origin xyz="0 0 2"/>
<axis xyz="0 1 0"/><limit lower="-0.3" upper="1.2" effort="100" velocity="50"/></joint></robot>"""
YAML = """name: pendulum
description: a rod on a hinge with two stops
urdf: pendulum.urdf
root: fixed
gravity: {gravity}
joints: [hinge]
feet: {{tip: {{frame: rod, vertices: [[0.0, 0.0]], friction_static: 0.5, friction_dynamic: 0.5}}}}
imu: {{frame: rod}}
"""
LOWER, UPPER, INERTIA, LEVER = -0.3, 1.2, 0.08 + 0.25, 0.5
NOTHING = np.zeros(1)


def pendulum(folder: Path, gravity: float = G) -> Robot:
    (folder / "pendulum.urdf").write_text(URDF)
    (folder / "robot.yaml").write_text(YAML.format(gravity=gravity))
    return load_robot(folder / "robot.yaml")


def swung(sim: Simulator, angle: float, speed: float, duration: float) -> tuple[np.ndarray, np.ndarray]:
    """Return angles and speeds (n,) of the pendulum, beginning with the first ones."""
    sim.reset(np.array([angle]), np.array([speed]))
    rows = [(angle, speed)]
    for _ in range(round(duration / sim.physics_dt)):
        sim.advance(NOTHING)
        rows.append((sim.q[0], sim.v[0]))
    return tuple(np.array(rows).T)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("restitution", [0.0, 0.6, 1.0])
def test_without_gravity_a_rod_goes_to_and_fro_as_newton_says(tmp_path: Path, model: str, restitution: float) -> None:
    """The times are those of a point between two walls that keeps the fraction e of its speed at each impact."""
    h, speed = 1e-3, 4.3217
    sim = Simulator(pendulum(tmp_path, 0.0), contact=model, hardware={"stop_restitution": restitution})
    angles, speeds = swung(sim, 0.0, speed, 1.5)
    assert angles.min() >= LOWER - 1e-12
    assert angles.max() <= UPPER + 1e-12
    t, angle, where = 0.0, 0.0, UPPER
    expected = np.zeros_like(angles)
    times = h * np.arange(len(angles))
    while True:
        after = t + (where - angle) / speed if speed else np.inf
        now = (times >= t) & (times < after)
        expected[now] = angle + (times[now] - t) * speed
        if after > times[-1] + h:
            break
        t, angle, speed, where = after, where, -restitution * speed, LOWER if where == UPPER else UPPER
    assert np.unique(np.round(np.abs(speeds[speeds != 0.0]), 9)).size <= (1 if restitution == 1.0 else 4)
    # With forces within the step, the bounce has its exact time as well. Only rounding errors remain.
    np.testing.assert_allclose(angles, expected, atol=1e-9)


AFLOAT = """<robot name="afloat"><link name="hub"><inertial><origin xyz="0 0 0"/><mass value="2"/>
<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
<link name="rod"><inertial><origin xyz="0 0 0"/><mass value="1"/>
<inertia ixx="0.05" ixy="0" ixz="0" iyy="0.05" iyz="0" izz="0.05"/></inertial></link>
<joint name="hinge" type="revolute"><parent link="hub"/><child link="rod"/><origin xyz="0 0 0"/>
<axis xyz="0 1 0"/><limit lower="-1" upper="{upper!r}" effort="100" velocity="50"/></joint></robot>"""


@pytest.mark.parametrize(("speed", "acceleration", "shift"), [(0.1, 50.0, 0.25), (1.1, -50.0, -0.25)])
def test_in_flight_a_joint_that_is_driven_bounces_where_its_parabola_meets_the_limit(
    tmp_path: Path, speed: float, acceleration: float, shift: float
) -> None:
    """Hub and rod turn about their common centre of mass; the limit is just beyond, or before, the end of a step."""
    h, before = 1e-3, 10

    def at(t: float) -> float:
        return speed * t + 0.5 * acceleration * t**2

    upper = at(before * h) + shift * h**2 * abs(acceleration)
    (tmp_path / "pendulum.urdf").write_text(AFLOAT.format(upper=upper))
    (tmp_path / "robot.yaml").write_text(
        YAML.format(gravity=0.0).replace("root: fixed", "root: free_flyer").replace("frame: rod, v", "frame: hub, v")
    )
    robot = load_robot(tmp_path / "robot.yaml")
    sim = Simulator(robot, hardware={"stop_restitution": 1.0})
    sim.reset(np.array([0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 1.0, 0.0]), np.array([*np.zeros(6), speed]))
    for _ in range(2 * before):
        sim.advance(np.array([acceleration / (1.0 / 0.1 + 1.0 / 0.05)]))
    touch = (np.sqrt(speed**2 + 2.0 * acceleration * upper) - speed) / acceleration
    left = 2 * before * h - touch
    expected = upper - (speed + acceleration * touch) * left + 0.5 * acceleration * left**2
    assert sim.q[7] == pytest.approx(expected, abs=1e-8)


@cache
def fallen(restitution: float, impacts: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the times of the impacts of a pendulum let go at 0.9 rad [s], and how high it swings after each [rad]."""
    begun, times, peaks = 0.9, [], []
    t, state = 0.0, [begun, 0.0]

    def swing(_t: float, x: np.ndarray) -> list[float]:
        return [x[1], -G * LEVER / INERTIA * np.sin(x[0])]

    def at_stop(_t: float, x: np.ndarray) -> float:
        return float(x[0] - LOWER)

    at_stop.terminal, at_stop.direction = True, -1  # type: ignore[attr-defined]
    for _ in range(impacts):
        way = solve_ivp(swing, (t, t + 9.0), state, events=at_stop, rtol=1e-12, atol=1e-14)
        t = float(way.t_events[0][0])
        times.append(t)
        state = [LOWER, -restitution * float(way.y_events[0][0][1])]
        energy = 0.5 * INERTIA * state[1] ** 2 - G * LEVER * np.cos(LOWER)
        peaks.append(float(np.arccos(-energy / (G * LEVER))))
    return np.array(times), np.array(peaks[:-1])


def bounced(robot: Robot, model: str, h: float, restitution: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the result of :func:`fallen` for a simulation."""
    sim = Simulator(robot, contact=model, physics_dt=h, hardware={"stop_restitution": restitution})
    angles, speeds = swung(sim, 0.9, 0.0, fallen(restitution, 5)[0][-1] + 0.05)
    hits = np.flatnonzero((speeds[:-1] < 0.0) & (speeds[1:] > 0.0))
    # Between two steps: where it would have been with the speed of before.
    times = h * (hits + np.clip((angles[hits] - LOWER) / (-h * speeds[hits]), 0.0, 1.0))
    return times, np.array([angles[a:b].max() for a, b in itertools.pairwise(hits)])


@pytest.mark.parametrize("model", VELOCITY_LEVEL)
def test_a_pendulum_bounces_off_its_stop_as_energy_says(tmp_path: Path, model: str) -> None:
    times, peaks = fallen(0.8, 5)
    robot = pendulum(tmp_path)
    errors = []
    for h in (2e-3, 1e-3):
        found, angles = bounced(robot, model, h, 0.8)
        errors.append(np.abs(angles[:4] - peaks).max())
        # Let go between two steps, it is half a step ahead or behind, and stays so.
        np.testing.assert_allclose(found[:5], times, atol=h)
    assert errors[1] < 1e-3
    assert errors[1] < 0.7 * errors[0] or errors[0] < 1e-5


@pytest.mark.parametrize("model", MODELS)
def test_a_pendulum_comes_to_rest_on_its_stop(tmp_path: Path, model: str) -> None:
    """A plastic impact: the pendulum stays at the limit, which supports the moment of gravity about the hinge."""
    robot = pendulum(tmp_path)
    sim = Simulator(robot, contact=model, control_dt=4e-3)
    said: list[str] = []
    monitors = sim.watch(lambda name, text, begun: said.append(text))
    sim.reset(np.array([0.5]))
    impulse = 0.0
    for _ in range(250):
        sim.advance(np.array([-20.0]))
        impulse += sim.stop_impulse[0]
    assert abs(sim.q[0] - LOWER) < 1e-12
    assert abs(sim.v[0]) < 1e-9
    held = 20.0 + G * LEVER * np.sin(LOWER)
    assert sim.stop_impulse[0] / 4e-3 == pytest.approx(held, rel=1e-9)
    # Impulses of the whole way add up: it is at rest in the end as it was at the beginning.
    assert impulse > held * 0.5
    assert said == []
    assert monitors.figures()["joint_limit_rad"]["worst"] <= 1e-9


def dropped(robot: Robot, model: str, knees: float = 0.35, height: float = 0.1, **hardware: Any) -> Simulator:
    """Return an airborne robot whose knees stretch without any torque."""
    sim = Simulator(robot, contact=model, hardware=hardware)
    sim.watch(lambda name, said, begun: None)
    q, v = sim.q.copy(), np.zeros(robot.model.nv)
    q[2] += height
    for j, name in enumerate(robot.joint_names):
        if "knee" in name or name in ("leg_left_4_joint", "leg_right_4_joint"):
            q[robot.idx_q[j]] = robot.position_lower[j] + knees
            v[robot.idx_v[j]] = -3.0
    sim.reset(q, v)
    return sim


def tossed(robot: Robot, model: str, **hardware: Any) -> Simulator:
    """Return a robot high in the air with all joints turning."""
    sim = dropped(robot, model, height=2.0, **hardware)
    v = sim.v.copy()
    v[6:] = 6.0 * np.random.default_rng(1).normal(size=len(v) - 6)
    sim.reset(sim.q, v)
    return sim


def beyond(sim: Simulator) -> float:
    """Return how far the worst joint is beyond its limits [rad]."""
    robot = sim.robot
    angles = sim.q[robot.idx_q]
    return float(np.maximum(robot.position_lower - angles, angles - robot.position_upper).max())


@pytest.mark.parametrize(
    ("name", "model"), [("biped14", model) for model in MODELS] + [("talos", "one_step"), ("g1", "exact")]
)
def test_a_robot_without_torques_falls_onto_its_stops(name: str, model: str) -> None:
    """The knees hit their limits in the air, the feet hit the ground, and all joints stay within their limits."""
    robot = load_robot(name)
    sim = dropped(robot, model)
    used = np.zeros(robot.model.nv, dtype=bool)
    for _ in range(1000):
        sim.advance(np.zeros(robot.nu))
        assert beyond(sim) < 1e-15
        used |= sim.stop_impulse != 0.0
    assert used.sum() >= 4
    assert sim.monitors is not None
    figures = sim.monitors.figures()
    for monitor in ("momentum_error", "joint_limit_rad", "stop_work_J"):
        assert figures[monitor]["steps_beyond"] == 0, (monitor, figures[monitor])


@pytest.mark.parametrize("model", MODELS)
def test_no_stop_pulls_where_no_set_of_active_limits_is_found(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search ends after its first attempt. Joints stay within their limits, and each impulse points inwards."""
    monkeypatch.setattr(step, "TRIES", 0)
    monkeypatch.setattr(step, "_sets_of", lambda sides: iter(()))
    robot = load_robot("biped14")
    sim = tossed(robot, model)
    q = sim.q.copy()
    q[2] -= 1.95
    sim.reset(q, sim.v)
    stops, unresolved = sim.dynamics.stops, 0
    middle = 0.5 * (stops.lower + stops.upper)
    for _ in range(600):
        sim.advance(np.zeros(robot.nu))
        assert beyond(sim) < 1e-15
        angles, impulses = sim.q[stops.idx_q], sim.stop_impulse[stops.idx_v]
        assert (impulses * np.sign(middle - angles) >= -1e-9 * abs(impulses).max(initial=0.0)).all()
        unresolved += sim.dynamics.unresolved
    assert unresolved > 0


@pytest.mark.parametrize("restitution", [0.0, 0.5])
@pytest.mark.parametrize("model", VELOCITY_LEVEL)
def test_energy_never_rises(model: str, restitution: float) -> None:
    """In free fall, the joint limits do no other work: kinetic and potential energy never exceed those of the previous
    step.

    The tolerance is the integration error of the same fall before the first impact at a limit.
    """
    robot = load_robot("biped14")
    sim = tossed(robot, model, stop_restitution=restitution)
    data = robot.model.createData()

    def energy() -> float:
        return float(pin.computeKineticEnergy(robot.model, data, sim.q, sim.v)) + float(
            pin.computePotentialEnergy(robot.model, data, sim.q)
        )

    before, stopped = energy(), 0
    for _ in range(550):
        sim.advance(np.zeros(robot.nu))
        now = energy()
        assert now <= before + 2e-3
        stopped += bool(sim.stop_impulse.any())
        before = now
    assert stopped > 5


@pytest.mark.parametrize("restitution", [0.0, 0.7])
@pytest.mark.parametrize("model", MODELS)
def test_stops_are_internal_to_the_robot(model: str, restitution: float) -> None:
    """In flight, joint limits change neither momentum nor angular momentum nor the parabola of the centre of mass."""
    robot = load_robot("biped14")
    sim = tossed(robot, model, stop_restitution=restitution)
    data = robot.model.createData()
    pin.ccrba(robot.model, data, sim.q, sim.v)
    momentum, com = data.hg.vector.copy(), data.com[0].copy()
    stopped = 0
    for _ in range(400):
        sim.advance(np.zeros(robot.nu))
        stopped += bool(sim.stop_impulse.any())
    assert stopped > 2
    t = sim.t
    pin.ccrba(robot.model, data, sim.q, sim.v)
    weight = np.array([0.0, 0.0, -robot.weight, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(data.hg.vector, momentum + t * weight, atol=1e-10)
    expected = com + t * momentum[:3] / robot.mass + 0.5 * t * t * weight[:3] / robot.mass
    np.testing.assert_allclose(data.com[0], expected, atol=1e-11)


@pytest.mark.parametrize("model", MODELS)
def test_a_snapshot_at_a_stop_goes_on_to_the_bit(model: str) -> None:
    robot = load_robot("biped14")
    sim = dropped(robot, model, stop_restitution=0.4)
    for _ in range(1000):
        sim.advance(np.zeros(robot.nu))
        held = sim.dynamics.stops.held.copy()
        if held.any() and sim.stop_impulse.any() and (sim.contact.impulse[:, 2] > 0.0).any():
            break
    assert held.any()
    middle = sim.snapshot()
    torque = np.full(robot.nu, -3.0)

    def after(simulator: Simulator) -> list[bytes]:
        bits = []
        for _ in range(200):
            simulator.advance(torque)
            bits.append(simulator.q.tobytes() + simulator.v.tobytes() + simulator.stop_impulse.tobytes())
        return bits

    first = after(sim)
    sim.restore(middle)
    np.testing.assert_array_equal(sim.dynamics.stops.held, held)
    assert after(sim) == first
    other = dropped(robot, model, stop_restitution=0.4)
    other.restore(middle)
    assert after(other) == first


@pytest.mark.parametrize("model", sampled(VELOCITY_LEVEL, 2))
def test_a_model_that_is_not_compiled_has_the_same_stops(model: str) -> None:
    robot = load_robot("biped14")
    sims = [dropped(robot, model) for _ in range(2)]
    other = InPython(sims[1].solver)
    other.late = None  # type: ignore[attr-defined]
    sims[1].solver = sims[1].stepper._contact = other  # type: ignore[assignment]
    for _ in range(700):
        for sim in sims:
            sim.advance(np.zeros(robot.nu))
        np.testing.assert_array_equal(sims[0].q, sims[1].q)
    assert sims[0].stop_impulse.any()


@pytest.mark.parametrize("model", MODELS)
def test_without_a_stop_near_there_are_none(model: str) -> None:
    """A standing robot that bends its knees a little has the same bits with joint limits as without."""
    robot = load_robot("biped14")
    rng = np.random.default_rng(0)
    sims = [Simulator(robot, contact=model), Simulator(robot, contact=model, hardware=OFF)]
    for _ in range(150):
        torque = rng.normal(0.0, 20.0, robot.nu)
        for sim in sims:
            sim.advance(torque)
        np.testing.assert_array_equal(sims[0].q, sims[1].q)
        np.testing.assert_array_equal(sims[0].contact.wrench, sims[1].contact.wrench)
        assert not sims[0].stop_impulse.any()


def test_by_choice_joints_turn_on() -> None:
    robot = load_robot("biped14")
    sim = dropped(robot, "one_step", height=2.0, joint_stops=False)
    for _ in range(400):
        sim.advance(np.zeros(robot.nu))
    assert beyond(sim) > 0.1
    assert not sim.stop_impulse.any()


def test_a_posture_beyond_a_limit_is_refused_with_the_name_of_the_joint(tmp_path: Path) -> None:
    robot = pendulum(tmp_path)
    sim, free = Simulator(robot), Simulator(robot, hardware=OFF)
    with refusal(place="joint 'hinge'", value=1.3):
        sim.reset(np.array([1.3]))
    free.reset(np.array([1.3]))
    with refusal(place="joint 'hinge'", value=-0.4):
        sim.restore(replace(sim.snapshot(), q=np.array([-0.4])))
    # A rounded position counts as within the limits.
    sim.reset(np.array([UPPER + 1e-9]))
    sim.advance(np.array([5.0]))
    assert sim.q[0] <= UPPER + 1e-12


@pytest.mark.parametrize("model", MODELS)
def test_what_a_stop_did_adds_up_over_an_impact(model: str) -> None:
    """The shoulder rests at its limit and the elbow hits its own. The momentum about the shoulder balances.

    Without gravity, only the drive and the joint limit of the shoulder change it.
    """
    arm, q, speed, tau = special_robot("arm"), np.array([0.6, -1.6]), 3.0, np.array([20.0, 0.0])
    limits, room = pin.Model(arm.model), np.array([0.0, 3.3e-3])
    limits.gravity.linear = np.zeros(3)
    limits.upperPositionLimit = q + room
    robot = replace(arm, model=limits, position_upper=q + room, q_nominal=q)
    sim = Simulator(robot, Ground.plane(np.array([0.0, 0.0, -9.0]), np.eye(3)), model)
    sim.reset(q, np.array([0.0, speed]))
    data = limits.createData()

    def momentum() -> float:
        pin.crba(limits, data, sim.q)
        return float((np.triu(data.M) + np.triu(data.M, 1).T)[0] @ sim.v)

    before, total = momentum(), 0.0
    for _ in range(4):
        sim.advance(tau)
        total += sim.stop_impulse[0]
    np.testing.assert_allclose(sim.v, 0.0, atol=1e-9)
    # A step is of first order: M of its beginning is that of half a step to a whole one ago.
    slope = 0.5 * 0.25 * abs(np.sin(q[1]))
    assert total == pytest.approx(momentum() - before - 4 * 1e-3 * tau[0], abs=1.1 * slope * speed**2 * 1e-3)


def test_a_foot_and_a_stop_are_solved_for_together(tmp_path: Path) -> None:
    """A straight leg under a weight: in the same step, the ground force acts through the limit of the knee."""
    robot = load_robot("biped14")
    sim = Simulator(robot, Ground.flat())
    straight = np.zeros(robot.nu)
    q = robot.settle(straight)
    sim.reset(q)
    knees = [robot.joint_names.index(name) for name in ("l_knee", "r_knee")]
    torque = np.zeros(robot.nu)
    torque[knees] = -50.0
    for _ in range(20):
        sim.advance(torque)
        # The joint limits support the load of the drives minus the moment of the weight. Nothing moves.
        assert (sim.stop_impulse[robot.idx_v[knees]] > 0.0).all()
        np.testing.assert_array_less(np.abs(sim.v[robot.idx_v[knees]]), 1e-12)
    assert sim.contact.wrench[:, 2].sum() == pytest.approx(robot.weight, rel=0.02)


def test_a_vertex_that_lands_at_the_very_end_of_a_step_leaves_joints_at_their_stops_alone() -> None:
    """Regression in a walk of talos: the violation of a gripper's joint limit was corrected in the last 1e-18 s of a
    step.
    """
    robot = load_robot("biped14")
    sim = Simulator(robot)
    sim.reset()
    knees = [robot.joint_names.index(name) for name in ("l_knee", "r_knee")]
    q, v = sim.q.copy(), np.zeros(robot.model.nv)
    v[2] = -0.5
    for i in knees:
        q[robot.idx_q[i]] = robot.model.lowerPositionLimit[robot.idx_q[i]] + 2e-7
        # So slowly that the step ends at the stop, and the way before a landing leads a little beyond.
        v[robot.idx_v[i]] = -1e-3

    def lands(height: float) -> bool:
        q[2] = height
        sim.reset(q, v)
        sim.step(np.zeros(robot.nu))
        assert np.abs(sim.v).max() < 5.0
        assert (sim.q[robot.idx_q[knees]] > robot.model.lowerPositionLimit[robot.idx_q[knees]] - 1e-6).all()
        return bool(sim.contact.impact.any())

    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, q)
    above = min(
        (data.oMi[sole.joint_id] * sole.placement_joint_sole).act(np.array([x, y, 0.0]))[2]
        for sole in robot.soles
        for x, y in sole.vertices
    )
    low, high = q[2] - above + 1e-4, q[2] - above + 1e-3
    assert lands(low)
    assert not lands(high)
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if lands(middle) else (low, middle)
    for ulps in range(-40, 40):
        lands(low + ulps * np.spacing(low))
