"""The rate that a machine can hold: computed from injected times, measured without a trace. Nothing sleeps."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, strategies as st

from bipedsim.contact.models import CONTACT_MODELS
from bipedsim.errors import ConfigError
from bipedsim.model import load_robot, standing_torque
from bipedsim.sim.simulator import Simulator, whole_ratio
from bipedsim_ros.loop.rate_check import COMFORTABLE, TOPICS, USABLE, StepCost, judge, measure
from bipedsim_ros.loop.sim_params import SimParams


def cost(tick_us: float, high_us: float | None = None, physics_us: float | None = None, substeps: int = 1) -> StepCost:
    physics_us = tick_us / substeps if physics_us is None else physics_us
    micros = (tick_us, tick_us if high_us is None else high_us, physics_us, tick_us - substeps * physics_us)
    return StepCost(*(1e-6 * value for value in micros), substeps)


def test_cost_is_robust_against_a_few_disturbed_steps() -> None:
    found = StepCost.of([30_000] * 98 + [9_000_000] * 2, [10_000] * 99 + [50_000_000], substeps=3)
    assert found.tick == pytest.approx(40e-6)
    assert found.high == pytest.approx(40e-6)
    assert found.physics == pytest.approx(10e-6)
    assert found.sensors == pytest.approx(10e-6)
    assert found.of_tick(1) == pytest.approx(20e-6), "the sensors, which took 10 us, are read once a tick"
    assert found.of_tick(5) == pytest.approx(60e-6)


@pytest.mark.parametrize(
    ("tick_us", "high_us", "warns"),
    [(100, 200, False), (399, 900, False), (401, 402, True), (699, 700, True), (100, 1001, True)],
)
def test_what_is_good_and_what_gets_a_warning(tick_us: float, high_us: float, warns: bool) -> None:
    assert (COMFORTABLE, USABLE, TOPICS) == (0.4, 0.7, 1e-4), "docs/ros_interface.md says so"
    warning = judge(cost(tick_us, high_us), "lcp", "biped14", 1000.0)
    assert bool(warning) == warns
    if warns:
        assert "'lcp'" in warning
        assert "'biped14'" in warning
        assert f"{tick_us} us" in warning
        assert "missed_commands" in warning


def test_topics_that_leave_no_time_for_the_step_get_a_warning() -> None:
    assert judge(cost(10), "lcp", "biped14", 9_000.0) == ""
    assert "commands may come too late" in judge(cost(10), "lcp", "biped14", 10_000.0)


def test_twice_as_fast_as_the_wall_clock_leaves_half_the_time() -> None:
    assert judge(cost(390), "lcp", "biped14", 1000.0) == ""
    assert "real_time_factor = 2 has 500 us" in judge(cost(300), "lcp", "biped14", 1000.0, 2.0)
    with pytest.raises(ConfigError, match=r"Ways out: real_time_factor:=1.0"):
        judge(cost(390), "lcp", "biped14", 1000.0, 2.0)
    assert judge(cost(1500), "lcp", "biped14", 1000.0, 0.1) == "", "in slow motion anything is fast enough"


def test_a_refusal_names_what_was_found_and_every_way_out() -> None:
    with pytest.raises(ConfigError) as caught:
        judge(cost(1500, 1900), "ncp", "talos", 1000.0)
    said = str(caught.value)
    for part in ("'ncp'", "'talos'", "1500 us", "1900 us", "1000 us", "70%", "rate = 1000 Hz"):
        assert part in said
    for way in ("rate:=400 physics_dt:=0.0025,", "clock:=lock_step", "`rate_check: warn`"):
        assert way in said
    for model in CONTACT_MODELS:
        assert (f"{model}," in said or f"{model})" in said) == (model != "ncp")


def test_a_longer_physics_step_is_the_first_way_out_where_it_helps() -> None:
    with pytest.raises(ConfigError) as caught:
        judge(cost(1100, physics_us=100, substeps=10), "lcp", "biped14", 1000.0)
    # 100 us of sensors and at most 600 us of physics. Six steps a tick have no decimal period, but 12 digits will do.
    (physics_dt,) = re.findall(r"physics_dt:=(\S+), which keeps the rate", str(caught.value))
    assert whole_ratio(1e-3, float(physics_dt)) == 6


def test_where_no_rate_helps_none_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        judge(cost(90_000), "lcp", "biped14", 1000.0)
    assert "highest rate" not in str(caught.value)
    assert "lock_step" in str(caught.value)


@given(
    tick_us=st.floats(1.0, 50_000.0),
    share=st.floats(0.0, 1.0),
    substeps=st.integers(1, 50),
    rate=st.floats(1.0, 20_000.0),
)
def test_the_rate_that_is_named_can_be_typed_and_kept(tick_us: float, share: float, substeps: int, rate: float) -> None:
    """For any measurements, the arguments in the message are valid parameters, with which the check passes."""
    found = cost(tick_us, physics_us=share * tick_us / substeps, substeps=substeps)
    try:
        judge(found, "lcp", "biped14", rate)
    except ConfigError as error:
        said = str(error)
    else:
        assert tick_us * 1e-6 <= USABLE / rate
        return
    for named, physics_dt in re.findall(r"rate:=(\d+) physics_dt:=([\d.]+)", said):
        params = SimParams(rate=float(named), physics_dt=float(physics_dt))
        assert params.rate < rate
        assert whole_ratio(1.0 / params.rate, params.physics_dt) == 1
        assert found.of_tick(1) <= USABLE / params.rate
        assert found.of_tick(1) + TOPICS <= 1.0 / params.rate
    for physics_dt in re.findall(r"physics_dt:=([\d.]+), which keeps", said):
        fewer = whole_ratio(1.0 / rate, float(physics_dt))
        assert fewer < substeps
        assert found.of_tick(fewer) <= USABLE / rate


class Clock:
    """A clock that moves by a fixed time whenever it is read."""

    def __init__(self, tick_ns: int) -> None:
        self.now = 0
        self.tick_ns = tick_ns
        self.readings = 0

    def __call__(self) -> int:
        self.readings += 1
        self.now += self.tick_ns
        return self.now


@pytest.mark.parametrize("model", CONTACT_MODELS)
@pytest.mark.parametrize("control_dt", [1e-3, 2e-3])
def test_measuring_leaves_no_trace(model: str, control_dt: float) -> None:
    robot = load_robot("biped14")
    rng = np.random.default_rng(7)
    torques = standing_torque(robot) + rng.normal(size=(60, robot.nu))

    def end(measured_at: tuple[int, ...]) -> list[bytes]:
        sim = Simulator(robot, contact=model, control_dt=control_dt)
        for i, tau in enumerate(torques):
            if i in measured_at:
                assert measure(sim, Clock(1_000)) is not None
            observation = sim.step(tau)
        arrays = [sim.q, sim.v, *sim.contact.arrays().values(), observation.joint_effort, observation.foot_wrench]
        return [np.asarray(array).tobytes() for array in arrays]

    assert end((0, 30)) == end(())


def test_who_listens_to_the_steps_hears_none_of_the_measured_ones_and_all_behind_them() -> None:
    sim = Simulator(load_robot("biped14"))
    heard: list[float] = []
    sim.on_physics_step = lambda *_: heard.append(sim.t)
    assert measure(sim, Clock(1_000)) is not None
    assert heard == []
    sim.step(np.zeros(sim.robot.nu))
    assert heard == [sim.t]


def test_measuring_ends_with_its_budget() -> None:
    sim = Simulator(load_robot("biped14"))
    slow = Clock(1_000_000_000)
    found = measure(sim, slow)
    assert found is not None
    assert (found.physics, found.sensors) == (pytest.approx(1.0), pytest.approx(1.0)), "one tick is the least"
    assert slow.readings == 6
    quick = Clock(10)
    found = measure(sim, quick)
    assert found is not None
    assert found.tick == pytest.approx(20e-9)
    assert quick.readings > 4 * 300, "three hundred ticks"


def test_a_robot_that_flies_apart_is_not_measured_but_restored() -> None:
    robot = load_robot("biped14")
    sim = Simulator(robot)
    sim.reset(v=np.full(robot.model.nv, 9e3))
    assert measure(sim) is None
    np.testing.assert_array_equal(sim.v, np.full(robot.model.nv, 9e3))
    assert sim.t == 0.0


@pytest.mark.parametrize("robot", ["biped14", "talos", "g1", "icub"])
def test_the_torques_of_a_posture_hold_it(robot: str) -> None:
    """In static equilibrium with the ground, nothing moves for some milliseconds.

    The feet support the loads that no joint supports.
    """
    try:
        loaded = load_robot(robot)
    except ConfigError as error:
        pytest.skip(str(error))
    sim = Simulator(loaded)
    torque = standing_torque(loaded)
    for _ in range(20):
        sim.step(torque)
    assert np.abs(sim.v).max() < 1e-3
    assert sim.contact.wrench[:, 2].sum() == pytest.approx(loaded.weight, rel=1e-3)
