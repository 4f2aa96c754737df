"""Show a running robot in the browser (``bipedsim view`` without a recording)."""

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
        raise ConfigError(f"{', '.join(changed)}: {reason}")


def main(args: argparse.Namespace) -> int:
    """Show the running robot until Ctrl-C; return the exit code.

    Raises:
        ConfigError: rclpy is not installed, or an argument is invalid.
    """
    require_rclpy()
    os.environ.setdefault("AMENT_PREFIX_PATH", sys.prefix)
    variables = network_environment(args.network, os.environ)
    if variables and not args.network:
        print(THIS_MACHINE, file=sys.stderr)
    os.environ.update(variables)
    from bipedsim_ros.nodes import view_node

    parameters = {name: getattr(args, name) for name in OWN}
    parameters |= {info.name: getattr(args, info.name) for info in dataclasses.fields(PageParams)}
    parameters |= {name: getattr(args, name) for name in ("robot", "ground") if getattr(args, name)}
    ros_arguments = ["--ros-args"]
    namespace = namespace_of(args.namespace)
    if namespace:
        ros_arguments += ["-r", f"__ns:={namespace}"]
    for name, value in parameters.items():
        ros_arguments += ["-p", f"{name}:={_typed(value)}"]
    return view_node.main(ros_arguments)


def _typed(value: object) -> str:
    """Return a value in the notation of ``-p``; texts are quoted, so that ROS does not read them as numbers."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value).lower() if isinstance(value, bool) else repr(value)
