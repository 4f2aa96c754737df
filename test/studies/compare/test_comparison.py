"""``bipedsim compare``: energies balance, metrics have their stated meaning, and a failing model does not affect the
others.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from penalty_model import Penalty, PenaltyParams
from physics_support import SELECTION_MODELS

from bipedsim.cli.main import main
from bipedsim.config.run import RunConfig
from bipedsim.contact.models import CONTACT_MODELS
from bipedsim.model import load_robot
from bipedsim.recording.recording import Recording
from bipedsim.runs.runner import run
from bipedsim.sim.simulator import Simulator
from bipedsim_studies.compare.comparison import FailedRun, MeasuredRun, ModelComparison, compare
from bipedsim_studies.compare.figures import FIGURES, deviations, force_noise, joint_deviation
from bipedsim_studies.compare.meter import Meter

MODELS = tuple(CONTACT_MODELS)
STAND = RunConfig(duration=2.0)


def metered(settings: RunConfig) -> tuple[Recording, Meter]:
    meter = Meter()
    return run(settings, observer=meter)[0], meter


def measured(comparison: ModelComparison, name: str) -> MeasuredRun:
    row = comparison.rows[name]
    assert isinstance(row, MeasuredRun)
    return row


@pytest.fixture
def penalty(monkeypatch: pytest.MonkeyPatch) -> str:
    """A third-party model in the table, under an arbitrary name."""
    monkeypatch.setitem(CONTACT_MODELS._own, "springs", Penalty)
    return "springs"


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("robot", "scenario", "duration", "steps"),
    [("biped14", "squat", 1.0, (1, 2, 4)), ("biped14", "drop", 0.5, (1, 2, 4)), ("talos", "jump", 1.6, (1, 2))],
)
def test_the_energy_balance_closes_to_first_order(
    model: str, robot: str, scenario: str, duration: float, steps: tuple[int, ...]
) -> None:
    """Under one control rate: the impulses, poses and velocities of every physics step must be those that acted."""
    settings = RunConfig(robot=robot, scenario=scenario, contact_model=model, duration=duration)
    residuals = [np.abs(metered(replace(settings, physics_dt=1e-3 / n))[1].residual).max() for n in steps]
    ratios = [coarse / fine for coarse, fine in pairwise(residuals)]
    assert min(ratios) > 1.8
    # Energy is constant in flight. Models with velocities within the step may be more accurate.
    if scenario == "squat" or (model in SELECTION_MODELS and scenario != "drop"):
        assert max(ratios) < 2.2


@pytest.mark.ci
@pytest.mark.parametrize("model", SELECTION_MODELS)
def test_the_energy_balance_of_a_walk_closes_to_a_thousandth_of_the_work_of_its_drives(model: str) -> None:
    settings = RunConfig(scenario="walk", controller="zmp", contact_model=model, duration=6.0)
    _, meter = metered(settings)
    work = np.abs(np.diff(np.array(meter.energies)[:, 0])).sum()
    assert work > 50.0
    assert np.abs(meter.residual).max() < 1e-3 * work


def test_a_fall_loses_nothing() -> None:
    """In flight the CoM follows its parabola, and the momentum of the turning robot is constant."""
    _, meter = metered(RunConfig(scenario="drop", duration=0.09))
    np.testing.assert_allclose(meter.residual, 0.0, atol=1e-6)


@pytest.mark.parametrize("model", SELECTION_MODELS)
def test_a_landing_dissipates_what_is_missing_and_a_foot_that_holds_nothing(model: str) -> None:
    _, meter = metered(RunConfig(scenario="drop", contact_model=model, duration=3.0))
    actuators, push, damping, contact, rise, change = meter.energies[-1]
    assert push == 0.0
    assert damping == 0.0
    # The fall of 5 cm is m g h = 34.3 J; a part is left to the drives, which brake the body.
    assert 5.0 < -contact < 34.4
    assert rise < 1e-3 * -contact
    # Work of the step that lands is booked with the mean of the velocities before and after it.
    assert change == pytest.approx(actuators + contact, rel=0.02)
    held = metered(replace(STAND, contact_model=model))[1].energies[-1]
    assert abs(held[3]) < 1e-6


def test_a_push_works_along_the_way_of_the_base() -> None:
    """The work booked as J^T f . v is force times displacement, taken from the recording."""
    recording, meter = metered(RunConfig(scenario="push", duration=2.2))
    during = (recording.t >= 2.0) & (recording.t < 2.1 + 1e-9)
    moved = recording.base_pose[during, 1]
    work = 0.1 * recording.weight * (moved[-1] - moved[0])
    assert work > 0.1
    assert meter.energies[-1, 1] == pytest.approx(work, rel=0.02)


@pytest.mark.parametrize("model", SELECTION_MODELS)
def test_standing_carries_the_weight(model: str) -> None:
    figures = measured(compare(replace(STAND, duration=4.0), [model]), model).figures
    assert figures["fz_rest_error_N"] < 1e-3
    assert figures["fz_noise_N"] < 1e-3
    assert figures["fz_peak_N"] == pytest.approx(load_robot("biped14").weight, rel=0.01)
    assert figures["creep_um_s"] < 1.0
    assert figures["fell_at_s"] is None


def test_noise_is_the_rms_of_what_is_fast() -> None:
    """A sine of 200 Hz counts with its rms, one of 1 Hz and a wrong mean do not."""
    recording, _ = metered(replace(STAND, duration=3.0))
    quiet = force_noise(recording)
    assert quiet is not None
    t = recording.t
    recording.wrench[:, 0, 2] += 3.0 + 5.0 * np.sin(2.0 * np.pi * t) + 2.0 * np.sin(2.0 * np.pi * 200.0 * t)
    assert force_noise(recording) == pytest.approx(2.0 / np.sqrt(2.0), rel=0.01)


def test_a_model_does_not_deviate_from_itself() -> None:
    settings = RunConfig(scenario="squat", duration=1.5)
    first, second = metered(settings)[0], metered(settings)[0]
    assert first is not second
    assert set(deviations(second, first).values()) == {0.0}


def test_deviations_are_from_the_reference_that_was_asked_for(penalty: str) -> None:
    settings = RunConfig(scenario="drop", duration=0.6)
    a = compare(settings, [MODELS[0], penalty])
    b = compare(settings, [MODELS[0], penalty], reference=penalty)
    assert (a.reference, b.reference) == (MODELS[0], penalty)
    assert list(a.rows) == list(b.rows) == [MODELS[0], penalty]
    for key in ("joint_deviation_rad", "cop_deviation_max_mm", "cop_deviation_rms_mm"):
        far = measured(a, penalty).figures[key]
        assert far is not None
        assert far > 0.0
        assert far == measured(b, MODELS[0]).figures[key]
        assert measured(a, MODELS[0]).figures[key] == 0.0 == measured(b, penalty).figures[key]


@pytest.mark.parametrize("model", ["feedback_linearised", "nonlinear_damping"])
def test_soft_contact_deviates_from_the_first_tick_on_as_it_has_to_sink_in(model: str) -> None:
    """From one and the same start; once it has sunk in, the joints are where they are without."""
    comparison = compare(replace(STAND, duration=1.0), ["one_step", model])
    rigid, soft = (measured(comparison, name).recording for name in ("one_step", model))
    starts = [Simulator(load_robot("biped14"), contact=name).reset().joint_position for name in ("one_step", model)]
    assert (starts[0] == starts[1]).all()
    apart = joint_deviation(soft, rigid)
    sunk = -soft.sole_poses[:, :, 2].min(axis=1)
    assert 0.0 < sunk[0] < 0.05 * sunk[-1], "not yet"
    assert soft.wrench[0, :, 2].sum() < rigid.wrench[0, :, 2].sum()
    assert apart[-1] < 0.1 * apart.max()
    assert apart.argmax() * 1e-3 < 0.1


def test_springs_sink_by_the_weight_over_the_stiffness(penalty: str) -> None:
    """Eight vertices under m g, by the depth, the creep and the energy that they have in closed form."""
    robot = load_robot("biped14")
    vertices = sum(len(sole.vertices) for sole in robot.soles)
    figures = measured(compare(replace(STAND, duration=4.0), [penalty]), penalty).figures
    # The deepest vertex is a little below the mean one, as the CoP is not in the middle.
    mean_depth = 1e6 * robot.weight / (vertices * PenaltyParams().stiffness)
    assert mean_depth < figures["penetration_settled_um"] < 1.5 * mean_depth
    assert figures["penetration_max_um"] >= figures["penetration_settled_um"]
    assert figures["fz_rest_error_N"] < 0.1


def test_a_model_that_diverges_costs_the_others_nothing(penalty: str, tmp_path: Path) -> None:
    """An explicit spring of 1e14 N/m at 1 kHz leaves all sane speeds in the step after the landing."""
    picture = tmp_path / "new" / "compare.png"
    result = compare(
        RunConfig(scenario="drop", duration=1.5), [MODELS[0], penalty], None, {penalty: {"stiffness": 1e14}}
    )
    row = result.rows[penalty]
    assert isinstance(row, FailedRun)
    assert row.status == "diverged"
    assert "diverged at t = " in row.error
    assert not result.ok
    alone = compare(RunConfig(scenario="drop", duration=1.5), [MODELS[0]])
    timed = {key for key, figure in FIGURES.items() if figure.timed}
    for key, value in measured(alone, MODELS[0]).figures.items():
        assert key in timed or value == measured(result, MODELS[0]).figures[key]
    settings = f"{{run: {{duration: 1.5}}, contact_params: {{{penalty}.stiffness: 1.0e+14}}}}"
    arguments = ["compare", settings, "--scenario", "drop", "--models", MODELS[0], penalty]
    assert main([*arguments, "--plot", str(picture)]) == 1
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_without_its_reference_nothing_deviates(
    penalty: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    diverging = f"contact_params: {{{penalty}.stiffness: 1.0e+14}}"
    settings = f"{{run: {{duration: 1.5}}, reference: {penalty}, {diverging}}}"
    arguments = ["compare", settings, "--scenario", "drop", "--json"]
    arguments += ["--plot", str(tmp_path / "compare.png")]
    assert main(arguments) == 1
    report = json.loads(capsys.readouterr().out)
    assert list(report["models"]) == list(CONTACT_MODELS)
    assert report["reference"] == penalty
    assert not report["ok"]
    for name, row in report["models"].items():
        assert set(row["figures"]) == set(FIGURES)
        assert row["status"] == ("diverged" if name == penalty else "ok")
        assert row["figures"]["joint_deviation_rad"] is None
    assert report["models"][penalty]["contact_params"] == {"stiffness": 1e14}
    assert report["settings"]["physics_dt"] == 1e-3
    assert (tmp_path / "compare.png").exists()


def test_the_table_names_models_and_what_depends_on_the_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--duration", "0.3"]) == 0
    printed, told = capsys.readouterr()
    # A run of every model takes its time, so the progress is shown.
    assert told.startswith(f"{len(CONTACT_MODELS)} runs of 0.3 s: robot biped14, scenario stand, one_step, ")
    for number, name in enumerate(CONTACT_MODELS, 1):
        assert f"[{number}/{len(CONTACT_MODELS)}] {name} ...\n" in told
    lines = printed.splitlines()
    assert lines[0].startswith("biped14, stand on flat")
    assert all(name in lines[2] for name in MODELS)
    assert "All start in one posture, with soles that are not pressed into the ground" in lines[-1]
    starred = [line for line in lines if " * " in line]
    assert len(starred) == sum(figure.timed for figure in FIGURES.values())
    assert "nan" not in printed
    best = {line.partition("  ")[0]: line.split()[-len(MODELS) - 1] for line in lines[4:]}
    assert lines[2].split()[0] == "best"
    assert (best["penetration, max [um]"], best["time per physics step, median [us] *"]) == ("0", "less")
    assert best["real-time factor of the steps *"] == "more"
    assert best["state changes"] == "changes", "none is better"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--robot", "biped41"], ["biped41", "did you mean 'biped14'"]),
        (["--models", "no_model"], ["no_model", MODELS[0]]),
        (["{reference: " + MODELS[1] + "}", "--models", MODELS[0]], [MODELS[1], "among those compared"]),
        (["{contact_params: {gamma: 0.1}}"], ["gamma", "MODEL.NAME"]),
        (["{contact_params: {" + MODELS[0] + ".gamma: }}"], ["gamma"]),
        (["{contact_params: {" + MODELS[0] + ".gama: 0.1}}"], ["gama", "did you mean 'gamma'"]),
        (["{contact_params: {" + MODELS[0] + ".gamma: 5}}"], ["gamma = 5", "maximum 1.0"]),
        (["{contact_params: {no_model.gamma: 0.1}}"], ["no_model"]),
        (["{run: {duration: -1}}"], ["duration = -1"]),
        (["{run: {physics_dt: 3.0e-4}}"], ["0.0003"]),
    ],
)
def test_wrong_input_stops_before_anything_runs(
    args: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *args]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    for word in words:
        assert word in message
