"""Run a study from its plan to its results."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from tqdm import tqdm

from bipedsim_studies.study.config import Plan
from bipedsim_studies.study.limited import LIMIT
from bipedsim_studies.study.results import Results
from bipedsim_studies.study.trial import KILLED, TIMED_OUT, begin_row, run_trial
from bipedsim_studies.study.workers import DaskWorkers, Killed

EVERY = 30.0
"""Interval at which the table is written and progress is reported while trials run [s]."""
SHARE = 0.05
"""Maximum fraction of the time for writing the table. A table of many trials is written less often."""


def run_study(
    plan: Plan,
    folder: Path,
    jobs: int,
    scheduler: str = "",
    restart: bool = False,
    progress: bool = False,
    tell: Callable[[str], None] = lambda _text: None,
    news: Callable[[str], None] = lambda _text: None,
    limit: float = LIMIT,
) -> Results:
    """Run all trials that are not yet in the folder, and write the table of results.

    Args:
        plan: The trials.
        folder: Folder of the results.
        jobs: Number of processes of this machine.
        scheduler: Address of a dask scheduler to use instead; see :class:`DaskWorkers`.
        restart: Run all trials again.
        progress: Show a progress bar on stderr.
        tell: Receives messages about the study.
        news: Receives a message about the progress every 30 s if no bar is shown.
        limit: Maximum wall time of a trial [s].

    Raises:
        ConfigError: The folder has results of another study, or the workers are unavailable.
        ChangedError: Code or files have changed since the start.
        LostWorkersError: The cluster was lost.
        RecordingError: The results cannot be written to the disk.
        KeyboardInterrupt: The user pressed Ctrl-C. The table has all finished trials, and the same call continues.
    """
    with Results(folder, plan, restart) as results:
        done = len(results.rows)
        if done or results.again:
            repeated_text = f", {results.again} of them once more after an error" if results.again else ""
            total = len(plan.trials)
            tell(f"{done} of {total} trials are there already, {total - done} to go{repeated_text}")
        try:
            if done < len(plan.trials):
                # Write the table once in advance, so that an incomplete installation fails before the trials.
                results.write_table()
                _work(plan, results, jobs, scheduler, progress, news, limit)
        finally:
            results.write_table()
    return results


def _work(
    plan: Plan,
    results: Results,
    jobs: int,
    scheduler: str,
    progress: bool,
    news: Callable[[str], None],
    limit: float,
) -> None:
    remaining = [i for i in range(len(plan.trials)) if i not in results.rows]
    with DaskWorkers(min(jobs, len(remaining)), scheduler, plan.needs, limit) as workers:
        bar = tqdm(total=len(remaining), unit="trial", disable=not progress, leave=False)
        last_write, pause, failures = time.monotonic(), EVERY, 0
        for done, (i, result) in enumerate(workers.each(run_trial, map(plan.trials.__getitem__, remaining)), start=1):
            if isinstance(result, Killed):
                outcome = TIMED_OUT if result.hung else KILLED
                result = begin_row(plan.trials[remaining[i]]) | {"outcome": outcome, "why": result.why}
            results.add(result)
            failures += not result["success"]
            bar.set_postfix_str(f"{failures} failed")
            bar.update()
            now = time.monotonic()
            if now - last_write > pause:
                results.write_table()
                if not progress:
                    news(f"{done} of {len(remaining)} trials, {failures} failed")
                last_write = time.monotonic()
                pause = max(EVERY, (last_write - now) / SHARE)
        bar.close()
