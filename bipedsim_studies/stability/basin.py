"""From which starts a gait is reached: random starts, followed in as many processes as there are cores."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from dataclasses import dataclass

import numpy as np
from tqdm import tqdm

from bipedsim.errors import ConfigError
from bipedsim.numerics import Array, Integers
from bipedsim.runs import WorkerPool
from bipedsim_studies.stability.maps import NoReturnError, PoincareMap

STRIDES = 40
"""After so many a walk that neither fell nor settled is undecided."""
NEAR = 0.05
"""A start has come home when it is nearer than this share of the box in every coordinate."""
LOST, UNDECIDED, HOME = 0, 1, 2

_map: PoincareMap | None = None


@dataclass(frozen=True, eq=False)
class Basin:
    """What became of the starts.

    Attributes:
        centre: (n,) the fixed point. widths: (n,) half of the box.
        starts: (N, n) where they were.
        outcome: (N,) ``LOST``, ``UNDECIDED`` or ``HOME``.
        strides: (N,) how many each took until that was known.
        seconds: From the first start to the last, without the start of processes. work: CPU time of all starts [s].
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

    Raises:
        ConfigError: The box or the count is empty.
    """
    centre, widths = np.asarray(centre, dtype=np.float64), np.asarray(widths, dtype=np.float64)
    if widths.shape != centre.shape or not (np.isfinite(widths) & (widths > 0.0)).all():
        raise ConfigError(f"widths = {widths.tolist()} must be {len(centre)} positive numbers, one per coordinate")
    if count < 1 or jobs < 1:
        raise ConfigError(f"count = {count} and jobs = {jobs} must be at least 1")
    starts = centre + widths * np.random.default_rng(seed).uniform(-1.0, 1.0, (count, len(centre)))
    outcome, taken = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    first, last, work = math.inf, -math.inf, 0.0
    with _pool(make, jobs) as pool:
        pending = {pool.submit(_one, start, centre, widths, strides): i for i, start in enumerate(starts)}
        for job in tqdm(as_completed(pending), total=count, unit="start", disable=not progress, leave=False):
            i = pending[job]
            outcome[i], taken[i], began, ended, seconds = job.result()
            first, last, work = min(first, began), max(last, ended), work + seconds
    return Basin(centre, widths, starts, outcome, taken, last - first, work, jobs)


def _pool(make: Callable[[], PoincareMap], jobs: int) -> Executor:
    """Return what runs the starts: processes, or for one job this one."""
    if jobs == 1:
        # A thread that runs alone computes what a process would, and needs not be started.
        return ThreadPoolExecutor(1, initializer=_prepare, initargs=(make,))
    return WorkerPool(jobs, initializer=_prepare, initargs=(make,))


def _prepare(make: Callable[[], PoincareMap]) -> None:
    global _map
    _map = make()


def _one(start: Array, centre: Array, widths: Array, strides: int) -> tuple[int, int, float, float, float]:
    """Follow a start in this process; return the answer, when that began and ended [s], and its CPU time [s]."""
    assert _map is not None
    # The monotonic clock is one for all processes of a machine.
    began, used = time.monotonic(), time.process_time()
    outcome, taken = followed(_map, start, centre, widths, strides)
    return outcome, taken, began, time.monotonic(), time.process_time() - used
