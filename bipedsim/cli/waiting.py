"""Show messages on a terminal during long operations."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_ERASE = "\x1b[2K"


@contextmanager
def waiting(what: str, shown: bool = True) -> Iterator[None]:
    """Show a message on stderr while the context is active; do nothing if stderr is not a terminal.

    Progress bars and messages within the context overwrite it.

    Args:
        what: Description of the operation, such as ``"drawing forces.png"``.
        shown: False suppresses the message on a terminal, too.
    """
    if not (shown and sys.stderr.isatty()):
        yield
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
