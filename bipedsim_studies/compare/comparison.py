"""Run one scenario under several contact models, in sequence or in parallel processes."""

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
from bipedsim_studies.study import ONE_PROCESS, Killed, Needs, Parallel, workers


@dataclass(frozen=True, eq=False)
class MeasuredRun:
    """A run that reached its end: its recording, its meter and its metrics."""

    recording: Recording
    meter: Meter
    figures: Figures


@dataclass(frozen=True, eq=False)
class FailedRun:
    """A run that did not reach its end: its status ``diverged`` or ``failed``, and the error message."""

    status: str
    error: str


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """Runs under all contact models.

    Attributes:
        settings: Settings of the run with the values of its scenario. Each row has its own contact model and
            parameters.
        prepared: Objects that the settings name.
        reference: Contact model with which the others are compared.
        params: Parameters of each model that differ from the defaults.
        rows: Run of each model.
    """

    settings: RunConfig
    prepared: Prepared
    reference: str
    params: Mapping[str, Mapping[str, Any]]
    rows: dict[str, MeasuredRun | FailedRun] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether every run reached its end."""
        return all(isinstance(row, MeasuredRun) for row in self.rows.values())

    def as_json(self) -> dict[str, Any]:
        """Return all metrics, the settings and the machine as JSON values. Missing values are null."""
        settings = {k: v for k, v in asdict(self.settings).items() if k not in ("contact_model", "contact_params")}
        models: dict[str, Any] = {}
        for name, row in self.rows.items():
            models[name] = {"contact_params": dict(self.params.get(name, {}))}
            if isinstance(row, MeasuredRun):
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
    parallel: Parallel = ONE_PROCESS,
    say: Callable[[str], None] = lambda _line: None,
) -> ModelComparison:
    """Run ``settings`` under each contact model. The failure of one run does not affect the others.

    Args:
        settings: Settings of the run. Its contact model and parameters are not used.
        models: Keys of ``CONTACT_MODELS``, without regard to repetitions. All models by default.
        reference: One of ``models``; the first one by default.
        params: Parameters of each model that differ from the defaults.
        parallel: Distribution of the runs. With several processes, the step times are those of a shared machine.
        say: Receives progress messages: the runs to come, and each model that starts. With several processes, it
            receives each model that has ended.

    Raises:
        UnknownNameError: A model or parameter does not exist, or the reference is not among ``models``.
        ConfigError: A parameter or a setting is invalid.
        LostWorkersError: The scheduler is unreachable.
    """
    names = tuple(dict.fromkeys(models or CONTACT_MODELS))
    model_params = params or {}
    for name in names:
        if name not in CONTACT_MODELS:
            raise UnknownNameError("contact model", name, CONTACT_MODELS)
        from_mapping(CONTACT_MODELS[name].Params, model_params.get(name), f"contact model {name}")
    for name in (*model_params, *([reference] if reference else [])):
        if name not in names:
            raise UnknownNameError("contact model among those compared", name, names)
    prepared = prepare(settings)
    result = ModelComparison(prepared.settings, prepared, reference or names[0], model_params)
    common = result.settings
    listed = ", ".join(names)
    say(f"{len(names)} runs of {common.duration:g} s: robot {common.robot}, scenario {common.scenario}, {listed}")
    runs = [replace(settings, contact_model=name, contact_params=model_params.get(name, {})) for name in names]
    ended: dict[str, FinishedRun | FailedRun] = {}
    if parallel.in_this_process:
        for i, run_settings in enumerate(runs):
            say(f"[{i + 1}/{len(names)}] {names[i]} ...")
            ended[names[i]] = _run(run_settings, parallel.progress)
    else:
        needs = Needs.of(item for run_settings in runs for item in vars(run_settings).items())
        with workers(parallel, needs) as pool:
            for i, outcome in pool.each(_run, runs):
                ended[names[i]] = FailedRun("failed", outcome.why) if isinstance(outcome, Killed) else outcome
                say(f"[{len(ended)}/{len(names)}] {names[i]}")
    reference_run = ended[result.reference]
    for name in names:
        outcome = ended[name]
        result.rows[name] = outcome if isinstance(outcome, FailedRun) else outcome.measured(prepared, reference_run)
    return result


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """A run that reached its end, before its metrics are computed."""

    recording: Recording
    summary: dict[str, Any]
    meter: Meter

    def measured(self, prepared: Prepared, reference: FinishedRun | FailedRun) -> MeasuredRun:
        """Return the run with its metrics. Those relative to the reference are empty if the reference failed."""
        reference_recording = None if isinstance(reference, FailedRun) else reference.recording
        figures = own_figures(self.recording, self.summary, self.meter, prepared) | deviations(
            self.recording, reference_recording
        )
        return MeasuredRun(self.recording, self.meter, {key: figures[key] for key in FIGURES})


def _run(settings: RunConfig, progress: bool = False) -> FinishedRun | FailedRun:
    """Run one contact model."""
    meter = Meter()
    try:
        recording, summary = run(settings, progress and settings.contact_model, meter)
    except DivergenceError as error:
        return FailedRun("diverged", str(error))
    except Exception as error:  # A failure of one model must not stop the runs of the others.
        return FailedRun("failed", raised_line(error))
    return FinishedRun(recording, summary, meter)
