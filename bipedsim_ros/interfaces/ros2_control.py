"""Write the files with which a controller manager of ros2_control drives a robot: ``bipedsim ros2-control``."""

from __future__ import annotations

import argparse
from pathlib import Path

import yaml

from bipedsim.errors import ConfigError
from bipedsim.model import Robot, load_robot
from bipedsim_ros.wire import controlled_urdf

RATE = 1000
"""Updates of the controller manager per second."""


def description(robot: Robot) -> str:
    """Return the URDF of a robot with its ``<ros2_control>`` element; mesh names are paths of this machine."""
    if "<ros2_control" in robot.urdf_xml:
        raise ConfigError(
            "has a <ros2_control> element already, which the simulator publishes as it is. Only controllers.yaml is "
            "needed: write it for these joints, with that of `bipedsim ros2-control biped14 FOLDER` as an example",
            "robot",
            robot.urdf_path,
        )
    return controlled_urdf(robot)


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
