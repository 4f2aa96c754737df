"""The benchmark battery, and the evaluation of its rows."""

from __future__ import annotations

import hashlib
import importlib
import math
import re
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import brentq

from bipedsim.errors import ConfigError
from bipedsim.model import ROBOTS
from bipedsim_studies.score.battery import BATTERY, read_battery
from bipedsim_studies.score.score import compared, differences, paired_interval, score

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


@pytest.mark.long
@pytest.mark.parametrize("robot", ["biped14", "talos", "g1"])
def test_the_battery_is_for_any_robot_that_takes_a_velocity(robot: str) -> None:
    battery = read_battery(BATTERY, {**ZMP, "robot": robot})
    assert battery.left_out == {}
    assert {trial.values["test"] for trial in battery.plan.trials} == set(battery.groups)
    assert all(trial.run["robot"] == robot for trial in battery.plan.trials)
    assert [trial.index for trial in battery.plan.trials] == list(range(len(battery.plan.trials)))


@pytest.mark.long
def test_who_takes_no_velocity_is_told_and_other_mistakes_too() -> None:
    with pytest.raises(ConfigError):
        read_battery(BATTERY, {**ZMP, "controller": "posture"})
    with pytest.raises(ConfigError) as caught:
        read_battery(BATTERY, {**ZMP, "controller_params": {"no_such": 1}})
    assert "no_such" in str(caught.value)


def test_a_score_names_robot_and_network(tmp_path: Path) -> None:
    """A robot by its folder, wherever it is, and a network by its file and digest."""
    pytest.importorskip("onnx", reason="onnx is not installed")
    policy_support = importlib.import_module("policy_support")
    (tmp_path / "short.yaml").write_text(SHORT)
    shutil.copytree(Path(str(ROBOTS["biped14"])).parent, tmp_path / "mine")
    subject = {"controller": "policy", "controller_params": {"file": str(policy_support.whole(tmp_path))}}
    battery = read_battery(tmp_path / "short.yaml", {"robot": str(tmp_path / "mine"), **subject})
    named = re.fullmatch(r"policy with policy\.onnx \((\w{8})\) on mine", battery.plan.description)
    assert named is not None
    assert hashlib.sha256((tmp_path / "policy.onnx").read_bytes()).hexdigest().startswith(named[1])


def row(test: str, point: int, repetition: int, success: bool, **more: object) -> dict[str, object]:
    where = {"test": test, "point_of_test": point, "repetition": repetition}
    return {**where, "success": success, "outcome": "stayed up" if success else "fell", **more}


def test_lines_of_tests_groups_and_all() -> None:
    rows = [row("a", 0, k, k < 3, velocity_error=0.1 * k) for k in range(4)]
    rows += [row("b", 0, k, True, **{"physics.depth_m.steps_beyond": k}) for k in range(2)]
    lines = {line.name: line for line in score(rows, {"a": "one", "b": "two", "never run": "two"}, {})}
    assert list(lines) == ["a", "b", "one", "two", "all"]
    assert (lines["a"].successes, lines["a"].trials, lines["a"].failures) == (3, 4, {"fell": 1})
    assert lines["a"].figures["velocity_error"] == pytest.approx(0.1)
    assert (lines["all"].successes, lines["all"].trials) == (5, 6)
    assert (lines["a"].beyond, lines["b"].beyond) == (0, 1)


def test_a_line_has_the_figures_that_were_missed_and_their_limits() -> None:
    """Only of trials that stayed up; the lines of groups have none, because the limits are those of a test."""
    limits = {"a": {"velocity_error": [None, 0.2], "turn_error": [0.0, 1.0]}}
    rows = [row("a", 0, k, False, velocity_error=0.1 * k, turn_error=0.5) for k in range(5)]
    for k in (2, 3):
        rows[k]["outcome"] = "stayed up"
    rows[4]["success"] = True
    a, group, every = score(rows, {"a": "one"}, limits)
    (missed,) = a.missed
    assert (missed.name, missed.limits) == ("velocity_error", [None, 0.2])
    assert missed.values == pytest.approx((0.3,))
    assert not group.missed
    assert not every.missed


def test_a_single_trial_has_no_interval() -> None:
    one, *_ = score([row("a", 0, 0, True)], {"a": "one"}, {})
    assert (one.low, one.high) == (None, None)
    two, *_ = score([row("a", 0, k, True) for k in range(2)], {"a": "one"}, {})
    assert two.low is not None


def test_differences_are_of_the_same_trials() -> None:
    first = [row("a", p, k, True) for p in range(2) for k in range(3)]
    second = [row("a", p, k, k > 0) for p in range(2) for k in range(2)] + [row("gone", 0, 0, True)]
    a, group, every = differences(first, second, {"a": "one"})
    assert (a.trials, a.first, a.second, a.only_first, a.only_second) == (4, 4, 2, 2, 0)
    assert (group.name, every.name) == ("one", "all")
    assert a.low < 0.5 < a.high


@pytest.mark.long
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
    # Newcombe (1998), table II: results of method 10.
    [((36, 12, 2, 0), (0.0569, 0.3404)), ((36, 14, 0, 0), (0.1528, 0.4167)), ((50, 0, 0, 0), (-0.0713, 0.0713))],
)
def test_intervals_are_newcombes(counts: tuple[int, int, int, int], expected: tuple[float, float]) -> None:
    assert paired_interval(*counts) == pytest.approx(expected, abs=1e-4)


def newcombe(both: int, only_first: int, only_second: int, neither: int) -> tuple[float, float]:
    """Newcombe's method 10 from its definition: Wilson's limits as roots, phi as a correlation of zeros and ones."""
    n = both + only_first + only_second + neither
    pairs = np.repeat([[1, 1], [1, 0], [0, 1], [0, 0]], [both, only_first, only_second, neither], axis=0)
    z = 1.959963984540054
    p1, p2 = pairs.mean(axis=0)

    def limit(p: float, end: float) -> float:
        # The score test accepts a value at a distance of z of its own standard deviations from the observation.
        def excess(q: float) -> float:
            return (p - q) ** 2 - z * z * q * (1.0 - q) / n

        inside = p + math.copysign(1e-9, end - p)
        return end if p == end else float(brentq(excess, end, inside, xtol=1e-15))

    phi = 0.0
    if 0 < p1 < 1 and 0 < p2 < 1:
        phi = float(np.corrcoef(pairs.T)[0, 1])
        cross = both * neither - only_first * only_second
        if cross > 0:
            # Continuity correction: half a trial off the difference of products, but not below nothing.
            phi *= max(1.0 - n / (2.0 * cross), 0.0)
    d1, u1, d2, u2 = p1 - limit(p1, 0.0), limit(p1, 1.0) - p1, p2 - limit(p2, 0.0), limit(p2, 1.0) - p2
    down = math.sqrt(max(d1 * d1 - 2.0 * phi * d1 * u2 + u2 * u2, 0.0))
    up = math.sqrt(max(u1 * u1 - 2.0 * phi * u1 * d2 + d2 * d2, 0.0))
    return p1 - p2 - down, p1 - p2 + up


@settings(max_examples=30)
@given(st.tuples(*[st.integers(0, 40)] * 4).filter(lambda counts: sum(counts) > 1))
def test_intervals_are_newcombes_from_its_definition(counts: tuple[int, int, int, int]) -> None:
    assert paired_interval(*counts) == pytest.approx(newcombe(*counts), abs=1e-7)


@pytest.mark.parametrize("counts", [(30, 3, 4, 13), (6, 5, 5, 6), (2, 9, 9, 2)])
def test_the_correlation_is_corrected_for_continuity(counts: tuple[int, int, int, int]) -> None:
    """Beyond half a trial, below it, and negative: three branches."""
    assert paired_interval(*counts) == pytest.approx(newcombe(*counts), abs=1e-9)


@pytest.mark.long
def test_no_two_trials_share_their_luck_and_pairs_do() -> None:
    """The intervals assume independent trials. Two controllers get the same trials."""
    trials = read_battery(BATTERY, ZMP).plan.trials
    seeds = [trial.run["seed"] for trial in trials]
    assert len(trials) == 278
    assert Counter(seeds).most_common(1)[0][1] == 1
    times = [trial.values.get("scenario.pushes.0.at") for trial in trials]
    drawn = [time for time in times if time is not None]
    assert len(set(drawn)) == len(drawn) == 96
    others = read_battery(BATTERY, {**ZMP, "robot": "talos", "controller_params": {"ramp": 0.2}}).plan.trials
    assert [trial.values for trial in others] == [trial.values for trial in trials]
    assert [trial.run["seed"] for trial in others] == seeds


def test_the_luck_of_a_trial_is_its_own_whatever_else_a_battery_has(tmp_path: Path) -> None:
    def seeds(text: str) -> dict[tuple[str, str, int], int]:
        (tmp_path / "some.yaml").write_text(text)
        trials = read_battery(tmp_path / "some.yaml", ZMP).plan.trials
        return {(t.values["test"], repr(t.values), t.repetition): t.run["seed"] for t in trials}

    first = seeds(SHORT)
    more = seeds(SHORT.replace("tests:", "tests:\n  - {name: new, group: still, scenario: {duration: 0.4}}"))
    longer = seeds(SHORT.replace("repeat: 2", "repeat: 3"))
    assert first.items() <= more.items()
    assert {key: longer[key] for key in first if "pushed" in key[0]}.items() <= first.items()
    assert not set(first.values()) & set(seeds(SHORT.replace("run:", "seed: 1\nrun:", 1)).values())


def conditions(folder: Path, text: str = "", **more: object) -> dict[str, str]:
    (folder / "some.yaml").write_text(text or SHORT)
    return dict(read_battery(folder / "some.yaml", {**ZMP, **more}).plan.conditions)


@pytest.mark.long
def test_only_scores_of_the_same_trials_are_compared(tmp_path: Path) -> None:
    ours = conditions(tmp_path)
    assert compared(ours, conditions(tmp_path, controller_params={"ramp": 0.2}), "there") == []
    shutil.copytree(ROBOTS["biped14"].parent, tmp_path / "biped14")
    mine = tmp_path / "biped14" / "robot.yaml"
    assert compared(ours, conditions(tmp_path, robot=str(mine)), "there") == []
    mine.write_text(mine.read_text() + "\n")
    others = [
        {"robot": str(mine)},
        {"robot": "talos"},
        {"text": SHORT.replace("0.4", "0.5")},
        {"text": SHORT.replace("repeat: 2", "repeat: 3")},
        {"text": SHORT.replace("version: 7", "version: 8")},
        {"text": SHORT.replace("[0.9, 1.5]", "[0.8, 1.5]")},
    ]
    for other in others:
        with pytest.raises(ConfigError) as caught:
            compared(ours, conditions(tmp_path, **other), "there")
        assert caught.value.place in ("--against there: robot", "--against there: battery")
    with pytest.raises(ConfigError):
        compared(ours, {}, "there")
    for other, name in (({"contact_model": "lcp"}, "contact model"), ({"rate": 500.0}, "rate")):
        (said,) = compared(ours, conditions(tmp_path, **other), "there")
        assert said.startswith(name)
