"""Work for pools of processes: other processes import it by name, which they cannot do with a file of tests."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path
from typing import NoReturn

from bipedsim.control import Guard
from bipedsim.errors import UnknownNameError
from bipedsim.model import load_robot
from bipedsim.sim import Observation

_forever = re.compile("(a*)*c")


def refuse(name: str) -> NoReturn:
    """Raise the error of an unknown robot."""
    raise UnknownNameError("robot", name, ["biped14", "talos"], "here")


def dies(work: tuple[str, int]) -> int:
    """Return the square of a number; 1 ends its process the first time, 3 each time. The folder stores the count."""
    folder, number = work
    before = len(list(Path(folder).glob(f"{number}.*")))
    (Path(folder) / f"{number}.{time.monotonic_ns()}").touch()
    if (number == 1 and before == 0) or number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def hangs(_work: int) -> None:
    """Never return from compiled code, which does not let other threads of Python run."""
    _forever.match("a" * 100 + "b")


class Raises:
    """A controller with a typing error."""

    def __init__(self, *_made_with: object) -> None:
        pass

    def reset(self, _observation: Observation) -> None:
        """Do nothing."""

    def update(self, _observation: Observation) -> NoReturn:
        """Look for a gain that is not there."""
        {}["gain"]
        raise AssertionError


def raises(_work: int) -> None:
    """Run a controller that raises an exception."""
    robot = load_robot("biped14")
    Guard(Raises(), robot).update(Observation.zeros(robot.nu, len(robot.soles)))
