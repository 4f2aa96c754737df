"""Start controller and recorder for a running robot (``bipedsim control`` and ``launch/robot.launch.py``).

The nodes and their parameters are those of :func:`bipedsim_ros.bringup.plan`, without the simulator. A controller
therefore runs on the robot with the same arguments as on the simulator.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from bipedsim.cli import add_groups, add_set, chosen, split_params
from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.runs import Scenario, get_scenario
from bipedsim_ros.bringup.bringup import NO_CONTROLLER, Arguments, BringUp, NodeProcess, plan
from bipedsim_ros.bringup.checks import check_names
from bipedsim_ros.bringup.up import add_overwrite
from bipedsim_ros.wire import require_rclpy, topics as ros_topics

ROBOT_ARGUMENTS = (
    *("robot", "clock", "rate", "controller", "scenario", "record"),
    *("view", "namespace", "params_file", "log_level", "remap"),
)
"""Launch arguments that apply to a robot; ``clock`` is lock_step for a robot that waits for commands."""
INSTEAD = dict.fromkeys(
    ("--output", "--plot", "--animate", "--json"),
    "--record FOLDER writes the run, FOLDER/bag, for `bipedsim plot`, `view`, `animate` and `summary`",
)
"""Replacements for options of `bipedsim run`."""
_NODES = ("recorder_node", "controller_node", "commander_node", "view_node")


def plan_robot(
    user_arguments: Mapping[str, Any], controller_params: Mapping[str, Any] | None = None, overwrite: bool = False
) -> BringUp:
    """Return the nodes to start for a running robot.

    Args:
        user_arguments: Arguments that the user has set, of :data:`ROBOT_ARGUMENTS`; the others keep their defaults.
        controller_params: Parameters of the controller by their own names.
        overwrite: See :func:`bipedsim_ros.bringup.plan`.

    Raises:
        ConfigError: An argument is invalid, the scenario needs a simulator, or there is nothing to start.
        UnknownNameError: An argument does not apply to a robot.
    """
    for name in user_arguments:
        if name not in ROBOT_ARGUMENTS:
            raise UnknownNameError("argument", name, ROBOT_ARGUMENTS, "launch of a controller")
    if user_arguments.get("scenario"):
        _check_scenario(user_arguments["scenario"])
    bringup = plan(user_arguments, controller_params, overwrite=overwrite)
    nodes = tuple(_beside_robot(node) for node in bringup.nodes if node.executable in _NODES)
    if not nodes:
        raise ConfigError("and no record: there is nothing to start", "controller", NO_CONTROLLER)
    return replace(bringup, nodes=nodes)


def _beside_robot(node: NodeProcess) -> NodeProcess:
    """Return a node adapted to a robot, which does not end with the launch: the recorder must not wait for its end."""
    return replace(node, parameters={name: value for name, value in node.parameters.items() if name != "await_end"})


def _check_scenario(name: str) -> None:
    """Refuse a scenario with settings that need a simulator."""
    scenario, defaults = get_scenario(name), Scenario()
    for key in ("ground", "hardware", "posture", "drop_height", "pushes", "gantry", "objects", "force_plates"):
        if getattr(scenario, key) != getattr(defaults, key):
            raise ConfigError(f"has {key}, which only a simulator can provide: use bipedsim up", "scenario", name)


def only_of_nodes(topics: set[str]) -> bool:
    """Return whether the topics contain nothing from a robot, but only the nodes' reports about themselves."""
    return topics <= {ros_topics.DIAGNOSTICS.name, ros_topics.FALLEN.name}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``bipedsim control`` to its parser."""
    groups = add_groups(parser, Arguments, ROBOT_ARGUMENTS, "as for bipedsim up")
    add_set(groups["robot and experiment"], "parameter of the controller, such as squat_depth=0.1")
    add_overwrite(groups["output"])


def main(args: argparse.Namespace) -> int:
    """Run ``bipedsim control`` until a node ends or the user interrupts; return 0, or 1 or 2 if a node failed.

    Raises:
        BipedSimError: An argument is invalid.
    """
    from bipedsim_ros.bringup.runner import discard_empty, outputs_replaced, run_bringup, say

    require_rclpy()
    (controller_params,) = split_params(args.set)
    bringup = plan_robot(chosen(args, Arguments), controller_params, args.overwrite)
    check_names(bringup)
    folder = bringup.run_folder
    with outputs_replaced(folder):
        with tempfile.TemporaryDirectory(prefix="bipedsim-") as scratch:
            outcome = run_bringup(bringup, Path(scratch))
        if outcome.failed:
            print(f"bipedsim control: {outcome.failed}", file=sys.stderr)
        if folder is not None and not discard_empty(folder, only_of_nodes):
            say(f"wrote {folder / 'bag'}; look at it with: bipedsim plot {shlex.quote(str(folder / 'bag'))}")
    return outcome.exit_code
