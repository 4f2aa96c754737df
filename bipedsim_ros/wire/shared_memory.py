"""Remove shared memory left by killed processes: ports, which delay the next user, and segments, which fill the memory.

Fast DDS recognises a left port as dead if its lock file still exists. Otherwise it waits for one second, during which
a simulator that publishes does not tick. Every killed process leaves a segment of 0.5 to 2 MB.

A port whose listener has ended may still be mapped by publishers. It must stay: the last one that unmaps it removes the
port by its name (``SharedMemGlobal::~Port``). If another node had made a new port with this name meanwhile, that node
would never receive a message.
"""

from __future__ import annotations

import fcntl
import re
import time
from contextlib import suppress
from pathlib import Path

FOLDER = Path("/dev/shm")
_PORT = re.compile(r"(fastrtps|fastdds)_port\d+")
_SEGMENT = re.compile(r"(fastrtps|fastdds)_[0-9a-f]{16}")
"""Memory of a participant for its messages."""
_AGE_S = 10.0
"""Minimum age of left memory [s]: a younger file may not have been locked yet by its creator."""


def _mapped(folder: Path) -> set[str]:
    """Return the names of the files in a folder that processes of this user have mapped."""
    line = re.compile(rf"\s{re.escape(str(folder))}/(\S+)$", re.M)
    names: set[str] = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        # The process may end meanwhile, or belong to another user, who cannot map these files.
        with suppress(OSError):
            names |= {*line.findall(maps.read_text(errors="replace"))}
    return names


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


def left_memory(folder: Path = FOLDER) -> dict[str, list[Path]]:
    """Return segments of ended processes, and their ports that no other process has mapped, each with its files.

    Args:
        folder: Folder of the shared memory.
    """
    left = {}
    candidates = [
        path for path in sorted(folder.glob("fast*")) if _PORT.fullmatch(path.name) or _SEGMENT.fullmatch(path.name)
    ]
    mapped = _mapped(folder) if candidates else set()
    for path in candidates:
        if _PORT.fullmatch(path.name) and path.name in mapped:
            continue
        locks = [path.with_name(f"{path.name}_{kind}") for kind in ("el", "sl")]
        # The process may end meanwhile and remove its files.
        with suppress(OSError):
            if time.time() - path.stat().st_mtime >= _AGE_S and not any(map(_is_held, locks)):
                files = (path, *locks, path.with_name(f"sem.{path.name}_mutex"))
                left[path.name] = [file for file in files if file.exists()]
    return left


def remove_left_memory(folder: Path = FOLDER) -> list[str]:
    """Remove the memory of ended processes, as ``fastdds shm clean`` does, and return the names of its parts.

    Args:
        folder: Folder of the shared memory. Files that cannot be removed, such as another user's, remain.
    """
    removed = []
    for name, files in left_memory(folder).items():
        with suppress(OSError):
            for file in files:
                file.unlink(missing_ok=True)
            removed.append(name)
    return removed
