"""A study from its plan to its results."""

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
"""The table is written, and news are told, so often [s] while trials go on."""
SHARE = 0.05
"""Of the time that writing the table may take; that of many trials is written less often."""


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
    """Run all trials that the folder does not hold yet, and write its table.

    Args:
        plan: The trials.
        folder: Where results are and go to.
        jobs: Processes of this machine.
        scheduler: Address of a dask scheduler to be used instead; see :class:`DaskWorkers`.
        restart: Run all of them again.
        progress: Show a bar on stderr.
        tell: Takes lines about what goes on.
        news: Takes a line about how far it is, every 30 s, where no bar is shown.
        limit: Wall time within which a trial must end [s].

    Raises:
        ConfigError: The folder is of something else, or the workers cannot be had.
        ChangedError: Code or files have changed since the start.
        LostWorkersError: The cluster went away.
        RecordingError: The disk does not take the results.
        KeyboardInterrupt: Ctrl-C; the table holds what was done, and the same call goes on.
    """
    with Results(folder, plan, restart) as results:
        done = len(results.rows)
        if done or results.again:
            again = f", {results.again} of them once more after an error" if results.again else ""
            total = len(plan.trials)
            tell(f"{done} of {total} trials are there already, {total - done} to go{again}")
        try:
            if done < len(plan.trials):
                # A wrong installation is told before an hour of work.
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
    left = [i for i in range(len(plan.trials)) if i not in results.rows]
    with DaskWorkers(min(jobs, len(left)), scheduler, plan.needs, limit) as workers:
        bar = tqdm(total=len(left), unit="trial", disable=not progress, leave=False)
        written, pause, failures = time.monotonic(), EVERY, 0
        for done, (i, result) in enumerate(workers.each(run_trial, map(plan.trials.__getitem__, left)), start=1):
            if isinstance(result, Killed):
                outcome = TIMED_OUT if result.hung else KILLED
                result = begin_row(plan.trials[left[i]]) | {"outcome": outcome, "why": result.why}
            results.add(result)
            failures += not result["success"]
            bar.set_postfix_str(f"{failures} failed")
            bar.update()
            now = time.monotonic()
            if now - written > pause:
                results.write_table()
                if not progress:
                    news(f"{done} of {len(left)} trials, {failures} failed")
                written = time.monotonic()
                pause = max(EVERY, (written - now) / SHARE)
        bar.close()
