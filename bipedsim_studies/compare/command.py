"""Implement the command ``bipedsim compare``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bipedsim.cli import OF_CONTACT, add_run_options, key_values, run_config
from bipedsim.config import to_json
from bipedsim.errors import EXIT_FAILED, ConfigError
from bipedsim_studies.study import add_options, asked_jobs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    add_run_options(parser, without=OF_CONTACT)
    parser.add_argument("--models", nargs="+", metavar="MODEL", help="contact models (default: all)")
    parser.add_argument("--reference", metavar="MODEL", help="model to compare with (default: the first one)")
    parser.add_argument(
        "--contact-set",
        action="append",
        default=[],
        metavar="MODEL.NAME=VALUE",
        help="parameter of one contact model; repeatable",
    )
    add_options(parser, 1, "so that no model's step times are those of a shared machine", "a run that hangs")
    parser.add_argument("--plot", type=Path, metavar="PNG", help="write the picture of the comparison")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON and nothing else")


def main(args: argparse.Namespace) -> int:
    """Run the comparison and print it. Return 1 if a run failed."""
    from bipedsim_studies.compare.comparison import compare
    from bipedsim_studies.compare.table import table

    settings = run_config(args, without=OF_CONTACT)
    params = model_params(args.contact_set)
    progress = not args.json and sys.stderr.isatty()

    def say(line: str) -> None:
        if not args.json:
            print(line, file=sys.stderr, flush=True)

    jobs, scheduler = asked_jobs(args), args.scheduler
    try:
        result = compare(
            settings, args.models or (), args.reference, params, progress, say, jobs, scheduler, args.time_limit
        )
    except KeyboardInterrupt:
        missing_outputs = f"no table, and no {args.plot}" if args.plot else "no table"
        print(f"bipedsim compare: interrupted before its last run: {missing_outputs}", file=sys.stderr, flush=True)
        raise
    print(to_json(result.as_json()) if args.json else table(result))
    if args.plot:
        from bipedsim_studies.compare.picture import plot

        plot(result, args.plot)
        if not args.json:
            print(f"wrote {args.plot}")
    return 0 if result.ok else EXIT_FAILED


def model_params(pairs: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Parse parameters of contact models: ``["exact.gamma=0.1"]`` becomes ``{"exact": {"gamma": 0.1}}``.

    Raises:
        ConfigError: A pair is not MODEL.NAME=VALUE.
    """
    params: dict[str, dict[str, Any]] = {}
    for pair in pairs:
        model, dot, name = pair.partition("=")[0].partition(".")
        if not (model and dot and name and "=" in pair):
            raise ConfigError(f"--contact-set {pair!r}: expected MODEL.NAME=VALUE, a parameter of one contact model")
        params.setdefault(model, {}).update(key_values([pair.partition(".")[2]], "--contact-set"))
    return params
