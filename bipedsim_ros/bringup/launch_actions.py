"""Convert a launch to actions of the launch package, for the files in ``launch/``."""

from __future__ import annotations

import atexit
import os
import shlex
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from launch.actions import DeclareLaunchArgument, LogInfo, OpaqueFunction, RegisterEventHandler, Shutdown
from launch.event_handlers import OnProcessIO
from launch.events.process import ProcessIO
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from bipedsim_ros.bringup.bringup import (
    BringUp,
    NodeProcess,
    argument_default,
    argument_help,
    from_text,
    parameters_text,
    refuse_misspelt,
)
from bipedsim_ros.wire import THIS_MACHINE, network_environment
from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity, Substitution


class NotGiven(Substitution):
    """Default of an argument: displayed as the default of the nodes, and passed on as an empty text.

    The value then comes from the scenario, the parameter file or the nodes.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def describe(self) -> str:
        """Return the text for `ros2 launch --show-args`."""
        return f"{argument_default(self._name)!r}"

    def perform(self, context: LaunchContext) -> str:
        """Return the empty text, which counts as not set."""
        return ""


def describe(names: Sequence[str], make: Callable[[dict[str, object]], BringUp]) -> LaunchDescription:
    """Return a launch description with the arguments ``names`` and the resulting nodes.

    Args:
        names: Arguments of a launch.
        make: Returns the launch for the arguments that the user has set.
    """

    def start(context: LaunchContext) -> list[LaunchDescriptionEntity]:
        refuse_misspelt("argument", (text.partition(":=")[0] for text in context.argv if ":=" in text), names, "launch")
        return actions(make(from_text({name: LaunchConfiguration(name).perform(context) for name in names})))

    arguments = [
        DeclareLaunchArgument(name, default_value=NotGiven(name), description=argument_help(name, False))
        for name in names
    ]
    return LaunchDescription([*arguments, OpaqueFunction(function=start)])


def actions(bringup: BringUp) -> list[LaunchDescriptionEntity]:
    """Return the nodes of a launch; with a recorder, the others start when it is ready."""
    variables = network_environment("", os.environ)
    nodes: list[LaunchDescriptionEntity] = [_node(node, variables) for node in bringup.nodes]
    notes: list[LaunchDescriptionEntity] = []
    if variables:
        notes.append(LogInfo(msg=THIS_MACHINE))
    if bringup.run_folder is None:
        return [*notes, *nodes]
    recorder, *others = nodes
    ready = bringup.nodes[0].ready.encode()
    begun: list[bool] = []

    def begin(event: ProcessIO) -> list[LaunchDescriptionEntity]:
        if begun or not any(line.startswith(ready) for line in event.text.splitlines()):
            return []
        begun.append(True)
        return others

    hint = LogInfo(msg=f"recording; afterwards: bipedsim plot {shlex.quote(str(bringup.run_folder / 'bag'))}")
    return [*notes, RegisterEventHandler(OnProcessIO(target_action=recorder, on_stdout=begin)), hint, recorder]


def _node(node: NodeProcess, variables: dict[str, str]) -> Node:
    parameters = [str(path) for path in node.params_files]
    if node.parameters:
        # The temporary file of launch_ros would not be deleted, and a text such as y would not be quoted in it.
        with tempfile.NamedTemporaryFile("w", prefix=f"{node.executable}_", suffix=".yaml", delete=False) as file:
            file.write(parameters_text(node))
        atexit.register(Path(file.name).unlink, missing_ok=True)
        parameters.append(file.name)
    return Node(
        package=node.package,
        executable=node.executable,
        name=node.executable,
        namespace=node.namespace,
        parameters=parameters,
        remappings=node.remappings,
        ros_arguments=["--log-level", node.log_level] if node.log_level else [],
        arguments=list(node.arguments),
        output="screen",
        additional_env=variables,
        # By default, the first word of the command would be the label of the output.
        exec_name=node.executable,
        prefix=" ".join(node.prefix),
        # No part of a launch is useful without the rest, and the end of sim_node ends a run with a duration.
        on_exit=None if node.optional else Shutdown(reason=f"{node.executable} has ended"),
        # The recorder needs time to write its index.
        sigterm_timeout="10",
    )
