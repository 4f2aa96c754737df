from .bringup import argument_names, plan
from .external_node import ExternalNode
from .launch_actions import describe
from .robot_bringup import ROBOT_ARGUMENTS, plan_robot

__all__ = [
    "ROBOT_ARGUMENTS",
    "ExternalNode",
    "argument_names",
    "describe",
    "plan",
    "plan_robot",
]
