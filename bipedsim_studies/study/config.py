"""Define a study and derive its trials, which are identical on every machine."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np

import bipedsim
from bipedsim.config import RunConfig, from_file, from_folder, from_mapping, like, param, read_yaml, together
from bipedsim.errors import ConfigError, UnknownNameError, shown
from bipedsim.ground import Ground, ground_values, make_ground
from bipedsim.model import hardware_mapping
from bipedsim.runs import SCENARIO_FILES, Prepared, Scenario, get_scenario, prepare
from bipedsim_studies.study.limited import time_limit
from bipedsim_studies.study.needs import Needs

PARTS = ("run", "scenario", "ground")
"""First parts of the names that a study can vary."""
_PATHS = ("robot", "scenario", "ground", "posture", "hardware", "faults")
"""Parameters of a run that can be paths. Relative paths start at the folder of the study."""
_VARIED_PATHS = tuple(f"run.{name}" for name in _PATHS)


@dataclass(frozen=True)
class BisectConfig:
    """Settings of ``bisect``: search the largest value of a number at which a trial is still a success."""

    name: str = param("", "what to bisect, such as scenario.pushes.0.impulse_over_mass.0", required=True)
    guess: float = param(0.1, "where to begin; a hundredth of it counts as nothing", low=1e-12)
    limit: float = param(math.inf, "beyond it nothing is tried", low=1e-12)
    tolerance: float = param(0.02, "how near success and failure get, as a share of the value", low=1e-6, high=0.5)

    def problems(self) -> Iterator[ConfigError]:
        """Yield the inconsistencies between the keys."""
        if self.limit < self.guess:
            yield ConfigError(f"is below guess = {self.guess:g}", "limit", self.limit)


@dataclass(frozen=True)
class StudyConfig:
    """Settings of a study; its fields are the keys of the study file (docs/study.md)."""

    description: str = param("", "one line")
    run: Mapping[str, Any] = param({}, "parameters of a run that differ from its defaults, as options of bipedsim run")
    scenario: Mapping[str, Any] = param({}, "keys of a scenario file, instead of those of the run's scenario")
    ground: Mapping[str, Any] = param({}, "keys of a ground file, instead of those of the run's ground")
    vary: Mapping[str, Any] = param(
        {}, "name such as run.contact_model or ground.flat.friction_static to its values, or how they are drawn"
    )
    repeat: int = param(1, "trials at each point of the grid, each with draws and a seed of its own", low=1)
    seed: int = like(RunConfig, "seed", doc="of the first repetition: of its draws and of its run")
    bisect: BisectConfig | None = param(None, "a number to bisect instead of one run a trial")
    success: Mapping[str, Any] = param(
        {},
        "figure of the summary to its required value, or [low, high], null for no bound; the robot must also stay up",
    )
    time_limit: float = time_limit("trial")


@dataclass(frozen=True, eq=False)
class StudyTrial:
    """One row of the results, with everything that a worker needs.

    Attributes:
        index: Index among all trials.
        point: Index of its point of the grid.
        repetition: Index among the trials at this point. Trials with the same index share draws and seed.
        values: Chosen or drawn value of each name.
        run, scenario, ground: Parameters of run, scenario and ground. An empty mapping means that the run names it.
        bisect: Settings of the bisection.
        success: Conditions of a success in addition to not falling.
    """

    index: int
    point: int
    repetition: int
    values: Mapping[str, Any]
    run: Mapping[str, Any]
    scenario: Mapping[str, Any]
    ground: Mapping[str, Any]
    bisect: BisectConfig | None
    success: Mapping[str, Any]

    def prepare(self, bisected_value: float | None = None) -> Prepared:
        """Return everything for the run. ``bisected_value`` replaces the number that is bisected.

        Raises:
            ConfigError: A setting is invalid.
        """
        return prepare(*self.read(bisected_value))

    def read(self, bisected_value: float | None = None) -> tuple[RunConfig, Scenario | None, Ground | None]:
        """Return the run, and scenario and ground unless the run names them. Do not load the robot.

        Raises:
            ConfigError: A key or a value is invalid.
        """
        parts = {"run": self.run, "scenario": self.scenario, "ground": self.ground}
        if self.bisect is not None and bisected_value is not None:
            parts = deepcopy(parts)
            _set(parts, self.bisect.name, bisected_value)
        settings = from_mapping(RunConfig, parts["run"], "run")
        scenario = from_mapping(Scenario, parts["scenario"], "scenario") if parts["scenario"] else None
        ground = make_ground(parts["ground"], "ground") if parts["ground"] else None
        return settings, scenario, ground


SeedOf = Callable[[Mapping[str, Any], int], int]
"""Maps the values of a grid point and the index of a repetition to the seed of that trial."""


class Trials(Sequence[StudyTrial]):
    """Sequence of the trials of a study. Each trial is made on access.

    Args:
        study: The study.
        parts: Run, scenario and ground as mappings.
        kinds: For each name, the list of its values, or the kind and the parameters of its distribution.
        seed_of: Seed of each trial. By default, the study's seed plus the index of the repetition.

    Attributes:
        grid: Values of each name that forms the grid.
        drawn: Kind and parameters of the distribution of each other name.
        points: Number of grid points.
    """

    def __init__(
        self, study: StudyConfig, parts: Mapping[str, Any], kinds: Mapping[str, Any], seed_of: SeedOf | None = None
    ) -> None:
        self._study = study
        self._parts = parts
        self._seed_of = seed_of or (lambda _chosen, k: study.seed + k)
        self.grid = {name: kind for name, kind in kinds.items() if isinstance(kind, list)}
        self.drawn = {name: kind for name, kind in kinds.items() if name not in self.grid}
        self.points = math.prod(map(len, self.grid.values()))

    def __len__(self) -> int:
        return self.points * self._study.repeat

    @overload
    def __getitem__(self, index: int) -> StudyTrial: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[StudyTrial, ...]: ...

    def __getitem__(self, index: int | slice) -> StudyTrial | tuple[StudyTrial, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        if not 0 <= index < len(self):
            raise IndexError(index)
        point, k = divmod(index, self._study.repeat)
        places = np.unravel_index(point, tuple(map(len, self.grid.values())))
        chosen = {name: values[int(i)] for (name, values), i in zip(self.grid.items(), places, strict=True)}
        seed = self._seed_of(chosen, k)
        return self.of({**chosen, **_draws(seed, self.drawn)}, seed, index, point, k)

    def of(
        self, values: Mapping[str, Any], seed: int, index: int = 0, point: int = 0, repetition: int = 0
    ) -> StudyTrial:
        """Return a trial with the given values instead of those of its grid point.

        Raises:
            ConfigError: A name does not fit run, scenario or ground.
        """
        parts = deepcopy(dict(self._parts))
        parts["run"].setdefault("seed", seed)
        # A whole is set before its parts, which would be lost otherwise.
        for name in sorted(values, key=lambda name: name.count(".")):
            _set(parts, name, deepcopy(values[name]))
        study = self._study
        return StudyTrial(index, point, repetition, values, **parts, bisect=study.bisect, success=study.success)


@dataclass(frozen=True, eq=False)
class StudyPlan:
    """All trials of a study.

    Attributes:
        name: Name of the study.
        description: One-line description.
        grid_names: Names that form the grid.
        grid: Number of grid points.
        trials: Trials, in order.
        version: Version of the simulator.
        parts: Names and values of parameters that can refer to code or files.
        asked: Digest of all parameters that affect the results.
        time_limit: Maximum wall time of a trial [s].
        conditions: Conditions that other results must share for a comparison; empty if none is intended.
    """

    name: str
    description: str
    grid_names: tuple[str, ...]
    grid: int
    trials: Sequence[StudyTrial]
    version: str
    parts: tuple[tuple[str, Any], ...]
    asked: str
    time_limit: float
    conditions: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def needs(self) -> Needs:
        """Code and files that affect the results, in their state at the first access."""
        return Needs.of(self.parts)

    @property
    def checksum(self) -> str:
        """Digest of everything that affects the results."""
        return digest([self.asked, dict(self.needs.content)])


def digest(value: Any) -> str:
    """Return the SHA-256 of a value in JSON form."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def read_plan(path: Path) -> StudyPlan:
    """Read a study file and return its trials.

    Raises:
        ConfigError: The file is missing or invalid. The message lists all errors with file, key and value.
    """
    return make_plan(from_file(StudyConfig, path), path.stem, path.parent, str(path))


def make_plan(study: StudyConfig, name: str, folder: Path, where: str, seed_of: SeedOf | None = None) -> StudyPlan:
    """Return the trials of a study.

    Args:
        study: The study.
        name: Name of the study.
        folder: Folder at which its relative paths start.
        where: Name of its file, for messages.
        seed_of: Seed of each trial, see :class:`Trials`.

    Raises:
        ConfigError: See :func:`read_plan`.
    """
    parts = _parts(study, folder, where)
    kinds = _kinds(study, parts, folder, where)
    trials = Trials(study, parts, kinds, seed_of)
    _check(study, trials, where)
    bisect = None if study.bisect is None else vars(study.bisect)
    seeds = study.seed if seed_of is None else [seed_of({}, 0), study.seed]
    asked = digest([parts, kinds, study.repeat, seeds, study.success, bisect])
    run_parts = tuple(_named(parts, kinds))
    return StudyPlan(
        name, study.description, tuple(trials.grid), trials.points, trials, bipedsim.__version__, run_parts, asked,
        study.time_limit,
    )  # fmt: skip


def _named(parts: Mapping[str, Any], kinds: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield names and values of the parameters of all trials that can refer to code or files."""
    yield from vars(from_mapping(RunConfig, parts["run"], "run")).items()
    yield from (("scenario", parts["scenario"]), ("ground", parts["ground"]))
    for name, kind in kinds.items():
        for value in kind if isinstance(kind, list) else kind[1]:
            if not isinstance(value, (int, float)):
                yield name.rpartition(".")[2], value


def _parts(study: StudyConfig, folder: Path, where: str) -> dict[str, Any]:
    """Return run, scenario and ground as mappings. The latter two are empty if the run's names suffice."""
    run = deepcopy(dict(study.run))
    for key in _PATHS:
        if isinstance(run.get(key), str):
            run[key] = from_folder(run[key], folder)
    settings = from_mapping(RunConfig, run, f"{where}: run")
    needed = {name.partition(".")[0] for name in (*study.vary, *([study.bisect.name] if study.bisect else ()))}
    scenario: dict[str, Any] = {}
    if study.scenario or "scenario" in needed:
        scenario = {"name": Path(settings.scenario).stem, **read_yaml(SCENARIO_FILES.find(settings.scenario))}
        scenario |= deepcopy(dict(study.scenario))
    ground: dict[str, Any] = deepcopy(dict(study.ground))
    if not ground and "ground" in needed:
        ground_name = settings.ground or scenario.get("ground") or get_scenario(settings.scenario).ground
        ground = ground_values(ground_name)
    return {"run": run, "scenario": scenario, "ground": ground}


def _kinds(study: StudyConfig, parts: Mapping[str, Any], folder: Path, where: str) -> dict[str, Any]:
    """Return for each name the list of its values, or the kind and the parameters of its distribution."""
    faults: list[ConfigError] = []
    kinds: dict[str, Any] = {}
    names = [*study.vary, *([study.bisect.name] if study.bisect else ())]
    for name in names:
        part = name.partition(".")[0]
        if part not in PARTS or "." not in name:
            beginnings = ", ".join(f"{part_name}." for part_name in PARTS)
            faults.append(ConfigError(f"must begin with {beginnings} and go on with a key", f"{where}: name", name))
            continue
        try:
            _set(deepcopy(dict(parts)), name, 0.0)
        except ConfigError as error:
            faults.append(error.within(where))
    for name, spec in study.vary.items():
        try:
            kinds[name] = _values(spec, folder if name in _VARIED_PATHS else None)
        except ConfigError as error:
            faults.append(error.within(f"{where}: vary: {name} = {shown(spec)}"))
    if study.bisect is not None and study.bisect.name in study.vary:
        faults.append(ConfigError("is varied and bisected; take one", f"{where}: name", study.bisect.name))
    for figure, limits in study.success.items():
        if isinstance(limits, list) and len(limits) != 2:
            message = "must be a value or [low, high], null for no bound"
            faults.append(ConfigError(message, f"{where}: success: {figure}", limits))
    together(faults)
    return kinds


_DISTRIBUTIONS = {"uniform": 2, "log_uniform": 2, "normal": 2, "choice": 0}


def _values(spec: Any, folder: Path | None) -> Any:
    """Return a list of values, or the kind and the parameters of a distribution.

    Args:
        spec: What the study file says.
        folder: Folder at which texts start that are relative paths; None if the values are no paths.
    """

    def located(values: list[Any]) -> list[Any]:
        return [from_folder(v, folder) if folder and isinstance(v, str) else v for v in values]

    if isinstance(spec, list):
        if not spec:
            raise ConfigError("an empty list; give one value at least")
        return located(spec)
    if isinstance(spec, Mapping) and set(spec) <= {"from", "to", "count", "scale"} and {"from", "to"} <= set(spec):
        count, scale = spec.get("count", 5), spec.get("scale", "linear")
        if not isinstance(count, int) or count < 1 or scale not in ("linear", "log"):
            raise ConfigError("count must be a whole number above 0, and scale linear or log")
        space = np.linspace if scale == "linear" else np.geomspace
        first, last = _numbers([spec["from"], spec["to"]], scale == "log")
        return [float(value) for value in space(first, last, count)]
    if isinstance(spec, Mapping) and len(spec) == 1:
        kind, numbers = next(iter(spec.items()))
        if kind not in _DISTRIBUTIONS:
            raise UnknownNameError("distribution", str(kind), _DISTRIBUTIONS)
        if not isinstance(numbers, list) or not numbers or len(numbers) != (_DISTRIBUTIONS[kind] or len(numbers)):
            raise ConfigError(f"{kind} takes a list of {_DISTRIBUTIONS[kind] or 'values'}")
        if kind == "choice":
            return kind, located(numbers)
        first, last = _numbers(numbers, kind == "log_uniform")
        if kind == "normal" and last < 0.0:
            raise ConfigError(f"the deviation {last:g} must not be negative")
        if kind != "normal" and last < first:
            raise ConfigError(f"{kind} begins at {first:g}, above its end {last:g}")
        return kind, [first, last]
    raise ConfigError(
        "give a list of values, {from: A, to: B, count: N} or one distribution: {uniform: [A, B]}, "
        "{log_uniform: [A, B]}, {normal: [MEAN, DEVIATION]}, {choice: [...]}"
    )


def _numbers(values: Sequence[Any], positive: bool) -> list[float]:
    numbers = [float(value) for value in values if isinstance(value, (int, float)) and math.isfinite(value)]
    if len(numbers) != len(values) or (positive and min(numbers) <= 0.0):
        raise ConfigError(f"{list(values)} must be finite numbers{' above 0' if positive else ''}")
    return numbers


def _draws(seed: int, kinds: Mapping[str, Any]) -> dict[str, Any]:
    """Draw a value for each name. Each name has its own random stream and is therefore independent of the others."""
    drawn = {}
    for name, (kind, numbers) in kinds.items():
        key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
        rng = np.random.default_rng([seed, key])
        if kind == "choice":
            drawn[name] = numbers[int(rng.integers(len(numbers)))]
        elif kind == "log_uniform":
            drawn[name] = float(math.exp(rng.uniform(math.log(numbers[0]), math.log(numbers[1]))))
        else:
            drawn[name] = float(getattr(rng, kind)(*numbers))
    return drawn


def _set(parts: dict[str, Any], name: str, value: Any) -> None:
    """Set the value with a name such as ``scenario.pushes.0.at``. Raise a ConfigError if the name does not fit."""
    *parents, last = name.split(".")
    container: Any = parts
    for i, key in enumerate(parents):
        place: Any = _index(container, key, name) if isinstance(container, list) else key
        if isinstance(container, dict):
            container.setdefault(place, {})
            if key == "hardware" and isinstance(container[place], str):
                container[place] = hardware_mapping(container[place])
        container = container[place]
        if not isinstance(container, (dict, list)):
            raise ConfigError("has no parts", f"{name}: {'.'.join(parents[: i + 1])}", container)
    if isinstance(container, list):
        container[_index(container, last, name)] = value
    else:
        container[last] = value


def _index(entries: list[Any], key: str, name: str) -> int:
    if not key.isdigit() or int(key) >= len(entries):
        valid_range = f"0 to {len(entries) - 1}" if entries else "of which there are none"
        raise ConfigError(f"must be the number of an entry, {valid_range}", name, key)
    return int(key)


_CHECKED = 1000
"""Number of draws of a normal distribution whose extremes are checked."""


def _check(study: StudyConfig, trials: Trials, where: str) -> None:
    """Check the first trial, and for each name a trial with each of its values or with the ends of its range.

    Variations of run parameters are also prepared, which checks robots, controllers and their parameters.

    Raises:
        ConfigError: The trials have errors.
    """
    faults: dict[str, ConfigError] = {}

    def check_values(values: Mapping[str, Any], prepared: bool) -> None:
        try:
            trial = trials.of(values, study.seed)
            if prepared:
                trial.prepare(None if study.bisect is None else study.bisect.guess)
            else:
                trial.read()
        except ConfigError as error:
            faults.setdefault(str(error), error.within(where))

    if study.repeat > 1 and "seed" in study.run:
        message = f"would be that of all {study.repeat} repetitions, and they the same run; give `seed` next to `run`"
        raise ConfigError(message, f"{where}: run: seed", study.run["seed"])
    first = trials[0].values
    check_values(first, True)
    for name, spec in study.vary.items():
        of_run = name.startswith("run.")
        for value in _extremes(name, spec, trials):
            check_values({**first, name: value}, of_run)
    together(list(faults.values()))


def _extremes(name: str, spec: Any, trials: Trials) -> list[Any]:
    """Return the values of a name to check in addition to the first trial: listed values, or the ends of a range."""
    if name in trials.grid:
        values = trials.grid[name]
        return [values[-1]] if isinstance(spec, Mapping) else values[1:]
    kind, numbers = trials.drawn[name]
    if kind == "normal":
        drawn = [trials[i].values[name] for i in range(min(len(trials), _CHECKED))]
        return [min(drawn), max(drawn)]
    return list(numbers)
