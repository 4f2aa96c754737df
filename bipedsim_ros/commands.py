"""The commands that the nodes add to ``bipedsim``."""

from bipedsim.cli import CliCommand

UP = CliCommand(
    "start simulator, controller and recorder as ROS 2 nodes",
    "Start the nodes of a launch as processes of their own: what `ros2 launch bipedsim` does, where the launch "
    "package is not installed.",
    "bipedsim_ros.bringup.up",
)

TELEOP = CliCommand(
    "steer a walking robot by the keyboard",
    "Publish velocity commands, ten times a second, as the keyboard asks for. ",
    "bipedsim_ros.bringup.teleop",
)

CONTROL = CliCommand(
    "start the controller alone, for a robot that is already up",
    "Start a controller, and a recorder if wanted, for a robot that is already up: what `ros2 launch bipedsim "
    "robot.launch.py` does, where the launch package is not installed. It runs until Ctrl-C.",
    "bipedsim_ros.bringup.robot_bringup",
)

CHECK_ROBOT = CliCommand(
    "compare a robot's topics, live or in a bag, with what a controller expects",
    "Listen to a robot (or read a bag) and compare topics, types, QoS, joints, frames, signs, units, rates and delays "
    "with what a controller expects. Nothing is published. Returns 1 if something differs or is missing. "
    "docs/other_robot.md explains every check.",
    "bipedsim_ros.contract.check_robot",
)

ROS2_CONTROL = CliCommand(
    "write the files with which ros2_control drives a robot",
    "Write the URDF of a robot with a <ros2_control> element, and a controllers.yaml, for a controller manager that "
    "drives the simulated robot by topics (docs/ros2_control.md). Example: bipedsim ros2-control biped14 control",
    "bipedsim_ros.interfaces.ros2_control",
)

VIEW = CliCommand(
    "what `bipedsim view` shows without a recording",
    "Show the robot that is up in the ROS graph, simulated or not.",
    "bipedsim_ros.bringup.view",
)

ENV = CliCommand(
    "print what another Python interpreter needs to use this one's ROS 2",
    "Print the variables with which a Python of another environment imports rclpy and meets these nodes, as export "
    'lines: eval "$(bipedsim env)".',
    "bipedsim_ros.bringup.env",
)

DOCTOR = CliCommand(
    "check this installation and print what to do about each problem",
    "Check versions, ROS 2, kernels, processor, real-time rights, shared memory and extras. Each line has a name, a "
    "value, and what to do if it is a problem or a hint. Returns 1 if there is a problem. Example: bipedsim doctor",
    "bipedsim_ros.bringup.doctor",
)
