"""Recordings without efforts or without forces at the ankles: what they lack, and what they still determine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from contact_support import described
from numpy.testing import assert_array_equal

from bipedsim.config.run import RunConfig
from bipedsim.errors import ConfigError, RecordingError
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array
from bipedsim.recording.recording import Recording
from bipedsim.runs.runner import run
from bipedsim_studies.identify.equations import Equations
from bipedsim_studies.identify.estimation import Estimate, Unexplained, estimate
from bipedsim_studies.identify.lacking import OF_EFFORTS, Lacking, undetermined
from bipedsim_studies.identify.noise import sensor_noise
from bipedsim_studies.identify.parameters import Parameters, parameters_of
from bipedsim_studies.identify.report import as_text, unexplained
from bipedsim_studies.identify.selection import select, without_data
from bipedsim_studies.identify.signals import UNKNOWN, signals_of
from bipedsim_studies.identify.unknowns import Unknowns

KNEE, FRICTION, HEAVIER = "l_knee", 2.5, 1.06


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("biped14")


@pytest.fixture(scope="module")
def squat(robot: Robot) -> Recording:
    """A robot with a heavier trunk and more dry friction in its knees than described."""
    trunk = float(HEAVIER * robot.model.inertias[1].mass)
    hidden = {
        "preset": "realistic",
        "coulomb_friction": {".*_knee": FRICTION},
        "bodies": {"base_link": {"mass": trunk}},
    }
    return run(RunConfig(scenario="squat", duration=8.0, hardware=hidden, seed=3))[0]


def without(recording: Recording, efforts: Any = (), wrenches: tuple[Any, Any] = ((), ())) -> Recording:
    """Return the recording without some columns of efforts, and without some (feet, components) of wrenches."""
    effort, wrench = recording.joint_effort.copy(), recording.ankle_wrench.copy()
    feet, components = wrenches
    effort[:, efforts if isinstance(efforts, slice) else list(efforts)] = np.nan
    wrench[:, feet, components] = np.nan
    return replace(recording, joint_effort=effort, ankle_wrench=wrench)


ALL = slice(None)


def _estimate(robot: Robot, recording: Recording) -> Estimate:
    signals = signals_of(recording, robot)
    parameters = parameters_of(robot)
    parameters = without_data(parameters, undetermined(parameters, [signals.lacking]))
    return estimate(robot, [signals], None, parameters)


def _total(result: Estimate) -> tuple[float, float]:
    """Return the mass of the robot and the standard deviation of its estimate [kg]."""
    p = result.parameters
    at = p.at["mass"][:, 0]
    masses = p.masses * np.exp(result.values[at])
    return float(masses.sum()), float(np.sqrt(masses @ result.covariance[np.ix_(at, at)] @ masses))


def test_a_complete_recording_lacks_nothing(robot: Robot, squat: Recording) -> None:
    lacking = signals_of(squat, robot).lacking
    assert not lacking.efforts.any()
    assert not lacking.wrenches.any()
    assert list(lacking.notes(robot)) == []
    parameters = parameters_of(robot)
    assert_array_equal(without_data(parameters, undetermined(parameters, [lacking])).free, parameters.free)


@pytest.mark.long
def test_masses_are_found_without_efforts(robot: Robot, squat: Recording) -> None:
    result = _estimate(robot, without(squat, efforts=ALL))
    true = robot.mass + (HEAVIER - 1.0) * robot.model.inertias[1].mass
    mass, deviation = _total(result)
    assert abs(mass - true) < 3.0 * deviation
    assert deviation < 0.2 * abs(true - robot.mass)
    for kind in (*OF_EFFORTS, "effort_delay"):
        assert not result.parameters.estimated[result.parameters.at[kind]].any(), kind


@pytest.fixture(scope="module")
def walk() -> Recording:
    return run(RunConfig(scenario="walk", controller="zmp", duration=4.0, hardware="realistic", seed=2))[0]


def test_forces_that_nobody_measured_hardly_count(robot: Robot, walk: Recording) -> None:
    """Any wrench below the weight adds less than one in ten thousand of its square that a measured one adds."""
    parameters = parameters_of(robot)
    rng = np.random.default_rng(5)
    sizes = []
    for recording in (walk, without(walk, wrenches=(ALL, ALL))):
        signals = signals_of(recording, robot)
        rows = Equations(robot, parameters).rows(signals, parameters.start)
        for k in range(0, len(rows.residual), 20):
            used = np.flatnonzero(rows.used[k, : robot.model.nv])
            sensors = rows.noise[k][used] * signals.noise
            shift = rows.noise[k][used][:, -12:] @ rng.uniform(-robot.weight, robot.weight, 12)
            sizes.append(shift @ np.linalg.solve(sensors @ sensors.T + np.eye(len(used)), shift))
    measured, missing = np.split(np.array(sizes), 2)
    # Its square in units of the assumed standard deviation bounds the loss of each of the twelve numbers.
    assert missing.max() <= 1.01 * 12.0 / UNKNOWN**2
    assert measured.min() > 1e4 * missing.max()


@pytest.mark.long
def test_the_vertical_forces_alone_weigh_the_robot(robot: Robot, squat: Recording) -> None:
    result = _estimate(robot, without(squat, wrenches=(ALL, [0, 1, 3, 4, 5])))
    true = robot.mass + (HEAVIER - 1.0) * robot.model.inertias[1].mass
    mass, deviation = _total(result)
    assert abs(mass - true) < 3.0 * deviation
    assert deviation < 0.5 * abs(true - robot.mass)
    at = result.parameters.at["force_offset"]
    assert_array_equal(result.parameters.estimated[at], [[False, False, True]] * 2)


def test_no_equation_of_a_missing_signal_is_used(robot: Robot, walk: Recording) -> None:
    parameters = parameters_of(robot)
    knee = robot.joint_names.index(KNEE)
    nv = robot.model.nv
    whole = Equations(robot, parameters).rows(signals_of(walk, robot), parameters.start).used
    part = Equations(robot, parameters).rows(
        signals_of(without(walk, efforts=[knee], wrenches=([0], [4])), robot), parameters.start
    )
    assert whole[:, [robot.idx_v[knee], nv + 4]].any(axis=0).all()
    assert not part.used[:, [robot.idx_v[knee], nv + 4]].any()
    others = [i for i in range(nv + 12) if i not in (robot.idx_v[knee], nv + 4)]
    assert_array_equal(part.used[:, others], whole[:, others])


def test_a_number_that_one_of_two_recordings_shows_is_estimated(robot: Robot, squat: Recording) -> None:
    parameters = parameters_of(robot)
    lacking = [signals_of(each, robot).lacking for each in (squat, without(squat, efforts=[3]))]
    assert not undetermined(parameters, lacking).any()
    alone = undetermined(parameters, lacking[1:])
    assert {(parameters.kinds[i], parameters.owners[i]) for i in np.flatnonzero(alone)} == {
        (kind, robot.joint_names[3]) for kind in OF_EFFORTS
    }


def test_a_side_that_is_measured_shows_the_other_one_if_they_are_tied(robot: Robot, squat: Recording) -> None:
    tied = select(robot, parameters_of(robot), (), symmetric=True)
    left = [robot.joint_names.index(KNEE)]
    shown = without_data(tied, undetermined(tied, [signals_of(without(squat, efforts=left), robot).lacking]))

    def knees(parameters: Parameters) -> Array:
        at = parameters.at["armature"][:, 0]
        chosen: Array = parameters.estimated[at[[robot.joint_names.index(name) for name in (KNEE, "r_knee")]]]
        return chosen

    assert knees(shown).all()
    both = [robot.joint_names.index(name) for name in (KNEE, "r_knee")]
    lost = without_data(tied, undetermined(tied, [signals_of(without(squat, efforts=both), robot).lacking]))
    assert not knees(lost).any()


def test_a_foot_without_a_sensor_may_be_absent_and_another_name_is_refused(robot: Robot, squat: Recording) -> None:
    right = replace(squat, feet=("right",), ankle_wrench=squat.ankle_wrench[:, 1:])
    lacking = signals_of(right, robot).lacking
    assert lacking.wrenches.tolist() == [[True] * 6, [False] * 6]
    assert len(list(lacking.notes(robot))) == 1
    with pytest.raises(RecordingError):
        signals_of(replace(right, feet=("rear",)), robot)


def test_a_recording_without_any_force_is_refused(robot: Robot, squat: Recording) -> None:
    with pytest.raises(RecordingError):
        signals_of(without(squat, efforts=ALL, wrenches=(ALL, ALL)), robot)


def test_phases_are_unknown_where_a_foot_may_be_in_the_air_unseen(robot: Robot, walk: Recording) -> None:
    assert set(signals_of(walk, robot).phases) == {0, 1, 2}
    for wrenches in (([0], [0]), (ALL, [2])):
        phases = signals_of(without(walk, wrenches=wrenches), robot).phases
        assert_array_equal(phases, -1)
        each = Unexplained.of(np.ones(len(phases)), 1.0, phases)
        assert (each.rms, each.by_phase) == (1.0, {})
        result = replace(described(robot), unexplained={KNEE: each})
        assert any(KNEE in line for line in unexplained(result))


def test_the_vertical_component_is_the_one_along_the_normal_of_the_sole(robot: Robot, walk: Recording) -> None:
    """A sensor may have any axes: with x upwards, x alone weighs the robot, and shows that a hand holds it."""
    turned = pin.SE3(pin.utils.rotate("y", -0.5 * np.pi), np.zeros(3))
    ankles = tuple(ankle * turned for ankle in robot.placement_joint_ankle)
    upwards = replace(robot, placement_joint_ankle=ankles)
    measured = walk.ankle_wrench @ np.kron(np.eye(2), turned.rotation)
    lighter = replace(walk, ankle_wrench=0.2 * measured)
    assert np.abs(measured[200:, :, 0]).mean() > 0.4 * robot.weight
    for components, held in (([1, 2, 3, 4, 5], True), ([0, 3, 4, 5], False)):
        assert signals_of(without(lighter, wrenches=(ALL, components)), upwards).held.any() == held


def test_zeros_in_all_rows_are_no_measurements(robot: Robot, squat: Recording) -> None:
    effort, wrench = squat.joint_effort.copy(), squat.ankle_wrench.copy()
    effort[:, 3] = wrench[:, 0, [0, 1, 5]] = 0.0
    wrench[:, 1] = 0.0
    zeros = replace(squat, joint_effort=effort, ankle_wrench=wrench)
    lacking = signals_of(zeros, robot).lacking
    assert np.flatnonzero(lacking.efforts).tolist() == [3]
    assert np.flatnonzero(lacking.wrenches[0]).tolist() == [0, 1, 5]
    assert lacking.wrenches[1].all()
    cells = replace(robot, soles=tuple(replace(sole, load_cell=True) for sole in robot.soles))
    assert not Lacking.of(zeros, cells).wrenches[1].any(), "a foot in the air"
    assert np.flatnonzero(Lacking.of(zeros, cells).wrenches[0]).tolist() == [0, 1, 5]
    wrench[:, 1] = np.nan
    assert Lacking.of(replace(zeros, ankle_wrench=wrench), cells).wrenches[1].all(), "no sensor"


def test_the_report_says_why_numbers_stay_as_described(robot: Robot, squat: Recording) -> None:
    parameters = select(robot, parameters_of(robot), ["strain"])
    recording = without(squat, efforts=[robot.joint_names.index(KNEE)], wrenches=(ALL, [0, 1]))
    seen = without_data(parameters, undetermined(parameters, [signals_of(recording, robot).lacking]))
    assert not (seen.unseen & seen.estimated).any()
    result = replace(described(robot), unknowns=Unknowns.of(seen, 1))
    assumed, unseen = (line for line in as_text(result, None).splitlines() if line.startswith("as described"))
    assert "--assume" in assumed
    assert assumed.endswith("strain")
    assert "--assume" not in unseen
    assert f"armature of {KNEE}" in unseen
    assert "left (x, y)" in unseen


def test_nothing_to_estimate_is_refused(robot: Robot, squat: Recording) -> None:
    parameters = select(robot, parameters_of(robot), [kind for kind in parameters_of(robot).at if kind != "armature"])
    lacking = signals_of(without(squat, efforts=ALL), robot).lacking
    with pytest.raises(ConfigError):
        without_data(parameters, undetermined(parameters, [lacking]))


def test_the_noise_of_sensors_is_known_without_efforts(robot: Robot, squat: Recording) -> None:
    whole = sensor_noise([squat], robot)
    found = sensor_noise([without(squat, efforts=ALL)], robot)
    assert found.keys() == whole.keys()
    assert found["gyro_noise"] == pytest.approx(whole["gyro_noise"], rel=0.05)
