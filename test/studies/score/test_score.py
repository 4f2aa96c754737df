"""The battery, and what is made of its rows."""

from __future__ import annotations

import json
import shutil
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("distributed", reason="dask.distributed (the extra study) is not installed")
pytest.importorskip("pyarrow", reason="pyarrow (the extra study) is not installed")

from bipedsim.cli.main import main
from bipedsim.errors import ConfigError
from bipedsim_studies.score.battery import BATTERY, read_battery
from bipedsim_studies.score.score import differences, paired_interval, score

ZMP = {"robot": "biped14", "controller": "zmp", "controller_params": {}}
SHORT = """
version: 7
repeat: 2
run: {hardware: realistic}
tests:
  - {name: stands, group: still, scenario: {duration: 0.4, velocity: [{at: 0}]}}
  - name: pushed
    group: pushes
    scenario: {duration: 0.4, velocity: [{at: 0}], pushes: [{at: 0.1, impulse_over_mass: [0, 0, 0]}]}
    vary: {scenario.pushes.0.impulse_over_mass: [[0.05, 0, 0], [0, 0.05, 0]]}
    success: {fz_over_mg.max: [0.9, 1.5]}
"""


@pytest.mark.parametrize("robot", ["biped14", "talos", "g1"])
def test_the_battery_is_for_any_robot_that_takes_a_velocity(robot: str) -> None:
    battery = read_battery(BATTERY, {**ZMP, "robot": robot})
    assert battery.left_out == {}
    assert {trial.values["test"] for trial in battery.plan.trials} == set(battery.groups)
    assert all(trial.run["robot"] == robot for trial in battery.plan.trials)
    assert [trial.index for trial in battery.plan.trials] == list(range(len(battery.plan.trials)))


def test_who_takes_no_velocity_is_told_and_other_mistakes_too() -> None:
    with pytest.raises(ConfigError, match="has no set_velocity"):
        read_battery(BATTERY, {**ZMP, "controller": "posture"})
    with pytest.raises(ConfigError, match="no_such"):
        read_battery(BATTERY, {**ZMP, "controller_params": {"no_such": 1}})


def row(test: str, point: int, repetition: int, success: bool, **more: object) -> dict[str, object]:
    where = {"test": test, "point_of_test": point, "repetition": repetition}
    return {**where, "success": success, "outcome": "stayed up" if success else "fell", **more}


def test_lines_of_tests_groups_and_all() -> None:
    rows = [row("a", 0, k, k < 3, velocity_error=0.1 * k) for k in range(4)]
    rows += [row("b", 0, k, True, **{"physics.depth_m.steps_beyond": k}) for k in range(2)]
    lines = {line.name: line for line in score(rows, {"a": "one", "b": "two", "never run": "two"})}
    assert list(lines) == ["a", "b", "one", "two", "all"]
    assert (lines["a"].successes, lines["a"].trials, lines["a"].failures) == (3, 4, {"fell": 1})
    assert lines["a"].figures["velocity_error"] == pytest.approx(0.1)
    assert (lines["all"].successes, lines["all"].trials) == (5, 6)
    assert (lines["a"].beyond, lines["b"].beyond) == (0, 1)


def test_differences_are_of_the_same_trials() -> None:
    first = [row("a", p, k, True) for p in range(2) for k in range(3)]
    second = [row("a", p, k, k > 0) for p in range(2) for k in range(2)] + [row("gone", 0, 0, True)]
    a, group, every = differences(first, second, {"a": "one"})
    assert (a.trials, a.first, a.second, a.only_first, a.only_second) == (4, 4, 2, 2, 0)
    assert (group.name, every.name) == ("one", "all")
    assert a.low < 0.5 < a.high


def test_intervals_of_paired_differences_hold_what_they_promise() -> None:
    """Two controllers that often fail together: the true difference is in 95 of 100 intervals, or nearly."""
    rng = np.random.default_rng(0)
    n, held, times = 40, 0, 2000
    for _ in range(times):
        hard = rng.random(n) < 0.3
        first, second = rng.random(n) > np.where(hard, 0.5, 0.05), rng.random(n) > np.where(hard, 0.8, 0.1)
        both, neither = int((first & second).sum()), int((~first & ~second).sum())
        low, high = paired_interval(both, int((first & ~second).sum()), int((~first & second).sum()), neither)
        held += low <= 0.3 * 0.3 + 0.7 * 0.05 <= high
    assert 0.93 < held / times < 0.99


@pytest.mark.parametrize(
    ("counts", "expected"),
    # Newcombe (1998), table II: what his method 10 gives.
    [((36, 12, 2, 0), (0.0569, 0.3404)), ((36, 14, 0, 0), (0.1528, 0.4167)), ((50, 0, 0, 0), (-0.0713, 0.0713))],
)
def test_intervals_are_newcombes(counts: tuple[int, int, int, int], expected: tuple[float, float]) -> None:
    assert paired_interval(*counts) == pytest.approx(expected, abs=1e-4)


def test_a_robots_file_counts_from_where_the_command_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(Path(str(files("bipedsim") / "robots" / "biped14")), tmp_path / "mine")
    (tmp_path / "short.yaml").write_text(SHORT)
    monkeypatch.chdir(tmp_path)
    assert main(["score", "zmp", "--robot", "mine/robot.yaml", "--battery", "short.yaml", "--jobs", "1"]) == 0
    assert "wrote runs/score_zmp_mine/score.html" in capsys.readouterr().out


def test_a_score_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    battery = tmp_path / "short.yaml"
    battery.write_text(SHORT)
    words = ["score", "zmp", "--battery", str(battery), "--jobs", "1"]
    assert main([*words, "-o", str(tmp_path / "first")]) == 0
    assert "ALL     6       100.0%" in capsys.readouterr().out
    assert main([*words, "-o", str(tmp_path / "second"), "--against", str(tmp_path / "first")]) == 0
    assert "+0.0%" in capsys.readouterr().out
    tables = [(tmp_path / name / "results.parquet").read_bytes() for name in ("first", "second")]
    assert tables[0] == tables[1]
    said = json.loads((tmp_path / "second" / "score.json").read_text())
    assert said["battery"] == 7
    assert said["against"]["lines"][-1]["only_first"] == 0
    page = (tmp_path / "second" / "score.html").read_text()
    assert "http" not in page
    assert page.count("<tr>") == (1 + 2 + 2 + 1) * 2
