"""What a terminal shows while somebody waits."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_ERASE = "\x1b[2K"


@contextmanager
def waiting(what: str, shown: bool = True) -> Iterator[None]:
    """Say in a line of stderr what takes its time, and take the line away at the end; nothing where nobody looks.

    Progress bars and messages within the context are written over it.

    Args:
        what: What is done, such as ``"drawing forces.png"``.
        shown: False says nothing on a terminal either.
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
    """Let tqdm draw on a terminal that does not say how wide it is, where its bars would be empty.

    To be called before tqdm is imported.
    """
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        return
    if not columns:
        os.environ.setdefault("TQDM_NCOLS", "80")
