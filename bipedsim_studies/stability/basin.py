"""Estimate the basin of attraction of a gait from random starts, in several processes if wanted."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from bipedsim.config import ProgressBar, checked_seed
from bipedsim.errors import ConfigError
from bipedsim.numerics import Array, Integers
from bipedsim_studies.stability.gait import WalkerGait
from bipedsim_studies.stability.maps import NoReturnError, PoincareMap
from bipedsim_studies.study import ONE_PROCESS, Needs, Parallel, alive, workers

STRIDES = 40
"""A walk that has neither fallen nor converged after this number of strides is undecided."""
NEAR = 0.05
"""A start has converged when every coordinate is within this fraction of the box's half width."""
LOST, UNDECIDED, HOME = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Basin:
    """Outcomes of all starts.

    Attributes:
        centre: (n,) fixed point. widths: (n,) half widths of the box.
        starts: (N, n) coordinates of the starts.
        outcome: (N,) ``LOST``, ``UNDECIDED`` or ``HOME``.
        strides: (N,) strides until the outcome was known.
        seconds: Total wall time, including the start of the processes. work: CPU time of all starts [s].
        jobs: Number of processes.
    """

    centre: Array
    widths: Array
    starts: Array
    outcome: Integers
    strides: Integers
    seconds: float
    work: float
    jobs: int

    @property
    def share(self) -> float:
        """Fraction of the starts that converged to the gait."""
        return float((self.outcome == HOME).mean())

    @property
    def ratio(self) -> float:
        """Speed-up compared with one process on a core of its own."""
        return self.work / self.seconds


def followed(map: PoincareMap, start: Array, centre: Array, widths: Array, strides: int = STRIDES) -> tuple[int, int]:
    """Return the outcome of a start (n,) and the number of strides until it was known."""
    xi = start
    for count in range(strides):
        if (np.abs(xi - centre) <= NEAR * widths).all():
            return HOME, count
        try:
            xi = map(xi).xi
        except NoReturnError:
            return LOST, count
    return UNDECIDED, strides


def probe(
    make: Callable[[], PoincareMap],
    centre: Array,
    widths: Array,
    count: int,
    seed: int = 0,
    parallel: Parallel = ONE_PROCESS,
    strides: int = STRIDES,
) -> Basin:
    """Follow ``count`` starts, drawn uniformly from a box around a fixed point.

    All starts are drawn first, and each is then followed independently. The result therefore depends only on the seed,
    not on the number of processes.

    Args:
        make: Makes the map in every process. It must be picklable, such as the bound method ``Gait.map``.
        centre: (n,) the fixed point.
        widths: (n,) half widths of the box, positive.
        count: Number of starts.
        seed: Seed of the starts.
        parallel: Distribution of the starts.
        strides: Maximum number of strides per start.

    Raises:
        ConfigError: The box or the count is empty, or the seed is not an integer of at least 0.
        LostWorkersError: Workers of the scheduler died during the computation, or the scheduler is unreachable.
    """
    centre, widths = np.asarray(centre, dtype=np.float64), np.asarray(widths, dtype=np.float64)
    if widths.shape != centre.shape or not (np.isfinite(widths) & (widths > 0.0)).all():
        raise ConfigError(f"must be {len(centre)} positive numbers, one per coordinate", "widths", widths.tolist())
    if count < 1:
        raise ConfigError("must be at least 1", "count", count)
    starts = centre + widths * np.random.default_rng(checked_seed(seed)).uniform(-1.0, 1.0, (count, len(centre)))
    outcome, taken = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    work = 0.0
    follow = partial(_follow_timed, pickle.dumps(make), centre=centre, widths=widths, strides=strides)

    began = time.monotonic()
    with ExitStack() as stack:
        jobs = parallel.jobs
        if parallel.in_this_process:
            # A single job runs in this process, which gives the same result without the start of another process.
            answers: Iterable[tuple[int, tuple[int, int, float]]] = (
                (i, follow(start)) for i, start in enumerate(starts)
            )
        else:
            bound_to = getattr(make, "__self__", None)
            needs = Needs.of(vars(bound_to).items() if isinstance(bound_to, WalkerGait) else ())
            pool = workers(parallel, needs)
            stack.enter_context(pool)
            jobs = pool.jobs
            answers = ((i, alive(answer)) for i, answer in pool.each(follow, list(starts)))
        for i, answer in ProgressBar(answers, total=count, unit="start", disable=not parallel.progress):
            outcome[i], taken[i], seconds = answer
            work += seconds
    return Basin(centre, widths, starts, outcome, taken, time.monotonic() - began, work, jobs)


@cache
def _map(make: bytes) -> PoincareMap:
    """Return the map of a pickled maker; each process makes it only once."""
    made: PoincareMap = pickle.loads(make)()
    return made


def _follow_timed(make: bytes, start: Array, *, centre: Array, widths: Array, strides: int) -> tuple[int, int, float]:
    """Follow a start in this process. Also return its CPU time [s], without the time for making the map."""
    map = _map(make)
    used = time.process_time()
    outcome, count = followed(map, start, centre, widths, strides)
    return outcome, count, time.process_time() - used
