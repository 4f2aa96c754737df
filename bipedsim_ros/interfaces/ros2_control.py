"""Write the files with which a controller manager of ros2_control drives a robot: ``bipedsim ros2-control``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np
import yaml

from bipedsim.errors import ConfigError
from bipedsim.model import Robot, load_robot, located
from bipedsim_ros.wire import topics

PLUGIN = "joint_state_topic_hardware_interface/JointStateTopicSystem"
INTERFACES = ("position", "velocity", "effort")
RATE = 1000
"""Updates of the controller manager per second."""


def control_block(robot: Robot) -> str:
    """Return the element ``<ros2_control>`` of a robot: its joints with interfaces, limits and initial positions.

    All joints have the same interfaces, because the hardware interface sends values without the name of their joint.
    """
    lines = [
        f'  <ros2_control name={quoteattr(robot.name)} type="system">',
        "    <hardware>",
        f"      <plugin>{PLUGIN}</plugin>",
        f'      <param name="joint_commands_topic">{topics.JOINT_COMMANDS.name}</param>',
        f'      <param name="joint_states_topic">{topics.ROBOT_JOINT_STATES}</param>',
        "    </hardware>",
    ]
    limits = (
        (robot.position_lower, robot.position_upper),
        (-robot.velocity_limit, robot.velocity_limit),
        (-robot.effort_limit, robot.effort_limit),
    )
    for j, name in enumerate(robot.joint_names):
        lines.append(f"    <joint name={quoteattr(name)}>")
        for interface, (low, high) in zip(INTERFACES, limits, strict=True):
            bounds = [("min", low[j]), ("max", high[j])]
            lines += _interface("command", interface, [(key, value) for key, value in bounds if np.isfinite(value)])
        for interface in INTERFACES:
            # Commands begin at this value. Without it, topic_based_ros2_control would command 0 rad at the start.
            initial = [("initial_value", robot.posture[j])] if interface == "position" else []
            lines += _interface("state", interface, initial)
        lines.append("    </joint>")
    return "\n".join([*lines, "  </ros2_control>"]) + "\n"


def _interface(kind: str, name: str, params: list[tuple[str, float]]) -> Iterator[str]:
    """Yield the lines of a command or state interface."""
    if not params:
        yield f'      <{kind}_interface name="{name}"/>'
        return
    yield f'      <{kind}_interface name="{name}">'
    for key, value in params:
        yield f'        <param name="{key}">{round(float(value), 12)!r}</param>'
    yield f"      </{kind}_interface>"


def description(robot: Robot) -> str:
    """Return the URDF of a robot with its :func:`control_block`; mesh names are paths of this machine."""
    text = located(robot.urdf_xml, robot.urdf_path)
    begin, end, rest = text.rpartition("</robot>")
    if "<ros2_control" in text or not end:
        why = "it has one already" if end else "it has no </robot>"
        raise ConfigError(f"cannot take a <ros2_control> element: {why}", "robot", robot.urdf_path)
    return f"{begin}{control_block(robot)}{end}{rest}"


def controllers(robot: Robot) -> str:
    """Return controllers.yaml: a broadcaster of joint states, a trajectory controller, and an effort controller."""
    types = {
        "joint_state_broadcaster": "joint_state_broadcaster/JointStateBroadcaster",
        "joint_trajectory_controller": "joint_trajectory_controller/JointTrajectoryController",
        "effort_controller": "forward_command_controller/ForwardCommandController",
    }
    parameters = {
        "controller_manager": {"update_rate": RATE, **{name: {"type": kind} for name, kind in types.items()}},
        "joint_trajectory_controller": {
            "joints": list(robot.joint_names),
            "command_interfaces": ["position"],
            "state_interfaces": ["position", "velocity"],
            "allow_partial_joints_goal": True,
        },
        "effort_controller": {"joints": list(robot.joint_names), "interface_name": "effort"},
    }
    content = {name: {"ros__parameters": values} for name, values in parameters.items()}
    return str(yaml.safe_dump(content, sort_keys=False))


def write_ros2_control(robot: Robot, folder: Path) -> tuple[Path, Path]:
    """Write the URDF and controllers.yaml of a robot to a folder, and return their paths.

    Raises:
        ConfigError: The robot's URDF has a ``<ros2_control>`` element already, or the folder cannot be written.
    """
    texts = {folder / f"{robot.name}.urdf": description(robot), folder / "controllers.yaml": controllers(robot)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot be written ({error.strerror}); name another folder", "folder", folder) from error
    urdf, parameters = texts
    return urdf, parameters


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("robot", help="name of a robot, its robot.yaml, or a URDF, xacro or MJCF file")
    parser.add_argument("folder", type=Path, help="folder for the URDF and controllers.yaml; old ones are replaced")


def main(args: argparse.Namespace) -> int:
    """Write the URDF with its ``<ros2_control>`` element, and controllers.yaml."""
    robot = load_robot(args.robot)
    urdf, parameters = write_ros2_control(robot, args.folder)
    print(f"wrote {urdf}: {robot.nu} joints with position, velocity and effort")
    print(f"wrote {parameters}")
    print(f"start the simulator: bipedsim up --robot {args.robot} --controller topic_based (docs/ros2_control.md)")
    return 0
