"""File locks with which one process compiles a kernel while the others wait for the result.

A claim is a lock on one byte of a file in the kernel folder; a hash of the kernel's name selects the byte. The
operating system releases the locks of a process that has died. A deadlock is not possible: the owner of a claim waits
only for kernels that its own kernel calls, and no kernel calls itself through others.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import time
from functools import cache
from pathlib import Path

FILE = "claims"
"""Name of the lock file in a folder of kernels."""

_NAP_S = 0.02
# A process that failed to compile may hold its claim while it lives. Compiling a kernel takes a fraction of this time.
_PATIENCE_S = 120.0


@cache
def _lock_file(folder: Path) -> int:
    """Return the open lock file of ``folder``; closing it would drop all claims of the process."""
    folder.mkdir(parents=True, exist_ok=True)
    return os.open(folder / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)


def _byte_of(name: str) -> int:
    """Return the byte for ``name``; two names with the same byte only wait for each other."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "little")


def claim(path: Path) -> bool:
    """Wait until no other process is about to write ``path``, and lock it until :func:`release`.

    Returns:
        False if files cannot be locked, the folder is not writable, or two minutes have passed. The only consequence is
        that a kernel is compiled twice.
    """
    try:
        file = _lock_file(path.parent)
    except OSError:
        return False
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _byte_of(path.name))
            return True
        except (BlockingIOError, PermissionError):  # a lock of another process raises either, depending on the system
            time.sleep(_NAP_S)
        except OSError:
            return False
    return False


def release(path: Path) -> None:
    """Release the lock of :func:`claim`."""
    with contextlib.suppress(OSError):
        fcntl.lockf(_lock_file(path.parent), fcntl.LOCK_UN, 1, _byte_of(path.name))
