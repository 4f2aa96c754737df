"""Drives and their friction against closed forms, energy books, and the ideal drive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from physics_support import G, wheel_robot
from refusals import refusal

from bipedsim.config.run import RunConfig
from bipedsim.control.controllers import make_controller
from bipedsim.model import HardwareParams, Robot, load_robot
from bipedsim.numerics import Array
from bipedsim.runs.runner import run
from bipedsim.sim.actuators import Actuators
from bipedsim.sim.simulator import Simulator
from bipedsim_studies.compare.meter import Meter

H = 1e-3
INERTIA, EFFORT, SPEED = 0.1, 20.0, 5.0


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Robot:
    return wheel_robot(tmp_path_factory.mktemp("wheel"), INERTIA, EFFORT, SPEED)


@pytest.fixture(scope="module")
def biped() -> Robot:
    return load_robot("biped14")


def turned(sim: Simulator, speed: float) -> Simulator:
    sim.reset(v=np.array([speed]))
    return sim


def test_friction_stops_a_coasting_joint_where_coulomb_says_and_holds_it(wheel: Robot) -> None:
    friction, speed = 2.0, 3.0
    sim = turned(Simulator(wheel, hardware={"coulomb_friction": friction, "presliding": 1e-4}), speed)
    speeds = []
    for _ in range(1000):
        sim.step(np.zeros(1))
        speeds.append(sim.v[0])
    stop = round(INERTIA * speed / friction / H)
    np.testing.assert_allclose(np.diff(speeds[10 : stop - 5]), -friction / INERTIA * H, rtol=1e-9)
    assert np.abs(speeds[stop + 100 :]).max() < 1e-6
    assert sim.q[0] == pytest.approx(0.5 * INERTIA * speed**2 / friction, abs=0.5 * speed * H + 2e-4)


@pytest.mark.parametrize("load", [0.5, 0.95])
def test_a_joint_at_rest_never_creeps_below_friction(wheel: Robot, load: float) -> None:
    friction, presliding = 2.0, 5e-4
    sim = Simulator(wheel, hardware={"coulomb_friction": friction, "presliding": presliding})
    for tick in range(2000):
        sim.step(np.array([min(1.0, tick / 1000) * load * friction]))
    after_two_seconds = sim.q[0]
    for _ in range(3000):
        sim.step(np.array([load * friction]))
    assert sim.q[0] == pytest.approx(load * presliding, rel=1e-6)
    assert sim.q[0] == pytest.approx(after_two_seconds, abs=1e-12)


def test_above_friction_a_joint_accelerates_with_the_rest(wheel: Robot) -> None:
    sim = Simulator(wheel, hardware={"coulomb_friction": 2.0, "viscous_friction": 0.0})
    for _ in range(1000):
        sim.step(np.array([5.0]))
    speed = sim.v[0]
    for _ in range(1000):
        sim.step(np.array([5.0]))
    assert sim.v[0] - speed == pytest.approx((5.0 - 2.0) / INERTIA, rel=1e-6)


def test_viscous_friction_alone_decays_without_a_change_of_sign(wheel: Robot) -> None:
    """The exponential to second order, and slower far beyond the step: 1 / (1 + r + r^2 / 2), r = h D / I = 4."""
    sim = turned(Simulator(wheel, hardware={"viscous_friction": 400.0}), 1.0)
    for _ in range(5):
        sim.step(np.zeros(1))
    r = H * 400.0 / INERTIA
    assert sim.v[0] == pytest.approx((1.0 + r + 0.5 * r**2) ** -5, rel=1e-12)


def dry_friction(actuators: Actuators, v: Array) -> Array:
    """Return the dry friction (nu,) [N.m] of the step that ended with ``v`` (nv,); it opposes positive motion."""
    d = actuators._drives
    return np.asarray(d.effort - d.torque + (d.damping - actuators._viscous)[d.idx_v] * v[d.idx_v])


def stored_energy(actuators: Actuators, v: Array) -> Array:
    """Return the energy [J] of the dry-friction springs (nu,) after the step that ended with ``v`` (nv,)."""
    d = actuators._drives
    z = np.clip(d.deflection + d.reach * v[d.idx_v], -d.most, d.most)
    return np.asarray(0.5 * d.stiffness * z**2)


@pytest.mark.long
@given(
    torques=st.lists(st.floats(-15.0, 15.0), min_size=60, max_size=60),
    friction=st.floats(0.01, 10.0),
    presliding=st.sampled_from([1e-5, 1e-4, 5e-4, 1e-2]),
    speed=st.floats(-20.0, 20.0),
)
def test_friction_never_gives_energy_to_a_joint(
    wheel: Robot, torques: list[float], friction: float, presliding: float, speed: float
) -> None:
    """Kinetic and spring energy rise by at most the work of the drive in every step, for any torque."""
    sim = turned(Simulator(wheel, hardware={"coulomb_friction": friction, "presliding": presliding}), speed)
    actuators = sim.drives
    energy = 0.5 * INERTIA * speed**2
    for tau in torques:
        sim.step(np.array([tau]))
        after = 0.5 * INERTIA * sim.v[0] ** 2 + float(stored_energy(actuators, sim.v)[0])
        assert after - energy <= H * tau * sim.v[0] + 1e-12 * max(1.0, energy)
        energy = after


@pytest.mark.parametrize("contact", ["one_step", "nonlinear_damping"])
def test_friction_never_gives_energy_to_a_robot_that_lands(biped: Robot, contact: str) -> None:
    """Of every joint at every step: through a drop, a squat under noise, and a push; and Coulomb's limit holds."""
    hardware = {"preset": "realistic", "coulomb_friction": 3.0}
    sim = Simulator(biped, contact=contact, hardware=hardware, seed=2)
    actuators = sim.drives
    controller = make_controller("posture", biped, {"mode": "squat", "ramp": 0.2}, H)
    q = biped.q_nominal.copy()
    q[2] += 0.02
    observation = sim.reset(q)
    controller.reset(observation)
    stored = np.zeros(biped.nu)
    over = []
    for tick in range(800):
        if tick == 500:
            sim.push(np.array([50.0, 30.0, 0.0, 0.0, 0.0, 0.0]), duration=0.05)
        observation = sim.step(controller.update(observation).tau_joint)
        friction, now = dry_friction(actuators, sim.v), stored_energy(actuators, sim.v)
        assert (H * friction * sim.v[biped.idx_v] - (now - stored) > -1e-12).all()
        stored = now
        over.append(np.abs(friction) / 3.0)
    # d (v+ - v) beyond the limit: a touch-down changes v within a step.
    assert np.quantile(over, 0.99) < 1.1


def test_a_motor_settles_on_its_torque_speed_line_without_chatter(wheel: Robot) -> None:
    """The line falls 400 N.m.s/rad: read before the step it would be unstable from 2 I / h = 200 on."""
    hardware = {"clip_effort": True, "corner_speed": 0.8, "no_load_speed": 0.81, "viscous_friction": 2.0}
    sim = Simulator(wheel, hardware=hardware)
    no_load, corner, slope = 0.81 * SPEED, 0.8 * SPEED, EFFORT / (0.01 * SPEED)
    speeds, efforts = [], []
    for _ in range(1000):
        observation = sim.step(np.array([1e3]))
        speeds.append(sim.v[0])
        efforts.append(observation.joint_effort[0])
    assert max(efforts) == EFFORT
    assert max(speeds) <= no_load + 1e-9
    # Where the line crosses that of viscous friction.
    assert speeds[-1] == pytest.approx(slope * no_load / (slope + 2.0), rel=1e-6)
    assert corner < speeds[-1] < no_load
    assert np.ptp(speeds[-100:]) < 1e-9
    assert sim.step(np.array([-1e3])).joint_effort[0] == -EFFORT


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_a_command_acts_exactly_n_physics_steps_later(biped: Robot, steps: int) -> None:
    """Bit by bit the ideal drive under commands that come later, with two physics steps in a control tick."""
    rng = np.random.Generator(np.random.Philox(steps))
    commands = rng.uniform(-30.0, 30.0, (12, biped.nu))
    late = Simulator(biped, physics_dt=H / 2, control_dt=H, hardware={"command_delay": steps * H / 2})
    ideal = Simulator(biped, physics_dt=H / 2)
    each = np.vstack([np.zeros((steps, biped.nu)), np.repeat(commands, 2, axis=0)])
    for tick, tau in enumerate(commands):
        effort = late.step(tau).joint_effort
        for step in (2 * tick, 2 * tick + 1):
            ideal.step(each[step])
        np.testing.assert_array_equal(effort, each[2 * tick + 1])
        assert late.q.tobytes() == ideal.q.tobytes()
        assert late.v.tobytes() == ideal.v.tobytes()


def test_a_command_that_is_not_finite_leaves_everything_untouched(biped: Robot) -> None:
    sim = Simulator(biped, hardware="realistic")
    sim.step(np.full(biped.nu, 0.5))
    before = sim.snapshot()
    bad = np.zeros(biped.nu)
    bad[3] = np.nan
    with refusal(place="tau_joint[3]", value=np.nan):
        sim.step(bad)
    states: list[dict[str, Any]] = []
    for snapshot in (before, sim.snapshot()):
        states.append({name: a for name, a in snapshot.participants["drives"].items() if name != "command"})
    assert all((states[0][name] == states[1][name]).all() for name in states[0])
    assert sim.q.tobytes() == before.q.tobytes()


def test_delays_are_whole_steps(wheel: Robot) -> None:
    for wanted, got in ((0.0, 0.0), (0.0014, 0.001), (0.005, 0.005)):
        assert Actuators(wheel, HardwareParams(command_delay=wanted), H).delay == pytest.approx(got)


def test_friction_takes_coulombs_work_and_the_energy_balance_closes_to_first_order() -> None:
    """In a squat with heavier links, the friction loss is the friction torque times the joint displacement."""
    friction = 5.0
    residuals, lost = [], []
    for substeps in (1, 2):
        meter = Meter()
        hardware = {"coulomb_friction": friction, "presliding": 1e-4, "mass_scale": 1.1}
        settings = RunConfig(scenario="squat", duration=1.2, hardware=hardware, physics_dt=H / substeps)
        recording, _ = run(settings, observer=meter)
        residuals.append(np.abs(meter.residual).max())
        lost.append(meter.energies[-1, 2])
    assert 1.8 < residuals[0] / residuals[1] < 2.2
    way = np.abs(np.diff(recording.joint_position, axis=0)).sum()
    assert lost[1] == pytest.approx(friction * way, rel=0.01)
    assert lost[0] == pytest.approx(lost[1], rel=2e-3)


def test_gain_and_offset_act_between_the_drive_and_the_joint(wheel: Robot) -> None:
    """Speed and angle of a constant torque 0.9 tau + 1, while the drive reports tau."""
    tau = 2.0
    sim = Simulator(wheel, hardware={"torque_gain": 0.9, "torque_offset": 1.0})
    for tick in range(1, 501):
        observation = sim.step(np.array([tau]))
        assert observation.joint_effort[0] == tau
        assert sim.v[0] == pytest.approx((0.9 * tau + 1.0) / INERTIA * tick * H, rel=1e-12)
    assert sim.command.tau_joint[0] == tau


def test_a_pendulum_hangs_where_the_torque_at_the_joint_holds_it(tmp_path: Path) -> None:
    mass, length, tau = 2.0, 0.5, 4.0
    pendulum = wheel_robot(tmp_path, INERTIA, EFFORT, SPEED, axis="0 1 0")
    body = {"disc": {"mass": mass, "com": [0.0, 0.0, -length]}}
    hardware = {"bodies": body, "viscous_friction": 3.0, "torque_gain": 0.9, "torque_offset": 1.0}
    sim = Simulator(pendulum, hardware=hardware, control_dt=10.0)
    observation = sim.step(np.array([tau]))
    assert observation.joint_position[0] == pytest.approx(np.arcsin((0.9 * tau + 1.0) / (mass * G * length)), rel=1e-9)
    assert observation.joint_effort[0] == tau


def test_limits_of_a_drive_are_those_of_the_torque_that_it_reports(wheel: Robot) -> None:
    sim = Simulator(wheel, hardware={"torque_gain": 0.5, "torque_offset": 3.0, "clip_effort": True})
    assert sim.step(np.array([1e3])).joint_effort[0] == EFFORT
    assert sim.v[0] == pytest.approx((0.5 * EFFORT + 3.0) / INERTIA * H, rel=1e-12)


@pytest.mark.parametrize("gain", [0.7, 1.5])
def test_a_motor_with_a_gain_settles_on_its_torque_speed_line(wheel: Robot, gain: float) -> None:
    """The steady speed is where the gain times the line crosses viscous friction minus the offset."""
    viscous, offset = 2.0, -0.5
    line = {"clip_effort": True, "corner_speed": 0.8, "no_load_speed": 0.81, "viscous_friction": viscous}
    sim = Simulator(wheel, hardware={**line, "torque_gain": gain, "torque_offset": offset})
    no_load, slope = 0.81 * SPEED, EFFORT / (0.01 * SPEED)
    speeds = []
    for _ in range(1000):
        sim.step(np.array([1e3]))
        speeds.append(sim.v[0])
    assert speeds[-1] == pytest.approx((gain * slope * no_load + offset) / (gain * slope + viscous), rel=1e-9)
    assert np.ptp(speeds[-100:]) < 1e-9


def test_gains_per_joint_use_the_patterns_of_robot_yaml(biped: Robot) -> None:
    hardware = {"torque_gain": {".*_knee": 0.5, "l_knee": 0.8}, "torque_offset": {"r_.*": 0.25}}
    drives = Simulator(biped, hardware=hardware).drives
    drives.take(np.ones(biped.nu))
    drives.drive(biped.q_nominal, np.zeros(biped.model.nv))
    gain = [{"l_knee": 0.8, "r_knee": 0.5}.get(joint, 1.0) for joint in biped.joint_names]
    offset = [0.25 * joint.startswith("r_") for joint in biped.joint_names]
    np.testing.assert_allclose(drives.torque, np.add(gain, offset), rtol=1e-15)
    np.testing.assert_array_equal(drives.effort, np.ones(biped.nu))


def test_gain_and_offset_are_work_of_the_drives_and_no_loss() -> None:
    """In a squat, the energy balance closes to first order, and friction takes its torque times the displacement."""
    residuals, friction = [], 3.0
    for substeps in (1, 2):
        meter = Meter()
        errors = {"torque_gain": {".*": 0.95, ".*knee": 1.1}, "torque_offset": 2.0}
        hardware = {**errors, "coulomb_friction": friction, "presliding": 1e-4}
        settings = RunConfig(scenario="squat", duration=1.0, hardware=hardware, physics_dt=H / substeps)
        recording, _ = run(settings, observer=meter)
        residuals.append(np.abs(meter.residual).max())
    assert 1.8 < residuals[0] / residuals[1] < 2.2
    displacement = np.abs(np.diff(recording.joint_position, axis=0)).sum()
    assert meter.energies[-1, 2] == pytest.approx(friction * displacement, rel=0.02)
