from .base import Controller, checked_torque
from .controllers import CONTROLLERS, find_controller, make_controller, robot_params
from .monitor import FALL_TILT, Guard, joint_damping

__all__ = [
    "CONTROLLERS",
    "FALL_TILT",
    "Controller",
    "Guard",
    "checked_torque",
    "find_controller",
    "joint_damping",
    "make_controller",
    "robot_params",
]
