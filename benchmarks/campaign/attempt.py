"""One call of `bipedsim` in a forked process: its output, its exit code, and its limits of time and memory."""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bipedsim.cli.main import main

SECONDS = 20
"""CPU time that an attempt may take [s]; ten times as much on the wall, for machines that do other things."""
MEMORY = 2 << 30
"""Address space of an attempt beyond that of its parent [bytes]."""
TRACEBACK = 70
"""Exit code of an attempt with an uncaught exception."""


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended.

    Attributes:
        code: Exit code; None if it was killed.
        out, err: Its output.
        wrong: Errors of the attempt; empty if there are none.
        seconds: Wall time.
    """

    code: int | None
    out: str
    err: str
    wrong: str
    seconds: float


def _size() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def attempt(call: Sequence[str] | Callable[[], int], folder: Path, limited: bool = True) -> Outcome:
    """Run a command line of `bipedsim`, or a function, in ``folder``, with limits of time and memory.

    Args:
        call: Arguments behind ``bipedsim``, or a function that returns an exit code.
        folder: Where it works.
        limited: Whether memory is limited, too.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.monotonic()
        child = os.fork()
        if child == 0:
            _answer(call, folder, limited, out.fileno(), err.fileno())
        status = None
        while status is None and time.monotonic() < begin + 10 * SECONDS:
            pid, found = os.waitpid(child, os.WNOHANG)
            if pid:
                status = found
            else:
                time.sleep(0.002)
        if status is None:
            os.killpg(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
        seconds = time.monotonic() - begin
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    code = os.waitstatus_to_exitcode(status)
    wrong = ""
    if code in (-signal.SIGKILL, -signal.SIGXCPU):
        wrong = f"did not end within {SECONDS} s"
    elif code < 0:
        wrong = f"ended by {signal.Signals(-code).name}"
    elif code == TRACEBACK or "Traceback (most recent" in texts[1]:
        wrong = f"traceback: {texts[1].strip().splitlines()[-1][:200]}"
    return Outcome(None if code < 0 else code, texts[0], texts[1], wrong, seconds)


def _answer(call: Sequence[str] | Callable[[], int], folder: Path, limited: bool, out: int, err: int) -> None:
    """Be the forked process."""
    code: Any = TRACEBACK
    try:
        os.setsid()
        os.chdir(folder)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (out, 1), (err, 2)):
            os.dup2(source, target)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        used = resource.getrusage(resource.RUSAGE_SELF)
        spent = int(used.ru_utime + used.ru_stime)
        resource.setrlimit(resource.RLIMIT_CPU, (spent + SECONDS, spent + SECONDS + 5))
        if limited:
            resource.setrlimit(resource.RLIMIT_AS, (_size() + MEMORY, resource.RLIM_INFINITY))
        code = call() if callable(call) else main(call)
    except SystemExit as error:
        code = error.code
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code if isinstance(code, int) else 1 if code else 0)
