"""``bipedsim bench``."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SINGLE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument(
        "--robots",
        nargs="+",
        metavar="ROBOT",
        default=["biped14", "talos_legs", "talos"],
        help="names or paths of a robot.yaml (default: %(default)s)",
    )
    parser.add_argument("--engines", nargs="+", metavar="ENGINE", help="see docs/benchmarks.md (default: all)")
    parser.add_argument("--dt", type=float, default=1e-3, metavar="S", help="step of all (default: %(default)s)")
    parser.add_argument(
        "--blocks", type=int, default=40, metavar="N", help="blocks per engine, in alternation (default: %(default)s)"
    )
    parser.add_argument("--steps", type=int, default=150, metavar="N", help="steps of a block (default: %(default)s)")
    parser.add_argument(
        "--creep-seconds", type=float, default=2.0, metavar="S", help="time under the side load (default: %(default)s)"
    )
    parser.add_argument("--no-own", action="store_true", help="leave out our models over vertices and in motion")
    parser.add_argument("--json", action="store_true", help="print the report as JSON and nothing else")
    parser.add_argument("--output", type=Path, metavar="DIR", help="write report.json, table.md and plot.png there")


def main(args: argparse.Namespace) -> int:
    """Measure and print; runs itself again in a process with single-threaded libraries if need be.

    Libraries read OMP_NUM_THREADS when they are loaded, which is too late to set it here.
    """
    if os.environ.get("OMP_NUM_THREADS") != "1":
        command = [sys.executable, "-m", "bipedsim.cli.main", "bench", *_again(args)]
        return subprocess.run(command, env={**os.environ, **SINGLE_THREAD}, check=False).returncode
    from tqdm import tqdm

    from bipedsim_studies.bench.engines import ENGINES
    from bipedsim_studies.bench.report import table, write
    from bipedsim_studies.bench.run import Bench, BenchSettings, pieces

    settings = BenchSettings(
        robots=tuple(args.robots),
        engines=tuple(args.engines or ENGINES),
        dt=args.dt,
        blocks=args.blocks,
        steps=args.steps,
        creep_seconds=args.creep_seconds,
        own=not args.no_own,
    )
    with tqdm(total=pieces(settings), file=sys.stderr, disable=None, leave=False) as bar:

        def tick(text: str) -> None:
            bar.set_description_str(text, refresh=False)
            bar.update()

        with _stdout_to_stderr():
            report = Bench(settings, tick).report()
    paths = write(report, args.output) if args.output else []
    print(json.dumps(report) if args.json else table(report), end="\n" if args.json else "")
    if not args.json:
        for path in paths:
            print(f"wrote {path}")
    return 0


@contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    """Send what C++ libraries print on file descriptor 1 to stderr, so that stdout holds the report alone."""
    sys.stdout.flush()
    stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)


def _again(args: argparse.Namespace) -> list[str]:
    """Return the options that lead to ``args``."""
    options = ["--robots", *args.robots]
    if args.engines:
        options += ["--engines", *args.engines]
    for name in ("dt", "blocks", "steps", "creep_seconds", "output"):
        if getattr(args, name) is not None:
            options += [f"--{name.replace('_', '-')}", str(getattr(args, name))]
    return options + [f"--{name.replace('_', '-')}" for name in ("no_own", "json") if getattr(args, name)]
