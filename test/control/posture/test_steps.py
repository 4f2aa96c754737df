"""Five steps: the plan compared with its equations, and the resulting walk."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings, strategies as st
from marks import sampled
from measured_support import measured
from motion_support import Bookkeeper, Judge, Motion
from refusals import refusal

from bipedsim.control.controllers import make_controller
from bipedsim.control.posture.motions import STEPS, TimeLawParams, path
from bipedsim.control.posture.posture import PostureController, PostureParams
from bipedsim.control.posture.static_support import StaticSupport
from bipedsim.control.posture.steps import HEIGHT, LENGTH, Gait, pendulum, swing
from bipedsim.model import load_robot
from bipedsim.runs.scenario import get_scenario
from bipedsim.sim.simulator import Simulator
from bipedsim_studies.reproduce.common import Trace, simulate

loaded = lru_cache(load_robot)
ROBOTS = ("biped14", "talos", "g1", "parallel_ankles")
DEFAULTS = PostureParams()
GAIT = Gait(5, 0.2, 0.05, 1.0, 0.8, 0.05)


def default_gait(robot: str) -> Gait:
    """Return the gait that a robot has without further parameters."""
    q = loaded(robot).q_nominal
    z = pin.centerOfMass(loaded(robot).model, loaded(robot).model.createData(), q)[2]
    p = DEFAULTS
    return Gait(p.n_steps, LENGTH * z, HEIGHT * z, p.step_duration, p.step_shift, p.touch_down_speed)


@lru_cache
def walk(robot: str) -> Trace:
    """Return a walk of five steps and the standing after it."""
    sim = Simulator(loaded(robot))
    controller = make_controller("posture", loaded(robot), get_scenario("steps").controller_params, sim.control_dt)
    return simulate(sim, controller, float(default_gait(robot).ends[-1]) + 1.0, robot)


def swings(run: Trace, gait: Gait) -> list[tuple[int, slice]]:
    """Return foot and rows of every swing phase that takes at least half the time of a step."""
    found = []
    for foot in range(2):
        air = np.concatenate([[0], (run.recording.mode[:, foot] == 0).astype(int), [0]])
        starts, ends = np.flatnonzero(np.diff(air) == 1), np.flatnonzero(np.diff(air) == -1)
        found += [(foot, slice(a, b)) for a, b in zip(starts, ends, strict=True) if b - a > 500 * gait.step_duration]
    return sorted(found, key=lambda item: item[1].start)


@pytest.fixture(params=sampled(ROBOTS))
def case(request: pytest.FixtureRequest) -> tuple[str, Trace, Gait]:
    return request.param, walk(request.param), default_gait(request.param)


@pytest.mark.long
def test_five_single_supports_follow_one_another(case: tuple[str, Trace, Gait]) -> None:
    _, run, gait = case
    found = swings(run, gait)
    assert [foot for foot, _ in found] == [1, 0, 1, 0, 1]
    for k, (foot, rows) in enumerate(found):
        begin, end = gait.ends[2 * k + 1], gait.ends[2 * k + 2]
        # 20 ms at the speed of touch-down are 1 mm.
        assert run.recording.t[rows.stop - 1] == pytest.approx(end, abs=0.02)
        # A foot without load may leave the ground a little before it is lifted.
        assert run.recording.t[rows.start] == pytest.approx(begin, abs=0.1)
        assert (run.recording.mode[rows, 1 - foot] > 0).all()


@pytest.mark.long
def test_the_robot_gets_on_by_four_steps_and_stands(case: tuple[str, Trace, Gait]) -> None:
    name, run, gait = case
    robot, recording = loaded(name), run.recording
    way = (gait.n_steps - 1) * gait.step_length
    feet = recording.sole_poses[:, :, :3]
    assert feet[-1, :, 0] - feet[0, :, 0] == pytest.approx(way, rel=0.02)
    assert recording.base_pose[-1, 0] - recording.base_pose[0, 0] == pytest.approx(way, rel=0.02)
    assert np.abs(feet[-1, :, 1] - feet[0, :, 1]).max() < 5e-3
    x, y = recording.base_pose[:, 3:5].T
    tilt = np.arccos(np.clip(1.0 - 2.0 * (x * x + y * y), -1.0, 1.0))
    assert np.abs(tilt - tilt[0]).max() < 0.02
    assert np.abs(run.v_com[-1]).max() < 1e-3
    assert np.abs(recording.joint_position[-1] - robot.posture).max() < 0.01
    assert recording.cop_margin[-1].min() > 0.01
    assert run.summary["unresolved_steps"] <= 5


def test_carrying_feet_neither_slip_nor_tip(case: tuple[str, Trace, Gait]) -> None:
    _, run, gait = case
    recording = run.recording
    for foot, rows in swings(run, gait):
        other = 1 - foot
        poses = recording.sole_poses[rows, other]
        assert np.ptp(poses[:, :3], axis=0).max() < 1e-5
        assert np.ptp(poses[:, 3:], axis=0).max() < 1e-5
        assert not recording.sliding[rows, other].any()
        assert recording.friction_used[rows, other].max() < 0.5
        assert recording.cop_margin[rows, other].min() > 0.01


def test_swing_feet_clear_the_ground_and_land_at_the_speed_asked_for(case: tuple[str, Trace, Gait]) -> None:
    _, run, gait = case
    t = run.recording.t
    for k, (foot, rows) in enumerate(swings(run, gait)):
        height = run.recording.sole_poses[rows, foot, 2]
        assert height.max() == pytest.approx(gait.step_height, rel=0.03)
        middle = np.abs((t[rows] - gait.ends[2 * k + 1]) / gait.step_duration - 0.5) < 0.25
        assert height[middle].min() > 0.4 * gait.step_height
        speed = -np.diff(height)[-8:-2] / 1e-3
        assert speed.mean() == pytest.approx(gait.touch_down_speed, rel=0.2)


def test_torques_stay_well_within_the_limits(case: tuple[str, Trace, Gait]) -> None:
    name, run, _ = case
    robot, recording = loaded(name), run.recording
    assert (np.abs(recording.joint_effort) < 0.8 * robot.effort_limit).all()


@pytest.mark.long
@pytest.mark.parametrize("name", sampled(ROBOTS))
def test_forces_are_mass_times_acceleration_in_every_step(name: str) -> None:
    """Through a shift, a swing and its touch-down."""
    robot = loaded(name)
    motion = Motion(robot, get_scenario("steps"), "one_step")
    judge = Judge(motion.sim, Bookkeeper(robot))
    while motion.sim.t < default_gait(name).ends[2] + 0.2:
        motion.step()
    assert judge.balance < 1e-9 * robot.weight


def pressure_off(run: Trace, name: str) -> float:
    """Return the largest distance of the centre of pressure from the middle of the stance foot [m]."""
    gait, worst = default_gait(name), 0.0
    for k, (foot, rows) in enumerate(swings(run, gait)):
        t = run.recording.t[rows]
        alone = (t > gait.ends[2 * k + 1] + 0.05) & (t < gait.ends[2 * k + 2] - 0.05)
        off = run.recording.cop[rows, 1 - foot][alone] - loaded(name).soles[1 - foot].centre
        worst = max(worst, float(np.abs(off).max()))
    return worst


@pytest.mark.parametrize("name", sampled(ROBOTS))
def test_the_centre_of_pressure_rests_where_it_was_planned(name: str) -> None:
    """It is in the middle of the stance foot, although the swing leg causes a reaction."""
    assert pressure_off(walk(name), name) < 0.01


def test_the_inertia_of_the_limbs_is_fed_forward() -> None:
    """Without their torques, the same gait strays several times as far."""
    robot = loaded("biped14")
    sim = Simulator(robot)
    controller = make_controller("posture", robot, {"mode": "steps"}, sim.control_dt)
    assert isinstance(controller, PostureController)
    controller._motion.coefficients[:, :, robot.nu + 3 :] = 0.0
    run = simulate(sim, controller, 5.0, "without")
    assert pressure_off(run, "biped14") > 3.0 * pressure_off(walk("biped14"), "biped14")


@pytest.mark.parametrize("omega", [2.0, 3.3])
def test_the_pendulum_obeys_its_equation_to_second_order(omega: float) -> None:
    """The reference is p = cos(k t), with the solution x = cos(k t) w^2 / (w^2 + k^2) away from the growing and
    decaying terms at the ends.
    """
    k = 4.0
    share = omega**2 / (omega**2 + k**2)
    errors = []
    for n in (1001, 2001):
        t = np.linspace(0.0, 3.0, n)
        x = pendulum(t, np.column_stack([np.cos(k * t), 1.0 + 0.0 * t]), omega)
        ends = np.array([1.0, np.cos(3.0 * k)]) * (1.0 - share)
        grow = np.linalg.solve([[1.0, np.exp(-3.0 * omega)], [np.exp(-3.0 * omega), 1.0]], ends)
        closed = share * np.cos(k * t) + grow[0] * np.exp(-omega * t) + grow[1] * np.exp(omega * (t - 3.0))
        errors.append(np.abs(x[:, 0] - closed).max())
        assert x[:, 1] == pytest.approx(np.ones(n), abs=1e-9)
    assert errors[0] < 1e-5
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.05)


def test_a_swing_begins_at_rest_and_ends_at_its_speed() -> None:
    x = np.linspace(0.0, 1.0, 10001)
    way, height = swing(GAIT, x)
    rate = np.diff(height) * 10000 / GAIT.step_duration
    assert (way[0], way[-1], height[0], height[-1]) == pytest.approx((0.0, 1.0, 0.0, 0.0), abs=1e-12)
    assert rate[0] == pytest.approx(0.0, abs=1e-6)
    assert rate[-1] == pytest.approx(-GAIT.touch_down_speed, rel=1e-3)
    assert height.min() >= 0.0
    assert height.max() == pytest.approx(GAIT.step_height, rel=0.02)
    assert (np.diff(way) >= 0.0).all()
    still = (np.diff(way) == 0.0).nonzero()[0]
    assert height[still[still > 5000]].max() > 2e-3


def test_the_compiled_phase_is_that_of_the_plan() -> None:
    numbers = TimeLawParams(float(GAIT.n_phases), GAIT.step_shift, 0.3, 1.0, GAIT.step_duration)
    times = np.linspace(-0.5, GAIT.ends[-1] + 1.0, 3001)
    s, rate = np.array([path(STEPS, t + 0.3, numbers, 9.81)[:2] for t in times]).T
    assert s == pytest.approx(np.interp(times, GAIT.ends, np.arange(GAIT.n_phases + 1)), abs=1e-9)
    between = (np.abs(times[:, None] - GAIT.ends) > 0.02).all(axis=1)[1:-1]
    central = (s[2:] - s[:-2]) / (times[2] - times[0])
    assert rate[1:-1][between] == pytest.approx(central[between], abs=1e-9)


def test_every_step_leads_beyond_the_other_foot_and_the_last_one_beside_it() -> None:
    at = GAIT.displacements(1)
    assert at[[0, 2, 4, 6, 8, 10], 1] == pytest.approx([0.0, 0.2, 0.2, 0.6, 0.6, 0.8])
    assert at[[0, 2, 4, 6, 8, 10], 0] == pytest.approx([0.0, 0.0, 0.4, 0.4, 0.8, 0.8])
    assert (at[1::2] == at[0:-1:2]).all()


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(ROBOTS), st.tuples(st.floats(-0.3, 0.3), st.floats(-0.2, 0.2)))
def test_planned_accelerations_lean_the_ground_reaction(name: str, acceleration: tuple[float, float]) -> None:
    """The forces of the feet give the mass its acceleration without turning it: all rows of the base are in balance."""
    robot = loaded(name)
    support = StaticSupport(robot, balance=0.2)
    planned = np.array([np.nan, 0.0, 0.0, *acceleration])
    observation = measured(robot, robot.q_nominal)
    torque = support.torque(observation, 0.0, planned)
    # The IMU gives the tilt of the base at rest, so the axes of the base are those of the world except for that tilt.
    assert np.abs(torque[:6]).max() < 1e-9 * robot.weight


def test_a_planned_velocity_is_not_damped() -> None:
    robot = loaded("biped14")
    observation = measured(robot, robot.q_nominal)
    rest = StaticSupport(robot, balance=0.2).torque(observation).copy()
    moving = StaticSupport(robot, balance=0.2).torque(observation, 0.0, np.array([np.nan, 0.1, 0.0, 0.0, 0.0])).copy()
    # At rest where 0.1 m/s was planned: the centre of pressure moves back by 0.2 s times that, under the whole weight.
    ankles = [robot.idx_v[robot.joint_names.index(f"{side}_ankle_pitch")] for side in "lr"]
    assert abs((moving - rest)[ankles].sum()) == pytest.approx(0.02 * robot.weight, rel=0.05)


@pytest.mark.parametrize(
    ("params", "key", "value"),
    [
        ({"step_length": 0.9}, "step_length = 0.9 m and step_height = 0.0564 m", None),
        ({"n_steps": 1}, "n_steps", 1),
        ({"n_steps": 2.5}, "n_steps", 2.5),
        ({"step_duration": 0.0}, "step_duration", 0.0),
        ({"touch_down_speed": 2.0}, "touch_down_speed", 2.0),
    ],
)
def test_steps_beyond_the_robot_are_refused(params: dict[str, Any], key: str, value: Any) -> None:
    with refusal(place=key, value=value):
        make_controller("posture", loaded("biped14"), {"mode": "steps", **params})
