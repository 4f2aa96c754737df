from .bringup import argument_names, plan
from .external_node import ExternalNode
from .launch_actions import describe
from .processes import environment, require_rclpy
from .robot_bringup import ROBOT_ARGUMENTS, plan_robot

__all__ = [
    "ROBOT_ARGUMENTS",
    "ExternalNode",
    "argument_names",
    "describe",
    "environment",
    "plan",
    "plan_robot",
    "require_rclpy",
]
