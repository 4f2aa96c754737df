"""Scenario files: what users write, and the scenarios that come with the package."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from bipedsim.config import from_mapping, param, read_yaml
from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.model import IDEAL, number
from bipedsim.runs.names import SCENARIO_FILES
from bipedsim.runs.pushes import FRAMES, WORLD
from bipedsim.runs.scenario import Push, Scenario
from bipedsim.runs.velocities import VelocityStep


@dataclass(frozen=True)
class ScenarioConfig:
    """The keys of a scenario file."""

    description: str = param("", "one line")
    controller: str = param("posture", "controller that it is made for, used where none is asked for")
    controller_params: Any = param(None, "parameters of the controller; one that does not know a word is not told it")
    duration: float = param(
        10.0, "how long a headless run takes where nothing else is asked for", unit="s", low=1e-3, high=1e6
    )
    ground: str = param("flat", "name of a ground, or path of a ground YAML, from the folder of this file")
    hardware: Any = param(
        IDEAL, "drives, sensors, masses: a preset, a mapping {preset: NAME, PARAMETER: VALUE}, or path of a YAML file"
    )
    drop_height: float = param(0.0, "height of the soles above the ground at the start", unit="m", low=0.0, high=10.0)
    pushes: Any = param(None, "list of pushes")
    velocity: Any = param(None, "list of velocity commands, each of which holds until the next one")


@dataclass(frozen=True)
class PushConfig:
    """One entry of ``pushes``."""

    at: float = param(0.0, "when it begins", unit="s", low=0.0, high=1e9)
    duration: float = param(0.1, "how long it lasts", unit="s", low=1e-6, high=1e9)
    force_over_weight: Any = param(None, "[x, y, z] as a share of the robot's weight")
    impulse_over_mass: Any = param(None, "[x, y, z] force times duration over mass, instead of the force", unit="m/s")
    body: str = param("", "frame at whose origin it acts; default the root link")
    frame: str = param(WORLD, "axes of the force; heading: x ahead of the robot as it begins", choices=FRAMES)


@dataclass(frozen=True)
class VelocityConfig:
    """One entry of ``velocity``."""

    at: float = param(0.0, "when it begins", unit="s", low=0.0, high=1e9)
    vx: float = param(0.0, "velocity ahead", unit="m/s", low=-10.0, high=10.0)
    vy: float = param(0.0, "velocity to the left", unit="m/s", low=-10.0, high=10.0)
    wz: float = param(0.0, "turning rate to the left", unit="rad/s", low=-10.0, high=10.0)


def read_scenario(path: Path) -> Scenario:
    """Read a scenario file.

    Raises:
        ConfigError: The file is missing or wrong; the message holds file, key and value.
        UnknownNameError: An unknown key; the message lists the keys.
    """
    config = from_mapping(ScenarioConfig, read_yaml(path), str(path))
    params = {} if config.controller_params is None else config.controller_params
    if not isinstance(params, Mapping):
        raise ConfigError(f"{path}: controller_params = {params!r} must be a mapping of names to values")
    velocity = [
        from_mapping(VelocityConfig, entry, where) for where, entry in _entries(config.velocity, f"{path}: velocity")
    ]
    return Scenario(
        name=path.stem,
        description=config.description,
        controller=config.controller,
        controller_params=dict(params),
        duration=config.duration,
        ground=_from_here(config.ground, path),
        hardware=_hardware(config.hardware, path),
        drop_height=config.drop_height,
        pushes=tuple(_push(entry, where) for where, entry in _entries(config.pushes, f"{path}: pushes")),
        velocity=tuple(VelocityStep(step.at, step.vx, step.vy, step.wz) for step in velocity),
    )


def _entries(values: Any, where: str) -> Iterator[tuple[str, Any]]:
    """Yield the entries of a list with their places; None is an empty one."""
    if not (values is None or (isinstance(values, Sequence) and not isinstance(values, str))):
        raise ConfigError(f"{where} = {values!r} must be a list")
    for i, entry in enumerate(values or ()):
        yield f"{where}[{i}]", entry


def _push(values: Any, where: str) -> Push:
    config = from_mapping(PushConfig, values, where)
    given = {key: getattr(config, key) for key in ("force_over_weight", "impulse_over_mass")}
    given = {key: _vector(value, f"{where}: {key}") for key, value in given.items() if value is not None}
    if len(given) != 1:
        raise ConfigError(f"{where}: give one of force_over_weight and impulse_over_mass, [x, y, z]")
    return Push(config.at, config.duration, body=config.body, frame=config.frame, **given)


def _vector(values: Any, where: str) -> tuple[float, float, float]:
    if not isinstance(values, Sequence) or isinstance(values, str) or len(values) != 3:
        raise ConfigError(f"{where} = {values!r} must be three numbers")
    x, y, z = (number(value, where) for value in values)
    return x, y, z


def _from_here(text: str, path: Path) -> str:
    """Return a name as it is, and a path from the folder of the scenario file."""
    is_path = "/" in text or text.endswith((".yaml", ".yml"))
    return str((path.parent / text).resolve()) if is_path else text


def _hardware(values: Any, path: Path) -> str:
    """Return hardware as the text that commands and nodes take."""
    if isinstance(values, Mapping):
        return str(yaml.safe_dump(dict(values), default_flow_style=True, width=math.inf, sort_keys=False)).strip()
    if isinstance(values, str) and values.lstrip().startswith("{"):
        return values
    if not isinstance(values, str):
        raise ConfigError(f"{path}: hardware = {values!r} must be a name, a mapping or the path of a YAML file")
    return _from_here(values, path)


@cache
def _named(name: str) -> Scenario:
    return read_scenario(SCENARIO_FILES[name])


def get_scenario(name_or_path: str | Path) -> Scenario:
    """Return a scenario by its name, or from a scenario file.

    Raises:
        UnknownNameError: No such name; the message lists the names.
        ConfigError: The file is missing or wrong.
    """
    text = str(name_or_path)
    if text in SCENARIO_FILES:
        return _named(text)
    if isinstance(name_or_path, Path) or "/" in text or text.endswith((".yaml", ".yml")):
        return read_scenario(Path(name_or_path))
    raise UnknownNameError("scenario", text, SCENARIO_FILES, otherwise="the path of a YAML file")


class _Scenarios(Mapping[str, Scenario]):
    """The scenarios that can be named, each read when it is asked for."""

    def __getitem__(self, name: str) -> Scenario:
        if name not in SCENARIO_FILES:
            raise KeyError(name)
        return _named(name)

    def __iter__(self) -> Iterator[str]:
        return iter(SCENARIO_FILES)

    def __len__(self) -> int:
        return len(SCENARIO_FILES)


SCENARIOS: Mapping[str, Scenario] = _Scenarios()
