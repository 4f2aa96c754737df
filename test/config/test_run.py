"""RunConfig is the only declaration of a run. No other module declares a run parameter or option of its own."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from paths import INSTALLED

from bipedsim.config.run import RunConfig
from bipedsim.runs.scenario import Scenario

NAMES = tuple(field.name for field in dataclasses.fields(RunConfig))
OPTIONS = {f"--{name.replace('_', '-')}" for name in NAMES} | {"--set"}
# Facts of another kind, which happen to have the name of one of a run.
OTHERS = {
    ("bipedsim/ground/read.py", "seed"),  # of the heights of tiles
    ("bipedsim/model/schema.py", "hardware"),  # changes of a robot to the presets
    ("bipedsim/model/schema.py", "posture"),  # in which the robot stands
    ("bipedsim/control/posture/posture.py", "posture"),  # that the controller holds
    ("bipedsim/control/posture/references.py", "posture"),
    ("bipedsim/runs/pushes.py", "duration"),  # of a push
    ("bipedsim/runs/faults.py", "duration"),  # of a fault
    ("bipedsim/runs/faults.py", "faults"),  # as a file has them
    ("bipedsim/runs/scenario.py", "faults"),
    ("bipedsim/plates/schema.py", "rate"),  # of the samples of a force plate
    ("bipedsim/cli/options.py", "--robot"),  # of a recording that does not say
    ("bipedsim/cli/options.py", "--ground"),
    ("bipedsim_studies/feasibility/filter.py", "controller"),  # the one inside the filter
    ("bipedsim_studies/feasibility/filter.py", "controller_params"),
    ("bipedsim_studies/compare/settings.py", "contact_params"),  # of several models
    ("bipedsim_studies/score/command.py", "--hardware"),  # several, of which each trial draws one
    ("bipedsim_studies/push_map/trial.py", "duration"),  # of a push
    ("bipedsim_studies/study/config.py", "scenario"),  # content of a scenario
    ("bipedsim_studies/study/config.py", "ground"),
    ("bipedsim_ros/loop/operations.py", "duration"),  # of a push
    ("bipedsim_ros/loop/operations.py", "posture"),  # to start in
    ("bipedsim_ros/bench/__main__.py", "--robot"),  # of `bipedsim bench --loop`, which has asked already
    ("bipedsim_ros/bench/bare.py", "--robot"),
    ("bipedsim_ros/bench/bare.py", "--rate"),  # of a node without a run
    ("bipedsim_ros/contract/check_robot.py", "--duration"),  # how long to listen
    ("bipedsim_studies/push_map/settings.py", "hardware"),  # of several robots
}


def called(node: ast.Call) -> str:
    """Return the last part of the name of a called function."""
    return str(getattr(node.func, "attr", getattr(node.func, "id", "")))


def declared(source: str) -> Iterator[str]:
    """Yield the parameters and options of a run that a source declares itself."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and isinstance(node.value, ast.Call):
            if called(node.value) == "param" and node.target.id in NAMES:
                yield node.target.id
        elif isinstance(node, ast.Call) and called(node) == "add_argument":
            yield from (a.value for a in node.args if isinstance(a, ast.Constant) and a.value in OPTIONS)


@cache
def found() -> set[tuple[str, str]]:
    paths = (
        path
        for package in ("bipedsim", "bipedsim_ros", "bipedsim_studies")
        for path in (INSTALLED / package).rglob("*.py")
    )
    sources = ((path, path.read_text(encoding="utf-8")) for path in paths)
    # Most files have neither, and to parse all of them takes seconds.
    own = ((path, source) for path, source in sources if "param(" in source or "add_argument" in source)
    return {(str(path.relative_to(INSTALLED)), name) for path, source in own for name in declared(source)}


def test_a_run_is_declared_once() -> None:
    own = {("bipedsim/config/run.py", name) for name in NAMES} | {("bipedsim/cli/options.py", "--set")}
    assert found() - OTHERS == own
    assert found() >= OTHERS, "no exception outlives what it was for"


@pytest.mark.parametrize(
    "source", ["class A:\n    rate: float = param(1.0, 'x')\n", "parser.add_argument('--rate', type=float)\n"]
)
def test_a_second_declaration_would_be_found(source: str) -> None:
    assert list(declared(source))


def test_whoever_has_a_parameter_of_a_run_has_its_range(tmp_path: Path) -> None:
    pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
    from bipedsim_ros.bringup.bringup import Arguments
    from bipedsim_ros.loop.sim_params import SimParams
    from bipedsim_ros.nodes.controller_node import ControllerNodeParams

    ours = {field.name: field for field in dataclasses.fields(RunConfig)}
    nodes = {field.name: field for field in dataclasses.fields(SimParams)}
    for cls, known in ((Scenario, ours), (SimParams, ours), (ControllerNodeParams, ours), (Arguments, ours | nodes)):
        shared = [field for field in dataclasses.fields(cls) if field.name in known]
        assert len(shared) >= 3
        for field in shared:
            for key in ("unit", "low", "high", "choices", "names"):
                assert field.metadata[key] == known[field.name].metadata[key], (cls.__name__, field.name, key)
