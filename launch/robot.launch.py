"""The controller alone, for a robot that is up: `ros2 launch bipedsim robot.launch.py robot:=talos controller:=zmp`.

What is started, and with which parameters, is decided in bipedsim_ros/bringup, as for `bipedsim control`.
"""

from __future__ import annotations

from bipedsim_ros.bringup import ROBOT_ARGUMENTS, describe, plan_robot
from launch import LaunchDescription


def generate_launch_description() -> LaunchDescription:
    """Return the arguments that concern a robot that is up, and what follows from them."""
    return describe(ROBOT_ARGUMENTS, plan_robot)
