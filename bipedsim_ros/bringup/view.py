"""``bipedsim view`` without a recording: a running robot in the browser."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys

from bipedsim.cli import add_option, option_name
from bipedsim.errors import ConfigError
from bipedsim.view.page import PageParams
from bipedsim_ros.bringup.bringup import argument_help, argument_metavar, namespace_of
from bipedsim_ros.bringup.processes import require_rclpy
from bipedsim_ros.live import ViewParams
from bipedsim_ros.wire import THIS_MACHINE, add_network_option, network_environment

OWN = ("frame_rate", "ft_sign", "linear_step", "angular_step", "max_linear", "max_angular")
"""Parameters of the node that are options of this command alone; ``bipedsim view`` has the others anyway."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what ``bipedsim view`` takes without a recording."""
    name = "namespace"
    parser.add_argument(option_name(name), metavar=argument_metavar(name), default="", help=argument_help(name))
    add_network_option(parser)
    for name in OWN:
        add_option(parser, ViewParams, name)


def refuse_recorded(args: argparse.Namespace) -> None:
    """Refuse options that mean nothing beside a recorded run.

    Raises:
        ConfigError: There are some.
    """
    usual = {"namespace": "", "network": ""} | {name: ViewParams.__dataclass_fields__[name].default for name in OWN}
    given = [option_name(name) for name in usual if getattr(args, name) != usual[name]]
    if given:
        said = f"of a robot that is up, which bipedsim view shows without {args.recording}"
        raise ConfigError(f"{', '.join(given)}: {said}")


def main(args: argparse.Namespace) -> int:
    """Show what is up until Ctrl-C; return the exit code.

    Raises:
        ConfigError: rclpy is not installed, or an argument is wrong.
    """
    require_rclpy()
    os.environ.setdefault("AMENT_PREFIX_PATH", sys.prefix)
    variables = network_environment(args.network, os.environ)
    if variables and not args.network:
        print(THIS_MACHINE, file=sys.stderr)
    os.environ.update(variables)
    from bipedsim_ros.nodes import view_node

    given = {name: getattr(args, name) for name in OWN}
    given |= {info.name: getattr(args, info.name) for info in dataclasses.fields(PageParams)}
    given |= {name: getattr(args, name) for name in ("robot", "ground") if getattr(args, name)}
    words = ["--ros-args"]
    namespace = namespace_of(args.namespace)
    if namespace:
        words += ["-r", f"__ns:={namespace}"]
    for name, value in given.items():
        words += ["-p", f"{name}:={_typed(value)}"]
    return view_node.main(words)


def _typed(value: object) -> str:
    """Return a value as ``-p`` reads it with its type: a text that looks like a number is none."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value).lower() if isinstance(value, bool) else repr(value)
