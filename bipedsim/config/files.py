"""Open and write the files that a user names; an error states the reason of the operating system."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from bipedsim.errors import BipedSimError, ConfigError, RecordingError, shown


@contextmanager
def open_file(path: Path, kind: type[BipedSimError] = ConfigError) -> Iterator[BinaryIO]:
    """Open a file, and report errors of the code that reads it.

    Args:
        path: The file. A pipe without a writer counts as empty.
        kind: Class of the error.

    Raises:
        BipedSimError: The file is missing, a directory, a loop of links, not readable, or its name is invalid.
    """
    try:
        # Non-blocking mode prevents waiting for a pipe without a writer.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            os.set_blocking(file.fileno(), True)
            yield file
    except (OSError, ValueError) as error:
        raise unreadable(path, error, kind) from error


def check_readable(path: Path, kind: type[BipedSimError] = ConfigError, directories: bool = False) -> None:
    """Check that a file can be opened, before other code asks for its suffix or content.

    Args:
        path: The file.
        kind: Class of the error.
        directories: Whether a directory is also accepted.

    Raises:
        BipedSimError: As for :func:`open_file`.
    """
    if not (directories and os.path.isdir(path)):
        with open_file(path, kind):
            pass


def unreadable(path: Path, error: Exception, kind: type[BipedSimError] = ConfigError) -> BipedSimError:
    """Return the error of a file that cannot be read, with the reason of the operating system."""
    # A file name can be invalid: too long, or with a NUL character.
    return kind(f"cannot be read ({getattr(error, 'strerror', error)})", shown(str(path))[1:-1])


def write_whole(path: Path, data: bytes) -> None:
    """Write a file atomically, so that the disk contains either the complete new file or the old one.

    Raises:
        RecordingError: The file cannot be written to the disk.
    """
    # A link keeps its target.
    target = Path(os.path.realpath(path))
    new = target.with_name(f".{target.name}")
    try:
        with new.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, target)
    except OSError as error:
        with suppress(OSError):
            new.unlink()
        raise RecordingError(
            f"cannot be written ({error.strerror}). An earlier file is kept. Free disk space or name another place, "
            "then repeat the command",
            path,
        ) from error
