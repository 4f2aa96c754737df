"""Define the options of ``bipedsim up``."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from bipedsim.cli import add_fail_on_fall, add_run_option, option_name
from bipedsim_ros.bringup.bringup import (
    DEMO,
    INTERFACE_SET,
    argument_default,
    argument_help,
    argument_metavar,
    argument_names,
    is_switch,
)

INSTEAD = {
    "--output": "--record FOLDER writes the run: FOLDER/bag, a summary and a plot of the forces",
    "--plot": "--record FOLDER plots the forces, FOLDER/forces.png; `bipedsim plot FOLDER` plots everything else",
    "--animate": "--record FOLDER writes the run, and `bipedsim animate FOLDER` animates it",
    "--json": "--record FOLDER writes the metrics, FOLDER/summary.json",
}
"""Replacements for options of `bipedsim run`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a launch to the parser of ``bipedsim up``."""
    add_options(parser, argument_names())
    for name in ("controller_params", "contact_params"):
        add_run_option(parser, name)
    parser.add_argument(
        INTERFACE_SET,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="parameter of the vendor bridge, such as domain=1 (docs/unitree.md); repeatable",
    )
    add_overwrite(parser)
    add_fail_on_fall(parser)
    parser.add_argument(
        "--demo", action="store_true", help=f"stand, then squat, recorded into {DEMO.arguments['record']}"
    )


def add_options(parser: argparse.ArgumentParser, names: Iterable[str]) -> None:
    """Add an option for each of these launch arguments; the values remain texts, as in the launch package."""
    for name in names:
        # A literal % must be doubled for argparse.
        text = argument_help(name, not is_switch(name)).replace("%", "%%")
        if is_switch(name):
            on = argument_default(name) == "true"
            option, text = (option_name(f"no_{name}"), f"do not {text}") if on else (option_name(name), text)
            parser.add_argument(option, dest=name, action="store_const", const="false" if on else "true", help=text)
        else:
            parser.add_argument(option_name(name), metavar=argument_metavar(name), help=text)


def add_overwrite(parser: argparse.ArgumentParser) -> None:
    """Add the option with which a command replaces an earlier recording."""
    parser.add_argument(
        "--overwrite", action="store_true", help="replace the bag, summary and plot of an earlier run in the folder"
    )


def main(args: argparse.Namespace) -> int:
    """Run ``bipedsim up`` with parsed arguments and return its exit code."""
    from bipedsim_ros.bringup.runner import run_arguments

    return run_arguments(args)
