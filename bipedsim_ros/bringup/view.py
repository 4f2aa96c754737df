"""Show a running robot in the browser (``bipedsim view`` without a recording)."""

from __future__ import annotations

import argparse
import dataclasses

from bipedsim.cli import add_option, option_name
from bipedsim.errors import ConfigError
from bipedsim.view.page import PageParams
from bipedsim_ros.bringup.bringup import argument_help, argument_metavar, namespace_of
from bipedsim_ros.bringup.processes import ros_arguments
from bipedsim_ros.live import ViewParams
from bipedsim_ros.wire import add_network_option, join_graph

OWN = ("frame_rate", "ft_sign", "linear_step", "angular_step", "max_linear", "max_angular")
"""Parameters of the node that are options only of this command; ``bipedsim view`` has the others in any case."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``bipedsim view`` for a running robot."""
    name = "namespace"
    parser.add_argument(option_name(name), metavar=argument_metavar(name), default="", help=argument_help(name))
    add_network_option(parser)
    for name in OWN:
        add_option(parser, ViewParams, name)


def refuse_recorded(args: argparse.Namespace) -> None:
    """Refuse options that do not apply to a recorded run.

    Raises:
        ConfigError: The user has set such an option.
    """
    defaults = {"namespace": "", "network": ""} | {name: ViewParams.__dataclass_fields__[name].default for name in OWN}
    changed = [option_name(name) for name in defaults if getattr(args, name) != defaults[name]]
    if changed:
        reason = f"of a robot that is up, which bipedsim view shows without {args.recording}"
        raise ConfigError(reason, ", ".join(changed))


def main(args: argparse.Namespace) -> int:
    """Show the running robot until Ctrl-C; return the exit code.

    Raises:
        ConfigError: rclpy is not installed, or an argument is invalid.
    """
    join_graph(args.network)
    from bipedsim_ros.nodes import view_node

    parameters = {name: getattr(args, name) for name in OWN}
    parameters |= {info.name: getattr(args, info.name) for info in dataclasses.fields(PageParams)}
    parameters |= {name: getattr(args, name) for name in ("robot", "ground") if getattr(args, name)}
    return view_node.main(ros_arguments(namespace_of(args.namespace), parameters=parameters))
