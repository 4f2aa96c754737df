"""Run one trial of a study, either a single run or a bisection, and return its row of metrics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import bipedsim
from bipedsim.analysis import ControllerStop
from bipedsim.config import together
from bipedsim.control import raised_line
from bipedsim.errors import BipedSimError, ConfigError, DivergenceError, UnknownNameError
from bipedsim.runs import run
from bipedsim_studies.study.config import StudyTrial
from bipedsim_studies.study.motion import NAMES, motion_figures
from bipedsim_studies.study.search import threshold

STOOD, FELL, STOPPED, DIVERGED = "stayed up", "fell", "stopped", "diverged"
"""Outcomes of a trial. ``stopped``: the controller's monitor ended the run although the robot did not fall."""
ERROR, KILLED, TIMED_OUT = "error", "killed", "timed out"
"""Outcomes without a result. ``killed``: no worker survived the trial; ``timed out``: it exceeded the time limit."""
FAILED = (ERROR, KILLED, TIMED_OUT)
"""Outcomes that contain no information about the robot. A continued study repeats these trials."""
LEFT_OUT = ("real_time_factor", "round_trip_us", "lateness_us", "overruns", "missed_commands", "joint_stops")
"""Metrics of a summary that are not in a row. They depend on the machine, or have different names in each run."""
OF_PHYSICS = ("worst", "steps_beyond")
"""Values in a row for each monitored physical quantity."""
FIRST = ("trial", "point", "repetition", "seed", "version", "success", "outcome", "why")
"""First columns of every row, before the varied values and the metrics."""


def run_trial(trial: StudyTrial) -> dict[str, Any]:
    """Run a trial and return its row: identification, outcome and metrics.

    The row depends only on the trial. It is identical to the last bit on all workers of the same type of machine.
    """
    row = begin_row(trial)
    try:
        if trial.bisect is None:
            row |= _once(trial, None)
        else:
            row |= _search(trial)
    except DivergenceError as error:
        row |= {"outcome": DIVERGED, "why": str(error)}
    except BipedSimError as error:
        row |= {"outcome": ERROR, "why": str(error)}
    except Exception as error:  # A third-party controller can raise any exception.
        row |= {"outcome": ERROR, "why": raised_line(error)}
    return row


def check_figures(trials: Iterable[StudyTrial], where: str) -> None:
    """Check that the metrics named in ``success`` exist. A run of one tick shows the metrics of the summary.

    Args:
        trials: One trial of each kind.
        where: Location of ``success``, for messages.

    Raises:
        UnknownNameError: A metric does not exist.
        ConfigError: Several metrics do not exist.
    """
    faults: dict[str, ConfigError] = {}
    for trial in trials:
        summary_names = [name for name in trial.success if name not in NAMES]
        if not summary_names:
            continue
        prepared = trial.prepare(None if trial.bisect is None else trial.bisect.guess)
        try:
            recording, summary = run(replace(prepared, ticks=1))
        except Exception:  # The same exception will occur in every trial and is reported with their results.
            continue
        known = [*dict(_flat(summary)), *motion_figures(recording, prepared.scenario.velocity)]
        for name in summary_names:
            # These entries exist only in runs in which the event happens, such as a joint at its torque limit.
            if name not in known and name.partition(".")[0] not in _BY_EVENT:
                error = UnknownNameError("figure", name, known, f"{where}: success")
                faults.setdefault(name, error)
    together(list(faults.values()))


_BY_EVENT = ("torque_limited", "torque_swings_hz")
"""Metrics with entries named after events during the run."""


def begin_row(trial: StudyTrial) -> dict[str, Any]:
    """Return the row of a trial before it has run."""
    return {
        "trial": trial.index,
        "point": trial.point,
        "repetition": trial.repetition,
        "seed": trial.run["seed"],
        "version": bipedsim.__version__,
        "success": False,
        "outcome": ERROR,
        "why": "",
        **trial.values,
    }


def _once(trial: StudyTrial, bisected_value: float | None) -> dict[str, Any]:
    prepared = trial.prepare(bisected_value)
    recording, summary = run(prepared)
    figures = {**dict(_flat(summary)), **motion_figures(recording, prepared.scenario.velocity)}
    stop = ControllerStop.read(summary)
    why = "" if stop is None else stop.why
    if stop is not None and stop.failed:
        outcome = ERROR
    elif summary["fell_at_s"] is not None:
        outcome, why = FELL, summary["verdict"]
    else:
        outcome = STOOD if stop is None else STOPPED
    success = outcome == STOOD
    for name, limits in trial.success.items():
        if name not in figures:
            raise BipedSimError(f"there is no figure {name!r}; there are {', '.join(sorted(figures))}", "success")
        if success and not meets(figures[name], limits):
            success, why = False, f"{name} = {figures[name]} and not {limits}"
    return {"success": success, "outcome": outcome, "why": why, **figures}


def _search(trial: StudyTrial) -> dict[str, Any]:
    bisect = trial.bisect
    assert bisect is not None
    rows: dict[float, dict[str, Any]] = {}

    def survives(value: float) -> bool:
        try:
            rows[value] = _once(trial, value)
        except DivergenceError as error:
            rows[value] = {"success": False, "outcome": DIVERGED, "why": str(error)}
        return bool(rows[value]["success"])

    bracket = threshold(survives, bisect.guess, bisect.tolerance, bisect.limit)
    failed_at = bracket.failed if math.isfinite(bracket.failed) else None
    # The row shows the run at the largest successful value, or at the smallest value tried if none was successful.
    shown = rows[bracket.survived if bracket.survived in rows else min(rows)]
    why = rows[bracket.failed]["why"] if bracket.failed in rows else f"no failure up to {bisect.limit:g}"
    bisection_figures = {bisect.name: bracket.survived, "failed_at": failed_at, "runs": bracket.trials}
    return {**shown, "success": bracket.survived > 0.0, "why": why, **bisection_figures}


def meets(value: Any, wanted: Any) -> bool:
    """Return whether a metric has the required value, or is within its limits [lowest, highest]."""
    if not isinstance(wanted, list):
        return bool(value == wanted)
    low, high = wanted
    return value is not None and (low is None or value >= low) and (high is None or value <= high)


def _flat(summary: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield names and values of all scalar metrics. Metrics in mappings are named ``outer.inner``."""
    for name, value in summary.items():
        if name in LEFT_OUT:
            continue
        if name == "physics":
            for quantity, monitored in value.items():
                yield from ((f"physics.{quantity}.{key}", monitored[key]) for key in OF_PHYSICS)
        elif isinstance(value, Mapping):
            yield from ((f"{name}.{key}", entry) for key, entry in _flat(value))
        elif value is None or isinstance(value, (bool, int, str)):
            yield name, value
        elif isinstance(value, float):
            # Convert NumPy scalars, so that other programs can read the rows.
            yield name, float(value)
