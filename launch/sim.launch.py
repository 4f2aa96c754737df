"""Simulator, controller and recorder: `ros2 launch bipedsim sim.launch.py robot:=talos record:=runs/first`.

What is started, and with which parameters, is decided in bipedsim_ros/bringup.py, as for `bipedsim up`.
"""

from __future__ import annotations

from launch.actions import DeclareLaunchArgument, LogInfo, OpaqueFunction, RegisterEventHandler, Shutdown
from launch.event_handlers import OnProcessIO
from launch.events.process import ProcessIO
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from bipedsim_ros.bringup import NodeProcess, argument_help, argument_names, from_text, plan
from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity


def _action(node: NodeProcess) -> Node:
    parameters = [str(path) for path in node.params_files]
    return Node(
        package="bipedsim",
        executable=node.executable,
        name=node.executable,
        parameters=[*parameters, node.parameters] if node.parameters else parameters,
        output="screen",
        # Output is labelled with the first word of the command otherwise.
        exec_name=node.executable,
        prefix=" ".join(node.prefix),
        # Nothing of a bring-up makes sense without the rest, and the end of sim_node ends a run with a duration.
        on_exit=Shutdown(reason=f"{node.executable} has ended"),
        # The recorder still has an index to write.
        sigterm_timeout="10",
    )


def _start(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    texts = {name: LaunchConfiguration(name).perform(context) for name in argument_names()}
    bringup = plan(from_text(texts))
    actions: list[LaunchDescriptionEntity] = [_action(node) for node in bringup.nodes]
    if bringup.run_folder is None:
        return actions
    recorder, *others = actions
    ready = bringup.nodes[0].ready.encode()
    begun: list[bool] = []

    def begin(event: ProcessIO) -> list[LaunchDescriptionEntity]:
        if begun or ready not in event.text:
            return []
        begun.append(True)
        return others

    hint = LogInfo(msg=f"recording; afterwards: bipedsim plot {bringup.run_folder / 'bag'}")
    return [RegisterEventHandler(OnProcessIO(target_action=recorder, on_stdout=begin)), hint, recorder]


def generate_launch_description() -> LaunchDescription:
    """Return the arguments of a bring-up and what follows from them."""
    arguments = [
        DeclareLaunchArgument(name, default_value="", description=argument_help(name)) for name in argument_names()
    ]
    return LaunchDescription([*arguments, OpaqueFunction(function=_start)])
