"""The friction of the ground: a bound from sticking feet, and an estimate from sliding ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from contact_support import biased, described, drifted

from bipedsim.config.run import RunConfig
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array
from bipedsim.recording.recording import Recording
from bipedsim.runs.runner import run
from bipedsim.sim import Command, Observation
from bipedsim_studies.identify.contact import Contact
from bipedsim_studies.identify.equations import Equations
from bipedsim_studies.identify.estimation import Estimate
from bipedsim_studies.identify.feet import Feet, centre_of_pressure
from bipedsim_studies.identify.friction import GroundFriction, friction
from bipedsim_studies.identify.signals import RATE, signals_of


class Skates:
    """Spread the stiff legs in a sine, so that both feet slide."""

    def __init__(self, robot: Robot, params: object, dt: float) -> None:
        self._start, self._dt = robot.q_nominal[robot.idx_q].copy(), dt
        self._rolls = np.zeros(robot.nu)
        for joint, sign in (("l_hip_roll", 1.0), ("l_ankle_roll", -1.0), ("r_hip_roll", -1.0), ("r_ankle_roll", 1.0)):
            self._rolls[robot.joint_names.index(joint)] = 0.06 * sign
        self.readouts: dict[str, float] = {}

    def reset(self, observation: Observation) -> None:
        self._t = 0.0

    def update(self, observation: Observation) -> Command:
        self._t += self._dt
        wanted = self._start + self._rolls * np.sin(np.pi * self._t)
        return Command(3000.0 * (wanted - observation.joint_position) - 60.0 * observation.joint_velocity)


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("biped14")


def of(robot: Robot, recording: Recording) -> GroundFriction:
    contact = Contact.of(robot, described(robot), [signals_of(recording, robot)], ["run"])
    assert contact.friction is not None
    return contact.friction


def skating(robot: Robot, static: float, dynamic: float, seed: int) -> Recording:
    ground = f"{{flat: {{friction_static: {static}, friction_dynamic: {dynamic}}}}}"
    config = RunConfig(controller=f"{__name__}:Skates", ground=ground, hardware=biased(robot, seed), duration=4.0)
    return run(config)[0]


@pytest.mark.parametrize(("static", "dynamic", "seed"), [(0.2, 0.15, 1), (0.1, 0.1, 2), (0.25, 0.12, 3)])
def test_feet_that_slide_show_the_hidden_friction(robot: Robot, static: float, dynamic: float, seed: int) -> None:
    found = of(robot, skating(robot, static, dynamic, seed))
    assert found.dynamic is not None
    value, half = found.dynamic
    assert abs(value - dynamic) < half < 0.01 * dynamic
    assert 0.8 * dynamic < found.bound < static
    assert f"friction_dynamic: {value:.3g}" in found.ground


def numbers_in(result: Estimate, robot: Robot, recording: int = 0) -> tuple[Array, Array]:
    """Return the fields ``numbers`` and ``covariance`` of the feet of a recording."""
    of_feet = np.eye(len(result.parameters))[Equations(robot, result.parameters).of_feet]
    numbers = result.unknowns.of_all(of_feet, recording)
    return numbers, numbers @ result.all_covariance @ numbers.swapaxes(1, 2)


def pulling(
    robot: Robot,
    share: tuple[float, float],
    load: tuple[float, float],
    rows: int,
    result: Estimate | None = None,
    recording: int = 0,
) -> Feet:
    """Return feet that move apart at 0.1 m/s, with friction against it."""
    n, feet = 200, 2
    wrench, still = np.zeros((n, feet, 6)), np.zeros((n, feet, 3))
    wrench[:, :, 2], wrench[:, :, 1] = load, np.array([-1.0, 1.0]) * share * np.array(load)
    slope = np.zeros((n, feet, 6, 16))
    slope[:, :, :, :6] = -np.eye(6)
    apart = np.zeros((n, feet, feet, 3))
    apart[50 : 50 + rows, 0, 1, 1], apart[50 : 50 + rows, 1, 0, 1] = 0.1, -0.1
    known, noise = numbers_in(result or described(robot), robot, recording), np.zeros((feet, 6))
    measured, flat = np.ones((feet, 6), dtype=bool), np.ones((n, feet), dtype=bool)
    return Feet(np.arange(n) / RATE, wrench, slope, *known, noise, still, apart, measured, flat, flat)


def test_a_foot_that_sticks_at_a_larger_share_is_not_taken_for_the_sliding_one(robot: Robot) -> None:
    """The right foot slides at 0.12; the lighter left one sticks, because the static friction is the larger one."""
    feet = pulling(robot, (0.24, 0.12), (100.0, 200.0), 100)
    found = friction(robot, described(robot), [feet], ["made up"])
    assert found is not None
    assert found.dynamic is None
    assert found.ground == ""
    assert found.slid == 0.0
    assert found.unclear == pytest.approx(98 / RATE)
    assert found.as_json()["unclear_for_s"] == found.unclear


@pytest.mark.parametrize(("rows", "measured"), [(100, True), (7, False), (0, False)])
def test_feet_of_equal_shares_slide_and_the_time_counts_if_it_is_too_short(
    robot: Robot, rows: int, measured: bool
) -> None:
    feet = pulling(robot, (0.12, 0.12), (100.0, 200.0), rows)
    found = friction(robot, described(robot), [feet], ["made up"])
    assert found is not None
    assert found.unclear == 0.0
    assert found.slid == pytest.approx(max(rows - 2, 0) / RATE)
    assert (found.dynamic is not None) == measured
    if found.dynamic is not None:
        assert abs(found.dynamic[0] - 0.12) < found.dynamic[1] < 0.05
    assert any("no foot slid" in line for line in found.text()) == (rows == 0)


def test_the_bound_is_compared_with_the_sole_of_its_foot(robot: Robot) -> None:
    left, right = robot.soles
    other = replace(robot, soles=(replace(left, friction_static=0.1), replace(right, friction_static=0.9)))
    found = friction(other, described(robot), [pulling(robot, (0.24, 0.12), (100.0, 200.0), 0)], ["made up"])
    assert found is not None
    assert (found.foot, found.described) == (left.name, 0.1)
    assert found.bound > found.described


def test_each_recording_has_the_offsets_of_its_sensors(robot: Robot) -> None:
    """The second recording is the first one with another offset, which is known."""
    recording = run(RunConfig(scenario="squat", duration=3.0))[0]
    offset = np.array([20.0, -10.0, 5.0])
    shifted = replace(recording, ankle_wrench=recording.ankle_wrench.copy())
    shifted.ankle_wrench[:, 0, :3] += offset
    at = described(robot).parameters.at["force_offset"][0]
    result = drifted(robot, {i: np.array([0.0, x]) for i, x in zip(at, offset, strict=True)})
    parts = [signals_of(each, robot) for each in (recording, shifted)]
    found = Contact.of(robot, result, parts, ["first", "second"]).friction
    same = Contact.of(robot, drifted(robot, {}), [parts[0], parts[0]], ["first", "second"]).friction
    assert found is not None
    assert same is not None
    assert found.bound == pytest.approx(same.bound, rel=1e-6)


def test_offsets_of_two_recordings_are_two_errors(robot: Robot) -> None:
    """The mean of two independent errors is smaller by the square root of two."""
    own, common = drifted(robot, {}), described(robot)
    halves = []
    for result in (common, own):
        feet = [pulling(robot, (0.12, 0.12), (100.0, 200.0), 100, result, recording) for recording in range(2)]
        found = friction(robot, result, feet, ["first", "second"])
        assert found is not None
        assert found.dynamic is not None
        halves.append(found.dynamic[1])
    assert halves[0] / halves[1] == pytest.approx(np.sqrt(2.0), rel=0.01)


def test_offsets_of_all_sensors_and_directions_raise_the_bound_as_rarely_as_promised(robot: Robot) -> None:
    """The largest share is the true one in all directions, so that each offset raises some lower end.

    Half of the 2.5 % are those of noise, which there is none of here.
    """
    rng, draws, load, true = np.random.default_rng(1), 400, 150.0, 0.2
    result = drifted(robot, {})
    angles = np.repeat(np.arange(8) * 0.25 * np.pi, 10)
    n = len(angles)
    some, measured = np.ones((n, 2), dtype=bool), np.ones((2, 6), dtype=bool)
    slope = np.zeros((n, 2, 6, 16))
    slope[:, :, :, :6] = -np.eye(6)
    force = load * np.stack([true * np.cos(angles), true * np.sin(angles), np.ones(n)], axis=1)
    misses = 0
    for _ in range(draws):
        recordings = []
        for recording in range(2):
            wrench = np.zeros((n, 2, 6))
            wrench[:, :, :3] = force[:, None] + rng.normal(size=(2, 3))
            still, apart = np.zeros((n, 2, 3)), np.zeros((n, 2, 2, 3))
            known, noise = numbers_in(result, robot, recording), np.zeros((2, 6))
            recordings.append(
                Feet(np.arange(n) / RATE, wrench, slope, *known, noise, still, apart, measured, some, some)
            )
        found = friction(robot, result, recordings, ["first", "second"])
        assert found is not None
        misses += found.bound > true
    assert misses <= 0.0125 * draws + 3.0 * np.sqrt(0.0125 * draws)


def test_an_offset_is_as_uncertain_as_in_its_recording(robot: Robot) -> None:
    """The mean of the offsets is uncertain by 10 N, but a drift that is opposed to its error makes the sum certain."""
    own = drifted(robot, {})
    m = len(own.unknowns.offsets)
    mean, first, second = own.unknowns.offsets, slice(-2 * m, -m), slice(-m, None)
    covariance, large = own.all_covariance.copy(), 100.0 * np.eye(m)
    for part in (first, second):
        covariance[part, part] += large
        covariance[mean, part] = covariance[part, mean] = -large
    covariance[first, second] = covariance[second, first] = large
    covariance[np.ix_(mean, mean)] += large
    uncertain = replace(own, all_covariance=covariance)
    bounds = []
    for result in (own, uncertain):
        found = friction(robot, result, [pulling(robot, (0.2, 0.2), (100.0, 200.0), 0, result, 1)], ["second"])
        assert found is not None
        bounds.append(found.bound)
    assert bounds[1] == pytest.approx(bounds[0], rel=1e-6)


@pytest.mark.parametrize("scenario", ["squat", "walk"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_bound_is_below_the_friction_and_close_to_the_largest_share_used(
    robot: Robot, scenario: str, seed: int
) -> None:
    controller = "zmp" if scenario == "walk" else "posture"
    config = RunConfig(scenario=scenario, controller=controller, hardware=biased(robot, seed), duration=4.0)
    recording = run(config)[0]
    found = of(robot, recording)
    assert found.dynamic is None
    assert found.ground == ""
    force = recording.wrench[:, :, :3]
    loaded = force[:, :, 2] > 0.1 * robot.weight
    used = np.hypot(force[:, :, 0], force[:, :, 1])[loaded] / force[:, :, 2][loaded]
    # The offset of each sensor is known to 1 N only. Two sensors and all directions lower the bound by further 0.95 N.
    assert 0.4 * np.percentile(used, 99.0) - 0.95 / (0.5 * robot.weight) < found.bound < used.max()


@pytest.mark.parametrize("seed", range(20))
def test_noise_alone_does_not_raise_the_bound(robot: Robot, seed: int) -> None:
    """The largest of many noisy ratios is above the true one, which the bound must not be."""
    rng, n = np.random.default_rng(seed), 2000
    deviation = np.tile([1.0, 1.0, 1.0, 0.1, 0.1, 0.1], (2, 1))
    true, feet = 0.2, len(robot.soles)
    wrench = np.zeros((n, feet, 6))
    wrench[:, :, 0], wrench[:, :, 2] = true * 150.0, 150.0
    # The second window reduces white noise by the norm of its weights.
    wrench += rng.normal(size=wrench.shape) * deviation / np.linalg.norm([1.0, 3.0, 4.0, 3.0, 1.0]) * 12.0
    some = np.ones((n, feet), dtype=bool)
    still, apart = np.zeros((n, feet, 3)), np.zeros((n, feet, feet, 3))
    slope = np.zeros((n, feet, 6, 16))
    times, measured = np.arange(n) / RATE, np.ones((feet, 6), dtype=bool)
    result = described(robot)
    known = numbers_in(result, robot)
    feet_of = Feet(times, wrench, slope, *known, deviation, still, apart, measured, some, some)
    found = friction(robot, result, [feet_of], ["made up"])
    assert found is not None
    assert 0.85 * true < found.bound < true


def test_the_force_of_the_ground_is_that_of_the_simulator(robot: Robot) -> None:
    """Between the sensor and the ground are weight and inertia of the foot."""
    recording = run(RunConfig(scenario="walk", controller="zmp", duration=4.0))[0]
    signals, result = signals_of(recording, robot), described(robot)
    feet = Feet.of(Equations(robot, result.parameters), signals, result, 0)
    rows = np.searchsorted(recording.t, signals.t - 1e-9)
    taps = np.hanning(53)[1:-1]
    window = [np.tensordot(taps / taps.sum(), recording.wrench[k - 25 : k + 26], axes=1) for k in rows]
    for foot in range(2):
        flat = feet.flat[:, foot]
        assert flat.sum() > 50
        error = feet.wrench[flat, foot] - np.array(window)[flat, foot]
        assert np.sqrt(np.mean(error[:, :3] ** 2)) < 2e-3 * robot.weight
        cop = centre_of_pressure(feet.wrench[flat, foot]) - centre_of_pressure(np.array(window)[flat, foot])
        assert np.abs(cop).max() < 2e-3


def test_sensors_of_the_vertical_force_alone_say_nothing_of_friction(robot: Robot) -> None:
    recording = run(RunConfig(scenario="squat", controller="posture", duration=3.0))[0]
    recording.ankle_wrench[:, :, [0, 1, 5]] = 0.0
    signals = [signals_of(recording, robot)]
    assert Contact.of(robot, described(robot), signals, ["run"]).friction is None


def test_only_a_foot_whose_forces_are_all_measured_shows_friction(robot: Robot) -> None:
    recording = skating(robot, 0.1, 0.1, 2)
    whole = of(robot, recording)
    assert whole.dynamic is not None
    recording.ankle_wrench[:, 0, 0] = np.nan
    found = of(robot, recording)
    assert found.foot == robot.soles[1].name
    assert found.dynamic is None


def test_a_tilted_sensor_of_the_vertical_force_shows_no_friction() -> None:
    """The axes of the sensors of icub are off those of its soles by rounding."""
    icub = load_robot("icub")
    recording = run(RunConfig(robot="icub", scenario="squat", controller="posture", duration=3.0))[0]
    recording.ankle_wrench[:, :, [0, 1, 3, 4, 5]] = np.nan
    result = described(icub)
    feet = Feet.of(Equations(icub, result.parameters), signals_of(recording, icub), result, 0)
    assert feet.measured.tolist() == [[False, False, True, False, False, False]] * 2
    assert feet.loaded.any()
    assert friction(icub, result, [feet], ["run"]) is None
