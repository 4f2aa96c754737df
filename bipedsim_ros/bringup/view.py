"""Show a running robot in the browser (``bipedsim view`` without a recording)."""

from __future__ import annotations

import argparse
from pathlib import Path

from bipedsim.cli import add_option, chosen, option_name
from bipedsim.errors import ConfigError
from bipedsim_ros.bringup.bringup import Arguments, namespace_of, opens_browser
from bipedsim_ros.bringup.processes import ros_arguments
from bipedsim_ros.live import ViewParams
from bipedsim_ros.wire import join_graph

OWN = ("namespace", "params_file")
"""Options only for a running robot; ``bipedsim view`` has the others in any case."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``bipedsim view`` for a running robot."""
    for name in OWN:
        add_option(parser, Arguments, name)


def refuse_recorded(args: argparse.Namespace) -> None:
    """Refuse options that do not apply to a recorded run.

    Raises:
        ConfigError: The user has set such an option.
    """
    changed = [option_name(name) for name in OWN if getattr(args, name) is not None]
    if changed:
        reason = f"of a robot that is up, which bipedsim view shows without {args.recording}"
        raise ConfigError(reason, ", ".join(changed))


def main(args: argparse.Namespace) -> int:
    """Show the running robot until Ctrl-C; return the exit code.

    Raises:
        ConfigError: rclpy is not installed, or an argument is invalid.
    """
    join_graph()
    from bipedsim_ros.nodes import view_node

    files = [Path(args.params_file)] if args.params_file else []
    parameters = opens_browser(files) | chosen(args, ViewParams)
    namespace = namespace_of(args.namespace or "")
    return view_node.main(ros_arguments(namespace, parameters=parameters, params_files=files))
