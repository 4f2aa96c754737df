"""Options of commands that work on many processes; light, for they are declared whenever help is asked for."""

from __future__ import annotations

import argparse
import os

from bipedsim.errors import ConfigError
from bipedsim_studies.study.limited import LIMIT


def add_options(
    parser: argparse.ArgumentParser, jobs: int | None = None, why: str = "", piece: str = "a trial that hangs"
) -> None:
    """Declare the options that say who does the work: ``jobs``, ``scheduler`` and ``time_limit``.

    Args:
        parser: Takes them.
        jobs: Processes by default; one for each core without it.
        why: Said of that default.
        piece: What has to end within the time limit.
    """
    said = f"{jobs or 'one for each core'}{why and f', {why}'}"
    parser.add_argument(
        "--jobs", type=int, default=jobs, metavar="N", help=f"processes of this machine (default: {said})"
    )
    parser.add_argument(
        "--scheduler",
        default="",
        metavar="ADDRESS",
        help="of a dask scheduler, such as tcp://10.0.0.1:8786, whose workers do it instead (docs/study.md)",
    )
    parser.add_argument(
        "--time-limit",
        type=float,
        default=LIMIT,
        metavar="S",
        help=f"wall time after which {piece} is ended (default: %(default)g)",
    )


def asked_jobs(args: argparse.Namespace) -> int:
    """Return how many processes the options ask for.

    Raises:
        ConfigError: None at all.
    """
    if args.jobs is not None and args.jobs < 1:
        raise ConfigError(f"--jobs {args.jobs} must be at least 1")
    if not args.time_limit > 0.0:
        raise ConfigError(f"--time-limit {args.time_limit:g} s must be above 0")
    return args.jobs or cores()


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))
