"""Ports of shared memory that a killed process has left: whoever opens one waits for its listeners, who are no more.

Fast DDS takes such a port for dead where its lock file is still there, and else waits for one
second, in which a simulator that wants to send does not tick.
"""

from __future__ import annotations

import fcntl
import re
import time
from pathlib import Path

FOLDER = Path("/dev/shm")
LEFT_PORTS = "removed {} ports of shared memory that killed processes had left (docs/network.md)"
"""What to say where there were some."""
_PORT = re.compile(r"(fastrtps|fastdds)_port\d+")
_AGE_S = 10.0
"""What is younger may be about to be locked by the process that has just made it."""


def _is_held(lock: Path) -> bool:
    """Return whether a process holds a lock file, as each that listens at a port does until it ends."""
    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def remove_left_ports(folder: Path = FOLDER) -> list[str]:
    """Remove the ports at which nobody listens any more, as ``fastdds shm clean`` does, and return their names.

    Args:
        folder: Where shared memory is; what cannot be removed, being somebody else's, stays.
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
