"""Limit the time of calls that may never return, even from compiled code, and report their position."""

from __future__ import annotations

import faulthandler
import re
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bipedsim.config import param

LIMIT = 900.0
"""Default wall time within which a piece of work must end [s]."""


def time_limit(work: str) -> Any:
    """Declare the key with the maximum wall time of a piece of work, such as a trial."""
    return param(LIMIT, f"wall time per {work}", unit="s", low=1e-3)


_PREFIX = "bipedsim_hung"
_HERE = str(Path(__file__).parent)  # The thread of the call has functions of this package below it.
_FRAME = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+) in (?P<function>.+)$')


class Hung(Exception):  # noqa: N818
    """A call exceeded the time limit. The message contains the limit and the position of the call."""

    @classmethod
    def previous(cls, token: str, number: int) -> Hung | None:
        """Return the error of an earlier process that was ended in this call; None if there was no such process."""
        path = _note(token, number)
        with suppress(OSError):
            if text := path.read_text(errors="replace"):
                return cls(_describe_traceback(text))
        return None


@contextmanager
def limited(limit: float, token: str, number: int) -> Iterator[None]:
    """End this process if the context takes too long. A thread that does not need the interpreter does this.

    The process first writes a note, so that a process that repeats the same call can refuse it.

    Args:
        limit: Wall time [s].
        token: Token of all notes of one command, see :func:`new_token`.
        number: Index of the call.

    Raises:
        Hung: The same call has already ended a process of this machine.
    """
    hung_before = Hung.previous(token, number)
    if hung_before is not None:
        raise hung_before
    path = _note(token, number)
    with path.open("w") as note:
        faulthandler.dump_traceback_later(limit, exit=True, file=note)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
            path.unlink(missing_ok=True)


def new_token() -> str:
    """Return a new token for the notes of one command."""
    return secrets.token_hex(8)


def remove_notes(token: str) -> None:
    """Remove the remaining notes of a command from this machine."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}_{token}_*"):
        path.unlink(missing_ok=True)


def _note(token: str, number: int) -> Path:
    return Path(tempfile.gettempdir()) / f"{_PREFIX}_{token}_{number}"


def _describe_traceback(text: str) -> str:
    """Summarise a traceback of all threads: the innermost line of the call that is not in a library."""
    from bipedsim.control import is_library

    header = text.partition("\n")[0]
    seconds = re.search(r"\((.*?)\)", header)
    threads = re.split(r"^(?:Current thread|Thread) .*$", text, flags=re.MULTILINE)[1:]
    call_thread = next((thread for thread in threads if _HERE in thread), "")
    frames = [frame_match for line in call_thread.splitlines() if (frame_match := _FRAME.match(line))]
    innermost = next((frame for frame in frames if not is_library(frame["file"])), frames[0] if frames else None)
    where = f", in {innermost['file']}:{innermost['line']} ({innermost['function']})" if innermost else ""
    return f"it did not end within time_limit ({seconds[1] if seconds else header}){where}"
