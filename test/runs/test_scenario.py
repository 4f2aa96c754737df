"""Scenario files: content, rejected entries, and the resulting pushes, velocities and tiles."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from refusals import refusal

from bipedsim.config.run import RunConfig
from bipedsim.control.controllers import make_controller
from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.ground.read import get_ground
from bipedsim.ground.tiling import tiles
from bipedsim.model import load_robot, read_hardware
from bipedsim.runs.pushes import Push, parse_pushes
from bipedsim.runs.runner import prepare, run
from bipedsim.runs.scenario import SCENARIOS, get_scenario
from bipedsim.runs.scenario_host import controller_params_for
from bipedsim.runs.velocities import Velocity, VelocitySchedule, parse_velocities
from bipedsim.sim.simulator import Simulator

numbers = st.floats(-10.0, 10.0)
times = st.integers(0, 100_000).map(lambda ms: 1e-3 * ms)


@pytest.mark.long
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_fits_its_controller(name: str) -> None:
    """The controller has the parameters that the scenario sets, and the ground exists.

    A walking controller gets the velocity.
    """
    prepared = prepare(RunConfig(scenario=name))
    scenario = prepared.scenario
    assert scenario.description
    assert controller_params_for(scenario, scenario.controller) == dict(scenario.controller_params)
    assert prepared.ticks == round(1000.0 * scenario.duration)
    steps = [step.at for step in scenario.velocity]
    assert steps == sorted(steps)
    if steps:
        end = scenario.velocity[-1]
        assert (end.vx, end.vy, end.wz) == (0.0, 0.0, 0.0), "it ends at rest"
        assert steps[-1] < scenario.duration - 2.0


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("descripton: x", "", "descripton"),
        ("drop_height: -1", "drop_height", -1.0),
        ("duration: long", "duration", "long"),
        ("pushes: {at: 1}", "pushes", {"at": 1}),
        ("pushes: [{force_over_wight: [1, 2, 3]}]", "pushes[0]", "force_over_wight"),
        ("pushes: [{force: [1, 0, 0], duration: 0}]", "pushes[0].duration", 0.0),
        ("pushes: [{force: [1e300, 0, 0]}]", "pushes[0].force[0]", 1e300),
        ("pushes: [{at: 1}]", "pushes[0]: force, force_over_weight, impulse_over_mass", None),
        ("pushes: [{force_over_weight: [1, 2]}]", "pushes[0].force_over_weight", [1, 2]),
        ("pushes: [{impulse_over_mass: [1, 2, .nan]}]", "pushes[0].impulse_over_mass[2]", np.nan),
        ("pushes: [{impulse_over_mass: [1, 0, 0], frame: odom}]", "pushes[0]", "odom"),
        ("velocity: [{at: 0, vx: 0.1}, {at: 1, vxx: 1}]", "velocity[1]", "vxx"),
        ("controller_params: [1]", "controller_params", [1]),
    ],
)
def test_what_is_wrong_with_a_file_is_named(tmp_path: Path, text: str, key: str, value: Any) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with refusal(place=f"{path}: {key}" if key else path) as caught:
        get_scenario(str(path))
    assert repr(getattr(caught.value, "name", caught.value.value)) == repr(value)


def test_names_and_paths(tmp_path: Path) -> None:
    assert get_scenario("jump") is SCENARIOS["jump"]
    with refusal(UnknownNameError, name="jmp", meant="jump"):
        get_scenario("jmp")
    (tmp_path / "hill.yaml").write_text("slope: {angle_deg: 2.0}")
    (tmp_path / "mine.yaml").write_text("ground: ./hill.yaml\nhardware: {preset: realistic, gyro_bias: 0.5}")
    prepared = prepare(RunConfig(scenario=str(tmp_path / "mine.yaml")))
    assert prepared.ground.patches[0].normal_world[2] == pytest.approx(np.cos(np.deg2rad(2.0)))
    assert read_hardware(prepared.settings.hardware or "", prepared.robot).gyro_bias == 0.5
    asked = RunConfig(scenario=str(tmp_path / "mine.yaml"), ground="flat", hardware="ideal")
    assert prepare(asked).settings == replace(asked, controller="posture", duration=10.0)


def test_a_walk_is_refused_by_a_controller_that_takes_no_velocity() -> None:
    with refusal(place="scenario 'walk'"):
        prepare(RunConfig(scenario="walk", controller="posture"))


def test_a_parameter_that_a_scenario_file_has_wrong_is_its_fault_and_another_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("controller: posture\ncontroller_params: {mode: 3}\nvelocity: [{at: 1, vx: 0.1}]")
    with refusal(place=f"scenario '{path}': controller_params: controller 'posture' of 'biped14': mode", value=3):
        prepare(RunConfig(scenario=str(path)))
    with refusal(place=f"scenario '{path}'"):
        prepare(RunConfig(scenario=str(path), controller_params={"mode": "stand"}))
    with refusal(place="controller 'posture' of 'biped14': mode", value=4):
        prepare(RunConfig(scenario=str(path), controller_params={"mode": 4}))
    # The known parameters include those of the scenario. The error is in another one.
    for own in ({"squat_deep": 0.1}, {"squat_depth": -1.0}):
        with pytest.raises(ConfigError) as caught:
            prepare(RunConfig(scenario="squat", controller_params=own))
        assert caught.value.place.startswith("controller 'posture' of 'biped14'")
    with pytest.raises(ConfigError) as error:
        prepare(RunConfig(scenario="squat", controller_params={"squat_depth": 0.9}))
    assert error.value.place.startswith("posture: "), "it can be squatted, only not so deep"
    path.write_text("controller: posture\ncontroller_params: {modee: steps}")
    with refusal(UnknownNameError, place=f"scenario '{path}': controller_params", name="modee"):
        prepare(RunConfig(scenario=str(path)))


def test_a_push_that_names_no_body_of_the_robot_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("pushes: [{at: 1, impulse_over_mass: [1, 0, 0], body: torsoo}]")
    with refusal(UnknownNameError, place="push at 1 s of biped14", name="torsoo"):
        run(RunConfig(scenario=str(path)))


def test_a_push_that_is_too_large_for_anybody_is_refused() -> None:
    with refusal(place="push at 1 s: force"):
        Push(at=1.0, force_over_weight=(1e300, 0.0, 0.0)).for_robot(load_robot("biped14"))


@pytest.mark.parametrize(("key", "per"), [("impulse_over_mass", "mass"), ("force_over_weight", "weight")])
def test_a_push_gives_the_momentum_that_it_says(tmp_path: Path, key: str, per: str) -> None:
    """In free fall nothing else pushes sideways; the heading is that of the robot when the push begins."""
    path = tmp_path / "mine.yaml"
    path.write_text(f"pushes: [{{at: 0.01, duration: 0.02, {key}: [0.3, -0.1, 0.0], frame: heading}}]")
    robot = load_robot("biped14")
    (push,) = get_scenario(str(path)).pushes
    sim = Simulator(robot)
    q = robot.q_nominal.copy()
    q[2] += 5.0
    q[3:7] = [0.0, 0.0, np.sin(0.4), np.cos(0.4)]
    sim.reset(q)
    sim.push(push.world_wrench(robot, sim.q), duration=push.duration)
    for _ in range(20):
        sim.step(np.zeros(robot.nu))
    momentum = _momentum(sim)[:2]
    size = robot.mass if per == "mass" else robot.weight * push.duration
    turn = np.array([[np.cos(0.8), -np.sin(0.8)], [np.sin(0.8), np.cos(0.8)]])
    # The step is of first order in h while the body turns.
    np.testing.assert_allclose(momentum, size * turn @ [0.3, -0.1], rtol=2e-3)


def _momentum(sim: Simulator) -> np.ndarray:
    import pinocchio as pin

    data = sim.robot.model.createData()
    return np.asarray(pin.computeCentroidalMomentum(sim.robot.model, data, sim.q, sim.v).linear)


@given(
    start=times,
    duration=times.map(lambda t: t + 1e-6),
    force=st.tuples(numbers, numbers, numbers),
    at=st.sampled_from(["", "torso"]),
)
def test_pushes_pass_through_their_text_to_the_bit(
    start: float, duration: float, force: tuple[float, float, float], at: str
) -> None:
    for frame in ("world", "heading"):
        push = Push(start, duration, force, body=at, frame=frame)
        assert parse_pushes([push.text()], ["torso"]) == (push,)


def test_pushes_are_sorted() -> None:
    pushes = parse_pushes(["2.0 0.1 0 30 0", "1 0.5 1 2 3 torso"], ["torso"])
    assert [(p.at, p.duration, p.body) for p in pushes] == [(1.0, 0.5, "torso"), (2.0, 0.1, "")]


@pytest.mark.parametrize(
    "text",
    ["", "1 2 3 4", "1 2 3 4 5 torso 7", "a 1 2 3 4", "nan 1 2 3 4", "-1 1 2 3 4", "1 -1 2 3 4"],
)
def test_malformed_pushes_are_refused(text: str) -> None:
    with refusal(place="pushes[0]", value=text):
        parse_pushes([text], ["torso"])


def test_all_malformed_pushes_are_named() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_pushes(["1 2", "1 0.1 0 0 1", "1 0.1 0 0 1 nowhere"], ["torso"])
    assert [fault.place for fault in caught.value.faults] == ["pushes[0]", "pushes[2]"]


@given(st.lists(st.builds(Velocity, times, numbers, numbers, numbers), max_size=5), times)
def test_velocities_hold_until_the_next_one(steps: list[Velocity], t: float) -> None:
    same = parse_velocities([step.text() for step in steps])
    assert list(same) == steps
    before = [step for step in sorted(steps, key=lambda step: step.at) if step.at <= t]
    expected = (before[-1].vx, before[-1].vy, before[-1].wz) if before else (0.0, 0.0, 0.0)
    assert VelocitySchedule(steps).velocity(t) == expected


def test_a_velocity_is_due_at_the_start_and_ten_times_a_second() -> None:
    schedule = VelocitySchedule([Velocity(0.25, vx=1.0)])
    for _ in range(2):
        due = {ms: schedule.due(ms * 1_000_000) for ms in range(0, 500, 4)}
        assert {ms: v[0] for ms, v in due.items() if v} == {0: 0.0, 100: 0.0, 200: 0.0, 300: 1.0, 400: 1.0}
        schedule.restart()
    assert schedule.due(7_000_000) is not None
    assert schedule.due(9_000_000) is None
    schedule.restart()
    assert schedule.due(9_000_000) is not None, "a reset within the first tenth of a second"


@pytest.mark.parametrize("text", ["", "1 2 3", "1 2 3 4 5", "x 0 0 0", "-1 0 0 0", "1 nan 0 0"])
def test_malformed_velocities_are_refused(text: str) -> None:
    with refusal(place="schedule", value=text):
        parse_velocities([text])


def test_tiles_are_the_same_for_a_seed_and_leave_no_hole() -> None:
    ground, same, other = (tiles(0.02, 0.25, 8, 6, seed=seed) for seed in (3, 3, 4))
    x, y = np.meshgrid(np.linspace(-1.0, 4.0, 301), np.linspace(-1.0, 1.0, 101))
    heights = ground.height(x, y)
    np.testing.assert_array_equal(heights, same.height(x, y))
    assert (heights != other.height(x, y)).any()
    assert np.isfinite(heights).all()
    assert (heights[x < 0.5] == 0.0).all(), "the robot starts on the floor"
    inside = (x > 0.5) & (x < 2.5) & (np.abs(y) < 0.75)
    assert 0.0 < heights[inside].min() < 0.002 < 0.018 < heights[inside].max() < 0.02
    assert len(np.unique(heights[inside])) == 48


@pytest.mark.parametrize("name", ["slope_5", "low_stairs", "tiles", "ice"])
def test_robots_stand_on_the_grounds_of_walking(name: str) -> None:
    robot = load_robot("talos")
    sim = Simulator(robot, get_ground(name))
    controller = make_controller("posture", robot, {}, sim.control_dt)
    observation = sim.reset()
    controller.reset(observation)
    for _ in range(300):
        observation = sim.step(controller.update(observation).tau_joint)
    assert abs(sim.contact.wrench[:, 2].sum() / robot.weight - 1.0) < 0.01
