from .bringup import argument_names, plan
from .launch_actions import describe
from .robot_bringup import ROBOT_ARGUMENTS, plan_robot
from .teleop import HELP, KeyTerminal, Steering, TeleopParams

__all__ = [
    "HELP",
    "ROBOT_ARGUMENTS",
    "KeyTerminal",
    "Steering",
    "TeleopParams",
    "argument_names",
    "describe",
    "plan",
    "plan_robot",
]
