"""``bipedsim warmup``: compiles all kernels into the cache, in parallel processes."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from concurrent.futures import as_completed

from bipedsim.contact import CONTACT_MODELS
from bipedsim.control import make_controller
from bipedsim.model import load_robot
from bipedsim.runs import WorkerPool
from bipedsim.sim import Simulator


def _compile_model(name: str) -> str:
    # One process is enough for the kernels of the hardware, which are the same for all models.
    hardware = "realistic" if name == "one_step" else "ideal"
    Simulator(load_robot("biped14"), contact=name, hardware=hardware).warm_up()
    return f"contact model {name}"


def _compile_controller(name: str) -> str:
    robot = load_robot("biped14")
    controller, observation = make_controller(name, robot), Simulator(robot).reset()
    controller.reset(observation)
    controller.update(observation)
    return f"controller {name}"


def warm_up() -> Iterator[tuple[int, int, str]]:
    """Yield how many parts are ready, how many there are, and which one became ready."""
    # A process for each core: they share the cache, and what they share in code is soon compiled.
    workers = min(len(os.sched_getaffinity(0)), len(CONTACT_MODELS))
    with WorkerPool(workers) as pool:
        jobs = [pool.submit(_compile_model, name) for name in CONTACT_MODELS]
        # The other controllers compile nothing of their own.
        jobs += [pool.submit(_compile_controller, name) for name in ("posture", "zmp")]
        for done, job in enumerate(as_completed(jobs), start=1):
            yield done, len(jobs), job.result()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command: there are none."""


def main(args: argparse.Namespace) -> int:
    """Compile, and say how far it is."""
    for done, total, what in warm_up():
        print(f"[{done}/{total}] {what}: kernels ready", flush=True)
    return 0
