"""From which starts a gait is reached: random starts, followed in as many processes as one likes."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from tqdm import tqdm

from bipedsim.config import checked_seed
from bipedsim.errors import ConfigError
from bipedsim.numerics import Array, Integers
from bipedsim_studies.stability.gait import Gait
from bipedsim_studies.stability.maps import NoReturnError, PoincareMap
from bipedsim_studies.study import LIMIT, Needs, alive, workers

STRIDES = 40
"""After so many a walk that neither fell nor settled is undecided."""
NEAR = 0.05
"""A start has come home when it is nearer than this share of the box in every coordinate."""
LOST, UNDECIDED, HOME = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Basin:
    """What became of the starts.

    Attributes:
        centre: (n,) the fixed point. widths: (n,) half of the box.
        starts: (N, n) where they were.
        outcome: (N,) ``LOST``, ``UNDECIDED`` or ``HOME``.
        strides: (N,) how many each took until that was known.
        seconds: All of it took, the start of processes included. work: CPU time of all starts [s].
        jobs: Processes.
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
        """Share of the starts that came home."""
        return float((self.outcome == HOME).mean())

    @property
    def ratio(self) -> float:
        """How much faster it was than one process that has a core for itself."""
        return self.work / self.seconds


def followed(map: PoincareMap, start: Array, centre: Array, widths: Array, strides: int = STRIDES) -> tuple[int, int]:
    """Return what becomes of a start (n,), and after how many strides."""
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
    jobs: int = 1,
    strides: int = STRIDES,
    progress: bool = False,
    scheduler: str = "",
    limit: float = LIMIT,
) -> Basin:
    """Follow ``count`` starts, drawn evenly from a box around a fixed point.

    The starts are drawn before they are given away, and each is followed by itself: the answer depends on the seed and
    on nothing else.

    Args:
        make: Makes the map, in every process; to be pickled, so a method of a module's class, such as ``Gait.map``.
        centre: (n,) the fixed point.
        widths: (n,) half of the box, positive.
        count: Of the starts.
        seed: Of the starts.
        jobs: Processes.
        strides: After so many it is given up.
        progress: Show a bar on stderr.
        scheduler: Address of a dask scheduler whose workers do it instead.
        limit: Wall time within which each start must be followed, where processes do it [s].

    Raises:
        ConfigError: The box or the count is empty, or the seed is no integer of at least 0.
        LostWorkersError: Workers of the scheduler died of it, or it is gone.
    """
    centre, widths = np.asarray(centre, dtype=np.float64), np.asarray(widths, dtype=np.float64)
    if widths.shape != centre.shape or not (np.isfinite(widths) & (widths > 0.0)).all():
        raise ConfigError(f"widths = {widths.tolist()} must be {len(centre)} positive numbers, one per coordinate")
    if count < 1 or jobs < 1:
        raise ConfigError(f"count = {count} and jobs = {jobs} must be at least 1")
    starts = centre + widths * np.random.default_rng(checked_seed(seed)).uniform(-1.0, 1.0, (count, len(centre)))
    outcome, taken = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    work = 0.0
    follow = partial(_one, pickle.dumps(make), centre=centre, widths=widths, strides=strides)

    began = time.monotonic()
    with ExitStack() as stack:
        if jobs == 1 and not scheduler:
            # What a process would compute, and none needs to be started.
            answers: Iterable[tuple[int, tuple[int, int, float]]] = ((i, follow(one)) for i, one in enumerate(starts))
        else:
            of = getattr(make, "__self__", None)
            needs = Needs.of(vars(of).items() if isinstance(of, Gait) else ())
            pool = stack.enter_context(workers(jobs, needs, scheduler, limit))
            jobs = pool.jobs
            answers = ((i, alive(answer)) for i, answer in pool.each(follow, list(starts)))
        for i, answer in tqdm(answers, total=count, unit="start", disable=not progress, leave=False):
            outcome[i], taken[i], seconds = answer
            work += seconds
    return Basin(centre, widths, starts, outcome, taken, time.monotonic() - began, work, jobs)


@cache
def _map(make: bytes) -> PoincareMap:
    """Return what a pickled maker makes, once in a process."""
    made: PoincareMap = pickle.loads(make)()
    return made


def _one(make: bytes, start: Array, *, centre: Array, widths: Array, strides: int) -> tuple[int, int, float]:
    """Follow a start in this process; return the answer, and its CPU time [s] without that of making the map."""
    map = _map(make)
    used = time.process_time()
    outcome, count = followed(map, start, centre, widths, strides)
    return outcome, count, time.process_time() - used
