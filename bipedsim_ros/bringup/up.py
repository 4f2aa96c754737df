"""Define the options of ``bipedsim up``."""

from __future__ import annotations

import argparse

from bipedsim.cli import IN_SCENARIO, add_fail_on_fall, add_groups, add_set, option_name
from bipedsim_ros.bringup.bringup import DEMO, Arguments, argument_names
from bipedsim_ros.loop import SimParams

INSTEAD = {
    option_name(name): f"--params-file FILE takes a file with the parameter `{name}` of sim_node"
    for name in SimParams.__dataclass_fields__
    if name not in Arguments.__dataclass_fields__
}
INSTEAD |= IN_SCENARIO | {
    "--output": "--record FOLDER writes the run: FOLDER/bag, a summary and a plot of the forces",
    "--plot": "--record FOLDER plots the forces, FOLDER/forces.png; `bipedsim plot FOLDER` plots everything else",
    "--animate": "--record FOLDER writes the run, and `bipedsim animate FOLDER` animates it",
    "--json": "--record FOLDER writes the metrics, FOLDER/summary.json",
}
"""Replacements for options of `bipedsim run`, and for parameters of sim_node."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a launch to the parser of ``bipedsim up``."""
    groups = add_groups(parser, Arguments, argument_names())
    add_set(
        groups["simulation"],
        "parameter of the controller, such as squat_depth=0.1, of the contact model, such as one_step.gamma=0.2, or of "
        "the vendor bridge, such as unitree.domain=1",
    )
    groups["output"].add_argument(
        "--demo", action="store_true", help=f"stand, then squat, for 12 s, recorded into {DEMO['record']}"
    )
    add_overwrite(groups["output"])
    add_fail_on_fall(groups["output"])


def add_overwrite(parser: argparse._ActionsContainer) -> None:
    """Add the option with which a command replaces an earlier recording."""
    parser.add_argument(
        "--overwrite", action="store_true", help="replace the bag, summary and plot of an earlier run in the folder"
    )


def main(args: argparse.Namespace) -> int:
    """Run ``bipedsim up`` with parsed arguments and return its exit code."""
    from bipedsim_ros.bringup.runner import run_arguments

    return run_arguments(args)
