"""Of processes that need the same kernel at the same time one compiles it, and the others wait for what it leaves.

A claim is a lock on one byte of one file in the folder of the kernels, at a place made of the kernel's name. The system
lets go of what a process held that has died. Waiting in a circle cannot be: who holds a claim waits only for kernels
that its own calls, and no kernel calls itself through others.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import time
from functools import cache
from pathlib import Path

_FILE = "claims"
_NAP_S = 0.02
# A process that failed to compile may keep its claim while it lives; compiling anything takes a fraction of this.
_PATIENCE_S = 120.0


@cache
def _claims(folder: Path) -> int:
    """Return the open file of ``folder``: closing any one of a process would drop all of its claims."""
    folder.mkdir(parents=True, exist_ok=True)
    return os.open(folder / _FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)


def _place(name: str) -> int:
    """Return the byte for ``name``; two names at one place merely wait for each other."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "little")


def claim(path: Path) -> bool:
    """Return when no other process is about to write ``path``, and have others wait until :func:`release`.

    Where files cannot be locked or the folder takes none, and after two minutes, it returns False: then a kernel is
    compiled twice, and nothing else happens.
    """
    try:
        file = _claims(path.parent)
    except OSError:
        return False
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(path.name))
            return True
        except (BlockingIOError, PermissionError):  # what another holds is either, as the system likes
            time.sleep(_NAP_S)
        except OSError:
            return False
    return False


def release(path: Path) -> None:
    """Give back what :func:`claim` took."""
    with contextlib.suppress(OSError):
        fcntl.lockf(_claims(path.parent), fcntl.LOCK_UN, 1, _place(path.name))
