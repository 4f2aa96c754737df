"""Numbers that are estimated, and those that left and right have in common."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from numpy.testing import assert_allclose

from bipedsim.cli.main import main
from bipedsim.config import yaml_value
from bipedsim.config.run import RunConfig
from bipedsim.errors import EXIT_USAGE, ConfigError, UnknownNameError
from bipedsim.model import body_links, load_robot, read_hardware, split_side
from bipedsim.numerics import Array
from bipedsim.runs.runner import run
from bipedsim_studies.gap import HORIZONS, QUANTITIES, Gap, on_common_windows, rms_errors
from bipedsim_studies.gap.recorded import CommandSource
from bipedsim_studies.gap.trivial import HELD
from bipedsim_studies.identify import Estimate, estimate, parameters_of, signals_of
from bipedsim_studies.identify.bodies import body
from bipedsim_studies.identify.estimation import with_more
from bipedsim_studies.identify.overlay import Measured, overlay
from bipedsim_studies.identify.report import coupled
from bipedsim_studies.identify.selection import select
from bipedsim_studies.identify.unknowns import DRIFTING, EXPECTED

ROBOT = load_robot("biped14")
ALL = parameters_of(ROBOT)


@pytest.mark.parametrize("name", ["biped14", "g1"])
def test_a_symmetric_robot_stays_symmetric(name: str) -> None:
    """The judge is the inertia of the whole robot: its plane of symmetry is a principal plane."""
    robot = load_robot(name)
    p = select(robot, parameters_of(robot), symmetric=True)
    changes = np.random.default_rng(1).uniform(-0.05, 0.05, len(p.free))
    values = p.start + p.basis @ changes
    model, links = pin.Model(robot.model), body_links(robot.model)
    for joint, row in zip(p.bodies, p.of_body, strict=True):
        if split_side(links[joint])[0]:
            model.inertias[joint] = body(robot.model.inertias[joint], values[row])
    before, after = (_whole(each) for each in (robot.model, model))
    # First moment along y, and the products of inertia with y.
    lateral = [after[at] - before[at] for at in ((0, 5), (2, 3), (3, 4), (4, 5))]
    assert_allclose(lateral, 0.0, atol=2e-6)
    assert abs(after[0, 0] - before[0, 0]) > 1e-3
    assert abs(after[3, 5] - before[3, 5]) > 1e-4


def _whole(model: pin.Model) -> Array:
    """Return the inertia (6, 6) of the whole robot about the origin of its base."""
    data = model.createData()
    pin.crba(model, data, pin.neutral(model))
    return np.asarray(data.Ycrb[1].matrix())


def test_drives_of_both_sides_are_equal_and_their_offsets_are_not() -> None:
    p = select(ROBOT, ALL, symmetric=True)
    values = p.start + p.basis @ np.random.default_rng(0).uniform(size=len(p.free))
    of = {(kind, owner): value for kind, owner, value in zip(p.kinds, p.owners, values, strict=True)}
    for joint in ROBOT.joint_names:
        if joint.startswith("l_"):
            other = joint.replace("l_", "r_", 1)
            for kind in ("armature", "viscous_friction", "coulomb_friction"):
                assert of[kind, joint] == of[kind, other]
            for kind in ("torque_gain", "torque_offset", "encoder_offset"):
                assert of[kind, joint] != of[kind, other]


def test_numbers_that_are_kept_are_not_estimated() -> None:
    p = select(ROBOT, ALL, ["strain", "mass:l_.*", "torque_gain:l_knee"])
    kept = [i for i in range(len(p)) if not p.estimated[i]]
    named = [p.label(i) for i in kept if p.kinds[i] != "strain"]
    left = [f"mass of {p.owners[i]}" for i in p.at["mass"][:, 0] if p.owners[i].startswith("l_")]
    assert named == ["torque_gain of l_knee", *left]
    assert len(kept) == len(named) + 6 * len(p.bodies)


def test_a_side_that_is_kept_keeps_its_mirror_image() -> None:
    p = select(ROBOT, ALL, ["coulomb_friction:l_knee"], symmetric=True)
    dry = {p.owners[i]: bool(p.estimated[i]) for i in p.at["coulomb_friction"][:, 0]}
    assert [joint for joint, estimated in dry.items() if not estimated] == ["l_knee", "r_knee"]


def test_limits_keep_both_sides_tied() -> None:
    """The described rotors of the two sides differ; the estimate of the left one would be negative."""
    p = select(ROBOT, ALL, symmetric=True)
    left, right = p.at["armature"][[3, 10], 0]
    p = replace(p, start=p.start.copy())
    p.start[right] = 0.3
    free = p.start[p.free].copy()
    free[p.free == left] = -5.0
    values = p.with_free(free)
    assert values[left] == 0.0
    assert_allclose(values[right] - 0.3, values[left] - p.start[left], rtol=1e-12)


def test_a_robot_without_mirror_images_has_no_symmetry() -> None:
    model = pin.Model(ROBOT.model)
    leg = model.getJointId("l_hip_yaw")
    model.jointPlacements[leg] = pin.SE3(np.eye(3), np.array([1.0, 0.0, 0.0])) * model.jointPlacements[leg]
    with pytest.raises(ConfigError) as raised:
        select(replace(ROBOT, model=model), ALL, symmetric=True)
    assert raised.value.value == "symmetric"


@pytest.mark.parametrize(
    ("without", "value"), [(["mass:nobody"], "nobody"), (["mass:("], "("), ([*ALL.at], ", ".join(ALL.at))]
)
def test_entries_that_match_nothing_are_refused(without: list[str], value: str) -> None:
    with pytest.raises(ConfigError) as raised:
        select(ROBOT, ALL, without)
    assert raised.value.value == value


def test_an_unknown_kind_is_named_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError) as raised:
        select(ROBOT, ALL, ["coulom_friction"])
    assert (raised.value.name, raised.value.meant) == ("coulom_friction", "coulomb_friction")


HIDDEN = {"preset": "realistic", "coulomb_friction": {".*_knee": 2.5}, "armature": 0.12}


@pytest.fixture(scope="module")
def both() -> tuple[Estimate, Estimate]:
    """Estimates of one squat, without and with symmetry; the latter without strains."""
    recording, _ = run(RunConfig(scenario="squat", hardware=HIDDEN, duration=6.0))
    signals = [signals_of(recording, ROBOT)]
    symmetric = select(ROBOT, ALL, ["strain", "armature:.*_knee"], symmetric=True)
    return estimate(ROBOT, signals), estimate(ROBOT, signals, parameters=symmetric)


@pytest.mark.slow
def test_symmetry_makes_two_legs_one_measurement(both: tuple[Estimate, Estimate]) -> None:
    alone, together = both
    knees = [i for i in ALL.at["coulomb_friction"][:, 0] if ALL.owners[i].endswith("_knee")]
    assert together.values[knees[0]] == together.values[knees[1]]
    assert np.all(np.abs(together.values[knees] - 2.5) < together.half_width[knees])
    # Two measurements of one number; fewer other numbers help, too.
    assert np.all(together.deviation[knees] < 1.05 * np.sqrt(0.5) * alone.deviation[knees])
    assert not any(ALL.owners[knees[1]] in coupled(together, i) and i == knees[0] for i in knees)


@pytest.mark.slow
def test_another_recording_narrows_the_free_numbers_and_keeps_the_ties(both: tuple[Estimate, Estimate]) -> None:
    """The judge is the estimate from both recordings, with the bounds of test_suggest.py."""
    _, before = both
    p = before.parameters
    squat, sway = (
        signals_of(run(RunConfig(scenario=name, hardware=HIDDEN, duration=6.0))[0], ROBOT) for name in ("squat", "sway")
    )
    after = with_more(ROBOT, before, sway)
    ratio = np.log(after.deviation[p.free] / estimate(ROBOT, [squat, sway], parameters=p).deviation[p.free])
    assert abs(np.median(ratio)) < 0.15
    assert np.mean(np.abs(ratio) < np.log(2.0)) > 0.8
    assert np.linalg.matrix_rank(after.covariance, tol=1e-14) <= len(p.free)
    # The offsets of the next recording may be others, by the expected drift.
    drift = np.where(np.isin(p.kinds, DRIFTING) & p.estimated, EXPECTED * p.spread, 0.0)
    assert np.all(after.deviation <= np.hypot(before.deviation, drift) * (1.0 + 1e-6))
    assert np.mean(after.deviation > before.deviation * (1.0 + 1e-6)) < 0.01
    assert np.median(after.deviation[p.free] / before.deviation[p.free]) < 0.99
    assert_allclose(after.covariance, p.basis @ after.covariance[np.ix_(p.free, p.free)] @ p.basis.T, atol=1e-15)


@pytest.mark.slow
def test_numbers_as_described_have_no_interval_and_reach_the_overlay(both: tuple[Estimate, Estimate]) -> None:
    _, result = both
    p = result.parameters
    kept = ~p.estimated
    assert kept.any()
    assert np.all(result.values[kept] == p.start[kept])
    assert not result.deviation[kept].any()
    assert not result.identified[kept].any()
    drawn = result.drawn(np.random.default_rng(0))
    assert_allclose(drawn.values[kept], p.start[kept], atol=1e-12)
    knees = p.at["coulomb_friction"][[ROBOT.joint_names.index(f"{side}_knee") for side in "lr"], 0]
    assert_allclose(*drawn.values[knees], atol=1e-9)
    values = yaml_value(overlay(ROBOT, result, Measured([Path("squat")], None, {})))
    read = read_hardware(values, ROBOT)
    assert read.armature["l_knee"] == pytest.approx(ROBOT.model.armature[ROBOT.idx_v][3])


@pytest.mark.slow
def test_a_page_with_predictions_of_a_recording_that_was_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for scenario in ("squat", "sway"):
        run(RunConfig(scenario=scenario, hardware=HIDDEN, duration=6.0))[0].save(f"{scenario}.npz")
    options = ["--assume", "symmetric,strain", "--check", "sway.npz", "--plot", "page.html", "--json"]
    assert main(["identify", "squat.npz", "--check", "./squat.npz"]) == EXIT_USAGE
    capsys.readouterr()
    main(["identify", "squat.npz", *options])
    result = json.loads(capsys.readouterr().out)
    (predictions,) = result["predictions"]
    assert predictions["held_out"]
    errors = predictions["rms"]["joint position"]
    assert errors["identified"][2] < 0.5 * errors["described"][2]
    assert [row["estimated"] for row in result["parameters"] if row["kind"] == "strain"] == [False] * 90
    page = (tmp_path / "page.html").read_text()
    assert page.count("<img") == 2
    assert "coulomb_friction of r_knee" in page


def gap(errors: list[float]) -> Gap:
    """Return a gap of one channel, with an error for each start; NaN where the simulation diverged."""
    n = len(errors)
    starts, table = np.arange(n) * 0.05, np.array(errors)[:, None, None] * np.ones((1, len(HORIZONS), 1))
    values = dict.fromkeys(QUANTITIES, table)
    names = dict.fromkeys(QUANTITIES, ("x",))
    floor = {name: np.zeros(1) for name in QUANTITIES}
    times, lost = starts[:, None] + np.array(HORIZONS), int(np.isnan(table[:, 0, 0]).sum())
    held = {HELD: {name: 10.0 * np.ones_like(table) for name in QUANTITIES}}
    return Gap("", CommandSource.COMMAND, starts, times, values, values, held, floor, names, {}, lost)


def test_a_model_does_not_gain_from_windows_in_which_it_diverges() -> None:
    easy, hard = 1.0, 3.0
    described, identified = gap([easy, hard, easy, hard]), gap([0.9, np.nan, 0.9, np.nan])
    first, second = on_common_windows(described, identified)
    errors = rms_errors([replace(first, label="a"), replace(second, label="b")])["gyro"]
    assert_allclose(errors["a"], easy)
    assert_allclose(errors["b"], 0.9)
