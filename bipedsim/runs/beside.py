"""Kernels of a run compiled by two processes: what one comes to last, the other one begins with."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bipedsim.analysis import Verdict
from bipedsim.model import load_robot
from bipedsim.numerics import on_compiling
from bipedsim.sim import Simulator


@contextmanager
def compiling_beside(contact: str) -> Iterator[None]:
    """Where kernels of a run have to be compiled within the context, have a second process help; it ends with it.

    Args:
        contact: Contact model of the run.
    """
    processes: list[subprocess.Popen[bytes]] = []

    def begin() -> None:
        # It has nothing to say: whatever keeps it from compiling, this process says when it comes to the same kernel.
        quiet = subprocess.DEVNULL
        command = [sys.executable, "-m", "bipedsim.runs.beside", contact, str(os.getpid())]
        processes.append(subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet))

    try:
        with on_compiling(begin):
            yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _compile(contact: str) -> None:
    sim = Simulator(load_robot("biped14"), contact=contact)
    sim.compile_contact()
    Verdict(sim).warm_up()
    sim.watch(lambda name, said, begun: None)


def _end_with(parent: int) -> None:
    """End this process when the process ``parent`` ends, also when that is killed."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=_end_with, args=[int(sys.argv[2])], daemon=True).start()
    _compile(sys.argv[1])
