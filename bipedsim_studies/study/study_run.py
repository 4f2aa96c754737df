"""Run a study from its plan to its results."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bipedsim.config import ProgressBar
from bipedsim_studies.study.config import StudyPlan
from bipedsim_studies.study.options import Parallel, parallel
from bipedsim_studies.study.processes import DaskWorkers, Killed
from bipedsim_studies.study.results import Results
from bipedsim_studies.study.trial import KILLED, TIMED_OUT, begin_row, run_trial

EVERY = 30.0
"""Interval at which the table is written while trials run [s]."""
SHARE = 0.05
"""Maximum fraction of the time for writing the table. A table of many trials is written less often."""


def run_with_options(plan: StudyPlan, folder: Path, args: argparse.Namespace) -> Results:
    """Run all trials that are not yet in the folder, as the options of a command say, and report the progress.

    Raises:
        BipedSimError: See :func:`run_study`.
        KeyboardInterrupt: See :func:`run_study`.
    """
    tell = (lambda _text: None) if args.json else print
    try:
        return run_study(plan, folder, parallel(args, plan.time_limit), tell)
    except KeyboardInterrupt:
        print(f"{folder} has all finished trials; the same command continues", file=sys.stderr)
        raise


def run_study(
    plan: StudyPlan,
    folder: Path,
    work: Parallel,
    tell: Callable[[str], None] = lambda _text: None,
) -> Results:
    """Run all trials that are not yet in the folder, and write the table of results.

    Args:
        plan: The trials.
        folder: Folder of the results.
        work: Distribution of the trials.
        tell: Receives messages about the study.

    Raises:
        ConfigError: The folder has results of another study, or the workers are unavailable.
        ChangedError: Code or files have changed since the start.
        LostWorkersError: The cluster was lost.
        RecordingError: The results cannot be written to the disk.
        KeyboardInterrupt: The user pressed Ctrl-C. The table has all finished trials, and the same call continues.
    """
    with Results(folder, plan) as results:
        done = len(results.rows)
        if done or results.again:
            repeated_text = f", {results.again} of them once more after an error" if results.again else ""
            total = len(plan.trials)
            tell(f"{done} of {total} trials are there already, {total - done} to go{repeated_text}")
        try:
            if done < len(plan.trials):
                # Write the table once in advance, so that an incomplete installation fails before the trials.
                results.write_table()
                _work(plan, results, work)
        finally:
            results.write_table()
    return results


def _work(plan: StudyPlan, results: Results, work: Parallel) -> None:
    remaining = [i for i in range(len(plan.trials)) if i not in results.rows]
    jobs = min(work.jobs, len(remaining))
    with DaskWorkers(jobs, work.scheduler, plan.needs, work.limit) as workers:
        bar = ProgressBar(total=len(remaining), unit="trial", disable=not work.progress)
        last_write, pause, failures = time.monotonic(), EVERY, 0
        for i, result in workers.each(run_trial, map(plan.trials.__getitem__, remaining)):
            if isinstance(result, Killed):
                outcome = TIMED_OUT if result.hung else KILLED
                result = begin_row(plan.trials[remaining[i]]) | {"outcome": outcome, "why": result.why}
            results.add(result)
            failures += not result["success"]
            bar.set_postfix_str(f"{failures} failed", refresh=False)
            bar.update()
            now = time.monotonic()
            if now - last_write > pause:
                results.write_table()
                last_write = time.monotonic()
                pause = max(EVERY, (last_write - now) / SHARE)
        bar.close()
