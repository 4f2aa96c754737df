"""Work for pools of processes: other processes import it by name, which they cannot do with a file of tests."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import NoReturn

from bipedsim.errors import UnknownNameError


def refuse(name: str) -> NoReturn:
    """Raise the error of a robot that nobody knows."""
    raise UnknownNameError("robot", name, ["biped14", "talos"], "here")


def dies(work: tuple[str, int]) -> int:
    """Return the square of a number; 1 takes its process down the first time, 3 each time. The folder knows."""
    folder, number = work
    before = len(list(Path(folder).glob(f"{number}.*")))
    (Path(folder) / f"{number}.{time.monotonic_ns()}").touch()
    if (number == 1 and before == 0) or number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number
