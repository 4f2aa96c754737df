"""A study from its plan to its results."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tqdm import tqdm

from bipedsim_studies.study.config import Plan, Trial
from bipedsim_studies.study.results import Results
from bipedsim_studies.study.trial import KILLED, begin_row, run_trial
from bipedsim_studies.study.workers import DaskWorkers, Killed

EVERY = 30.0
"""The table is written, and news are told, so often [s] while trials go on."""


def run_study(
    plan: Plan,
    folder: Path,
    jobs: int,
    scheduler: str = "",
    restart: bool = False,
    progress: bool = False,
    tell: Callable[[str], None] = lambda _text: None,
    news: Callable[[str], None] = lambda _text: None,
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

    Raises:
        ConfigError: The folder is of something else, or the workers cannot be had.
        LostWorkersError: The cluster went away.
        KeyboardInterrupt: Ctrl-C; the table holds what was done, and the same call goes on.
    """
    with Results(folder, plan, restart) as results:
        left = [trial for trial in plan.trials if trial.index not in results.rows]
        if len(left) < len(plan.trials):
            tell(f"{len(plan.trials) - len(left)} of {len(plan.trials)} trials are there already, {len(left)} to go")
        try:
            if left:
                # A wrong installation is told before an hour of work.
                results.write_table()
                _work(left, results, jobs, scheduler, progress, news)
        finally:
            results.write_table()
    return results


def _work(
    left: Sequence[Trial],
    results: Results,
    jobs: int,
    scheduler: str,
    progress: bool,
    news: Callable[[str], None],
) -> None:
    with DaskWorkers(min(jobs, len(left)), scheduler) as workers:
        bar = tqdm(total=len(left), unit="trial", disable=not progress, leave=False)
        written, failures = time.monotonic(), 0
        for done, (i, result) in enumerate(workers.each(run_trial, left), start=1):
            if isinstance(result, Killed):
                result = begin_row(left[i]) | {"outcome": KILLED, "why": result.why}
            results.add(result)
            failures += not result["success"]
            bar.set_postfix_str(f"{failures} failed")
            bar.update()
            if time.monotonic() - written > EVERY:
                results.write_table()
                if not progress:
                    news(f"{done} of {len(left)} trials, {failures} failed")
                written = time.monotonic()
        bar.close()
