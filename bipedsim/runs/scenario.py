"""Scenarios: all properties of a run except robot and contact model, from YAML files or by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from bipedsim.config import ParameterChange, RunConfig, from_file, like, param
from bipedsim.errors import ConfigError
from bipedsim.model import IDEAL
from bipedsim.objects import ObjectConfig, check_names
from bipedsim.plates import PlateConfig, check_plates
from bipedsim.runs.faults import Fault
from bipedsim.runs.names import SCENARIO_FILES
from bipedsim.runs.pushes import Push
from bipedsim.runs.velocities import Velocity


@dataclass(frozen=True)
class Scenario:
    """Describe a run except for robot and contact model; the fields are the keys of a file (docs/scenarios.md)."""

    name: str = param("", "name; default: that of the file")
    description: str = param("", "one line")
    controller: str = like(
        RunConfig,
        "controller",
        "posture",
        "controller for which the scenario is made; used unless the run names another",
    )
    controller_params: Mapping[str, Any] = like(
        RunConfig, "controller_params", doc="parameters of that controller; another controller gets those that it has"
    )
    duration: float = like(RunConfig, "duration", 10.0, "default duration of a run without ROS")
    ground: str | Mapping[str, Any] = like(RunConfig, "ground", "flat")
    hardware: str | Mapping[str, Any] = like(RunConfig, "hardware", IDEAL)
    posture: str = like(RunConfig, "posture")
    drop_height: float = param(0.0, "height of the soles above the ground at the start", unit="m", low=0.0, high=10.0)
    pushes: tuple[Push, ...] = param((), "list of pushes")
    faults: tuple[Fault, ...] = param((), "list of injected faults (docs/faults.md)")
    gantry: str | Mapping[str, Any] = like(RunConfig, "gantry", "", "gantry that holds the robot at the start")
    velocity: tuple[Velocity, ...] = param((), "list of velocity commands; each holds until the next one")
    changes: tuple[ParameterChange, ...] = param((), "list of new values of live parameters of the controller")
    objects: tuple[ObjectConfig, ...] = param((), "list of free rigid bodies (docs/objects.md)")
    force_plates: tuple[PlateConfig, ...] = param((), "list of force plates in the ground (docs/force_plates.md)")

    def problems(self) -> Iterator[ConfigError]:
        """Yield a message for each inconsistency between the keys."""
        yield from check_names(self.objects)
        yield from check_plates(self.force_plates)
        for change in self.changes:
            if change.of != "controller":
                text = f"belongs to the {change.of}; a scenario changes only parameters of the controller. Leave it out"
                yield ConfigError(text, "changes", change.name)

    @property
    def push_times(self) -> tuple[tuple[float, float], ...]:
        """Start and end time of every push [s]."""
        return tuple((push.at, push.at + push.duration) for push in self.pushes)


def read_scenario(path: Path) -> Scenario:
    """Read a scenario file.

    Raises:
        ConfigError: The file is missing or wrong; the message names file, key and value.
        UnknownNameError: An unknown key; the message lists the keys.
    """
    scenario = from_file(Scenario, path)
    return replace(scenario, name=scenario.name or path.stem)


@cache
def _named(name: str) -> Scenario:
    return read_scenario(SCENARIO_FILES[name])


def get_scenario(name_or_path: str | Path) -> Scenario:
    """Return a scenario by its name, or from a scenario file.

    Raises:
        UnknownNameError: No such name; the message lists the names.
        ConfigError: The file is missing or wrong.
    """
    path = SCENARIO_FILES.find(name_or_path)
    return _named(str(name_or_path)) if str(name_or_path) in SCENARIO_FILES else read_scenario(path)


class _Scenarios(Mapping[str, Scenario]):
    """Map names to scenarios; read a scenario at its first use, because help texts need only the names."""

    def __getitem__(self, name: str) -> Scenario:
        if name not in SCENARIO_FILES:
            raise KeyError(name)
        return _named(name)

    def __iter__(self) -> Iterator[str]:
        return iter(SCENARIO_FILES)

    def __len__(self) -> int:
        return len(SCENARIO_FILES)


SCENARIOS: Mapping[str, Scenario] = _Scenarios()
"""Table of the scenarios that have a name."""
