"""Worker processes of a command: only the command handles Ctrl-C, and it ends the workers."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Block SIGINT for the processes and threads that start within the context, which inherit the signal mask."""
    # The resource tracker unblocks SIGINT in the thread that starts it, so it must run before SIGINT is blocked.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class WorkerPool(ProcessPoolExecutor):
    """Run calls in spawned processes that never receive SIGINT; use the pool as a context.

    An error within the context ends the processes at once.

    Args:
        jobs: Number of processes.
        initializer: Called in each process before its first call.
        initargs: Arguments of the initializer.
    """

    def __init__(
        self, jobs: int, initializer: Callable[..., object] | None = None, initargs: tuple[Any, ...] = ()
    ) -> None:
        # The processes are spawned, because a fork of a process with threads may hang.
        context = multiprocessing.get_context("spawn")
        super().__init__(jobs, mp_context=context, initializer=initializer, initargs=initargs)
        self._of_others = set(multiprocessing.active_children())

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Submit a call; processes start here and inherit the blocked SIGINT, so that it is blocked from the start."""
        with without_interrupts():
            return super().submit(fn, *args, **kwargs)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Wait for the submitted calls; after an error, end the processes instead."""
        if error is not None:
            workers = set(multiprocessing.active_children()) - self._of_others
            self.shutdown(wait=False, cancel_futures=True)
            for worker in workers:
                worker.terminate()
        return super().__exit__(kind, error, trace)
