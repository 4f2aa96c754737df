"""Closed chains under every contact model: closed forms, drift, energy and momentum, impacts and stops."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
import yaml
from loop_support import linkage
from marks import sampled
from refusals import refusal
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline
from scipy.special import ellipk
from theory import MODELS, THEORY, Theory
from uncompiled import InPython

from bipedsim.control import make_controller
from bipedsim.model import LoopEquations, Robot, load_robot
from bipedsim.sim.simulator import Simulator

G = 9.81
H = 1e-3
DRIFT = 1e-9
VELOCITY_LEVEL = [name for name in MODELS if THEORY.get(name, Theory()).rigid]
NOTHING = np.zeros(1)
_PARALLEL = load_robot("parallel_ankles")


class Watched:
    """A simulation with checks of its chains and monitors in every step."""

    def __init__(self, robot: Robot, model: str, physics_dt: float = H, **hardware: float | bool) -> None:
        self.sim = Simulator(robot, contact=model, physics_dt=physics_dt, hardware=hardware)
        self.said: list[str] = []
        self.monitors = self.sim.watch(lambda name, text, begun: self.said.append(text))
        self._equations = LoopEquations(robot.model, robot.loops)
        self._data = robot.model.createData()
        self.drift = 0.0

    def advance(self, tau: np.ndarray) -> None:
        self.sim.advance(tau)
        self.drift = max(self.drift, float(self._equations.gaps(self.sim.q).max()))

    def energy(self) -> float:
        model, sim = self.sim.robot.model, self.sim
        return float(pin.computeKineticEnergy(model, self._data, sim.q, sim.v)) + float(
            pin.computePotentialEnergy(model, self._data, sim.q)
        )


def swings(robot: Robot, model: str, h: float, count: int) -> tuple[np.ndarray, float]:
    """Return the times [s] at which the crank comes through 0 on its way forwards, and the drift."""
    watched = Watched(robot, model, h)
    sim, times = watched.sim, []
    while len(times) < count:
        before = float(sim.q[0])
        watched.advance(NOTHING)
        if before < 0.0 <= sim.q[0]:
            times.append(sim.t - h * sim.q[0] / (sim.q[0] - before))
    assert watched.said == []
    return np.array(times), watched.drift


@pytest.mark.long
@pytest.mark.parametrize("model", MODELS)
def test_a_parallelogram_swings_as_a_pendulum_does(tmp_path: Path, model: str) -> None:
    """Its rod does not turn: the inertia about the hinges is constant, the period an elliptic integral.

    A semi-implicit step has it to the second order, one of forces within the step to the first.
    """
    length, begun = 0.3, 1.1
    robot = linkage(tmp_path, (length, 0.4, length, 0.4), posture={"a": begun, "b": -begun, "c": begun})
    inertia = 0.01 + 0.25 * length**2 + 0.02 + 1.5 * 0.25 * length**2 + 2.0 * length**2
    pull = G * (0.5 * length + 1.5 * 0.5 * length + 2.0 * length)
    period = 4.0 * np.sqrt(inertia / pull) * ellipk(np.sin(0.5 * begun) ** 2)
    errors = []
    for h in (2e-3, 1e-3):
        times, drift = swings(robot, model, h, 3)
        errors.append(abs(np.diff(times).mean() - period))
        assert drift < DRIFT
    rigid = THEORY.get(model, Theory()).rigid
    assert errors[1] < (1e-5 if rigid else 5e-3)
    assert errors[1] < 0.7 * errors[0] or errors[1] < 1e-5


@pytest.mark.parametrize("model", sampled(VELOCITY_LEVEL, 2))
def test_a_linkage_moves_as_its_one_coordinate_does(tmp_path: Path, model: str) -> None:
    """Lagrange's equation of the crank, I a'' + I' a'^2 / 2 + U' = tau, with I and U by closing the loop; order two."""
    robot = linkage(tmp_path)
    data, e, tau = robot.model.createData(), 1e-4, 0.8

    def at(crank: float) -> tuple[float, float]:
        ahead, behind = (robot.settle([crank + s * e]) for s in (1.0, -1.0))
        q, rate = robot.settle([crank]), (ahead - behind) / (2.0 * e)
        twice = 2.0 * float(pin.computeKineticEnergy(robot.model, data, q, rate))
        return twice, float(pin.computePotentialEnergy(robot.model, data, q))

    grid = np.linspace(-1.2, 1.2, 241)
    table = np.array([at(crank) for crank in grid])
    inertia, potential = CubicSpline(grid, table[:, 0]), CubicSpline(grid, table[:, 1])

    def moves(_t: float, x: np.ndarray) -> list[float]:
        a, rate = x
        pull = tau - 0.5 * inertia(a, 1) * rate**2 - potential(a, 1)
        return [rate, float(pull / inertia(a))]

    times = np.linspace(0.0, 2.0, 41)
    expected = solve_ivp(moves, (0.0, 2.0), [0.5, 0.0], t_eval=times, rtol=1e-10, atol=1e-12).y[0]
    errors = []
    for h in (2e-3, 1e-3, 5e-4):
        sim = Simulator(robot, contact=model, physics_dt=h)
        sim.reset()
        found = [sim.q[0]]
        for _ in range(40):
            for _ in range(round(0.05 / h)):
                sim.advance(np.array([tau]))
            found.append(sim.q[0])
        errors.append(np.abs(np.array(found) - expected).max())
    assert errors[2] < 2e-6
    assert errors[1] < 0.3 * errors[0]
    assert errors[2] < 0.3 * errors[1]


@pytest.mark.long
def test_a_minute_of_swinging_keeps_loop_and_energy(tmp_path: Path) -> None:
    """The chain stays closed and does no work. The energy error is smaller than for an open chain."""
    robot = linkage(tmp_path)
    energies = {}
    for loops in (robot.loops, ()):
        watched = Watched(robot, "one_step") if loops else None
        sim = watched.sim if watched else Simulator(replace(robot, loops=()))
        data, means = robot.model.createData(), []
        for _ in range(60):
            total = 0.0
            for _ in range(1000):
                q, v = sim.q.copy(), sim.v.copy()
                sim.advance(NOTHING)
                # The velocity of the middle, where positions are.
                total += pin.computeKineticEnergy(robot.model, data, q, 0.5 * (v + sim.v))
                total += pin.computePotentialEnergy(robot.model, data, q)
            means.append(total / 1000)
            if watched:
                assert LoopEquations(robot.model, robot.loops).gaps(sim.q).max() < DRIFT
        energies[bool(loops)] = np.array(means)
        if watched:
            assert watched.said == []
            assert watched.monitors.figures()["loop_gap_m"]["worst"] < DRIFT
    lowest = min(float(pin.computePotentialEnergy(robot.model, data, robot.settle([a]))) for a in (-0.1, 0.0, 0.1))
    swing = energies[True][0] - lowest
    assert np.abs(energies[True] - energies[True][0]).max() < 0.02 * swing
    assert np.abs(energies[True] - energies[True][0]).max() < 0.1 * np.abs(energies[False] - energies[False][0]).max()


@pytest.mark.parametrize("model", MODELS)
def test_a_weld_is_a_rigid_body(tmp_path: Path, model: str) -> None:
    """A joint that a chain holds, compared with the same joint locked: falling, landing and at rest."""
    source = load_robot("biped14").source
    config = yaml.safe_load(source.read_text())
    urdf = str(source.parent / "robot.urdf")
    joints = [name for name in config["joints"] if name != "l_ankle_yaw"]
    shared = {**config, "urdf": urdf, "joints": joints, "controllers": {}, "hardware": {}}
    angle = 0.1
    paths = []
    biped = load_robot("biped14").model
    at = biped.jointPlacements[biped.getJointId("l_ankle_yaw")].translation
    for name, part in (
        ("locked", {"locked": {"l_ankle_yaw": angle}}),
        (
            "welded",
            {
                "passive": ["l_ankle_yaw"],
                "posture": {**config["posture"], "l_ankle_yaw": angle},
                "loops": {
                    "glue": {
                        "type": "weld",
                        "frame1": "l_shank",
                        "placement1": {"xyz": [float(x) for x in at], "rpy": [0.0, 0.0, angle]},
                        "frame2": "l_ankle_yaw_link",
                    }
                },
            },
        ),
    ):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "robot.yaml").write_text(yaml.safe_dump({**shared, **part}))
        paths.append(folder / "robot.yaml")
    locked, welded = map(load_robot, paths)
    sims = [Simulator(robot, contact=model) for robot in (locked, welded)]
    for sim, robot in zip(sims, (locked, welded), strict=True):
        q = robot.settle(locked.posture)
        q[2] += 0.02
        sim.reset(q)
    # It lands after some 60 steps; rounding, which slip makes larger, has no time to grow.
    landed = False
    for i in range(85):
        tau = 5.0 * np.sin(0.01 * i + np.arange(locked.nu))
        for sim in sims:
            sim.advance(tau)
        np.testing.assert_allclose(sims[1].v[welded.idx_v], sims[0].v[locked.idx_v], atol=1e-6)
        np.testing.assert_allclose(sims[1].contact.impulse, sims[0].contact.impulse, atol=1e-6)
        landed = landed or bool(sims[0].contact.impulse[:, 2].any())
    assert landed
    np.testing.assert_allclose(sims[1].q[:7], sims[0].q[:7], atol=1e-7)


@pytest.mark.long
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("mode", ["stand", "squat"])
def test_parallel_ankles_stands_and_squats(model: str, mode: str) -> None:
    robot = _PARALLEL
    watched = Watched(robot, model)
    controller = make_controller("posture", robot, {"mode": mode, "squat_period": 0.8}, H)
    observation = watched.sim.reset()
    controller.reset(observation)
    lowest = height = watched.sim.q[2]
    for _ in range(1500):
        observation = watched.sim.step(controller.update(observation).tau_joint)
        watched.drift = max(watched.drift, float(watched._equations.gaps(watched.sim.q).max()))
        lowest = min(lowest, watched.sim.q[2])
    assert watched.drift < DRIFT
    assert watched.said == []
    assert watched.sim.contact.unresolved == 0
    allowed = 3e-3 if not THEORY.get(model, Theory()).rigid else 1e-4
    assert lowest < height - 0.05 if mode == "squat" else lowest > height - allowed


@pytest.mark.parametrize("model", MODELS)
def test_what_holds_a_loop_is_internal_to_the_robot(model: str) -> None:
    """The robot is thrown into the air with its drives on.

    Momentum, angular momentum and parabola do not depend on them, to rounding.
    """
    robot = _PARALLEL
    watched = Watched(robot, model)
    sim, data = watched.sim, robot.model.createData()
    q, v = sim.q.copy(), np.zeros(robot.model.nv)
    q[2] += 1.0
    v[:6] = 0.3, -0.2, 1.0, 1.0, -0.5, 0.3
    sim.reset(q, v)
    pin.ccrba(robot.model, data, sim.q, sim.v)
    momentum, com = data.hg.vector.copy(), data.com[0].copy()
    for i in range(400):
        watched.advance(20.0 * np.sin(0.02 * i + np.arange(robot.nu)))
    pin.ccrba(robot.model, data, sim.q, sim.v)
    t, weight = sim.t, np.array([0.0, 0.0, -robot.weight, 0.0, 0.0, 0.0])
    assert np.abs(sim.v[robot.idx_v]).max() > 1.0
    np.testing.assert_allclose(data.hg.vector, momentum + t * weight, atol=1e-10)
    expected = com + t * momentum[:3] / robot.mass + 0.5 * t * t * weight[:3] / robot.mass
    np.testing.assert_allclose(data.com[0], expected, atol=1e-11)
    assert watched.drift < DRIFT
    assert watched.monitors.figures()["momentum_error"]["worst"] < 1e-12


@pytest.mark.parametrize("restitution", [0.0, 0.5])
@pytest.mark.parametrize("model", VELOCITY_LEVEL)
def test_a_limp_robot_falls_with_its_chains_closed(model: str, restitution: float) -> None:
    """Landings and stops, each with impacts through the loops: no step gives energy, and every one is balanced."""
    robot = _PARALLEL
    watched = Watched(robot, model, stop_restitution=restitution)
    sim = watched.sim
    q = sim.q.copy()
    q[2] += 0.05
    sim.reset(q)
    before, landed, stopped = watched.energy(), 0, 0
    for _ in range(600):
        watched.advance(np.zeros(robot.nu))
        now = watched.energy()
        # Integration error of a step.
        assert now < before + 0.03
        before = now
        landed += bool((sim.contact.impact[:, 2] > 0.0).any())
        stopped += bool(sim.dynamics.stops.held.any())
    assert stopped > 5
    assert watched.drift < DRIFT
    figures = watched.monitors.figures()
    for monitor in ("momentum_error", "contact_work_J", "stop_work_J", "loop_gap_m", "joint_limit_rad"):
        assert figures[monitor]["steps_beyond"] == 0, (monitor, figures[monitor])
    assert landed or sim.contact.impulse[:, 2].any()


@pytest.mark.parametrize("model", MODELS)
def test_a_stop_of_a_joint_without_a_drive_carries_through_the_loop(tmp_path: Path, model: str) -> None:
    """The rocker is at its limit and the crank is pushed further. Virtual work gives the load on the joint limit."""
    free = linkage(tmp_path, gravity=0.0)
    limit = float(free.q_nominal[2])
    robot = linkage(tmp_path, gravity=0.0, rocker_limits=(-9.0, limit))
    watched = Watched(robot, model)
    tau, e = 3.0, 1e-6
    ratio = (free.settle([0.5 + e])[2] - free.settle([0.5 - e])[2]) / (2.0 * e)
    for _ in range(200):
        watched.advance(np.array([tau]))
    np.testing.assert_allclose(watched.sim.q, robot.q_nominal, atol=1e-9)
    stop = watched.sim.dynamics.stops.impulse[list(watched.sim.dynamics.stopped_joints).index("c")]
    assert stop / H == pytest.approx(-tau / ratio, rel=1e-6)
    assert watched.said == []
    # It starts far from the limit and reaches it within a step, with all attached bodies.
    watched.sim.reset(robot.settle([0.1]))
    before = np.inf
    for _ in range(400):
        watched.advance(np.array([tau]))
        assert watched.sim.q[2] <= limit + 1e-9
        before = watched.sim.v[2]
    assert abs(before) < 1e-9
    assert watched.drift < DRIFT


@pytest.mark.parametrize("model", MODELS)
def test_a_snapshot_goes_on_to_the_bit(model: str) -> None:
    robot = _PARALLEL
    sim = Simulator(robot, contact=model, control_dt=2e-3)
    q = sim.q.copy()
    q[2] += 0.01
    sim.reset(q)
    tau = 4.0 * np.sin(np.arange(robot.nu))
    for _ in range(40):
        sim.advance(tau)
    middle = sim.snapshot()

    def after(simulator: Simulator) -> list[bytes]:
        bits = []
        for _ in range(60):
            simulator.advance(tau)
            bits.append(simulator.q.tobytes() + simulator.v.tobytes() + simulator.loop_impulse.tobytes())
        return bits

    first = after(sim)
    sim.restore(middle)
    assert after(sim) == first
    other = Simulator(robot, contact=model, control_dt=2e-3)
    other.restore(middle)
    np.testing.assert_array_equal(other.loop_impulse, middle.participants["reactions"]["loop"])
    assert after(other) == first


@pytest.mark.parametrize(("spoil", "first"), [("impulse", "momentum_error"), ("q", "loop_gap_m")])
def test_monitors_hear_of_a_loop_that_is_wrong(tmp_path: Path, spoil: str, first: str) -> None:
    watched = Watched(linkage(tmp_path), "one_step")
    heard: list[str] = []
    sim = watched.sim
    monitors = sim.watch(lambda name, text, begun: heard.append(f"{name}: {text}"))
    sim.advance(NOTHING)
    assert heard == []
    look = monitors.look

    def spoilt(steps: int, q: np.ndarray, v: np.ndarray, share: float, begins: bool) -> int:
        sim.dynamics.loops.impulse[0] += 1e-6
        return look(steps, q, v, share, begins)

    if spoil == "impulse":
        monitors.look = spoilt
    else:
        sim.q[1] += 1e-7
    sim.advance(NOTHING)
    assert heard[0].startswith(first)
    if spoil == "q":
        assert "a loop is open at t = 0.002000 s (pin)" in heard[0]
    # And it is closed again after the step.
    assert LoopEquations(sim.robot.model, sim.robot.loops).gaps(sim.q).max() < 1e-12


def test_a_model_that_is_not_compiled_has_the_same_loops() -> None:
    sims = [Simulator(_PARALLEL, contact="one_step") for _ in range(2)]
    other = InPython(sims[1].solver)
    other.late = None  # type: ignore[attr-defined]
    sims[1].solver = sims[1].stepper._contact = other  # type: ignore[assignment]
    for sim in sims:
        q = sim.q.copy()
        q[2] += 0.01
        sim.reset(q)
    tau = 4.0 * np.sin(np.arange(_PARALLEL.nu))
    for _ in range(200):
        for sim in sims:
            sim.advance(tau)
        np.testing.assert_array_equal(sims[0].q, sims[1].q)
        np.testing.assert_array_equal(sims[0].loop_impulse, sims[1].loop_impulse)
    assert sims[0].contact.impulse[:, 2].any()


def test_impulses_add_up_over_a_tick(tmp_path: Path) -> None:
    robot = linkage(tmp_path)
    fine, coarse = Simulator(robot), Simulator(robot, control_dt=4e-3)
    for _ in range(20):
        total = np.zeros((1, 6))
        for _ in range(4):
            fine.advance(NOTHING)
            total += fine.loop_impulse
        coarse.advance(NOTHING)
        np.testing.assert_allclose(coarse.loop_impulse, total, rtol=1e-12)
        np.testing.assert_array_equal(coarse.q, fine.q)
    assert not fine.loop_impulse[0, 3:].any()


def test_an_open_loop_is_refused_at_the_start_and_by_a_snapshot(tmp_path: Path) -> None:
    robot = linkage(tmp_path)
    sim = Simulator(robot)
    q = robot.q_nominal.copy()
    q[1] += 1e-4
    for begin in (sim.reset, lambda wrong: sim.restore(replace(sim.snapshot(), q=wrong))):
        with refusal(place="loop 'pin'"):
            begin(q)
    # A rounded configuration is closed.
    sim.reset(np.round(robot.q_nominal, 7))
    assert LoopEquations(robot.model, robot.loops).gaps(sim.q).max() < 1e-12


@pytest.mark.parametrize("model", [name for name in MODELS if not THEORY.get(name, Theory()).rigid])
def test_a_chain_on_the_ground_under_forces_within_the_step_is_of_first_order(model: str) -> None:
    """And the velocity at the end of a step is tangent to the closed chain there, to second order."""
    robot = _PARALLEL
    equations = LoopEquations(robot.model, robot.loops)

    def stood(h: float) -> tuple[np.ndarray, float]:
        sim = Simulator(robot, contact=model, physics_dt=h, hardware={"body_contact": False, "joint_stops": False})
        q = sim.q.copy()
        q[2] -= 1e-4
        sim.reset(q)
        tau, opens = 5.0 * np.sin(np.arange(robot.nu)), 0.0
        for _ in range(round(0.05 / h)):
            assert sim.advance(tau).impulse[:, 2].any()
            opens = max(opens, float(np.abs(equations.at(sim.q)[1] @ sim.v).max()))
        return sim.q.copy(), opens

    exact, _ = stood(6.25e-5)
    (one, first), (two, second) = stood(2e-3), stood(5e-4)
    assert 2.5 < np.linalg.norm(one - exact) / np.linalg.norm(two - exact) < 6.0
    assert first / second == pytest.approx(16.0, rel=0.3)
