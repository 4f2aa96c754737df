"""Remove shared-memory ports left by killed processes; opening one waits for listeners that no longer exist.

Fast DDS recognises such a port as dead if its lock file still exists. Otherwise it waits for one second, during which
a simulator that publishes does not tick.
"""

from __future__ import annotations

import fcntl
import re
import time
from pathlib import Path

FOLDER = Path("/dev/shm")
LEFT_PORTS = "cleaned up the shared memory of ended processes, {} ports; no action is needed (docs/network.md)"
"""Log message for removed ports."""
_PORT = re.compile(r"(fastrtps|fastdds)_port\d+")
_AGE_S = 10.0
"""Minimum age of a port to be removed [s]: a younger port may not have been locked yet by its creator."""


def _is_held(lock: Path) -> bool:
    """Return whether a process holds a lock file; each process that listens at a port does so until it ends."""
    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def remove_left_ports(folder: Path = FOLDER) -> list[str]:
    """Remove ports without listeners, as ``fastdds shm clean`` does, and return their names.

    Args:
        folder: Folder of the shared memory. Files that cannot be removed, such as another user's, remain.
    """
    removed = []
    for port in sorted(folder.glob("fast*_port*")):
        locks = [port.with_name(f"{port.name}_{kind}") for kind in ("el", "sl")]
        try:
            if not _PORT.fullmatch(port.name) or time.time() - port.stat().st_mtime < _AGE_S:
                continue
            if any(map(_is_held, locks)):
                continue
            for file in (port, *locks, port.with_name(f"sem.{port.name}_mutex")):
                file.unlink(missing_ok=True)
        except OSError:
            continue
        removed.append(port.name)
    return removed
