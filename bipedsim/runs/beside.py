"""Compile the kernels of a run in two processes. The helper begins with those that the run needs last."""

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
from bipedsim.numerics import compile_silently, on_compiling
from bipedsim.sim import Simulator


@contextmanager
def compiling_beside(contact: str) -> Iterator[None]:
    """Let a second process help if kernels have to be compiled within the context; it ends with the context.

    Args:
        contact: Contact model of the run.
    """
    processes: list[subprocess.Popen[bytes]] = []

    def begin() -> None:
        # The helper's output is discarded: this process reports the same error when it compiles the same kernel.
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
    """Compile the contact model's part of a step, landings and monitors."""
    sim = Simulator(load_robot("biped14"), contact=contact)
    sim.dynamics.compile_contact(sim.solver)
    sim.stepper.warm_up(sim.q, sim.v)
    Verdict(sim).warm_up()
    sim.watch(lambda name, message, begun: None)


def _end_with(parent: int) -> None:
    """End this process when the process ``parent`` ends, even if that is killed."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(0)


if __name__ == "__main__":
    compile_silently()
    threading.Thread(target=_end_with, args=[int(sys.argv[2])], daemon=True).start()
    _compile(sys.argv[1])
