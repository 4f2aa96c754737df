"""Simulator, controller and recorder: `ros2 launch bipedsim sim.launch.py robot:=talos record:=runs/first`.

What is started, and with which parameters, is decided in bipedsim_ros/bringup, as for `bipedsim up`.
"""

from __future__ import annotations

from bipedsim_ros.bringup import argument_names, describe, plan
from launch import LaunchDescription


def generate_launch_description() -> LaunchDescription:
    """Return the arguments of a bring-up and what follows from them."""
    return describe(argument_names(), plan)
