"""Reserve a processor core for the loop of a node, with respect to other nodes of this project.

With few cores, the kernel moves threads that wake each other between cores, so their data are in the cache of the other
core. On two cores, a round trip then took half as long again.
"""

from __future__ import annotations

import ctypes
import os
import re
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from bipedsim.errors import ConfigError
from bipedsim_ros.loop.realtime import real_time_priority

AUTO, ANY = "auto", "any"
_MIDDLEWARE = "dds."
"""Prefix of the names of the middleware's threads (Fast DDS)."""


def cores_of(text: str) -> frozenset[int]:
    """Return the cores that a parameter names; none for ``auto`` and ``any``.

    Raises:
        ConfigError: The text names no cores, or a core on which this process may not run.
    """
    if text in (AUTO, ANY):
        return frozenset()
    if not re.fullmatch(r"\d+(\s*,\s*\d+)*", text):
        raise ConfigError(f"must be {AUTO}, {ANY}, or numbers of cores such as '2' or '2,3'", "cpu_affinity", text)
    cores = frozenset(map(int, text.split(",")))
    permitted = _permitted()
    if permitted and not cores <= permitted:
        raise ConfigError(
            f"names {_named(cores - permitted)}; this process may run on {_named(permitted)}", "cpu_affinity", text
        )
    return cores


def wrong_cores(text: str) -> Iterator[ConfigError]:
    """Yield an error message if a parameter does not name valid cores."""
    try:
        cores_of(text)
    except ConfigError as error:
        yield error


class OwnCore:
    """Restricts the calling thread, and the middleware's threads that deliver its messages, to some cores.

    Other threads of the process are not restricted, because a controller may have many.

    Args:
        wanted: ``auto`` for a core that no other node has taken, ``any``, or the numbers of cores.
        claim: Name of the abstract socket that marks core ``{}`` as taken; it disappears with the process.

    Raises:
        ConfigError: See :func:`cores_of`.
    """

    def __init__(self, wanted: str, claim: str = "\0bipedsim-core-{}") -> None:
        self._wanted, self._name = wanted, claim
        self._cores = cores_of(wanted)
        self._permitted = _permitted()
        self._claim: socket.socket | None = None
        self._restricted: set[int] = set()
        self._known: set[int] = set()

    def take(self, deadlines: bool) -> str:
        """Restrict the threads from now on; return the result for the log, or an empty text.

        Args:
            deadlines: Whether the loop has deadlines. In this case ``auto`` needs real-time priority (SCHED_FIFO):
                without it, a thread may wait milliseconds for its core while another core is idle.
        """
        if self._wanted == ANY or len(self._permitted) < 2:
            return ""
        cores = self._cores
        if not cores:
            if deadlines and not real_time_priority():
                return ""
            cores = self._claimed()
            if not cores:
                return "no core of its own: other nodes have taken all"
        loop = threading.get_native_id()
        self._known = _threads()
        for thread in self._known:
            with suppress(ProcessLookupError, FileNotFoundError):
                name = Path(f"/proc/self/task/{thread}/comm").read_text()
                if thread == loop or name.startswith(_MIDDLEWARE):
                    os.sched_setaffinity(thread, cores)
                    self._restricted.add(thread)
        return f"on {_named(cores)} (cpu_affinity = {self._wanted})"

    def let_go_of_others(self) -> str:
        """Release the threads to all cores if new threads share the core since :meth:`take`.

        Returns:
            The action taken, for the log, or an empty text.
        """
        if not self._restricted or self._cores or not (new := _threads() - self._known):
            return ""
        for thread in self._restricted | new:
            with suppress(ProcessLookupError):
                os.sched_setaffinity(thread, self._permitted)
        self._restricted.clear()
        self.release()
        return "threads have begun since the start: the loop has no core of its own any more, so that they find room"

    def release(self) -> None:
        """Release the claim on the core; the threads stay restricted to it."""
        if self._claim is not None:
            self._claim.close()
            self._claim = None

    def _claimed(self) -> frozenset[int]:
        """Claim a free core, preferably the current one, and return it; empty if no core is free."""
        here = ctypes.CDLL(None).sched_getcpu()
        for core in sorted(self._permitted, key=lambda core: (core != here, core)):
            claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                claim.bind(self._name.format(core))
            except OSError:
                claim.close()
            else:
                self._claim = claim
                return frozenset((core,))
        return frozenset()


def _permitted() -> frozenset[int]:
    """Return the cores on which this process may run; empty where the system cannot report them."""
    return frozenset(os.sched_getaffinity(0)) if sys.platform == "linux" else frozenset()


def _threads() -> set[int]:
    return set(map(int, os.listdir("/proc/self/task")))


def _named(cores: frozenset[int]) -> str:
    return f"core{'s' if len(cores) > 1 else ''} {', '.join(map(str, sorted(cores)))}"
