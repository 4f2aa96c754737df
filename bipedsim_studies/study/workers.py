"""Work on many processes, of this machine or of a cluster; what takes one of them down is told."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import pickle
import platform
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import bipedsim
from bipedsim.errors import BipedSimError, ConfigError, install
from bipedsim.runs import WorkerPool

if TYPE_CHECKING:
    import distributed

T = TypeVar("T")
TRIES = 4
"""Workers that may die under a piece of work before it counts as what kills them."""
LOOK, ALONE = 1.0, 120.0
"""How often it is looked whether workers are missing [s], and how long a study of this machine goes on without any."""
RETURNS = 15.0
"""A worker that died and is not back after so long [s], on a busy machine, is given up with what would restart it."""
DIED = "workers died of it, one after the other (out of memory, or a fault in native code)"


class LostWorkersError(BipedSimError):
    """The scheduler of a cluster is gone, and with it what was not yet done; or its workers die of their work."""


@dataclass(frozen=True)
class Killed:
    """What stands for a result that no worker lived to give."""

    why: str


def alive(result: T | Killed) -> T:
    """Return a result that a worker lived to give.

    Raises:
        LostWorkersError: None did.
    """
    if isinstance(result, Killed):
        raise LostWorkersError(result.why)
    return result


class Workers(Protocol):
    """Processes that take pieces of work; to be used as a context.

    Attributes:
        jobs: How many.
    """

    jobs: int

    def __enter__(self) -> Workers: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None: ...

    def each(self, function: Callable[..., T], work: Sequence[Any]) -> Iterator[tuple[int, T | Killed]]:
        """Call ``function`` on each piece of work; yield its number and the result as they come, in any order."""
        ...


class Processes:
    """Processes of this machine, and nothing to install; what one dies of ends the work of all.

    Args:
        jobs: How many.
    """

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._pool = WorkerPool(jobs)

    def __enter__(self) -> Processes:
        self._pool.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return self._pool.__exit__(kind, error, trace)

    def each(self, function: Callable[..., T], work: Sequence[Any]) -> Iterator[tuple[int, T | Killed]]:
        """As :meth:`Workers.each`."""
        pending = {self._pool.submit(function, piece): i for i, piece in enumerate(work)}
        for job in as_completed(pending):
            yield pending[job], job.result()


class DaskWorkers:
    """The same by dask.distributed: of this machine, or of a cluster; one that dies is replaced.

    Args:
        jobs: Processes of this machine.
        scheduler: Address of a dask scheduler, such as ``tcp://10.0.0.1:8786``, whose workers are taken instead.

    Raises:
        ConfigError: dask.distributed is missing, nobody answers at the address, or workers there have another version.
    """

    def __init__(self, jobs: int, scheduler: str = "") -> None:
        try:
            import dask
            import distributed
        except ImportError as error:
            text = f"studies on many processes need dask.distributed: {install('bipedsim[study]')}"
            raise ConfigError(f"{text} ({error})") from error
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        settings = {
            # What is lost is said by the study, with its trial; a worker that dies is replaced.
            "distributed.scheduler.allowed-failures": TRIES - 1,
            "distributed.deploy.lost-worker-timeout": f"{RETURNS:g}s",
            "distributed.worker.daemon": True,
            "distributed.admin.log-format": "%(message)s",
        }
        self.jobs = jobs
        self._of = scheduler
        self._cluster: distributed.LocalCluster | None = None
        self._seen = time.monotonic()
        self._stack = contextlib.ExitStack()
        self._stack.enter_context(dask.config.set(settings))
        try:
            if scheduler:
                self._client = self._stack.enter_context(distributed.Client(scheduler, timeout="10s", name="bipedsim"))
                self._check_versions()
            else:
                # Ctrl-C is answered by the command alone, which ends them; threads that start here inherit the mask.
                before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
                try:
                    cluster = distributed.LocalCluster(
                        n_workers=jobs,
                        threads_per_worker=1,
                        processes=True,
                        dashboard_address="127.0.0.1:0",
                        host="127.0.0.1",
                        silence_logs=logging.CRITICAL,
                        memory_limit=0,
                    )
                    self._cluster = self._stack.enter_context(cluster)
                    self._client = self._stack.enter_context(distributed.Client(cluster))
                finally:
                    signal.pthread_sigmask(signal.SIG_SETMASK, before)
        except BaseException as error:
            self._stack.close()
            if isinstance(error, OSError):
                text = f"no dask scheduler answers at {scheduler!r} ({error}); start one with `dask scheduler`"
                raise ConfigError(text) from error
            raise

    def __enter__(self) -> DaskWorkers:
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    def _check_versions(self) -> None:
        """Refuse workers whose results would not be those of this machine."""
        mine = _version()
        others = self._client.run(_version)
        wrong = sorted(f"{address}: {version}" for address, version in others.items() if version != mine)
        if wrong:
            raise ConfigError(f"workers must have what is here, {mine}; these have not:\n  " + "\n  ".join(wrong))
        if not others:
            raise ConfigError(f"the scheduler at {self._of!r} has no workers yet; start some with `dask worker`")
        self.jobs = sum(self._client.nthreads().values())

    def each(self, function: Callable[..., T], work: Sequence[Any]) -> Iterator[tuple[int, T | Killed]]:
        """As :meth:`Workers.each`.

        Work of a worker that dies is done again by another one; what :data:`TRIES` of them died of yields
        :class:`Killed`.

        Raises:
            LostWorkersError: The scheduler is gone, or all workers of this machine and no other one starts.
            Exception: What the function raised.
        """
        import distributed

        # Packed and unpacked by the task: what fails while it is sent or received leaves both sides waiting for ever.
        futures = self._client.map(_unpack_and_call, [pickle.dumps((function, piece)) for piece in work], pure=False)
        number = {future.key: i for i, future in enumerate(futures)}
        completed = distributed.as_completed(futures, with_results=True, raise_errors=False)
        self._seen = time.monotonic()
        while not completed.is_empty():
            if not completed.has_ready():
                self._wait(completed)
                continue
            future, result = next(completed)
            # What the future says of itself changes where the worker that holds the result dies after it was sent.
            if isinstance(result, bytes):
                yield number[future.key], pickle.loads(result)
            elif isinstance(result, tuple):
                if not isinstance(result[1], distributed.scheduler.KilledWorker):
                    raise result[1]
                yield number[future.key], Killed(DIED)
            else:
                raise LostWorkersError("the scheduler is gone; what is done is kept")
            future.release()

    def _wait(self, completed: distributed.as_completed) -> None:
        """Wait for a result for as long as ``LOOK``, and see to it that there are workers that may give one."""
        with completed.thread_condition:
            if not completed.has_ready():
                completed.thread_condition.wait(LOOK)
        try:
            there = len(self._client.nthreads())
        except OSError:
            # The scheduler is gone: so say the results that are waited for.
            return
        now = time.monotonic()
        if there:
            self._seen = now
        elif now - self._seen > ALONE:
            if self._cluster is not None:
                raise LostWorkersError(
                    f"all workers are gone, and no other one has started for {ALONE:g} s (out of memory?); what is "
                    "done is kept, and the same command goes on from there"
                )
            print(f"no worker is left at {self._of}: waiting for some", file=sys.stderr)
            self._seen = now
        if self._cluster is not None and there < self.jobs:
            self._cluster.scale(self.jobs)


def _unpack_and_call(packed: bytes) -> bytes:
    function, piece = pickle.loads(packed)
    return pickle.dumps(function(piece))


def _version() -> str:
    import numba
    import numpy
    import pinocchio

    versions = (("bipedsim", bipedsim.__version__), ("numpy", numpy.__version__), ("numba", numba.__version__))
    listed = ", ".join(f"{name} {version}" for name, version in (*versions, ("pinocchio", pinocchio.__version__)))
    return f"{listed}, Python {platform.python_version()} on {platform.machine()}"


def workers(jobs: int, scheduler: str = "") -> Workers:
    """Return processes of this machine, or those of the dask scheduler at an address."""
    return DaskWorkers(jobs, scheduler) if scheduler else Processes(jobs)


def add_options(parser: argparse.ArgumentParser, jobs: int | None = None, why: str = "") -> None:
    """Declare the options that say who does the work: ``jobs`` and ``scheduler``.

    Args:
        parser: Takes them.
        jobs: Processes by default; one for each core without it.
        why: Said of that default.
    """
    said = f"{jobs or 'one for each core'}{why and f', {why}'}"
    parser.add_argument(
        "--jobs", type=int, default=jobs, metavar="N", help=f"processes of this machine (default: {said})"
    )
    parser.add_argument(
        "--scheduler",
        default="",
        metavar="ADDRESS",
        help="of a dask scheduler, such as tcp://10.0.0.1:8786, whose workers do it instead (docs/study.md)",
    )


def asked_jobs(args: argparse.Namespace) -> int:
    """Return how many processes the options ask for.

    Raises:
        ConfigError: None at all.
    """
    if args.jobs is not None and args.jobs < 1:
        raise ConfigError(f"--jobs {args.jobs} must be at least 1")
    return args.jobs or cores()


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))
