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
from bipedsim.contact import make_contact_model
from bipedsim.dynamics import Dynamics
from bipedsim.ground import Ground
from bipedsim.model import load_robot
from bipedsim.numerics import compile_silently, on_compiling
from bipedsim.sim import Simulator

STEP = 1e-3
"""Physics step of the compiled contact model [s]; kernels are the same for any."""


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
    """Compile the contact model, flight, the search for body contacts, and the monitors.

    Two processes that need the same kernel wait for each other, so the order is such that they meet late.
    """
    robot = load_robot("biped14")
    # A simulator would first wait for the kernels of its sensors.
    dynamics = Dynamics(robot, Ground.flat(), STEP)
    dynamics.compile_contact(make_contact_model(contact, dynamics.projection, STEP))
    dynamics.warm_up()
    sim = Simulator(robot, contact=contact)
    if sim.reactions.touching is not None:
        sim.reactions.touching.find(sim.q, sim.v)
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
