"""One run under several contact models, one after the other or on several processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from bipedsim.config import RunConfig, from_mapping
from bipedsim.contact import CONTACT_MODELS
from bipedsim.control import raised_line
from bipedsim.errors import DivergenceError, UnknownNameError
from bipedsim.recording import Recording
from bipedsim.runs import Prepared, prepare, run
from bipedsim_studies.bench import machine
from bipedsim_studies.compare.figures import FIGURES, Figures, deviations, own_figures
from bipedsim_studies.compare.meter import Meter
from bipedsim_studies.study import LIMIT, Killed, Needs, workers


@dataclass(frozen=True, eq=False)
class Measured:
    """A run that reached its end: the recording, the meter that looked on, and the figures."""

    recording: Recording
    meter: Meter
    figures: Figures


@dataclass(frozen=True, eq=False)
class Failed:
    """A run that did not: ``diverged`` or ``failed``, and why."""

    status: str
    error: str


@dataclass(frozen=True, eq=False)
class Comparison:
    """What came of it.

    Attributes:
        settings: The run, with what its scenario says; contact model and parameters are those of each row.
        prepared: What the settings name.
        reference: Model that the others are compared with.
        params: Model to its parameters that differ from the defaults.
        rows: Model to its run.
    """

    settings: RunConfig
    prepared: Prepared
    reference: str
    params: Mapping[str, Mapping[str, Any]]
    rows: dict[str, Measured | Failed] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether every run reached its end."""
        return all(isinstance(row, Measured) for row in self.rows.values())

    def as_json(self) -> dict[str, Any]:
        """Return all figures as JSON values, the settings and the machine; what does not exist is null."""
        settings = {k: v for k, v in asdict(self.settings).items() if k not in ("contact_model", "contact_params")}
        models: dict[str, Any] = {}
        for name, row in self.rows.items():
            models[name] = {"contact_params": dict(self.params.get(name, {}))}
            if isinstance(row, Measured):
                models[name] |= {"status": "ok", "error": None, "figures": row.figures}
            else:
                models[name] |= {"status": row.status, "error": row.error, "figures": dict.fromkeys(FIGURES)}
        return {
            "settings": {**settings, "physics_dt": self.prepared.physics_dt},
            "machine": machine(),
            "reference": self.reference,
            "ok": self.ok,
            "models": models,
        }


def compare(
    settings: RunConfig,
    models: Sequence[str] = (),
    reference: str | None = None,
    params: Mapping[str, Mapping[str, Any]] | None = None,
    progress: bool = False,
    say: Callable[[str], None] = lambda _line: None,
    jobs: int = 1,
    scheduler: str = "",
    limit: float = LIMIT,
) -> Comparison:
    """Run ``settings`` under each contact model; one that fails costs the others nothing.

    Args:
        settings: The run; its contact model and parameters are not used.
        models: Keys of ``CONTACT_MODELS``, each counted once; all of them by default.
        reference: One of ``models``; the first one by default.
        params: Model to its parameters that differ from the defaults.
        progress: Show a bar on stderr for each model that runs in this process.
        say: Is told what will be run, and which model begins, or on several processes has ended.
        jobs: Processes; with more than one the step times are those of models that share the machine.
        scheduler: Address of a dask scheduler whose workers do it instead.
        limit: Wall time within which each run must end, where processes do it [s].

    Raises:
        UnknownNameError: No such model or parameter, or it is not compared.
        ConfigError: A parameter or something in the settings is wrong.
        LostWorkersError: The scheduler is gone.
    """
    names = tuple(dict.fromkeys(models or CONTACT_MODELS))
    given = params or {}
    for name in names:
        if name not in CONTACT_MODELS:
            raise UnknownNameError("contact model", name, CONTACT_MODELS)
        from_mapping(CONTACT_MODELS[name].Params, given.get(name), f"contact model {name}")
    for name in (*given, *([reference] if reference else [])):
        if name not in names:
            raise UnknownNameError("contact model among those compared", name, names)
    prepared = prepare(settings)
    result = Comparison(prepared.settings, prepared, reference or names[0], given)
    what = result.settings
    say(f"{len(names)} runs of {what.duration:g} s: robot {what.robot}, scenario {what.scenario}, {', '.join(names)}")
    runs = [replace(settings, contact_model=name, contact_params=given.get(name, {})) for name in names]
    ended: dict[str, Ended | Failed] = {}
    if jobs == 1 and not scheduler:
        for i, own in enumerate(runs):
            say(f"[{i + 1}/{len(names)}] {names[i]} ...")
            ended[names[i]] = _run(own, progress)
    else:
        with workers(jobs, Needs.of(part for own in runs for part in vars(own).items()), scheduler, limit) as pool:
            for i, found in pool.each(_run, runs):
                ended[names[i]] = Failed("failed", found.why) if isinstance(found, Killed) else found
                say(f"[{len(ended)}/{len(names)}] {names[i]}")
    of = ended[result.reference]
    for name in names:
        found = ended[name]
        result.rows[name] = found if isinstance(found, Failed) else found.measured(prepared, of)
    return result


@dataclass(frozen=True, eq=False)
class Ended:
    """A run that reached its end."""

    recording: Recording
    summary: dict[str, Any]
    meter: Meter

    def measured(self, prepared: Prepared, reference: Ended | Failed) -> Measured:
        """Return its figures; those of a deviation are empty where the reference failed."""
        of = None if isinstance(reference, Failed) else reference.recording
        found = own_figures(self.recording, self.summary, self.meter, prepared) | deviations(self.recording, of)
        return Measured(self.recording, self.meter, {key: found[key] for key in FIGURES})


def _run(settings: RunConfig, progress: bool = False) -> Ended | Failed:
    """Run one model."""
    meter = Meter()
    try:
        recording, summary = run(settings, progress, meter, settings.contact_model)
    except DivergenceError as error:
        return Failed("diverged", str(error))
    except Exception as error:  # whatever goes wrong in one model must not cost the rows of the others
        return Failed("failed", raised_line(error))
    return Ended(recording, summary, meter)
