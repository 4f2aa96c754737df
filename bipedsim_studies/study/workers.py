"""Work on many processes, of this machine or of a cluster; what takes one of them down is told."""

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
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from bipedsim.control import ControllerError, controller_traceback, raised_line
from bipedsim.errors import BipedSimError, ConfigError, FailedError, install
from bipedsim.runs import WorkerPool, without_interrupts
from bipedsim_studies.study.limited import LIMIT, Hung, limited, new_token, remove_notes
from bipedsim_studies.study.needs import Needs

if TYPE_CHECKING:
    import distributed

T = TypeVar("T")
TRIES = 4
"""Workers that may die under a piece of work before it counts as what kills them."""
LOOK, ALONE = 1.0, 120.0
"""How often it is looked whether workers are missing [s], and how long a study of this machine goes on without any."""
RETURNS = 15.0
"""A worker that died and is not back after so long [s], on a busy machine, is given up with what would restart it."""
DIED = "workers died of it, one after the other (out of memory, a fault in native code, or --time-limit)"
AHEAD = 4
"""Pieces of work for each worker that are handed out before results come; all others are made later."""


class LostWorkersError(FailedError):
    """The scheduler of a cluster is gone, and with it what was not yet done; or its workers die of their work."""


@dataclass(frozen=True)
class Killed:
    """What stands for a result that no worker lived to give.

    Attributes:
        why: In words.
        hung: Whether it took longer than the limit.
    """

    why: str
    hung: bool = False


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

    def each(self, function: Callable[..., T], work: Iterable[Any]) -> Iterator[tuple[int, T | Killed]]:
        """Call ``function`` on each piece of work; yield its number and the result as they come, in any order.

        Pieces are taken from ``work`` when there is a worker for them.
        """
        ...


@dataclass(frozen=True)
class _Task:
    """How a worker handles a piece of work.

    Attributes:
        function: Is called.
        needs: Code and files that the worker must have.
        limit: Wall time within which the call must end [s].
        token: Names the files in which calls that take longer say where they were.
    """

    function: Callable[[Any], Any]
    needs: Needs
    limit: float
    token: str

    def __call__(self, number: int, piece: Any) -> Any:
        """Return what the function returns, or :class:`Killed` where the call has taken too long before.

        Raises:
            ChangedError: Code or files of this process are other ones.
            ControllerError: A controller raised something; the message says where.
            Exception: What else the function raised.
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
    """Processes of this machine, and nothing to install; what one dies of ends the work of all.

    Args:
        jobs: How many.
        needs: Code and files that they must have.
        limit: Wall time within which a piece of work must end [s].
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
        """As :meth:`Workers.each`.

        Raises:
            LostWorkersError: A process died, or a piece of work took longer than the limit.
        """
        task = _Task(function, self._needs, self._limit, self._token)
        todo = iter(enumerate(work))
        pending: dict[Future[Any], int] = {}
        try:
            while True:
                while len(pending) < AHEAD * self.jobs and (one := next(todo, None)) is not None:
                    pending[self._pool.submit(task, *one)] = one[0]
                if not pending:
                    return
                for job in wait(pending, return_when=FIRST_COMPLETED).done:
                    result = job.result()
                    yield pending.pop(job), result
        except BrokenProcessPool as error:
            said = [str(hung) for number in pending.values() if (hung := Hung.noted(self._token, number))]
            why = "; ".join(said) or "a process was killed (out of memory, or a fault in native code)"
            raise LostWorkersError(f"{why}; the work of all processes ended with it") from error


class DaskWorkers:
    """The same by dask.distributed: of this machine, or of a cluster; one that dies is replaced.

    Args:
        jobs: Processes of this machine.
        scheduler: Address of a dask scheduler, such as ``tcp://10.0.0.1:8786``, whose workers are taken instead.
        needs: Code and files that they must have.
        limit: Wall time within which a piece of work must end [s].

    Raises:
        ConfigError: dask.distributed is missing, nobody answers at the address, or workers there have other code.
        LostWorkersError: Processes could not be started.
    """

    def __init__(self, jobs: int, scheduler: str = "", needs: Needs | None = None, limit: float = LIMIT) -> None:
        try:
            import dask
            import distributed
        except ImportError as error:
            text = f"studies on many processes need dask.distributed: {install('bipedsim[study]')}"
            raise ConfigError(f"{text} ({error})") from error
        for logger in ("distributed", "distributed.client"):
            logging.getLogger(logger).setLevel(logging.CRITICAL)
        settings = {
            # What is lost is said by the study, with its trial; a worker that dies is replaced.
            "distributed.scheduler.allowed-failures": TRIES - 1,
            "distributed.deploy.lost-worker-timeout": f"{RETURNS:g}s",
            "distributed.worker.daemon": True,
            # A worker that dies takes nothing with it but what it works on.
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
                # Ctrl-C is answered by the command alone, which ends them; threads that start here inherit the mask.
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
                text = f"no dask scheduler answers at {scheduler!r} ({error}); start one with `dask scheduler`"
                raise ConfigError(text) from error
            if scheduler:
                text = f"the workers at {scheduler!r} do not have this bipedsim ({type(error).__name__}: {error})"
                raise ConfigError(f"{text}; install it there with its extra study, and start them again") from error
            text = f"the {jobs} processes could not be started ({type(error).__name__}: {error})"
            raise LostWorkersError(
                f"{text}; give the same command again, with fewer --jobs if memory is short"
            ) from error

    def __enter__(self) -> DaskWorkers:
        return self

    def __exit__(self, *_error: object) -> None:
        self._close()

    def _close(self) -> None:
        # A scheduler that is gone cannot be taken leave of: what it held is lost anyway.
        with contextlib.suppress(OSError, TimeoutError):
            self._stack.close()

    def _check_workers(self) -> None:
        """Refuse workers whose results would not be those of this machine."""
        others = self._client.run(self._needs.differences)
        wrong = [f"{address}: {', '.join(differ)}" for address, differ in sorted(others.items()) if differ]
        if wrong:
            raise ConfigError(
                "workers must have the code and files of this machine; these differ:\n  " + "\n  ".join(wrong)
            )
        if not others:
            raise ConfigError(f"the scheduler at {self._of!r} has no workers yet; start some with `dask worker`")
        self.jobs = sum(self._client.nthreads().values())

    def each(self, function: Callable[..., T], work: Iterable[Any]) -> Iterator[tuple[int, T | Killed]]:
        """As :meth:`Workers.each`.

        Work of a worker that dies is done again by another one; what :data:`TRIES` of them died of, or what takes
        longer than the limit, yields :class:`Killed`.

        Raises:
            LostWorkersError: The scheduler is gone, or all workers of this machine and no other one starts.
            ChangedError: A worker has other code or files.
            Exception: What the function raised.
        """
        import distributed

        # Packed and unpacked by the task: what fails while it is sent or received leaves both sides waiting for ever.
        task = _Task(function, self._needs, self._limit, self._token)
        todo = iter(enumerate(work))
        pending: dict[str, int] = {}
        completed = distributed.as_completed(with_results=True, raise_errors=False)
        self._seen = time.monotonic()

        def hand_out() -> None:
            packed: list[tuple[int, bytes]] = []
            ahead = AHEAD * max(self.jobs, 1)
            # Many at once: each call costs scheduler and client as much as ten pieces.
            if len(pending) > ahead // 2:
                return
            while len(pending) + len(packed) < ahead and (one := next(todo, None)) is not None:
                packed.append((one[0], pickle.dumps((task, *one))))
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
            # What the future says of itself changes where the worker that holds the result dies after it was sent.
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
        return (
            f"the scheduler{self._of and f' at {self._of}'} is gone; what is done is kept, and the same command goes on"
        )

    def _wait(self, completed: distributed.as_completed) -> None:
        """Wait for a result for as long as ``LOOK``, and see to it that there are workers that may give one."""
        with completed.thread_condition:
            if not completed.has_ready():
                completed.thread_condition.wait(LOOK)
        try:
            threads = self._client.nthreads()
        except OSError:
            # The scheduler is gone: so say the results that are waited for.
            return
        there = len(threads)
        if self._cluster is None:
            self.jobs = sum(threads.values())
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
    task, number, piece = pickle.loads(packed)
    return pickle.dumps(task(number, piece))


def workers(jobs: int, needs: Needs, scheduler: str = "", limit: float = LIMIT) -> Workers:
    """Return processes of this machine, or those of the dask scheduler at an address.

    Args:
        jobs: Processes of this machine.
        needs: Code and files that they must have.
        scheduler: Address of a dask scheduler.
        limit: Wall time within which a piece of work must end [s].
    """
    return DaskWorkers(jobs, scheduler, needs, limit) if scheduler else Processes(jobs, needs, limit)
