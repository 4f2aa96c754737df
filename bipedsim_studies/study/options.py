"""Declare options of commands that use many processes. This module must import fast, because every help needs it."""

from __future__ import annotations

import argparse
import os

from bipedsim.errors import ConfigError
from bipedsim_studies.study.limited import LIMIT


def add_options(
    parser: argparse.ArgumentParser, jobs: int | None = None, why: str = "", piece: str = "a trial that hangs"
) -> None:
    """Declare the options for the distribution of work: ``jobs``, ``scheduler`` and ``time_limit``.

    Args:
        parser: Parser that receives the options.
        jobs: Default number of processes; None for one per core.
        why: Reason for this default, for the help text.
        piece: The work that must end within the time limit, for the help text.
    """
    default_text = f"{jobs or 'one for each core'}{why and f', {why}'}"
    parser.add_argument(
        "--jobs", type=int, default=jobs, metavar="N", help=f"processes of this machine (default: {default_text})"
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
    """Return the number of processes requested by the options.

    Raises:
        ConfigError: The number of processes or the time limit is not positive.
    """
    if args.jobs is not None and args.jobs < 1:
        raise ConfigError(f"--jobs {args.jobs} must be at least 1")
    if not args.time_limit > 0.0:
        raise ConfigError(f"--time-limit {args.time_limit:g} s must be above 0")
    return args.jobs or cores()


def cores() -> int:
    """Return the number of cores available to this process."""
    return len(os.sched_getaffinity(0))
