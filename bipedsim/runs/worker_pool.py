"""Processes that work for a command: Ctrl-C is answered by the command alone, and ends them with it."""

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
    """Block SIGINT for the processes and threads that start within the context: they inherit that."""
    # It unblocks SIGINT once it runs, in the thread that needs it first.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class WorkerPool(ProcessPoolExecutor):
    """Spawned processes that never see SIGINT; to be used as a context, which an error ends at once.

    Args:
        jobs: Processes.
        initializer: Called in each of them before its first work.
        initargs: Arguments of the initializer.
    """

    def __init__(
        self, jobs: int, initializer: Callable[..., object] | None = None, initargs: tuple[Any, ...] = ()
    ) -> None:
        # Spawned, because forks of a process with threads may hang.
        context = multiprocessing.get_context("spawn")
        super().__init__(jobs, mp_context=context, initializer=initializer, initargs=initargs)
        self._of_others = set(multiprocessing.active_children())

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Give away a call; the processes start here and inherit that SIGINT is blocked, from their first import on."""
        with without_interrupts():
            return super().submit(fn, *args, **kwargs)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Wait for the work that was given away; after an error, end the processes instead."""
        if error is not None:
            workers = set(multiprocessing.active_children()) - self._of_others
            self.shutdown(wait=False, cancel_futures=True)
            for worker in workers:
                worker.terminate()
        return super().__exit__(kind, error, trace)
