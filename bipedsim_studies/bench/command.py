"""Implement the command ``bipedsim bench``."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from bipedsim.config import ProgressBar, to_json
from bipedsim_studies.bench.settings import BenchSettings
from bipedsim_studies.study import add_output, add_settings, in_settings, read_settings

INSTEAD = in_settings("robots", "engines", "blocks", "steps", "creep_seconds")
_LOOP = "bipedsim_ros.bench"
SINGLE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    add_settings(parser, BenchSettings, (), "docs/benchmarks.md")
    text = "measure the loop over ROS of the first robot, and an exchange of the same messages without a simulator"
    parser.add_argument("--loop", action="store_true", help=text)
    parser.add_argument("--output", type=Path, metavar="DIR", help="folder for report.json, table.md and plot.png")
    add_output(parser, plot=False)


def main(args: argparse.Namespace) -> int:
    """Run the benchmark and print it, in a new process with single-threaded libraries if necessary.

    Libraries read OMP_NUM_THREADS when they are loaded, so it is too late to set it here.
    """
    settings = read_settings(args, BenchSettings, ())
    if os.environ.get("OMP_NUM_THREADS") != "1":
        command = [sys.executable, "-m", "bipedsim.cli.main", "bench", to_json(asdict(settings))]
        command += ["--json"] * args.json + ["--loop"] * args.loop + (["--output", args.output] if args.output else [])
        return subprocess.run(command, env={**os.environ, **SINGLE_THREAD}, check=False).returncode
    if args.loop:
        return _loop(args, settings)

    from bipedsim_studies.bench.report import table, write
    from bipedsim_studies.bench.run import Bench, pieces

    with ProgressBar(total=pieces(settings), unit="part") as bar:

        def tick(text: str) -> None:
            bar.set_description(text, refresh=False)
            bar.update()

        with _stdout_to_stderr():
            report = Bench(settings, tick).report()
    paths = write(report, args.output) if args.output else []
    print(to_json(report, indent=None) if args.json else table(report), end="\n" if args.json else "")
    if not args.json:
        for path in paths:
            print(f"wrote {path}")
    return 0


def _loop(args: argparse.Namespace, settings: BenchSettings) -> int:
    """Run the loop benchmark of bipedsim_ros, which studies cannot import, as a program. Return its exit code."""
    command = [sys.executable, "-m", _LOOP, "--robot", settings.robots[0], "--blocks", str(settings.loop_blocks)]
    command += ["--seconds", str(settings.loop_seconds), *["--json"] * args.json]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    print(result.stdout, end="")
    if args.output and not result.returncode:
        args.output.mkdir(parents=True, exist_ok=True)
        name = "loop.json" if args.json else "loop.txt"
        (args.output / name).write_text(result.stdout, encoding="utf-8")
        if not args.json:
            print(f"wrote {args.output / name}")
    return result.returncode


@contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    """Redirect the output of C++ libraries on file descriptor 1 to stderr, so that stdout has only the report."""
    sys.stdout.flush()
    stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)
