"""The contract of docs/ros_interface.md as data, for ``bipedsim check-robot``. Nothing here needs ROS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bipedsim.errors import ConfigError
from bipedsim.model import Robot
from bipedsim.recording.bag import Qos
from bipedsim_ros.contract.expected import Contract, ExpectedTopic
from bipedsim_ros.wire import ankle_frame, ankle_wrench_topic

# What controller_node asks for and offers (bipedsim_ros/wire/qos.py, which needs ROS); a test compares both.
_NEWEST = Qos("reliable", "volatile", "keep_last", 1)
_SENSOR = Qos("best_effort", "volatile", "keep_last", 1)


def robot_contract(
    robot: Robot,
    rate: float = 1000.0,
    ft_sign: float = 1.0,
    joints: Sequence[str] = (),
    remappings: Mapping[str, str] | None = None,
) -> Contract:
    """Return what controller_node with these parameters expects.

    Args:
        robot: The robot.
        rate, ft_sign, joints: Parameters of controller_node.
        remappings: Topic of the contract to the robot's own.

    Raises:
        ConfigError: A remapping names no topic of the contract, or ``joints`` are not the robot's.
    """
    moved = dict(remappings or {})

    def topic(name: str, msgtype: str, qos: Qos, frame: str = "") -> ExpectedTopic:
        return ExpectedTopic(name, moved.get(name, name), msgtype, qos, frame)

    result = Contract(
        robot=robot,
        rate=rate,
        ft_sign=ft_sign,
        command_joints=tuple(joints) or robot.joint_names,
        joints=topic("/joint_states", "sensor_msgs/msg/JointState", _NEWEST),
        imu=topic("/imu/data", "sensor_msgs/msg/Imu", _SENSOR, robot.imu_frame),
        wrenches=tuple(
            topic(ankle_wrench_topic(s.name), "geometry_msgs/msg/WrenchStamped", _SENSOR, ankle_frame(s.name))
            for s in robot.soles
        ),
        commands=topic("/effort_controller/commands", "std_msgs/msg/Float64MultiArray", _NEWEST),
    )
    known = [t.name for t in (*result.sensors, result.commands)]
    for name in moved:
        if name not in known:
            raise ConfigError(f"--remap {name}:=...: the controller knows no such topic; it has {', '.join(known)}")
    if sorted(result.command_joints) != sorted(robot.joint_names):
        raise ConfigError(f"--joints must hold every joint of {robot.name} once: {', '.join(robot.joint_names)}")
    return result
