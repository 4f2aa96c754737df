"""A limit of time for calls that may never return, not even from compiled code; it says where they were."""

from __future__ import annotations

import faulthandler
import re
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LIMIT = 900.0
"""Wall time within which a piece of work must end, by default [s]."""
_PREFIX = "bipedsim_hung"
_FRAME = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+) in (?P<function>.+)$')


class Hung(Exception):  # noqa: N818
    """A call has taken too long; the message says for how long, and where it was."""

    @classmethod
    def noted(cls, token: str, number: int) -> Hung | None:
        """Return what a process that was ended has left of a call; None if it did not take too long."""
        path = _note(token, number)
        with suppress(OSError):
            if text := path.read_text(errors="replace"):
                return cls(_described(text))
        return None


@contextmanager
def limited(limit: float, token: str, number: int) -> Iterator[None]:
    """End this process if what is within the context takes too long; a thread that needs no interpreter does it.

    Before that it writes a note, so that who does the same work again need not try.

    Args:
        limit: Wall time [s].
        token: Of all notes of one command, see :func:`new_token`.
        number: Of the call.

    Raises:
        Hung: The same call has ended a process of this machine before.
    """
    before = Hung.noted(token, number)
    if before is not None:
        raise before
    path = _note(token, number)
    with path.open("w") as note:
        faulthandler.dump_traceback_later(limit, exit=True, file=note)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
            path.unlink(missing_ok=True)


def new_token() -> str:
    """Return a new name for the notes of one command."""
    return secrets.token_hex(8)


def remove_notes(token: str) -> None:
    """Remove the notes that are left on this machine."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}_{token}_*"):
        path.unlink(missing_ok=True)


def _note(token: str, number: int) -> Path:
    return Path(tempfile.gettempdir()) / f"{_PREFIX}_{token}_{number}"


def _described(text: str) -> str:
    """Return what a traceback of all threads says of the one with the call: the innermost line of nobody's library."""
    from bipedsim.control import is_library

    first = text.partition("\n")[0]
    seconds = re.search(r"\((.*?)\)", first)
    threads = re.split(r"^(?:Current thread|Thread) .*$", text, flags=re.MULTILINE)[1:]
    own = next((thread for thread in threads if f'"{__file__}"' in thread or "workers.py" in thread), "")
    frames = [found for line in own.splitlines() if (found := _FRAME.match(line))]
    at = next((frame for frame in frames if not is_library(frame["file"])), frames[0] if frames else None)
    where = f", in {at['file']}:{at['line']} ({at['function']})" if at else ""
    return f"it did not end within --time-limit ({seconds[1] if seconds else first}){where}"
