"""Write files with an error message that names the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bipedsim.errors import RecordingError


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Create the folder of a file, and report errors of the code that writes the file.

    Raises:
        RecordingError: The file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise RecordingError(f"cannot be written ({error.strerror or error})", path) from error


def write_text(path: Path, text: str) -> None:
    """Write a text file, and create its folder.

    Raises:
        RecordingError: The file cannot be written.
    """
    with writing(path):
        path.write_text(text, encoding="utf-8")
