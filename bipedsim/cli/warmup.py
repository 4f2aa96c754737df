"""Compile kernels into the cache in parallel processes: ``bipedsim warmup``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

from bipedsim.analysis import Verdict
from bipedsim.cli.export import FORMATS
from bipedsim.config import RunConfig
from bipedsim.contact import CONTACT_MODELS
from bipedsim.control import CONTROLLERS, make_controller
from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.model import load_robot
from bipedsim.numerics import compile_silently, finish_shipped
from bipedsim.recording import load_recording
from bipedsim.runs import WorkerPool, run
from bipedsim.sim import Simulator

HARDWARE = ("hardware", "realistic")
"""Names for the kernels of drives and noise."""
_RUNS = {"objects": "ball", "force_plates": "walk_on_plates", "recording": "jump"}
"""Scenarios whose runs compile the kernels of a part."""
# All other controllers compile nothing of their own, or need special walkers.
_COMPILED = ("zmp", "posture", "pfl")


def _choices() -> list[str]:
    return [*CONTACT_MODELS, *CONTROLLERS, *HARDWARE, *_RUNS]


def _compile(name: str) -> str:
    """Compile the kernels of ``name`` by using it once, and return its description."""
    robot = load_robot("biped14")
    if name in _RUNS:
        _record(_RUNS[name])
        return name.replace("_", " ")
    if name in HARDWARE:
        Simulator(robot, hardware="realistic").warm_up()
        return "realistic hardware"
    if name in CONTACT_MODELS:
        sim = Simulator(robot, contact=name)
        sim.watch(lambda name, text, begun: None)
        sim.warm_up(loops=True)
        Verdict(sim).warm_up()
        return f"contact model {name}"
    if name in _COMPILED:
        controller, observation = make_controller(name, robot), Simulator(robot).reset()
        controller.reset(observation)
        controller.update(observation)
    return f"controller {name}"


def _record(scenario: str) -> None:
    """Simulate the begin of a scenario; write it as a bag if that format is installed, and read it."""
    recording, _ = run(RunConfig(scenario=scenario, duration=0.02))
    if "mcap" in FORMATS:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "run.mcap"
            FORMATS["mcap"](recording, None, path)
            load_recording(path)


def warm_up(names: Sequence[str] = ()) -> Iterator[tuple[int, int, str]]:
    """Yield number of ready parts, number of all parts, and the part that became ready.

    Args:
        names: Contact models, controllers, ``hardware`` or ``realistic``, ``objects``, ``force_plates``, ``recording``;
            all by default.

    Raises:
        UnknownNameError: A name is unknown; the message lists the names.
    """
    for name in names:
        if name not in _choices():
            raise UnknownNameError("part to compile", name, _choices())
    parts = list(dict.fromkeys(names or [*_COMPILED, *CONTACT_MODELS, HARDWARE[0], *_RUNS]))
    # Processes wait for kernels that another one is compiling. More processes than cores keep all cores busy.
    with WorkerPool(min(3 * len(os.sched_getaffinity(0)), len(parts)), compile_silently) as pool:
        jobs = [pool.submit(_compile, name) for name in parts]
        for done, job in enumerate(as_completed(jobs), start=1):
            yield done, len(parts), job.result()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FOLDER",
        help="write the kernels to this folder, as a wheel carries them (default: the cache of this installation)",
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAMES", help=f"parts to compile (default: all): {', '.join(_choices())}"
    )


def main(args: argparse.Namespace) -> int:
    """Compile kernels and print the progress."""
    if args.output is not None:
        try:
            args.output.mkdir(parents=True, exist_ok=True)
            TemporaryFile(dir=args.output).close()
        except OSError as error:
            raise ConfigError(
                f"cannot be written ({error.strerror}); name another folder", "--output", args.output
            ) from error
        os.environ["NUMBA_CACHE_DIR"] = str(args.output.absolute())  # The worker processes read it.
    print("compiling kernels; with an empty cache, this takes about a minute", flush=True)
    for done, total, part in warm_up(args.names):
        print(f"[{done}/{total}] {part}: kernels ready", flush=True)
    if args.output is not None:
        finish_shipped(args.output)
    return 0
