"""Show messages on a terminal during long operations."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from threading import Timer

PATIENCE = 10.0
"""Time without output after which a message is printed into a file or pipe [s]."""
_ERASE = "\x1b[2K"


@contextmanager
def waiting(what: str, shown: bool = True) -> Iterator[None]:
    """Show a message on a terminal while the context is active; otherwise print it once on stderr after 10 s.

    Progress bars and messages within the context overwrite it on a terminal.

    Args:
        what: Description of the operation, such as ``"drawing forces.png"``.
        shown: False suppresses the message.
    """
    if not shown:
        yield
        return
    if not sys.stderr.isatty():
        timer = Timer(PATIENCE, partial(print, f"{what} ...", file=sys.stderr, flush=True))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
        return
    print(f"{what} ...", end="\r", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        print(_ERASE, end="\r", file=sys.stderr, flush=True)


def give_bars_room() -> None:
    """Make tqdm draw bars on a terminal that does not report its width; they would be empty otherwise.

    This function must be called before tqdm is imported.
    """
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        return
    if not columns:
        os.environ.setdefault("TQDM_NCOLS", "80")
