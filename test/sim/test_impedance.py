"""Drives with a position loop: the same law in the host, closed forms, delays, limits, and repeatability."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from physics_support import wheel_robot
from refusals import refusal
from user_controllers import Stiff

from bipedsim.config import RunConfig
from bipedsim.control import Guard
from bipedsim.model import Robot, joint_gains, load_robot
from bipedsim.numerics import Array
from bipedsim.runs import Fault, FaultSchedule
from bipedsim.runs.replay import rerun
from bipedsim.runs.runner import run
from bipedsim.sim import Command, Simulator

H = 1e-3
INERTIA, EFFORT = 0.1, 20.0


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Robot:
    return wheel_robot(tmp_path_factory.mktemp("wheel"), INERTIA, EFFORT, 50.0)


@pytest.fixture(scope="module")
def biped() -> Robot:
    return load_robot("biped14")


def one(position: float, kp: float, kd: float, velocity: float = 0.0, tau: float = 0.0) -> Command:
    return Command(*(np.array([value]) for value in (tau, position, velocity, kp, kd)))


def law(command: Command, robot: Robot, sim: Simulator) -> Array:
    """The same in the host."""
    assert command.position is not None
    assert command.velocity is not None
    tau = command.tau_joint + command.stiffness * (command.position - sim.q[robot.idx_q])
    tau += command.damping * (command.velocity - sim.v[robot.idx_v])
    return np.clip(tau, -robot.effort_limit, robot.effort_limit)


@pytest.mark.parametrize("substeps", [1, 20])
def test_it_is_the_law_of_a_host_that_answers_every_step(biped: Robot, substeps: int) -> None:
    """A standing robot, moved about, on the ground: the drives between two commands of a policy at 50 Hz."""
    rng = np.random.default_rng(substeps)
    drives, host = Simulator(biped, control_dt=substeps * H), Simulator(biped)
    kp, kd = joint_gains(biped, H)
    for _ in range(200 // substeps):
        q = biped.posture + 0.02 * rng.normal(size=biped.nu)
        command = Command(0.5 * rng.normal(size=biped.nu), q, 0.1 * rng.normal(size=biped.nu), kp, kd)
        drives.step(command)
        for _ in range(substeps):
            tau = law(command, biped, host)
            host.step(tau)
        np.testing.assert_allclose(drives.q, host.q, rtol=0.0, atol=1e-12)
        np.testing.assert_allclose(drives.v, host.v, rtol=0.0, atol=1e-12)
        np.testing.assert_allclose(drives.command.tau_joint, tau, rtol=0.0, atol=1e-9)
        np.testing.assert_array_equal(drives.contact.state_changes > 0, host.contact.state_changes > 0)


def test_a_spring_swings_and_a_damper_stops_it_as_in_the_book(wheel: Robot) -> None:
    kp, kd = 40.0, 0.4
    omega, decay = np.sqrt(kp / INERTIA), 0.5 * kd / INERTIA
    damped = np.sqrt(omega**2 - decay**2)
    errors = []
    for h in (1e-3, 5e-4):
        sim = Simulator(wheel, physics_dt=h, control_dt=0.5)
        sim.step(one(0.3, kp, kd))
        exact = 0.3 * (1.0 - np.exp(-decay * 0.5) * (np.cos(damped * 0.5) + decay / damped * np.sin(damped * 0.5)))
        errors.append(abs(sim.q[0] - exact))
    assert errors[0] < 0.01
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.1), "first order, as the step is"


def test_it_holds_where_the_same_gains_in_a_node_are_a_tick_late(wheel: Robot) -> None:
    """kd h / I = 1.5: an explicit damper is stable below 2, one that is a tick late below 1."""
    kd = 1.5 * INERTIA / H
    drives, late = Simulator(wheel), Simulator(wheel)
    command, known = one(0.0, 0.0, kd), 1e-6
    for sim in (drives, late):
        sim.reset(v=np.array([1e-6]))
    for _ in range(40):
        drives.step(command)
        seen, known = known, float(late.v[0])
        late.step(np.array([-kd * seen]))
    assert abs(drives.v[0]) < 1e-6 * 0.5**39
    assert abs(late.v[0]) > 1e-5


def test_what_is_delayed_is_the_command_and_not_the_loop(wheel: Robot) -> None:
    sim = Simulator(wheel, hardware={"command_delay": 5 * H})
    kd = 1.5 * INERTIA / H
    for _ in range(20):
        sim.step(one(0.0, 0.0, kd))
    asked = []
    for _ in range(10):
        sim.step(one(0.0, 0.0, kd, tau=1.0))
        asked.append(float(sim.effort[0]))
    assert asked[:5] == [0.0] * 5
    assert asked[5] == 1.0
    sim.reset(v=np.array([1e-6]))
    for _ in range(60):
        sim.step(one(0.0, 0.0, kd))
    assert abs(sim.v[0]) < 1e-20


def test_torques_on_their_way_when_an_impedance_follows_arrive(wheel: Robot) -> None:
    sim = Simulator(wheel, hardware={"command_delay": 5 * H})
    arrived = []
    for i in range(10):
        sim.step(np.array([1.0 + i]) if i < 5 else one(0.0, 0.0, 0.0))
        arrived.append(float(sim.effort[0]))
    assert arrived == [0.0] * 5 + [1.0, 2.0, 3.0, 4.0, 5.0]


@settings(max_examples=30, deadline=None)
@given(
    st.tuples(*[st.floats(-5.0, 5.0)] * 2, *[st.floats(0.0, 100.0)] * 2, st.floats(-1e3, 1e3)),
    st.sampled_from(["ideal", "realistic"]),
)
def test_torques_stay_within_the_limits_and_follow_the_law(
    wheel: Robot, numbers: tuple[float, ...], hardware: str
) -> None:
    position, velocity, kp, kd, tau = numbers
    sim = Simulator(wheel, hardware=hardware)
    command = one(position, kp, kd, velocity, tau)
    for _ in range(10):
        expected = law(command, wheel, sim)
        sim.step(command)
        assert abs(sim.effort[0]) <= EFFORT
        if hardware == "ideal":
            np.testing.assert_array_equal(sim.effort, expected)
            np.testing.assert_array_equal(sim.command.tau_joint, expected)


def test_torques_after_an_impedance_are_torques_again(biped: Robot) -> None:
    kp, kd = joint_gains(biped, H)
    mixed, plain = Simulator(biped), Simulator(biped)
    for i in range(60):
        tau = law(Command(np.zeros(biped.nu), biped.posture, np.zeros(biped.nu), kp, kd), biped, plain)
        plain.step(tau)
        mixed.step(Command(np.zeros(biped.nu), biped.posture, None, kp, kd) if i % 7 else tau)
    np.testing.assert_array_equal(mixed.q, plain.q)
    assert mixed.command.closes_loop
    mixed.reset()
    assert not mixed.command.closes_loop


@pytest.mark.parametrize("hardware", ["ideal", "realistic"])
def test_snapshots_hold_what_the_drives_follow(biped: Robot, hardware: str) -> None:
    kp, kd = joint_gains(biped, H)
    rng = np.random.default_rng(3)
    commands = [Command(np.zeros(biped.nu), biped.posture + 0.02 * rng.normal(size=biped.nu), None, kp, kd)] * 3
    sim = Simulator(biped, hardware=hardware, seed=1)
    torques = sim.snapshot()
    for command in commands:
        sim.step(command)
    kept = sim.snapshot()
    ends = []
    for _ in range(2):
        sim.restore(torques)
        assert not sim.command.closes_loop
        sim.step(np.zeros(biped.nu))
        sim.restore(kept)
        np.testing.assert_array_equal(sim.command.setpoint[:, 0], commands[-1].position)
        for _ in range(30):
            sim.step(np.zeros(biped.nu))
        ends.append((sim.q.copy(), sim.v.copy(), sim.effort.copy()))
    for one_end, other in zip(*ends, strict=True):
        np.testing.assert_array_equal(one_end, other)


@pytest.mark.parametrize("name", ["position", "velocity", "tau_joint", "stiffness", "damping"])
def test_what_is_not_finite_is_refused_by_name(biped: Robot, name: str) -> None:
    kp, kd = joint_gains(biped, H)
    sim = Simulator(biped)
    command = Command(np.zeros(biped.nu), biped.posture.copy(), np.zeros(biped.nu), kp, kd)
    sim.step(command)
    q, v = sim.q.copy(), sim.v.copy()
    getattr(command, name)[2] = np.nan
    with refusal(place=f"command: {name.replace('tau_joint', 'effort')}[2]", value=np.nan):
        sim.step(command)
    np.testing.assert_array_equal(sim.q, q)
    np.testing.assert_array_equal(sim.v, v)


def test_a_stiffness_needs_a_position(biped: Robot) -> None:
    with refusal(place="command: stiffness"):
        Simulator(biped).step(Command(np.zeros(biped.nu), stiffness=np.ones(biped.nu)))


def test_the_wrong_size_is_refused(biped: Robot) -> None:
    with refusal(place="tau_joint"):
        Simulator(biped).step(np.zeros((5, 3)))


def test_a_weak_drive_gives_its_share_of_all(wheel: Robot) -> None:
    """Half of a torque that would be three times the limit is half of the limit."""
    faults = FaultSchedule((Fault("drives", "scaled", amount=0.5),), wheel, H, 0)
    limit = wheel.effort_limit
    sim = Simulator(wheel)
    sim.step(faults.drive(0.0, one(1.0, 3.0 * EFFORT, 0.0).packed(limit)))
    assert sim.effort[0] == 0.5 * EFFORT
    sim.reset()
    sim.step(faults.drive(0.0, one(1.0, 4.0, 0.0, tau=2.0).packed(limit)))
    assert sim.effort[0] == 0.5 * (4.0 + 2.0)


@pytest.mark.parametrize("hardware", ["ideal", "realistic"])
def test_torques_and_impedances_in_turn_repeat_to_the_bit(hardware: str) -> None:
    """This includes delayed commands in the drives when the kind of command changes."""
    recording, _ = run(RunConfig(controller="user_controllers:Mixed", duration=0.2, hardware=hardware))
    kinds = np.isfinite(recording.setpoint[:, 0, -1])
    assert kinds.any()
    assert not kinds.all()
    assert not np.isnan(recording.setpoint[20:]).any(), "a torque is bounded by nobody, and known all the same"
    assert rerun(recording).first is None


@pytest.mark.parametrize("hardware", ["ideal", "realistic"])
def test_a_run_is_recorded_and_repeats_to_the_bit(hardware: str, tmp_path: Path) -> None:
    config = RunConfig(controller="user_controllers:Stiff", duration=0.3, hardware=hardware, physics_dt=5e-4, seed=4)
    recording, _ = run(config)
    assert np.isfinite(recording.setpoint).all()
    held = recording.setpoint[:, :, 0]
    # The first update answers t = 0, which is in no row.
    changes = np.flatnonzero((np.diff(held, axis=0) != 0.0).any(axis=1)) + 1
    np.testing.assert_array_equal(changes % 20, 0)
    recording.save(tmp_path / "run.npz")
    from bipedsim.recording.recording import load_npz

    again = rerun(load_npz(tmp_path / "run.npz"))
    assert again.first is None
    assert "setpoint" in again.compared


def test_a_run_of_torques_takes_no_memory_for_it(tmp_path: Path) -> None:
    recording, _ = run(RunConfig(duration=0.05))
    assert np.isnan(recording.setpoint).all()
    assert recording.setpoint.strides[0] == 0


def test_a_controller_is_asked_as_often_as_it_says(biped: Robot) -> None:
    controller = Stiff(biped, Stiff.Params(), H)
    asked = []
    update = controller.update
    controller.update = lambda seen: asked.append(seen.t) or update(seen)  # type: ignore[method-assign,func-returns-value]
    guard = Guard(controller, biped)
    sim = Simulator(biped)
    seen = sim.reset()
    guard.reset(seen)
    fresh = []
    for _ in range(45):
        seen = sim.step(guard.update(seen))
        fresh.append(guard.fresh)
    assert asked == [0.0, 0.02, 0.04]
    assert np.flatnonzero(fresh).tolist() == [0, 20, 40]
    guard.reset(seen)
    guard.update(seen)
    assert len(asked) == 4, "a reset asks at once"


@pytest.mark.parametrize(
    ("missed", "expected"),
    [
        ((), [0, 20, 40, 60]),
        ((5, 6, 33), [0, 20, 40, 60]),
        ((20, 21, 40), [0, 22, 41, 60]),
        (range(10, 45), [0, 45, 60]),
    ],
)
def test_ticks_that_a_controller_never_saw_do_not_slow_it(
    biped: Robot, missed: Iterable[int], expected: list[int]
) -> None:
    """As a node may miss states in real time: a policy at 50 Hz must not become one at 40 Hz."""
    controller = Stiff(biped, Stiff.Params(), H)
    guard, seen = Guard(controller, biped, dt=H), Simulator(biped).reset()
    for begin in (0.0, 1.8e9):
        seen.t = begin
        guard.reset(seen)
        fresh = []
        for tick in sorted(set(range(62)) - set(missed)):
            seen.t = begin + tick * H
            guard.update(seen)
            fresh += [tick] * guard.fresh
        assert fresh == expected


def test_after_a_fall_the_drives_damp_as_they_kept_before(biped: Robot) -> None:
    """A robot with impedance commands only would never receive torques."""
    controller = Stiff(biped, Stiff.Params(), H)
    guard, seen = Guard(controller, biped), Simulator(biped).reset()
    guard.reset(seen)
    guard.update(seen)
    seen.imu_orientation[:] = np.sin(0.6), 0.0, 0.0, np.cos(0.6)
    fresh = []
    for _ in range(41):
        damped = guard.update(seen)
        fresh.append(guard.fresh)
    assert guard.fallen
    assert damped.closes_loop
    assert damped.stiffness is None
    assert damped.damping is not None
    np.testing.assert_allclose(damped.damping * biped.velocity_limit, biped.effort_limit)
    assert np.flatnonzero(fresh).tolist() == [0, 19, 39], "told at once, and as often as ever"
    sim = Simulator(biped)
    sim.reset(biped.q_nominal + np.r_[0.0, 0.0, 2.0, np.zeros(18)], np.r_[np.zeros(6), np.ones(biped.nu)])
    sim.step(damped)
    assert (sim.effort < 0.0).all(), "against the velocity"


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "2"])
def test_a_decimation_that_is_none_is_refused(biped: Robot, wrong: object) -> None:
    controller = Stiff(biped, Stiff.Params(), H)
    controller.decimation = wrong  # type: ignore[assignment]
    with refusal(place="decimation", value=wrong):
        Guard(controller, biped)


def test_an_encoder_offset_shifts_the_equilibrium_and_a_drive_does_not_see_it(wheel: Robot) -> None:
    offset, target = 0.03, 0.2
    sim = Simulator(wheel, hardware={"encoder_offset": offset}, control_dt=3.0)
    observation = sim.step(one(target, 40.0, 4.0))
    assert sim.q[0] == pytest.approx(target - offset, abs=1e-12)
    assert observation.joint_position[0] == pytest.approx(target, abs=1e-12)
    assert observation.joint_effort[0] == pytest.approx(0.0, abs=1e-10)


def test_a_drive_and_a_host_have_the_same_encoder(biped: Robot) -> None:
    """The law in the host, with the measured positions, gives the torque of the drives at every step."""
    hardware = {"encoder_offset": {".*": 0.01, ".*_knee": -0.02}}
    drives, host = Simulator(biped, hardware=hardware), Simulator(biped, hardware=hardware)
    kp, kd = joint_gains(biped, H)
    seen = host.reset()
    for _ in range(100):
        drives.step(Command(np.zeros(biped.nu), biped.posture, np.zeros(biped.nu), kp, kd))
        tau = kp * (biped.posture - seen.joint_position) - kd * seen.joint_velocity
        seen = host.step(np.clip(tau, -biped.effort_limit, biped.effort_limit))
        np.testing.assert_allclose(drives.q, host.q, rtol=0.0, atol=1e-12)
    assert np.abs(host.q[biped.idx_q] - biped.posture).max() > 0.005
