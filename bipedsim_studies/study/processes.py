"""Distribute work over processes of this machine or of a cluster, and report work that ends its process."""

from __future__ import annotations

import contextlib
import logging
import pickle
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from bipedsim.control import ControllerError, controller_traceback, raised_line
from bipedsim.errors import BipedSimError, ConfigError, FailedError, install
from bipedsim.runs import WorkerPool, without_interrupts
from bipedsim_studies.study.limited import LIMIT, Hung, limited, new_token, remove_notes
from bipedsim_studies.study.needs import Needs
from bipedsim_studies.study.options import Parallel

if TYPE_CHECKING:
    import distributed

T = TypeVar("T")
TRIES = 4
"""Number of workers that may die during a piece of work before the work counts as the cause."""
LOOK, ALONE = 1.0, 120.0
"""Interval of the check for missing workers [s], and time that a local study waits without any worker [s]."""
RETURNS = 15.0
"""Time after which a dead worker that has not restarted is given up, together with the process that restarts it [s]."""
DIED = "several workers died during this work (out of memory, a fault in native code, or time_limit)"
AHEAD = 4
"""Pieces of work per worker that are prepared before results arrive. The others are prepared later."""


class LostWorkersError(FailedError):
    """The scheduler of a cluster is lost together with unfinished work, or workers die during their work."""


@dataclass(frozen=True)
class Killed:
    """Placeholder for the result of work that ended its workers.

    Attributes:
        why: Reason in words.
        hung: Whether the work exceeded the time limit.
    """

    why: str
    hung: bool = False


def alive(result: T | Killed) -> T:
    """Return a worker's result.

    Raises:
        LostWorkersError: The work ended its workers.
    """
    if isinstance(result, Killed):
        raise LostWorkersError(result.why)
    return result


@dataclass(frozen=True)
class _WorkerTask:
    """Execution of a piece of work by a worker.

    Attributes:
        function: Function to call.
        needs: Code and files that the worker must have.
        limit: Maximum wall time of the call [s].
        token: Token of the files in which calls that exceed the limit record their position.
    """

    function: Callable[[Any], Any]
    needs: Needs
    limit: float
    token: str

    def __call__(self, number: int, piece: Any) -> Any:
        """Return the function's result, or :class:`Killed` if the call has exceeded the time limit before.

        Raises:
            ChangedError: This process has other code or files.
            ControllerError: A controller raised an exception. The message contains its location.
            Exception: The function raised another exception.
        """
        self.needs.check()
        try:
            with limited(self.limit, self.token, number):
                return self.function(piece)
        except Hung as error:
            return Killed(str(error), hung=True)
        except BipedSimError:
            raise
        except Exception as error:
            if controller_traceback(error):
                raise ControllerError(raised_line(error)) from None
            raise


class Processes:
    """Processes of this machine, without additional packages. The death of one process ends the work of all.

    Args:
        jobs: Number of processes.
        needs: Code and files that they must have.
        limit: Maximum wall time of a piece of work [s].
    """

    def __init__(self, jobs: int, needs: Needs, limit: float = LIMIT) -> None:
        self.jobs = jobs
        self._needs, self._limit, self._token = needs, limit, new_token()
        self._pool = WorkerPool(jobs)

    def __enter__(self) -> Processes:
        self._pool.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        try:
            return self._pool.__exit__(kind, error, trace)
        finally:
            remove_notes(self._token)

    def each(self, function: Callable[..., T], work: Iterable[Any]) -> Iterator[tuple[int, T | Killed]]:
        """Call ``function`` for each piece of work. Yield its index and result on arrival, in any order.

        An item is read from ``work`` only when a worker needs it.

        Raises:
            LostWorkersError: A process died, or a piece of work exceeded the time limit.
        """
        task = _WorkerTask(function, self._needs, self._limit, self._token)
        remaining = iter(enumerate(work))
        pending: dict[Future[Any], int] = {}
        try:
            while True:
                while len(pending) < AHEAD * self.jobs and (item := next(remaining, None)) is not None:
                    pending[self._pool.submit(task, *item)] = item[0]
                if not pending:
                    return
                for job in wait(pending, return_when=FIRST_COMPLETED).done:
                    result = job.result()
                    yield pending.pop(job), result
        except BrokenProcessPool as error:
            hung_messages = [str(hung) for number in pending.values() if (hung := Hung.previous(self._token, number))]
            why = "; ".join(hung_messages) or "a process was killed (out of memory, or a fault in native code)"
            raise LostWorkersError(f"{why}; the work of all processes ended with it") from error


class DaskWorkers:
    """Processes of this machine or of a cluster, managed by dask.distributed, which replaces dead workers.

    Args:
        jobs: Number of processes of this machine.
        scheduler: Address of a dask scheduler, such as ``tcp://10.0.0.1:8786``, whose workers are used instead.
        needs: Code and files that they must have.
        limit: Maximum wall time of a piece of work [s].

    Raises:
        ConfigError: dask.distributed is missing, no scheduler answers at the address, or its workers have other code.
        LostWorkersError: The processes could not be started.
    """

    def __init__(self, jobs: int, scheduler: str = "", needs: Needs | None = None, limit: float = LIMIT) -> None:
        try:
            import dask
            import distributed
        except ImportError as error:
            message = f"studies on many processes need dask.distributed: {install('bipedsim[study]')}"
            raise ConfigError(f"{message} ({error})") from error
        for logger in ("distributed", "distributed.client"):
            logging.getLogger(logger).setLevel(logging.CRITICAL)
        settings = {
            # The study itself reports lost work with its trial. Dead workers are replaced.
            "distributed.scheduler.allowed-failures": TRIES - 1,
            "distributed.deploy.lost-worker-timeout": f"{RETURNS:g}s",
            "distributed.worker.daemon": True,
            # Workers receive only the work that they can run, so that a dead worker loses no queued work.
            "distributed.scheduler.worker-saturation": 1.0,
            "distributed.admin.log-format": "%(message)s",
        }
        self.jobs = jobs
        self._of = scheduler
        self._needs = Needs.of(()) if needs is None else needs
        self._limit, self._token = limit, new_token()
        self._cluster: distributed.LocalCluster | None = None
        self._seen = time.monotonic()
        self._stack = contextlib.ExitStack()
        self._stack.callback(remove_notes, self._token)
        self._stack.enter_context(dask.config.set(settings))
        try:
            if scheduler:
                self._client = self._stack.enter_context(distributed.Client(scheduler, timeout="10s", name="bipedsim"))
                self._check_workers()
            else:
                # Only the command handles Ctrl-C, and ends the processes. Threads started here inherit the signal mask.
                with without_interrupts():
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
        except BaseException as error:
            self._close()
            if isinstance(error, BipedSimError) or not isinstance(error, Exception):
                raise
            if scheduler and isinstance(error, OSError):
                message = f"no dask scheduler answers there ({error}); start one with `dask scheduler`"
                raise ConfigError(message, scheduler) from error
            if scheduler:
                message = f"the workers at {scheduler!r} do not have this bipedsim ({type(error).__name__}: {error})"
                raise ConfigError(f"{message}; install it there with its extra study, and start them again") from error
            message = f"{jobs} processes could not be started ({type(error).__name__}: {error})"
            raise LostWorkersError(f"{message}; repeat the command, with fewer --jobs if memory is short") from error

    def __enter__(self) -> DaskWorkers:
        return self

    def __exit__(self, *_error: object) -> None:
        self._close()

    def _close(self) -> None:
        # A lost scheduler cannot be closed properly, and its data are lost anyway.
        with contextlib.suppress(OSError, TimeoutError):
            self._stack.close()

    def _check_workers(self) -> None:
        """Raise a ConfigError if the code or files of a worker differ from those of this machine."""
        differences = self._client.run(self._needs.differences)
        mismatches = [f"{address}: {', '.join(names)}" for address, names in sorted(differences.items()) if names]
        if mismatches:
            raise ConfigError(
                "workers must have the code and files of this machine; these differ:\n  " + "\n  ".join(mismatches)
            )
        if not differences:
            raise ConfigError(f"the scheduler at {self._of!r} has no workers yet; start some with `dask worker`")
        self.jobs = sum(self._client.nthreads().values())

    def each(self, function: Callable[..., T], work: Iterable[Any]) -> Iterator[tuple[int, T | Killed]]:
        """Distribute the work as :meth:`Processes.each` does.

        The work of a dead worker is repeated by another one. Work that ends :data:`TRIES` workers, or that exceeds the
        time limit, yields :class:`Killed`.

        Raises:
            LostWorkersError: The scheduler is lost, or all workers of this machine are lost and none restarts.
            ChangedError: A worker has other code or files.
            Exception: The function raised an exception.
        """
        import distributed

        # The task itself pickles and unpickles the work. Errors during transfer by dask would block both sides forever.
        task = _WorkerTask(function, self._needs, self._limit, self._token)
        remaining = iter(enumerate(work))
        pending: dict[str, int] = {}
        completed = distributed.as_completed(with_results=True, raise_errors=False)
        self._seen = time.monotonic()

        def hand_out() -> None:
            packed: list[tuple[int, bytes]] = []
            max_pending = AHEAD * max(self.jobs, 1)
            # Submit many pieces at once, because one call costs scheduler and client as much as ten pieces.
            if len(pending) > max_pending // 2:
                return
            while len(pending) + len(packed) < max_pending and (item := next(remaining, None)) is not None:
                packed.append((item[0], pickle.dumps((task, *item))))
            futures = self._client.map(_unpack_and_call, [piece for _, piece in packed], pure=False) if packed else []
            for (number, _), future in zip(packed, futures, strict=True):
                pending[future.key] = number
            completed.update(futures)

        hand_out()
        while pending:
            if not completed.has_ready():
                self._wait(completed)
                continue
            future, result = next(completed)
            number = pending.pop(future.key)
            # The result is used, not the future's status, which changes if the worker dies after sending the result.
            if isinstance(result, bytes):
                yield number, pickle.loads(result)
            elif isinstance(result, tuple):
                if not isinstance(result[1], distributed.scheduler.KilledWorker):
                    raise result[1]
                yield number, Killed(DIED)
            else:
                raise LostWorkersError(self._gone)
            future.release()
            hand_out()

    @property
    def _gone(self) -> str:
        return f"the scheduler{self._of and f' at {self._of}'} is lost. Finished results are kept; repeat the command"

    def _wait(self, completed: distributed.as_completed) -> None:
        """Wait up to ``LOOK`` for a result, and check that workers exist."""
        with completed.thread_condition:
            if not completed.has_ready():
                completed.thread_condition.wait(LOOK)
        try:
            threads = self._client.nthreads()
        except OSError:
            # The scheduler is lost. The pending results report this.
            return
        worker_count = len(threads)
        if self._cluster is None:
            self.jobs = sum(threads.values())
        current_time = time.monotonic()
        if worker_count:
            self._seen = current_time
        elif current_time - self._seen > ALONE:
            if self._cluster is not None:
                raise LostWorkersError(
                    f"all workers are lost, and none has started for {ALONE:g} s (out of memory?). Finished results "
                    "are kept; repeat the command"
                )
            print(f"no worker is left at {self._of}: waiting for some", file=sys.stderr)
            self._seen = current_time
        if self._cluster is not None and worker_count < self.jobs:
            self._cluster.scale(self.jobs)


def _unpack_and_call(packed: bytes) -> bytes:
    task, number, piece = pickle.loads(packed)
    return pickle.dumps(task(number, piece))


def workers(work: Parallel, needs: Needs) -> Processes | DaskWorkers:
    """Return processes of this machine, or those of a dask scheduler. They must have the code and files ``needs``."""
    if work.scheduler:
        return DaskWorkers(work.jobs, work.scheduler, needs, work.limit)
    return Processes(work.jobs, needs, work.limit)
