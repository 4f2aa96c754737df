from .base import Controller, checked_torque
from .controllers import CONTROLLERS, construct, controller_params, find_controller, make_controller, robot_params
from .loads import RELIEVED
from .monitor import FALL_TILT, Guard, failed, joint_damping
from .raised import ControllerError, controller_traceback, is_library, raised_line, raising_controller

__all__ = [
    "CONTROLLERS",
    "FALL_TILT",
    "RELIEVED",
    "Controller",
    "ControllerError",
    "Guard",
    "checked_torque",
    "construct",
    "controller_params",
    "controller_traceback",
    "failed",
    "find_controller",
    "is_library",
    "joint_damping",
    "make_controller",
    "raised_line",
    "raising_controller",
    "robot_params",
]
