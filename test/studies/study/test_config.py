"""Study files: the resulting trials, and all errors of a file at once."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import faults_of, refusal
from scipy import stats

from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim_studies.study.config import StudyPlan, read_plan
from bipedsim_studies.study.trial import check_figures

BASE = "run: {scenario: stand, duration: 0.1}\n"


def plan(folder: Path, text: str) -> StudyPlan:
    path = folder / "some.yaml"
    path.write_text(BASE + text)
    return read_plan(path)


def test_the_grid_is_the_product_of_its_lists(tmp_path: Path) -> None:
    found = plan(
        tmp_path,
        "vary: {run.contact_model: [one_step, lcp], ground.flat.friction_static: {from: 0.2, to: 0.8, count: 4}}\n"
        "repeat: 3\n",
    )
    assert (found.grid, len(found.trials)) == (8, 24)
    assert [trial.index for trial in found.trials] == list(range(24))
    pairs = {(t.values["run.contact_model"], round(t.values["ground.flat.friction_static"], 9)) for t in found.trials}
    assert pairs == {(model, mu) for model in ("one_step", "lcp") for mu in (0.2, 0.4, 0.6, 0.8)}
    for trial in found.trials:
        prepared = trial.prepare()
        assert prepared.settings.contact_model == trial.values["run.contact_model"]
        assert prepared.ground.patches[0].friction_static == trial.values["ground.flat.friction_static"]
        assert prepared.settings.seed == trial.repetition


def test_draws_are_those_of_the_repetition_whatever_else_is_varied(tmp_path: Path) -> None:
    mass = "run.hardware.mass_scale: {normal: [1.0, 0.05]}"
    alone = plan(tmp_path, f"vary: {{{mass}}}\nrepeat: 5\n")
    beside = "run.contact_model: [one_step, lcp], ground.flat.friction_static: {uniform: [0.5, 0.9]}"
    more = plan(tmp_path, f"vary: {{{beside}, {mass}}}\nrepeat: 5\n")
    name = "run.hardware.mass_scale"
    drawn = [trial.values[name] for trial in alone.trials]
    assert len(set(drawn)) == 5
    for trial in more.trials:
        assert trial.values[name] == drawn[trial.repetition]
    later = plan(tmp_path, f"vary: {{{mass}}}\nrepeat: 2\nseed: 3\n")
    assert [trial.values[name] for trial in later.trials] == drawn[3:]


@pytest.mark.parametrize(
    ("said", "cdf"),
    [
        ("{uniform: [0.2, 0.8]}", stats.uniform(0.2, 0.6).cdf),
        ("{normal: [0.5, 0.02]}", stats.norm(0.5, 0.02).cdf),
        ("{log_uniform: [0.1, 0.9]}", stats.loguniform(0.1, 0.9).cdf),
    ],
)
def test_draws_have_their_distribution(tmp_path: Path, said: str, cdf: object) -> None:
    found = plan(tmp_path, f"vary: {{ground.flat.friction_static: {said}}}\nrepeat: 400\n")
    values = np.array([trial.values["ground.flat.friction_static"] for trial in found.trials])
    assert stats.kstest(values, cdf).pvalue > 1e-3


def test_a_preset_gets_single_parameters(tmp_path: Path) -> None:
    path = tmp_path / "one.yaml"
    path.write_text(
        "run: {scenario: stand, duration: 0.1, hardware: realistic}\nvary: {run.hardware.mass_scale: [1.0, 1.1]}\n"
    )
    found = read_plan(path)
    assert [dict(t.run["hardware"]) for t in found.trials] == [
        {"preset": "realistic", "mass_scale": 1.0},
        {"preset": "realistic", "mass_scale": 1.1},
    ]


def test_hardware_of_a_scenario_stays_in_it(tmp_path: Path) -> None:
    path = tmp_path / "one.yaml"
    path.write_text(
        "run: {scenario: stand, duration: 0.1}\nscenario: {hardware: realistic}\n"
        "vary: {scenario.hardware.mass_scale: [1.2]}\n"
    )
    (trial,) = read_plan(path).trials
    assert trial.scenario["hardware"] == {"preset": "realistic", "mass_scale": 1.2}
    assert "hardware" not in trial.run


def test_single_parameters_override_a_file_of_hardware(tmp_path: Path) -> None:
    path = tmp_path / "one.yaml"
    path.write_text(
        "run: {scenario: stand, duration: 0.1, hardware: mine.yaml}\n"
        "vary: {run.hardware.mass_scale: [1.2], run.hardware: {choice: [mine.yaml, other.yaml]}}\nrepeat: 30\n"
    )
    for name, friction in (("mine.yaml", 1.0), ("other.yaml", 2.0)):
        (tmp_path / name).write_text(f"preset: realistic\ncoulomb_friction: {friction}\nmass_scale: 1.1\n")
    trials = read_plan(path).trials
    hardware = [dict(trial.run["hardware"]) for trial in trials]
    assert {each["coulomb_friction"] for each in hardware} == {1.0, 2.0}
    assert all(each["mass_scale"] == 1.2 for each in hardware)
    assert {trial.values["run.hardware"] for trial in trials} == {
        str(tmp_path / f"{n}.yaml") for n in ("mine", "other")
    }
    path.write_text("run: {scenario: stand, hardware: none}\nvary: {run.hardware.mass_scale: [1.2]}\n")
    with refusal(UnknownNameError, name="none"):
        read_plan(path)
    path.write_text("run: {scenario: stand, hardware: absent.yaml}\nvary: {run.hardware.mass_scale: [1.2]}\n")
    with refusal(ConfigError, place=str(tmp_path / "absent.yaml")):
        read_plan(path)


def test_keys_of_scenarios_and_lists_in_them(tmp_path: Path) -> None:
    path = tmp_path / "push.yaml"
    path.write_text("run: {scenario: push}\nvary: {scenario.pushes.0.at: [0.5, 0.7]}\nscenario: {duration: 1.0}\n")
    found = read_plan(path)
    pushes = [trial.prepare().scenario.pushes[0].at for trial in found.trials]
    assert pushes == [0.5, 0.7]
    assert found.trials[0].prepare().ticks == 1000


def test_paths_count_from_the_folder_of_the_study(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("flat: {friction_static: 0.123}\n")
    path = tmp_path / "one.yaml"
    path.write_text("run: {scenario: stand, ground: ./mine.yaml}\n")
    ground = read_plan(path).trials[0].prepare().ground
    assert ground.patches[0].friction_static == 0.123
    for values in ("[mine.yaml]", "{choice: [mine.yaml]}"):
        path.write_text(f"run: {{scenario: stand}}\nvary: {{run.ground: {values}}}\n")
        ground = read_plan(path).trials[0].prepare().ground
        assert ground.patches[0].friction_static == 0.123


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(
            tmp_path,
            "vary: {contact_model: [lcp], run.rate: {triangle: [1, 2]}, scenario.pushes.7.at: [1], "
            "ground.flat.height: [], run.seed: {uniform: [1]}}\nsuccess: {distance_m: [1, 2, 3]}\n"
            "scenario: {pushes: [{at: 1.0}]}\n",
        )
    assert faults_of(caught.value) == {
        ("name", "'contact_model'"),
        ("scenario.pushes.7.at", "'7'"),
        ("ground.flat.height = []", "None"),
        ("[1, 2]}", "'triangle'"),
        ("[1]}", "None"),
        ("distance_m", "[1, 2, 3]"),
    }


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("vary: {run.contact_model: [one_step, lpc, nnp]}", ["lpc", "nnp"]),
        ("vary: {run.controller_params.no_such: [1]}", ["no_such"]),
        ("repeat: 0", [0]),
        ("bisect: {name: run.rate, guess: 2, limit: 1}", [1.0]),
        ("bisect: {name: run.rate}\nvary: {run.rate: [1000]}", ["run.rate"]),
        ("bisects: {}", ["bisects"]),
    ],
)
def test_what_a_trial_cannot_be_is_told_before_any_is_run(tmp_path: Path, text: str, values: list[Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(tmp_path, text)
    faults = caught.value.faults or (caught.value,)
    assert [getattr(fault, "name", fault.value) for fault in faults] == values


def test_the_checksum_is_of_what_is_run(tmp_path: Path) -> None:
    text = "vary: {run.contact_model: [one_step, lcp]}\n"
    first = plan(tmp_path, text).checksum
    assert plan(tmp_path, text + "description: other words\n").checksum == first
    assert plan(tmp_path, text + "repeat: 2\n").checksum != first
    assert plan(tmp_path, text + "success: {steps: 0}\n").checksum != first


def test_a_million_trials_take_no_memory(tmp_path: Path) -> None:
    """Each trial is created on request, and equals that of the product of the lists."""
    tracemalloc.start()
    found = plan(
        tmp_path,
        "vary: {run.contact_model: [one_step, lcp], ground.flat.friction_static: {from: 0.2, to: 0.8, count: 500},\n"
        "  scenario.drop_height: {uniform: [0.0, 0.01]}}\nrepeat: 1000\n",
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (len(found.trials), found.grid) == (1_000_000, 1000)
    # Kernels and robots that are loaded for the first time are 10 to 20 MB; the trials were some GB.
    assert peak < 1e8
    models, frictions = ["one_step", "lcp"], np.linspace(0.2, 0.8, 500)
    for index in (0, 1, 999, 1000, 499_999, 500_000, 777_777, 999_999):
        trial = found.trials[index]
        model, rest = divmod(index, 500_000)
        friction, repetition = divmod(rest, 1000)
        assert (trial.index, trial.point, trial.repetition) == (index, index // 1000, repetition)
        assert trial.values["run.contact_model"] == models[model]
        assert trial.values["ground.flat.friction_static"] == pytest.approx(frictions[friction])
        assert trial.values == found.trials[repetition].values | {
            name: trial.values[name] for name in ("run.contact_model", "ground.flat.friction_static")
        }
    assert [trial.index for trial in found.trials[3:6]] == [3, 4, 5]
    with pytest.raises(IndexError):
        found.trials[1_000_000]


@pytest.mark.parametrize(
    "given",
    [
        "{from: 0.5, to: -0.5, count: 100000}",
        "{uniform: [-0.1, 0.5]}",
        "{uniform: [0.5, 0.1]}",
        "{normal: [0.5, -0.1]}",
        "{normal: [0.1, 0.2]}",
        "{choice: [0.1, 0.2, -0.3, 0.4]}",
        "[0.1, -0.3, 0.4]",
    ],
)
def test_the_ends_of_what_is_varied_are_tried(tmp_path: Path, given: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(tmp_path, f"vary: {{ground.flat.friction_static: {given}}}\nrepeat: 20\n")
    assert all("friction_static" in fault.place for fault in caught.value.faults or (caught.value,))


def test_one_seed_for_all_repetitions_is_refused(tmp_path: Path) -> None:
    """They would be the same run, counted many times."""
    path = tmp_path / "one.yaml"
    path.write_text("run: {scenario: stand, duration: 0.1, seed: 5}\nrepeat: 2\n")
    with refusal(place="run: seed", value=5):
        read_plan(path)
    path.write_text("run: {scenario: stand, duration: 0.1, seed: 5}\nvary: {run.contact_model: [lcp, one_step]}\n")
    assert [trial.run["seed"] for trial in read_plan(path).trials] == [5, 5]


def test_the_checksum_is_of_code_and_files_too(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("flat: {friction_static: 0.123}\n")
    path = tmp_path / "one.yaml"
    path.write_text("run: {scenario: stand, ground: ./mine.yaml}\nvary: {run.robot: [biped14, parallel_ankles]}\n")
    first = read_plan(path)
    names = set(first.needs.content)
    assert {"bipedsim", "bipedsim_studies", "robot parallel_ankles: robot.yaml", "robot biped14: robot.yaml"} <= names
    assert read_plan(path).checksum == first.checksum
    (tmp_path / "mine.yaml").write_text("flat: {friction_static: 0.124}\n")
    again = read_plan(path)
    assert (again.asked, again.checksum == first.checksum) == (first.asked, False)


def test_figures_that_a_success_asks_for_exist_before_any_trial_is_run(tmp_path: Path) -> None:
    for good in ("distance_m: [0, null]", "physics.depth_m.worst: [null, 1]", "travel_x_m: [0, null]"):
        check_figures(plan(tmp_path, f"success: {{{good}}}\n").trials[:1], "some.yaml")
    with pytest.raises(ConfigError) as caught:
        check_figures(plan(tmp_path, "success: {distance: 1, travel_x: 2}\n").trials[:1], "some.yaml")
    assert faults_of(caught.value) == {("success", "'distance'"), ("success", "'travel_x'")}


def test_draws_of_two_names_have_nothing_to_do_with_each_other(tmp_path: Path) -> None:
    same = "{uniform: [0.2, 0.8]}"
    found = plan(
        tmp_path, f"vary: {{ground.flat.friction_static: {same}, scenario.drop_height: {same}}}\nrepeat: 300\n"
    )
    values = np.array([list(trial.values.values()) for trial in found.trials])
    assert stats.pearsonr(*values.T).pvalue > 1e-3


def test_trials_do_not_share_a_mapping_that_one_of_them_changes(tmp_path: Path) -> None:
    found = plan(
        tmp_path,
        "vary: {run.hardware: {choice: [{preset: realistic, coulomb_friction: 1.0}]}, "
        "run.hardware.mass_scale: {uniform: [0.9, 1.1]}}\nrepeat: 5\n",
    )
    trials = list(found.trials)
    scales = [trial.run["hardware"]["mass_scale"] for trial in trials]
    assert scales == [trial.values["run.hardware.mass_scale"] for trial in trials]
    assert len(set(scales)) == 5
    assert all(trial.values["run.hardware"] == {"preset": "realistic", "coulomb_friction": 1.0} for trial in trials)
