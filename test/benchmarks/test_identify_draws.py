"""The benchmark of identified robots: its truths are those of the simulated robot, and its tables count right."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from benchmark_modules import benchmark

from bipedsim.model import body_links, load_robot, perturbed, read_hardware
from bipedsim_studies.identify import parameters_of


@pytest.fixture(scope="module")
def draws() -> ModuleType:
    """Return the benchmark."""
    return benchmark("identify_draws")


def number(kind: str, true: float, value: float, half_width: float) -> dict[str, Any]:
    return {"label": kind, "kind": kind, "true": true, "value": value, "half_width": half_width}


def result(robot: str, known: list[dict[str, Any]], angles: list[float]) -> dict[str, Any]:
    return {
        "engine": "bipedsim",
        "robot": robot,
        "seed": 0,
        "converged": True,
        "identified": len(known),
        "numbers": 9,
        "known": known,
        "delay": [0.003, 0.0031],
        "predictions": {"joint position": angles},
        "seconds": {"record": 1.0, "estimate": 2.0},
    }


def test_the_truths_are_those_of_the_simulated_robot(draws: ModuleType) -> None:
    robot = load_robot("g1")
    hardware = draws.hidden(robot, 4)
    real = perturbed(robot, read_hardware(hardware, robot))
    links = body_links(robot.model)
    p = parameters_of(robot)
    for kind, owner, component in zip(p.kinds, p.owners, p.components, strict=True):
        true = draws.truth(robot, hardware, kind, owner, component)
        joint = next((joint for joint, link in links.items() if link == owner), 0)
        before, after = robot.model.inertias[joint], real.model.inertias[joint]
        if kind == "mass":
            assert after.mass == pytest.approx(before.mass * np.exp(true))
        elif kind == "com":
            axis = "xyz".index(component)
            assert after.lever[axis] == pytest.approx(before.lever[axis] + true)
        elif kind == "armature":
            column = robot.idx_v[robot.joint_names.index(owner)]
            assert true == pytest.approx(real.model.armature[column])


def test_intervals_and_errors_are_counted(draws: ModuleType) -> None:
    inside = number("armature", 0.1, 0.105, 0.006)
    outside = number("armature", 0.1, 0.12, 0.01)
    mass = number("mass", -0.05, -0.06, 0.02)
    assert draws.error(outside) == pytest.approx(0.2)
    assert draws.error(mass) == pytest.approx(0.01)
    runs = [result("g1", [inside, outside, mass], [0.08, 0.02]), result("g1", [inside], [0.04, 0.02])]
    row = dict(zip(draws.ROBOT_HEADS, draws.of_robot(runs), strict=True))
    assert row["intervals with the truth"] == "75.0 % of 4"
    assert row["largest error [half widths]"] == "2.0"
    assert row["largest error of the delay [ms]"] == "0.10"
    assert row["joint angles after 200 ms: described, identified [rad]"] == "0.06, 0.02"
    assert row["delays beyond 0.3 ms, or not found"] == "0"
    kinds = {row[2]: dict(zip(draws.KIND_HEADS, row, strict=True)) for row in draws.of_kinds(runs)}
    assert kinds["armature"]["beyond"] == "1"
    assert kinds["armature"]["per draw"] == "1.5"
    assert kinds["mass"]["intervals with the truth"] == "100.0 % of 1"
    assert "| g1 |" in draws.report(runs)


def test_a_robot_without_identified_numbers_has_a_row(draws: ModuleType) -> None:
    empty = result("g1", [], [0.08, 0.08]) | {"delay": [0.003, float("nan")]}
    row = dict(zip(draws.ROBOT_HEADS, draws.of_robot([empty, result("g1", [], [0.08, 0.08])]), strict=True))
    assert (row["intervals with the truth"], row["largest error [half widths]"]) == ("-", "0.0")
    assert row["delays beyond 0.3 ms, or not found"] == "1"
    assert row["largest error of the delay [ms]"] == "0.10"
