"""A battery: tests, each a small study, from one file with a version; and the trials that it is for one controller."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import bipedsim
from bipedsim.config import from_file, like, param
from bipedsim.errors import ConfigError
from bipedsim_studies.study import Plan, StudyConfig, Trial, make_plan

BATTERY = Path(__file__).parent / "battery_1.yaml"
TEST, POINT = "test", "point_of_test"
"""The columns that say which test a trial is of, and which point of its grid."""


@dataclass(frozen=True)
class TestConfig:
    """An entry of ``tests``: a study without bisection, whose scenario is all of its scenario."""

    __test__ = False  # no test of pytest's

    name: str = param("", "what the table calls it", required=True)
    group: str = param("", "what it is counted with", required=True)
    run: Mapping[str, Any] = like(StudyConfig, "run")
    scenario: Mapping[str, Any] = like(StudyConfig, "scenario")
    ground: Mapping[str, Any] = like(StudyConfig, "ground")
    vary: Mapping[str, Any] = like(StudyConfig, "vary")
    repeat: int | None = param(None, "trials at each point; default that of the battery", low=1)
    success: Mapping[str, Any] = like(StudyConfig, "success")


@dataclass(frozen=True)
class BatteryConfig:
    """A battery's file."""

    version: int = param(0, "of what is in it; published with every score", required=True)
    repeat: int = like(StudyConfig, "repeat")
    seed: int = like(StudyConfig, "seed")
    run: Mapping[str, Any] = like(StudyConfig, "run")
    tests: tuple[TestConfig, ...] = param((), "list of tests", required=True)


@dataclass(frozen=True, eq=False)
class Battery:
    """A battery for one controller on one robot.

    Attributes:
        version: Of its file.
        groups: Name of each test to its group, in the order of the file.
        left_out: Name of each test that the controller cannot be tried with, to why.
        plan: All trials of the other tests.
    """

    version: int
    groups: Mapping[str, str]
    left_out: Mapping[str, str]
    plan: Plan


def read_battery(path: Path, controller: Mapping[str, Any]) -> Battery:
    """Return the trials of a battery.

    Args:
        path: Its file.
        controller: Parameters of the run that say who is tried, on what: robot, controller, controller_params and more.

    Raises:
        ConfigError: The file is wrong, or the controller is; no test can be run.
    """
    battery = from_file(BatteryConfig, path)
    plans: dict[str, Plan] = {}
    left_out: dict[str, str] = {}
    for test in battery.tests:
        study = StudyConfig(
            run={**battery.run, **test.run, **controller},
            scenario={"name": test.name, **test.scenario},
            ground=test.ground,
            vary=test.vary,
            repeat=test.repeat or battery.repeat,
            seed=battery.seed,
            success=test.success,
        )
        try:
            plans[test.name] = make_plan(study, test.name, path.parent, f"test {test.name!r}")
        except ConfigError as error:
            left_out[test.name] = str(error)
    if not plans:
        # What is wrong with all of them is wrong with the controller.
        raise ConfigError(next(iter(left_out.values()), f": {path}: no tests").partition(": ")[2])
    trials: list[Trial] = []
    points = 0
    for name, plan in plans.items():
        for trial in plan.trials:
            values = {TEST: name, POINT: trial.point, **trial.values}
            trials.append(replace(trial, index=len(trials), point=points + trial.point, values=values))
        points += plan.grid
    text = "".join(plan.checksum for plan in plans.values())
    checksum = hashlib.sha256(text.encode()).hexdigest()
    who = f"{controller['controller']} on {controller['robot']}"
    joined = Plan(
        f"battery {battery.version}", who, (TEST,), points, tuple(trials), bipedsim.__version__, checksum
    )  # fmt: skip
    return Battery(battery.version, {test.name: test.group for test in battery.tests}, left_out, joined)
