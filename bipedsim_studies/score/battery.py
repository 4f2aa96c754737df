"""Read a battery: tests from one versioned file, each a small study, and their trials for one controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import bipedsim
from bipedsim.config import RunConfig, from_file, from_mapping, like, param
from bipedsim.errors import ConfigError
from bipedsim.model import hardware_mapping, robot_content, robot_file
from bipedsim_studies.study import Needs, StudyConfig, StudyPlan, StudyTrial, digest, make_plan

BATTERY = Path(__file__).parent / "battery_2.yaml"
NETWORKS = (".onnx", ".pt", ".pth", ".jit")
"""Suffixes of the files of networks."""
TEST, POINT, HARDWARE = "test", "point_of_test", "run.hardware"
"""Columns with the test of a trial, with the point of its grid, and with its hardware if that was given."""


@dataclass(frozen=True)
class TestConfig:
    """Entry of ``tests``: a study without bisection, with its complete scenario."""

    __test__ = False  # pytest must not collect this class.

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
    """Settings in a battery file."""

    version: int = param(0, "of what is in it; published with every score", required=True)
    repeat: int = like(StudyConfig, "repeat")
    seed: int = like(StudyConfig, "seed")
    run: Mapping[str, Any] = like(StudyConfig, "run")
    time_limit: float = like(StudyConfig, "time_limit")
    tests: tuple[TestConfig, ...] = param((), "list of tests", required=True)


@dataclass(frozen=True, eq=False)
class Battery:
    """Battery for one controller on one robot.

    Attributes:
        version: Version of the battery file.
        groups: Group of each test by its name, in the order of the file.
        limits: Conditions of a success of each test in addition to not falling, by its name.
        left_out: Reason for each test that is not possible with the controller, by its name.
        plan: All trials of the other tests.
    """

    version: int
    groups: Mapping[str, str]
    limits: Mapping[str, Mapping[str, Any]]
    left_out: Mapping[str, str]
    plan: StudyPlan


def read_battery(path: Path, controller: Mapping[str, Any], hardware: Sequence[str] = ()) -> Battery:
    """Read a battery file and return its trials for a controller.

    The seed of a trial depends on the battery's seed, the test, the grid point and the repetition. No two trials of a
    battery therefore share noise or draws, and the trials of two controllers form pairs.

    Args:
        path: Battery file.
        controller: Parameters of the run that define the subject: robot, controller, controller_params and more.
        hardware: Hardware of the trials, instead of the battery's. From several ones each trial draws one, the same for
            all controllers.

    Raises:
        ConfigError: The file or the controller is invalid, so that no test is possible.
    """
    battery = from_file(BatteryConfig, path)
    plans: dict[str, StudyPlan] = {}
    left_out: dict[str, ConfigError] = {}
    drawn = {HARDWARE: {"choice": list(hardware)}} if hardware else {}
    for test in battery.tests:
        study = StudyConfig(
            run={**battery.run, **test.run, **controller},
            scenario={"name": test.name, **test.scenario},
            ground=test.ground,
            vary={**drawn, **test.vary},
            repeat=test.repeat or battery.repeat,
            seed=battery.seed,
            success=test.success,
        )
        try:
            if hardware and "hardware" in test.run:
                raise ConfigError("has its own hardware; vary its parameters instead, as run.hardware.NAME", test.name)
            seed_of = partial(_seed, battery.seed, test.name)
            plans[test.name] = make_plan(study, test.name, path.parent, f"test {test.name!r}", seed_of)
        except ConfigError as error:
            left_out[test.name] = error
    if not plans:
        # An error that all tests share is an error of the controller.
        raise next(iter(left_out.values()), ConfigError("no tests", path))
    trials: list[StudyTrial] = []
    points = 0
    for name, plan in plans.items():
        for trial in plan.trials:
            values = {TEST: name, POINT: trial.point, **trial.values}
            trials.append(replace(trial, index=len(trials), point=points + trial.point, values=values))
        points += plan.grid
    parts = tuple(item for plan in plans.values() for item in plan.parts)
    joined = StudyPlan(
        name=f"battery {battery.version}",
        description="",
        grid_names=(TEST,),
        grid=points,
        trials=tuple(trials),
        version=bipedsim.__version__,
        parts=parts,
        asked=digest([plan.asked for plan in plans.values()]),
        time_limit=battery.time_limit,
        conditions=_conditions(battery, trials[0], hardware),
    )
    joined = replace(joined, description=_subject(controller, joined.needs.content))
    reasons = {name: str(error) for name, error in left_out.items()}
    limits = {test.name: test.success for test in battery.tests}
    return Battery(battery.version, {test.name: test.group for test in battery.tests}, limits, reasons, joined)


def _subject(controller: Mapping[str, Any], content: Mapping[str, str]) -> str:
    """Return controller, networks and robot; a network is a file of the run with its digest."""
    networks = [f"{Path(name).name} ({checksum[:8]})" for name, checksum in content.items() if name.endswith(NETWORKS)]
    used = " with ".join([controller["controller"], *([", ".join(networks)] if networks else [])])
    return f"{used} on {robot_file(controller['robot']).parent.name}"


def _seed(battery_seed: int, test: str, chosen: Mapping[str, Any], repetition: int) -> int:
    """Return the 32-bit seed of a trial."""
    return int(digest([battery_seed, test, dict(chosen), repetition])[:8], 16)


def _conditions(battery: BatteryConfig, trial: StudyTrial, hardware: Sequence[str]) -> dict[str, str]:
    """Return the conditions that two scores must share, in :data:`SAME`, and those whose differences are reported."""
    run = from_mapping(RunConfig, trial.run, "run")
    code_content = Needs.of(()).content
    return {
        "battery": f"version {battery.version} ({digest(asdict(battery))[:8]})",
        "robot": f"{robot_file(run.robot).parent.name} ({digest(robot_content(run.robot))[:8]})",
        "hardware": _content_of(hardware) or "as in the battery",
        "contact model": run.contact_model,
        "contact parameters": str(dict(run.contact_params)),
        "rate": f"{run.rate:g} Hz",
        "physics step": "one per tick" if run.physics_dt is None else f"{run.physics_dt:g} s",
        "simulator": f"bipedsim {bipedsim.__version__} ({digest(dict(code_content))[:8]})",
    }


def _content_of(hardware: Sequence[str]) -> str:
    """Return a digest of hardware; empty without any."""
    return digest([hardware_mapping(each) for each in hardware])[:8] if hardware else ""


SAME = ("battery", "robot", "hardware")
"""Conditions without which two scores have no trials in common."""
