"""Requests of other threads to the loop of sim_node: actions that it runs between two ticks."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from bipedsim.errors import BipedSimError, DivergenceError

_TIMEOUT_S = 10.0


@dataclass
class _Request:
    action: Callable[[], str]
    done: threading.Event = field(default_factory=threading.Event)
    success: bool = False
    message: str = "the simulation did not answer; is the node shutting down?"
    refused: Callable[[str], None] | None = None


class Requests:
    """Queue actions of other threads, which the loop serves one at a time.

    Args:
        wake: Called after a request is queued, to end a wait of the loop.
        log: Called with the message of a failure that the caller does not log.
    """

    def __init__(self, wake: Callable[[], None], log: Callable[[str], None]) -> None:
        self._wake = wake
        self._log = log
        self._queue: deque[_Request] = deque()
        self._closed = False

    # Other threads may call these methods.

    def ask(self, action: Callable[[], str]) -> tuple[bool, str]:
        """Wait until the loop has run ``action``; return whether it succeeded, and its message."""
        request = _Request(action)
        self._queue.append(request)
        if self._closed:
            # A request that is appended after the last check of the loop gets this reply.
            return False, "the simulation has ended"
        self._wake()
        request.done.wait(_TIMEOUT_S)
        return request.success, request.message

    def post(self, action: Callable[[], str], refused: Callable[[str], None]) -> None:
        """Make the loop run ``action``, without waiting; ``refused`` gets the message of a failure."""
        self._queue.append(_Request(action, refused=refused))
        self._wake()

    # The loop calls these methods.

    def serve(self) -> bool:
        """Run the oldest action; return whether there was one."""
        if not self._queue:
            return False
        request = self._queue.popleft()
        try:
            request.message = request.action()
            request.success = True
        except BipedSimError as error:
            request.message = str(error)
            if request.refused is not None:
                request.refused(request.message)
            elif not isinstance(error, DivergenceError):
                self._log(request.message)
        request.done.set()
        return True

    def close(self) -> None:
        """Refuse all requests that remain and that follow."""
        self._closed = True
        while self._queue:
            self._queue.popleft().done.set()
