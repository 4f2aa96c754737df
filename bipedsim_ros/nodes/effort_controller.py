"""Parameters of ros2_control's effort controller, from which nodes learn the order of the joints in commands."""

from __future__ import annotations

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node

from bipedsim.model import Robot

NAME = "effort_controller"


def declare_joints(node: Node, robot: Robot) -> None:
    """Declare the read-only parameter ``joints`` of ``node``: the order of joints in commands."""
    about = ParameterDescriptor(description="joints of the robot, in the order of commands", read_only=True)
    node.declare_parameter("joints", list(robot.joint_names), about)


def make_effort_controller(node: Node, robot: Robot) -> Node:
    """Return a node named ``effort_controller`` in the namespace of ``node``.

    It has the parameters ``joints`` and ``interface_name`` of ros2_control's effort controllers, and nothing else. An
    executor must serve it.
    """
    controller = Node(
        NAME,
        context=node.context,
        namespace=node.get_namespace(),
        # A new name of the simulator's node, given on its command line, is not meant for this one.
        use_global_arguments=False,
        enable_rosout=False,
    )
    declare_joints(controller, robot)
    controller.declare_parameter("interface_name", "effort", ParameterDescriptor(read_only=True))
    return controller
