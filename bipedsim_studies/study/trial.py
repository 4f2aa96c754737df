"""One trial of a study: a run, or a search over runs, to a row of figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import bipedsim
from bipedsim.config import together
from bipedsim.control import failed, raised_line
from bipedsim.errors import BipedSimError, ConfigError, DivergenceError, UnknownNameError
from bipedsim.runs import run
from bipedsim_studies.study.config import Trial
from bipedsim_studies.study.motion import NAMES, motion_figures
from bipedsim_studies.study.search import threshold

STOOD, FELL, STOPPED, DIVERGED = "stayed up", "fell", "stopped", "diverged"
"""What becomes of a trial: ``stopped`` by its monitor though it stood."""
ERROR, KILLED, TIMED_OUT = "error", "killed", "timed out"
"""What becomes of a trial that gives no result: ``killed``, no worker survived it; ``timed out``, it never ended."""
FAILED = (ERROR, KILLED, TIMED_OUT)
"""They say nothing of the robot; a study that goes on tries them again."""
LEFT_OUT = ("real_time_factor", "round_trip_us", "lateness_us", "overruns", "missed_commands", "joint_stops")
"""Figures of a summary that no row has: they depend on the machine, or have other names in each run."""
OF_PHYSICS = ("worst", "steps_beyond")
"""What a row has of each quantity that is monitored."""
FIRST = ("trial", "point", "repetition", "seed", "version", "success", "outcome", "why")
"""The columns that every row begins with, before what is varied and the figures."""


def run_trial(trial: Trial) -> dict[str, Any]:
    """Return the row of a trial: what it is, what became of it, and the figures of its summary.

    Rows depend on the trial alone: the same bits on every worker of one kind of machine.
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
    except Exception as error:  # of a controller of somebody's own
        row |= {"outcome": ERROR, "why": raised_line(error)}
    return row


def check_figures(trials: Iterable[Trial], where: str) -> None:
    """See to it that the figures that successes ask for exist; those of a summary are seen in a run of one tick.

    Args:
        trials: One of each kind.
        where: Where ``success`` is, for messages.

    Raises:
        UnknownNameError: There is no such figure.
        ConfigError: Several are wrong.
    """
    faults: dict[str, ConfigError] = {}
    for trial in trials:
        asked = [name for name in trial.success if name not in NAMES]
        if not asked:
            continue
        prepared = trial.prepare(None if trial.bisect is None else trial.bisect.guess)
        try:
            recording, summary = run(replace(prepared, ticks=1))
        except Exception:  # whatever it is, it becomes of every trial, and is told with them
            continue
        known = [*dict(_flat(summary)), *motion_figures(recording, prepared.scenario.velocity)]
        for name in asked:
            # A joint at its limit, say, has an entry only in runs in which that happens.
            if name not in known and name.partition(".")[0] not in _BY_EVENT:
                error = UnknownNameError("figure", name, known, f"{where}: success")
                faults.setdefault(name, error)
    together(list(faults.values()))


_BY_EVENT = ("torque_limited", "torque_swings_hz")
"""Figures whose parts are named after what happens."""


def begin_row(trial: Trial) -> dict[str, Any]:
    """Return the row of a trial of which nothing is known yet."""
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


def _once(trial: Trial, found: float | None) -> dict[str, Any]:
    prepared = trial.prepare(found)
    recording, summary = run(prepared)
    figures = {**dict(_flat(summary)), **motion_figures(recording, prepared.scenario.velocity)}
    why = summary["gave_up_why"] or ""
    if failed(why):
        outcome = ERROR
    elif summary["fell_at_s"] is not None:
        outcome, why = FELL, summary["verdict"]
    else:
        outcome = STOPPED if summary["gave_up_at_s"] is not None else STOOD
    good = outcome == STOOD
    for name, wanted in trial.success.items():
        if name not in figures:
            raise BipedSimError(f"success: there is no figure {name!r}; there are {', '.join(sorted(figures))}")
        if good and not _meets(figures[name], wanted):
            good, why = False, f"{name} = {figures[name]} and not {wanted}"
    return {"success": good, "outcome": outcome, "why": why, **figures}


def _search(trial: Trial) -> dict[str, Any]:
    bisect = trial.bisect
    assert bisect is not None
    rows: dict[float, dict[str, Any]] = {}

    def survives(value: float) -> bool:
        try:
            rows[value] = _once(trial, value)
        except DivergenceError as error:
            rows[value] = {"success": False, "outcome": DIVERGED, "why": str(error)}
        return bool(rows[value]["success"])

    found = threshold(survives, bisect.guess, bisect.tolerance, bisect.limit)
    failed_at = found.failed if math.isfinite(found.failed) else None
    # The row shows the run at the largest value that was a success; without one that of the smallest that was tried.
    shown = rows[found.survived if found.survived in rows else min(rows)]
    why = rows[found.failed]["why"] if found.failed in rows else f"no failure up to {bisect.limit:g}"
    found_figures = {bisect.name: found.survived, "failed_at": failed_at, "runs": found.trials}
    return {**shown, "success": found.survived > 0.0, "why": why, **found_figures}


def _meets(value: Any, wanted: Any) -> bool:
    if not isinstance(wanted, list):
        return bool(value == wanted)
    low, high = wanted
    return value is not None and (low is None or value >= low) and (high is None or value <= high)


def _flat(summary: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield names and values of all figures that are single values, those in mappings with both names."""
    for name, value in summary.items():
        if name in LEFT_OUT:
            continue
        if name == "physics":
            for quantity, seen in value.items():
                yield from ((f"physics.{quantity}.{key}", seen[key]) for key in OF_PHYSICS)
        elif isinstance(value, Mapping):
            yield from ((f"{name}.{key}", entry) for key, entry in _flat(value))
        elif value is None or isinstance(value, (bool, int, str)):
            yield name, value
        elif isinstance(value, float):
            # Not NumPy's, which other programs need not know.
            yield name, float(value)
