"""A core that the loop of a node has for itself, as far as other nodes of this kind are concerned.

Where cores are few the kernel moves threads that wake each other from one to the other, and what they need is in the
cache of the other core: on two cores, a round trip took half as long again.
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

AUTO, ANY = "auto", "any"
_MIDDLEWARE = "dds."
"""How the names of the middleware's threads begin (Fast DDS)."""


def cores_of(text: str) -> frozenset[int]:
    """Return the cores that a parameter names; none for ``auto`` and ``any``.

    Raises:
        ConfigError: It names none, or one that this process may not run on.
    """
    if text in (AUTO, ANY):
        return frozenset()
    if not re.fullmatch(r"\d+(\s*,\s*\d+)*", text):
        raise ConfigError(f"cpu_affinity = {text!r} must be {AUTO}, {ANY}, or numbers of cores such as '2' or '2,3'")
    cores = frozenset(map(int, text.split(",")))
    permitted = _permitted()
    if permitted and not cores <= permitted:
        raise ConfigError(
            f"cpu_affinity = {text!r}: this process may run on {_named(permitted)}, and not on "
            f"{_named(cores - permitted)}"
        )
    return cores


def wrong_cores(text: str) -> Iterator[str]:
    """Yield what is wrong with a parameter that names cores, if anything is."""
    try:
        cores_of(text)
    except ConfigError as error:
        yield str(error)


class OwnCore:
    """Keeps the calling thread, and those that bring its messages, on some cores.

    Other threads of the process stay free, as a controller may have many.

    Args:
        wanted: ``auto`` for a core that no other node has taken, ``any``, or the numbers of cores.
        claim: Name of the abstract socket that says that core ``{}`` is taken; the kernel forgets it with the process.

    Raises:
        ConfigError: As :func:`cores_of`.
    """

    def __init__(self, wanted: str, claim: str = "\0bipedsim-core-{}") -> None:
        self._wanted, self._name = wanted, claim
        self._cores = cores_of(wanted)
        self._permitted = _permitted()
        self._claim: socket.socket | None = None
        self._held: set[int] = set()
        self._known: set[int] = set()

    def take(self, deadlines: bool) -> str:
        """Stay there from now on; return what came of it, for the log, or an empty text.

        Args:
            deadlines: Whether the loop has any. Then ``auto`` is for threads that go before others (SCHED_FIFO): one
                that does not may wait for its core for milliseconds while the next is idle.
        """
        if self._wanted == ANY or len(self._permitted) < 2:
            return ""
        cores = self._cores
        if not cores:
            if deadlines and os.sched_getscheduler(0) != os.SCHED_FIFO:
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
                    self._held.add(thread)
        return f"on {_named(cores)} (cpu_affinity = {self._wanted})"

    def let_go_of_others(self) -> str:
        """Where threads have begun since :meth:`take`, which share its core, give all of them every core again.

        Returns:
            What was done, for the log, or an empty text.
        """
        if not self._held or self._cores or not (new := _threads() - self._known):
            return ""
        for thread in self._held | new:
            with suppress(ProcessLookupError):
                os.sched_setaffinity(thread, self._permitted)
        self._held.clear()
        self.release()
        return "threads have begun since the start: the loop has no core of its own any more, so that they find room"

    def release(self) -> None:
        """Leave the core to other nodes; the threads stay where they are."""
        if self._claim is not None:
            self._claim.close()
            self._claim = None

    def _claimed(self) -> frozenset[int]:
        """Return a core that nobody had, and has it now, preferably the one that the kernel has chosen; or none."""
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
    """Return the cores that this process may run on; none where the system cannot say."""
    return frozenset(os.sched_getaffinity(0)) if sys.platform == "linux" else frozenset()


def _threads() -> set[int]:
    return set(map(int, os.listdir("/proc/self/task")))


def _named(cores: frozenset[int]) -> str:
    return f"core{'s' if len(cores) > 1 else ''} {', '.join(map(str, sorted(cores)))}"
