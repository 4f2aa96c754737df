"""A bring-up as actions of the launch package, for the files in ``launch/``."""

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
from bipedsim_ros.wire import LEFT_PORTS, THIS_MACHINE, network_environment, remove_left_ports
from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity, Substitution


class NotGiven(Substitution):
    """The default of an argument: shown as what the nodes take then, and handed over as nothing.

    What is not given is left to the scenario, the file of parameters and the nodes.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def describe(self) -> str:
        """Return what `ros2 launch --show-args` says."""
        return f"{argument_default(self._name)!r}"

    def perform(self, context: LaunchContext) -> str:
        """Return the value that counts as not given."""
        return ""


def describe(names: Sequence[str], make: Callable[[dict[str, object]], BringUp]) -> LaunchDescription:
    """Return the launch arguments ``names`` and what follows from them.

    Args:
        names: Arguments of a bring-up.
        make: Returns the bring-up for the arguments that were given.
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
    """Return the nodes of a bring-up; a recorder comes first, and the others when it is ready."""
    variables = network_environment(bringup.arguments.network, os.environ)
    nodes: list[LaunchDescriptionEntity] = [_node(node, variables) for node in bringup.nodes]
    notes: list[LaunchDescriptionEntity] = []
    if variables and not bringup.arguments.network:
        notes.append(LogInfo(msg=THIS_MACHINE.replace("--network ", "network:=")))
    if removed := remove_left_ports():
        notes.append(LogInfo(msg=LEFT_PORTS.format(len(removed))))
    if bringup.run_folder is None:
        return [*notes, *nodes]
    recorder, *others = nodes
    ready = bringup.nodes[0].ready.encode()
    begun: list[bool] = []

    def begin(event: ProcessIO) -> list[LaunchDescriptionEntity]:
        if begun or ready not in event.text:
            return []
        begun.append(True)
        return others

    hint = LogInfo(msg=f"recording; afterwards: bipedsim plot {shlex.quote(str(bringup.run_folder / 'bag'))}")
    return [*notes, RegisterEventHandler(OnProcessIO(target_action=recorder, on_stdout=begin)), hint, recorder]


def _node(node: NodeProcess, variables: dict[str, str]) -> Node:
    parameters = [str(path) for path in node.params_files]
    if node.parameters:
        # launch_ros would write a file of its own, and leave it, in which y is no text.
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
        # Output is labelled with the first word of the command otherwise.
        exec_name=node.executable,
        prefix=" ".join(node.prefix),
        # Nothing of a bring-up makes sense without the rest, and the end of sim_node ends a run with a duration.
        on_exit=None if node.optional else Shutdown(reason=f"{node.executable} has ended"),
        # The recorder still has an index to write.
        sigterm_timeout="10",
    )
